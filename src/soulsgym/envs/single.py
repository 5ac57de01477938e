"""One fight as a Gymnasium environment."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from soulsgym.controls import ACTION_CONTROLS, NOTHING
from soulsgym.engine import Snapshot
from soulsgym.envs.fights import FightBatch, FightSettings, seed_number
from soulsgym.envs.spaces import observation_space
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.state import NUM_ACTIONS, Fights, Outcome, action_mask_of, observation_of

if TYPE_CHECKING:
    from soulsgym.envs.render import FightRenderer

Observation = dict[str, Any]
RUNNING = int(Outcome.RUNNING)
FIRST = np.zeros(1, np.intp)
FPS = 10
"""Steps of 0.1 s in a second of the game."""


class FightEnv(gymnasium.Env[Observation, np.int64]):
    """A fight against one boss; see the registered ids for what can be set."""

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, settings: FightSettings, *, render_mode: str | None = None, game_speed: float = 1.0) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise MisuseError(f"render_mode {render_mode!r} is not known; give 'rgb_array' or 'human'")
        if not game_speed > 0.0:
            raise MisuseError(f"game_speed {game_speed} is not possible; give a number above 0")
        self._batch = FightBatch(settings)
        self.moveset = self._batch.moveset
        self.observation_space = observation_space(self.moveset)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.render_mode = render_mode
        self._fps = FPS * game_speed
        self._renderer: FightRenderer | None = None
        self._last_action = NOTHING
        self._all = np.ones(1, np.bool_)
        self._action = np.zeros(1, np.int64)
        self._ready = False

    @property
    def fight(self) -> Fights:
        """The record of the fight as it stands, a copy."""
        return self._batch.record()

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
        if self.render_mode == "human":
            self.render()
        return self._observation(record), {"action_mask": action_mask_of(record)[0]}

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play 0.1 s of the game."""
        if not self._ready:
            raise ResetNeeded("the fight is over or has not begun; call reset()")
        try:
            number = operator.index(action)
        except TypeError:
            raise MisuseError(f"action {action!r} is not a whole number; give 0 to {NUM_ACTIONS - 1}") from None
        if not 0 <= number < NUM_ACTIONS:
            raise MisuseError(f"action {action!r} is out of range; give 0 to {NUM_ACTIONS - 1}")
        self._last_action = number
        self._action[0] = number
        rewards, terms = self._batch.step(self._action)
        record = self._batch.record()
        over = bool(record["outcome"][0] != RUNNING)
        info: dict[str, Any] = {
            "action_mask": action_mask_of(record)[0],
            "reward_terms": dict(zip(self._batch.reward.names, terms[0].tolist(), strict=True)),
        }
        if over:
            self._ready = False
            info |= {key: values.tolist()[0] for key, values in self._batch.ending(record, FIRST).items()}
        if self.render_mode == "human":
            self.render()
        return self._observation(record), float(rewards[0]), over, False, info

    def snapshot(self) -> Snapshot:
        """The fight as it stands, to go back to with `reset(options={"start": snapshot})`."""
        return self._batch.snapshot()

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The fight from above: a picture, or a window in human mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode; give 'rgb_array' or 'human' to make()")
            return None
        if self._renderer is None:
            from soulsgym.envs.render import FightRenderer

            self._renderer = FightRenderer(self.moveset, fps=self._fps)
        record = self._batch.engine.fights[0]
        if self.render_mode == "rgb_array":
            return self._renderer.draw(record, ACTION_CONTROLS[self._last_action])
        self._renderer.show(record, ACTION_CONTROLS[self._last_action])
        return None

    def close(self) -> None:
        """Close the window, if any."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._batch.engine.close()

    @staticmethod
    def _observation(record: Fights) -> Observation:
        return {key: values[0] for key, values in observation_of(record).items()}
