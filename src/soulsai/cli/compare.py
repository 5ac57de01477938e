"""`souls compare`: is one policy really better than another?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.cli.measuring import (
    WHO,
    AsJson,
    Boss,
    FightOptions,
    Fights,
    Full,
    Latest,
    NoHit,
    Phase,
    Randomize,
    Seed,
    Variant,
    fight_settings,
    measured,
    warn,
)

if TYPE_CHECKING:
    from soulsai.evaluation import Comparison, Evaluation


def compare_runs(
    a: Annotated[str, typer.Argument(metavar="A", help=WHO)],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    fights: Fights = None,
    seed: Seed = 0,
    boss: Boss = "",
    variant: Variant = "",
    randomize: Randomize = 0.0,
    phase: Phase = None,
    full: Full = False,
    no_hit: NoHit = None,
    latest: Latest = False,
    as_json: AsJson = False,
) -> None:
    """Let two policies fight the same fights, and say whether the difference between them is real.

    Nothing is kept.

    Example: souls compare runs/mine player:duellist
    """
    from soulsai.evaluation import compare
    from soulsai.learning.contestants import load_contestant

    both = [load_contestant(text, latest=latest, warn=warn) for text in (a, b)]
    options = FightOptions(variant, randomize, phase, full, no_hit, boss)
    settings = fight_settings([one.config for one in both if one.config], options)
    fighters = [one.fighter(settings["boss"]) for one in both]
    names = _names(both[0].name, both[1].name)
    found = [measured(fighters[i], options.fights(fights), seed, settings, names[i]) for i in (0, 1)]
    comparison = compare(found[0], found[1], names=names)
    if as_json:
        typer.echo(json.dumps(_object(comparison, found)))
        return
    for name, evaluation in zip(names, found, strict=True):
        typer.echo(f"{name} {evaluation.headline}")
    typer.echo(comparison.sentence)


def _names(a: str, b: str) -> tuple[str, str]:
    """Told apart even if both are called the same."""
    return (a, b) if a != b else (f"{a} (A)", f"{b} (B)")


def _object(comparison: Comparison, found: list[Evaluation]) -> dict[str, Any]:
    from dataclasses import asdict

    verdict = {"sentence": comparison.sentence, "is_real": comparison.is_real, "difference": comparison.difference}
    a, b = ({"name": name, **one.summary()} for name, one in zip(comparison.names, found, strict=True))
    return {"settings": asdict(found[0].settings), **asdict(comparison), **verdict, "a": a, "b": b}
