"""Draws variants of a boss: what is a guess or derived moves within the bounds of the boss's [draw] table.

An agent that wins by a gap in one guess does not win against a hundred others that are as likely. What is measured or
published stays as it is.
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from soulsgym.errors import DataError, MisuseError
from soulsgym.spec.boss import (
    FASTEST_TURN_DEG_PER_S,
    FULL_CIRCLE_DEG,
    HALF_TURN_DEG,
    LARGEST_BODY_M,
    LONGEST_S,
    Boss,
    DrawBounds,
)
from soulsgym.spec.fight import (
    DATA,
    STANDARD,
    FightFiles,
    FightSpec,
    expanded,
    lay_over,
    load_variant,
    read_files,
)
from soulsgym.spec.overlay import overlay
from soulsgym.spec.reader import LARGEST

DRAWS = 0x6472_6177
"""Beside the seed: draws share no stream with fights of the same seed."""
MAX_STRENGTH = 2.0
DRAWN_SOURCES = ("guess", "derived")
KINDS = {
    "reach": ("reach_m", "half_width_m", "inner_m", "offset_m", "radius_m", "riposte_within_m", "push_m", "arrive_m"),
    "arc": (
        "arc_deg",
        "blade_deg",
        "homing_deg",
        "riposte_facing_deg",
        "turn_animation_beyond_deg",
        "turn_around_beyond_deg",
    ),
    "damage": ("damage", "attack", "guard_stamina", "damage_taken_factor"),
    "motion": ("forward_m", "right_m", "chase_share"),
    "tracking": ("deg_per_s", "turn_deg_per_s"),
    "weight": ("weight", "weights", "down_approach_weight"),
    "approach": (
        "approach_m",
        "approach_s",
        "first_approach_m",
        "first_approach_s",
        "near_gap_m",
        "within_m",
        "until_m",
    ),
    "after": ("after_odds", "near_s", "far_s", "back_off_m", "back_off_s"),
    "recovery": ("poise_recovery_s", "cooldown_s"),
}
"""Keys by the bound they are drawn within. Times of moves and blows are drawn move by move."""
KIND_OF = {key: kind for kind, keys in KINDS.items() for key in keys}
PER_MOVE = ("motion", "tracking")
"""Kinds that all numbers of a move share one factor of."""
HIGHEST = {
    "radius_m": LARGEST_BODY_M,
    "arc_deg": FULL_CIRCLE_DEG,
    "blade_deg": HALF_TURN_DEG,
    "homing_deg": HALF_TURN_DEG,
    "riposte_facing_deg": HALF_TURN_DEG,
    "turn_animation_beyond_deg": HALF_TURN_DEG,
    "turn_around_beyond_deg": HALF_TURN_DEG,
    "deg_per_s": FASTEST_TURN_DEG_PER_S,
    "turn_deg_per_s": FASTEST_TURN_DEG_PER_S,
    "chase_share": 0.99,
    "after_odds": 1.0,
}
LOWEST = {"damage_taken_factor": 1.0, "attack": 1.0, "poise_recovery_s": 0.1}
TIMELESS_KINDS = ("idle", "walk", "retreat", "strafe", "executed")
"""Kinds of moves whose length is not drawn: they go on as long as they are needed, or as long as the riposte takes."""
END_TIMES = ("link_s", "hop_s", "label_end_s", "end_s")


def draw_variant(boss: str, seed: int, strength: float = 1.0, data: Path = DATA) -> dict[str, Any]:
    """What to lay over a boss's file: its drawn numbers. The same file, seed and strength draw the same."""
    return _changes(read_files(boss, data), seed, strength)


def drawn_spec(boss: str, seed: int, strength: float = 1.0, data: Path = DATA) -> FightSpec:
    """A boss with drawn numbers."""
    return draw_spec(read_files(boss, data), seed, strength)


def draw_spec(files: FightFiles, seed: int, strength: float = 1.0) -> FightSpec:
    """The boss of these files with drawn numbers."""
    name = f"drawn from seed {seed} at strength {strength:g}"
    return lay_over(files, _changes(files, seed, strength), files.boss.path, name)


def write_overlay(path: Path | str, boss: str, seed: int, strength: float = 1.0, data: Path = DATA) -> Path:
    """Write a drawn variant as an overlay file, all of it or nothing; a file that is there stays as it is."""
    target = expanded(path)
    check_variant_name(target)
    write_new(target, _head(target, boss, seed, strength) + tomli_w.dumps(draw_variant(boss, seed, strength, data)))
    return target


def check_variant_name(target: Path) -> None:
    """Refuse a name that no variant's file can have."""
    if target.suffix != ".toml":
        raise MisuseError(f"{target} does not end in .toml, as a variant's file must; give a name that does")


def write_new(target: Path, text: str) -> None:
    """Write a text file, all of it or nothing; a file that is there stays as it is."""
    try:
        with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as folder:
            file = Path(folder) / target.name
            file.write_text(text, encoding="utf-8", newline="\n")
            os.link(file, target)  # unlike a rename this does not overwrite
    except FileExistsError:
        raise MisuseError(f"{target} is there already; give another name or delete it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MisuseError(f"{target} cannot be written: {reason}; give another place") from error


def _head(target: Path, boss: str, seed: int, strength: float) -> str:
    return (
        f"# A drawn variant of {json.dumps(boss)}: seed {seed}, strength {strength:g}.\n"
        "# Each number that the boss's file calls a guess or derived, drawn within the bounds of its [draw] table.\n"
        f"# To fight it: gymnasium.make(..., variant={json.dumps(target.name)}) in the folder of this file.\n\n"
    )


def _changes(files: FightFiles, seed: int, strength: float) -> dict[str, Any]:
    if seed < 0:
        raise MisuseError(f"seed {seed} is out of range; give a whole number from 0")
    if not 0.0 <= strength <= MAX_STRENGTH:
        raise MisuseError(f"strength {strength} is out of range; give 0.0 to {MAX_STRENGTH}")
    boss = load_variant(files, STANDARD).boss
    if boss.draw is None:
        raise DataError(files.boss.path, "draw", None, "is missing; a drawn variant needs the bounds of its numbers")
    generator = np.random.default_rng(np.random.SeedSequence([DRAWS, int(seed)]))
    return _Drawing(boss, boss.draw, float(strength), generator).boss(files.content)


class _Drawing:
    """The draws of one variant, in the order of the boss's file."""

    def __init__(self, boss: Boss, bounds: DrawBounds, strength: float, generator: np.random.Generator) -> None:
        self._sources, self._bounds, self._strength, self._generator = boss.sources, bounds, strength, generator
        self._intervals = boss.known

    def boss(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """What changes of a boss's content."""
        changes = {key: self._table(key, content[key], {}) for key in ("body", "opened", "phase")}
        needed_s = _interrupted_until(content["phase"])
        changes["move"] = {
            name: self._move(f"move.{name}", move, needed_s.get(name, 0.0)) for name, move in content["move"].items()
        }
        self._known(content, changes)
        return _without_empty(changes)

    def _known(self, content: Mapping[str, Any], changes: dict[str, Any]) -> None:
        """Move what recordings told within its interval; the times of one move all together, to keep their order."""
        shared: dict[str, float] = {}
        for key, (low, high) in self._intervals.items():
            path = key.split(".")
            table, below = changes, content
            for part in path[:-1]:
                table, below = table.setdefault(part, {}), below[part]
            unit = self._unit()
            if path[-1].endswith("_s"):
                unit = shared.setdefault(".".join(path[:2]), unit)
            value = float(below[path[-1]])
            table[path[-1]] = round(min(max(value + unit * 0.5 * (high - low), low), high), 6) if unit else value
        for name, move in changes["move"].items():
            fit_times(content["move"][name], move)

    def _unit(self) -> float:
        return self._strength * self._generator.uniform(-1.0, 1.0)

    def _factor(self, kind: str) -> float:
        bound, unit = float(getattr(self._bounds, kind)), self._unit()
        return bound**unit if kind == "weight" else 1.0 + bound * unit

    def _is_drawn(self, path: str) -> bool:
        return self._sources.get(path) in DRAWN_SOURCES

    def _table(self, path: str, table: Mapping[str, Any], factors: Mapping[str, float]) -> dict[str, Any]:
        """What changes of a table and those in it. `factors` are given for some kinds; other numbers draw their own."""
        changes: dict[str, Any] = {}
        for key, value in table.items():
            inner = f"{path}.{key}"
            if key == "rule" and isinstance(value, list):
                changed = [self._table(f"{inner}[{row}]", rule, factors) for row, rule in enumerate(value)]
                if any(changed):
                    changes[key] = [{**copy.deepcopy(old), **new} for old, new in zip(value, changed, strict=True)]
            elif self._is_drawn(inner) and key == "chains":
                changes[key] = [self._chain(chain) for chain in value]
            elif self._is_drawn(inner) and key == "weights":
                weights = {name: weight for name, weight in value.items() if name != "source"}
                changes[key] = {name: self._number("weight", weight, {}) for name, weight in weights.items()}
            elif isinstance(value, Mapping) and (within := self._table(inner, value, factors)):
                changes[key] = within
            elif self._is_drawn(inner) and key in KIND_OF:
                changes[key] = self._number(key, value, factors)
        if "shape" in table:
            _keep_possible(table, changes)
        return changes

    def _number(self, key: str, value: Any, factors: Mapping[str, float]) -> Any:
        kind = KIND_OF[key]
        factor = factors[kind] if kind in factors else self._factor(kind)
        return [_scaled(key, one, factor) for one in value] if isinstance(value, list) else _scaled(key, value, factor)

    def _chain(self, chain: Mapping[str, Any]) -> dict[str, Any]:
        weight = self._number("weight", chain["weight"], {})
        links = [
            {**link, "within_m": self._number("within_m", link["within_m"], {})} for link in chain.get("links", ())
        ]
        return {**chain, "weight": weight, "links": links}

    def _move(self, path: str, move: Mapping[str, Any], needed_s: float) -> dict[str, Any]:
        """What changes of a move; it lasts until `needed_s` at least."""
        changes = self._table(path, move, {kind: self._factor(kind) for kind in PER_MOVE})
        shift_s, recovery = self._bounds.hit_shift_s * self._unit(), self._factor("recovery")
        timeless = move.get("kind") in TIMELESS_KINDS
        ends = {key: float(move[key]) for key in END_TIMES if key in move}
        fixed = {key: end_s for key, end_s in ends.items() if timeless or not self._is_drawn(f"{path}.{key}")}
        blows = move.get("hit", {})
        windows = {
            name: (float(blow["from_s"]), float(blow["to_s"]))
            for name, blow in blows.items()
            if all(self._is_drawn(f"{path}.hit.{name}.{key}") for key in ("from_s", "to_s"))
        }
        for name, (from_s, to_s) in _shifted(windows, shift_s, fixed).items():
            changes.setdefault("hit", {}).setdefault(name, {}).update(from_s=from_s, to_s=to_s)
        before_s = max((blow["to_s"] for blow in blows.values()), default=0.0)
        after = overlay(move, changes)
        after_s = max((blow["to_s"] for blow in after.get("hit", {}).values()), default=0.0)
        drawn = {
            key: _moved(end_s, round(after_s - before_s + (end_s - before_s) * (recovery - 1.0), 4))
            for key, end_s in ends.items()
            if key not in fixed
        }
        return changes | _ordered(after, drawn, fixed, needed_s)


def fit_times(move: Mapping[str, Any], changes: dict[str, Any]) -> None:
    """Keep the times of a changed move in their order: nothing in it lasts longer than the move itself."""
    after = overlay(move, changes)
    end_s = after["end_s"]
    label_end_s = min(after["label_end_s"], end_s)
    for key, most_s in (("label_end_s", end_s), ("link_s", label_end_s), ("hop_s", label_end_s)):
        if after.get(key, 0.0) > most_s:
            changes[key] = most_s
    for kind in ("track", "stretch", "hit"):
        for name, window in after.get(kind, {}).items():
            if window["to_s"] > end_s:
                own = changes.setdefault(kind, {}).setdefault(name, {})
                own["from_s"], own["to_s"] = min(window["from_s"], end_s), end_s


def _scaled(key: str, value: float, factor: float) -> float:
    if factor == 1.0:
        return value
    highest = HIGHEST.get(key, LARGEST)
    return min(max(float(f"{value * factor:.6g}"), LOWEST.get(key, -highest)), highest)


def _moved(time_s: float, by_s: float) -> float:
    return round(time_s + by_s, 9) if by_s else time_s


def _keep_possible(blow: Mapping[str, Any], changes: dict[str, Any]) -> None:
    """Keep the numbers of a drawn blow in the ranges that depend on each other."""
    if "arc_deg" in changes and not blow.get("sweep"):
        changes["arc_deg"] = [min(max(side, -HALF_TURN_DEG), HALF_TURN_DEG) for side in changes["arc_deg"]]
    reach_m, inner_m = (changes.get(key, blow.get(key, 0.0)) for key in ("reach_m", "inner_m"))
    if inner_m > reach_m and "inner_m" in changes:
        changes["inner_m"] = reach_m
    elif inner_m > reach_m:
        changes["reach_m"] = inner_m


def _shifted(
    windows: Mapping[str, tuple[float, float]], shift_s: float, fixed: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """The windows all moved by one time, but neither before the move's start nor past a fixed time that came after."""
    if not windows:
        return {}
    first_s, last_s = min(from_s for from_s, _ in windows.values()), max(to_s for _, to_s in windows.values())
    limit_s = min((end_s for end_s in fixed.values() if end_s >= last_s), default=LONGEST_S)
    by_s = min(max(round(shift_s, 4), -first_s), limit_s - last_s)
    return {
        name: (max(_moved(from_s, by_s), 0.0), min(_moved(to_s, by_s), limit_s))
        for name, (from_s, to_s) in windows.items()
    }


def _interrupted_until(phases: Mapping[str, Any]) -> dict[str, float]:
    """By move, the last moment at which it may be broken off."""
    times: dict[str, float] = {}
    for phase in phases.values():
        for interrupt in phase.get("interrupt", ()):
            last_s = float(interrupt.get("to_s", interrupt["at_s"]))
            times |= {name: max(times.get(name, 0.0), last_s) for name in interrupt["moves"]}
    return times


def _ordered(
    move: Mapping[str, Any], drawn: Mapping[str, float], fixed: Mapping[str, float], needed_s: float
) -> dict[str, float]:
    """The drawn end times of a move, put right where they would leave no time for what is in it."""
    windows = [window for key in ("hit", "track", "stretch") for window in move.get(key, {}).values()]
    throws = [throw["at_s"] for throw in move.get("throw", {}).values()]
    needed_s = max([needed_s, *(window["to_s"] for window in windows), *throws, *fixed.values()])
    put_right, high_s = {}, LONGEST_S
    shown_s = max(fixed.get("link_s", 0.0), fixed.get("hop_s", 0.0))
    for key, low_s in (("end_s", needed_s), ("label_end_s", shown_s), ("link_s", 0.0), ("hop_s", 0.0)):
        if key in drawn:
            put_right[key] = min(max(drawn[key], low_s), high_s)
        if key in ("end_s", "label_end_s"):
            high_s = put_right.get(key, fixed.get(key, high_s))  # what comes before ends no later
    return put_right


def _without_empty(changes: Mapping[str, Any]) -> dict[str, Any]:
    inner = {key: _without_empty(value) if isinstance(value, Mapping) else value for key, value in changes.items()}
    return {key: value for key, value in inner.items() if value != {}}
