"""Evaluations in a process of their own, so that a learner whose workers cannot wait never waits for one.

A thread would not do: one of them runs Python at a time, and Gymnasium episodes, say, are nothing but Python.
"""

from __future__ import annotations

import ctypes
import json
import logging
import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.policy import NetworkPolicy
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.checkpoints.part import part_from_bytes, part_to_bytes
from soulsai.config import config_from_toml, config_to_toml
from soulsai.config.schema import Config
from soulsai.learning.loading import networks_of
from soulsai.learning.scoring import PolicyScore, score_policy
from soulsai.learning.showing import EvaluationFiles
from soulsai.processes.supervisor import Control, Supervisor, function, step_back
from soulsai.runs.run import Run
from soulsai.telemetry.clock import LoopClock
from soulsai.telemetry.logfile import attach

TRIES = 4
"""Processes that fail before the first evaluation is over, until there are no more."""
HANG_S = 300.0
"""Without a step. Nobody waits for it, and on a busy machine compiling takes its time."""
TOUCH_S = 1.0
STOP_S = 2.0
LONGEST = 4096
"""Bytes of a message between learner and evaluator."""

Say = Callable[[str], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """The policy as it was at a step of the training: copies of its weights, by network and name."""

    step: int
    weights: dict[str, torch.Tensor]


class Evaluator:
    """Evaluates one snapshot at a time. If its process dies or hangs, the next one evaluates the same snapshot."""

    def __init__(self, run: Run, config: Config, say: Say) -> None:
        self._folder, self._config_toml = run.folder, config_to_toml(config)
        self._lock = threading.Lock()  # the supervisor's thread starts processes
        self._snapshot: Snapshot | None = None
        self._weights: Any = None  # bytes in memory that the process sees
        self._connection: Connection | None = None
        self._supervisor = Supervisor(
            function(evaluate_snapshots, self._arguments), name="the evaluator", hang_s=HANG_S, tries=TRIES,
            say=say,
        )  # fmt: skip

    @property
    def is_free(self) -> bool:
        """Whether it can take another snapshot."""
        return self._snapshot is None

    @property
    def has_failed(self) -> bool:
        """Whether no process could ever evaluate anything; that was told."""
        return bool(self._supervisor.problems())

    def begin(self, snapshot: Snapshot) -> None:
        """Evaluate a snapshot beside everything else. The first one starts the process."""
        content = part_to_bytes(snapshot.weights)
        is_first = self._weights is None
        if is_first:
            self._weights = multiprocessing.get_context("spawn").RawArray(ctypes.c_ubyte, len(content))
        with self._lock:
            memoryview(self._weights).cast("B")[:] = content
            self._snapshot = snapshot
            self._ask()
        if is_first:
            self._supervisor.start()

    def take(self) -> tuple[Snapshot, PolicyScore] | None:
        """The snapshot and how good it is, once that is known."""
        with self._lock, suppress(EOFError, OSError):  # its process has ended: the next one is asked again
            if self._snapshot and self._connection and self._connection.poll():
                score = PolicyScore(**json.loads(self._connection.recv_bytes(LONGEST)))
                snapshot, self._snapshot = self._snapshot, None
                return snapshot, score
        return None

    def stop(self) -> None:
        """End the process; what it was about to find out is lost."""
        self._supervisor.stop(STOP_S)

    def _arguments(self, index: int) -> tuple[Any, ...]:
        """Of the next process."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection, theirs = multiprocessing.Pipe()
            self._ask()
        return theirs, self._weights, self._folder, self._config_toml

    def _ask(self) -> None:
        if self._connection and self._snapshot:
            with suppress(OSError):  # its process has ended: the next one is asked again
                self._connection.send_bytes(str(self._snapshot.step).encode())


# Within the process


class _Stopped(Exception):
    """The learner does not want to know any more."""


class _WatchedPolicy(NetworkPolicy):
    """Shows with every choice that the process does not hang, and ends the evaluation when it is to stop."""

    control: Control

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        self.control.touch()
        if self.control.stopping:
            raise _Stopped
        return super().choose(observations, masks)


def evaluate_snapshots(control: Control, connection: Connection, weights: Any, folder: Path, config_toml: str) -> None:
    """Evaluate what the learner asks for, until it asks to stop."""
    step_back()
    torch.set_num_threads(1)
    run = Run(folder)
    attach(run.log_file)
    config = config_from_toml(config_toml, "config.toml")
    files = EvaluationFiles(run, config, LoopClock(), log.warning)
    while not control.stopping:
        control.touch()
        if not connection.poll(TOUCH_S):
            continue
        step = int(connection.recv_bytes(LONGEST))
        networks = networks_of(config, part_from_bytes(bytes(weights)))
        policy = _WatchedPolicy(*algorithm_of(config).policy(networks).networks)
        policy.control = control
        with suppress(_Stopped):
            score = score_policy(config, policy, config.run.evaluation_fights, step=step, evaluation_files=files)
            connection.send_bytes(json.dumps(asdict(score)).encode())
            control.work()
