"""The protocol both engines follow, and how a fight may start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.actions import Controls
from soulsgym.errors import MisuseError, StartError
from soulsgym.state import FIGHT, Fights, Outcome

if TYPE_CHECKING:
    from soulsgym.spec import FightSpec

START = np.dtype(
    [
        ("phase", "i4"),  # 0: the one the environment was made for
        ("player_hp", "f8"),  # NaN: full
        ("player_sp", "f8"),
        ("boss_hp", "f8"),
        ("player_pose", "f8", (3,)),  # x, y [m], heading [rad]; NaN: the standard pose
        ("boss_pose", "f8", (3,)),
        ("random_pose", "i1"),  # draw the player's pose from the arena's list
    ],
    align=True,
)


def standard_starts(n: int) -> npt.NDArray[Any]:
    """`n` starts with everything left to the engine's defaults."""
    starts = np.zeros(n, START)
    for name in ("player_hp", "player_sp", "boss_hp", "player_pose", "boss_pose"):
        starts[name] = np.nan
    return starts


@dataclass(frozen=True)
class Snapshot:
    """A copy of everything that decides how the fights go on."""

    kind: str
    fights: Fights
    hidden: npt.NDArray[Any]
    specs: tuple[FightSpec | None, ...] = ()  # of the simulator's tables; left out: those in place


class Engine(Protocol):
    """Runs `n` fights and fills `fights` in place."""

    fights: Fights
    missing_fields: tuple[str, ...]
    """Fields of FIGHT that the engine cannot tell and leaves at one value: a reward must not be made of them."""

    def reset(
        self, mask: npt.NDArray[np.bool_], starts: npt.NDArray[Any], seeds: npt.NDArray[np.uint64] | None
    ) -> None:
        """Restart the fights of `mask`; without seeds each goes on with its own stream of randomness."""

    def step(self, controls: Controls, *, skip: bool = False) -> None:
        """Advance every running fight by 0.1 s, and with `skip` on to where the player can act again.

        A fight that is over stays as it is, with nothing dealt or taken.
        """

    def snapshot(self) -> Snapshot:
        """Copy the state of all fights."""

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of the same number of fights."""

    def check_starts(self, starts: npt.NDArray[Any]) -> None:
        """Refuse starts that no fight can have; for what comes from outside."""

    def close(self) -> None:
        """Release what the engine holds."""


def check_one_for_each(name: str, given: npt.NDArray[Any], dtype: np.dtype[Any], fights: Fights) -> None:
    """Refuse starts or controls that are not of this dtype, one for each fight."""
    if given.dtype != dtype or len(given) != len(fights):
        kind = name.removesuffix("s").upper()
        raise MisuseError(f"{name} are {len(given)} x {given.dtype}; give {len(fights)} x {kind}")


def restart(engine: Engine, snapshot: Snapshot) -> None:
    """Begin every fight that was running again, with the health and phase that the snapshot tells."""
    fights = engine.fights
    if snapshot.fights.shape != fights.shape or snapshot.fights.dtype != FIGHT:
        raise StartError(f"snapshot holds {len(snapshot.fights)} fights, this engine {len(fights)}")
    starts = standard_starts(len(fights))
    running = snapshot.fights["outcome"] == Outcome.RUNNING
    starts["phase"][running] = snapshot.fights["phase"][running]
    for key in ("player_hp", "boss_hp"):
        starts[key][running] = snapshot.fights[key][running, 0]
    fights.view(np.uint8)[:] = snapshot.fights.view(np.uint8)
    engine.reset(running, starts, None)


def refuse_out_of_range(starts: npt.NDArray[Any], limits: Sequence[tuple[str, float, float]]) -> None:
    """Refuse starts with a value that no fight can have: by field its lowest and highest; NaN stands for a default."""
    for key, low, high in limits:
        bad = (starts[key] < low) | (starts[key] > high) | np.isinf(starts[key])
        if bad.any():
            raise StartError(f"start has {key} = {starts[key][bad][0]:g}; give {low:g} to {high:g}")
