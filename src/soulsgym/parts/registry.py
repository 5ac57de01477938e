"""The names that parts go by in configs, and how a part is made from what a user gives.

A part is given as its name, as a table of its name and settings, as the object itself, or as a class or function that
makes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from soulsgym.errors import MisuseError, suggestion

KINDS = ("encoder", "reward", "reward term", "action set", "ending", "starts")
MEMBERS = {
    "encoder": ("size", "names", "begin", "encode"),
    "reward": ("names", "begin", "of"),
    "ending": ("of", "won"),
    "starts": ("is_standard", "draw", "report"),
}
"""What an object has to have to be used as a part of its kind."""

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class Entry:
    """A part that has a name, and where it comes from."""

    part: Any
    origin: str


Names = dict[tuple[str, str], Entry]
"""Parts by kind and name."""

EVERYWHERE: Names = {}
"""Those that need no file of the user's."""
_names: ContextVar[Names | None] = ContextVar("names", default=None)


def used_names() -> Names:
    """The names that are known here, in which `register` writes new ones."""
    names = _names.get()
    return EVERYWHERE if names is None else names


@contextmanager
def use_names(names: Names) -> Iterator[None]:
    """Within the block, these names are known and no others."""
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


def register(kind: str, name: str, *, origin: str = "") -> Callable[[Part], Part]:
    """Decorator that makes a part known by `name`; the part itself stays what it was.

    A name can be given again only by what has the same `origin`, as in a cell that is run a second time.
    """
    if kind not in KINDS:
        raise MisuseError(f"kind of part {kind!r} is not known{suggestion(kind, KINDS)}")
    word: object = name
    if not (isinstance(word, str) and word.replace("-", "_").isidentifier()):
        raise MisuseError(f"{kind} cannot be named {name!r}; give a plain word, such as my_{kind.replace(' ', '_')}")

    def add(part: Part) -> Part:
        place = origin or origin_of(part)
        names, key = used_names(), (kind, name)
        if key in names and names[key].origin != place:
            raise MisuseError(f"{kind} {name!r} is already there, from {names[key].origin}; choose another name")
        names[key] = Entry(part, place)
        return part

    return add


def origin_of(part: Any) -> str:
    """The module and name of a class or function."""
    return f"{getattr(part, '__module__', '?')}.{getattr(part, '__qualname__', type(part).__name__)}"


def known_names(kind: str) -> tuple[str, ...]:
    """The names of one kind, in the order in which they were registered."""
    return tuple(name for each, name in used_names() if each == kind)


def find(kind: str, name: str) -> Any:
    """The part of this name."""
    entry = used_names().get((kind, name))
    if entry is None:
        raise MisuseError(f"{kind} {name!r} is not known{suggestion(str(name), known_names(kind))}")
    return entry.part


def resolve(kind: str, given: Any, *, key: str, default: Any) -> tuple[Any, dict[str, Any]]:
    """The part that is meant, and the settings that stand beside its name under `key`."""
    settings: dict[str, Any] = {}
    if isinstance(given, Mapping):
        settings = {str(name): value for name, value in given.items()}
        given = settings.pop(key, default)
    return find(kind, given) if isinstance(given, str) else given, settings


def make_part(kind: str, part: Any, *values: Any, keys: tuple[str, ...] = (), **settings: Any) -> Any:
    """The part itself, or what its class or function makes of the values and settings.

    `keys` are further keys of the table that the settings come from, for suggestions.
    """
    if isinstance(part, type) or not any(hasattr(part, name) for name in MEMBERS[kind]):
        if not callable(part):
            raise MisuseError(f"{kind} {part!r} cannot be used; give a name, a table, an object, or what makes one")
        taken = inspect.signature(part).parameters.values()
        if not any(one.kind is one.VAR_KEYWORD for one in taken):
            refuse_unknown(kind, settings, tuple(one.name for one in taken)[len(values) :], keys)
        part = part(*values, **settings)
    else:
        refuse_unknown(kind, settings, (), keys)
    missing = [name for name in MEMBERS[kind] if not hasattr(part, name)]
    if missing:
        raise MisuseError(f"{kind} {type(part).__name__} has no {', '.join(missing)}; write what is missing")
    return part


def refuse_unknown(kind: str, settings: Collection[str], known: tuple[str, ...], keys: tuple[str, ...] = ()) -> None:
    """Refuse settings that a part does not take; `keys` are suggested too."""
    for name in settings:
        if name not in known:
            raise MisuseError(f"setting {name!r} of the {kind} is not known{suggestion(name, (*known, *keys))}")


def takes_fights(function: Any) -> bool:
    """Is this a function of the fights, with one parameter, rather than one that makes a part?"""
    if isinstance(function, type) or not callable(function):
        return False
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return len(needed) == 1
