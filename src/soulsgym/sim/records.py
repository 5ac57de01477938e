"""Records of the kernels. A class lists the fields with their types; the NumPy dtype follows from it.

Instances of these classes are never made: a kernel gets a row of a structured array, and mypy checks it as the class.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Protocol, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Array = npt.NDArray[Any]

_SCALARS: dict[Any, str] = {float: "f8", int: "i4", np.uint64: "u8", Floats: "f8", Ints: "i4"}


@cache
def dtype_of(record: type) -> np.dtype[Any]:
    """The aligned dtype of a class: a field for each annotation, in their order.

    `Annotated[Floats, shape]` is an array of numbers, `Annotated[Sequence[Row], count]` one of records.
    """
    hints = get_type_hints(record, include_extras=True)
    return np.dtype([(name, *_format(hint)) for name, hint in hints.items()], align=True)


def _format(hint: Any) -> tuple[Any, Any]:
    shape: Any = ()
    if get_origin(hint) is Annotated:
        hint, shape = get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint], shape
    return dtype_of(get_args(hint)[0] if shape else hint), shape


class Fight(Protocol):
    """A row of `soulsgym.state.FIGHT`, where the fields are explained."""

    phase: int
    player_hp: Floats
    player_max_hp: int
    player_sp: Floats
    player_max_sp: int
    boss_hp: Floats
    boss_max_hp: int
    player_pose: Floats
    boss_pose: Floats
    camera_pose: Floats
    player_animation: int
    player_animation_duration: Floats
    boss_animation: int
    boss_animation_duration: Floats
    lock_on: int
    action_mask: Ints
    damage_dealt: float
    damage_taken: float
    hit_by: int
    landed: int
    dodged: int
    boss_move: int
    boss_move_s: float
    player_move: int
    player_move_s: float
    invulnerable: int
    outcome: int
    step: int
    time_s: float
    dealt_total: float
    taken_total: float
    killed_by: int


class Control(Protocol):
    """A row of `soulsgym.actions.CONTROL`."""

    direction: int
    button: int


class Start(Protocol):
    """A row of `soulsgym.engine.START`; NaN, and phase 0, stand for the standard start."""

    phase: int
    player_hp: float
    player_sp: float
    boss_hp: float
    player_pose: Floats
    boss_pose: Floats
    random_pose: int
