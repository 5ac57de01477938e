"""What a sweep has found so far, and the last word on its best trials.

The best of many noisy figures is too good: it was chosen for its luck as well. So the best few, and the preset's own
settings, fight again with seeds that nobody used before. Their intervals are made so wide that all of them together
hold with 95 %: choosing among them once more does no harm then.
"""

from __future__ import annotations

import json
import math
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.trial import FrozenTrial

from soulsai.errors import RunError
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.statistics import normal_quantile, paired_difference, wilson
from soulsai.processes.supervisor import KILL_S, Command
from soulsai.runs.lock import hold_lock
from soulsai.sweeps import trial as one_trial
from soulsai.sweeps.space import WIN_RATE, as_arguments
from soulsai.sweeps.study import DONE, REFUSED, REPLACED, About, SweepStudy, state_of

CONFIRMED = "confirmed"
FRESH_SEED = 0x7377_6565
"""Used for nothing else, neither while training nor by `souls eval` unless asked for."""
LIMIT_S = 3600.0
POLL_S = 0.1
ENOUGH = 8
"""Trials trained to the end before importances are more than noise."""

Estimate = tuple[float, float, float]
"""A figure and its interval."""
Kept = dict[str, Any]
"""What the study keeps of a last measurement: every fight won or lost, or every return."""


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
    seed: int | None  # of its training
    problem: str
    confirmed: Estimate | None  # in fresh fights; the interval holds for all that were measured together


@dataclass(frozen=True)
class Results:
    """A sweep, as far as it is."""

    study: Study
    about: About
    folder: Path
    trials: tuple[TrialResult, ...]  # by number
    refused: int
    measured: Mapping[int, Kept]  # by number of the trial

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
            return max(again, key=lambda each: each.confirmed or (0.0,))
        return self.ranked[0] if self.ranked else None

    @property
    def preset_trial(self) -> TrialResult | None:
        """The trial with the preset's own settings, if it was trained to the end."""
        return next((each for each in self.ranked if each.is_preset), None)

    @property
    def better(self) -> Estimate | None:
        """How much the best is better than the preset's own settings, if both were measured again."""
        best, own = self.best, self.preset_trial
        if best is None or own is None or best is own or not {best.number, own.number} <= set(self.measured):
            return None
        return better_by(self.measured[best.number], self.measured[own.number], max(1, len(self.measured) - 1))

    @cached_property
    def importances(self) -> Mapping[str, float]:
        """How much of the differences between trials each key explains, by Optuna; nothing if they are too few."""
        values = [each.value for each in self.ranked]
        if len(values) < ENOUGH or len(set(values)) < 2:
            return {}
        try:
            return dict(optuna.importance.get_param_importances(self.study))
        except (ValueError, RuntimeError, ZeroDivisionError):
            return {}  # too much alike

    def count(self, state: str) -> int:
        """How many trials are in a state."""
        return sum(each.state == state for each in self.trials)

    def command(self, trial: TrialResult) -> str:
        """The command that trains a trial again, with its seed, in a new folder."""
        given = [*self.about.base_settings(), *as_arguments(trial.settings)]
        given += [] if trial.seed is None else [f"run.seed={trial.seed}"]
        words = ["souls", "train", self.about.preset, *(word for one in given for word in ("--set", one))]
        return " ".join(shlex.quote(word) for word in words)


def results_of(study: Study, about: About, folder: Path) -> Results:
    """Everything that a study tells."""
    frozen = study.get_trials(deepcopy=False)
    measured = {each.number: kept for each in frozen if (kept := study.user_attrs.get(f"{CONFIRMED}/{each.number}"))}
    states = [state_of(each) for each in frozen]
    trials = tuple(
        _result(each, state, about, measured)
        for each, state in zip(frozen, states, strict=True)
        if state not in (REFUSED, REPLACED)
    )
    return Results(study, about, folder, trials, states.count(REFUSED), measured)


def _result(trial: FrozenTrial, state: str, about: About, measured: Mapping[int, Kept]) -> TrialResult:
    begun, ended = trial.datetime_start, trial.datetime_complete
    curve = dict(sorted(trial.intermediate_values.items()))
    again = measured.get(trial.number)
    return TrialResult(
        number=trial.number,
        state=state,
        settings=about.space.settings(trial.params),
        value=trial.value if state == DONE else curve[max(curve)] if curve else None,
        curve=curve,
        folder=str(trial.user_attrs.get("folder", "")),
        is_preset=bool(trial.user_attrs.get("preset")),
        minutes=(ended - begun).total_seconds() / 60.0 if begun and ended else None,
        seed=trial.user_attrs.get("seed"),
        problem=str(trial.user_attrs.get("problem", "")),
        confirmed=rate_and_interval(again, len(measured)) if again else None,
    )


def figure(value: float | None, metric: str) -> str:
    """A score, for people."""
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if metric == WIN_RATE else f"{value:.1f}"


def interval(found: Estimate, metric: str) -> str:
    """An interval, for people."""
    _, low, high = found
    return f"{100 * low:.1f} to {100 * high:.1f} %" if metric == WIN_RATE else f"{low:.1f} to {high:.1f}"


def to_confirm(results: Results) -> list[TrialResult]:
    """The best trials, best first, and that of the preset's own settings."""
    best = results.about.space.plan.best
    return results.ranked[:best] + [each for each in results.ranked[best:] if each.is_preset]


def confirm(study: SweepStudy, say: Callable[[str], None], stop: Callable[[], bool]) -> bool:
    """Measure the best trials again, those that are not yet; false if it was stopped."""
    with ExitStack() as held:
        try:
            held.enter_context(hold_lock(study.folder / "confirm.lock"))
        except RunError:
            say("another process measures the best trials again, and writes the report")
            return True
        return _confirm(study, say, stop)


def _confirm(study: SweepStudy, say: Callable[[str], None], stop: Callable[[], bool]) -> bool:
    results = results_of(study.study, study.about, study.folder)
    fights, what = study.about.space.plan.fights, "fights" if study.about.metric == WIN_RATE else "episodes"
    for trial in to_confirm(results):
        if trial.number in results.measured and results.measured[trial.number]["fights"] >= fights:
            continue
        folder = study.folder / trial.folder
        if not (folder / "config.toml").exists():
            say(f"trial {trial.number}: its run is not on this machine and cannot be measured again here")
            continue
        say(f"trial {trial.number}: measuring again in {fights:,} fresh {what}")
        try:
            found = _measure(folder, fights, stop)
        except RunError as error:
            say(str(error))  # The others still can be.
            continue
        if found is None:
            return False
        study.study.set_user_attr(f"{CONFIRMED}/{trial.number}", found)
    return True


def _measure(folder: Path, fights: int, stop: Callable[[], bool]) -> Kept | None:
    words = ["eval", str(folder), "--fights", str(fights), "--seed", str(FRESH_SEED), "--json"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = Command([*one_trial.CHILD, *words], stdout=out, stderr=errors).start()
        deadline_s = time.monotonic() + LIMIT_S
        try:
            while (code := process.exit_code()) is None:
                if stop():
                    return None
                if time.monotonic() > deadline_s:
                    limit = f"{LIMIT_S / 60:.0f} minutes"
                    raise RunError(f"{folder}: measuring it again took more than {limit}; use fewer fights")
                time.sleep(POLL_S)
        finally:
            process.kill()
            process.wait(KILL_S)
            process.ask()
        texts = []
        for stream in (out, errors):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace").strip().rpartition("\n")[2])
        if code != 0:
            raise RunError(f"{folder}: could not be measured again: {texts[1].removeprefix('souls: ') or code}")
        return _summarise(json.loads(texts[0]))


def _summarise(found: dict[str, Any]) -> Kept:
    if "returns" in found:
        return {"fights": len(found["returns"]), "returns": found["returns"]}
    won = Evaluation.from_json(json.dumps(found)).won
    # One letter a fight: the same fights were fought by all, so that pairs can be compared.
    return {"fights": len(won), "won": "".join("1" if each else "0" for each in won)}


def rate_and_interval(kept: Kept, together: int) -> Estimate:
    """The figure, and its interval, where `together` of them are to hold with 95 %."""
    confidence = 1.0 - 0.05 / max(1, together)
    if "won" in kept:
        wins, fights = kept["won"].count("1"), len(kept["won"])
        return wins / fights, *wilson(wins, fights, confidence)
    returns = kept["returns"]
    error = stdev(returns) / math.sqrt(len(returns)) if len(returns) > 1 else math.inf
    return _around(fmean(returns), error, confidence)


def better_by(best: Kept, other: Kept, together: int) -> Estimate:
    """How much the first is better, with an interval; both fought the same fights."""
    confidence = 1.0 - 0.05 / max(1, together)
    if "won" in best:
        shared = min(len(best["won"]), len(other["won"]))
        a, b = (np.array([letter == "1" for letter in kept["won"][:shared]]) for kept in (best, other))
        return float(a.mean() - b.mean()), *paired_difference(a, b, confidence)
    a, b = np.array(best["returns"]), np.array(other["returns"])
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    return _around(float(a.mean() - b.mean()), error, confidence)


def _around(mean: float, error: float, confidence: float) -> Estimate:
    half = normal_quantile(confidence) * error
    return mean, mean - half, mean + half
