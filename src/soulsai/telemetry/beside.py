"""Processes beside the training: whatever happens in them, they share neither its terminal nor its signals with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

NEW_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""Windows' way to keep Ctrl-C away."""
NICE = 5
"""Training comes first."""


def start_beside(
    module: str,
    words: Sequence[str] = (),
    *,
    secrets: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Run a module of this package in a process of its own; `secrets` reach it where no list of processes shows them.

    It has no terminal to print on or to ask questions at, and a Ctrl-C there does not reach it.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(secrets or {})},
        bufsize=0,
        start_new_session=sys.platform != "win32",
        creationflags=NEW_GROUP,
    )


def end_beside(process: subprocess.Popen[bytes]) -> None:
    """End it now, with everything that it has started itself."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5.0)


def step_back() -> None:
    """Let all others go first; called within such a process."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.nice(NICE)
