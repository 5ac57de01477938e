"""One trial: a training run in a process of its own, followed through its files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from soulsai.errors import RunError
from soulsai.evaluation.evaluation import Evaluation
from soulsai.processes.supervisor import KILL_S, Command
from soulsai.runs.files import cannot_write
from soulsai.runs.metrics import MetricsReader
from soulsai.runs.run import Run
from soulsai.runs.status import Status, read_status

STOP_S = 120.0
"""For saving and leaving, before a process is killed; an evaluation cannot be interrupted."""
ORPHAN_S = 100.0
"""For a training whose sweep was killed: it sees that, saves and ends."""
LAST_WORDS = 4000
CHILD = [sys.executable, "-m", "soulsai.cli.child"]
"""The `souls` command, with an eye on its parent."""
FINISHED = ""
"""How a training ends that was trained to its end; others end with a problem."""


class Training:
    """A training run in a process of its own."""

    def __init__(self, folder: Path, log_file: Path, metric: str, every: int) -> None:
        self.folder, self._log_file, self._every = folder, log_file, every
        self._metrics, self._metric, self._next_row = MetricsReader(folder), metric, 0
        self._process: Command | None = None
        self._stopped_s: float | None = None
        self.scores: dict[int, float] = {}  # by steps, in whole intervals between evaluations

    def begin(self, preset: str, settings: Sequence[str]) -> None:
        """Start it; RunError if a new process cannot be started."""
        arguments = ["train", preset, *(word for one in settings for word in ("--set", one))]
        self._start([*arguments, "--run", str(self.folder)])

    def go_on(self) -> None:
        """Go on from the last checkpoint, or read the end of one that was finished already."""
        if (status := self.status()) is None or status.state != "finished":
            self._start(["train", "--resume", "--run", str(self.folder)])

    def _start(self, arguments: Sequence[str]) -> None:
        # Whoever sweeps tries odd settings on purpose, so that the preflight has no say.
        words = [*CHILD, *arguments, "--plain", "--accept-all"]
        try:
            with self._log_file.open("ab") as log:
                self._process = Command(words, stdout=log, stderr=log).start()
        except OSError as error:
            raise cannot_write(self._log_file, error) from error

    def new_scores(self) -> list[tuple[int, float]]:
        """Evaluations since the last call. Trials evaluate at slightly different steps; here they are made equal."""
        try:
            values = self._metrics.since(self._metric, self._next_row)
        except RunError:
            return []  # for now, or it is damaged: the trial has no score then
        found = []
        for row, step, value in values:
            self._next_row = row + 1
            place = step // self._every * self._every
            if place and place not in self.scores:
                self.scores[place] = value
                found.append((place, value))
        return found

    def status(self) -> Status | None:
        """How far it is."""
        return read_status(self.folder / "status.json")

    def ending(self) -> str | None:
        """FINISHED, or why it ended before, in its own words; None while it lasts."""
        code = 0 if self._process is None else self._process.exit_code()
        if code is None:
            if self._stopped_s is not None and time.monotonic() - self._stopped_s > STOP_S:
                self.kill()
            return None
        status = self.status()
        if code == 0 and status is not None and status.state == "finished":
            return FINISHED
        return self._last_words(code)

    def stop(self) -> None:
        """Ask it to save and stop; `ending` tells when it has, and kills it if it takes too long."""
        if self._process is not None and self._stopped_s is None:
            self._stopped_s = time.monotonic()
            self._process.ask()

    def wait_stopped(self) -> None:
        """Stop, and wait until it has ended."""
        self.stop()
        while self.ending() is None:
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once; its last checkpoint stays."""
        if self._process is not None and self._process.exit_code() is None:
            self._process.kill()
            self._process.wait(KILL_S)

    def _last_words(self, code: int) -> str:
        try:
            text = self._log_file.read_bytes()[-LAST_WORDS:].decode(errors="replace")
        except OSError:
            text = ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = next((line for line in reversed(lines) if line.startswith("souls: ")), lines[-1] if lines else "")
        return f"souls train ended with {code}: {said.removeprefix('souls: ')[:300] or 'it said nothing'}"

    def score(self, how: str) -> float | None:
        """The figure that trials are compared by: of all evaluations their mean, or that after training."""
        self.new_scores()
        if how == "last" and (final := final_score(self.folder)) is not None:
            return final
        if not self.scores:
            return None
        return fmean(self.scores.values()) if how == "mean" else self.scores[max(self.scores)]


def final_score(folder: Path) -> float | None:
    """What the evaluation after training found; None if there was none.

    That is a win rate, against several bosses the lowest, or a mean return.
    """
    try:
        final = {name.partition("-final")[2]: text for name, text in Run(folder).evaluations() if "-final" in name}
        return min(_score(text) for text in final.values())
    except (ValueError, KeyError, TypeError, RunError):
        return None


def _score(text: str) -> float:
    found = json.loads(text)
    return fmean(found["returns"]) if "returns" in found else float(Evaluation.from_json(text).win_rate)


def can_go_on(folder: Path) -> bool:
    """Whether a training can be continued in a folder; waits a moment for one whose sweep was killed."""
    try:
        run = Run.open(folder)
    except RunError:
        return False
    deadline_s = time.monotonic() + ORPHAN_S
    while run.is_locked():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.1)
    return any(run.checkpoints.glob("[!.]*"))
