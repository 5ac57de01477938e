"""The page of one run in a process beside its training: what happens to it is one line of news there, nothing more."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soulsai.dashboard.server import HOST, Wish, end_with_input, serve
from soulsai.telemetry.beside import end_beside, start_beside, step_back
from soulsgym.errors import SoulsError

MODULE = "soulsai.dashboard.child"
START_S = 60.0
"""How long it may take until it answers, beside a training that comes first; that does not wait for it."""
END_S = 4.0
LONGEST_LINE = 2000

Say = Callable[[str], None]


@contextmanager
def dashboard_child(
    folder: Path, say: Say, *, host: str = HOST, port: int | None = None, token: str = ""
) -> Iterator[None]:
    """Serve the page of a run until the end of the block. `say` gets its address, from another thread, when known."""
    try:
        process = start_beside(MODULE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        say(f"the page does not start ({error.strerror or error}); training goes on without it")
        yield
        return
    page = _Page(process, folder, say)
    page.open({"root": str(folder.absolute()), "host": host, "port": port, "token": token})
    try:
        yield
    finally:
        page.close()


class _Page:
    """Watches over the process, in threads that wait most of the time."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, say: Say) -> None:
        self._process = process
        self._folder = folder
        self._say = say
        self._closing = False
        self._told = threading.Lock()
        self._is_up = False
        self._ended = False

    def open(self, wish: dict[str, Any]) -> None:
        """Tell the process what to serve: not by its command line, which all users of the machine can read."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # It has ended already; its news says why.
            self._process.stdin.write(json.dumps(wish).encode() + b"\n")
            self._process.stdin.flush()
        self._timer = threading.Timer(START_S, self._too_late)
        self._timer.daemon = True
        self._timer.start()
        threading.Thread(target=self._listen, name="news of the page", daemon=True).start()

    def close(self) -> None:
        """End it: the end of its input is the sign; if it does not see that, it is ended."""
        self._closing = True
        self._timer.cancel()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            end_beside(self._process)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        reason = ""
        with contextlib.suppress(OSError, ValueError):
            while line := self._process.stdout.readline(LONGEST_LINE):
                news = _read(line)
                reason = news.get("error", reason)
                if "url" in news:
                    self._is_up = True
                    self._timer.cancel()
                    if not self._closing:
                        self._say(f"the page of this run: {news['url']}")
        self._timer.cancel()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._end(reason or ("its process was ended" if self._is_up else "its process ended at once"))

    def _too_late(self) -> None:
        if not self._is_up:
            self._end(f"it did not answer within {START_S:.0f} s")
            end_beside(self._process)

    def _end(self, reason: str) -> None:
        """One line, whichever thread notices first."""
        with self._told:
            if self._ended or self._closing:
                return
            self._ended = True
        again = f"open it again with: souls dashboard {self._folder}"
        self._say(f"the page is gone ({reason}); training goes on; {again}")


def _read(line: bytes) -> dict[str, str]:
    try:
        news = json.loads(line)
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in news.items()} if isinstance(news, dict) else {}


def main() -> None:
    """The process beside: serves what its first line of input names, until its input ends."""
    step_back()
    news = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # Whatever else is printed is not for the training.
    try:
        wish = json.loads(sys.stdin.buffer.readline(LONGEST_LINE))
        serve(
            Wish(Path(wish["root"]), wish["host"], wish["port"], wish["token"]),
            lambda url: _tell(news, {"url": url}),
            until=end_with_input,
        )
    except (SoulsError, ValueError, KeyError) as error:
        _tell(news, {"error": str(error) or type(error).__name__})
        raise SystemExit(1) from None


def _tell(news: Any, what: dict[str, str]) -> None:
    with contextlib.suppress(OSError):
        news.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    main()
