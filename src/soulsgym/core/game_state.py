"""GameState: one moment of a fight by the names that SoulsGym's rewards are written in."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

NO_ANIMATION = "NoAnimation"
"""In place of an animation that has no number."""


@dataclass
class GameState:
    """A fight at one moment. Poses are x, y, z [m] and heading [rad]; the camera's is a place and a direction."""

    phase: int = 1
    player_hp: int = 0
    player_max_hp: int = 1
    player_sp: int = 0
    player_max_sp: int = 1
    boss_hp: int = 0
    boss_max_hp: int = 1
    player_pose: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(4, np.float32))
    boss_pose: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(4, np.float32))
    camera_pose: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(6, np.float32))
    player_animation: str = NO_ANIMATION
    player_animation_duration: float = 0.0
    boss_animation: str = NO_ANIMATION
    boss_animation_duration: float = 0.0
    lock_on: bool = False

    def copy(self) -> Self:
        """The same moment in arrays of its own."""
        return copy.deepcopy(self)

    def as_dict(self, deepcopy: bool = True) -> dict[str, Any]:
        """The values by name; without `deepcopy` the arrays are those of this object."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return copy.deepcopy(values) if deepcopy else values

    def as_json(self) -> dict[str, Any]:
        """The values by name, ready for `json.dumps`."""
        values = self.as_dict(deepcopy=False).items()
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values}

    @classmethod
    def from_dict(cls, data_dict: Mapping[str, Any]) -> Self:
        """What `as_dict` or `as_json` gave, as an object again."""
        arrays = {name: np.array(value) for name, value in data_dict.items() if isinstance(value, (list, np.ndarray))}
        return cls(**{**data_dict, **arrays})
