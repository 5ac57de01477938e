"""What the boss decides: which act at which distance and bearing, how a chain goes on, and what follows an attack.

All of it is counting with the file as the prior: what was never seen stays as it is, and what was seen a few times
moves a little.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.calibration.estimate import Estimate, Path, number_at
from soulsgym.calibration.timeline import ATTACK_KINDS, BROKEN_OFF, Bout, Span
from soulsgym.calibration.timing import SPREAD
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import TURN, Act, Phase

PRIOR_COUNT = 20.0
"""Decisions of one rule, or choices of a chain, that the file's own weights stand for."""
PRIOR_IF_WRONG = 2.0
"""The same where a chain was seen that the file does not have."""
PRIOR_ODDS = 6.0
COOLING_WEIGHT = 1.0
FEWEST_WALKS = 3
FEWEST_CHAINS = 2
WALKED_TICKS = 12
"""A walk of so long was an approach."""
LATE_TICKS = 4
COOLDOWN_SPREAD = 0.2
"""Standard deviation of a cooldown's logarithm before anything was seen."""
COOLDOWN_LOGS = np.linspace(-0.6, 0.6, 601)
COOLDOWN_ROUNDS = 3
FEWEST_WAITS, FEWEST_SIDEWAYS = 3, 5
UNSURE_M = 0.3
"""A gap this near to a limit may lie on either side of it."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Decision:
    """An act that the boss chose, and where the player was then."""

    phase: int
    tick: int
    gap_m: float
    bearing_deg: float
    act: str
    first: int
    """The position of the span with the act's own attack."""
    walked: int
    """Ticks of walking up to it."""
    is_down: bool


@dataclass(frozen=True)
class Ending:
    """The end of an act's last attack: did he go sideways or back off before he decided again?"""

    phase: int
    act: str
    lingered: bool


def place_of_player(bout: Bout, tick: int) -> tuple[float, float]:
    """Distance and bearing [degrees, positive to his right] of the player from the boss."""
    boss, player = bout.at(np.array([tick]))
    dx, dy = player[0, 0] - boss[0, 0], player[0, 1] - boss[0, 1]
    sine, cosine = math.sin(boss[0, 2]), math.cos(boss[0, 2])
    bearing = math.atan2(-cosine * dx + sine * dy, -sine * dx - cosine * dy)
    return math.hypot(dx, dy), math.degrees(bearing)


class Choices:
    """Everything that was decided in the recorded fights."""

    def __init__(self, bouts: Sequence[Bout], spec: FightSpec) -> None:
        self.spec = spec
        self.decisions: list[tuple[Bout, list[Decision]]] = []
        self.endings: list[Ending] = []
        for bout in bouts:
            self.decisions.append((bout, list(self._decisions(bout))))
            self.endings += self._endings(bout)

    def _name(self, span: Span) -> str:
        return self.spec.boss.moves[span.move].name if span.move >= 0 else label_name(span, self.spec)

    def _decisions(self, bout: Bout) -> Iterator[Decision]:
        """Where an act begins: with its attack, or with the walk or the rest that leads up to it."""
        for number in self._beginnings(bout):
            span, first, walked = bout.spans[number], number, 0
            while first > 1 and bout.spans[first - 1].kind in ("walk", "idle"):
                first -= 1
                walked += bout.spans[first].shown if bout.spans[first].kind == "walk" else 0
            before = bout.spans[first - 1]
            if before.kind not in (*ATTACK_KINDS, "strafe", "retreat"):
                continue  # he turned, or walked up without having decided anything, as at the beginning of a phase
            tick = bout.spans[first].begin
            distance, bearing = place_of_player(bout, tick)
            label = int(bout.fights["player_animation"][max(tick, 0) // TICKS_PER_STEP])
            yield Decision(
                span.phase, tick, distance - self.spec.boss.radius_m, bearing, self._name(span), number, walked,
                label in self._down,
            )  # fmt: skip

    def _beginnings(self, bout: Bout) -> Iterator[int]:
        """The positions of attacks that no chain and no grab led to."""
        for number, span in enumerate(bout.spans):
            if number and span.is_attack and not span.linked and not self._is_grab(bout, number):
                yield number

    def chains_of(self, phase: int, act: str) -> list[tuple[Bout, list[Span]]]:
        """Every time that an act's attack was played to its own end: it, and the attacks that chains led to."""
        return [
            (bout, followed(bout, number))
            for bout, _ in self.decisions
            for number in self._beginnings(bout)
            if (bout.spans[number].phase, self._name(bout.spans[number])) == (phase, act) and _is_whole(bout, number)
        ]

    @property
    def _down(self) -> set[int]:
        names = {move.animation for move in self.spec.player.moves if move.knocked_down}
        return {i for i, one in enumerate(self.spec.player_animations) if one.name in names}

    def _is_grab(self, bout: Bout, number: int) -> bool:
        before = bout.spans[number - 1]
        if before.move < 0 or bout.spans[number].move < 0:
            return False
        return self.spec.boss.moves[before.move].grab_move == self._name(bout.spans[number])

    def _endings(self, bout: Bout) -> Iterator[Ending]:
        act = ""
        for number, span in enumerate(bout.spans):
            if span.is_attack and not span.linked and not (number and self._is_grab(bout, number)):
                act = self._name(span)
            after = bout.spans[number + 1 : number + 3]
            if not span.is_attack or not act or len(after) < 2 or (after[0].is_attack and after[0].linked):
                continue
            if not self._is_seen(bout, after[0]):
                continue
            if after[0].is_attack:
                yield Ending(span.phase, act, lingered=False)
            elif after[0].kind == "idle" and after[1].kind in ("walk", "strafe", "retreat", "attack"):
                yield Ending(span.phase, act, after[1].kind in ("strafe", "retreat"))

    def _is_seen(self, bout: Bout, span: Span) -> bool:
        """Is the player where the boss lingers for him, as the next label appears?"""
        after = self.spec.boss.phases[span.phase - 1].after
        distance, bearing = place_of_player(bout, span.begin)
        return abs(bearing) <= after.front_deg and distance - self.spec.boss.radius_m <= after.within_gap_m


def label_name(span: Span, spec: FightSpec) -> str:
    """The name that a move gets which the file does not have."""
    return f"new_{spec.boss_animations[span.label]}".lower()


def decision_estimates(choices: Choices, spec: FightSpec, content: Mapping[str, Any]) -> list[Estimate]:
    """Weights of rules and chains, odds of what follows an attack, and from how far he attacks."""
    found: list[Estimate] = []
    for index, phase in enumerate(spec.boss.phases):
        path = ("phase", str(index + 1))
        found += (weights := _weights(path, phase, index + 1, choices))
        now = {int(one.path[-2]): one.written for one in weights}
        rules = tuple(replace(rule, weights=now.get(row, rule.weights)) for row, rule in enumerate(phase.rules))
        found += _cooldowns(path, replace(phase, rules=rules), index + 1, choices)
        found += _sideways((*path, "after"), phase, index + 1, choices)
        for act in phase.acts:
            found += _odds((*path, "act", act.name), act, index + 1, choices)
            found += _approach((*path, "act", act.name), act, index + 1, choices)
            found += _chains((*path, "act", act.name), act, index + 1, choices, spec, content)
    return found


def rule_of(phase: Phase, gap_m: float, bearing_deg: float) -> int:
    """The position of the first rule that fits; -1 for none."""
    for number, rule in enumerate(phase.rules):
        low, high = rule.gap_m
        left, right = rule.bearing_deg
        if low <= gap_m < high and left <= bearing_deg <= right and abs(bearing_deg) >= rule.beyond_deg:
            return number
    return -1


def _weights(path: tuple[str, ...], phase: Phase, number: int, choices: Choices) -> list[Estimate]:
    """The weights of each rule: how often an act was chosen, given what was cooling down."""
    cooldowns = {act.name: act.cooldown_s for act in phase.acts}
    rows: dict[int, list[tuple[str, dict[str, bool]]]] = defaultdict(list)
    for _, decisions in choices.decisions:
        ready: dict[str, float] = {}
        for decision in decisions:
            if decision.phase != number:
                continue
            rule = rule_of(phase, decision.gap_m, decision.bearing_deg)
            time_s = decision.tick * choices.spec.player.label_s_per_step / TICKS_PER_STEP
            if rule >= 0 and not decision.is_down:
                cooling = {name: ready.get(name, -math.inf) > time_s for name in phase.rules[rule].weights}
                rows[rule].append((decision.act, cooling))
            ready[decision.act] = time_s + cooldowns.get(decision.act, 0.0)
    found = []
    for rule, chosen in sorted(rows.items()):
        weights = dict(phase.rules[rule].weights)
        names = [name for name, weight in weights.items() if weight > 0.0 and name != TURN]
        told = [(act, cooling) for act, cooling in chosen if act in names]
        if len(names) < 2 or not told:
            continue
        before = np.array([weights[name] for name in names])
        value, spread = _choice(
            before, [(names.index(act), [cooling[name] for name in names]) for act, cooling in told]
        )
        after = weights | dict(zip(names, np.round(value, 2).tolist(), strict=True))
        low, high = np.maximum(value - SPREAD * spread, 0.0), value + SPREAD * spread
        where: Path = (*path, "rule", rule, "weights")
        found.append(Estimate(where, value.tolist(), low.tolist(), high.tolist(), len(told), before.tolist(), after))
    return found


def _cooldowns(path: tuple[str, ...], phase: Phase, number: int, choices: Choices) -> list[Estimate]:
    """How long an act is seldom chosen again: of the times around the file's, how likely each makes the choices."""
    files = {act.name: act.cooldown_s for act in phase.acts if act.cooldown_s > 0.0}
    now = dict(files)
    found: list[Estimate] = []
    for _ in range(COOLDOWN_ROUNDS):  # what an act competes with depends on the cooldowns of the others
        found = []
        for name, seen in sorted(_waits(phase, number, choices, now).items()):
            times_s = files[name] * np.exp(COOLDOWN_LOGS)
            scores = -0.5 * (COOLDOWN_LOGS / COOLDOWN_SPREAD) ** 2
            for wait, chosen, weight, others in seen:
                own = np.where(wait < times_s, COOLING_WEIGHT, weight)
                scores += np.log(np.where(chosen, own, others) / (own + others))
            n = sum(bool(times_s[0] <= wait <= times_s[-1]) for wait, *_ in seen)
            if n >= FEWEST_WAITS:
                share = np.cumsum(np.exp(scores - scores.max()))
                low, value, high = np.interp((0.05, 0.5, 0.95), share / share[-1], times_s)
                now[name] = float(value)
                found.append(Estimate.rounded((*path, "act", name, "cooldown_s"), value, low, high, n, files[name]))
    return found


def _waits(
    phase: Phase, number: int, choices: Choices, cooldowns: Mapping[str, float]
) -> dict[str, list[tuple[float, bool, float, float]]]:
    """By act, for each decision: since when it was chosen, whether it is now, its weight and that of all others."""
    tick_s = choices.spec.player.label_s_per_step / TICKS_PER_STEP
    rows: dict[str, list[tuple[float, bool, float, float]]] = defaultdict(list)
    for _, decisions in choices.decisions:
        last: dict[str, float] = {}
        for decision in (one for one in decisions if one.phase == number):
            time_s = decision.tick * tick_s
            rule = rule_of(phase, decision.gap_m, decision.bearing_deg)
            weights = {} if rule < 0 or decision.is_down else phase.rules[rule].weights
            waited = {name: time_s - last.get(name, -math.inf) for name in weights if name != TURN}
            now = {
                name: min(weights[name], COOLING_WEIGHT) if wait < cooldowns.get(name, 0.0) else weights[name]
                for name, wait in waited.items()
            }
            for name in now.keys() & cooldowns.keys():
                if decision.act in now and weights[name] > COOLING_WEIGHT and math.isfinite(waited[name]):
                    others = sum(now.values()) - now[name]
                    rows[name].append((waited[name], decision.act == name, weights[name], others))
            last[decision.act] = time_s
    return rows


def _sideways(path: tuple[str, ...], phase: Phase, number: int, choices: Choices) -> list[Estimate]:
    """How long he goes sideways after an attack, near the player and far: the ends of what was seen, and a little."""
    spec = choices.spec
    tick_s = spec.player.label_s_per_step / TICKS_PER_STEP
    lasted: dict[str, list[float]] = defaultdict(list)
    for bout, _ in choices.decisions:
        for place, (span, after) in enumerate(pairwise(bout.spans)):
            if span.kind != "strafe" or span.phase != number or after.kind in (*BROKEN_OFF, "") or not place:
                continue
            before = place - 1
            while before and bout.spans[before].kind == "turn":
                before -= 1
            tick = bout.spans[before].begin if bout.spans[before].kind == "idle" else span.begin
            gap = place_of_player(bout, tick)[0] - spec.boss.radius_m
            if abs(gap - phase.after.near_gap_m) > UNSURE_M:
                lasted["near_s" if gap < phase.after.near_gap_m else "far_s"].append((span.shown - 0.5) * tick_s)
    found = []
    for key, seen in sorted(lasted.items()):
        n, was = len(seen), getattr(phase.after, key)
        if n < FEWEST_SIDEWAYS:
            continue
        # Of n numbers drawn evenly from a span, (least - low end) / (largest - least) is above x with (1 + x)^(1 - n).
        first, last = min(seen), max(seen)
        near, middle, far = ((last - first) * (share ** (-1 / (n - 1)) - 1.0) for share in (0.95, 0.5, 0.05))
        near, far = near - 0.5 * tick_s, far + 0.5 * tick_s
        low, high = (max(first - far, 0.0), last + near), (first - near, last + far)
        value = [
            file_s if below <= file_s <= above else max(guess, 0.0)
            for file_s, guess, below, above in zip(was, (first - middle, last + middle), low, high, strict=True)
        ]
        value, least, most = ([round(one, 4) for one in row] for row in (value, low, high))
        found.append(Estimate((*path, key), value, least, most, n, list(was)))
    return found


def _choice(before: Array, chosen: Sequence[tuple[int, Sequence[bool]]]) -> tuple[Array, Array]:
    """Weights that explain choices, and their standard deviations; the file's count for a few choices more."""
    counts = np.bincount([act for act, _ in chosen], minlength=len(before)).astype(float)
    cooling = np.array([row for _, row in chosen], np.bool_)
    weights, total = before.copy(), before.sum()
    prior = PRIOR_COUNT * before / total
    for _ in range(200):
        capped = np.where(cooling, np.minimum(weights, COOLING_WEIGHT), weights)
        share = capped / np.maximum(weights, 1e-9)
        expected = (share / capped.sum(axis=1, keepdims=True)).sum(axis=0) + PRIOR_COUNT / weights.sum()
        weights = (counts + prior) / np.maximum(expected, 1e-9)
        weights *= total / weights.sum()
    effective = len(chosen) + PRIOR_COUNT
    share = weights / total
    return weights, total * np.sqrt(share * (1.0 - share) / effective)


def _odds(path: tuple[str, ...], act: Act, number: int, choices: Choices) -> list[Estimate]:
    seen = [one.lingered for one in choices.endings if (one.phase, one.act) == (number, act.name)]
    if not seen or (act.after_odds == 0.0 and not any(seen)):
        return []
    yes, n = sum(seen) + PRIOR_ODDS * act.after_odds, len(seen) + PRIOR_ODDS
    value = yes / n
    half = SPREAD * math.sqrt(max(value * (1.0 - value), 0.01) / n)
    low, high = max(value - half, 0.0), min(value + half, 1.0)
    return [Estimate.rounded((*path, "after_odds"), value, low, high, len(seen), act.after_odds)]


def _approach(path: tuple[str, ...], act: Act, number: int, choices: Choices) -> list[Estimate]:
    """How near he comes before the attack: where he was when a walk up to it ended before its time was over."""
    reached = []
    for bout, decisions in choices.decisions:
        for decision in decisions:
            if decision.act != act.name or decision.phase != number or decision.walked < WALKED_TICKS:
                continue
            if decision.is_down:  # up to a player on the ground he walks first and chooses then
                continue
            limit = math.ceil(act.approach_s / choices.spec.player.label_s_per_step * TICKS_PER_STEP)
            if decision.walked < limit - LATE_TICKS:
                reached.append(place_of_player(bout, bout.spans[decision.first].begin)[0])
    if len(reached) < FEWEST_WALKS:
        return []
    value, spread = float(np.median(reached)), float(np.std(reached)) / math.sqrt(len(reached))
    half = max(SPREAD * spread, 0.08)
    return [Estimate.rounded((*path, "approach_m"), value, value - half, value + half, len(reached), act.approach_m)]


def _chains(
    path: tuple[str, ...], act: Act, number: int, choices: Choices, spec: FightSpec, content: Mapping[str, Any]
) -> list[Estimate]:
    """The weights of an act's chains; one that nobody wrote down is added."""
    seen = choices.chains_of(number, act.name)
    if not seen:
        return []
    chains = copy.deepcopy(number_at(content, (*path, "chains"))) or [{"weight": 1.0, "links": []}]
    rows: list[list[bool]] = []
    unwritten: Counter[tuple[str, ...]] = Counter()
    for bout, spans in seen:
        fits = [_could_be(chain, spans, bout, spec) for chain in chains]
        if any(fits):
            rows.append(fits)
        elif spans[1:]:
            unwritten[tuple(names_of(spans, spec)[1:])] += 1
    before = [float(chain["weight"]) for chain in chains]
    new = {links: count for links, count in unwritten.items() if count >= FEWEST_CHAINS}
    if len(chains) < 2 and not new:
        return []
    total = max(sum(before), 1e-9)
    for links, count in new.items():
        within_m = [{"move": move, "within_m": 999.0} for move in links]
        chains.append({"weight": total * count / max(len(seen), 1), "links": within_m})
        rows += [[False] * (len(chains) - 1) + [True]] * count
    width = len(chains)
    table = np.array([[*row, *([False] * (width - len(row)))] for row in rows], float).reshape(-1, width)
    start = np.array([*before, *(0.0,) * len(new)])
    counts = PRIOR_COUNT if not new else PRIOR_IF_WRONG
    prior = counts * start / total
    share = np.maximum(np.array([chain["weight"] for chain in chains]), 1e-9)
    share /= share.sum()
    for _ in range(100):
        told = table * share
        told /= np.maximum(told.sum(axis=1, keepdims=True), 1e-12)
        share = (told.sum(axis=0) + prior) / (len(table) + counts)
        share /= share.sum()
    spread = np.sqrt(share * (1.0 - share) / (len(table) + counts))
    value = [round(float(one), 3) for one in total * share]
    for chain, weight in zip(chains, value, strict=True):
        chain["weight"] = weight
    low, high = np.maximum(total * (share - SPREAD * spread), 0.0), total * (share + SPREAD * spread)
    was = before if not new else None
    return [Estimate((*path, "chains"), value, low.tolist(), high.tolist(), len(seen), was, chains)]


def followed(bout: Bout, first: int) -> list[Span]:
    """An act's attack and those that chains led to."""
    spans = [bout.spans[first]]
    for span in bout.spans[first + 1 :]:
        if not (span.is_attack and span.linked):
            break
        spans.append(span)
    return spans


def _is_whole(bout: Bout, first: int) -> bool:
    """Did the act come to its own end, rather than to that of the fight or of the boss's balance?"""
    last = first + len(followed(bout, first))
    return last < len(bout.spans) and bout.spans[last].kind in ("idle", "attack")


def names_of(spans: Sequence[Span], spec: FightSpec) -> list[str]:
    """The names of moves, those that the file does not have too."""
    return [spec.boss.moves[span.move].name if span.move >= 0 else label_name(span, spec) for span in spans]


def _could_be(chain: Mapping[str, Any], spans: Sequence[Span], bout: Bout, spec: FightSpec) -> bool:
    """Is what was seen this chain, or as much of it as the player's distance allowed?"""
    links, names = chain.get("links", []), names_of(spans, spec)[1:]
    if names != [link["move"] for link in links[: len(names)]]:
        return False
    if len(names) == len(links):
        return True
    link, last = links[len(names)], spans[-1]
    move = spec.boss.moves[last.move]
    tick = last.start + math.ceil(move.link_s / spec.player.label_s_per_step * TICKS_PER_STEP)
    if tick > bout.ticks[-1]:
        return True
    distance, bearing = place_of_player(bout, tick)
    left, right = link.get("bearing_deg", (-180.0, 180.0))
    return distance >= link["within_m"] - 0.3 or not left <= bearing <= right


def phase_estimates(bouts: Sequence[Bout], spec: FightSpec) -> list[Estimate]:
    """Hit points, and at which share of them the boss changes."""
    hp = float(bouts[0].fights["boss_max_hp"][0])
    found = [Estimate(("body", "hp"), hp, hp, hp, len(bouts), spec.boss.hp)]
    for index, phase in enumerate(spec.boss.phases):
        if not phase.change_move:
            continue
        low, high, n = 0.0, 1.0, 0
        for bout in bouts:
            for before, span in zip(bout.spans, bout.spans[1:], strict=False):
                if before.phase != index + 1 or not before.is_attack or span.linked:
                    continue
                record = max(span.first - 1, 0)
                share = float(bout.fights["boss_hp"][record, 0] / bout.fights["boss_max_hp"][record])
                if not _changes(bout, span):
                    high = min(high, share)
                else:
                    low, n = (
                        max(low, float(bout.fights["boss_hp"][span.first, 0] / bout.fights["boss_max_hp"][0])),
                        n + 1,
                    )
        if n and low < high:
            was = phase.changes_at_hp_share
            value = was if low <= was <= high else round(0.5 * (low + high), 4)
            path = ("phase", str(index + 1), "changes_at_hp_share")
            found.append(Estimate(path, value, round(low, 4), round(high, 4), n, was))
    return found


def _changes(bout: Bout, span: Span) -> bool:
    """Is the next thing but resting the change of the phase, which has no label?"""
    place = bout.spans.index(span)
    following = [one for one in bout.spans[place : place + 2] if one.kind != "idle"]
    return bool(following) and following[0].kind == "" and following[0].label < 0
