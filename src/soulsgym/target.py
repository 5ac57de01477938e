"""What is played instead of our simulator: the running game, or a rehearsal of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from soulsgym.rehearsal.engine import MISSING_FIELDS, RehearsalEngine, RehearsalOptions
from soulsgym.spec import FightSpec

if TYPE_CHECKING:
    from soulsgym.game.engine import GameEngine, GameOptions

TargetOptions: TypeAlias = "GameOptions | RehearsalOptions"


def open_target(
    spec: FightSpec, options: TargetOptions, *, phase: int = 1, changes: bool = False
) -> GameEngine | RehearsalEngine:
    """An engine on the running game, or on the process that stands in for it."""
    if isinstance(options, RehearsalOptions):
        return RehearsalEngine(spec, options, phase=phase, changes=changes)
    from soulsgym.game.engine import open_engine

    return open_engine(spec.game, options, phase=phase, changes=changes)


def fields_not_told(spec: FightSpec, options: TargetOptions) -> tuple[str, ...]:
    """The fields of FIGHT that the target leaves at one value."""
    if isinstance(options, RehearsalOptions):
        return MISSING_FIELDS
    from soulsgym.game.engine import missing_fields

    return missing_fields(spec.game)
