"""Watches a run by its files alone, from a process of its own: so it notices a kill, and cannot disturb the run."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from soulsai.errors import RunError
from soulsai.processes.supervisor import Command, step_back
from soulsai.runs.metrics import MetricsReader
from soulsai.runs.run import Run
from soulsai.runs.stamps import utc_stamp
from soulsai.runs.status import GOING, Status, read_status
from soulsai.telemetry.notify import Event, Reading, Watch
from soulsai.telemetry.webhook import check_urls

URLS = "SOULS_NOTIFY"
"""Variable with the addresses, apart by spaces: arguments are seen by every user of a machine."""
SINCE = "SOULS_NOTIFY_SINCE"
"""Variable with the time stamp from which the end of a run is reported, even if it has already ended."""
LOOK_EVERY_S = 1.0
END_S = 90.0
"""How long messages may take to be sent after the end of the training."""
LINGER_S = 3.0
"""How long the end of training waits for the last message."""

Say = Callable[[str], None]


def read(run: Run) -> Reading:
    """The current state of the run; "failed" if its folder is gone."""
    if not run.folder.is_dir():
        return Reading("failed")
    going = run.is_locked()
    status, (step, values) = run.status(), _latest(run)
    # While somebody trains, another state is that of an earlier time, or one that comes true in a moment.
    state = status.state if status.state in GOING or not going else "running"
    return Reading(
        state, max(status.step, step), status.steps, *_win_rate(status, values), workers=values.get("fleet/workers")
    )


def _latest(run: Run) -> tuple[int, dict[str, float]]:
    """The step of the last row, and the last value of each metric; nothing where they cannot be read now."""
    reader = MetricsReader(run.folder)
    try:
        return reader.extent().step, {name: value for name, (_, value) in reader.latest().items()}
    except RunError:
        return 0, {}


def _win_rate(status: Status, values: Mapping[str, float]) -> tuple[float | None, float | None, float | None]:
    rate, low, high = (values.get(f"win_rate/evaluation{end}") for end in ("", "_low", "_high"))
    if rate is None or (status.state == "finished" and status.win_rate is not None):
        return status.win_rate, status.win_rate_low, status.win_rate_high
    return rate, low, high


def has_begun(run: Run, limit_s: float, since: str = "") -> bool:
    """Wait until somebody trains there, or has done so since a time stamp; False if nobody does within the limit."""
    until_s = time.monotonic() + limit_s
    while not run.is_locked():
        status = read_status(run.status_file)
        if since and status is not None and status.updated >= since:
            return True
        if time.monotonic() > until_s:
            return False
        time.sleep(0.1)
    return True


def follow(run: Run, watch: Watch, tell: Callable[[Event], None], *, every_s: float = LOOK_EVERY_S) -> str:
    """Report events until the run ends; return its last state."""
    while True:
        reading = read(run)
        for event in watch.look(reading, time.monotonic()):
            tell(event)
        if reading.state not in GOING:
            return reading.state
        time.sleep(every_s)


@contextmanager
def notify_child(folder: Path, urls: Sequence[str], say: Say) -> Iterator[None]:
    """Have `souls notify` watch the run in `folder` while it trains in this block; it ends by itself after the run.

    ConfigError for addresses that cannot be used. `say` gets, from another thread, a line if a webhook is broken.
    """
    check_urls(urls)
    if not urls:
        yield
        return
    told = {URLS: " ".join(urls), SINCE: utc_stamp()}
    try:
        process = Command.module("soulsai", ["notify", str(folder.absolute())], secrets=told, stderr=subprocess.PIPE)
        process.start()
    except OSError as error:
        say(f"notifications for this run are off: {error.strerror or error}")
        yield
        return
    step_back(process.pid)
    threading.Thread(target=process.listen, args=(say,), name="news of webhooks", daemon=True).start()
    try:
        yield
    finally:
        process.wait(LINGER_S)
