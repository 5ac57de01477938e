"""The names that parts go by in configs, and how a part is made from what a user gives.

A part is given as its name, as a table of its name and settings, as the object itself, or as a class or function that
makes it.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from soulsgym.errors import MisuseError, suggestion

KINDS = ("encoder", "reward", "reward term", "action set", "ending", "starts")
MODULES = "SOULSGYM_PARTS"
"""Environment variable: modules, separated by commas, that are imported for the parts they register."""

MEMBERS = {
    "encoder": ("size", "names", "begin", "encode"),
    "reward": ("names", "begin", "of"),
    "ending": ("of", "won"),
    "starts": ("is_standard", "draw", "report"),
}
"""What an object has to have to be used as a part of its kind."""

Part = TypeVar("Part")

_parts: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
_origins: dict[tuple[str, str], str] = {}


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
        taken = _origins.setdefault((kind, name), place)
        if taken != place:
            raise MisuseError(f"{kind} {name!r} is already there, from {taken}; choose another name")
        _parts[kind][name] = part
        return part

    return add


def origin_of(part: Any) -> str:
    """The module and name of a class or function."""
    return f"{getattr(part, '__module__', '?')}.{getattr(part, '__qualname__', type(part).__name__)}"


def known_names(kind: str) -> tuple[str, ...]:
    """The names of one kind, in the order in which they were registered."""
    return tuple(_parts[kind])


def find(kind: str, name: str) -> Any:
    """The part of this name, from the modules of SOULSGYM_PARTS if need be."""
    if name not in _parts[kind]:
        _import_modules()
    if name not in _parts[kind]:
        raise MisuseError(f"{kind} {name!r} is not known{suggestion(str(name), known_names(kind))}")
    return _parts[kind][name]


def _import_modules() -> None:
    for module in filter(None, (name.strip() for name in os.environ.get(MODULES, "").split(","))):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise MisuseError(
                f"{MODULES} names the module {module!r}, which cannot be imported ({error}); "
                "set PYTHONPATH to its folder"
            ) from error


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
