"""One fight as a Gymnasium environment, whatever engine runs it."""

from __future__ import annotations

import operator
from abc import abstractmethod
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from soulsgym.actions import NOTHING
from soulsgym.engine import Snapshot
from soulsgym.envs.fights import EngineBatch, seed_number
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.state import NUM_ACTIONS, Fights, Outcome, action_mask_of, observation_of

Observation = Any
"""By key for environments of the state; an image for those of the screen."""
RUNNING, BROKEN = int(Outcome.RUNNING), int(Outcome.BROKEN)
FIRST = np.zeros(1, np.intp)
FPS = 10
"""Steps of 0.1 s in a second of the game."""


class BossEnv(gymnasium.Env[Observation, np.int64]):
    """A fight against one boss. What it looks like, and what else there is to tell, is left to the kinds of it."""

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, batch: EngineBatch, observation_space: spaces.Space[Any], render_mode: str | None) -> None:
        self._batch = batch
        self.observation_space = observation_space
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.render_mode = render_mode
        self._last_action = NOTHING
        self._all = np.ones(1, np.bool_)
        self._action = np.zeros(1, np.int64)
        self._ready = False

    @property
    def fight(self) -> Fights:
        """The record of the fight as it stands, a copy."""
        return self._batch.record()

    def current_valid_actions(self) -> list[int]:
        """The numbers of the actions that are open now; none before the first reset."""
        return np.flatnonzero(action_mask_of(self._batch.record())[0]).tolist() if self._ready else []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a fight; `options={"start": {...}}` begins it in the middle, or from a snapshot."""
        super().reset(seed=seed)
        seeds = None if seed is None else np.array([seed_number(seed)])
        self._batch.begin(self._all, seeds=seeds, generator=self.np_random, options=options)
        self._last_action = NOTHING
        record = self._batch.record()
        self._ready = bool(record["outcome"][0] == RUNNING)  # a snapshot may hold a fight that is over
        observation = self._observation(record)
        if self.render_mode == "human":
            self.render()
        return observation, {"action_mask": action_mask_of(record)[0]} | self._more_info(record)

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play 0.1 s of the game."""
        if not self._ready:
            raise ResetNeeded("the fight is over or has not begun; call reset()")
        self._last_action = _checked(action)
        self._action[0] = self._last_action
        rewards, terms = self._batch.step(self._action)
        record = self._batch.record()
        outcome = int(record["outcome"][0])
        info: dict[str, Any] = {
            "action_mask": action_mask_of(record)[0],
            "reward_terms": dict(zip(self._batch.reward.names, terms[0].tolist(), strict=True)),
        } | self._more_info(record)
        if outcome != RUNNING:
            self._ready = False
            info |= {key: values.tolist()[0] for key, values in self._batch.ending(record, FIRST).items()}
        observation = self._observation(record)
        if self.render_mode == "human":
            self.render()
        return observation, float(rewards[0]), outcome not in (RUNNING, BROKEN), outcome == BROKEN, info

    def snapshot(self) -> Snapshot:
        """The fight as it stands, to go back to with `reset(options={"start": snapshot})`."""
        return self._batch.snapshot()

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The fight as a picture, or in a window in human mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode; give 'rgb_array' or 'human' to make()")
            return None
        return self._picture()

    def close(self) -> None:
        """Let go of the engine."""
        self._batch.engine.close()

    @abstractmethod
    def _picture(self) -> npt.NDArray[np.uint8] | None:
        """Draw the fight as it stands: an array, or into a window."""

    def _more_info(self, record: Fights) -> dict[str, Any]:
        """What this kind of environment tells beside the mask."""
        return {}

    def _observation(self, record: Fights) -> Observation:
        return {key: values[0] for key, values in observation_of(record).items()}


def checked_render_mode(mode: str | None, known: list[str]) -> str | None:
    """The render mode, if it is one."""
    if mode is not None and mode not in known:
        raise MisuseError(f"render_mode {mode!r} is not known; give {' or '.join(map(repr, known))}")
    return mode


def checked_speed(game_speed: float) -> float:
    """The game's speed, if it is one."""
    if not game_speed > 0.0:
        raise MisuseError(f"game_speed {game_speed} is not possible; give a number above 0")
    return float(game_speed)


def _checked(action: SupportsIndex) -> int:
    try:
        number = operator.index(action)
    except TypeError:
        raise MisuseError(f"action {action!r} is not a whole number; give 0 to {NUM_ACTIONS - 1}") from None
    if not 0 <= number < NUM_ACTIONS:
        raise MisuseError(f"action {action!r} is out of range; give 0 to {NUM_ACTIONS - 1}")
    return number
