"""Any Gymnasium environment with discrete actions as a world."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from soulsai.errors import ConfigError
from soulsgym.batch import State, Step
from soulsgym.errors import MisuseError
from soulsgym.packages import missing_package

VectorEnv = gymnasium.vector.VectorEnv[Any, Any, Any]
Flags = npt.NDArray[np.bool_]
Float32s = npt.NDArray[np.float32]


class GymWorld:
    """`number` copies of an environment. Their inner state is out of reach: a resumed run begins new episodes.

    Observations are flattened as `gymnasium.spaces.flatten` does. Masks come from `info["action_mask"]`, or from a
    method `action_masks` of the environment.
    """

    term_names: tuple[str, ...] = ("reward",)

    def __init__(self, name: str, number: int, kwargs: Mapping[str, Any]) -> None:
        self._env = _make(name, number, kwargs)
        space = self._env.single_observation_space
        self.number, self.observation_size = number, spaces.flatdim(space)
        self.num_actions = int(self._env.single_action_space.n)  # type: ignore[attr-defined]
        self._first_action = int(self._env.single_action_space.start)  # type: ignore[attr-defined]
        self.bounds = _bounds(space)
        self._flatten = _flattener(space)
        self._action_masks = _method(self._env, "action_masks")
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
        if step.ended.any():
            self._end(step, infos)
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

    def _end(self, step: Step, infos: Mapping[str, Any]) -> None:
        final = infos.get("final_info", {})
        step.final_masks[step.ended] = True
        if "action_mask" in final:
            for index in np.flatnonzero(step.ended & final["_action_mask"]):
                step.final_masks[index] = final["action_mask"][index]
        if "won" in final:
            step.won[:] = step.ended & np.asarray(final["won"], np.bool_)
        for index in np.flatnonzero(step.ended):
            step.final_observations[index] = self._flatten(_batch_of_one(infos["final_obs"][index]), 1)[0]

    def _show(self, observations: Any, infos: Mapping[str, Any]) -> None:
        self.observations[:] = self._flatten(observations, self.number)
        if "action_mask" in infos:
            self.masks[:] = np.stack(list(infos["action_mask"])).astype(np.bool_)
        elif self._action_masks is not None:
            self.masks[:] = self._action_masks()


def _flattener(space: spaces.Space[Any]) -> Callable[[Any, int], Float32s]:
    """A function that lays out observations of so many environments as rows, in the order of `spaces.flatten`."""
    if isinstance(space, spaces.Dict):
        parts = {key: _flattener(part) for key, part in space.items()}
        return lambda seen, n: np.concatenate([part(seen[key], n) for key, part in parts.items()], axis=1)
    if isinstance(space, spaces.Discrete):
        count, start = int(space.n), int(space.start)
        return lambda seen, n: np.eye(count, dtype=np.float32)[np.asarray(seen).reshape(n) - start]
    return lambda seen, n: np.asarray(seen, np.float32).reshape(n, -1)


def _bounds(space: spaces.Space[Any]) -> tuple[Float32s, Float32s]:
    """The least and the most of each number, in the same order."""
    if isinstance(space, spaces.Dict):
        lows, highs = zip(*(_bounds(part) for part in space.values()), strict=True)
        return np.concatenate(lows), np.concatenate(highs)
    if isinstance(space, spaces.Box):
        return space.low.reshape(-1).astype(np.float32), space.high.reshape(-1).astype(np.float32)
    return np.zeros(spaces.flatdim(space), np.float32), np.ones(spaces.flatdim(space), np.float32)


def _batch_of_one(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {key: _batch_of_one(part) for key, part in observation.items()}
    return np.asarray(observation)[None]


def _method(env: VectorEnv, name: str) -> Callable[[], Flags] | None:
    """A method of a vector environment, or of every environment in it, that returns a row for each."""
    if callable(own := getattr(env.unwrapped, name, None)):
        return own  # type: ignore[no-any-return]
    inner = getattr(env.unwrapped, "envs", ())
    if inner and all(one.has_wrapper_attr(name) for one in inner):
        return lambda: np.stack([one.get_wrapper_attr(name)() for one in inner])
    return None


def _make(name: str, number: int, kwargs: Mapping[str, Any]) -> VectorEnv:
    try:
        env = _make_vector_env(name, number, kwargs)
    except (gymnasium.error.Error, ImportError, TypeError, MisuseError) as error:
        if missing := missing_package(error):
            raise missing from error
        reason = " ".join(str(error).split()).rstrip(".").replace(". ", "; ")
        raise ConfigError(f"gym.id = {name!r} cannot be made: {reason}") from error
    if not isinstance(env.single_action_space, spaces.Discrete):
        env.close()
        raise ConfigError(f"gym.id = {name!r} has actions {env.single_action_space}; only Discrete ones can be learned")
    space = env.single_observation_space
    if not isinstance(space, (spaces.Box, spaces.Dict)) or not _is_plain(space):
        env.close()
        raise ConfigError(
            f"gym.id = {name!r} has observations {space}; only a Box or a Dict of Box and Discrete can be learned from"
        )
    return env


def _make_vector_env(name: str, number: int, kwargs: Mapping[str, Any]) -> VectorEnv:
    """The environment's own vectorised form if that begins episodes again at once, as it is needed here, else ours."""
    mode = AutoresetMode.SAME_STEP
    module, _, known_as = name.rpartition(":")
    if module:
        importlib.import_module(module)  # as Gymnasium does: it registers the id
    if gymnasium.spec(known_as).vector_entry_point is not None:
        try:
            env = gymnasium.make_vec(name, num_envs=number, autoreset_mode=mode, **kwargs)
        except TypeError as error:
            if "autoreset_mode" not in str(error):
                raise
        else:
            if env.metadata.get("autoreset_mode") is mode:
                return env
            env.close()
    return gymnasium.make_vec(
        name, num_envs=number, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **kwargs
    )


def _is_plain(space: spaces.Space[Any]) -> bool:
    if isinstance(space, spaces.Dict):
        return all(_is_plain(part) for part in space.values())
    return isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiBinary))
