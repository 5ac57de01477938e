"""Exhibition: what evaluations while training were like, in files for whoever looks."""

from __future__ import annotations

import time
from collections.abc import Callable

from soulsai.acting.policy import NetworkPolicy
from soulsai.config.schema import Config
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.witness import Witness
from soulsai.learning.showing import keep_fights
from soulsai.runs.files import write_atomically
from soulsai.runs.run import Run
from soulsai.telemetry.clock import TELEMETRY, LoopClock


class Exhibition:
    """Keeps the newest evaluation, and now and then some fights of it. The first failure is told and is its last."""

    def __init__(self, run: Run, config: Config, clock: LoopClock, say: Callable[[str], None]) -> None:
        self._run, self._config, self._clock, self._say = run, config, clock, say
        self._every_s = config.run.record_every_s
        self._recorded_s = -self._every_s
        self._is_open = True

    def witness(self) -> Witness | None:
        """Who is to watch the next evaluation, if its fights are to be kept."""
        due = self._every_s > 0.0 and time.monotonic() - self._recorded_s >= self._every_s
        return Witness() if self._is_open and due else None

    def show(self, evaluation: Evaluation, policy: NetworkPolicy, witness: Witness | None, step: int) -> None:
        """Keep an evaluation that was played at a step of the training."""
        if not self._is_open:
            return
        try:
            with self._clock.phase(TELEMETRY):
                write_atomically(self._run.judged_file, evaluation.to_json(), durably=False)
                if witness is not None:
                    keep_fights(self._run.recordings, self._config, policy, witness, step)
                    self._recorded_s = time.monotonic()
        except Exception as error:  # Whatever it is: what is only looked at must not end hours of training.
            self._is_open = False
            self._say(f"evaluations are no longer kept for the viewer: {error}")
