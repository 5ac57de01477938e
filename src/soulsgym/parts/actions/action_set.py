"""A choice among the twenty actions, and the positions an agent knows them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_NAMES
from soulsgym.compiling import njit
from soulsgym.errors import MisuseError, suggestion
from soulsgym.parts.registry import refuse_unknown, register, resolve
from soulsgym.state import Fights

DIAGONAL_ROLLS = ("roll FR", "roll RB", "roll BL", "roll LF")

PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "all": ACTION_NAMES,
        "reduced": tuple(name for name in ACTION_NAMES if name not in DIAGONAL_ROLLS),
        "no-parry": tuple(name for name in ACTION_NAMES if name != "parry"),
    }
)
for _name, _actions in PRESETS.items():
    register("action set", _name, origin=__name__)(_actions)


def _fill_open(fights: Any, indices: Any, out: Any) -> None:
    # Unsigned, since a place that may be negative takes a look at its sign each time: three times as long.
    for i in range(len(fights)):
        mask, some = fights[i].action_mask, np.int8(0)
        for j in range(len(indices)):
            is_open = mask[np.uint64(indices[j])]
            out[i, np.uint64(j)] = is_open
            some |= is_open
        if some == 0:
            out[i] = 1


_open_into: Any = njit(cache=True)(_fill_open)


@dataclass(frozen=True, eq=False)
class ActionSet:
    """Some of the twenty actions; an agent chooses a position in `indices`."""

    indices: npt.NDArray[np.int64]  # numbers of the actions, ascending
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def open(self, fights: Fights, out: npt.NDArray[np.bool_]) -> None:
        """Write which actions of the set are open. Where none is, all are: whatever is pressed does nothing."""
        _open_into(fights, self.indices, out.view(np.int8))

    def numbers(self, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers 0 to 19 of the chosen positions."""
        return self.indices[chosen]


def make_actions(given: Any = "all", names: Sequence[str] = ()) -> ActionSet:
    """The action set that is meant by `given`, or the one of exactly these `names`.

    That is a preset's name; a table of `preset` and `names`; names of actions; an action set; or a function that
    returns any of these.
    """
    part, settings = resolve("action set", given, key="preset", default="all")
    refuse_unknown("action set", settings, ("names",))
    if callable(part):
        part = part()
    chosen = names or settings.get("names") or part
    if isinstance(chosen, ActionSet):
        return chosen
    if not isinstance(chosen, (list, tuple)) or not chosen:
        raise MisuseError(f"action set {given!r} cannot be used; give a name, names of actions, or an action set")
    for name in chosen:
        if name not in ACTION_NAMES:
            raise MisuseError(f"action {name!r} is not known{suggestion(str(name), ACTION_NAMES)}")
        if chosen.count(name) > 1:
            raise MisuseError(f"action {name!r} is there {chosen.count(name)} times; give it once")
    indices = np.array([number for number, name in enumerate(ACTION_NAMES) if name in chosen], np.int64)
    indices.setflags(write=False)
    return ActionSet(indices, tuple(ACTION_NAMES[number] for number in indices))
