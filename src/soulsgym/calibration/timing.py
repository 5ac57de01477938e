"""When the boss's labels change: how long each is shown, when a chain goes on, and when a move is over.

All of it is counted, not fitted: a change is seen to the tick, and comes in the first tick that is not before its time.
So the time lies within one tick, and the middle of that tick is the estimate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from soulsgym.calibration.estimate import Estimate
from soulsgym.calibration.timeline import BROKEN_OFF, Bout, Span
from soulsgym.recordings.script import follow_ups
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import BossMove

Key = tuple[int, int]
"""Phase and label."""
NEAR_TICKS = 2
"""Moments this near are one and the same, seen twice."""
WITHIN = 0.45
"""Of a tick to either side of its middle: nine tenths of it."""
SPREAD = 1.645
"""Standard errors to either side of a mean: nine cases of ten."""
FREE_KINDS = ("walk", "retreat", "strafe", "turn")
"""What the boss does when an attack is over and its label was shown to its end."""
FAR_OFF_S = 0.5
"""So far from its end by the file the label of a move without a link was cut short by one."""
ROUNDS = 4
WHOLE_KINDS = ("turn", "open", "parried", "executed")
"""Kinds of moves whose label ends with them."""


@dataclass
class Timings:
    """Ticks from the real start of a move, by phase and label: samples, and what they come to."""

    label_end: dict[Key, list[int]]
    end: dict[Key, list[int]]
    link: dict[Key, list[int]]

    def of(self, samples: dict[Key, list[int]], key: Key) -> float | None:
        """What the samples of a label come to; None for none."""
        found = samples.get(key)
        return _agreed(found)[0] if found else None


def _agreed(samples: Sequence[int]) -> tuple[float, int]:
    """The moment that most samples are near, and how many are: the rest are of another cause."""
    values = np.sort(np.asarray(samples))
    near = [int(((values >= value) & (values <= value + NEAR_TICKS)).sum()) for value in values]
    first = values[int(np.argmax(near))]
    agreed = values[(values >= first) & (values <= first + NEAR_TICKS)]
    return float(np.median(agreed)), len(agreed)


def read_timings(bouts: Sequence[Bout], spec: FightSpec) -> Timings:
    """Find out when labels, chains and moves end, and note in every span when its move really began."""
    rests: dict[Key, list[int]] = defaultdict(list)
    for bout in bouts:
        for before, span, after in zip(bout.spans, bout.spans[1:], bout.spans[2:], strict=False):
            if before.is_attack and span.kind == "idle" and after.kind not in BROKEN_OFF:
                rests[before.key].append(span.shown)
            elif before.is_attack and span.kind in FREE_KINDS:
                rests[before.key].append(0)
    timings, known = Timings({}, {}, {}), dict(rests)
    for _ in range(ROUNDS):  # each knows the starts of more moves than the one before
        timings.link = _place(bouts, spec, timings, known)
        timings.label_end = _label_ends(bouts, spec)
        known = _hidden_rests(bouts, spec, timings) | rests
    for key, waits in known.items():
        label_end = timings.of(timings.label_end, key)
        if label_end is not None:
            timings.end[key] = [round(label_end + wait) for wait in waits]
    return timings


def _shows_its_end(span: Span, after: Span, spec: FightSpec) -> bool:
    """Does an attack's label end where it should, and not with the next link of a chain?"""
    if not span.is_attack or not after.is_attack:
        return span.is_attack and after.kind in ("idle", *FREE_KINDS)
    known = min(span.move, after.move) >= 0 and not _follows(span, after, spec)
    return known and _ends_there(span.end - span.start, spec.boss.moves[span.move], spec)


def _ends_there(since: int, move: BossMove, spec: FightSpec) -> bool:
    """Is a label that is over after so many ticks nearer to its end in the file than to a link?"""
    time_s = since * spec.player.label_s_per_step / TICKS_PER_STEP
    return abs(time_s - move.label_end_s) < (abs(time_s - move.link_s) if move.link_s >= 0.0 else FAR_OFF_S)


def _label_ends(bouts: Sequence[Bout], spec: FightSpec) -> dict[Key, list[int]]:
    """Ticks from the start of attacks to where the boss is shown to rest, or an attack that is no link of a chain."""
    rests: dict[Key, list[int]] = defaultdict(list)
    others: dict[Key, list[int]] = defaultdict(list)
    for bout in bouts:
        for span, after in pairwise(bout.spans):
            if span.is_sure and _shows_its_end(span, after, spec):
                (others if after.is_attack else rests)[span.key].append(span.end - span.start)
    return others | rests


def _hidden_rests(bouts: Sequence[Bout], spec: FightSpec, timings: Timings) -> dict[Key, list[int]]:
    """By attack, ticks from the end of its label to its real end, where the next attack was shown instead of a rest.

    The end of the next one's label, or its chain going on, tells when that one really began.
    """
    found: dict[Key, list[int]] = defaultdict(list)
    for bout in bouts:
        for before, span, after in zip(bout.spans, bout.spans[1:], bout.spans[2:], strict=False):
            if not (before.is_attack and before.is_sure and span.is_attack) or span.linked:
                continue
            is_link = after.is_attack and after.linked
            ends = timings.link if is_link else timings.label_end if _shows_its_end(span, after, spec) else {}
            lasts = timings.of(ends, span.key)
            if lasts is not None:
                found[before.key].append(max(round(span.end - lasts) - span.begin, 0))
    return found


def _follows(before: Span, span: Span, spec: FightSpec) -> bool:
    """Does the file let this attack follow that one before it has ended?"""
    grabbed = before.move >= 0 and spec.boss.moves[before.move].grab_move
    is_throw = bool(grabbed) and span.move == spec.boss.move_index(str(grabbed))
    return is_throw or (before.move, span.move) in follow_ups(spec.boss)


def _place(
    bouts: Sequence[Bout], spec: FightSpec, timings: Timings, rests: dict[Key, list[int]]
) -> dict[Key, list[int]]:
    """Set the real start of every span, and whether a chain led to it; returns when chains went on."""
    tick_s = spec.player.label_s_per_step / TICKS_PER_STEP
    links: dict[Key, list[int]] = defaultdict(list)
    for bout in bouts:
        for number, span in enumerate(bout.spans):
            span.start, span.linked, span.is_sure = span.begin, False, True
            before = bout.spans[number - 1] if number else None
            if before is None or not before.is_attack:
                continue
            move = spec.boss.moves[before.move] if before.move >= 0 else None
            since, label_end = span.begin - before.start, timings.of(timings.label_end, before.key)
            if span.kind == "idle":
                span.start = before.start + _length(since, before, move, timings, rests, tick_s)
            if not span.is_attack:
                continue
            follows = _follows(before, span, spec)
            if follows and move is not None and move.grab_move:
                continue
            if label_end is None:
                span.linked = follows or move is None or not _ends_there(since, move, spec)
            elif abs(since - label_end) <= NEAR_TICKS:
                span.linked = follows and move is not None and _links_at_its_end(move, span, spec, tick_s)
            else:
                span.linked = since < label_end
            if span.linked and before.is_sure:
                links[before.key].append(since)
            elif span.linked:
                continue
            else:
                span.start = before.start + _length(since, before, move, timings, rests, tick_s)
                span.is_sure = before.is_sure and label_end is not None and bool(rests.get(before.key))
    return links


def _links_at_its_end(move: BossMove, span: Span, spec: FightSpec, tick_s: float) -> bool:
    """Of a chain that goes on about where the label ends: can it be nothing else, or does the file put it there?"""
    chosen = {act.first_move for act in spec.boss.phases[span.phase - 1].acts}
    near = move.link_s >= 0.0 and move.label_end_s - move.link_s <= NEAR_TICKS * tick_s
    return near or spec.boss.moves[span.move].name not in chosen


def _length(
    since: int, before: Span, move: BossMove | None, timings: Timings, rests: dict[Key, list[int]], tick_s: float
) -> int:
    """Ticks from the start of a move to its real end, if its label ended `since` then."""
    label_end = timings.of(timings.label_end, before.key)
    if label_end is not None and rests.get(before.key):
        return round(label_end + _agreed(rests[before.key])[0])
    return since + (math.ceil((move.end_s - move.label_end_s) / tick_s) if move else 0)


def timing_estimates(bouts: Sequence[Bout], timings: Timings, spec: FightSpec) -> list[Estimate]:
    """Label ends, links and ends of the moves that were seen."""
    tick_s, found = spec.player.label_s_per_step / TICKS_PER_STEP, []
    whole: dict[Key, list[int]] = defaultdict(list)
    known: dict[Key, int] = {}
    for bout in bouts:
        for number, span in enumerate(bout.spans):
            if span.move >= 0:
                known[span.key] = span.move
            is_whole = span.kind in WHOLE_KINDS and 0 < number < len(bout.spans) - 1
            if is_whole and not {bout.spans[number - 1].kind, bout.spans[number + 1].kind} & {*BROKEN_OFF, ""}:
                whole[span.key].append(span.shown)
    for key, move in sorted(known.items()):
        row = spec.boss.moves[move]
        for name, samples in (
            ("link_s", timings.link.get(key)),
            ("label_end_s", timings.label_end.get(key)),
            ("end_s", timings.end.get(key) or whole.get(key)),
        ):
            before = getattr(row, name) if getattr(row, name) >= 0.0 else None
            if samples and (before is not None or len(samples) > 1):
                found.append(time_estimate(("move", row.name, name), samples, before, tick_s))
    return _one_of_each(found)


def _one_of_each(estimates: list[Estimate]) -> list[Estimate]:
    """Of a move that is seen in several phases, the estimate with the most samples."""
    best: dict[str, Estimate] = {}
    for estimate in estimates:
        if estimate.key not in best or estimate.n > best[estimate.key].n:
            best[estimate.key] = estimate
    return list(best.values())


def time_estimate(path: tuple[str, ...], samples: Sequence[int], before: float | None, tick_s: float) -> Estimate:
    """The time behind changes that were seen in these ticks."""
    tick, n = _agreed(samples)
    near = [value for value in samples if abs(value - tick) <= NEAR_TICKS]
    error = SPREAD * float(np.std(near)) / np.sqrt(n)
    value, half = (tick - 0.5) * tick_s, (WITHIN + error) * tick_s
    return Estimate.rounded(path, value, value - half, value + half, n, before)
