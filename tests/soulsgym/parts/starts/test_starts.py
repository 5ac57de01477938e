"""Starts that are drawn: whole fights, the middle of fights, and the curriculum."""

import dataclasses

import numpy as np
import pytest

from soulsgym.engine import START
from soulsgym.errors import MisuseError
from soulsgym.parts.registry import register
from soulsgym.parts.starts import MidFight, RandomPose, StandardStarts, make_starts
from soulsgym.parts.starts.curriculum import Curriculum, make_cells, phase_thresholds
from soulsgym.sim.engine import SimEngine

N = 4000
EVERYONE = np.ones(N, np.bool_)
NOBODY = np.zeros(N, np.bool_)


def drawn(spec, seed=3, **settings):
    starts = make_starts(settings, N, spec)
    return starts, starts.draw(EVERYONE, np.random.default_rng(seed))


@pytest.mark.parametrize("random_pose", [False, True])
def test_whole_fights_leave_all_to_the_engine(spec, random_pose):
    starts, rows = drawn(spec, random_pose=random_pose)
    assert rows.dtype == START
    assert len(rows) == N
    assert (rows["random_pose"] == random_pose).all()
    assert (rows["phase"] == 0).all()
    for key in ("player_hp", "player_sp", "boss_hp", "player_pose", "boss_pose"):
        assert np.isnan(rows[key]).all()
    assert starts.is_standard.all()
    starts.report(EVERYONE, EVERYONE)
    assert starts.state() == {}


def test_middle_of_a_fight_follows_its_distribution(spec):
    starts, rows = drawn(spec, mid_fight=0.5, boss_hp_share=(0.1, 0.9), player_hp_share=(0.3, 0.8), late_phase=0.8)
    middle = ~starts.is_standard
    assert middle.mean() == pytest.approx(0.5, abs=0.03)
    assert np.isnan(rows["boss_hp"][~middle]).all()
    assert np.isnan(rows["player_hp"][~middle]).all()
    boss, player = rows["boss_hp"][middle] / spec.boss.hp, rows["player_hp"][middle] / spec.player.hp
    assert 0.099 <= boss.min() <= boss.max() <= 0.9
    assert 0.297 <= player.min() <= player.max() <= 0.8
    # Both are drawn evenly, whatever the phase.
    assert np.quantile(boss, [0.25, 0.5, 0.75]) == pytest.approx([0.3, 0.5, 0.7], abs=0.03)
    assert np.quantile(player, [0.25, 0.5, 0.75]) == pytest.approx([0.425, 0.55, 0.675], abs=0.03)
    below = boss <= 0.55
    phase = rows["phase"][middle]
    assert (phase[~below] == 0).all()
    assert (phase[below] == 2).mean() == pytest.approx(0.8, abs=0.04)
    assert set(phase[below].tolist()) == {0, 2}
    assert np.isnan(rows["player_pose"]).all()
    assert (rows["boss_hp"][middle] % 1.0 == 0.0).all()


@pytest.mark.parametrize(("settings", "phases"), [
    ({"late_phase": 1.0, "boss_hp_share": (0.05, 0.55)}, {2}),
    ({"late_phase": 0.0}, {0}),
    ({"late_phase": 1.0, "full": False}, {0}),
    ({"late_phase": 1.0, "phase": 2}, {0}),
    ({"late_phase": 1.0, "boss_hp_share": (0.5, 0.5)}, {2}),
    ({"late_phase": 1.0, "boss_hp_share": (0.6, 1.0)}, {0}),
])  # fmt: skip
def test_phase_of_mid_fight_starts(spec, settings, phases):
    _, rows = drawn(spec, mid_fight=1.0, **settings)
    assert set(rows["phase"].tolist()) == phases


def test_one_health_for_all(spec):
    _, rows = drawn(spec, mid_fight=1.0, boss_hp_share=(0.0, 0.0), player_hp_share=(1.0, 1.0))
    assert (rows["boss_hp"] == 1.0).all()
    assert (rows["player_hp"] == spec.player.hp).all()


def test_every_start_is_possible_in_the_simulator(spec):
    _, rows = drawn(spec, random_pose=True, mid_fight=0.9, boss_hp_share=(0.0, 1.0), player_hp_share=(0.0, 1.0))
    engine = SimEngine(spec, N, changes=True)
    engine.check_starts(rows)
    engine.reset(EVERYONE, rows, np.arange(N, dtype=np.uint64))
    assert set(engine.fights["phase"].tolist()) == {1, 2}
    assert len(np.unique(engine.fights["player_pose"][:, 0])) > 3


def test_thresholds_of_three_phases_are_cut_into_cells(spec):
    first, second = spec.boss.phases
    three = (
        dataclasses.replace(first, changes_at_hp_share=0.6),
        dataclasses.replace(second, changes_at_hp_share=0.3),
        second,
    )
    long = dataclasses.replace(spec, boss=dataclasses.replace(spec.boss, phases=three))
    assert phase_thresholds(long, 1) == (0.6, 0.3)
    assert phase_thresholds(long, 2) == (0.3,)
    cells = make_cells(long, (0.2, 1.0), late_phase=0.75, full=True, phase=1)
    assert cells.share.sum() == pytest.approx(1.0)
    # Health from 0.2 to 0.3 is an eighth of all, up to 0.6 another three eighths.
    assert cells.share[cells.phase == 3].sum() == pytest.approx(0.75 * 0.125)
    assert cells.share[cells.phase == 2].sum() == pytest.approx(0.75 * 0.375)
    assert cells.high[cells.phase == 3].max() == pytest.approx(0.3)
    assert cells.high[cells.phase == 2].max() == pytest.approx(0.6)
    assert cells.low[cells.phase == 2].min() == pytest.approx(0.3)


def test_only_fights_of_the_mask_get_a_new_start(spec):
    starts, rows = drawn(spec, mid_fight=0.5)
    generator = np.random.default_rng(4)
    before, standard = rows.copy(), starts.is_standard
    mask = NOBODY.copy()
    mask[:100] = True
    after = starts.draw(mask, generator)
    for key in ("phase", "boss_hp", "player_hp"):
        assert before[key][~mask].tobytes() == after[key][~mask].tobytes()
    assert (starts.is_standard[~mask] == standard[~mask]).all()
    assert (starts.is_standard[mask] != standard[mask]).any()


def test_nobody_draws_nothing(spec):
    starts, _ = drawn(spec, mid_fight=0.5)
    generator = np.random.default_rng(4)
    untouched = generator.bit_generator.state
    starts.draw(NOBODY, generator)
    assert generator.bit_generator.state == untouched


def test_the_curriculum_begins_even_and_seeks_fights_won_half_of_the_time():
    shares = np.array([0.5, 0.25, 0.25])
    curriculum = Curriculum(shares, 1.0)
    assert curriculum.rates.tolist() == [0.5] * 3
    assert curriculum.weights() == pytest.approx(shares)
    curriculum.rates = np.array([0.0, 0.5, 0.9])
    # p (1 - p) + 0.02 is 0.02, 0.27 and 0.11; times the shares 0.01, 0.0675 and 0.0275.
    assert curriculum.weights() == pytest.approx(np.array([0.01, 0.0675, 0.0275]) / 0.105)
    halfway = Curriculum(shares, 0.5)
    halfway.rates = curriculum.rates
    assert halfway.weights() == pytest.approx((shares + curriculum.weights()) / 2)
    without = Curriculum(shares, 0.0)
    without.rates = curriculum.rates
    assert without.weights() == pytest.approx(shares)


def test_win_rates_follow_the_newest_fights():
    curriculum = Curriculum(np.array([0.5, 0.25, 0.25]), 1.0)
    curriculum.learn(np.array([1]), np.array([True]))
    assert curriculum.rates == pytest.approx([0.5, 0.51, 0.5])
    curriculum.learn(np.array([0, 2, 0]), np.array([False, True, False]))
    assert curriculum.rates == pytest.approx([0.5 * 0.98**2, 0.51, 0.51])
    curriculum.learn(np.array([2, 2]), np.array([True, False]))
    assert curriculum.rates[2] == pytest.approx(0.5 + 0.01 * 0.98**2)


def test_reports_reach_the_cells_the_fights_began_in(spec):
    starts, rows = drawn(spec, mid_fight=0.5, boss_hp_share=(0.0, 0.8), curriculum=1.0, late_phase=0.5)
    generator = np.random.default_rng(5)
    for _ in range(5):
        weak = np.nan_to_num(rows["boss_hp"], nan=1e9) < 0.4 * spec.boss.hp
        # Weak bosses are beaten half of the time, the others and whole fights never.
        starts.report(EVERYONE, weak & (generator.random(N) < 0.5))
        rows = starts.draw(EVERYONE, generator)
    rates = starts.state()["win_rates"]
    assert rates[:4] == pytest.approx([0.5] * 4, abs=0.2)
    assert rates[-2:] == pytest.approx([0.0, 0.0], abs=0.01)
    middle = ~starts.is_standard
    assert middle.mean() == pytest.approx(0.5, abs=0.03)
    assert (rows["boss_hp"][middle] < 0.4 * spec.boss.hp).mean() > 0.85


def test_fights_that_go_on_and_whole_fights_teach_nothing(spec):
    starts, _ = drawn(spec, mid_fight=0.5, curriculum=1.0)
    starts.report(starts.is_standard, EVERYONE)
    starts.report(NOBODY, EVERYONE)
    assert (starts.state()["win_rates"] == 0.5).all()


def test_restored_starts_go_on_as_if_never_stopped(spec):
    settings = {"mid_fight": 0.7, "curriculum": 0.6, "random_pose": True}
    starts, _ = drawn(spec, **settings)
    starts.report(EVERYONE, np.arange(N) % 3 == 0)
    saved = starts.state()
    other = make_starts(settings, N, spec)
    other.restore(saved)
    generators = [np.random.default_rng(8) for _ in range(2)]
    mask = np.arange(N) % 2 == 0
    for _ in range(3):
        mine, its = (
            one.draw(mask, generator)[mask] for one, generator in zip((starts, other), generators, strict=True)
        )
        assert all(mine[key].tobytes() == its[key].tobytes() for key in START.names)
        assert (starts.is_standard == other.is_standard).all()
        starts.report(mask, ~mask)
        other.report(mask, ~mask)
    for key, value in starts.state().items():
        assert (saved[key] != value).any(), "what was saved must not change"
    with pytest.raises(MisuseError, match=f"starts of {N} fights and 14 cells do not fit 2 and 14"):
        make_starts(settings, 2, spec).restore(saved)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mid_fight": 1.5}, "mid_fight 1.5 is out of range; give 0.0 to 1.0"),
        ({"late_phase": -0.1}, "late_phase -0.1 is out of range; give 0.0 to 1.0"),
        ({"curriculum": float("nan")}, "curriculum nan is out of range; give 0.0 to 1.0"),
        ({"boss_hp_share": (0.9, 0.2)}, "boss_hp_share (0.9, 0.2) is not possible; give the lowest and"),
        ({"player_hp_share": (0.5, 1.2)}, "player_hp_share (0.5, 1.2) is not possible; give the lowest"),
        ({"player_hp_share": (0.5,)}, "player_hp_share (0.5,) is not possible; give the lowest"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(spec, settings, message):
    with pytest.raises(MisuseError) as caught:
        make_starts(settings, 4, spec)
    assert str(caught.value).startswith(message)


class Own(StandardStarts):
    """Starts of a user."""

    def __init__(self, n, spec, boss_hp=1.0, phase=0):
        super().__init__(n)
        self.about = boss_hp, phase


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("standard", StandardStarts),
        ({}, StandardStarts),
        ({"random_pose": True}, RandomPose),
        ({"name": "standard", "mid_fight": 0.5}, MidFight),
        (StandardStarts(2), StandardStarts),
        (lambda n, spec: RandomPose(n), RandomPose),
        (Own, Own),
        ("own", Own),
        ({"name": "own", "boss_hp": 5.0}, Own),
    ],
)
def test_starts_are_given_by_name_table_object_or_maker(spec, given, kind):
    register("starts", "own")(Own)
    starts = make_starts(given, 2, spec)
    assert type(starts) is kind
    assert len(starts.draw(np.ones(2, np.bool_), np.random.default_rng(1))) == 2


def test_starts_hear_of_the_phase_and_of_settings(spec):
    assert make_starts({"name": Own, "boss_hp": 5.0}, 2, spec, phase=2).about == (5.0, 2)
    assert make_starts({"name": Own, "phase": 3}, 2, spec, phase=2).about == (1.0, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("standart", "starts 'standart' is not known, did you mean 'standard'?"),
        ({"midfight": 0.5}, "setting 'midfight' of the starts is not known, did you mean 'mid_fight'?"),
        ({"name": StandardStarts(2), "phase": 2}, "setting 'phase' of the starts is not known"),
        (None, "starts None cannot be used; give a name"),
        (lambda n, spec: None, "starts "),
    ],
)
def test_what_are_no_starts_is_refused(spec, given, message):
    with pytest.raises(MisuseError) as caught:
        make_starts(given, 2, spec)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
