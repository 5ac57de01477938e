"""From what a user says about the game to an engine on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soulsgym.errors import MisuseError
from soulsgym.game.attach import Launcher, attach
from soulsgym.game.engine import GameEngine
from soulsgym.game.pacing import STEPPINGS
from soulsgym.spec.game import GameSetup


@dataclass(frozen=True)
class GameOptions:
    """How to play on this machine. None of it comes from anywhere else: `launch` is a command that is run."""

    speed: float = 3.0  # of the game, times its own; infinity: as fast as it goes
    stepping: str = "auto"  # ticks: exact steps by a frozen clock; speed: run and pause; auto: what the game allows
    pid: int | None = None  # which of several games
    launch: str | Sequence[str] | None = None  # command that starts the game again after a crash

    def __post_init__(self) -> None:
        if not self.speed > 0.0:
            raise MisuseError(f"game_speed {self.speed} is not possible; give a number above 0")
        if self.stepping not in STEPPINGS:
            raise MisuseError(f"stepping {self.stepping!r} is not known; give one of {', '.join(STEPPINGS)}")


def open_engine(plan: GameSetup, options: GameOptions, *, phase: int = 1, changes: bool = False) -> GameEngine:
    """An engine on the running game, which is let go again if that fails."""
    if not 1 <= phase <= plan.phases:
        raise MisuseError(f"phase {phase} is not there; {plan.name} has phases 1 to {plan.phases}")
    launcher = Launcher(options.launch, plan.title) if options.launch else None
    game = attach(plan.title, options.pid)
    try:
        return GameEngine(
            plan,
            [game],
            phase=phase,
            changes=changes,
            game_speed=options.speed,
            stepping=options.stepping,
            relaunch=launcher,
        )
    except BaseException:
        game.close()
        raise
