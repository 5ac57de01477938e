"""Evaluations of a run for the page."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from soulsai.dashboard.library import Dossier, is_inside
from soulsai.errors import RunError
from soulsai.runs.fight_files import short_name
from soulsai.telemetry.stamps import utc_stamp
from soulsgym.errors import SoulsError

if TYPE_CHECKING:
    from soulsai.evaluation.evaluation import Evaluation

LIVE = "judged"
"""The name of the newest evaluation while training; the others are named as their files."""
LONGEST_BYTES = 64 << 20
MOST_KEPT = 64
"""Evaluations in memory: they do not change, and are asked for again and again."""


class Evaluations:
    """Reads evaluations, each once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Path, int, int], Evaluation | SoulsError] = OrderedDict()

    def list(self, dossier: Dossier) -> list[dict[str, Any]]:
        """All evaluations of a run in a line each, the newest first; files that are damaged are left out."""
        found = []
        for name, file in places(dossier).items():
            try:
                found.append(_line(name, self._read(file)))
            except SoulsError:
                continue
        return found

    def detail(self, dossier: Dossier, name: str) -> dict[str, Any] | None:
        """Everything about one; None if there is none of this name."""
        file = places(dossier).get(name)
        return None if file is None else _detail(self._read(file))

    def _read(self, file: Path) -> Evaluation:
        try:
            about = file.stat()
        except OSError as error:
            raise RunError(f"{file}: is gone; it was there a moment ago") from error
        key = file, about.st_mtime_ns, about.st_size
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = _parsed(file, about.st_size)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if isinstance(kept, SoulsError):
            raise kept
        return kept


def places(dossier: Dossier) -> dict[str, Path]:
    """The files of a run's evaluations by name, the newest first."""
    found = {file.stem: file for file in dossier.evaluations() if file.stem != LIVE}
    live = dossier.folder / f"{LIVE}.json"
    if live.is_file() and is_inside(live, dossier.folder):
        found[LIVE] = live
    return dict(sorted(found.items(), key=lambda item: _changed_ns(item[1]), reverse=True))


def newest(dossier: Dossier) -> tuple[str | None, str | None]:
    """The name of the newest evaluation, and when it was written."""
    name, file = next(iter(places(dossier).items()), (None, None))
    if file is None:
        return None, None
    return name, utc_stamp(datetime.fromtimestamp(_changed_ns(file) / 1e9, UTC))


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _parsed(file: Path, size: int) -> Evaluation | SoulsError:
    from soulsai.evaluation.evaluation import Evaluation

    if size > LONGEST_BYTES:
        return RunError(f"{file}: is {size >> 20} MB long, which no evaluation is; remove it")
    try:
        return Evaluation.from_json(file.read_text(encoding="utf-8"))
    except SoulsError as error:
        return RunError(f"{file}: {error}")
    except (OSError, ValueError) as error:
        return RunError(f"{file}: cannot be read ({error}); evaluate again")


def _line(name: str, evaluation: Evaluation) -> dict[str, Any]:
    low, high = evaluation.interval
    return {
        "name": name,
        "headline": evaluation.headline,
        "win_rate": evaluation.win_rate,
        "low": low,
        "high": high,
        "fights": evaluation.fights,
        "settings": _settings(evaluation),
        "live": name == LIVE,
    }


def _settings(evaluation: Evaluation) -> dict[str, Any]:
    """As the page shows them: a file by its name."""
    settings = evaluation.settings
    return dataclasses.asdict(settings) | {"boss": short_name(settings.boss), "variant": short_name(settings.variant)}


def _detail(evaluation: Evaluation) -> dict[str, Any]:
    from soulsai.evaluation.tally import GRID_M

    over_time = evaluation.damage_over_time
    low, high = evaluation.interval
    return {
        "headline": evaluation.headline,
        "settings": _settings(evaluation),
        "fights": evaluation.fights,
        "wins": evaluation.wins,
        "win_rate": evaluation.win_rate,
        "low": low,
        "high": high,
        "time_outs": evaluation.time_outs,
        "phases": [dataclasses.asdict(phase) for phase in evaluation.phases],
        "attacks": [{**dataclasses.asdict(attack), "dodge_rate": attack.dodge_rate} for attack in evaluation.attacks],
        "deaths": dataclasses.asdict(evaluation.deaths),
        "hits": dataclasses.asdict(evaluation.hits),
        "places": evaluation.places.tolist(),
        "hit_places": evaluation.hit_places.tolist(),
        "grid_m": GRID_M,
        "damage_over_time": None if over_time is None else dataclasses.asdict(over_time),
    }
