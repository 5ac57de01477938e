"""Recorded fights of a run by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from soulsai.dashboard.library import Dossier
from soulsgym.errors import SoulsError

Fight = dict[str, Any]


def fights_of(dossier: Dossier) -> list[Fight]:
    """All recorded fights of a run, the newest first; recordings that cannot be read are left out."""
    return [fight for fight, _ in _named(dossier).values()]


def find(dossier: Dossier, name: str) -> tuple[Fight, Path] | None:
    """What is known of a fight, and its file; None if there is none of this name."""
    return _named(dossier).get(name)


def _named(dossier: Dossier) -> dict[str, tuple[Fight, Path]]:
    from soulsai.dashboard.scenes import fight_name, fights_in

    found: dict[str, tuple[Fight, Path]] = {}
    for file in dossier.recordings():
        try:
            fights = fights_in(file)
        except (SoulsError, OSError):
            continue
        for fight in fights:
            name = fight_name(file, fight["number"])
            found.setdefault(name, ({"name": name, "file": file.name, **fight}, file))
    return found
