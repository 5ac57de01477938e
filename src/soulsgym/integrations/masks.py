"""Masks inside of the observation, for learners that look for them there: Tianshou, RLlib, PettingZoo's habits."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from soulsgym.errors import MisuseError


class MaskInObservation(gymnasium.Wrapper[dict[str, Any], Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Observations become a dict of what they were and of the mask: 1 for every action that is open, 0 for the others.

    `observation` and `mask` are the keys: RLlib's are the defaults, Tianshou's are `obs` and `mask`.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], observation: str = "observations", mask: str = "action_mask"
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, observation=observation, mask=mask)
        super().__init__(env)
        if not isinstance(env.action_space, spaces.Discrete):
            raise MisuseError(f"actions are {env.action_space}; masks are of Discrete actions alone")
        if observation == mask:
            raise MisuseError(f"observation and mask are both {mask!r}; give two keys")
        self._keys = observation, mask
        bits = spaces.Box(0, 1, (int(env.action_space.n),), np.int8)
        self.observation_space = spaces.Dict({observation: env.observation_space, mask: bits})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a fight."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_mask(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Play on."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_mask(observation, info), reward, terminated, truncated, info

    def _with_mask(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        if "action_mask" not in info:
            raise MisuseError("info has no action_mask; give an environment that tells it, such as SoulsGym's")
        return dict(zip(self._keys, (observation, info["action_mask"].astype(np.int8)), strict=True))
