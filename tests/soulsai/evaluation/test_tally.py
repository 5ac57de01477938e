"""Counting, with records made by hand."""

import json
import math

import numpy as np
import pytest

from soulsai.evaluation import Evaluation
from soulsai.evaluation.tally import GRID_CELLS, Tally, relative_m
from soulsgym.errors import MisuseError
from soulsgym.state import FIGHT, Outcome


class Story:
    """One fight told record by record."""

    def __init__(self, spec):
        self.spec = spec
        self.tally = Tally(spec)
        self.now = np.zeros(1, FIGHT)
        self.now["player_max_sp"], self.now["player_max_hp"] = 100, 450
        for name in ("hit_by", "dodged", "landed", "killed_by"):
            self.now[name] = -1
        self.tally.begin(self.now)

    def move(self, name):
        return self.spec.boss.move_index(name)

    def stand(self, **values):
        for name, value in values.items():
            self.now[name] = value
        return self

    def step(self, move, at_s, *, hit=None, damage=0.0, dodged=None, outcome=Outcome.RUNNING):
        before = self.now.copy()
        self.now["boss_move"], self.now["boss_move_s"] = self.move(move), at_s
        self.now["hit_by"] = -1 if hit is None else self.move(hit)
        self.now["dodged"] = -1 if dodged is None else self.move(dodged)
        self.now["damage_taken"], self.now["outcome"] = damage, outcome
        if outcome == Outcome.DIED:
            self.now["killed_by"] = self.now["hit_by"]
        self.tally.add(before, self.now, np.ones(1, bool))
        return self

    def attacks(self):
        self.tally.end()
        return {attack.name: attack for attack in self.tally.attacks()}


@pytest.fixture
def story(spec):
    return Story(spec)


def test_hit_and_dodge(story):
    story.step("slam", 0.1).step("slam", 0.8, dodged="slam").step("idle", 0.1)
    story.step("slam", 0.1).step("slam", 0.8, hit="slam", damage=130.0).step("idle", 0.1)
    slam = story.attacks()["slam"]
    assert (slam.started, slam.hits, slam.dodged, slam.damage) == (2, 1, 1, 130.0)
    assert slam.dodge_rate == 0.5


def test_a_blow_that_hits_after_all_was_not_dodged(story):
    story.step("slam", 0.1).step("slam", 0.8, dodged="slam").step("slam", 0.9, hit="slam", damage=130.0)
    slam = story.attacks()["slam"]
    assert (slam.hits, slam.dodged, slam.dodge_rate) == (1, 0, 0.0)


def test_the_other_blow_of_two_may_be_dodged(story):
    story.step("ground_stab", 0.1).step("ground_stab", 0.8, dodged="ground_stab")
    story.step("ground_stab", 1.8, hit="ground_stab", damage=90.0)
    stab = story.attacks()["ground_stab"]
    assert (stab.hits, stab.dodged) == (1, 1)


def test_the_same_attack_twice_in_a_row(story):
    story.step("swing", 0.1).step("swing", 0.9, dodged="swing")
    story.step("swing", 0.05).step("swing", 0.9, hit="swing", damage=115.0)
    swing = story.attacks()["swing"]
    assert (swing.started, swing.hits, swing.dodged) == (2, 1, 1)


def test_a_throw_belongs_to_its_grab(story):
    story.step("grab", 0.1).step("grab", 0.7, dodged="grab").step("throw", 0.0, hit="throw")
    story.step("throw", 1.5, hit="throw", damage=174.0, outcome=Outcome.DIED)
    attacks = story.attacks()
    assert list(attacks) == ["grab"]
    grab = attacks["grab"]
    assert (grab.started, grab.hits, grab.dodged, grab.damage, grab.deaths) == (1, 1, 0, 174.0, 1)
    assert story.tally.deaths().attack == {"grab": 1}


def test_an_attack_that_ends_with_the_step_of_its_blow(story):
    story.step("slam", 0.8).step("idle", 0.0, dodged="slam")
    story.step("swing", 0.1, hit="swing", damage=10.0)
    attacks = story.attacks()
    assert attacks["slam"].dodged == 1
    assert (attacks["swing"].started, attacks["swing"].hits) == (1, 1)


def test_how_the_player_stood_a_step_before(story, spec):
    names = [animation.name for animation in spec.player_animations]
    story.stand(player_animation=names.index("RollingMedium"), player_sp=19.9, player_pose=(0.0, -2.5, 0.0, 0.0))
    story.step("slam", 0.8, hit="slam", damage=100.0, outcome=Outcome.DIED)
    for found in (story.tally.deaths(), story.tally.hits()):
        assert found.attack == {"slam": 1}
        assert found.animation == {"RollingMedium": 1}
        assert found.distance == {"0-2 m": 0, "2-3 m": 1, "3-4 m": 0, "4-6 m": 0, "6+ m": 0}
        assert found.stamina == {"under 20 %": 1, "20-50 %": 0, "50 % and more": 0}


@pytest.mark.parametrize(
    ("stamina", "group"), [(20.0, "20-50 %"), (49.0, "20-50 %"), (50.0, "50 % and more"), (-5.0, "under 20 %")]
)
def test_stamina_groups(story, stamina, group):
    story.stand(player_sp=stamina).step("slam", 0.8, hit="slam", damage=1.0)
    assert story.tally.hits().stamina[group] == 1


def test_unknown_animation(story):
    story.stand(player_animation=-1).step("slam", 0.8, hit="slam", damage=1.0)
    assert story.tally.hits().animation == {"unknown": 1}


def test_falls_are_deaths_without_a_blow(story):
    story.step("idle", 0.1, outcome=Outcome.FELL)
    deaths = story.tally.deaths()
    assert deaths.attack == {"fall": 1}
    assert sum(deaths.distance.values()) == 0


def test_who_does_not_play_is_not_counted(story):
    before = story.now.copy()
    story.now["hit_by"], story.now["damage_taken"], story.now["boss_move"] = 22, 10.0, 22
    story.tally.add(before, story.now, np.zeros(1, bool))
    assert story.attacks() == {}
    assert story.tally.places.sum() == 0


def test_ahead_and_right_of_the_boss():
    fights = np.zeros(3, FIGHT)
    fights["boss_pose"][:, :2] = 10.0, 20.0
    fights["boss_pose"][:, 3] = 0.0, 0.0, math.pi / 2
    # With heading 0 he looks along -y and has -x at his right; a quarter more and he looks along -x, +y at his right.
    fights["player_pose"][:, :2] = (10.0, 17.0), (8.0, 20.0), (9.0, 24.0)
    ahead_m, right_m = relative_m(fights)
    assert ahead_m == pytest.approx([3.0, 0.0, 1.0], abs=1e-6)
    assert right_m == pytest.approx([0.0, 2.0, 4.0], abs=1e-6)


def test_places(story):
    story.stand(player_pose=(0.0, -3.2, 0.0, 0.0)).step("idle", 0.1)
    story.stand(player_pose=(-40.0, 0.0, 0.0, 0.0)).step("idle", 0.2)
    grid, hits = story.tally.places, story.tally.hit_places
    # Row: (3.2 + 10) / 0.5 = 26.4; column: 10 / 0.5 = 20. The second place is off the map.
    assert np.argwhere(grid).tolist() == [[26, 20]]
    assert grid.shape == (GRID_CELLS, GRID_CELLS)
    assert hits.sum() == 0


def test_damage_over_time(spec):
    """By stretches of 5 s in which steps began, among the fights that came so far."""
    tally = Tally(spec)
    now = np.zeros(2, FIGHT)
    for name in ("hit_by", "dodged", "boss_move"):
        now[name] = -1
    tally.begin(now)
    for time_s, taken, dealt, playing in (
        (0.0, 100.0, 0.0, [True, True]),
        (4.9, 50.0, 30.0, [True, True]),
        (5.0, 10.0, 80.0, [True, False]),
        (12.0, 0.0, 20.0, [True, False]),
    ):
        before, after = now.copy(), now.copy()
        before["time_s"] = time_s
        after["time_s"] = time_s + 0.1
        after["damage_taken"][0], after["damage_dealt"][0] = taken, dealt
        after["damage_taken"][1] = 1000.0 if not playing[1] else 0.0  # of a fight that is over: not counted
        tally.add(before, after, np.array(playing))
    found = tally.pace.damage_over_time()
    assert found.seconds == (0.0, 5.0, 10.0)
    assert found.fights == (2, 1, 1)
    assert found.taken == (75.0, 10.0, 0.0)
    assert found.dealt == (15.0, 80.0, 20.0)


def test_damage_over_time_sums_up(duels):
    """All damage of all fights is in it, and it is kept in the file; files without it are still read."""
    found = duels.damage_over_time
    assert found.fights[0] == duels.fights
    assert list(found.fights) == sorted(found.fights, reverse=True)
    taken = sum(mean * fights for mean, fights in zip(found.taken, found.fights, strict=True))
    assert taken == pytest.approx(duels.damage_taken.sum(), rel=1e-3)
    content = json.loads(duels.to_json())
    assert Evaluation.from_json(duels.to_json()).damage_over_time == found
    assert set(content["damage_over_time"]) == {"seconds", "taken", "dealt", "fights"}
    del content["damage_over_time"]
    assert Evaluation.from_json(json.dumps(content)).damage_over_time is None
    content["damage_over_time"] = {"seconds": [0.0], "taken": [], "dealt": [], "fights": []}
    with pytest.raises(MisuseError, match="evaluation cannot be read"):
        Evaluation.from_json(json.dumps(content))
