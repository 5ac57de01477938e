"""Tests of the record that is made from what is seen of the game; all numbers are worked by hand."""

import dataclasses
import math

import numpy as np
import pytest

from soulsgym.actions import NOTHING, Button
from soulsgym.envs.spaces import limits_of, observation_space
from soulsgym.errors import ReadFailed
from soulsgym.game.titles import DarkSoulsIII, Glance, Sight
from soulsgym.game.tracking import Tracker
from soulsgym.spec import load_fight
from soulsgym.spec.game import PhaseChange
from soulsgym.state import FIGHT, Outcome, observation_of

TICK_S = 0.097 / 6
STANDING = Sight(
    time_ms=5000, player_hp=454, player_max_hp=454, player_sp=95, player_max_sp=95, boss_hp=1037, boss_max_hp=1037,
    player_pose=(132.0, 575.0, -68.0, -2.8), boss_pose=(141.0, 592.0, -68.8, 0.6),
    camera_pose=(131.0, 572.0, -66.0, 0.5, 0.85, -0.16), player_animation="Idle", boss_animation="IdleBattle",
    player_animation_s=0.5, boss_animation_s=0.5, lock_on=True, statuses=(1.0, 0.0),
)  # fmt: skip


class Scene:
    """A tracker with its record."""

    def __init__(self, boss="iudex", *, training=True, **changes):
        self.plan = dataclasses.replace(load_fight(boss, moves=False).game, **changes)
        self.fights, self.statuses = (
            np.zeros(1, FIGHT),
            np.zeros(1, [("frost_resistance", "f4", (1,)), ("frost_effect", "f4", (1,))]),
        )
        self.tracker = Tracker(self.plan, DarkSoulsIII, self.fights[0], self.statuses[0], training=training)
        self.sight = STANDING

    @property
    def fight(self):
        return self.fights[0]

    def begin(self, phase=1, **start):
        self.tracker.begin(self.sight, phase=phase, **start)
        return self

    def see(self, tick, **changes):
        """A tick of the step shows this."""
        self.sight = dataclasses.replace(self.sight, **changes)
        self.tracker.see(tick, Glance(0, self.sight.player_hp, self.sight.boss_hp, self.sight.player_animation,
                                      self.sight.boss_animation))  # fmt: skip
        return self

    def end(self, ticks=6, **changes):
        """The step ends with this in sight; training restores health after it."""
        self.sight = dataclasses.replace(self.sight, **changes)
        self.tracker.finish(self.sight, ticks, ticks / 60)
        return self.fight

    def restore(self):
        self.sight = dataclasses.replace(self.sight, player_hp=454, boss_hp=1037)
        self.tracker.set_game_hp(454, 1037)


@pytest.fixture
def scene():
    return Scene().begin()


def duration(fight):
    return float(fight["player_animation_duration"][0])


def test_a_fight_begins_with_full_health_and_all_actions(scene):
    fight = scene.fight
    assert (fight["player_hp"][0], fight["boss_hp"][0], fight["outcome"]) == (454.0, 1037.0, Outcome.RUNNING)
    assert fight["action_mask"].all()
    assert duration(fight) == 0.0
    assert (fight["player_animation"], fight["boss_animation"]) == (17, 23)


def test_a_fight_may_begin_in_the_middle():
    fight = Scene().begin(phase=2, player_hp=100.0, boss_hp=300.0).fight
    assert (fight["phase"], fight["player_hp"][0], fight["boss_hp"][0]) == (2, 100.0, 300.0)


def test_durations_go_on_by_the_label_clock(scene):
    assert duration(scene.end()) == pytest.approx(0.097)
    assert duration(scene.end()) == pytest.approx(0.194)
    assert duration(scene.end(ticks=7)) == pytest.approx(0.194 + 7 * TICK_S)


@pytest.mark.parametrize(("tick", "ticks_old"), [(1, 6), (2, 5), (6, 1)])
def test_a_name_that_changed_is_as_old_as_the_ticks_it_was_shown(scene, tick, ticks_old):
    scene.see(tick, player_animation="RollingMedium")
    fight = scene.end()
    assert fight["player_animation"] == 21
    assert duration(fight) == pytest.approx(ticks_old * TICK_S)
    assert duration(scene.end()) == pytest.approx((ticks_old + 6) * TICK_S)


def test_a_name_seen_only_at_the_end_is_one_tick_old(scene):
    scene.see(6)
    assert duration(scene.end(player_animation="RollingMedium")) == pytest.approx(TICK_S)


def test_a_name_that_came_and_went_counts_from_its_return(scene):
    scene.see(2, player_animation="Move").see(5, player_animation="Idle")
    assert duration(scene.end()) == pytest.approx(2 * TICK_S)


def test_an_attack_that_began_again_is_noticed_by_its_own_time(scene):
    scene.see(1, player_animation="AttackRightLight1")
    scene.end(player_animation_s=0.1)
    scene.end(player_animation_s=0.2)
    assert duration(scene.end(player_animation_s=3 / 60)) == pytest.approx(3 * TICK_S)
    assert scene.end(player_animation_s=9 / 60)["player_animation_duration"][0] == pytest.approx(9 * TICK_S)


@pytest.mark.parametrize(("name", "animation_s"), [("Idle", 0.05), ("AttackRightLight1", 0.6)])
def test_a_loop_or_a_jump_in_time_is_no_restart(scene, name, animation_s):
    scene.see(1, player_animation=name)
    scene.end(player_animation_s=1.0)
    before = duration(scene.fight)
    assert duration(scene.end(player_animation_s=animation_s)) == pytest.approx(before + 0.097)


def test_a_long_duration_is_shown_within_its_space(scene):
    for _ in range(120):
        scene.end()
    assert duration(scene.fight) == 10.0


def test_health_is_counted_here_while_the_game_gets_its_own_back(scene):
    fight = scene.see(2, player_hp=334).end(boss_hp=985)
    assert (fight["player_hp"][0], fight["boss_hp"][0]) == (334.0, 985.0)
    assert (fight["damage_taken"], fight["damage_dealt"]) == (120.0, 52.0)
    scene.restore()
    fight = scene.end(player_hp=354)
    assert (fight["player_hp"][0], fight["boss_hp"][0]) == (234.0, 985.0)
    assert (fight["damage_taken"], fight["damage_dealt"]) == (100.0, 0.0)
    assert (fight["taken_total"], fight["dealt_total"]) == (220.0, 52.0)


def test_nobody_loses_more_than_he_has():
    scene = Scene().begin(player_hp=50.0)
    fight = scene.end(player_hp=334)
    assert (fight["player_hp"][0], fight["damage_taken"], fight["outcome"]) == (0.0, 50.0, Outcome.DIED)
    assert not fight["action_mask"][:NOTHING].any()


def test_killing_and_dying_at_once_is_a_win():
    fight = Scene().begin(player_hp=50.0, boss_hp=40.0).end(player_hp=300, boss_hp=900)
    assert fight["outcome"] == Outcome.WON


def test_another_full_health_than_the_data_say_still_counts_the_damage():
    scene = Scene()
    scene.sight = dataclasses.replace(STANDING, player_hp=500, player_max_hp=500)
    scene.begin()
    fight = scene.end(player_hp=480)
    assert (fight["player_max_hp"], fight["player_hp"][0]) == (454, 434.0)


def test_a_fall_is_deadly_and_no_blow(scene):
    fight = scene.end(player_pose=(150.0, 600.0, -73.5, 0.0), player_animation="FallLoop")
    assert (fight["outcome"], fight["player_hp"][0], fight["damage_taken"]) == (Outcome.FELL, 0.0, 454.0)
    assert (fight["hit_by"], fight["killed_by"]) == (-1, -1)
    assert fight["player_pose"][2] == -73.0


@pytest.mark.parametrize("death", [{"player_hp": 0}, {"player_animation": "DeathIdle"}])
def test_a_real_death_in_training_is_a_death(scene, death):
    fight = scene.end(**death)
    assert (fight["outcome"], fight["player_hp"][0]) == (Outcome.DIED, 0.0)


def test_who_hit_whom(scene):
    plan = scene.plan
    scene.see(1, boss_animation="Attack3001").see(2, player_animation="AttackRightLight1")
    scene.see(3, player_hp=354).see(4, boss_animation="IdleBattle").see(5, boss_hp=985)
    fight = scene.end()
    assert plan.move_names[fight["hit_by"]] == "swing"
    assert fight["landed"] == plan.player_move("AttackRightLight1")
    scene.restore()
    fight = scene.end()
    assert (fight["hit_by"], fight["landed"]) == (-1, -1)


def test_the_killer_is_known_in_either_phase():
    scene = Scene().begin(phase=2, player_hp=10.0)
    fight = scene.see(1, boss_animation="Attack3000").see(3, player_hp=400).end()
    assert scene.plan.move_names[fight["killed_by"]] == "beast_thrust"


def test_moves_and_their_seconds_are_told(scene):
    scene.see(1, boss_animation="Attack3012", player_animation="RollingMedium")
    fight = scene.end(boss_animation_s=0.4, player_animation_s=0.1)
    assert scene.plan.move_names[fight["boss_move"]] == "thrust"
    assert fight["boss_move_s"] == pytest.approx(0.4)
    assert (fight["player_move"], fight["player_move_s"]) == (-2, pytest.approx(0.1))


def test_a_real_fight_shows_real_health_and_the_phase_by_its_animation():
    scene = Scene(training=False).begin()
    assert scene.end(player_hp=400, boss_hp=600)["player_hp"][0] == 400.0
    fight = scene.end(player_hp=380, boss_hp=500)
    assert (fight["player_hp"][0], fight["boss_hp"][0], fight["damage_taken"], fight["phase"]) == (380, 500, 20, 1)
    scene.see(3, boss_animation="Attack1500").see(5, boss_animation="IdleBattle")
    assert scene.end()["phase"] == 2
    assert scene.end()["phase"] == 2
    assert scene.end(boss_hp=0)["outcome"] == Outcome.WON


def test_a_real_fight_with_a_boss_whose_phase_no_name_tells():
    change = PhaseChange(boss_hp=500, animation="", begins_within_s=1.0, lasts_at_most_s=1.0)
    scene = Scene("vordt", training=False, changes=(change,)).begin()
    assert scene.end(boss_hp=900)["phase"] == 1
    assert scene.end(boss_hp=499)["phase"] == 2


def test_training_stays_in_its_phase(scene):
    scene.see(1, boss_animation="Attack1500")
    assert scene.end()["phase"] == 1


@pytest.mark.parametrize(
    ("animation", "age_ticks", "walk", "roll", "attack"),
    [
        ("RollingMedium", 42, False, False, False),  # 0.679 s
        ("RollingMedium", 43, False, False, True),  # 0.695 s: attacks from 0.69
        ("RollingMedium", 46, False, True, True),  # 0.744 s: rolls from 0.73
        ("RollingMedium", 47, True, True, True),  # 0.760 s: walking from 0.75
        ("LandFaceUp", 600, False, False, False),
        ("Event99099", 1, True, True, True),
        ("FallLoop", 30, False, False, False),
    ],
)
def test_what_is_open_when(scene, animation, age_ticks, walk, roll, attack):
    scene.see(1, player_animation=animation)
    mask = scene.end(ticks=age_ticks)["action_mask"]
    assert mask[:8].tolist() == [walk] * 8
    assert mask[8:16].tolist() == [roll] * 8
    assert mask[16:19].tolist() == [attack] * 3
    assert mask[NOTHING]


@pytest.mark.parametrize(("sp", "is_open"), [(1, True), (0, False), (-20, False)])
def test_without_stamina_one_can_only_walk(scene, sp, is_open):
    mask = scene.end(player_sp=sp)["action_mask"]
    assert mask[0]
    assert bool(mask[8]) is bool(mask[16]) is is_open


def test_unknown_names_are_counted_and_logged_once(scene, caplog):
    scene.end(player_animation="Event99099")
    scene.end()
    scene.end(boss_animation="Event20099")
    assert scene.fight["player_animation"] == scene.fight["boss_animation"] == -1
    assert scene.tracker.unknown == {"Event99099": 3, "Event20099": 1}
    assert caplog.text.count("Event99099") == 1


def test_the_change_of_phase_has_no_id_but_is_known(scene):
    assert scene.end(boss_animation="Attack1500")["boss_animation"] == -1
    assert not scene.tracker.unknown


def test_everything_seen_is_within_the_declared_spaces(scene):
    wild = {
        "player_pose": (300.0, 100.0, 50.0, 3 * math.pi - 0.1),
        "boss_pose": (-4.0, 900.0, -90.0, -math.pi),
        "camera_pose": (0.0, 0.0, 0.0, 1.0000002, -1.0000002, 0.0),
        "player_sp": -300,
    }
    fight = scene.end(**wild)
    space = observation_space(limits_of(load_fight(scene.plan.boss, moves=False)))
    assert space.contains({key: values[0] for key, values in observation_of(scene.fights).items()})
    assert fight["player_pose"][3] == pytest.approx(math.pi - 0.1, abs=1e-5)
    assert fight["player_sp"][0] == -60.0
    assert fight["player_pose"].tolist()[:3] == [190.0, 540.0, -55.0]


def test_frost_is_a_status_within_bounds():
    scene = Scene("vordt").begin()
    scene.end(statuses=(1.2, -0.1))
    assert scene.statuses[0]["frost_resistance"][0] == 1.0
    assert scene.statuses[0]["frost_effect"][0] == 0.0
    scene.end(statuses=(0.25, 0.0))
    assert scene.statuses[0]["frost_resistance"][0] == 0.25


def test_a_pose_that_is_no_number_is_not_shown(scene):
    with pytest.raises(ReadFailed, match="a pose reads nan"):
        scene.end(boss_pose=(math.nan, 0.0, 0.0, 0.0))


def test_outside_and_fallen(scene):
    assert not scene.tracker.is_outside(STANDING)
    assert scene.tracker.is_outside(dataclasses.replace(STANDING, player_pose=(109.9, 575.0, -68.0, 0.0)))
    assert not scene.tracker.has_fallen(STANDING)
    assert scene.tracker.has_fallen(dataclasses.replace(STANDING, player_pose=(120.0, 575.0, -73.1, 0.0)))


def test_time_is_that_of_the_game(scene):
    for _ in range(30):
        scene.end()
    assert scene.fight["step"] == 30
    assert scene.fight["time_s"] == pytest.approx(3.0, abs=1e-5)


def test_the_simulator_shows_the_same_durations():
    """A roll pressed before a step is shown in the second tick, there as here."""
    from soulsgym.actions import ACTION_CONTROLS
    from soulsgym.engine import standard_starts
    from soulsgym.sim.engine import SimEngine

    engine = SimEngine(load_fight("iudex"), 1)
    engine.reset(np.ones(1, np.bool_), standard_starts(1), np.array([1], np.uint64))
    engine.step(ACTION_CONTROLS[[8]])
    scene = Scene().begin().see(2, player_animation="RollingMedium")
    for _ in range(8):
        ours = scene.end()
        assert duration(ours) == pytest.approx(duration(engine.fights[0]), abs=1e-6)
        assert ours["action_mask"].tolist() == engine.fights[0]["action_mask"].tolist()
        engine.step(ACTION_CONTROLS[[NOTHING]])


@pytest.mark.parametrize(
    ("direction", "button", "allowed"),
    [
        (-1, Button.NONE, True), (3, Button.NONE, False), (3, Button.ROLL, False), (-1, Button.ROLL, False),
        (-1, Button.LIGHT, False), (-1, Button.PARRY, False),
    ],
)  # fmt: skip
def test_a_roll_allows_nothing_until_it_is_over(scene, direction, button, allowed):
    assert scene.tracker.allows(direction, button)
    scene.end(player_animation="RollingMedium")
    assert scene.tracker.allows(direction, button) is allowed


def test_without_stamina_one_can_walk(scene):
    scene.end(player_sp=0)
    assert scene.tracker.allows(0, Button.NONE)
    assert not scene.tracker.allows(0, Button.ROLL)
    assert not scene.tracker.allows(-1, Button.HEAVY)


def test_a_boss_may_have_three_phases():
    later = (
        PhaseChange(boss_hp=500, animation="Attack1500", begins_within_s=1.0, lasts_at_most_s=1.0),
        PhaseChange(boss_hp=100, animation="", begins_within_s=1.0, lasts_at_most_s=1.0),
    )
    scene = Scene("vordt", training=False, phases=3, changes=later).begin()
    phases = [
        int(scene.end(boss_hp=boss_hp, boss_animation=animation)["phase"])
        for boss_hp, animation in (
            (90, "IdleBattle"), (600, "Attack1500"), (600, "Attack1500"), (101, "IdleBattle"), (100, "IdleBattle"),
            (50, "Attack1500"),
        )
    ]  # fmt: skip
    assert phases == [1, 2, 2, 2, 3, 3]
