"""Evaluations of a run for the page."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsai.dashboard.library import LIVE, RunDetails, creation_time
from soulsai.errors import RunError
from soulsai.runs.fight_files import short_name
from soulsgym.errors import SoulsError

if TYPE_CHECKING:
    from soulsai.evaluation.evaluation import Evaluation

LONGEST_BYTES = 64 << 20


def evaluations_of(details: RunDetails) -> list[dict[str, Any]]:
    """All evaluations of a run in a line each, the newest first; files that are damaged are left out."""
    found = []
    for name, file in details.evaluations().items():
        try:
            evaluation = _read(file)
        except SoulsError:
            continue
        found.append((creation_time(file, evaluation.made), {"name": name, "live": name == LIVE, **_line(evaluation)}))
    return [entry for _, entry in sorted(found, key=lambda each: each[0], reverse=True)]


def evaluation_of(details: RunDetails, name: str) -> dict[str, Any] | None:
    """One evaluation in full; None if there is none of this name."""
    from soulsai.evaluation.tables import attack_name, rename_groups
    from soulsai.evaluation.tally import GRID_M

    if (file := details.evaluations().get(name)) is None:
        return None
    evaluation = _read(file)
    over_time = evaluation.damage_over_time
    return _line(evaluation) | {
        "wins": evaluation.wins,
        "time_outs": evaluation.time_outs,
        "phases": [dataclasses.asdict(phase) for phase in evaluation.phases],
        "attacks": [
            dataclasses.asdict(attack) | {"name": attack_name(evaluation, attack.name), "dodge_rate": attack.dodge_rate}
            for attack in evaluation.attacks
        ],
        "deaths": dataclasses.asdict(rename_groups(evaluation, evaluation.deaths)),
        "hits": dataclasses.asdict(rename_groups(evaluation, evaluation.hits)),
        "places": evaluation.places.tolist(),
        "hit_places": evaluation.hit_places.tolist(),
        "grid_m": GRID_M,
        "damage_over_time": None if over_time is None else dataclasses.asdict(over_time),
    }


def _line(evaluation: Evaluation) -> dict[str, Any]:
    (low, high), settings = evaluation.interval, evaluation.settings
    names = {"boss": short_name(settings.boss), "variant": short_name(settings.variant)}  # of files, not their paths
    return {
        "headline": evaluation.headline,
        "win_rate": evaluation.win_rate,
        "low": low,
        "high": high,
        "fights": evaluation.fights,
        "step": evaluation.step,
        "settings": dataclasses.asdict(settings) | names,
    }


def _read(file: Path) -> Evaluation:
    try:
        about = file.stat()
    except OSError as error:
        raise RunError(f"{file}: is gone; it was there a moment ago") from error
    found = _parse(file, about.st_size, about.st_mtime_ns)
    if isinstance(found, SoulsError):
        raise found
    return found


@lru_cache(maxsize=64)
def _parse(file: Path, size: int, _changed_ns: int) -> Evaluation | SoulsError:
    """Cached until the file changes."""
    from soulsai.evaluation.evaluation import Evaluation

    if size > LONGEST_BYTES:
        return RunError(f"{file}: is {size >> 20} MB long, which no evaluation is; remove it")
    try:
        return Evaluation.from_json(file.read_text(encoding="utf-8"))
    except SoulsError as error:
        return RunError(f"{file}: {error}")
    except (OSError, ValueError) as error:
        return RunError(f"{file}: cannot be read ({error}); evaluate again")
