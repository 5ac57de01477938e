"""The scripted players: what each of them presses, and what it looks at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.players import PLAYERS, make_player
from soulsgym.players.observation import LIGHT, ROLLS, bearing_from_boss, distance_m, key_along
from soulsgym.players.timings import boss_timings, light_attack
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import FIGHT, NUM_ACTIONS, OBSERVATION_KEYS, action_mask_of, observation_of

IDLE_LABEL, THRUST_LABEL = 23, 12
IUDEX = load_fight("iudex")


def scene(n=1, *, r=2.0, label=IDLE_LABEL, duration_s=0.0, phase=1, sp=95.0):
    """The player `r` metres in front of a boss that looks along +x; everything is open."""
    fights = np.zeros(n, FIGHT)
    fights["phase"] = phase
    fights["boss_pose"][:] = 140.0, 590.0, -69.0, -np.pi / 2
    fights["player_pose"][:] = 140.0 + r, 590.0, -69.0, np.pi / 2
    fights["camera_pose"][:, 3:5] = -1.0, 0.0
    fights["player_sp"] = sp
    fights["boss_animation"] = label
    fights["boss_animation_duration"] = duration_s
    fights["action_mask"] = 1
    return observation_of(fights), action_mask_of(fights)


def played(name, *, n=8, steps=150, spec=IUDEX):
    """The actions of a player over the first steps of `n` fights, with the masks they were chosen under."""
    engine = SimEngine(spec, n, changes=True)
    engine.reset(np.ones(n, bool), standard_starts(n), np.arange(n, dtype=np.uint64))
    player = make_player(name, spec, n, 3)
    player.reset(np.ones(n, bool))
    for _ in range(steps):
        mask = action_mask_of(engine.fights).copy()
        actions = player.act(observation_of(engine.fights), mask)
        yield actions, mask
        engine.step(ACTION_CONTROLS[actions])


@pytest.mark.parametrize("name", PLAYERS)
def test_actions_are_one_number_a_fight(name):
    for actions, _ in played(name, steps=40):
        assert actions.shape == (8,)
        assert np.issubdtype(actions.dtype, np.integer)
        assert ((actions >= 0) & (actions < NUM_ACTIONS)).all()


@pytest.mark.parametrize("name", [name for name in PLAYERS if name != "random"])
def test_only_open_actions_are_pressed(name):
    for actions, mask in played(name):
        assert mask[np.arange(len(mask)), actions].all()


def test_random_presses_everything_even_when_it_is_closed():
    pressed, closed = set(), 0
    for actions, mask in played("random", n=64):
        pressed |= set(actions.tolist())
        closed += (~mask[np.arange(len(mask)), actions]).sum()
    assert pressed == set(range(NUM_ACTIONS))
    assert closed > 0


@pytest.mark.parametrize("name", PLAYERS)
def test_players_see_only_the_observation(name):
    class Watched(dict):
        def __getitem__(self, key):
            assert key in OBSERVATION_KEYS
            read.add(key)
            return super().__getitem__(key)

    read: set[str] = set()
    observation, mask = scene(4)
    player = make_player(name, IUDEX, 4, 0)
    player.act(Watched(observation), mask)
    if name == "duellist":
        assert {"phase", "boss_animation", "boss_animation_duration", "player_sp", "boss_pose"} <= read


def test_observation_and_mask_are_left_as_they_are():
    observation, mask = scene(4)
    before = {key: value.copy() for key, value in observation.items()}
    for name in PLAYERS:
        make_player(name, IUDEX, 4, 0).act(observation, mask)
    assert all(np.array_equal(observation[key], before[key]) for key in before)
    assert mask.all()


def test_unknown_player_is_named_with_the_way_out():
    with pytest.raises(MisuseError, match=r"'duelist'.*did you mean 'duellist'"):
        make_player("duelist", IUDEX, 1)


def test_bearings_of_a_player_in_front_and_to_the_right():
    observation, _ = scene(2)
    # Looking along +x, a boss has -y to its right.
    observation["player_pose"][1, :2] = 140.0, 587.0
    assert distance_m(observation) == pytest.approx([2.0, 3.0], abs=1e-4)
    assert bearing_from_boss(observation) == pytest.approx([0.0, np.pi / 2], abs=1e-6)


def test_keys_follow_the_camera():
    observation, _ = scene(3)
    # The camera looks along -x, heading pi/2; headings grow clockwise like the keys.
    assert key_along(observation, np.array([np.pi / 2, np.pi, 0.0])).tolist() == [0, 2, 6]


def test_attack_spam_walks_up_and_strikes_in_reach():
    player = make_player("attack_spam", IUDEX, 1)
    assert player.act(*scene(r=8.0)).tolist() == [0]
    assert player.act(*scene(r=2.0)).tolist() == [LIGHT]


def test_roll_spam_strikes_at_most_every_other_time():
    player = make_player("roll_spam", IUDEX, 1)
    first, second, third = (player.act(*scene())[0] for _ in range(3))
    assert first == third == LIGHT
    assert ROLLS <= second < ROLLS + 8


def test_runner_never_strikes_and_leaves_the_boss():
    action = make_player("runner", IUDEX, 1).act(*scene(r=3.0))[0]
    assert action in (3, 4, 5)


def test_duellist_rolls_at_the_blow_and_a_late_one_later():
    blow_s = boss_timings(IUDEX).blow_from_s[0, 1 + THRUST_LABEL, 0]

    def rolled_s(delay_s):
        player = make_player("duellist", IUDEX, 1, delay_s=delay_s, error_s=0.0)
        for duration_s in np.arange(0.0, 1.3, 0.01):
            if player.act(*scene(label=THRUST_LABEL, duration_s=duration_s))[0] in range(ROLLS, ROLLS + 8):
                return duration_s
        return np.inf

    on_time_s, late_s = rolled_s(0.0), rolled_s(0.1)
    assert blow_s - 0.2 < on_time_s < blow_s - 0.1
    assert late_s - on_time_s == pytest.approx(0.1, abs=0.011)


def test_duellist_lets_a_far_blow_pass():
    blow_s = boss_timings(IUDEX).blow_from_s[0, 1 + THRUST_LABEL, 0]
    player = make_player("duellist", IUDEX, 1, error_s=0.0)
    assert player.act(*scene(r=12.0, label=THRUST_LABEL, duration_s=blow_s - 0.05)).tolist() == [0]


def test_duellist_strikes_an_idle_boss_only_with_stamina_left_to_roll():
    assert make_player("duellist", IUDEX, 1).act(*scene()).tolist() == [LIGHT]
    assert make_player("duellist", IUDEX, 1).act(*scene(sp=15.0)).tolist() == [NOTHING]


def test_duellist_knows_that_a_label_in_a_recovery_comes_early():
    known = boss_timings(IUDEX)
    blow_s = known.blow_from_s[0, 1 + THRUST_LABEL, 0]
    slam = 14
    player = make_player("duellist", IUDEX, 1, error_s=0.0)
    player.act(*scene(label=slam, duration_s=known.decided_s[0, 1 + slam]))
    player.act(*scene(label=THRUST_LABEL, duration_s=0.05))
    # The slam had 0.097 - 0.05 s more of its own label, and then recovers to its end.
    lead_s = known.end_s[0, 1 + slam] - (known.decided_s[0, 1 + slam] + 0.047)
    assert lead_s > 0.4
    assert player.act(*scene(label=THRUST_LABEL, duration_s=blow_s)).tolist() == [NOTHING]
    assert player.act(*scene(label=THRUST_LABEL, duration_s=blow_s + lead_s - 0.1))[0] in range(ROLLS, ROLLS + 8)


def test_timings_tell_the_phases_apart():
    known = boss_timings(IUDEX)
    thrust, tail = (IUDEX.boss.moves[IUDEX.boss.move_index(name)] for name in ("thrust", "beast_tail"))
    assert thrust.animation == tail.animation
    assert known.blow_from_s[0, 1 + THRUST_LABEL, 0] == thrust.hits[0].from_s
    assert known.blow_from_s[1, 1 + THRUST_LABEL, 0] == tail.hits[0].from_s


def other_boss(*, hits=True, phases=1, slower_s=0.0):
    """Another fight: fewer phases, blows that come later, or none at all."""
    boss = IUDEX.boss
    moves = tuple(
        replace(
            move,
            hits=tuple(replace(hit, from_s=hit.from_s + slower_s, to_s=hit.to_s + slower_s) for hit in move.hits)
            if hits
            else (),
        )
        for move in boss.moves
    )
    return replace(IUDEX, boss=replace(boss, moves=moves, phases=boss.phases[:phases]))


@pytest.mark.parametrize("name", PLAYERS)
def test_players_fight_any_boss(name):
    for spec in (other_boss(), other_boss(hits=False)):
        player = make_player(name, spec, 4)
        for label in (-1, 0, IDLE_LABEL):
            assert player.act(*scene(4, label=label)).shape == (4,)


def test_duellist_rolls_when_the_blows_of_this_boss_come():
    blow_s = boss_timings(IUDEX).blow_from_s[0, 1 + THRUST_LABEL, 0]
    early = scene(label=THRUST_LABEL, duration_s=blow_s - 0.1)
    assert make_player("duellist", IUDEX, 1, error_s=0.0).act(*early)[0] in range(ROLLS, ROLLS + 8)
    slow = make_player("duellist", other_boss(slower_s=0.5), 1, error_s=0.0)
    assert slow.act(*early)[0] not in range(ROLLS, ROLLS + 8)


def test_duellist_waits_while_this_boss_may_strike_at_any_moment():
    quick = other_boss(slower_s=-0.5)
    assert boss_timings(quick).quick_s[0] == pytest.approx(boss_timings(IUDEX).quick_s[0] - 0.5)
    assert make_player("duellist", quick, 1).act(*scene()).tolist() == [NOTHING]


def test_a_longer_blade_strikes_from_farther_away():
    moves = tuple(
        replace(move, strikes=tuple(replace(strike, reach_m=5.0) for strike in move.strikes))
        for move in IUDEX.player.moves
    )
    long = replace(IUDEX, player=replace(IUDEX.player, moves=moves))
    assert light_attack(long).reach_m == 5.0
    for name in ("attack_spam", "roll_spam", "duellist"):
        assert make_player(name, long, 1).act(*scene(r=5.0)).tolist() == [LIGHT], name
        assert make_player(name, IUDEX, 1).act(*scene(r=5.0)).tolist() != [LIGHT], name


def test_runner_turns_back_before_the_edge_of_this_arena():
    centre_m = IUDEX.arena.centre_m
    corners = tuple(
        replace(
            corner,
            x_m=centre_m[0] + 0.2 * (corner.x_m - centre_m[0]),
            y_m=centre_m[1] + 0.2 * (corner.y_m - centre_m[1]),
        )
        for corner in IUDEX.arena.corners
    )
    small = replace(IUDEX, arena=replace(IUDEX.arena, corners=corners))
    observation, mask = scene(r=12.0)
    observation["player_pose"][:, :2] = centre_m[0], centre_m[1] - 5.0
    keys = [make_player("runner", spec, 1).act(observation, mask)[0] for spec in (IUDEX, small)]
    assert keys[0] != keys[1]
