"""`souls` commands as processes of this machine, for tests and benchmarks that end them without warning."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "SOULS_FAULTS_MARK"
"""In the environment of every process that is started here, and of all that those start."""
LIMIT_S = 600.0
"""For anything that takes a few seconds on a machine that has nothing else to do."""


def ending(process: subprocess.Popen[bytes]) -> str:
    """How a process ended; nothing if it ended well."""
    try:
        return f"ended with code {process.returncode}" if process.wait(LIMIT_S) else ""
    except subprocess.TimeoutExpired:
        return f"is still running after {LIMIT_S:.0f} s"


class Processes:
    """`souls` processes that carry a mark."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self._environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", MARK: mark, "SOULS_REDIS": ""}
        self._mark = mark
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, log: str, *arguments: object, **environment: str) -> subprocess.Popen[bytes]:
        """Start one; what it says goes to a file."""
        with (self.folder / f"{log}.txt").open("ab") as output:
            process = subprocess.Popen(
                self._command(arguments),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment | environment,
                cwd=self.folder,
            )
        self._started.append(process)
        return process

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run one to its end."""
        return subprocess.run(
            self._command(arguments), capture_output=True, text=True, timeout=LIMIT_S, env=self._environment,
            cwd=self.folder,
        )  # fmt: skip

    def said(self, log: str) -> str:
        """What one has said so far."""
        return (self.folder / f"{log}.txt").read_text(errors="replace")

    def alive(self) -> list[psutil.Process]:
        """All processes with the mark, whoever started them."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def end(self) -> None:
        """Kill what is left."""
        for process in self.alive():
            with suppress(psutil.Error):
                process.kill()
        for process in self._started:
            process.wait(LIMIT_S)

    @staticmethod
    def _command(arguments: tuple[object, ...]) -> list[str]:
        return [sys.executable, "-c", "from soulsai.cli.main import main; main()", *map(str, arguments)]


def player_of(pid: int) -> psutil.Process | None:
    """The process that plays, among those that a `souls join` has started."""
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                words = " ".join(child.cmdline())
                if "spawn_main" in words or ("forkserver" in words and child.ppid() != pid):
                    return child
    return None
