"""Attacks that the boss's file does not have: a label without a move becomes a move with what is known of it."""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.calibration.blows import vulnerable
from soulsgym.calibration.decisions import Choices, label_name, names_of, place_of_player, rule_of
from soulsgym.calibration.estimate import MEASURED, number_at
from soulsgym.calibration.timeline import Blow, Bout, Span
from soulsgym.calibration.timing import Timings
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec

FEWEST = 2
"""Times that a label must have been seen to become a move."""
APART = 10
"""Ticks between two blows of a move."""
SHORTEST_S = 0.1
"""How long a blow lasts at least."""
SPARE_M, SPARE_DEG = 0.3, 20.0
"""How much farther and wider than those it hit a blow is taken to reach, unless somebody was missed there."""
REST_S = 0.6
"""From the end of a label to that of its move, where nobody saw it."""
COOLDOWN_S, AFTER_ODDS = 8.0, 0.5
PRIOR_CHOICES = 5.0
"""Choices of other attacks that are taken to have been made where a new one is chosen: few tell little."""
FAR_M = 999.0
"""Chains are taken to go on at any distance."""
TURNING_DEG = 10.0
"""A player this far round makes the boss turn, if he does."""

Array = npt.NDArray[Any]
Found = tuple[Bout, Span]


def new_moves(
    bouts: Sequence[Bout], timings: Timings, choices: Choices, spec: FightSpec, content: Mapping[str, Any]
) -> dict[str, Any]:
    """What to lay over the file, beside its own numbers, for attacks that it does not have."""
    seen: dict[str, list[Found]] = defaultdict(list)
    for bout in bouts:
        for number, span in enumerate(bout.spans):
            if span.move < 0 and span.is_attack and number and span.end >= 0:
                seen[label_name(span, spec)].append((bout, span))
    changes: dict[str, Any] = {}
    for name, found in sorted(seen.items()):
        if len(found) < FEWEST:
            continue
        changes.setdefault("move", {})[name] = _move(found, timings, spec)
        for phase in sorted({span.phase for _, span in found}):
            _add_act(changes, name, phase, choices, spec, content)
    return changes


def _move(found: Sequence[Found], timings: Timings, spec: FightSpec) -> dict[str, Any]:
    tick_s = spec.player.label_s_per_step / TICKS_PER_STEP
    key = found[0][1].key
    shown = [span.end - span.start for _, span in found]
    label_end = timings.of(timings.label_end, key) or float(np.median(shown))
    end = timings.of(timings.end, key)
    label_end_s = round((label_end - 0.5) * tick_s, 4)
    hits = _hits(found, spec, tick_s)
    end_s = round((end - 0.5) * tick_s, 4) if end else label_end_s + REST_S
    end_s = max([end_s, *(hit["to_s"] for hit in hits.values())])
    sources = {"*": MEASURED} | ({} if end else {"end_s": "guess"})
    move: dict[str, Any] = {
        "animation": spec.boss_animations[found[0][1].label],
        "label_end_s": label_end_s,
        "end_s": end_s,
        "source": sources,
        "motion": _motion(found, end_s, spec),
        "hit": hits,
    }
    link = timings.of(timings.link, key)
    if link:
        move["link_s"] = min(round((link - 0.5) * tick_s, 4), label_end_s)
    first_s = min((hit["from_s"] for hit in hits.values()), default=label_end_s)
    turn = _turn_deg_per_s(found, round(first_s / tick_s), tick_s)
    if turn > 0.0:
        move["track"] = {"aim": {"from_s": 0.0, "to_s": first_s, "deg_per_s": turn, "source": "derived"}}
    return move


def _steps(found: Sequence[Found]) -> Array:
    """By step of the move: its first and last tick since the start, and metres forward and right."""
    rows = []
    for bout, span in found:
        low, high = -(-span.start // TICKS_PER_STEP), span.end // TICKS_PER_STEP
        poses = bout.fights["boss_pose"][low : high + 1].astype(float)
        for i in range(len(poses) - 1):
            (dx, dy), heading = poses[i + 1, :2] - poses[i, :2], poses[i, 3]
            tick = TICKS_PER_STEP * (low + i) - span.start
            forward = -math.sin(heading) * dx - math.cos(heading) * dy
            right = -math.cos(heading) * dx + math.sin(heading) * dy
            rows.append((tick, forward, right))
    return np.array(rows).reshape(-1, 3)


def _motion(found: Sequence[Found], end_s: float, spec: FightSpec) -> dict[str, Any]:
    """The mean of the metres in each step of the move."""
    step_s, steps = spec.player.label_s_per_step, _steps(found)
    count = max(2, math.ceil(end_s / step_s))
    totals, weights = np.zeros((count, 2)), np.zeros(count)
    for tick, forward, right in steps:
        place = tick / TICKS_PER_STEP
        low, share = int(place), place - int(place)
        for cell, weight in ((low, 1.0 - share), (low + 1, share)):
            if 0 <= cell < count and weight > 0.0:
                totals[cell] += weight * np.array([forward, right])
                weights[cell] += weight
    means = np.round(totals / np.maximum(weights, 1e-9)[:, None], 4)
    return {
        "first_s": step_s,
        "step_s": step_s,
        "forward_m": means[:, 0].tolist(),
        "right_m": means[:, 1].tolist(),
        "source": MEASURED,
    }


def _turn_deg_per_s(found: Sequence[Found], until: int, tick_s: float) -> float:
    """How fast he turns, before his first blow, while the player is not in front of him."""
    speeds = []
    for bout, span in found:
        low, high = -(-span.start // TICKS_PER_STEP), (span.start + until) // TICKS_PER_STEP
        headings = np.unwrap(bout.fights["boss_pose"][low : high + 1, 3].astype(float))
        for i, turned in enumerate(np.diff(headings)):
            if abs(place_of_player(bout, TICKS_PER_STEP * (low + i))[1]) > TURNING_DEG:
                speeds.append(abs(math.degrees(turned)) / (TICKS_PER_STEP * tick_s))
    return round(float(np.quantile(speeds, 0.75)), 1) if speeds else 0.0


def _hits(found: Sequence[Found], spec: FightSpec, tick_s: float) -> dict[str, Any]:
    """Blows that landed, those at one time together: from where they hit anybody, to where they did."""
    landed: list[tuple[int, Blow, float, float]] = []
    for bout, span in found:
        for blow in bout.blows:
            if span.start < blow.tick <= span.end and blow.reaction:
                landed.append((blow.tick - span.start, blow, *place_of_player(bout, blow.tick)))
    landed.sort(key=lambda row: row[0])
    groups: list[list[tuple[int, Blow, float, float]]] = []
    for row in landed:
        if groups and row[0] - groups[-1][-1][0] <= APART:
            groups[-1].append(row)
        else:
            groups.append([row])
    reactions = {move.animation: move.name for move in spec.player.moves if move.kind in ("reaction", "grabbed")}
    hits = {}
    for number, group in enumerate(groups, start=1):
        named = Counter(reactions[row[1].reaction] for row in group if row[1].reaction in reactions)
        from_s = (group[0][0] - 0.5) * tick_s
        side = min(180.0, max(abs(row[3]) for row in group) + SPARE_DEG)
        farthest = max(row[2] for row in group)
        missed = min((farthest + 2.0 * SPARE_M, *_misses(found, group[0][0], farthest, side, spec, tick_s)))
        hits[f"blow_{number}"] = {
            "from_s": round(from_s, 4),
            "to_s": round(max(from_s + SHORTEST_S, group[-1][0] * tick_s), 4),
            "shape": "sector",
            "reach_m": round(0.5 * (farthest + missed), 2),
            "arc_deg": [-round(side, 1), round(side, 1)],
            "damage": Counter(row[1].damage for row in group).most_common(1)[0][0],
            "guard_stamina": 40.0,
            "reaction": named.most_common(1)[0][0] if named else next(iter(reactions.values())),
            "source": {"*": MEASURED, "reach_m": "derived", "arc_deg": "derived", "guard_stamina": "guess"},
        }
    return hits


def _misses(
    found: Sequence[Found], tick: int, beyond_m: float, side_deg: float, spec: FightSpec, tick_s: float
) -> Iterator[float]:
    """How far away those were whom a blow did not reach, although they stood before it and nothing protected them."""
    for bout, span in found:
        at = span.start + tick
        if span.end >= at and not any(at - APART < blow.tick <= span.end for blow in bout.blows):
            distance, bearing = place_of_player(bout, at)
            if distance > beyond_m and abs(bearing) < side_deg and vulnerable(bout, np.array([at]), spec, tick_s)[0]:
                yield distance


def _add_act(
    changes: dict[str, Any], name: str, number: int, choices: Choices, spec: FightSpec, content: Mapping[str, Any]
) -> None:
    """Let the boss choose the attack where he was seen to, as often as he was seen to."""
    phase = spec.boss.phases[number - 1]
    chosen: dict[int, Counter[bool]] = defaultdict(Counter)
    chains = Counter(tuple(names_of(spans, spec)[1:]) for _, spans in choices.chains_of(number, name))
    for _, decisions in choices.decisions:
        for decision in decisions:
            if decision.phase == number:
                chosen[rule_of(phase, decision.gap_m, decision.bearing_deg)][decision.act == name] += 1
    if not any(counts[True] for rule, counts in chosen.items() if rule >= 0):
        return
    table = changes.setdefault("phase", {}).setdefault(str(number), {})
    source = {"cooldown_s": "guess", "after_odds": "guess"}
    act: dict[str, Any] = {"cooldown_s": COOLDOWN_S, "after_odds": AFTER_ODDS, "source": source}
    if any(chains):
        source["chains"] = MEASURED
        act["chains"] = [
            {"weight": float(count), "links": [{"move": move, "within_m": FAR_M} for move in links]}
            for links, count in sorted(chains.items())
        ]
    table.setdefault("act", {})[name] = act
    rules = table.setdefault("rule", copy.deepcopy(number_at(content, ("phase", str(number), "rule"))))
    for rule, counts in chosen.items():
        if rule >= 0 and counts[True]:
            weights = rules[rule]["weights"]
            total = sum(weight for key, weight in weights.items() if key != "source")
            weights[name] = round(total * counts[True] / (counts[False] + PRIOR_CHOICES), 2)
