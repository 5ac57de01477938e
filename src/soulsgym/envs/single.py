"""One fight as a Gymnasium environment, whatever engine runs it."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from soulsgym.actions import NOTHING
from soulsgym.batch import FightBatch, Step, seed_number
from soulsgym.engine import Snapshot
from soulsgym.envs.spaces import RecordView, encoded_space
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.state import Fights

Observation = Any
"""By key for environments of the state, an array with an encoder, an image for those of the screen."""
FPS = 10
"""Steps of 0.1 s in a second of the game."""


class BossEnv(gymnasium.Env[Observation, np.int64]):
    """A fight against one boss, a view of a batch of one. How it is drawn is left to the kinds of it."""

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, batch: FightBatch, view: RecordView, render_mode: str | None) -> None:
        self.batch, self._view = batch, view
        encoder = batch.parts.encoder
        self.observation_space: spaces.Space[Any] = encoded_space(encoder) if encoder else view.space
        self.action_space = spaces.Discrete(batch.num_actions)
        self.render_mode = render_mode
        self._last_action = NOTHING
        self._action = np.zeros(1, np.int64)
        self._begun = False

    @property
    def fight(self) -> Fights:
        """The record of the fight as it stands, a copy."""
        return self.batch.record()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are open now, by the name that sb3-contrib looks for."""
        mask: npt.NDArray[np.bool_] = self.batch.masks[0].copy()
        return mask

    def current_valid_actions(self) -> list[int]:
        """The numbers of the actions that are open now; none before the first reset and after the end."""
        return np.flatnonzero(self.batch.masks[0]).tolist() if self._is_running() else []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a fight; `options={"start": {...}}` begins it in the middle, or from a snapshot."""
        super().reset(seed=seed)
        seeds = None if seed is None else np.array([seed_number(seed)])
        self.batch.begin(seeds=seeds, generator=self.np_random, start=checked_options(options).get("start"))
        self._begun = True
        self._last_action = NOTHING
        return self._shown(None)

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play 0.1 s of the game, or with `decisions` on to the next choice."""
        if not self._is_running():
            raise ResetNeeded("the fight is over or has not begun; call reset()")
        self._action[0] = _checked(action, self.batch.num_actions)
        self._last_action = int(self.batch.parts.actions.numbers(self._action)[0])
        step = self.batch.step(self._action)
        observation, info = self._shown(step)
        return observation, float(step.rewards[0]), bool(step.terminated[0]), bool(step.truncated[0]), info

    def snapshot(self) -> Snapshot:
        """The fight as it stands, to go back to with `reset(options={"start": snapshot})`."""
        return self.batch.snapshot()

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The fight as a picture, or in a window in human mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode; give 'rgb_array' or 'human' to make()")
            return None
        return self._picture()

    def close(self) -> None:
        """Let go of the engine."""
        self.batch.close()

    @abstractmethod
    def _picture(self) -> npt.NDArray[np.uint8] | None:
        """Draw the fight as it stands: an array, or into a window."""

    def _is_running(self) -> bool:
        return self._begun and not self.batch.over[0]

    def _shown(self, step: Step | None) -> tuple[Observation, dict[str, Any]]:
        """The observation and the info."""
        record = self.batch.record()
        info, observation = self._info(record, step), self._observation(record)
        if self.render_mode == "human":
            self.render()
        return observation, info

    def _info(self, record: Fights, step: Step | None) -> dict[str, Any]:
        """The same keys after a reset and after a step."""
        terms = step.terms[0].tolist() if step else [0.0] * len(self.batch.term_names)
        info: dict[str, Any] = {
            "action_mask": self.batch.masks[0].copy(),
            "reward_terms": dict(zip(self.batch.term_names, terms, strict=True)),
            "won": False,
            "killed_by": "",
            "time_s": record["time_s"].item(),
            "damage_dealt": record["dealt_total"].item(),
            "damage_taken": record["taken_total"].item(),
        }
        if self.batch.over[0]:
            won = step.won if step else self.batch.parts.ending.won(record)
            info |= {key: values.item() for key, values in self.batch.ending(record, won).items()}
        return info | self._more_info(record)

    def _more_info(self, record: Fights) -> dict[str, Any]:
        """What this kind of environment tells beside the rest."""
        return {}

    def _observation(self, record: Fights) -> Observation:
        if self.batch.parts.encoder:
            return self.batch.observations[0].copy()
        return self._view.one(record[0])


def checked_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The options of a reset; as in Gymnasium, those of others are left alone."""
    if options is not None and not isinstance(options, Mapping):
        raise MisuseError(f"options is a {type(options).__name__}; give a dict")
    return options or {}


def checked_render_mode(mode: str | None, known: list[str]) -> str | None:
    """The render mode, if it is one."""
    if mode is not None and mode not in known:
        raise MisuseError(f"render_mode {mode!r} is not known; give {' or '.join(map(repr, known))}")
    return mode


def _checked(action: SupportsIndex, number: int) -> int:
    try:
        chosen = operator.index(action)
    except TypeError:
        raise MisuseError(f"action {action!r} is not a whole number; give 0 to {number - 1}") from None
    if not 0 <= chosen < number:
        raise MisuseError(f"action {action!r} is out of range; give 0 to {number - 1}")
    return chosen
