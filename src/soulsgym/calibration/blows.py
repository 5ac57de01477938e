"""The boss's blows: when they come, what they cost, and where they reach.

A blow that lands is seen to the tick by the reaction it causes; the earliest tell when it begins. Where it reaches is
told by the players it hit and by those it did not, although they were not invulnerable: each occurrence is one
observation of a likelihood, the farther inside or outside of the area the surer.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.calibration.estimate import Estimate
from soulsgym.calibration.timeline import Blow, Bout, Span
from soulsgym.calibration.timing import NEAR_TICKS, WITHIN
from soulsgym.geometry import wrap_angle
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import FULL_CIRCLE_DEG, HALF_TURN_DEG, BossMove, Hit
from soulsgym.spec.damage import Power, damage_of
from soulsgym.spec.reader import LARGEST

MOST_SHIFT = 16
"""Ticks that the blows of a move may all come earlier or later than in the file."""
FEW_HITS, MOST_LATE = 3, 8
"""So few hits of a blow do not outweigh the other blows of its move, if they came no more ticks later."""
LATE_TICKS = 2.0
"""How much later than its beginning a blow may be that only one was hit by."""
SOFT_M = 0.03
"""How sharp an edge is, beside what lies between the records."""
OUTSIDE_M = 10.0
"""How far outside a player is of a blow that is over."""
ODD = 0.02
"""Share of occurrences that went another way than can be explained."""
PRIORS = {
    "reach_m": 0.15,
    "half_width_m": 0.15,
    "inner_m": 0.15,
    "offset_m": 0.15,
    "arc_deg": 0.2,
    "blade_deg": 0.2,
    "from_s": 0.08,
}
"""Standard deviation of a number's logarithm, or of a time, before anything was seen."""
CHAINS, CHAIN_STEPS = 24, 100
"""Chains of the sampler, and steps of each for every number."""
FEWEST = 4
"""Occurrences that tell anything about an area."""

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Occurrence:
    """One time that a move was played: the fight, its tick zero, and the blows that landed in it."""

    bout: Bout
    span: Span
    landed: tuple[Blow, ...]

    @property
    def until(self) -> int:
        """The last tick of it that was recorded."""
        return self.span.end if self.span.end >= 0 else int(self.bout.ticks[-1])


@dataclass(frozen=True)
class Sample:
    """A blow of one occurrence: where the player was in its ticks, when he could be hit, and when he was."""

    along: Array
    across: Array
    vulnerable: Flags
    time_s: Array
    """Since the move's start."""
    blur_m: Array
    """How far off the place may be, seen through records six ticks apart."""
    struck: int
    """The position of the tick in which it landed; -1 for never."""


def occurrences(bouts: Sequence[Bout]) -> dict[int, list[Occurrence]]:
    """By move of the file, every time that it was played from its beginning."""
    found: dict[int, list[Occurrence]] = defaultdict(list)
    for bout in bouts:
        for number, span in enumerate(bout.spans):
            if span.move < 0 or not span.is_attack or not span.is_sure or number == 0:
                continue
            until = bout.spans[number + 1].start if number + 1 < len(bout.spans) else math.inf
            landed = tuple(blow for blow in bout.blows if span.start < blow.tick <= until)
            found[span.move].append(Occurrence(bout, span, landed))
    return found


def blow_estimates(bouts: Sequence[Bout], spec: FightSpec) -> list[Estimate]:
    """What the recordings tell of every blow."""
    tick_s = spec.player.label_s_per_step / TICKS_PER_STEP
    found: list[Estimate] = []
    for index, seen in sorted(occurrences(bouts).items()):
        move = spec.boss.moves[index]
        shift = _shift(move, seen, tick_s)
        owned = {hit.name: _blows_of(hit, move, seen, shift, spec, tick_s) for hit in move.hits}
        hits = []
        together = [min(ticks) - _ticks(hit, tick_s)[0] for hit in move.hits if (ticks := _since(owned[hit.name]))]
        for hit in move.hits:
            if hit.shape == "shot":  # when it lands says more of the player's place than of the throw
                continue
            path, blows = ("move", move.name, "hit", hit.name), owned[hit.name]
            times = _times(path, hit, blows, min(together, default=0), tick_s)
            found += times + _costs(path, hit, blows, spec) + _guard(path, hit, move, seen, shift, spec, tick_s)
            hits.append(replace(hit, **{str(one.path[-1]): one.value for one in times}))
        timed = replace(move, hits=tuple(hits))
        for hit in timed.hits:
            if owned[hit.name]:  # else nobody knows when it came, and so who was there
                found += _area(("move", move.name, "hit", hit.name), hit, timed, seen, shift, spec, tick_s)
        found += _throws(move, seen, spec, tick_s)
    return found


def _ticks(hit: Hit, tick_s: float) -> tuple[int, int]:
    """The first and the last tick of a blow."""
    return math.ceil(hit.from_s / tick_s - 1e-6), math.floor(hit.to_s / tick_s + 1e-6)


def _shift(move: BossMove, seen: Sequence[Occurrence], tick_s: float) -> int:
    """Ticks by which the blows of a move come later than the file says: the shift that explains the most of them."""
    windows = [_ticks(hit, tick_s) for hit in move.hits]
    since = [blow.tick - one.span.start for one in seen for blow in one.landed if blow.reaction]
    if not windows or not since:
        return 0

    def explained(shift: int) -> tuple[int, int, int]:
        inside = sum(any(low + shift <= tick <= high + shift for low, high in windows) for tick in since)
        first = sum(any(abs(tick - low - shift) <= 1 for low, _ in windows) for tick in since)
        return inside, first, -abs(shift)

    return max(range(-MOST_SHIFT, MOST_SHIFT + 1), key=explained)


def _owner(
    blow: Blow, one: Occurrence, move: BossMove, shift: int, spec: FightSpec, tick_s: float, late: int = NEAR_TICKS
) -> Hit | None:
    """Which of a move's blows it is: by its time, and of those at the same time by what it cost."""
    since = blow.tick - one.span.start - shift

    def misfit(hit: Hit) -> tuple[float, int]:
        cost = abs(damage_of(hit.power, spec.player.defence) - blow.damage)
        return cost, abs(since - _ticks(hit, tick_s)[0])

    near = [hit for hit in move.hits if _ticks(hit, tick_s)[0] - late <= since <= _ticks(hit, tick_s)[1] + late]
    if not near or (len(near) > 1 and blow.is_fatal):  # what a fatal blow cost is cut off
        return None
    return min(near, key=misfit)


def _blows_of(
    hit: Hit, move: BossMove, seen: Sequence[Occurrence], shift: int, spec: FightSpec, tick_s: float
) -> list[tuple[int, Blow]]:
    """The blows of a move that are this one, with their ticks since its start."""
    return [
        (blow.tick - one.span.start, blow)
        for one in seen
        for blow in one.landed
        if blow.reaction and _owner(blow, one, move, shift, spec, tick_s) is hit
    ]


def _since(blows: Sequence[tuple[int, Blow]]) -> list[int]:
    return sorted(since for since, _ in blows)


def _times(path: tuple[str, ...], hit: Hit, blows: list[tuple[int, Blow]], shift: int, tick_s: float) -> list[Estimate]:
    """When the blow begins, and with it when it ends; `shift` ticks later than in the file if all of its move do."""
    if not blows or hit.sweep:
        return []
    ticks, expected = _since(blows), _ticks(hit, tick_s)[0] + shift
    first = ticks[0]
    agreed = sum(tick <= first + 1 for tick in ticks)
    high = (first - 0.5 + WITHIN) * tick_s
    if agreed <= FEW_HITS and 0 < first - expected <= MOST_LATE:
        # Few were hit, and later than the other blows of the move let expect: they came into it.
        first = expected
    value = (first - 0.5) * tick_s
    lasts_s = max(hit.to_s - hit.from_s, (ticks[-1] - first) * tick_s)
    # The first to be hit may have come into a blow that was there before; less likely so, the more were hit with him.
    low = value - (WITHIN + LATE_TICKS / agreed) * tick_s
    estimates = []
    for key, add in (("from_s", 0.0), ("to_s", lasts_s)):
        before = getattr(hit, key)
        estimates.append(Estimate.rounded((*path, key), value + add, low + add, high + add, len(ticks), before))
    return estimates


def _costs(path: tuple[str, ...], hit: Hit, blows: list[tuple[int, Blow]], spec: FightSpec) -> list[Estimate]:
    """What the blow takes, and how the player reacts."""
    found = []
    damages = [blow.damage for _, blow in blows if not blow.is_fatal and blow.damage > 0.0]
    if damages and hit.power.damage + hit.power.attack > 0.0:
        damage, n = Counter(damages).most_common(1)[0]
        key, low, value, high = power_of(damage, hit.power, spec)
        found.append(Estimate((*path, key), value, low, high, n, getattr(hit.power, key)))
    flinches = set(spec.player.flinch_animations)
    reactions = Counter(blow.reaction for _, blow in blows if blow.reaction not in flinches)
    names = {move.animation: move.name for move in spec.player.moves if move.kind in ("reaction", "grabbed")}
    known = {move.name: move.animation for move in spec.player.moves}
    if reactions:
        label, n = reactions.most_common(1)[0]
        if n >= 2 and label in names and label != known.get(hit.reaction):
            found.append(Estimate((*path, "reaction"), names[label], names[label], names[label], n, hit.reaction))
    return found


def _guard(
    path: tuple[str, ...],
    hit: Hit,
    move: BossMove,
    seen: Sequence[Occurrence],
    shift: int,
    spec: FightSpec,
    tick_s: float,
) -> list[Estimate]:
    """What the blow costs behind the shield: between stamina that is shown without its fraction."""
    parries = {one.animation: one for one in spec.player.moves if one.kind == "parry"}
    low, high, costs = 0.0, math.inf, 0
    for one in seen:
        ticks, fights = one.bout.ticks, one.bout.fights
        for blow in (blow for blow in one.landed if blow.is_guarded):
            i = blow.record
            since, until = (int(ticks[k]) - one.span.start - shift for k in (i - 1, i))
            windows = [(other, *_ticks(other, tick_s)) for other in move.hits]
            there = [other for other, first, last in windows if since < last and first <= until]
            before_s, shown_s = fights["player_animation_duration"][i - 1 : i + 1, 0].tolist()
            if there != [hit] or shown_s <= before_s or fights["player_sp"][i, 0] <= spec.player.sp_floor:
                continue
            parry = parries[spec.player_animations[fights["player_animation"][i]].name]
            due = sum(before_s < time_s <= shown_s for time_s in parry.sp_s) * parry.sp_cost / len(parry.sp_s)
            cost = float(fights["player_sp"][i - 1, 0] - fights["player_sp"][i, 0]) - due
            low, high, costs = max(low, cost - 1.0), min(high, cost + 1.0), costs + 1
    if not costs or low > high:
        return []
    value = hit.guard_stamina if low <= hit.guard_stamina <= high else 0.5 * (low + high)
    return [Estimate.rounded((*path, "guard_stamina"), value, low, high, costs, hit.guard_stamina)]


def power_of(damage: float, power: Power, spec: FightSpec) -> tuple[str, float, float, float]:
    """The key of a blow's power, and the lowest, the likeliest and the highest value that cost this much."""
    if not power.attack_type:
        return "damage", damage, damage, damage

    def least(wanted: float) -> float:
        low, high = 1.0, 1e5
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = damage_of(replace(power, attack=middle), spec.player.defence) < wanted
            low, high = (middle, high) if below else (low, middle)
        return high

    low, high = least(damage - 0.5), least(damage + 0.5)
    value = power.attack if low <= power.attack <= high else round(0.5 * (low + high), 3)
    return "attack", round(low, 3), value, round(high, 3)


def _area(
    path: tuple[str, ...],
    hit: Hit,
    move: BossMove,
    seen: Sequence[Occurrence],
    shift: int,
    spec: FightSpec,
    tick_s: float,
) -> list[Estimate]:
    """How far and how wide the blow reaches, and when a blade that sweeps round begins to."""
    samples = [sample for one in seen if (sample := sample_of(hit, move, one, spec, tick_s)) is not None]
    if len(samples) < FEWEST:
        return []
    keys = [key for key in PRIORS if key == "from_s" or np.any(np.asarray(getattr(hit, key)) != 0.0)]
    keys = [key for key in keys if (key != "arc_deg" or not _is_round(hit)) and (key != "from_s" or hit.sweep)]
    area, found = _Area(hit, samples), []
    chain = _posterior(area, keys, (0.0, shift * tick_s))
    best = {key: float(np.median(values)) for key, values in chain.items()}
    for key in keys:
        n, (low, high) = area.telling(best, key), np.quantile(chain[key], (0.05, 0.95))
        if not n:
            continue
        if key == "from_s":
            for name in ("from_s", "to_s"):
                was = float(getattr(hit, name))
                found.append(Estimate.rounded((*path, name), was + best[key], was + low, was + high, n, was))
            continue
        most = FULL_CIRCLE_DEG if hit.sweep else HALF_TURN_DEG
        factors = math.exp(best[key]), math.exp(low), math.exp(high)
        found.append(_scaled((*path, key), getattr(hit, key), *factors, n, most))
    return found


def _posterior(area: _Area, keys: Sequence[str], begins_s: Sequence[float]) -> dict[str, Array]:
    """Draws of each number from what is likely: Metropolis steps of many sizes, from the best, in many chains."""
    starts = []
    for begin_s in begins_s if "from_s" in keys else (0.0,):
        best = {key: np.array([begin_s if key == "from_s" else 0.0]) for key in keys}
        for _ in range(3):
            for key in keys:
                tried = best | {key: np.linspace(-3.0, 3.0, 61) * PRIORS[key]}
                best[key] = tried[key][[int(np.argmax(area.score(tried)))]]
        starts.append(best)
    best = max(starts, key=lambda start: float(area.score(start)[0]))
    generator = np.random.default_rng(0)
    now = {key: np.repeat(value, CHAINS) for key, value in best.items()}
    score, drawn = area.score(now), []
    for step in range(len(keys) * CHAIN_STEPS):
        key = keys[step % len(keys)]
        size = PRIORS[key] * 10.0 ** generator.uniform(-2.0, 0.3, CHAINS)
        other = now | {key: now[key] + size * generator.normal(size=CHAINS)}
        score_of_other = area.score(other)
        taken = np.log(generator.random(CHAINS)) < score_of_other - score
        now, score = now | {key: np.where(taken, other[key], now[key])}, np.where(taken, score_of_other, score)
        if step >= len(keys) * CHAIN_STEPS // 4:
            drawn.append(now)
    return {key: np.concatenate([one[key] for one in drawn]) for key in keys}


def _is_round(hit: Hit) -> bool:
    return hit.shape != "sector"


def _scaled(
    path: tuple[str, ...], before: Any, factor: float, low: float, high: float, n: int, most_deg: float
) -> Estimate:
    def times(scale: float) -> Any:
        if isinstance(before, tuple):
            return [round(float(min(max(one * scale, -most_deg), most_deg)), 3) for one in before]
        return round(float(min(before * scale, HALF_TURN_DEG if path[-1] == "blade_deg" else LARGEST)), 4)

    first, last = times(low), times(high)
    if isinstance(before, tuple):
        first, last = [
            list(pair) for pair in zip(*(sorted(pair) for pair in zip(first, last, strict=True)), strict=True)
        ]
    was = list(before) if isinstance(before, tuple) else before
    return Estimate(path, times(factor), first, last, n, was, weighed=True)


class _Area:
    """The likelihood of a blow's area, given where players were when they were hit and when they were not.

    Numbers of the blow are given as logarithms of factors of the file's, but for the time by which it comes later.
    """

    def __init__(self, hit: Hit, samples: Sequence[Sample]) -> None:
        self._hit = hit
        shape = len(samples), max(len(sample.along) for sample in samples)
        self._along, self._across, self._time_s = (np.full(shape, np.nan) for _ in range(3))
        self._soft = np.ones(shape)
        self._open, self._before = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self._struck = np.array([sample.struck for sample in samples])
        for row, sample in enumerate(samples):
            count = len(sample.along)
            self._along[row, :count], self._across[row, :count] = sample.along, sample.across
            self._time_s[row, :count], self._open[row, :count] = sample.time_s, sample.vulnerable
            self._soft[row, :count] = SOFT_M + sample.blur_m
            until = sample.struck if sample.struck >= 0 else count
            self._before[row, :until] = sample.vulnerable[:until]
        self._distance = np.hypot(self._along, self._across)
        self._bearing = np.arctan2(self._across, self._along)
        self._hits = np.flatnonzero(self._struck >= 0)
        self._misses = np.flatnonzero(self._before.any(axis=1))

    def score(self, logs: dict[str, Array]) -> Array:
        """The logarithm of the likelihood, with the prior, of each set of numbers."""
        margin = self.margins(logs) / self._soft
        missed = np.where(self._before, margin, -np.inf)[:, self._misses].max(axis=2)
        hit = margin[:, self._hits, self._struck[self._hits]]
        prior = sum(0.5 * (value / PRIORS[key]) ** 2 for key, value in logs.items())
        return np.asarray(_likely(-missed) + _likely(hit) - prior)

    def margins(self, logs: dict[str, Array]) -> Array:
        """By set of numbers, occurrence and tick: metres that the player was inside of the area, negative outside."""
        hit = self._hit
        factor = {key: np.exp(np.atleast_1d(value))[:, None, None] for key, value in logs.items()}
        reach = hit.reach_m * factor.get("reach_m", np.ones((1, 1, 1)))
        if hit.shape == "disc":
            along = self._along - hit.offset_m * factor.get("offset_m", 1.0)
            return np.asarray(reach - np.hypot(along, self._across))
        margin = np.minimum(reach - self._distance, self._distance - hit.inner_m * factor.get("inner_m", 1.0))
        if hit.shape == "thrust":
            width = hit.half_width_m * factor.get("half_width_m", 1.0)
            return np.asarray(np.minimum(np.minimum(margin, self._along), width - np.abs(self._across)))
        first, last = (math.radians(side) * factor.get("arc_deg", 1.0) for side in hit.arc_deg)
        if not hit.sweep:
            angle = np.minimum(self._bearing - first, last - self._bearing)
            angle = np.where((last >= math.pi) & (first <= -math.pi), math.pi, angle)
            return np.asarray(np.minimum(margin, angle * self._distance))
        later_s = np.atleast_1d(logs["from_s"])[:, None, None]
        share = (self._time_s - hit.from_s - later_s) / (hit.to_s - hit.from_s)
        blade = first + share * (last - first)
        wide = math.radians(hit.blade_deg) * factor.get("blade_deg", 1.0)
        margin = np.minimum(margin, (wide - np.abs(wrap_angle(self._bearing - blade))) * self._distance)
        return np.where((share >= 0.0) & (share <= 1.0), margin, -OUTSIDE_M)

    def telling(self, best: dict[str, float], key: str) -> int:
        """How many occurrences would go another way if this number were clearly smaller or larger."""
        sides = np.array([-1.0, 1.0]) * (0.1 if key == "from_s" else 0.25)
        logs = {name: np.full(2, value) + (sides if name == key else 0.0) for name, value in best.items()}
        inside = np.where(self._open, self.margins(logs), -np.inf).max(axis=2) > 0.0
        return int((inside[0] != inside[1]).sum())


def _likely(margin: Array) -> Array:
    """The logarithm of the likelihood that all of this went as it did; `margin` says how clearly it had to."""
    likely = ODD + (1.0 - 2.0 * ODD) / (1.0 + np.exp(-np.clip(margin, -50.0, 50.0)))
    return np.asarray(np.log(likely).sum(axis=-1))


def sample_of(hit: Hit, move: BossMove, one: Occurrence, spec: FightSpec, tick_s: float) -> Sample | None:
    """The blow in one occurrence; None if it was broken off before, or nobody knows what became of it."""
    low, high = _ticks(hit, tick_s)
    spare = MOST_SHIFT if hit.sweep else 0
    ticks = one.span.start + np.arange(max(low - spare, 1), high + spare + 1)
    ticks = ticks[ticks <= one.until]
    if not len(ticks):
        return None
    landed = [blow for blow in one.landed if ticks[0] - 1 <= blow.tick <= ticks[-1] + 1]
    if any(not blow.reaction for blow in landed):
        return None
    mine = [blow for blow in landed if _owner(blow, one, move, 0, spec, tick_s, max(spare, 1)) is hit]
    others = [blow.tick for blow in landed if blow not in mine]
    struck = int(np.clip(mine[0].tick - ticks[0], 0, len(ticks) - 1)) if mine else -1
    thrown = mine[0].tick + (0 if move.grab_move else 1) if mine else None  # a grab puts him elsewhere at once
    boss, player = one.bout.at(ticks, thrown)
    dx, dy = player[:, 0] - boss[:, 0], player[:, 1] - boss[:, 1]
    sine, cosine = np.sin(boss[:, 2]), np.cos(boss[:, 2])
    return Sample(
        along=-sine * dx - cosine * dy,
        across=-cosine * dx + sine * dy,
        # Who was hit by another blow of the move is not hit by this one as well.
        vulnerable=vulnerable(one.bout, ticks, spec, tick_s) & (ticks < min(others, default=math.inf)),
        time_s=(ticks - one.span.start) * tick_s,
        blur_m=one.bout.blur_m(ticks, thrown),
        struck=struck,
    )


def vulnerable(bout: Bout, ticks: Array, spec: FightSpec, tick_s: float) -> Flags:
    """In which ticks a blow would hurt the player, by the label that he shows and how long."""
    fights, spans = bout.fights, _invulnerable_spans(spec)
    after = np.minimum(np.searchsorted(bout.ticks, ticks), len(fights) - 1)
    shown = fights["player_animation_duration"][:, 0].astype(float)
    time_s = shown[after] - (bout.ticks[after] - ticks) * tick_s
    is_new = time_s >= -1e-6
    record = np.where(is_new, after, np.maximum(after - 1, 0))
    time_s = np.where(is_new, time_s, shown[record] + (ticks - bout.ticks[record]) * tick_s)
    low, high = spans[fights["player_animation"][record] + 1].T
    return np.asarray(~((low <= time_s) & (time_s < high)))


def _invulnerable_spans(spec: FightSpec) -> Array:
    """By label + 1 of the player, when no blow hurts him."""
    names = [animation.name for animation in spec.player_animations]
    spans = np.full((len(names) + 1, 2), -1.0)
    for move in spec.player.moves:
        if move.animation in names and move.invulnerable_s[1] > 0.0:
            spans[names.index(move.animation) + 1] = move.invulnerable_s
    for name in spec.player.roll.animations:
        spans[names.index(name) + 1] = spec.player.roll.invulnerable_s
    return spans


def _throws(move: BossMove, seen: Sequence[Occurrence], spec: FightSpec, tick_s: float) -> list[Estimate]:
    """When and how much a player who is held loses: known to the step, and in many throws to less."""
    found: list[Estimate] = []
    names = [key.split(".")[3] for key in spec.boss.sources if key.startswith(f"move.{move.name}.throw.")]
    names = list(dict.fromkeys(names))
    bounds: dict[int, list[tuple[int, int, float, bool]]] = defaultdict(list)
    for one in seen:
        lost = [blow for blow in one.landed if blow.damage > 0.0]
        for number, blow in enumerate(lost[: len(move.throws)]):
            latest = TICKS_PER_STEP * blow.record - one.span.start - 1  # he is hurt before the boss's clock runs on
            bounds[number].append((latest - TICKS_PER_STEP, latest, blow.damage, blow.is_fatal))
    for number, rows in bounds.items():
        path, throw = ("move", move.name, "throw", names[number]), move.throws[number]
        low, high = max(row[0] for row in rows) * tick_s, min(row[1] for row in rows) * tick_s
        if low < high:
            value = throw.at_s if low <= throw.at_s <= high else round(0.5 * (low + high), 4)
            found.append(Estimate((*path, "at_s"), value, round(low, 4), round(high, 4), len(rows), throw.at_s))
        damages = [damage for _, _, damage, fatal in rows if not fatal]
        if damages:
            damage, n = Counter(damages).most_common(1)[0]
            key, least, value, most = power_of(damage, throw.power, spec)
            found.append(Estimate((*path, key), value, least, most, n, getattr(throw.power, key)))
    return found
