"""What evaluations were like, in files for whoever looks: the newest one, and fights with what the policy thought."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from soulsai.acting.policy import NetworkPolicy, Policy
from soulsai.config.schema import Config
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import about_boss, write_fight_file
from soulsai.learning.thinking import think
from soulsai.learning.wiring import against
from soulsai.runs.files import cannot_write, write_atomically
from soulsai.runs.run import Run
from soulsai.runs.stamps import utc_stamp
from soulsai.telemetry.clock import TELEMETRY, LoopClock

KEPT = 40
"""Files of fights that stay beside a run; older ones make room."""
OWN = re.compile(r"eval-(\d{12})-(first|lost)\.npz")


class EvaluationFiles:
    """Keeps the newest evaluation, and now and then some fights of it. The first failure is told and is its last."""

    def __init__(self, run: Run, config: Config, clock: LoopClock, say: Callable[[str], None]) -> None:
        self._run, self._config, self._clock, self._say = run, config, clock, say
        self._every_s = config.run.record_every_s
        self._recorded_s = -self._every_s
        self._is_open = True

    def recorder(self) -> FightRecorder | None:
        """Who is to watch the next evaluation, if its fights are to be kept."""
        due = self._every_s > 0.0 and time.monotonic() - self._recorded_s >= self._every_s
        return FightRecorder() if self._is_open and due else None

    def show(self, evaluation: Evaluation, policy: NetworkPolicy, recorder: FightRecorder | None, step: int) -> None:
        """Keep an evaluation that was played at a step of the training."""
        if not self._is_open:
            return
        try:
            with self._clock.phase(TELEMETRY):
                dated = replace(evaluation, made=utc_stamp(), step=step)
                write_atomically(self._run.judged_file, dated.to_json(), durably=False)
                if recorder is not None:
                    config = against(self._config, evaluation.settings.boss)
                    keep_fights(self._run.recordings, config, policy, recorder, step)
                    self._recorded_s = time.monotonic()
        except Exception as error:  # Whatever it is: what is only looked at must not end hours of training.
            self._is_open = False
            self._say(f"evaluations are no longer kept for the viewer: {error}")


def keep_fights(folder: Path, config: Config, policy: Policy, recorder: FightRecorder, step: int) -> list[Path]:
    """Write the first fight of an evaluation and the first lost one into `folder`, and remove the oldest of such files.

    The files that were written; where the first fight was lost, that is one.
    """
    lost = recorder.lost_fights()[:1]
    chosen = {"first": 0} if len(recorder) else {}
    if lost and lost[0]:
        chosen["lost"] = lost[0]
    files = [
        keep_fight(folder / f"eval-{step:012d}-{name}.npz", config, policy, recorder, number, step)
        for name, number in chosen.items()
    ]
    _prune(folder)
    return files


def keep_fight(
    file: Path, config: Config, policy: Policy | None, recorder: FightRecorder, number: int, step: int | None = None
) -> Path:
    """Write one fight that a recorder saw, with what the policy thought if that can be looked into; the file."""
    recording = recorder.fight(number)
    thoughts = think(config, policy, recording) if isinstance(policy, NetworkPolicy) else None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(file, error) from error
    write_fight_file(file, recording, _about(file.parent.parent.name, config, recorder, number, step), thoughts)
    return file


def _about(run: str, config: Config, recorder: FightRecorder, number: int, step: int | None) -> dict[str, Any]:
    settings = recorder.settings
    about: dict[str, Any] = {
        "run": run,
        "made": utc_stamp(),
        "step": step,
        "fight": number,
        "algorithm": config.algorithm,
        "encoder": config.encoder.name,
    }
    if settings is not None:
        about |= {"engine": settings.engine, "seed": settings.seed, "full": settings.full}
        about |= about_boss(settings.boss, settings.variant, settings.draw_seed(number))
    return about


def _prune(folder: Path) -> None:
    """Only files that were named here; what somebody else put beside them stays."""
    own = sorted(file for file in folder.iterdir() if OWN.fullmatch(file.name))
    for file in own[:-KEPT]:
        with contextlib.suppress(OSError):  # somebody looks at it, perhaps; the next time will do
            file.unlink()
