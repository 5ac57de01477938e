"""A sweep as a process does it: trials side by side until there are enough, time is over, or it is asked to stop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from optuna.trial import Trial

from soulsai.config import check_names, load_preset, with_settings
from soulsai.config.toml import toml_value
from soulsai.errors import ConfigError, RunError
from soulsai.sweeps.results import figure
from soulsai.sweeps.space import as_arguments
from soulsai.sweeps.study import DONE, FAILED, PRUNED, SweepStudy
from soulsai.sweeps.trial import FINISHED, Training, can_go_on

POLL_S = 0.25
LOOK_EVERY_S = 2.0
"""Between looks for processes that have died, and for work."""
BEAT_EVERY_S = 20.0
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


class Sweep:
    """One process's part of a sweep."""

    def __init__(self, study: SweepStudy, view: View, *, trials: int, side_by_side: int, threads: int) -> None:
        self._study, self._about, self._view = study, study.about, view
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
                for one in tuple(self._running):
                    self._follow(one)
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
        count = self._study.count()
        return not others and count[DONE] + count[PRUNED] + count[FAILED] >= self._trials

    def _begin_next(self) -> bool:
        trial = self._study.next_trial(self._trials)
        if trial is None:
            return False
        settings, about = self._study.settings(trial), self._about
        seed = about.config.run.seed + about.space.plan.seed + int(trial.user_attrs.get("first", trial.number))
        trial.set_user_attr("seed", seed)
        given = [*about.base_settings(), *as_arguments(settings), f"run.seed={seed}", *self._given]
        try:
            config = check_names(with_settings(load_preset(about.preset), given))
        except ConfigError as error:
            self._study.prune(trial, refused=str(error))
            self._refused += 1
            if self._refused >= REFUSED_AT_MOST:
                raise ConfigError(
                    f"{self._refused} drawn settings in a row do not go together; the last: {error}"
                ) from error
            return True
        self._refused = 0
        self._begin(trial, settings, given, config.run.steps)
        return True

    def _begin(self, trial: Trial, settings: dict[str, Any], given: list[str], steps: int) -> None:
        folder, about, words = self._study.folder, self._about, ", ".join(as_arguments(settings))
        earlier = str(trial.user_attrs.get("folder", ""))
        goes_on = bool(earlier) and can_go_on(folder / earlier)
        name = earlier if goes_on else f"trial-{trial.number:04}"
        trial.set_user_attr("folder", name)
        training = Training(folder / name, folder / f"{name}.txt", about.metric, about.config.run.evaluate_every_steps)
        if goes_on:
            training.go_on()
        else:
            training.begin(about.preset, given)
        self._running.append(Running(trial, settings, training, steps))
        self._view.say(f"trial {trial.number}: {f'continues in {name} with ' if goes_on else ''}{words}")

    def _follow(self, one: Running) -> None:
        try:
            self._report(one)
        except (RuntimeError, ValueError):  # Optuna: others have given it up for dead; a suspended machine may be back.
            self._running.remove(one)
            one.training.kill()
            self._view.say(f"trial {one.number}: another process has taken it over")
            return
        ending = one.training.ending()
        if ending is None:
            return
        self._running.remove(one)
        self._looked_s = 0.0  # there is room for another
        if one.pruned and ending != FINISHED:  # What is trained to its end after all, tells more.
            self._prune(one)
        elif ending != FINISHED:
            self._note_failure(one, ending)
        elif (score := one.training.score(self._about.space.plan.score)) is None:
            self._note_failure(one, "it was never evaluated")
        else:
            self._failed = 0
            self._study.finish(one.trial, score)
            self._view.say(f"trial {one.number}: {figure(score, self._about.metric)}")

    def _report(self, one: Running) -> None:
        for step, value in one.training.new_scores():
            one.trial.report(value, step)
            if one.pruned or step >= one.steps or one.training.ending() is not None or not one.trial.should_prune():
                continue
            one.pruned = True
            one.training.stop()
            self._failed = 0
            self._view.say(f"trial {one.number}: pruned after {step:,} steps at {figure(value, self._about.metric)}")
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
