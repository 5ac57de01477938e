"""Whole evaluations."""

import json

import numpy as np
import pytest

from soulsai.evaluation import Evaluation, PhaseFighters, ScriptedFighter, evaluate
from soulsgym.errors import MisuseError
from soulsgym.state import Outcome

CERTAIN = {"error_s": 0.0}
"""A duellist without randomness of his own."""


def _same(one, other):
    for name in ("outcome", "time_s", "player_hp_share", "boss_hp_share", "damage_taken", "steps", "phase"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.killed_by == other.killed_by


def _first(evaluation, n):
    content = json.loads(evaluation.to_json())
    content["settings"]["fights"] = n
    content["per_fight"] = {name: column[:n] for name, column in content["per_fight"].items()}
    return Evaluation.from_json(json.dumps(content))


def test_a_fight_is_the_same_whatever_is_played_beside_it():
    duellist = ScriptedFighter("duellist", **CERTAIN)
    few = evaluate(duellist, 5, seed=3, randomize=1.0)
    many = evaluate(duellist, 11, seed=3, randomize=1.0, batch=4)
    assert len(set(many.time_s)) > 5
    _same(few, _first(many, 5))


def test_counts_do_not_depend_on_the_batch():
    duellist = ScriptedFighter("duellist", **CERTAIN)
    one, other = (evaluate(duellist, 7, seed=3, batch=batch) for batch in (7, 3))
    assert one.attacks == other.attacks
    assert (one.deaths, one.hits) == (other.deaths, other.hits)
    assert np.array_equal(one.places, other.places)


def test_other_seeds_are_other_fights():
    one, other = (evaluate(ScriptedFighter("idle"), 5, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.time_s, other.time_s)


def test_idle_dies_in_the_first_phase(idle_fights):
    assert (idle_fights.wins, idle_fights.died, idle_fights.fell, idle_fights.time_outs) == (0, 5, 0, 0)
    first, second = idle_fights.phases
    assert (first.reached, first.died, second.reached) == (5, 5, 0)
    assert idle_fights.time_to_kill_s is None
    assert idle_fights.boss_hp_left.median == 1.0
    assert idle_fights.headline == "wins 0.0 % of 5 fights (95 % interval 0.0-43.4)"
    assert np.array_equal(idle_fights.steps, np.round(idle_fights.time_s * 10))


def test_what_is_counted_adds_up(duels):
    assert duels.wins + duels.died + duels.fell + duels.time_outs == 60
    assert 10 < duels.wins < 55
    assert duels.attack_damage == pytest.approx(duels.damage_taken.sum())
    assert sum(duels.hits.attack.values()) == sum(attack.hits for attack in duels.attacks)
    for groups in (duels.deaths.attack, duels.deaths.distance, duels.deaths.animation, duels.deaths.stamina):
        assert sum(groups.values()) == duels.died
    assert sum(attack.deaths for attack in duels.attacks) == duels.died
    assert sum(map(duels.damage_share, duels.attacks)) == pytest.approx(1.0)
    assert duels.phases[1].reached == 60 - duels.phases[0].died
    assert duels.places.sum() == pytest.approx(duels.steps.sum(), rel=0.05)
    assert duels.phases[1].died > 0


def test_shares_of_health(duels):
    won = duels.won
    assert (duels.boss_hp_share[won] == 0.0).all()
    assert (duels.player_hp_share[won] > 0.0).all()
    assert (duels.player_hp_share[~won] == 0.0).all()
    quartiles = duels.hp_left
    assert quartiles.low <= quartiles.median <= quartiles.high


def test_time_outs_are_losses():
    found = evaluate(ScriptedFighter("idle"), 3, step_limit=20)
    assert (found.wins, found.time_outs, found.win_rate) == (0, 3, 0.0)
    assert found.steps.tolist() == [20, 20, 20]
    assert found.phases[0].time_outs == 3


def test_the_first_hit_ends_it():
    plain = evaluate(ScriptedFighter("idle"), 4, seed=7)
    strict = evaluate(ScriptedFighter("idle"), 4, seed=7, no_hit=True)
    assert strict.died == 4
    assert (strict.steps < plain.steps).all()
    assert (strict.player_hp_share > 0.0).all()
    assert sum(attack.hits for attack in strict.attacks) == 4
    assert all(strict.killed_by)


def test_one_phase_alone():
    found = evaluate(ScriptedFighter("idle"), 3, phase=2, full=False)
    assert [phase.phase for phase in found.phases] == [2]
    assert all(name.startswith("beast") for name in found.killed_by)


def test_random_poses_change_the_start():
    poses = []

    class Looking:
        def begin(self, fights, mask):
            poses.append(fights["player_pose"][:, :2].copy())

        def act(self, fights):
            return np.full(len(fights), 19)

    evaluate(Looking(), 8, step_limit=1)
    evaluate(Looking(), 8, step_limit=1, random_pose=True)
    assert len(np.unique(poses[0], axis=0)) == 1
    assert len(np.unique(poses[1], axis=0)) > 3


def test_the_hard_variant_is_harder():
    plain, hard = (evaluate(ScriptedFighter("duellist"), 80, variant=name) for name in ("standard", "hard"))
    assert hard.wins < plain.wins


def test_phase_fighters_play():
    found = evaluate(PhaseFighters(ScriptedFighter("duellist"), ScriptedFighter("idle")), 20)
    assert found.wins == 0
    assert found.phases[1].died > 15


def test_progress_ends_with_all():
    told = []
    evaluate(ScriptedFighter("idle"), 5, batch=3, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (5, 5)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {5}


class Wrong:
    """Chooses what cannot be chosen."""

    def __init__(self, actions):
        self.actions = actions

    def begin(self, fights, mask):
        pass

    def act(self, fights):
        return self.actions


@pytest.mark.parametrize(
    ("actions", "message"),
    [(np.array([3, 20]), "action 20"), (np.array([-1, 0]), "action -1"), (np.zeros(3), "one for each")],
)
def test_wrong_actions(actions, message):
    with pytest.raises(MisuseError, match=message):
        evaluate(Wrong(actions), 2)


@pytest.mark.parametrize(
    "bad", [{"fights": 0}, {"batch": 0}, {"step_limit": 0}, {"boss": "nobody"}, {"randomize": 2.0}]
)
def test_impossible_settings(bad):
    with pytest.raises(MisuseError):
        evaluate(ScriptedFighter("idle"), **{"fights": 1, **bad})


def test_json_round_trip(duels):
    text = duels.to_json()
    again = Evaluation.from_json(text)
    assert again.to_json() == text
    _same(duels, again)
    assert again.settings == duels.settings
    assert json.loads(text)["summary"]["wins"] == duels.wins


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"format": 99}', '"text"'])
def test_damaged_json(damage):
    with pytest.raises(MisuseError, match="evaluate again"):
        Evaluation.from_json(damage)


def test_json_with_a_missing_fight(idle_fights):
    content = json.loads(idle_fights.to_json())
    content["per_fight"]["steps"].pop()
    with pytest.raises(MisuseError, match="steps has 4 entries for 5 fights"):
        Evaluation.from_json(json.dumps(content))


def test_outcomes_are_numbers_of_the_record(idle_fights):
    assert set(idle_fights.outcome.tolist()) == {int(Outcome.DIED)}
