"""Values of a running game: those of one look at a fight, and fields of the address table as properties of a title."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError

if TYPE_CHECKING:
    from soulsgym.game.titles.title import Title

T = TypeVar("T")
G = TypeVar("G", bound="Title")
Numbers = npt.NDArray[np.float64]
Pose = tuple[float, float, float, float]
"""x, y, z in metres with z up, and the heading in radians within -pi and pi."""


@dataclass(frozen=True, slots=True)
class Glance:
    """The few values that are polled while waiting for something. They may be of two moments."""

    time_ms: int
    player_hp: int
    boss_hp: int
    player_animation: str
    boss_animation: str
    """With what the game overwrites during hits put right."""


@dataclass(frozen=True, slots=True)
class Sight(Glance):
    """A fight at one moment of the game."""

    player_max_hp: int
    player_sp: int
    player_max_sp: int
    boss_max_hp: int
    player_pose: Pose
    boss_pose: Pose
    camera_pose: tuple[float, float, float, float, float, float]
    """Where it is, and the direction in which it looks."""
    player_animation_s: float
    boss_animation_s: float
    lock_on: bool
    statuses: tuple[float, ...]
    """Shares from 0 to 1, in the order of the title's `statuses`."""


class Property(Generic[G, T]):
    """A value of the game: how to get it and, if that is possible, how to set it."""

    def __init__(self, get: Callable[[G], T], put: Callable[[G, T], None] | None = None, *, doc: str | None) -> None:
        self._get, self._put = get, put
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, game: None, owner: type) -> Property[G, T]: ...
    @overload
    def __get__(self, game: G, owner: type) -> T: ...
    def __get__(self, game: G | None, owner: type) -> T | Property[G, T]:
        return self if game is None else self._get(game)

    def __set__(self, game: G, value: T) -> None:
        if self._put is None:
            raise MisuseError(f"{self.name} cannot be set: the game alone decides it")
        self._put(game, value)


def whole(field: str, doc: str, *, low: int | None = None, writable: bool = True) -> Property[Title, int]:
    """A whole number; written only if it is not below `low`."""

    def put(game: Title, value: int) -> None:
        game.pointers.write(field, whole_number(value, field, low=low))

    return Property(lambda game: game.pointers.integer(field), put if writable else None, doc=doc)


def real(field: str, doc: str, *, writable: bool = False) -> Property[Title, float]:
    """A finite number."""

    def put(game: Title, value: float) -> None:
        if not math.isfinite(value):
            raise MisuseError(f"{field} cannot be set to {value!r}: give a finite number")
        game.pointers.write(field, float(value))

    return Property(lambda game: game.pointers.number(field), put if writable else None, doc=doc)


def name_of(field: str, doc: str) -> Property[Title, str]:
    """The name of an animation; where the game keeps a number, its digits."""
    return Property(lambda game: str(game.pointers.read(field)), doc=doc)


def nonzero(field: str, doc: str) -> Property[Title, bool]:
    """Is a value not 0?"""
    return Property(lambda game: game.pointers.integer(field) != 0, doc=doc)


def permission(field: str, bit: str, doc: str) -> Property[Title, bool]:
    """True while the bit that forbids it is clear. Only that bit is ever written."""
    return Property(
        lambda game: not game.pointers.bit(field, bit),
        lambda game, allowed: game.pointers.set_bit(field, bit, not allowed),
        doc=doc,
    )


def word(field: str, doc: str) -> Property[Title, str]:
    """A number that stands for a word."""

    def get(game: Title) -> str:
        number = game.pointers.integer(field)
        words = game.pointers.table.field(field).values
        return next((word for word, value in words.items() if value == number), str(number))

    return Property(get, lambda game, word: game.pointers.write(field, game.pointers.meaning(field, word)), doc=doc)


def whole_number(value: float, what: str, *, low: int | None = None) -> int:
    """A whole number that is not below `low`, or a MisuseError that names it."""
    if isinstance(value, bool) or int(value) != value or (low is not None and value < low):
        least = "" if low is None else f" of at least {low}"
        raise MisuseError(f"{what} cannot be set to {value!r}: give a whole number{least}")
    return int(value)


def wrap_angle(angle: float) -> float:
    """The same angle within -pi and pi; one that is none stays none."""
    return math.remainder(angle, math.tau) if math.isfinite(angle) else math.nan


def pose_of(heading: float, place: Sequence[float]) -> Pose:
    """A pose from what the game keeps of it: x, height, y."""
    return place[0], place[2], place[1], wrap_angle(heading)


def vector(values: Sequence[float] | npt.NDArray[Any], count: int, what: str) -> tuple[float, ...]:
    """So many finite numbers, or a MisuseError that names them."""
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise MisuseError(f"{what} cannot be set to {values!r}: give {count} finite numbers")
    return numbers


def array(*values: float) -> Numbers:
    """Numbers as SoulsGym's users know them."""
    return np.array(values, np.float64)
