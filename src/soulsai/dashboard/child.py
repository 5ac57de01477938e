"""The page of one run in a process next to its training. If it fails, the training only prints a line."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from soulsai.processes.supervisor import Command, step_back

CHILD = "soulsai.cli.child"
"""The `souls` command that ends when its parent does."""
END_S = 4.0
ADDRESS = re.compile(r"http://\S+")


@contextmanager
def dashboard_child(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Serve the page of a run until the end of the block. `say` gets its address, from another thread, when known."""
    words = ["dashboard", str(folder.absolute())]
    process, is_over = Command.module(CHILD, words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT), threading.Event()
    try:
        process.start()
    except OSError as error:
        say(f"the page does not start ({error.strerror or error}); training continues without it")
        yield
        return
    step_back(process.pid)
    threading.Thread(target=_listen, args=(process, folder, say, is_over), name="news of the page", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
        process.stop(END_S)


def _listen(process: Command, folder: Path, say: Callable[[str], None], is_over: threading.Event) -> None:
    """Report the address, and why the process ended if it was not stopped."""
    reason = "its process was ended"

    def hear(line: str) -> None:
        nonlocal reason
        found = ADDRESS.search(line)
        if found is None:
            reason = line.removeprefix("souls: ") or reason
        elif not is_over.is_set():
            say(f"the page of this run: {found[0]}")

    process.listen(hear)
    if not is_over.is_set():
        again = f"open it again with: souls dashboard {folder}"
        say(f"the page is gone ({reason}); training continues; {again}")
