"""Moments and places between records, and which blow it was that landed."""

import numpy as np
import pytest

from soulsgym.calibration.blows import Occurrence, _owner
from soulsgym.calibration.timeline import Blow, Bout, Span, read_bouts
from soulsgym.recordings.recording import Recording
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import load_fight
from soulsgym.state import FIGHT

STEP_S = 0.097
TICK_S = STEP_S / TICKS_PER_STEP


def fight_of(count, **fields):
    """Records of a fight in which the boss shows one attack from the first record on."""
    spec, fights = load_fight("iudex"), np.zeros(count, FIGHT)
    fights["step"], fights["phase"] = np.arange(count), 1
    fights["boss_animation"] = spec.boss_animations.index("Attack3012")
    fights["boss_animation_duration"][:, 0] = STEP_S * np.arange(count)
    fights["player_hp"][:], fights["boss_hp"][:], fights["boss_max_hp"] = 454.0, 1037.0, 1037
    for name, values in fields.items():
        fights[name] = np.reshape(values, fights[name].shape)
    return spec, fights


def read(spec, fights):
    actions, episodes = np.zeros(len(fights), np.int64), np.zeros(len(fights), np.int64)
    (bout,) = read_bouts([Recording(fights, actions, episodes)], spec)
    return bout


def test_a_fight_ends_within_its_last_step():
    """The blow that kills stops the clock: it came in the second tick of the step, not in the sixth."""
    spec, fights = fight_of(5)
    hurt = [label.name for label in spec.player_animations].index("DamageMiddle")
    fights["boss_animation_duration"][-1] = fights["boss_animation_duration"][-2] + 2 * TICK_S
    fights["player_hp"][-1], fights["player_animation"][-1] = 0.0, hurt
    bout = read(spec, fights)
    assert bout.ticks.tolist() == [0, 6, 12, 18, 20]
    (blow,) = bout.blows
    assert blow.tick == 20
    assert blow.is_fatal


def bout_with(places):
    _, fights = fight_of(len(places))
    fights["player_pose"][:, 0] = places
    return Bout(fights, np.zeros(len(places), np.int64), TICKS_PER_STEP * np.arange(len(places)), [])


def test_who_is_thrown_about_was_where_he_would_have_gone():
    """He walks 0.3 m a step, is struck in tick 20, and flies off."""
    bout = bout_with([0.0, 0.3, 0.6, 0.9, 4.0, 7.0])
    _, seen = bout.at(np.array([19, 20]))
    assert seen[1, 0] > 1.2
    _, player = bout.at(np.array([18, 19, 20]), thrown=21)
    assert player[:, 0] == pytest.approx([0.9, 0.95, 1.0], abs=1e-6)
    assert bout.blur_m(np.array([20]), thrown=21)[0] < 0.01 < bout.blur_m(np.array([20]))[0]


def test_places_are_blurred_where_speeds_change():
    bout = bout_with([0.0, 0.0, 0.0, 0.4, 0.8, 1.2, 1.6])
    blur = bout.blur_m(np.array([15, 18, 33]))
    assert blur[0] == pytest.approx(0.05, abs=1e-6)
    assert blur[1] == 0.0
    assert blur[2] == pytest.approx(0.0, abs=1e-6)


def test_of_two_blows_at_once_the_damage_tells_which():
    spec = load_fight("iudex")
    move = spec.boss.moves[spec.boss.move_index("beast_leap")]
    bout = bout_with([0.0] * 40)
    one = Occurrence(bout, Span(0, 2, 0, "attack", 0, 39, 0, 234), ())
    for damage, fatal, name in ((154.0, False, "stab"), (13.0, False, "arm"), (5.0, True, None)):
        hit = _owner(Blow(108, 18, damage, "DamageExLarge", fatal, False), one, move, 0, spec, TICK_S)
        assert (hit.name if hit else None) == name
    late = Blow(150, 25, 154.0, "DamageExLarge", is_fatal=False, is_guarded=False)
    assert _owner(late, one, move, 0, spec, TICK_S) is None
