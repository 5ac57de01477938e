"""What a sweep may change: one key of the config, and the values it may have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from soulsai.config.toml import toml_value

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DIGITS = 4
"""Significant digits of a drawn number: more would only make commands long."""
SAME = 1e-9


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    key: str
    low: float
    high: float
    whole: bool
    log: bool = False
    step: float | None = None

    def distribution(self) -> BaseDistribution:
        """As Optuna has it."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return FloatDistribution(float(self.low), float(self.high), log=self.log, step=self.step)

    def value(self, stored: Any) -> Any:
        """What the config is given for what Optuna has drawn."""
        if self.whole:
            return int(stored)
        if self.step:
            return float(f"{stored:.10g}")
        return min(max(float(f"{stored:.{DIGITS}g}"), float(self.low)), float(self.high))

    def stored(self, value: Any) -> Any:
        """What Optuna would have drawn for a value; None if it never draws it."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            return None
        steps = (value - self.low) / self.step if self.step else 0.0
        if abs(steps - round(steps)) > SAME:
            return None
        return int(value) if self.whole else float(value)

    def texts(self) -> tuple[str, str]:
        """Its ends, for people."""
        return f"{self.low:g}", f"{self.high:g}"


@dataclass(frozen=True)
class Choices:
    """A few values; `ordered` ones have neighbours, so that what helps one says something about the next."""

    key: str
    options: tuple[Any, ...]
    ordered: bool = False

    def distribution(self) -> BaseDistribution:
        """As Optuna has it: it knows no lists, so that every option stands under its text, or its place."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        if self.ordered:
            return IntDistribution(0, len(self.options) - 1)
        return CategoricalDistribution([toml_value(option) for option in self.options])

    def value(self, stored: Any) -> Any:
        """What the config is given for what Optuna has drawn."""
        return self.options[stored if self.ordered else [toml_value(option) for option in self.options].index(stored)]

    def stored(self, value: Any) -> Any:
        """What Optuna would have drawn for a value; None if it never draws it."""
        plain = list(value) if isinstance(value, tuple) else value
        for place, option in enumerate(self.options):
            if (type(option) is type(plain) and option == plain) or _same_number(option, plain):
                return place if self.ordered else toml_value(option)
        return None


Dimension = Range | Choices


def _same_number(a: Any, b: Any) -> bool:
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (a, b))
    return numbers and math.isclose(a, b, rel_tol=SAME)


def settings_of(dimensions: Sequence[Dimension], stored: dict[str, Any]) -> dict[str, Any]:
    """The config's values, by key, for what Optuna has drawn; keys that it has not drawn are left out."""
    return {one.key: one.value(stored[one.key]) for one in dimensions if one.key in stored}


def as_arguments(settings: dict[str, Any]) -> list[str]:
    """Settings as `--set` takes them."""
    return [f"{key}={toml_value(value)}" for key, value in settings.items()]
