"""Every random number of a fight has the distribution the data files promise, and is independent of all others.

All samples come out of the engine. Bounds are five standard deviations of the statistic for the number of samples.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.sim.boss import BACKING, NO_STRAFE, STRAFING, TURNING
from soulsgym.sim.engine import SimEngine
from soulsgym.spec.boss import MOVE_KINDS, TURN
from soulsgym.state import Outcome

SIGMAS = 5.0
FIGHTS = 4096
WATCHED_STEPS = 350
"""Steps of each phase in which decisions are watched."""
PLACED_EVERY = 8
"""Steps after which the player is put somewhere else, so that all the rules of the boss apply at some time."""
IMMORTAL_HP = 1e6
DRAWN = ("boss_time_factor", "reach_factor", "damage_factor", "speed_factor", "drop_chance", "extra_delay_ticks")
CLEAR_M = 1.5
"""A gap this far from the boundary between near and far is on the same side of it in all ticks of a step."""
CLEAR_DEG = 20.0
"""So is a bearing this far from one."""


def assert_uniform(values, low, high, tolerance=0.0):
    """Check range, mean, spread and shape of samples that should be uniform; `tolerance` is their rounding."""
    n = len(values)
    shares = np.sort((np.asarray(values, np.float64) - low) / (high - low))
    rounding = tolerance / (high - low)
    assert shares[0] >= -rounding
    assert shares[-1] <= 1.0 + rounding
    # Both ends are reached: that the nearest sample stays this far away has a chance of exp(-15), about five sigma.
    assert shares[0] < 15.0 / n
    assert shares[-1] > 1.0 - 15.0 / n
    assert abs(shares.mean() - 0.5) < SIGMAS * math.sqrt(1.0 / 12.0 / n)
    # The sample variance of uniform numbers has the relative variance (1.8 - 1) / n: their kurtosis is 1.8.
    assert abs(12.0 * shares.var() - 1.0) < SIGMAS * math.sqrt(0.8 / n)
    # Kolmogorov-Smirnov: 2 exp(-2 n d^2) is the chance of five sigma at d = 2.74 / sqrt(n).
    steps = np.arange(n + 1) / n
    assert max((steps[1:] - shares).max(), (shares - steps[:-1]).max()) < 2.74 / math.sqrt(n) + rounding


def assert_odds(counts, weights):
    """Check counts of outcomes against the weights they are drawn by."""
    counts, odds = np.asarray(counts), np.asarray(weights) / np.sum(weights)
    n = counts.sum()
    assert (np.abs(counts - n * odds) <= SIGMAS * np.sqrt(n * odds * (1.0 - odds))).all(), (counts, n * odds)


def z_scores(first, second):
    """How many standard deviations each pair of columns is from being uncorrelated; NaN is a sample nobody saw."""

    def standardized(columns):
        return np.nan_to_num((columns - np.nanmean(columns, axis=0)) / np.nanstd(columns, axis=0))

    pairs = np.isfinite(first).astype(float).T @ np.isfinite(second)
    scores = standardized(first).T @ standardized(second) / np.sqrt(np.maximum(pairs, 1.0))
    return np.where(pairs >= 100, scores, 0.0)


def folded(columns):
    """Distances from the mean: numbers that depend on each other only in their size are correlated in this."""
    return np.abs(columns - np.nanmean(columns, axis=0))


def assert_independent(first, second, names, *, same_fight=False):
    """Check that no column of `first` tells anything about one of `second`."""
    for one in (first, folded(first)):
        for other in (second, folded(second)):
            scores = np.abs(z_scores(one, other))
            if same_fight:
                np.fill_diagonal(scores, 0.0)
            a, b = np.unravel_index(scores.argmax(), scores.shape)
            assert scores.max() < SIGMAS, f"{names[a]} and {names[b]}: {scores.max():.1f} sigma"


def begin(spec, **settings):
    engine = SimEngine(spec, FIGHTS, **settings)
    engine.tables["edges"]["cliff"] = 0  # walls all round: nobody falls out of the sample
    starts = standard_starts(FIGHTS)
    starts["random_pose"] = 1
    engine.reset(np.ones(FIGHTS, np.bool_), starts, np.arange(FIGHTS, dtype=np.uint64))
    return engine, starts


def step(engine, action=NOTHING):
    engine.step(np.full(FIGHTS, ACTION_CONTROLS[action]))


def wrap(angle):
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def noise_in(engine):
    """What the record shows less what is so. A duration near zero, below which none is shown, is not a sample."""
    shown, hidden = engine.fights, engine.hidden
    noise = {
        "player x": shown["player_pose"][:, 0] - hidden["player_x"],
        "player y": shown["player_pose"][:, 1] - hidden["player_y"],
        "player z": shown["player_pose"][:, 2] - hidden["player_z"],
        "player heading": wrap(shown["player_pose"][:, 3] - hidden["player_heading"]),
        "boss x": shown["boss_pose"][:, 0] - hidden["boss_x"],
        "boss y": shown["boss_pose"][:, 1] - hidden["boss_y"],
        "boss heading": wrap(shown["boss_pose"][:, 3] - np.arctan2(hidden["boss_sin"], hidden["boss_cos"])),
    }
    for who, label_s in (("player", "player_animation_s"), ("boss", "boss_animation_s")):
        off = shown[f"{who}_animation_duration"][:, 0] - hidden[label_s]
        noise[f"{who} duration"] = np.where(hidden[label_s] > hidden["duration_noise_s"], off, np.nan)
    return noise


class Watch:
    """What the boss decides while it is watched, over all fights and steps."""

    def __init__(self, engine, spec):
        self.engine, self.spec = engine, spec
        self.shifts = np.full((FIGHTS, len(spec.boss.moves)), np.nan)
        self.changed_shifts = 0
        self.chains = {}
        self.afters = {}
        self.retreats, self.retreat_s = {}, []
        self.near_s, self.far_s = [], []
        self.sides = np.zeros(2, int)

    def step(self, phase):
        """Step all fights, and note what was drawn in this step."""
        hidden = self.engine.hidden
        ready_s, decided, act, goal = (hidden[name].copy() for name in ("act_ready_s", "decided", "act", "goal"))
        gap = self._gap()
        step(self.engine)
        everyone, move = np.arange(FIGHTS), hidden["boss_move"]
        known = self.shifts[everyone, move]
        self.changed_shifts += int((np.isfinite(known) & (known != hidden["hit_shift_s"])).sum())
        self.shifts[everyone, move] = hidden["hit_shift_s"]
        here = hidden["phase"] == phase
        for fight, column in np.argwhere(
            (hidden["act_ready_s"] != ready_s) & (hidden["act_ready_s"] > 0.0) & here[:, None]
        ):
            self._count_chain(phase, column, hidden[fight])
        attacking = self.engine.tables[0]["boss_moves"]["kind"][move] == MOVE_KINDS.index("attack")
        fresh = attacking & (hidden["decided"] == 1) & (decided == 0) & here
        after = self.spec.boss.phases[phase - 1].after
        seen = fresh & self._clearly_in_front(after)
        acts = (hidden["goal"] == STRAFING) | (hidden["goal"] == BACKING)
        for row in np.unique(act[seen & (act >= 0)]):
            self.afters.setdefault(row, np.zeros(2, int))
            self.afters[row] += np.bincount(acts[seen & (act == row)], minlength=2)
        self._count_retreats(after, seen & acts, gap)
        # He goes sideways at once, or when he has backed off.
        self._count_strafes(after, (hidden["goal"] == STRAFING) & (fresh | (here & (goal == BACKING))))

    def _gap(self):
        hidden = self.engine.hidden
        away_m = np.hypot(hidden["player_x"] - hidden["boss_x"], hidden["player_y"] - hidden["boss_y"])
        return away_m - self.spec.boss.radius_m

    def _clearly_in_front(self, after):
        """Is the player where `after` asks for, not so near to the limit that a step makes a difference?"""
        hidden = self.engine.hidden
        dx, dy = hidden["player_x"] - hidden["boss_x"], hidden["player_y"] - hidden["boss_y"]
        right, ahead = (
            hidden["boss_sin"] * dy - hidden["boss_cos"] * dx,
            -(hidden["boss_sin"] * dx + hidden["boss_cos"] * dy),
        )
        away_deg = np.degrees(np.abs(np.arctan2(right, ahead)))
        near = self._gap() < after.within_gap_m - CLEAR_M
        return near & ((away_deg < after.front_deg - CLEAR_DEG) | (after.front_deg == 180.0))

    def _count_retreats(self, after, acts, gap):
        """Count who only backs off, for gaps that lie in the same row before and after the step."""
        hidden = self.engine.hidden
        only = (hidden["goal"] == BACKING) & (hidden["strafe_move"] == NO_STRAFE)
        self.retreat_s.extend(hidden["goal_left_s"][acts & only])
        for row in after.retreats:
            low, high = row.gap_m
            here = acts & (gap >= low) & (gap < high) & (self._gap() >= low) & (self._gap() < high)
            self.retreats.setdefault(row, np.zeros(2, int))
            self.retreats[row] += np.bincount(only[here], minlength=2)
        farthest = max((row.gap_m[1] for row in after.retreats), default=0.0)
        assert not only[acts & (gap > farthest) & (self._gap() > farthest)].any()

    def _count_strafes(self, after, begun):
        """Note how long he will go sideways, and to which side; a tick of it is off the time."""
        hidden, const = self.engine.hidden, self.engine.tables[0]["constants"]
        strafing = self.engine.tables[0]["boss_moves"]["kind"][hidden["boss_move"]] == MOVE_KINDS.index("strafe")
        ticks = hidden["boss_move_s"] / (const["tick_s"] * hidden["boss_time_factor"])
        lasts_s = hidden["goal_left_s"] + np.where(strafing, (ticks - 1.0) * const["tick_s"], 0.0)
        beyond = self._gap() - after.near_gap_m
        self.near_s.extend(lasts_s[begun & (beyond < -CLEAR_M)])
        self.far_s.extend(lasts_s[begun & (beyond > CLEAR_M)])
        for side, name in enumerate(("boss_strafe_left_move", "boss_strafe_right_move")):
            self.sides[side] += (begun & (beyond > CLEAR_M) & (hidden["strafe_move"] == const[name])).sum()

    def _count_chain(self, phase, column, fight):
        tables = self.engine.tables[0]
        row = tables["acts"][tables["phases"][phase - 1]["first_act"] + column]
        chains = tables["chains"][row["first_chain"] : row["first_chain"] + row["chains"]]
        counts = self.chains.setdefault((phase, int(column)), np.zeros(len(chains), int))
        counts += (chains["first_link"] == fight["next_link"]) & (chains["links"] == fight["links_left"])


def place_players(engine, arena, generator):
    """Put every player somewhere between the boss and one of the starts."""
    hidden = engine.hidden
    goals = np.array(arena.player_starts)[generator.integers(len(arena.player_starts), size=FIGHTS)]
    share = generator.uniform(0.1, 1.0, FIGHTS)
    hidden["player_x"] = hidden["boss_x"] + share * (goals[:, 0] - hidden["boss_x"])
    hidden["player_y"] = hidden["boss_y"] + share * (goals[:, 1] - hidden["boss_y"])
    hidden["player_safe_radius2"] = 0.0


def watch_fights(engine, spec):
    """Fight by fight all numbers drawn in it, and a Watch for each phase."""
    hidden, tables = engine.hidden, engine.tables[0]
    numbers = {name: hidden[name].astype(float) for name in DRAWN}
    starts = [pose[:2] for pose in spec.arena.player_starts]
    places = np.stack([hidden["player_x"], hidden["player_y"]], axis=1)
    numbers["start"] = np.argmin(np.abs(places[:, None] - np.array(starts)[None]).sum(axis=2), axis=1).astype(float)
    step(engine)
    # He decides in the first of six ticks; if he walks at once, the other five are off the time.
    walked = hidden["boss_move"] == tables["constants"]["boss_walk_move"]
    numbers["first approach"] = hidden["goal_left_s"] + 5.0 * tables["constants"]["tick_s"] * walked
    for _ in range(3):
        step(engine)
    numbers |= noise_in(engine)
    step(engine)
    numbers |= {f"{name}, a step later": values for name, values in noise_in(engine).items()}
    generator = np.random.default_rng(3)
    watches = []
    for phase in range(1, len(spec.boss.phases) + 1):
        watch = Watch(engine, spec)
        for index in range(WATCHED_STEPS):
            hidden["player_hp"] = IMMORTAL_HP
            if index % PLACED_EVERY == 0:
                place_players(engine, spec.arena, generator)
            watch.step(phase)
        assert (engine.fights["outcome"] == Outcome.RUNNING).all()
        watches.append(watch)
        change_phase(engine, phase, len(spec.boss.phases))
    shifts = watches[0].shifts
    for watch in watches[1:]:
        shifts = np.where(np.isfinite(shifts), shifts, watch.shifts)
    numbers |= {f"shift of {move.name}": shifts[:, i] for i, move in enumerate(spec.boss.moves)}
    return numbers, watches


def change_phase(engine, phase, phases):
    """Wound every boss so that it goes on to the next phase, and wait until it has."""
    if phase == phases:
        return
    engine.hidden["boss_hp"] = 1.0
    for _ in range(400):
        engine.hidden["player_hp"] = IMMORTAL_HP
        step(engine)
        if (engine.hidden["phase"] > phase).all():
            return
    raise AssertionError("some bosses do not change")


@pytest.fixture(scope="module")
def sample(spec):
    """The numbers of a fight of every seed, and of the fight after it."""
    engine, starts = begin(spec, randomize=1.0, changes=True)
    first, watches = watch_fights(engine, spec)
    engine.reset(np.ones(FIGHTS, np.bool_), starts, None)
    second, more = watch_fights(engine, spec)
    seen = [name for name, values in first.items() if np.isfinite(values).sum() > FIGHTS // 8]
    return SimpleNamespace(
        numbers=first,
        seen=seen,
        first=np.stack([first[name] for name in seen], axis=1),
        second=np.stack([second[name] for name in seen], axis=1),
        watches=[watches, more],
        tables=engine.tables[0],
    )


# ---------------------------------------------------------------- the helpers can fail


def test_a_shifted_a_narrow_and_a_lumpy_sample_are_not_uniform():
    fair = np.random.default_rng(0).uniform(size=FIGHTS)
    assert_uniform(fair, 0.0, 1.0)
    for wrong in (fair * 0.97, 0.03 + fair * 0.97, fair**1.2, np.round(fair * 8.0) / 8.0, 0.5 + (fair - 0.5) ** 3):
        with pytest.raises(AssertionError):
            assert_uniform(wrong, 0.0, 1.0)


def test_a_dependence_is_found():
    columns = np.random.default_rng(0).uniform(size=(FIGHTS, 3))
    names = ("a", "b", "c")
    assert_independent(columns, columns, names, same_fight=True)
    for wrong in (columns[:, 0] + 5.0 * columns[:, 1], np.abs(columns[:, 0] - 0.5), 1.0 - columns[:, 0]):
        with pytest.raises(AssertionError, match=r"a and b|b and a"):
            assert_independent(np.stack([columns[:, 0], wrong, columns[:, 2]], axis=1), columns[:, [0, 0, 2]], names,
                               same_fight=True)  # fmt: skip


# ---------------------------------------------------------------- numbers drawn at the start


@pytest.mark.parametrize(
    ("field", "bound"),
    [("boss_time_factor", "timing"), ("reach_factor", "reach"), ("damage_factor", "damage"), ("speed_factor", "speed")],
)
def test_factors_are_uniform_about_one(spec, sample, field, bound):
    width = getattr(spec.boss.randomize, bound)
    assert_uniform(sample.numbers[field], 1.0 - width, 1.0 + width)


def test_the_chance_of_a_lost_input_is_uniform(spec, sample):
    assert_uniform(sample.numbers["drop_chance"], 0.0, spec.boss.randomize.dropped_inputs)


@pytest.mark.parametrize("strength", [1.0, 0.5, 0.1])
def test_every_delay_up_to_the_bound_is_equally_likely(spec, strength):
    engine, _ = begin(spec, randomize=strength)
    longest = int(strength * spec.boss.randomize.input_delay_ticks + 0.5)
    counts = np.bincount(engine.hidden["extra_delay_ticks"])
    assert len(counts) == longest + 1
    assert_odds(counts, np.ones(longest + 1))


def test_every_start_is_equally_likely(spec, sample):
    counts = np.bincount(sample.numbers["start"].astype(int), minlength=len(spec.arena.player_starts))
    assert_odds(counts, np.ones(len(counts)))


def test_inputs_are_lost_as_often_as_drawn(spec):
    engine, _ = begin(spec, randomize=1.0)
    steps = 30
    lost = 0
    for index in range(steps):
        step(engine, 2 if index % 2 else 6)  # right and left, so that nobody gets to an edge
        assert (engine.fights["hit_by"] < 0).all()
        lost += (engine.hidden["held_steps"] == 0).sum()
    drop = engine.hidden["drop_chance"]
    assert abs(lost - steps * drop.sum()) < SIGMAS * math.sqrt(steps * (drop * (1.0 - drop)).sum())


# ---------------------------------------------------------------- shifts of blows


def test_blows_come_early_and_late_alike(spec, sample):
    bound = spec.boss.randomize.hit_shift_s
    shifts = [name for name in sample.seen if name.startswith("shift of")]
    attacks = {move.name for move in spec.boss.moves if move.hits}
    assert len({name.removeprefix("shift of ") for name in shifts} & attacks) > 0.8 * len(attacks)
    for name in shifts:
        values = sample.numbers[name]
        assert_uniform(values[np.isfinite(values)], -bound, bound)


def test_a_move_has_one_shift_in_a_fight(sample):
    assert [watch.changed_shifts for watches in sample.watches for watch in watches] == [0] * 4


# ---------------------------------------------------------------- noise on what is shown


@pytest.mark.parametrize("later", ["", ", a step later"])
@pytest.mark.parametrize("who", ["player", "boss"])
def test_noise_is_uniform(spec, sample, who, later):
    bounds = spec.boss.randomize
    # Shown are numbers of 32 bits: half a unit in the last place is 3e-5 at 600 m.
    for what, bound, rounding in (
        ("x", bounds.position_noise_m, 4e-5),
        ("y", bounds.position_noise_m, 4e-5),
        ("heading", bounds.heading_noise_rad, 1e-6),
        ("duration", bounds.duration_noise_s, 1e-6),
    ):
        noise = sample.numbers[f"{who} {what}{later}"]
        assert_uniform(noise[np.isfinite(noise)], -bound, bound, rounding)


# ---------------------------------------------------------------- decisions


def test_the_first_approach_is_uniform(spec, sample):
    assert_uniform(sample.numbers["first approach"], *spec.boss.phases[0].first_approach_s)


def test_chains_are_chosen_by_weight(spec, sample):
    totals = {}
    for watches in sample.watches:
        for watch in watches:
            for key, counts in watch.chains.items():
                totals[key] = totals.get(key, 0) + counts
    several = 0
    for (phase, column), counts in totals.items():
        chains = spec.boss.phases[phase - 1].acts[column].chains
        assert counts.sum() > 0
        assert_odds(counts, [chain.weight for chain in chains])
        several += len(chains) > 1 and counts.sum() > 1000
    assert several >= 3


def test_what_follows_an_attack_follows_its_odds(spec, sample):
    for number in range(len(spec.boss.phases)):
        watches = [pair[number] for pair in sample.watches]
        rows = {row for watch in watches for row in watch.afters}
        assert len(rows) > 0.7 * len(spec.boss.phases[number].acts)
        for row in rows:
            odds = sample.tables["acts"][row]["after_odds"]
            assert_odds(sum(watch.afters.get(row, np.zeros(2, int)) for watch in watches), [1.0 - odds, odds])


def test_retreats_follow_their_chances_and_times(spec, sample):
    watches = [pair[1] for pair in sample.watches]
    rows = spec.boss.phases[1].after.retreats
    assert len(rows) == 2
    for row in rows:
        counts = sum(watch.retreats[row] for watch in watches)
        assert counts.sum() > 500
        assert_odds(counts, [1.0 - row.chance, row.chance])
    assert_uniform([t for watch in watches for t in watch.retreat_s], 2.0, 3.0)
    assert not any(pair[0].retreat_s for pair in sample.watches)


def test_strafes_follow_their_sides_and_times(spec, sample):
    for number, phase in enumerate(spec.boss.phases):
        watches = [pair[number] for pair in sample.watches]
        assert_odds(sum(watch.sides for watch in watches), [1.0, 1.0])
        # What is added back of the time is exact but for rounding.
        assert_uniform([t for watch in watches for t in watch.near_s], *phase.after.near_s, 1e-9)
        assert_uniform([t for watch in watches for t in watch.far_s], *phase.after.far_s, 1e-9)


def fitting_rule(phase, bearing_deg, gap_m):
    return next(
        rule
        for rule in phase.rules
        if rule.gap_m[0] <= gap_m < rule.gap_m[1]
        and rule.bearing_deg[0] <= bearing_deg <= rule.bearing_deg[1]
        and abs(bearing_deg) >= rule.beyond_deg
    )


@pytest.mark.parametrize("number", [1, 2])
def test_acts_are_chosen_by_weight(spec, number):
    phase, boss = spec.boss.phases[number - 1], spec.boss
    engine = SimEngine(spec, FIGHTS, phase=number)
    first_row = engine.tables[0]["phases"][number - 1]["first_act"]
    starts = standard_starts(FIGHTS)
    starts["boss_pose"] = (*spec.arena.centre_m, 0.0)
    for index, rule in enumerate(phase.rules):
        bearing_deg = max(sum(rule.bearing_deg) / 2.0, rule.beyond_deg + 1.0 if rule.beyond_deg else -180.0)
        gap_m = (rule.gap_m[0] + min(rule.gap_m[1], rule.gap_m[0] + 2.0)) / 2.0
        weights = fitting_rule(phase, bearing_deg, gap_m).weights
        bearing, away_m = math.radians(bearing_deg), gap_m + boss.radius_m
        x, y = spec.arena.centre_m
        starts["player_pose"] = (x - away_m * math.sin(bearing), y - away_m * math.cos(bearing), 0.0)
        engine.reset(np.ones(FIGHTS, np.bool_), starts, np.arange(FIGHTS, dtype=np.uint64) + np.uint64(index * FIGHTS))
        engine.hidden["is_first_approach"] = 0
        step(engine)
        turned = engine.hidden["goal"] == TURNING
        names = [TURN if turn else phase.acts[act - first_row].name
                 for turn, act in zip(turned, engine.hidden["act"], strict=True)]  # fmt: skip
        assert set(names) <= set(weights)
        assert_odds([names.count(name) for name in weights], list(weights.values()))


def test_how_long_an_act_of_walking_lasts_is_uniform(boss_with):
    def change(content):
        first = content["phase"]["1"]
        first["act"]["strafe_right"] = {"cooldown_s": 0.0, "after_odds": 0.0, "lasts_s": [1.0, 3.0], "source": "guess"}
        first["rule"] = [{"weights": {"strafe_right": 1.0}, "source": "guess"}]

    spec = boss_with(change)
    engine = SimEngine(spec, FIGHTS)
    engine.reset(np.ones(FIGHTS, np.bool_), standard_starts(FIGHTS), np.arange(FIGHTS, dtype=np.uint64))
    engine.hidden["is_first_approach"] = 0
    step(engine)
    # Decided in the first of six ticks; the other five have passed.
    passed_s = spec.player.label_s_per_step * 5 / 6
    assert_uniform(engine.hidden["goal_left_s"] + passed_s, 1.0, 3.0, 1e-9)


# ---------------------------------------------------------------- independence


def test_the_numbers_of_a_fight_are_independent(sample):
    assert_independent(sample.first, sample.first, sample.seen, same_fight=True)


def test_fights_of_neighbouring_seeds_are_independent(sample):
    assert_independent(sample.first[:-1], sample.first[1:], sample.seen)


def test_consecutive_fights_of_a_seed_are_independent(sample):
    assert_independent(sample.first, sample.second, sample.seen)
