"""`souls export-dataset` and `import-dataset`: recordings as Minari datasets, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soulsai.cli.options import run_argument
from soulsai.evaluation.thoughts import fight_names, read_fight_file, write_fight_file
from soulsai.runs.files import check_new_file
from soulsgym.integrations.minari import export_dataset as write_dataset
from soulsgym.integrations.minari import import_dataset as read_dataset

DatasetId = Annotated[str, run_argument("Name of a Minari dataset, such as souls/iudex/duellist-v0.", "DATASET")]


def export_dataset(
    file: Annotated[Path, typer.Argument(help="A recording (.npz, .json).")],
    dataset: DatasetId,
) -> None:
    """Write a recording as a Minari dataset, for offline learning with other libraries.

    It goes where Minari keeps datasets: ~/.minari/datasets, or MINARI_DATASETS_PATH.

    Example: souls export-dataset fights.npz souls/iudex/duellist-v0
    """
    told = read_fight_file(file)
    boss, variant = fight_names(told)
    folder = write_dataset(told.recording, dataset, boss=boss, variant=variant, about=told.about)
    typer.echo(f"{dataset}: {len(told.recording.bounds())} episodes in {folder}")


def import_dataset(
    dataset: DatasetId,
    out: Annotated[Path, typer.Option(help="New file, .npz.")] = Path("fights.npz"),
) -> None:
    """Write a Minari dataset of fights as a recording, to watch it or to learn from it.

    Example: souls import-dataset souls/iudex/duellist-v0 --out fights.npz
    """
    check_new_file(out, "recording", ".npz")
    recording, about = read_dataset(dataset)
    write_fight_file(out, recording, about)
    typer.echo(f"{out}: {len(recording.bounds())} fights, {len(recording):,} records")
