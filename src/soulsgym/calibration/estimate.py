"""Estimates of a boss's numbers, and the overlay that they make."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from soulsgym.spec.draw import KIND_OF, fit_times

MEASURED = "measured"
OTHER_KINDS = {"chains": "weight", "hp": "health", "changes_at_hp_share": "health", "reaction": "damage"}
"""Kinds of what is never drawn; the rest are times."""
Path = tuple[str | int, ...]
"""Where a number stands in a boss's file: keys of tables, positions in lists."""


@dataclass(frozen=True)
class Estimate:
    """A number, or a list of numbers, that recordings tell, with the interval that holds it in nine cases of ten.

    Lists have intervals of the same length. `before` is what the file said; None where it said nothing. `written` is
    what stands in the file where that is more than the numbers, such as whole chains. A number that the recordings
    confirm stays what it was, unless the estimate is `weighed`: then the file's had its say in it already.
    """

    path: Path
    value: Any
    low: Any
    high: Any
    n: int
    before: Any = None
    written: Any = None
    weighed: bool = False

    @classmethod
    def rounded(
        cls, path: Path, value: float, low: float, high: float, n: int, before: float | None, *, weighed: bool = False
    ) -> Estimate:
        """A number to four places."""
        value, low, high = (round(float(one), 4) for one in (value, low, high))
        return cls(path, value, low, high, n, before, weighed=weighed)

    @property
    def key(self) -> str:
        """The path as errors and reports write it."""
        return path_text(self.path)

    @property
    def kind(self) -> str:
        """What it is about, such as motion or reach, in the words of drawn variants."""
        key = str(self.path[-1])
        return KIND_OF.get(key) or OTHER_KINDS.get(key, "time")

    @property
    def moves(self) -> bool:
        """Does the file's number lie outside of the interval?"""
        if self.before is None:
            return True
        return any(
            not low <= was <= high
            for was, low, high in zip(listed(self.before), listed(self.low), listed(self.high), strict=True)
        )

    @property
    def result(self) -> Any:
        """What the number is taken to be."""
        return self.value if self.moves or self.weighed else self.before


def count_kinds(estimates: Iterable[Estimate]) -> str:
    """How many there are of each kind, the most frequent first."""
    return ", ".join(f"{kind} {count}" for kind, count in Counter(one.kind for one in estimates).most_common())


def listed(value: Any) -> list[Any]:
    """A number as a list of one; a list as it is."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def path_text(path: Path) -> str:
    """A path such as `phase.1.rule[3].weights.dash`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def number_at(content: Any, path: Path) -> Any:
    """What the file says at a path; None for nothing."""
    for part in path:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def overlay_of(content: Mapping[str, Any], estimates: Iterable[Estimate]) -> dict[str, Any]:
    """What to lay over a boss's file: estimates where its numbers do not hold, all of them marked as measured."""
    changes: dict[str, Any] = {}
    for estimate in estimates:
        if estimate.moves or estimate.weighed:
            put(changes, content, estimate.path, estimate.value if estimate.written is None else estimate.written)
        else:
            put(changes, content, estimate.path, number_at(content, estimate.path))
    for name, move in changes.get("move", {}).items():
        _make_room(content["move"][name], move)
        fit_times(content["move"][name], move)
    return changes


def _make_room(move: Mapping[str, Any], changes: dict[str, Any]) -> None:
    """Let what was not measured of a move's end wait for what was: a link, a blow, the end of its label."""
    blows = [blow["to_s"] for blow in changes.get("hit", {}).values() if "to_s" in blow]
    needed_s = changes.get("link_s", 0.0)
    for key, others in (("label_end_s", []), ("end_s", blows)):
        needed_s = max([needed_s, *others])
        if key not in changes and needed_s > move[key]:
            changes[key] = needed_s
        needed_s = max(needed_s, changes.get(key, 0.0))


def put(changes: dict[str, Any], content: Mapping[str, Any], path: Path, value: Any) -> None:
    """Set a number of an overlay, and that it is measured. Lists on the way are copied: overlays replace them whole."""
    table: Any = changes
    below: Any = content
    for key in path[:-1]:
        below = number_at(below, (key,)) or {}
        if isinstance(table, list):
            table = table[int(key)]
        else:
            table = table.setdefault(key, copy.deepcopy(below) if isinstance(below, list) else {})
    key = str(path[-1])
    table[key] = value
    known = table.get("source", below.get("source"))
    sources = dict(known) if isinstance(known, Mapping) else {} if known is None else {"*": known}
    table["source"] = MEASURED if sources == {"*": MEASURED} else {**sources, key: MEASURED}
