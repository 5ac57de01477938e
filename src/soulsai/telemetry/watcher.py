"""Watches a run from a process of its own, by its files alone: so it notices a kill, and cannot disturb the run."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soulsai.runs.run import Run
from soulsai.runs.status import GOING, Status, read_status
from soulsai.telemetry.beside import start_beside, step_back
from soulsai.telemetry.notify import STALL_S, WON_AT, Event, Reading, Watch, payload
from soulsai.telemetry.stamps import utc_stamp
from soulsai.telemetry.webhook import Messenger, check_urls

URLS = "SOULS_NOTIFY"
"""Variable with the addresses, apart by spaces: arguments are seen by every user of a machine."""
LOOK_EVERY_S = 2.0
TAIL_BYTES = 256 * 1024
"""More than is written between two looks."""
BEGIN_S = 60.0
"""How long a run may take to begin."""
END_S = 90.0
"""Everything is over within this time of the end of the training, told or not."""
LINGER_S = 3.0
"""How long the end of the training waits for its end to be told: as a rule that takes a fraction of it."""

Say = Callable[[str], None]


def read(run: Run) -> Reading:
    """How the run stands; "failed" if its folder is gone."""
    if not run.folder.is_dir():
        return Reading("failed")
    going = run.is_locked()
    status, rows = run.status(), _last_rows(run.metrics_file)
    # While somebody trains, another state is that of an earlier time, or one that comes true in a moment.
    state = status.state if status.state in GOING or not going else "running"
    return Reading(
        state,
        max(status.step, *(_whole(row.get("step")) for row in rows), 0),
        status.steps,
        *_win_rate(status, rows),
        workers=next((value for row in reversed(rows) if (value := _number(row, "fleet/workers")) is not None), None),
    )


def _last_rows(file: Path) -> list[dict[str, Any]]:
    """The whole rows at the end of the file; what is damaged is left out."""
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            start = max(0, size - TAIL_BYTES)
            stream.seek(start)
            lines = stream.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return []
    rows = []
    for line in lines[1 if start else 0 : -1]:
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


def _win_rate(status: Status, rows: Sequence[dict[str, Any]]) -> tuple[float | None, float | None, float | None]:
    names = ("win_rate/evaluation", "win_rate/evaluation_low", "win_rate/evaluation_high")
    if status.state == "finished" and status.win_rate is not None:
        return status.win_rate, status.win_rate_low, status.win_rate_high
    for row in reversed(rows):
        rate, low, high = (_number(row, name) for name in names)
        if rate is not None:
            return rate, low, high
    return status.win_rate, status.win_rate_low, status.win_rate_high


def _number(row: dict[str, Any], name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def has_begun(run: Run, limit_s: float, given_up: Callable[[], bool] = lambda: False) -> bool:
    """Wait until somebody trains there; False if nobody does within the limit."""
    until_s = time.monotonic() + limit_s
    while not run.is_locked():
        if time.monotonic() > until_s or given_up():
            return False
        time.sleep(0.1)
    return True


def follow(
    run: Run, watch: Watch, tell: Callable[[Event], None], *, hurry: threading.Event, every_s: float = LOOK_EVERY_S
) -> str:
    """Tell what happens until the run has ended; the state in which it did. `hurry` asks for a look now."""
    while True:
        reading = read(run)
        for event in watch.look(reading, time.monotonic()):
            tell(event)
        if reading.state not in GOING:
            return reading.state
        # Once whoever trains is gone the run is over as soon as its lock is free, which may be a moment later.
        hurried = hurry.wait(every_s)
        if hurried:
            time.sleep(0.05)


@contextmanager
def notify_child(
    folder: Path, urls: Sequence[str], say: Say, *, won_at: float = WON_AT, stall_s: float = STALL_S
) -> Iterator[None]:
    """Tell webhooks of the run in `folder` while it trains in this block, and how it ended, from another process.

    ConfigError for addresses that cannot be used. `say` gets, from another thread, a line if a webhook is broken.
    """
    check_urls(urls)
    if not urls:
        yield
        return
    words = [str(folder.absolute()), "--won-at", str(won_at), "--stall-s", str(stall_s), "--since", utc_stamp()]
    try:
        process = start_beside(
            __name__, words, secrets={URLS: " ".join(urls)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError as error:
        say(f"nobody is notified of this run: {error.strerror or error}")
        yield
        return
    threading.Thread(target=_listen, args=(process, say), name="news of webhooks", daemon=True).start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LINGER_S)


def _listen(process: subprocess.Popen[bytes], say: Say) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in process.stdout or ():
            say(line.decode(errors="replace").strip())


def main() -> None:
    """The process beside a training, whose end it notices by the end of its input."""
    step_back()
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--won-at", type=float, required=True)
    parser.add_argument("--stall-s", type=float, required=True)
    parser.add_argument("--since", required=True)
    given = parser.parse_args()
    run, over = Run(given.folder), threading.Event()
    threading.Thread(target=_await_end, args=(over,), daemon=True).start()
    messenger = Messenger(os.environ.pop(URLS, "").split(), _print)
    watch = Watch(run.name, won_at=given.won_at, stall_s=given.stall_s)
    if has_begun(run, math.inf, over.is_set) or _was_quick(run, given.since):
        follow(run, watch, lambda event: messenger.send(payload(run.name, event)), hurry=over)
    messenger.drain(END_S)


def _was_quick(run: Run, since: str) -> bool:
    """Whether the run began and ended while this process was still starting."""
    status = read_status(run.status_file)
    return status is not None and status.updated >= since


def _await_end(over: threading.Event) -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.buffer.read(1024):
            pass
    over.set()
    time.sleep(END_S)
    os._exit(1)


def _print(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
