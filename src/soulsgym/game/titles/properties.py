"""Properties of a title: each is a field of the address table, seen as a Python value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError

if TYPE_CHECKING:
    from soulsgym.game.pointers import Pointers
    from soulsgym.game.titles.title import Title

T = TypeVar("T")
Numbers = npt.NDArray[np.float64]


class Property(Generic[T]):
    """A value of the game: how to get it and, if that is possible, how to set it."""

    def __init__(
        self,
        get: Callable[[Pointers], T],
        put: Callable[[Pointers, T], None] | None = None,
        *,
        doc: str,
        why_not: str = "the game alone decides it",
    ) -> None:
        self._get, self._put, self._why_not = get, put, why_not
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, game: None, owner: type) -> Property[T]: ...
    @overload
    def __get__(self, game: Title, owner: type) -> T: ...
    def __get__(self, game: Title | None, owner: type) -> T | Property[T]:
        return self if game is None else self._get(game.pointers)

    def __set__(self, game: Title, value: T) -> None:
        if self._put is None:
            raise MisuseError(f"{self.name} cannot be set: {self._why_not}")
        self._put(game.pointers, value)


def whole(field: str, doc: str, *, low: int | None = None, writable: bool = True) -> Property[int]:
    """A whole number; written only if it is not below `low`."""

    def put(pointers: Pointers, value: int) -> None:
        if isinstance(value, bool) or int(value) != value or (low is not None and value < low):
            least = "" if low is None else f" of at least {low}"
            raise MisuseError(f"{field} cannot be set to {value!r}: give a whole number{least}")
        pointers.write(field, int(value))

    return Property(lambda pointers: pointers.integer(field), put if writable else None, doc=doc)


def real(field: str, doc: str, *, writable: bool = False) -> Property[float]:
    """A finite number."""

    def put(pointers: Pointers, value: float) -> None:
        if not math.isfinite(value):
            raise MisuseError(f"{field} cannot be set to {value!r}: give a finite number")
        pointers.write(field, float(value))

    return Property(lambda pointers: pointers.number(field), put if writable else None, doc=doc)


def text(field: str, doc: str) -> Property[str]:
    """A text, such as the name of an animation."""
    return Property(lambda pointers: pointers.text(field), doc=doc)


def nonzero(field: str, doc: str) -> Property[bool]:
    """Is a value not 0?"""
    return Property(lambda pointers: pointers.integer(field) != 0, doc=doc)


def permission(field: str, bit: str, doc: str) -> Property[bool]:
    """True while the bit that forbids it is clear. Only that bit is ever written."""
    return Property(
        lambda pointers: not pointers.bit(field, bit),
        lambda pointers, allowed: pointers.set_bit(field, bit, not allowed),
        doc=doc,
    )


def meant(field: str, doc: str) -> Property[str]:
    """A number that stands for a word."""

    def get(pointers: Pointers) -> str:
        number = pointers.integer(field)
        words = pointers.table.field(field).values
        return next((word for word, value in words.items() if value == number), str(number))

    return Property(get, lambda pointers, word: pointers.write(field, pointers.meaning(field, word)), doc=doc)


def wrapped(angle: float) -> float:
    """The same angle within -pi and pi; one that is none stays none."""
    return math.remainder(angle, math.tau) if math.isfinite(angle) else math.nan


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
