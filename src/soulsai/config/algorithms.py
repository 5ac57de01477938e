"""Which algorithms there are: the folders in `soulsai/algorithms` with a `config.py`. A new folder is a new algorithm.

`config.py` has one Struct, the section of the config under the folder's name. It may have `problems(config)`, sentences
about settings that cannot work together, and `USES`, names of common sections that not every algorithm uses. Metrics
that no other algorithm has are declared in `metrics.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from soulsai.config.schema import Config

DEFAULT_ALGORITHM = "ppo"
FOLDER = "soulsai.algorithms"
"""Loaded by name: configs are below all algorithms, and need no more of them than their settings."""


@dataclass(frozen=True)
class AlgorithmSettings:
    """What an algorithm adds to a config."""

    section: type[Struct]
    problems: Callable[[Config], Iterator[str]]
    uses: tuple[str, ...]


@cache
def algorithm_settings() -> dict[str, AlgorithmSettings]:
    """The settings of every algorithm by its name; this loads no torch."""
    places = importlib.import_module(FOLDER).__path__
    folders = (found.name for found in pkgutil.iter_modules(places) if found.ispkg)
    return {name: _settings(importlib.import_module(f"{FOLDER}.{name}.config")) for name in folders}


def algorithm_modules(part: str) -> Iterator[ModuleType]:
    """The modules of a name that algorithms have in their folders; not all need have one."""
    for name in algorithm_settings():
        if importlib.util.find_spec(f"{FOLDER}.{name}.{part}"):
            yield importlib.import_module(f"{FOLDER}.{name}.{part}")


def _settings(module: ModuleType) -> AlgorithmSettings:
    own = (kind for kind in vars(module).values() if getattr(kind, "__module__", "") == module.__name__)
    sections = [kind for kind in own if isinstance(kind, type) and issubclass(kind, Struct)]
    if len(sections) != 1:
        raise TypeError(f"{module.__file__} must have one msgspec.Struct, the section of its algorithm")
    return AlgorithmSettings(
        section=sections[0], problems=getattr(module, "problems", _no_problems), uses=getattr(module, "USES", ())
    )


def _no_problems(config: Config) -> Iterator[str]:
    return iter(())
