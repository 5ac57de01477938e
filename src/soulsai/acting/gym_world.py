"""Any Gymnasium environment with discrete actions as a world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from soulsai.errors import ConfigError
from soulsgym.batch import State, Step
from soulsgym.packages import missing_package


class GymWorld:
    """`number` copies of an environment. Their inner state is out of reach: a resumed run begins new episodes."""

    term_names: tuple[str, ...] = ("reward",)

    def __init__(self, name: str, number: int, kwargs: Mapping[str, Any]) -> None:
        self._env = _made(name, number, kwargs)
        space = self._env.single_observation_space
        self.number, self.observation_size = number, gymnasium.spaces.flatdim(space)
        self.num_actions = int(self._env.single_action_space.n)  # type: ignore[attr-defined]
        self._first_action = int(self._env.single_action_space.start)  # type: ignore[attr-defined]
        self.observations = np.zeros((number, self.observation_size), np.float32)
        self.masks = np.ones((number, self.num_actions), np.bool_)
        self._step = Step.of_size(number, self.observation_size, self.num_actions, 1)
        self._step.steps[:] = 1
        self._step.standard[:] = True

    def reset(self, seed: int) -> None:
        """Begin all episodes."""
        seeds = np.random.SeedSequence(seed).generate_state(self.number).tolist()
        observations, infos = self._env.reset(seed=seeds)
        self._show(observations, infos)

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play one step in all episodes."""
        step = self._step
        observations, rewards, terminated, truncated, infos = self._env.step(actions + self._first_action)
        step.rewards[:], step.terms[:, 0] = rewards, rewards
        step.terminated[:], step.truncated[:] = terminated, truncated
        np.logical_or(terminated, truncated, out=step.ended)
        for index in np.flatnonzero(step.ended):
            step.final_observations[index] = np.ravel(infos["final_obs"][index])
        self._show(observations, infos)
        return step

    def state(self) -> State:
        """Nothing: Gymnasium has no way to ask for it."""
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing to go back to."""

    def close(self) -> None:
        """Close the environments."""
        self._env.close()

    def _show(self, observations: npt.NDArray[Any], infos: Mapping[str, Any]) -> None:
        self.observations[:] = observations.reshape(self.number, -1)
        if "action_mask" in infos:
            self.masks[:] = np.stack(list(infos["action_mask"])).astype(np.bool_)


def _made(name: str, number: int, kwargs: Mapping[str, Any]) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    try:
        env = gymnasium.make_vec(
            name,
            num_envs=number,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
            **kwargs,
        )
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        if missing := missing_package(error):
            raise missing from error
        reason = " ".join(str(error).split()).rstrip(".").replace(". ", "; ")
        raise ConfigError(f"gym.id = {name!r} cannot be made: {reason}") from error
    if not isinstance(env.single_action_space, gymnasium.spaces.Discrete):
        env.close()
        raise ConfigError(f"gym.id = {name!r} has actions {env.single_action_space}; only Discrete ones can be learned")
    if not isinstance(env.single_observation_space, gymnasium.spaces.Box):
        space = env.single_observation_space
        env.close()
        raise ConfigError(f"gym.id = {name!r} has observations {space}; only a Box of numbers can be learned from")
    return env
