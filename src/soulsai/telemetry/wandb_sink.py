"""Metrics for Weights & Biases, by way of a process of its own: see wandb_child.

Its library starts threads and a server, prints, asks for a login and has something to do when Python ends. None of
that happens in the process that trains: this sink only puts rows into a pipe.
"""

from __future__ import annotations

import contextlib
import json
import math
import queue
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write, write_atomically
from soulsai.telemetry.beside import end_beside, start_beside
from soulsgym.packages import require

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.runs.run import Run

CHILD = "soulsai.telemetry.wandb_child"
FOLDER = "wandb"
"""In the run's folder: what W&B keeps itself, and what its process has printed."""
LOG, IDENTITY = "process.log", "identity.json"
LONGEST_QUEUE = 10_000
"""Rows that wait for a process that does not take them, before it is given up: hours of them."""
FINISH_S = 25.0
"""How long the end of a run may wait for W&B to send the rest; longer than it takes to find that nobody answers."""


def wandb_sink(project: str, run: Run, config: Config, say: Callable[[str], None]) -> WandbSink:
    """The sink of a run, new or resumed: a run is always the same run at W&B."""
    return WandbSink(project, run.name, asdict(config), run.folder, say)


class WandbSink:
    """Gives rows to W&B. It begins at once, waits for nothing but the end, and fails alone."""

    name = "wandb"

    def __init__(
        self, project: str, run_name: str, config: Mapping[str, Any], folder: Path, say: Callable[[str], None]
    ) -> None:
        require("wandb")
        self._say, self._folder = say, folder / FOLDER
        opening = {"project": project, "name": run_name, "config": config, "folder": str(folder)}
        opening["id"] = _identity(self._folder, project)
        self._rows: queue.Queue[bytes | None] = queue.Queue(LONGEST_QUEUE)
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        try:
            with (self._folder / LOG).open("ab") as log:
                self._process = start_beside(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        except OSError as error:
            raise cannot_write(self._folder / LOG, error) from error
        self._put(opening)
        for work in (self._feed, self._listen):
            threading.Thread(target=work, name=f"wandb {work.__name__}", daemon=True).start()

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Put a row on its way; RunError if nobody takes rows any more."""
        self._tell()
        if self._process.poll() is not None:
            self._give_up("its process has ended")
        plain = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        try:
            self._put({"step": int(step), "values": {"elapsed_s": round(time_s, 3), **plain}})
        except queue.Full:
            self._give_up(f"it has not taken the last {LONGEST_QUEUE:,} rows")

    def flush(self) -> None:
        """Nothing to wait for: W&B sends when it can."""

    def close(self) -> None:
        """Wait some seconds for W&B to send the rest, then let go; what it keeps on the disk stays."""
        with contextlib.suppress(queue.Full):
            self._put({"close": True})
            self._rows.put_nowait(None)
        try:
            self._process.wait(FINISH_S)
        except subprocess.TimeoutExpired:
            self._say(
                f"wandb has not taken everything within {FINISH_S:.0f} s; later: wandb sync {self._folder}/*run-*"
            )
        end_beside(self._process)
        self._tell()

    def position(self) -> None:
        """Nothing: W&B remembers itself how far a run is, and takes no row of an earlier step."""
        return None

    def _put(self, message: Mapping[str, Any]) -> None:
        self._rows.put_nowait(json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n")

    def _give_up(self, why: str) -> None:
        end_beside(self._process)
        self._tell()
        raise RunError(f"{why}; {self._folder / LOG} may say more")

    def _tell(self) -> None:
        """Say what the process had to say: only here, as whoever shows it expects one voice."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._say(self._news.get_nowait())

    def _feed(self) -> None:
        stream = self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            while stream and (line := self._rows.get()) is not None:
                stream.write(line)
        with contextlib.suppress(OSError):
            if stream:
                stream.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout or ():
                self._news.put(line.decode(errors="replace").strip())


def _identity(folder: Path, project: str) -> str:
    """What the run is called at W&B, in that project; made once and kept in the run's folder."""
    file = folder / IDENTITY
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        if known["project"] == project and isinstance(known["id"], str):
            return str(known["id"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the first time, or damaged: a new one is no loss but of the link to the old
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    new = f"{time.strftime('%Y%m%d')}-{secrets.token_hex(4)}"
    write_atomically(file, json.dumps({"project": project, "id": new}))
    return new
