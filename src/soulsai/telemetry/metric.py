"""The declaration of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A metric. A name that ends in <...> declares a family."""

    name: str
    unit: str
    text: str
    kind: Literal["gauge", "counter"] = "gauge"

    labels: tuple[str, ...] = ()
    """What Prometheus tells its series apart by, beside the run and the member of a family."""

    @property
    def prefix(self) -> str:
        """What the names of a family begin with; empty for a single metric."""
        return self.name[: self.name.index("<")] if self.name.endswith(">") else ""

    @property
    def member(self) -> str:
        """What tells the metrics of a family apart: the word within <...>; empty for a single metric."""
        return self.name[len(self.prefix) + 1 : -1] if self.prefix else ""

    @property
    def prometheus(self) -> str:
        """Its name for Prometheus, which wants base units at the end; a family is one metric with a label."""
        stem = (self.prefix.rstrip("/") or self.name).replace("/", "_")
        own, theirs, _ = _UNITS.get(self.unit, ("", "", 1.0))
        total = "_total" if self.kind == "counter" else ""
        return f"souls_{stem.removesuffix(own)}{theirs}{total}"

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """The names of its labels for Prometheus."""
        return ("run", *self.labels, *([self.member] if self.member else []))

    @property
    def factor(self) -> float:
        """What a value is multiplied by to be in the unit of Prometheus."""
        return _UNITS.get(self.unit, ("", "", 1.0))[2]


_UNITS = {
    "s": ("_s", "_seconds", 1.0),
    "h": ("_hours", "_seconds", 3600.0),
    "1/s": ("_per_s", "_per_second", 1.0),
    "share": ("", "_ratio", 1.0),
}
"""Unit: how our names end with it, how those of Prometheus do, and how many of theirs one of ours is."""
