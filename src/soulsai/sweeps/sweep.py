"""A sweep as a process does it: trials side by side until there are enough, time is over, or it is asked to stop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from soulsai.config import check_names, load_preset, read_config, with_settings
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.errors import ConfigError, RunError
from soulsai.sweeps.dimension import as_arguments
from soulsai.sweeps.study import BEAT_EVERY_S, SweepStudy, counted
from soulsai.sweeps.trial import Training, can_go_on

if TYPE_CHECKING:
    from optuna.trial import Trial

POLL_S = 0.25
LOOK_EVERY_S = 2.0
"""Between looks for processes that have died, and for work."""
FAILED_AT_MOST = 3
"""Trials of this process that fail one after the other before it gives up."""
REFUSED_AT_MOST = 50
"""Drawn settings that do not go together, one after the other, before it gives up."""


class View(Protocol):
    """Who shows how it goes."""

    def say(self, text: str) -> None:
        """One line of news."""

    def show(self, running: Sequence[Running]) -> None:
        """What is trained now; called several times a second."""


@dataclass
class Running:
    """A trial that is trained now."""

    trial: Trial
    settings: dict[str, Any]
    training: Training
    steps: int
    begun_s: float = field(default_factory=time.monotonic)
    beat_s: float = 0.0
    pruned: bool = False

    @property
    def number(self) -> int:
        """The trial's."""
        return int(self.trial.number)

    @property
    def step(self) -> int:
        """Environment steps trained."""
        status = self.training.status()
        return status.step if status else 0

    @property
    def score(self) -> float | None:
        """The newest evaluation."""
        scores = self.training.scores
        return scores[max(scores)] if scores else None


def base_config(preset: str) -> Config:
    """The config of a preset, or of a file."""
    return read_config(Path(preset)) if preset.endswith(".toml") else load_preset(preset)


class Sweep:
    """One process's part of a sweep."""

    def __init__(self, study: SweepStudy, view: View, *, trials: int, side_by_side: int, threads: int) -> None:
        self._study, self._view = study, view
        self._trials, self._side_by_side = trials, side_by_side
        self._given = [f"run.threads={threads}"] if threads else []
        if study.parts:
            self._given.append(f"fight.parts={toml_value(study.parts)}")
        self._running: list[Running] = []
        self._failed = self._refused = 0
        self._looked_s = 0.0
        self._is_waiting = False

    def go(self, stop: Callable[[], bool]) -> bool:
        """Try trials until there are enough, here and in other processes; false if it was stopped before."""
        try:
            while not stop():
                self._follow()
                if time.monotonic() - self._looked_s >= LOOK_EVERY_S and self._look():
                    return True
                self._view.show(self._running)
                time.sleep(POLL_S)
            return False
        finally:
            self._give_back()
            self._view.show(())

    def _look(self) -> bool:
        """Take over what the dead have left, begin what is free; true if all is done."""
        for number in self._study.take_from_dead():
            self._view.say(f"trial {number}: its process has died; its settings are tried again")
        while len(self._running) < self._side_by_side and self._begin_next():
            pass
        self._looked_s = time.monotonic()
        if self._running:
            return False
        others = self._study.others_running()
        if others and not self._is_waiting:
            self._view.say(f"nothing left to begin; waiting for {others} of other processes, to take over if one dies")
        self._is_waiting = bool(others)
        return not others and counted(self._study.study.get_trials(deepcopy=False)).done >= self._trials

    def _begin_next(self) -> bool:
        trial = self._study.next_trial(self._trials)
        if trial is None:
            return False
        settings = self._study.settings(trial)
        about = self._study.about
        seed = about.config.run.seed + about.space.plan.seed + int(trial.user_attrs.get("first", trial.number))
        trial.set_user_attr("seed", seed)
        given = [*about.base_settings(), *as_arguments(settings), f"run.seed={seed}", *self._given]
        try:
            config = check_names(with_settings(base_config(about.preset), given))
        except ConfigError as error:
            self._study.prune(trial, refused=str(error))
            self._refused += 1
            if self._refused >= REFUSED_AT_MOST:
                raise ConfigError(
                    f"{self._refused} drawn settings in a row do not go together; the last: {error}"
                ) from error
            return True
        self._refused = 0
        self._running.append(self._begun(trial, settings, given, config))
        return True

    def _begun(self, trial: Trial, settings: dict[str, Any], given: list[str], config: Config) -> Running:
        folder = self._study.folder
        name = f"trial-{trial.number:04}"
        earlier = trial.user_attrs.get("folder")
        goes_on = bool(earlier) and can_go_on(folder / str(earlier))
        if goes_on:
            name = str(earlier)
        trial.set_user_attr("folder", name)
        about = self._study.about
        training = Training(folder / name, folder / f"{name}.txt", about.metric, about.config.run.evaluate_every_steps)
        running = Running(trial, settings, training, config.run.steps)
        if goes_on:
            training.go_on()
            self._view.say(f"trial {trial.number}: goes on in {name} with {told(settings)}")
        else:
            training.begin(about.preset, given)
            self._view.say(f"trial {trial.number}: {told(settings)}")
        return running

    def _follow(self) -> None:
        for one in tuple(self._running):
            if self._is_taken(one):
                continue
            ending = one.training.ending()
            if ending is None:
                continue
            self._running.remove(one)
            self._looked_s = 0.0  # there is room for another
            if one.pruned and not ending.finished:  # What is trained to its end after all, tells more.
                self._prune(one)
            elif not ending.finished:
                self._note_failure(one, ending.problem)
            elif (score := one.training.score(self._study.about.space.plan.score)) is None:
                self._note_failure(one, "it was never evaluated")
            else:
                self._failed = 0
                self._study.finish(one.trial, score)
                self._view.say(f"trial {one.number}: {figure(score, self._study.about.metric)}")

    def _is_taken(self, one: Running) -> bool:
        """Report, and drop a trial that others have given up for dead: a suspended machine may be back."""
        try:
            self._report(one)
        except (RuntimeError, ValueError):  # Optuna: the trial is over
            self._running.remove(one)
            one.training.kill()
            self._view.say(f"trial {one.number}: another process has taken it over")
            return True
        return False

    def _report(self, one: Running) -> None:
        for step, value in one.training.new_scores():
            one.trial.report(value, step)
            if one.pruned or step >= one.steps or one.training.ending() is not None:
                continue
            if one.trial.should_prune():
                one.pruned = True
                one.training.stop()
                self._failed = 0
                self._view.say(
                    f"trial {one.number}: pruned after {step:,} steps at {figure(value, self._study.about.metric)}"
                )
        if time.monotonic() - one.beat_s > BEAT_EVERY_S:
            one.beat_s = time.monotonic()
            self._study.beat(one.trial)

    def _prune(self, one: Running) -> None:
        self._study.prune(one.trial)
        for part in ("checkpoints", "replay"):  # Nobody goes on with it, and they are large.
            shutil.rmtree(one.training.folder / part, ignore_errors=True)

    def _note_failure(self, one: Running, problem: str) -> None:
        self._study.fail(one.trial, problem)
        self._view.say(f"trial {one.number}: failed: {problem}")
        self._failed += 1
        if self._failed >= FAILED_AT_MOST:
            raise RunError(f"{self._failed} trials in a row have failed; the last: {problem}")

    def _give_back(self) -> None:
        """Stop all trainings, together, and leave their trials to whoever goes on."""
        if self._running:
            self._view.say(f"saving {len(self._running)} trial{'s' if len(self._running) > 1 else ''}")
        for one in self._running:
            one.training.stop()
        for one in self._running:
            one.training.wait_stopped()
            if one.pruned:
                self._prune(one)
            else:
                self._study.give_back(one.trial)
        self._running = []


def told(settings: dict[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(as_arguments(settings))


def figure(value: float, metric: str) -> str:
    """A score, for people."""
    return f"{100 * value:.1f} %" if metric.startswith("win_rate/") else f"{value:.1f}"
