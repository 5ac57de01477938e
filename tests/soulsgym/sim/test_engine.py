"""The engine: one fight is the same alone, in a batch, on threads, and from a snapshot."""

import math
from dataclasses import replace

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, CONTROL, NOTHING
from soulsgym.engine import START, Snapshot, standard_starts
from soulsgym.errors import MisuseError, StartError
from soulsgym.sim.engine import KIND, SimEngine
from soulsgym.spec.damage import Power, damage_of
from soulsgym.state import FIGHT, Outcome, action_mask_of, copied, observation_of

STEPS = 400


def actions_of(seed, steps=STEPS):
    """The actions of a player who mostly runs about and sometimes attacks; his own for every seed."""
    return np.random.default_rng(seed).integers(0, 20, steps)


def started(spec, seeds, **settings):
    engine = SimEngine(spec, len(seeds), **settings)
    starts = standard_starts(len(seeds))
    starts["random_pose"] = 1
    engine.reset(np.ones(len(seeds), np.bool_), starts, np.array(seeds, np.uint64))
    return engine, starts


def played(spec, seeds, *, skip=False, **settings):
    """Fields of all records of fights with these seeds over 400 steps; ended fights begin again."""
    engine, starts = started(spec, seeds, **settings)
    plans = np.array([actions_of(seed) for seed in seeds])
    records = [engine.fights.copy()]
    for step in range(STEPS):
        over = engine.fights["outcome"] != Outcome.RUNNING
        if over.any():
            engine.reset(over, starts, None)
        engine.step(ACTION_CONTROLS[plans[:, step]], skip=skip)
        records.append(engine.fights.copy())
    engine.close()
    return np.array(records)


def assert_same(one, other):
    for name in FIGHT.names:
        assert one[name].tobytes() == other[name].tobytes(), name


SETTINGS = pytest.mark.parametrize(
    "settings",
    [{}, {"phase": 2}, {"changes": True, "randomize": 1.0}],
    ids=["plain", "second phase", "full fight, randomized"],
)


@SETTINGS
def test_two_copies_play_the_same_fight(spec, settings):
    assert_same(played(spec, [5, 6], **settings), played(spec, [5, 6], **settings))


@SETTINGS
@pytest.mark.parametrize("n", [2, 7, 64])
def test_a_fight_is_the_same_alone_and_in_a_batch(spec, settings, n):
    batch = played(spec, range(100, 100 + n), **settings)
    for fight in {0, n // 2, n - 1}:
        assert_same(played(spec, [100 + fight], **settings)[:, 0], batch[:, fight])


def test_other_seeds_are_other_fights(spec):
    one, other = played(spec, [1]), played(spec, [2])
    assert one["boss_pose"].tobytes() != other["boss_pose"].tobytes()


@pytest.mark.parametrize("threads", [2, 3, 50])
@pytest.mark.parametrize("skip", [False, True])
def test_threads_change_nothing(spec, threads, skip, monkeypatch):
    alone = played(spec, range(13), skip=skip, randomize=0.7)
    monkeypatch.setattr("soulsgym.sim.engine.BLOCK", 1)
    assert_same(played(spec, range(13), skip=skip, randomize=0.7, threads=threads), alone)


def test_an_unseeded_reset_goes_on_with_the_fights_own_stream(spec):
    """The second fight of a seed is always the same one, and not the first."""
    seconds = []
    for _ in range(2):
        engine, starts = started(spec, [11], randomize=1.0)
        first = engine.hidden.copy()
        engine.reset(np.ones(1, np.bool_), starts, None)
        seconds.append(engine.hidden.copy())
    assert seconds[0]["key"] == seconds[1]["key"]
    assert seconds[0]["key"] != first["key"]
    assert seconds[0]["damage_factor"] == seconds[1]["damage_factor"] != first["damage_factor"]


def test_only_the_masked_fights_begin_anew(spec):
    engine, starts = started(spec, range(3))
    for action in actions_of(0, 20):
        engine.step(np.full(3, ACTION_CONTROLS[action]))
    before = engine.fights.copy()
    engine.reset(np.array([False, True, False]), starts, None)
    assert engine.fights["step"].tolist() == [20, 0, 20]
    assert_same(engine.fights[[0, 2]], before[[0, 2]])


# ---------------------------------------------------------------- snapshots


@SETTINGS
def test_a_snapshot_continues_identically(spec, same_bits, settings):
    engine, _ = started(spec, range(5), **settings)
    plan = np.random.default_rng(1).integers(0, 20, (120, 5))
    for actions in plan[:40]:
        engine.step(ACTION_CONTROLS[actions])
    kept = engine.snapshot()
    for actions in plan[40:]:
        engine.step(ACTION_CONTROLS[actions])
    first = engine.snapshot()
    engine.restore(kept)
    for actions in plan[40:]:
        engine.step(ACTION_CONTROLS[actions])
    assert same_bits(engine.snapshot(), first)


def test_a_snapshot_goes_on_in_another_engine(spec, same_bits):
    engine, _ = started(spec, [3])
    for action in actions_of(3, 30):
        engine.step(ACTION_CONTROLS[[action]])
    other, _ = started(spec, [99])
    other.restore(engine.snapshot())
    for action in actions_of(4, 30):
        for each in (engine, other):
            each.step(ACTION_CONTROLS[[action]])
    assert same_bits(engine.snapshot(), other.snapshot())


def test_a_snapshot_is_not_touched_by_later_steps(spec, same_bits):
    engine, _ = started(spec, [3])
    kept = engine.snapshot()
    again = Snapshot(kept.kind, kept.fights.copy(), kept.hidden.copy())
    engine.step(ACTION_CONTROLS[[0]])
    assert same_bits(kept, again)


def test_foreign_snapshots_are_refused(spec):
    engine, _ = started(spec, [3])
    kept = engine.snapshot()
    with pytest.raises(StartError, match=r"kind 'game-1', this simulator takes 'sim-"):
        engine.restore(Snapshot("game-1", kept.fights, kept.hidden))
    pair, _ = started(spec, [3, 4])
    with pytest.raises(StartError, match="snapshot holds 1 fights, this engine 2"):
        pair.restore(kept)
    with pytest.raises(StartError, match="snapshot"):
        engine.restore(Snapshot(KIND, kept.fights, np.zeros(1)))


# ---------------------------------------------------------------- randomisation


def test_without_randomisation_every_fight_is_plain(spec):
    engine, _ = started(spec, range(5))
    for field in ("boss_time_factor", "reach_factor", "damage_factor", "speed_factor"):
        assert set(engine.hidden[field].tolist()) == {1.0}
    for field in (
        "drop_chance",
        "extra_delay_ticks",
        "position_noise_m",
        "heading_noise_rad",
        "duration_noise_s",
        "max_hit_shift_s",
    ):
        assert set(engine.hidden[field].tolist()) == {0.0}


def test_half_the_strength_is_half_the_deviation(spec):
    full, half = started(spec, range(50), randomize=1.0)[0], started(spec, range(50), randomize=0.5)[0]
    assert half.hidden["damage_factor"] - 1.0 == pytest.approx((full.hidden["damage_factor"] - 1.0) / 2)


def test_noise_disturbs_no_draw_of_the_fight(spec):
    blurred, _ = started(spec, range(8), randomize=1.0)
    clear, _ = started(spec, range(8), randomize=1.0)
    clear.hidden["position_noise_m"] = 0.0
    for action in actions_of(12, 150):
        for engine in (blurred, clear):
            engine.step(np.full(8, ACTION_CONTROLS[action]))
    for name in set(blurred.hidden.dtype.names) - {"position_noise_m"}:
        assert blurred.hidden[name].tobytes() == clear.hidden[name].tobytes(), name
    assert blurred.fights["player_pose"].tobytes() != clear.fights["player_pose"].tobytes()


# ---------------------------------------------------------------- skipping


def test_skipping_goes_on_until_there_is_a_choice(spec):
    engine, starts = started(spec, range(16))
    generator = np.random.default_rng(2)
    skipped = 0
    for _ in range(150):
        over = engine.fights["outcome"] != Outcome.RUNNING
        if over.any():
            engine.reset(over, starts, None)
        before = engine.fights["step"].copy()
        engine.step(ACTION_CONTROLS[generator.integers(0, 20, 16)], skip=True)
        running = engine.fights["outcome"] == Outcome.RUNNING
        assert engine.fights["action_mask"][running, :NOTHING].any(axis=1).all()
        skipped += int((engine.fights["step"] - before > 1).sum())
    assert skipped > 200


def test_skipping_adds_up_what_happened(spec):
    """The same presses step by step give the same place, damage that adds up to the same, and the last of the moves."""
    generator, several = np.random.default_rng(6), 0
    quick, starts = started(spec, [9], phase=2)
    slow, _ = started(spec, [9], phase=2)
    for _ in range(80):
        action = generator.integers(0, 20)
        quick.step(ACTION_CONTROLS[[action]], skip=True)
        dealt, taken = 0.0, 0.0
        told = {name: [-1] for name in ("hit_by", "landed", "dodged")}
        while slow.fights["step"][0] < quick.fights["step"][0]:
            slow.step(ACTION_CONTROLS[[action]])
            dealt, taken = dealt + slow.fights["damage_dealt"][0], taken + slow.fights["damage_taken"][0]
            for name, moves in told.items():
                moves += [move for move in slow.fights[name].tolist() if move >= 0]
            action = NOTHING
        assert {name: moves[-1] for name, moves in told.items()} == {name: quick.fights[name][0] for name in told}
        several += any(moves[-1] != max(moves) for moves in told.values())
        assert (quick.fights["damage_dealt"][0], quick.fights["damage_taken"][0]) == (dealt, taken)
        assert quick.fights["player_pose"].tolist() == slow.fights["player_pose"].tolist()
        assert quick.fights["outcome"] == slow.fights["outcome"]
        if quick.fights["outcome"][0] != Outcome.RUNNING:
            for engine in (quick, slow):
                engine.reset(np.ones(1, np.bool_), starts, None)
    assert several > 0


# ---------------------------------------------------------------- starts


def test_the_standard_start(spec):
    engine = SimEngine(spec, 1)
    engine.reset(np.ones(1, np.bool_), standard_starts(1), np.array([1], np.uint64))
    fight = engine.fights[0]
    assert fight["player_pose"][[0, 1, 3]] == pytest.approx((132.176, 575.064, -2.768), abs=1e-3)
    assert fight["boss_pose"][[0, 1, 3]] == pytest.approx((141.3, 591.9, 0.6), abs=1e-3)
    assert (fight["player_hp"][0], fight["player_sp"][0], fight["boss_hp"][0]) == (454.0, 95.0, 1037.0)
    assert (fight["phase"], fight["outcome"], fight["step"], fight["lock_on"]) == (1, Outcome.RUNNING, 0, 1)
    assert fight["action_mask"].all()


def test_random_poses_come_from_the_arenas_list(spec):
    engine, _ = started(spec, range(400))
    listed = {tuple(np.float32(pose[:2]).tolist()) for pose in spec.arena.player_starts}
    assert {tuple(row) for row in engine.fights["player_pose"][:, :2].tolist()} == listed


def test_a_start_in_the_middle_of_a_fight(spec):
    engine = SimEngine(spec, 1)
    starts = standard_starts(1)
    starts["phase"], starts["player_hp"], starts["player_sp"], starts["boss_hp"] = 2, 100.0, -5.0, 300.0
    engine.reset(np.ones(1, np.bool_), starts, np.array([1], np.uint64))
    fight = engine.fights[0]
    assert (fight["phase"], fight["player_hp"][0], fight["player_sp"][0], fight["boss_hp"][0]) == (2, 100, -5, 300)
    assert fight["action_mask"].tolist() == [1] * 8 + [0] * 11 + [1]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("phase", 3, "start has phase = 3; give 0 to 2"),
        ("player_hp", 0.0, "start has player_hp = 0; give 1 to 454"),
        ("player_hp", 455.0, "start has player_hp = 455"),
        ("player_sp", -61.0, "start has player_sp = -61; give -60 to 95"),
        ("boss_hp", math.inf, "start has boss_hp = inf; give 1 to 1037"),
        ("player_pose", (100.0, 590.0, 0.0), r"start has player_pose = \[100.0, 590.0, 0.0\]; give x, y inside"),
        ("boss_pose", (140.0, 590.0, 4.0), "a heading within -pi to pi"),
        ("player_pose", (math.inf, 590.0, 0.0), "start has player_pose"),
        ("player_pose", (140.0, math.nan, 0.0), "start has player_pose"),
        ("boss_pose", (140.0, 590.0, math.nan), "start has boss_pose"),
    ],
)
def test_impossible_starts_are_refused(spec, key, value, message):
    starts = standard_starts(2)
    starts[key][1] = value
    with pytest.raises(StartError, match=message):
        SimEngine(spec, 2).check_starts(starts)


def test_possible_starts_pass(spec):
    starts = standard_starts(3)
    starts["boss_hp"][0], starts["player_sp"][1], starts["player_pose"][2] = 1.0, -60.0, (140.0, 590.0, math.pi)
    SimEngine(spec, 3).check_starts(starts)


# ---------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "number of fights 0 is not possible"),
        ({"phase": 3}, "phase 3 is not there; Iudex Gundyr has phases 1 to 2"),
        ({"phase": 0}, "phase 0 is not there"),
        ({"randomize": 1.5}, "randomize 1.5 is out of range; give 0.0 to 1.0"),
        ({"randomize": math.nan}, "randomize nan is out of range"),
        ({"threads": 0}, "threads 0 is not possible"),
    ],
)
def test_impossible_engines_are_refused(spec, settings, message):
    with pytest.raises(MisuseError, match=message):
        SimEngine(spec, **settings)


def test_arrays_of_the_wrong_kind_are_refused(spec):
    engine, _ = started(spec, [1, 2])
    with pytest.raises(MisuseError, match=r"controls are .*; give .*CONTROL"):
        engine.step(np.zeros(3, CONTROL))
    with pytest.raises(MisuseError, match=r"controls are .*; give .*CONTROL"):
        engine.step(np.zeros(2, np.int64))
    with pytest.raises(MisuseError, match=r"starts are .*; give .*START"):
        engine.reset(np.ones(2, np.bool_), np.zeros(1, START), None)


def test_a_fresh_engine_is_over_until_it_is_reset(spec):
    engine = SimEngine(spec, 2)
    assert (engine.fights["outcome"] != Outcome.RUNNING).all()
    engine.step(np.zeros(2, CONTROL))
    assert engine.fights["step"].tolist() == [0, 0]


def test_closing_twice_is_harmless(spec):
    engine, _ = started(spec, [1, 2], threads=2)
    engine.step(np.zeros(2, CONTROL))
    engine.close()
    engine.close()


def test_a_closed_engine_steps_all_fights_or_none(spec):
    engine, _ = started(spec, [1, 2], threads=2)
    engine.close()
    engine.step(np.zeros(2, CONTROL))
    assert len(set(engine.fights["step"].tolist())) == 1


# ---------------------------------------------------------------- the record


def test_a_copy_of_the_record_is_independent(spec):
    engine, _ = started(spec, [1])
    copy = copied(engine.fights)
    assert_same(copy, engine.fights)
    engine.step(np.zeros(1, CONTROL))
    assert (copy["step"][0], engine.fights["step"][0]) == (0, 1)


def test_observation_and_mask_are_views(spec):
    engine, _ = started(spec, [1])
    observation = observation_of(engine.fights)
    mask = action_mask_of(engine.fights)
    assert mask.dtype == np.bool_
    engine.step(ACTION_CONTROLS[[8]])
    assert observation["player_animation"][0] == 21
    assert mask.tolist() == [[False] * 19 + [True]]


# ---------------------------------------------------------------- several movesets


def stronger(spec, factor):
    """The same boss with other damage."""

    def blow(hit):
        return replace(hit, power=Power(damage=factor * damage_of(hit.power, spec.player.defence)))

    moves = tuple(replace(move, hits=tuple(blow(hit) for hit in move.hits)) for move in spec.boss.moves)
    return replace(spec, boss=replace(spec.boss, moves=moves), variant=f"x{factor}")


def test_fights_of_several_specs_are_the_fights_of_each_alone(spec):
    files = [spec, stronger(spec, 0.5), stronger(spec, 3.0)]
    together = played(files, range(8), changes=True)
    for file, part in zip(files, (slice(0, 3), slice(3, 6), slice(6, 8)), strict=True):
        assert_same(together[:, part], played(file, range(8)[part], changes=True))
    assert together["taken_total"][:, :3].max() > 0.0


def test_counts_deal_out_the_fights(spec):
    files = [spec, stronger(spec, 3.0)]
    together = played(files, range(5), counts=[1, 4])
    assert_same(together[:, :1], played(spec, [0]))
    assert_same(together[:, 1:], played(files[1], range(1, 5)))


def test_threads_see_the_same_specs(spec, monkeypatch):
    files = [spec, stronger(spec, 0.5), stronger(spec, 3.0)]
    alone = played(files, range(200))
    monkeypatch.setattr("soulsgym.sim.engine.BLOCK", 16)
    assert_same(alone, played(files, range(200), threads=2))


def test_a_fight_keeps_its_spec_until_it_ends(spec):
    """Two fights stand still; the first begins again after the replacement, and only it is hit three times as hard."""
    engine, starts = started([spec, spec], [1, 2], counts=[1, 1])
    assert engine.replace(0, stronger(spec, 3.0))
    old = played(spec, [1])
    for step in range(60):
        engine.step(ACTION_CONTROLS[[actions_of(1)[step], NOTHING]])
    assert_same(engine.fights[:1], old[60])
    engine.reset(np.array([True, False]), starts, np.array([1, 0], np.uint64))
    new = played(stronger(spec, 3.0), [1])
    until = int(np.argmax(new["outcome"][:, 0] != Outcome.RUNNING))
    assert 0 < until < 60, "three times as hard soon ends it"
    for step in range(until):
        engine.step(ACTION_CONTROLS[[actions_of(1)[step], NOTHING]])
    assert_same(engine.fights[:1], new[until])
    assert engine.fights["outcome"][0] == Outcome.DIED != old["outcome"][until, 0]


def test_a_spec_still_played_is_not_overwritten(spec):
    engine, starts = started([spec], [1, 2])
    both = np.ones(2, np.bool_)
    assert engine.replace(0, stronger(spec, 2.0))
    assert not engine.replace(0, stronger(spec, 3.0)), "both fights still play the first"
    engine.reset(np.array([True, False]), starts, None)
    assert not engine.replace(0, stronger(spec, 3.0)), "the second still does"
    engine.reset(both, starts, None)
    assert engine.replace(0, stronger(spec, 3.0))


def test_a_spec_of_ended_fights_is_free(spec):
    engine, _ = started([spec], [1, 2])
    assert engine.replace(0, stronger(spec, 2.0))
    engine.fights["outcome"] = Outcome.DIED
    assert engine.replace(0, stronger(spec, 3.0))


def test_a_snapshot_brings_back_replaced_specs(spec):
    """Both tables of the block were replaced since; another engine gets them too."""

    def gone_on(engine, starts):
        records = []
        for step in range(200):
            over = engine.fights["outcome"] != Outcome.RUNNING
            engine.reset(over, starts, None)
            engine.step(ACTION_CONTROLS[[actions_of(7)[step]] * 2])
            records.append(copied(engine.fights))
        return np.array(records)

    engine, starts = started([spec], [1, 2])
    assert engine.replace(0, stronger(spec, 4.0))
    kept = engine.snapshot()
    expected = gone_on(engine, starts)
    for factor in (0.0, 0.1):
        engine.reset(np.ones(2, np.bool_), starts, None)
        assert engine.replace(0, stronger(spec, factor))
    assert not np.array_equal(gone_on(engine, starts)["taken_total"], expected["taken_total"])
    fresh, _ = started([spec], [8, 9])
    for other in (engine, fresh):
        other.restore(kept)
        assert_same(gone_on(other, starts), expected)


def test_snapshots_dealt_out_otherwise_are_refused(spec):
    one, _ = started([spec], [1, 2, 3])
    two, _ = started([spec, spec], [1, 2, 3])
    uneven, _ = started([spec, spec], [1, 2, 3], counts=[1, 2])
    for engine, other in ((one, two), (two, one), (two, uneven)):
        before = copied(engine.hidden)
        with pytest.raises(StartError, match="snapshot deals out its fights among other movesets"):
            engine.restore(other.snapshot())
        assert engine.hidden.tobytes() == before.tobytes()


def test_a_snapshot_that_lacks_a_spec_in_use_is_refused(spec):
    engine, _ = started([spec], [1])
    engine.replace(0, stronger(spec, 2.0))
    kept = engine.snapshot()
    fresh, _ = started([spec], [1])
    with pytest.raises(StartError, match="snapshot deals out its fights among other movesets"):
        fresh.restore(Snapshot(kept.kind, kept.fights, kept.hidden))


def test_specs_that_do_not_go_together_are_refused(spec):
    fewer = replace(spec.boss, moves=spec.boss.moves[:-1])
    for what, other in (
        ("player", replace(spec, player=replace(spec.player, hp=1.0))),
        ("arena", replace(spec, arena=replace(spec.arena, deadly_drop_m=1.0))),
        ("animations", replace(spec, boss_animations=spec.boss_animations[:-1])),
        ("number of phases", replace(spec, boss=replace(spec.boss, phases=spec.boss.phases[:1]))),
        ("moves", replace(spec, boss=fewer)),
    ):
        message = f"iudex odd and iudex standard differ in their {what}; fight them in engines of their own"
        with pytest.raises(MisuseError, match=message):
            SimEngine([spec, replace(other, variant="odd")], 2)
        with pytest.raises(MisuseError, match=message):
            SimEngine(spec, 2).replace(0, replace(other, variant="odd"))


@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        (0, {"n": 2}, "there is no moveset to play"),
        (3, {"n": 2}, "3 movesets are too many for 2 fights"),
        (2, {"n": 2, "counts": [2]}, r"counts \[2\] do not deal out 2 fights among 2 movesets"),
        (2, {"n": 2, "counts": [2, 0]}, r"counts \[2, 0\] do not"),
        (2, {"n": 2, "counts": [2, 1]}, r"counts \[2, 1\] do not"),
    ],
)
def test_impossible_shares_are_refused(spec, files, settings, message):
    with pytest.raises(MisuseError, match=message):
        SimEngine([spec] * files, **settings)


def test_a_block_that_is_not_there_is_refused(spec):
    for block in (-1, 2):
        with pytest.raises(MisuseError, match=f"block {block} is not there; give 0 to 1"):
            SimEngine([spec] * 2, 4).replace(block, spec)


def test_health_above_a_spec_s_own_is_cut(spec):
    weak = replace(spec, boss=replace(spec.boss, hp=100.0), variant="weak")
    engine = SimEngine([spec, weak], 2)
    starts = standard_starts(2)
    starts["boss_hp"] = 500.0
    engine.reset(np.ones(2, np.bool_), starts, np.arange(2, dtype=np.uint64))
    assert engine.fights["boss_hp"][:, 0].tolist() == [500.0, 100.0]
    assert engine.fights["boss_max_hp"].tolist() == [1037, 100]
