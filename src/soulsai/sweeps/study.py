"""The study of a sweep: which trials there are, which is to be tried next, and whose process has died.

Several processes share it. Each holds a lock on a file of its own for as long as it lives, so that the others know at
once when it has died; on other machines, which cannot see the lock, they notice that its trials no longer beat.
"""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
from optuna import Study, pruners
from optuna.pruners import BasePruner
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from soulsai.config import config_from_toml, config_to_toml, differences
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, RunError
from soulsai.runs.fight_files import parts_of, with_files_in, with_parts
from soulsai.runs.files import cannot_write, write_files
from soulsai.runs.lock import hold_lock, is_locked
from soulsai.runs.run import CONFIG
from soulsai.sweeps.space import Plan, Space, space_of, value_of
from soulsai.sweeps.storage import JOURNAL, open_storage, wait_for_lock

STARTS_AT_MOST = 3
"""Times that settings are begun whose process has died: they may well be what killed it."""
SILENT_S = 120.0
"""Without a beat, a process on another machine counts as dead."""
ABOUT = "about"
WORKERS = ".workers"
"""Hidden, so that whoever lists the runs in a sweep's folder finds only trials."""
PARTS = ".parts"
DONE, PRUNED, FAILED, RUNNING, WAITING = "done", "pruned", "failed", "running", "waiting"
REFUSED, REPLACED = "refused", "replaced"
"""Never begun, since its settings do not go together; and gone on with under another number."""
STATES = {
    TrialState.COMPLETE: DONE, TrialState.PRUNED: PRUNED, TrialState.FAIL: FAILED, TrialState.RUNNING: RUNNING,
    TrialState.WAITING: WAITING,
}  # fmt: skip


def state_of(trial: FrozenTrial) -> str:
    """What became of a trial."""
    if trial.state == TrialState.PRUNED and "refused" in trial.user_attrs:
        return REFUSED
    if trial.state == TrialState.FAIL and "went_on" in trial.user_attrs:
        return REPLACED
    return STATES[trial.state]


@dataclass(frozen=True)
class About:
    """What a sweep is of; the same for all its processes."""

    name: str
    preset: str
    config: Config
    space: Space
    metric: str
    settings: tuple[str, ...]  # of the command line
    parts: tuple[tuple[str, str], ...] = ()  # name and digest of the user's Python files

    def to_json(self) -> dict[str, Any]:
        """As the study keeps it."""
        return {
            "preset": self.preset,
            "config": config_to_toml(self.config),
            "space": self.space.text,
            "metric": self.metric,
            "settings": list(self.settings),
            "parts": [list(pair) for pair in self.parts],
        }

    @staticmethod
    def from_json(name: str, kept: dict[str, Any], folder: Path) -> About:
        """From what the study keeps."""
        config = config_from_toml(kept["config"], f"{folder} (config)")
        space = space_of(kept["space"], f"{folder} (space)")
        parts = tuple((str(file), str(digest)) for file, digest in kept.get("parts", ()))
        return About(name, kept["preset"], config, space, kept["metric"], tuple(kept["settings"]), parts)

    def base_settings(self) -> list[str]:
        """What is set in every trial."""
        return [*self.space.fixed, *self.settings]


def open_about(folder: Path, name: str, url: str = "") -> tuple[Study, About]:
    """An existing study to read; RunError if there is none."""
    if not folder.is_dir():
        raise RunError(f"{folder}: there is no such sweep; give the folder of one, such as sweeps/NAME")
    if not url and not (folder / JOURNAL).exists():
        raise RunError(f"{folder}: is not the folder of a sweep; give that of one, or its --storage")
    try:
        storage = open_storage(folder, url)
        study = optuna.load_study(study_name=_study_name(storage, name, is_shared=bool(url)), storage=storage)
        about = About.from_json(name, study.user_attrs[ABOUT], folder)
    except KeyError as error:
        raise RunError(
            f"{folder}: the study {name} is not there; begin it with: souls sweep PRESET --space FILE"
        ) from error
    return study, replace(about, config=with_parts(about.config, _copies(about.config, folder)))


def _study_name(storage: BaseStorage, name: str, *, is_shared: bool) -> str:
    """The name, or that of the only study in a folder which was copied or renamed since."""
    names = [] if is_shared else optuna.get_all_study_names(storage)
    return names[0] if len(names) == 1 else name


class SweepStudy:
    """A process's hold on the study."""

    def __init__(self, folder: Path, about: About, url: str = "") -> None:
        self.folder, self.about = folder, about
        self._is_shared = bool(url)  # by machines that may not see this folder
        self._worker = uuid.uuid4().hex[:12]
        self._beats: dict[int, tuple[Any, float]] = {}
        self._held = ExitStack()
        if (folder / CONFIG).exists():
            raise RunError(f"{folder}: is the folder of a run; choose another one for the sweep with --dir")
        try:
            (folder / WORKERS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        storage = open_storage(folder, url)
        with self._lock():
            self._held.enter_context(hold_lock(self._worker_file(self._worker)))
            self.study = self._open_study(storage)
            # Copies of the user's Python files, so that all trials have the same ones.
            write_files(parts_of(about.config), folder / PARTS)
            self.parts = _copies(about.config, folder)

    def close(self) -> None:
        """Leave the sweep."""
        self._held.close()
        self._worker_file(self._worker).unlink(missing_ok=True)

    def _lock(self) -> Any:
        """Held while trials are given out or taken back, so that no process does so from old knowledge."""
        return wait_for_lock(self.folder / "lock")

    def _worker_file(self, worker: str) -> Path:
        return self.folder / WORKERS / f"{worker}.lock"

    def _open_study(self, storage: BaseStorage) -> Study:
        plan = self.about.space.plan
        study = optuna.create_study(
            storage=storage,
            study_name=_study_name(storage, self.about.name, is_shared=self._is_shared),
            direction="maximize",
            load_if_exists=True,
            pruner=make_pruner(plan, self.about.config),
        )
        kept = study.user_attrs.get(ABOUT)
        if kept is None:
            self._enqueue_preset(study)
            study.set_user_attr(ABOUT, self.about.to_json())
        else:
            _refuse_other(self.folder, About.from_json(self.about.name, kept, self.folder), self.about)
        number = int(study.user_attrs.get("workers", 0))
        study.set_user_attr("workers", number + 1)
        study.sampler = optuna.samplers.TPESampler(
            seed=(plan.seed + 1_000_003 * number) % 2**32,  # Processes with equal ones would try the same.
            n_startup_trials=plan.startup,
            multivariate=True,
            constant_liar=True,
        )
        return study

    def _enqueue_preset(self, study: Study) -> None:
        """The preset's own settings are the first trial, where the space has them: what is found must beat them."""
        space = self.about.space
        stored = {one.key: one.to_optuna(value_of(self.about.config, one.key)) for one in space.dimensions}
        if not study.trials and None not in stored.values():
            _enqueue(study, stored, space.distributions(), {"preset": True})

    def next_trial(self, most: int) -> Trial | None:
        """A trial to train, unless `most` are done or under way already."""
        with self._lock():
            count = self.count()
            if sum(count[state] for state in (DONE, PRUNED, FAILED, RUNNING)) >= most:
                return None
            trial = self.study.ask(self.about.space.distributions())
            for key, value in (("worker", self._worker), ("host", platform.node()), ("pid", os.getpid())):
                trial.set_user_attr(key, value)
            return trial

    def count(self) -> Counter[str]:
        """How many trials there are, by what became of them."""
        return Counter(map(state_of, self.study.get_trials(deepcopy=False)))

    def settings(self, trial: Trial) -> dict[str, Any]:
        """What the trial tries, by key."""
        return self.about.space.settings(trial.params)

    def beat(self, trial: Trial) -> None:
        """Tell other machines that the trial is alive."""
        if self._is_shared:
            trial.set_user_attr("beat", time.time())

    def finish(self, trial: Trial, value: float) -> None:
        """The trial was trained to its end."""
        self.study.tell(trial, value)

    def prune(self, trial: Trial, *, refused: str = "") -> None:
        """The trial was ended early, or never begun since its settings do not go together."""
        if refused:
            trial.set_user_attr("refused", refused)
        self.study.tell(trial, state=TrialState.PRUNED)

    def fail(self, trial: Trial, problem: str) -> None:
        """The trial could not be trained."""
        trial.set_user_attr("problem", problem)
        self.study.tell(trial, state=TrialState.FAIL)

    def give_back(self, trial: Trial) -> None:
        """The trial was stopped; whoever comes next goes on with it."""
        with self._lock():
            self._requeue(self.study.trials[trial.number], died=False)

    def take_from_dead(self) -> list[int]:
        """Queue again the trials whose process has died; their numbers."""
        with self._lock():
            return [
                each.number for each in self._running_trials() if self._is_dead(each) and self._requeue(each, died=True)
            ]

    def others_running(self) -> int:
        """Trials that other processes train now."""
        return sum(each.user_attrs.get("worker") != self._worker for each in self._running_trials())

    def _running_trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))

    def _is_dead(self, trial: FrozenTrial) -> bool:
        worker = trial.user_attrs.get("worker")
        if worker == self._worker:
            return False
        if worker is not None and (file := self._worker_file(worker)).exists():
            return not is_locked(file)
        if not self._is_shared:
            return True  # Its process died before it could say who it is, or was long gone.
        beat = trial.user_attrs.get("beat")
        known, since_s = self._beats.get(trial.number, (None, 0.0))
        if trial.number not in self._beats or known != beat:
            # By our own clock: those of two machines differ.
            self._beats[trial.number] = beat, time.monotonic()
            return False
        return time.monotonic() - since_s > SILENT_S

    def _requeue(self, trial: FrozenTrial, *, died: bool) -> bool:
        """End a running trial and queue its settings again; false if another process was faster."""
        starts = int(trial.user_attrs.get("starts", 1))
        again = not died or starts < STARTS_AT_MOST
        handle = Trial(self.study, trial._trial_id)
        try:
            if again:
                handle.set_user_attr("went_on", "died" if died else "stopped")
            else:
                handle.set_user_attr("problem", f"its process died {starts} times")
            self.study.tell(trial.number, state=TrialState.FAIL)
        except (ValueError, RuntimeError):  # it is over already
            return False
        if again:
            kept = {key: value for key, value in trial.user_attrs.items() if key in ("folder", "preset", "first")}
            kept |= {"starts": starts + died, "first": kept.get("first", trial.number)}
            # All that was drawn; what was not, is drawn when it is taken up.
            _enqueue(self.study, trial.params, trial.distributions, kept)
        return True


def _enqueue(study: Study, params: dict[str, Any], distributions: dict[str, Any], attributes: dict[str, Any]) -> None:
    waiting = TrialState.WAITING
    study.add_trial(create_trial(state=waiting, params=params, distributions=distributions, user_attrs=attributes))


def make_pruner(plan: Plan, config: Config) -> BasePruner:
    """What ends trials early; its steps are environment steps, in whole intervals between evaluations."""
    every = config.run.evaluate_every_steps
    if plan.pruner == "none":
        return pruners.NopPruner()
    if plan.pruner == "halving":
        first = max(every, round(plan.warmup * config.run.steps / every) * every)
        return pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=3)
    return pruners.MedianPruner(
        n_startup_trials=plan.startup, n_warmup_steps=int(plan.warmup * config.run.steps), n_min_trials=2
    )


def _copies(config: Config, folder: Path) -> tuple[str, ...]:
    """The sweep's copies of the user's Python files."""
    return with_files_in(config, folder / PARTS).fight.parts


def _refuse_other(folder: Path, kept: About, asked: About) -> None:
    """A sweep is of one thing; how many trials there are may change."""
    changed = differences(kept.config, asked.config)
    if kept.preset != asked.preset:
        what = f"of the preset {kept.preset}, not {asked.preset}"
    elif changed:
        what = f"with other settings ({', '.join(changed)})"
    elif kept.parts != asked.parts:
        what = f"with another {' or '.join(sorted({file for file, _ in set(kept.parts) ^ set(asked.parts)}))}"
    elif sorted(map(repr, kept.space.dimensions)) != sorted(map(repr, asked.space.dimensions)):
        what = "with another space"
    elif (kept.metric, kept.space.plan.score) != (asked.metric, asked.space.plan.score):
        what = f"for another goal ({kept.metric}, {kept.space.plan.score})"
    else:
        return
    raise ConfigError(f"{folder}: this sweep was started {what}; give another --name for a new one")
