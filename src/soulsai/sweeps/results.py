"""What a sweep has found so far, read from its study: for the terminal and for the report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsai.sweeps.confirm import better_by, rate_and_interval
from soulsai.sweeps.dimension import as_arguments, settings_of
from soulsai.sweeps.study import CONFIRMED, About, counted, value_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

DONE, PRUNED, FAILED, RUNNING, WAITING = "done", "pruned", "failed", "running", "waiting"


@dataclass(frozen=True)
class Confirmed:
    """What a trial reached in fresh fights; the interval holds for all that were measured together."""

    value: float
    low: float
    high: float
    fights: int


@dataclass(frozen=True)
class TrialResult:
    """One trial."""

    number: int
    state: str
    settings: Mapping[str, Any]
    value: float | None  # of the search
    curve: Mapping[int, float]
    folder: str
    is_preset: bool
    minutes: float | None
    seed: int | None = None  # of its training
    problem: str = ""
    confirmed: Confirmed | None = None


@dataclass(frozen=True)
class Results:
    """A sweep, as far as it is."""

    about: About
    folder: Path
    trials: tuple[TrialResult, ...]  # by number
    refused: int
    importances: Mapping[str, float]
    better: tuple[float, float, float] | None  # than the preset's own settings, with interval

    @property
    def ranked(self) -> list[TrialResult]:
        """Trials trained to the end, best first by the search."""
        done = [each for each in self.trials if each.state == DONE and each.value is not None]
        return sorted(done, key=lambda each: (-(each.value or 0.0), each.number))

    @property
    def best(self) -> TrialResult | None:
        """The best of those measured again, or of all if none was."""
        again = [each for each in self.ranked if each.confirmed]
        if again:
            return max(again, key=lambda each: each.confirmed.value if each.confirmed else 0.0)
        return self.ranked[0] if self.ranked else None

    @property
    def preset_trial(self) -> TrialResult | None:
        """The trial with the preset's own settings, if it was trained to the end."""
        return next((each for each in self.ranked if each.is_preset), None)

    def count(self, state: str) -> int:
        """How many trials are in a state."""
        return sum(each.state == state for each in self.trials)

    def command(self, trial: TrialResult) -> str:
        """The command that trains a trial again, with its seed, in a new folder."""
        given = [*self.about.base_settings(), *as_arguments(dict(trial.settings))]
        given += [] if trial.seed is None else [f"run.seed={trial.seed}"]
        words = ["souls", "train", self.about.preset, *(word for one in given for word in ("--set", one))]
        return " ".join(shlex.quote(word) for word in words)

    def preset_value(self, key: str) -> Any:
        """What the preset has for a key."""
        return value_of(self.about.config, key)


def results_of(study: Study, about: About, folder: Path, *, quick: bool = False) -> Results:
    """Everything that a study tells; quickly, without importances."""
    from optuna.trial import TrialState

    frozen = study.get_trials(deepcopy=False)
    attributes = study.user_attrs
    kept = {each.number: found for each in frozen if (found := attributes.get(f"{CONFIRMED}/{each.number}"))}
    trials = tuple(
        _result(each, about, kept)
        for each in frozen
        if "went_on" not in each.user_attrs and "refused" not in each.user_attrs
    )
    shares = {} if quick else _importances(study, TrialState.COMPLETE)
    found = Results(about, folder, trials, counted(frozen).refused, shares, None)
    best, own = found.best, found.preset_trial
    if best is None or own is None or best is own or best.number not in kept or own.number not in kept:
        return found
    better = better_by(kept[best.number], kept[own.number], max(1, len(kept) - 1))
    return Results(about, folder, trials, found.refused, found.importances, better)


def _result(trial: FrozenTrial, about: About, kept: Mapping[int, dict[str, Any]]) -> TrialResult:
    begun, ended = trial.datetime_start, trial.datetime_complete
    again = kept.get(trial.number)
    return TrialResult(
        number=trial.number,
        state=_state(trial),
        settings=settings_of(about.space.dimensions, trial.params),
        value=trial.value if _state(trial) == DONE else _last(trial.intermediate_values),
        curve=dict(sorted(trial.intermediate_values.items())),
        folder=str(trial.user_attrs.get("folder", "")),
        is_preset=bool(trial.user_attrs.get("preset")),
        minutes=(ended - begun).total_seconds() / 60.0 if begun and ended else None,
        seed=trial.user_attrs.get("seed"),
        problem=str(trial.user_attrs.get("problem", "")),
        confirmed=Confirmed(*rate_and_interval(again, len(kept)), again["fights"]) if again else None,
    )


def _state(trial: FrozenTrial) -> str:
    return {"COMPLETE": DONE, "PRUNED": PRUNED, "FAIL": FAILED, "RUNNING": RUNNING}.get(trial.state.name, WAITING)


def _last(values: Mapping[int, float]) -> float | None:
    return values[max(values)] if values else None


ENOUGH = 8
"""Trials trained to the end before importances are more than noise."""


def _importances(study: Study, complete: Any) -> dict[str, float]:
    import optuna

    done = study.get_trials(deepcopy=False, states=(complete,))
    if len(done) < ENOUGH or len({each.value for each in done}) < 2:
        return {}
    try:
        return dict(optuna.importance.get_param_importances(study))
    except (ValueError, RuntimeError, ZeroDivisionError):
        return {}  # too few, or too much alike
