"""Everything the page can show, as plain values; no web server is needed to ask for it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsai.dashboard.cache import ColumnCache
from soulsai.dashboard.evaluations import Evaluations, newest
from soulsai.dashboard.fleet import Fleets
from soulsai.dashboard.history import Answer, Histories, History
from soulsai.dashboard.library import Dossier, Entry, Library, is_inside
from soulsai.errors import RunError
from soulsgym.errors import MisuseError, SoulsError

if TYPE_CHECKING:
    from soulsai.telemetry.prometheus import RunReading

IN_EVENT = ("state", "step", "steps", "rows", "win_rate", "win_rate_low", "win_rate_high", "elapsed_s", "problem")


class Board:
    """The runs of a folder, with all that is known of them."""

    def __init__(self, root: Path, cache: ColumnCache | None = None) -> None:
        self.library = Library(root)
        self._histories = Histories(cache)
        self._fleets = Fleets()
        self._evaluations = Evaluations()

    def close(self) -> None:
        """End all reading."""
        self._histories.close()

    def runs(self) -> dict[str, Any]:
        """All runs."""
        self._histories.tidy()
        return {"root": str(self.library.root), "runs": [self._with_rows(entry) for entry in self.library.entries()]}

    def _with_rows(self, entry: Entry) -> Entry:
        """Of runs that are looked at, the number of rows is known."""
        dossier = self.library.known(entry["id"])
        history = self._histories.known(dossier.metrics_file) if dossier else None
        if history is None or not history.is_complete:
            return entry
        return {**entry, "rows": history.rows}

    def run(self, dossier: Dossier) -> dict[str, Any]:
        """Everything about a run but its curves."""
        history = self._history(dossier)
        rows, share, damaged = history.progress() if history else (0, 1.0, 0)
        return {
            **dossier.entry(),
            "config": _or_empty(lambda: dossier.text("config.toml")),
            "versions": _versions(dossier),
            "metrics": [_declared(name) for name in (history.names() if history else [])],
            "asked": asked(dossier),
            "log": dossier.log(),
            "rows": rows,
            "damaged": damaged,
            "reading": round(share, 4),
        }

    def series(self, dossier: Dossier, names: Sequence[str], axis: str, low: float, high: float, points: int) -> Answer:
        """Curves of a run."""
        history = self._history(dossier)
        if history is None:
            return Answer(0, True, {name: {"x": [], "y": []} for name in names})
        return history.series(names, axis, low, high, points)

    def names(self, dossier: Dossier) -> list[str]:
        """The metrics of a run that occur."""
        history = self._history(dossier)
        return history.names() if history else []

    def _history(self, dossier: Dossier) -> History | None:
        file = dossier.metrics_file
        return self._histories.of(file) if is_inside(file, dossier.folder) else None

    def fleet(self, dossier: Dossier) -> dict[str, Any]:
        """The fleet of a run."""
        return self._fleets.look(dossier)

    def evaluations(self, dossier: Dossier) -> list[dict[str, Any]]:
        """The evaluations of a run."""
        return self._evaluations.list(dossier)

    def evaluation(self, dossier: Dossier, name: str) -> dict[str, Any] | None:
        """One of them; None if there is none of this name."""
        return self._evaluations.detail(dossier, name)

    def event(self, id: str) -> dict[str, Any]:
        """A run in short, for those who look at it."""
        dossier = self.library.find(id)
        if dossier is None:
            return {"id": id, "gone": True}
        entry = next((entry for entry in self.runs()["runs"] if entry["id"] == id), None) or dossier.entry()
        name, moment = newest(dossier)
        fights = dossier.recordings()
        return {
            "id": id,
            **{key: entry[key] for key in IN_EVENT},
            "asked": asked(dossier),
            "newest_fight": fights[0].stem if fights else None,
            "newest_evaluation": name,
            "evaluated": moment,
            "gone": False,
        }

    def readings(self) -> Iterator[RunReading]:
        """All runs for Prometheus."""
        from soulsai.telemetry.prometheus import RunReading

        entries = self.library.entries()
        for entry in entries:
            dossier = self.library.known(entry["id"])
            if dossier is None:
                continue
            dossier.tail.deepen()
            report = self.fleet(dossier) if entry["served"] else {}
            yield RunReading(
                run=entry["id"],
                state=entry["state"],
                step=entry["step"],
                steps=entry["steps"],
                values=_judged(entry) | dossier.tail.values,
                updated_s=dossier.tail.updated_s,
                fleet=report if report.get("now") else None,
            )


def _judged(entry: Entry) -> dict[str, float]:
    """The last evaluation, which may be long ago."""
    names = {"win_rate": "", "win_rate_low": "_low", "win_rate_high": "_high"}
    return {f"win_rate/evaluation{end}": entry[key] for key, end in names.items() if entry[key] is not None}


def asked(dossier: Dossier) -> list[str]:
    """What the run was asked for and has not done yet."""
    from soulsai.runs.requests import asked

    return list(asked(dossier.run))


def ask(dossier: Dossier, action: object) -> list[str]:
    """Ask a run for something; MisuseError for what nobody can be asked for, RunError if nobody is there to hear it."""
    from soulsai.runs.requests import ACTIONS, FOLDER, ask

    if action not in ACTIONS:
        raise MisuseError(f"action {str(action)[:40]!r} is none of {', '.join(ACTIONS)}")
    if not is_inside(dossier.folder / FOLDER, dossier.folder):
        raise RunError(f"{dossier.folder / FOLDER}: is not in the folder of the run; remove it")
    ask(dossier.run, str(action))
    return asked(dossier)


def _or_empty(read: Callable[[], str]) -> str:
    try:
        return read()
    except SoulsError:
        return ""


def _versions(dossier: Dossier) -> dict[str, Any]:
    try:
        versions = json.loads(_or_empty(lambda: dossier.text("versions.json")))
    except ValueError:
        return {}
    return versions if isinstance(versions, dict) else {}


def _declared(name: str) -> dict[str, str]:
    from soulsai.telemetry.metrics import metric

    try:
        found = metric(name)
    except MisuseError:  # of another version of this program
        return {"name": name, "unit": "", "kind": "gauge", "text": ""}
    return {"name": name, "unit": found.unit, "kind": found.kind, "text": found.text}


def place(text: str, otherwise: float) -> float:
    """A place on an axis as a request names it; MisuseError if it is none."""
    if not text:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise MisuseError(f"{text[:40]!r} is no place on an axis; give a number")
    return value
