"""The protocol of a scripted player: many fights at once, from what the observation shows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Observation = dict[str, npt.NDArray[Any]]
"""The observation of `n` fights, as `state.observation_of` gives it."""
Mask = npt.NDArray[np.bool_]
"""Open actions, fights x 20; or fights alone."""
Actions = npt.NDArray[np.int64]


class Player(Protocol):
    """Chooses one of the twenty actions for each of `n` fights."""

    def reset(self, mask: Mask) -> None:
        """Forget the fights of `mask`, which begin again."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """The next action of every fight; `mask` says which actions are open."""
