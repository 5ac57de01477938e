"""What a run is asked for from outside while it trains: save, pause, unpause, stop.

A request is an empty file in the run's folder. So it needs no server, works for every kind of training, and whoever may
write there may ask; the file is removed when the request was met.
"""

from __future__ import annotations

import contextlib
import time

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write
from soulsai.runs.run import Run
from soulsgym.errors import MisuseError

ACTIONS = ("save", "pause", "unpause", "stop")
KEPT = ("save", "pause", "stop")
"""Those that are files; to unpause is to take back the pause."""
FOLDER = "control"
FORGET, GO_BACK = "forget-", "go back"
"""The beginning of files that ask to forget a name, and what they hold where that is to be done thoroughly."""
LOOK_EVERY_S = 0.25


def ask(run: Run, action: str) -> None:
    """Ask for something; RunError if nobody trains there who could hear it."""
    if action not in ACTIONS:
        raise MisuseError(f"request {action!r} is none of {', '.join(ACTIONS)}")
    if not run.is_locked():
        raise RunError(f"{run.folder}: is not being trained; list runs with `souls runs`")
    folder = run.folder / FOLDER
    try:
        if action == "unpause":
            (folder / "pause").unlink(missing_ok=True)
        else:
            folder.mkdir(exist_ok=True)
            (folder / action).touch()
    except OSError as error:
        raise cannot_write(folder / action, error) from error


def ask_to_forget(run: Run, name: str, *, go_back: bool) -> None:
    """Ask for what a name gave to be forgotten: by whoever trains there now, or next."""
    folder = run.folder / FOLDER
    try:
        folder.mkdir(exist_ok=True)
        (folder / f"{FORGET}{name}").write_text(GO_BACK if go_back else "", encoding="utf-8")
    except OSError as error:
        raise cannot_write(folder, error) from error


def to_forget(run: Run) -> dict[str, bool]:
    """The names to forget, and whether to go back to before they came."""
    found = {}
    for file in sorted((run.folder / FOLDER).glob(f"{FORGET}*")):
        with contextlib.suppress(OSError):
            found[file.name.removeprefix(FORGET)] = file.read_text(encoding="utf-8") == GO_BACK
    return found


def open_requests(run: Run) -> tuple[str, ...]:
    """What is asked for and not met yet; a pause is met when it is taken back."""
    return tuple(action for action in KEPT if (run.folder / FOLDER / action).exists())


class Requests:
    """The end of whoever trains."""

    def __init__(self, run: Run) -> None:
        self._run, self._look_s, self._forget_s = run, 0.0, 0.0

    def take(self) -> tuple[str, ...]:
        """What is asked for; looked up a few times a second only, so it may be asked for after every step.

        To look is a sign of life.
        """
        now_s = time.monotonic()
        if now_s < self._look_s:
            return ()
        self._look_s = now_s + LOOK_EVERY_S
        self._run.beat()
        return open_requests(self._run)

    def names_to_forget(self) -> list[tuple[str, bool]]:
        """Names whose experience is to be forgotten, looked up about once a second."""
        now_s = time.monotonic()
        if now_s < self._forget_s:
            return []
        self._forget_s = now_s + 1.0
        return list(to_forget(self._run).items())

    def finish(self, *actions: str) -> None:
        """These were met; before training begins, all that an earlier process was asked for."""
        for action in actions:
            with contextlib.suppress(OSError):  # Met again a little later, then; nothing worse can come of it.
                (self._run.folder / FOLDER / action).unlink(missing_ok=True)
