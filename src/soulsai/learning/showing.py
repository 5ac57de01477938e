"""Keeps fights of an evaluation beside a run, with what the policy thought, for whoever wants to look."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from soulsai.acting.policy import NetworkPolicy, Policy
from soulsai.config.schema import Config
from soulsai.evaluation.thinking import think
from soulsai.evaluation.thoughts import about_boss, write_told
from soulsai.evaluation.witness import SeenFight, Witness
from soulsai.runs.files import cannot_write

KEPT = 40
"""Files of fights that stay beside a run; older ones make room."""
OWN = re.compile(r"eval-(\d{12})-(first|lost)\.npz")


def keep_fights(folder: Path, config: Config, policy: Policy, witness: Witness, step: int) -> list[Path]:
    """Write the first fight of an evaluation and the first lost one into `folder`, and remove the oldest of such files.

    The files that were written; where the first fight was lost, that is one.
    """
    chosen: dict[str, SeenFight] = {}
    first, lost = witness.first(), witness.lost()
    if first is not None:
        chosen["first"] = first
    if lost and lost[0] != 0:
        chosen["lost"] = witness.fight(lost[0])
    files = [
        keep_fight(folder / f"eval-{step:012d}-{name}.npz", config, policy, witness, fight, step)
        for name, fight in chosen.items()
    ]
    _prune(folder)
    return files


def keep_fight(
    file: Path, config: Config, policy: Policy | None, witness: Witness, fight: SeenFight, step: int | None = None
) -> Path:
    """Write one fight that a witness saw, with what the policy thought if that can be looked into; the file."""
    thoughts = think(config, policy, fight.recording) if isinstance(policy, NetworkPolicy) else None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(file, error) from error
    write_told(file, fight.recording, _about(file.parent.parent.name, config, witness, fight, step), thoughts)
    return file


def _about(run: str, config: Config, witness: Witness, fight: SeenFight, step: int | None) -> dict[str, Any]:
    settings = witness.settings
    about: dict[str, Any] = {
        "run": run,
        "step": step,
        "fight": fight.number,
        "algorithm": config.algorithm,
        "encoder": config.encoder.name,
    }
    if settings is not None:
        about |= {"engine": settings.engine, "seed": settings.seed, "full": settings.full}
        about |= about_boss(settings.boss, settings.variant, settings.draw_seed(fight.number))
    return about


def _prune(folder: Path) -> None:
    """Only files that were named here; what somebody else put beside them stays."""
    own = sorted(file for file in folder.iterdir() if OWN.fullmatch(file.name))
    for file in own[:-KEPT]:
        with contextlib.suppress(OSError):  # somebody looks at it, perhaps; the next time will do
            file.unlink()
