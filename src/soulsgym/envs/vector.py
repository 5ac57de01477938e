"""Many fights as one Gymnasium vector environment, stepped together without a loop over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from soulsgym.engine import Snapshot
from soulsgym.envs.fights import FightBatch, FightSettings, checked_options, seed_number
from soulsgym.envs.spaces import limits_of, observation_space
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.sim.engine import SimEngine
from soulsgym.state import NUM_ACTIONS, Fights, Outcome, action_mask_of, observation_of

if TYPE_CHECKING:
    from soulsgym.render import FightRenderer

Observations = dict[str, npt.NDArray[Any]]
RUNNING = int(Outcome.RUNNING)
Flags = npt.NDArray[np.bool_]
StepResult = tuple[Observations, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]


class FightVectorEnv(VectorEnv[Observations, npt.NDArray[np.int64], Any]):
    """`num_envs` fights. Fight i of a batch seeded with s is the fight of a single environment seeded with s + i.

    `autoreset_mode` says what happens to a fight that ends: NEXT_STEP begins it anew in the next step (whose action is
    ignored), SAME_STEP at once (the last observation is in `infos["final_obs"]`), DISABLED leaves it to
    `reset(options={"reset_mask": ...})`.
    """

    def __init__(
        self,
        settings: FightSettings,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise MisuseError(f"render_mode {render_mode!r} is not possible for many fights; give 'rgb_array'")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise MisuseError(f"max_episode_steps {max_episode_steps} is not possible; give 1 or more")
        self._batch = FightBatch(settings, num_envs, threads=threads)
        self.fight_spec = self._batch.spec
        self.num_envs = num_envs
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": ["rgb_array"], "render_fps": 10}
        self.render_mode = render_mode
        self.single_observation_space = observation_space(limits_of(self.fight_spec))
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = max_episode_steps
        self._steps = np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, np.bool_)
        self._all = np.ones(num_envs, np.bool_)
        self._all.setflags(write=False)
        self._ready = False
        self._renderers: list[FightRenderer] = []

    @property
    def engine(self) -> SimEngine:
        """What runs the fights, for measuring it bare."""
        return self._batch.engine

    @property
    def fights(self) -> Fights:
        """The records of all fights as they stand, a copy."""
        return self._batch.record()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin all fights, or those of `options["reset_mask"]`; `options["start"]` says how."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask = self._reset_mask(options)
        if not self._ready and not mask.all():
            raise ResetNeeded("reset_mask leaves out fights that have not begun; reset all of them first")
        self._batch.begin(mask, seeds=self._seeds(seed), generator=self.np_random, options=options)
        self._ready = True
        self._steps[mask] = 0
        record = self._batch.record()
        self._over[mask] = record["outcome"][mask] != RUNNING  # a snapshot may hold fights that are over
        return observation_of(record), self._infos(record, None)

    def step(self, actions: npt.NDArray[Any]) -> StepResult:
        """Play 0.1 s of every fight."""
        if not self._ready:
            raise ResetNeeded("the fights have not begun; call reset()")
        chosen = self._checked(actions)
        was_over = self._over if self._over.any() else None
        rewards, terms = self._batch.step(chosen)
        self._steps += ~self._over  # one that is over does not get older
        if was_over is not None:
            if self.autoreset_mode is AutoresetMode.NEXT_STEP:
                self._begin(was_over)
            rewards[was_over] = 0.0
            terms[was_over] = 0.0
        fights = self._batch.engine.fights
        terminated = fights["outcome"] != RUNNING
        truncated = self._steps >= self._limit if self._limit else np.zeros(self.num_envs, np.bool_)
        ended = terminated | truncated
        record = self._batch.record()
        infos = self._infos(record, terms)
        if ended.any():
            self._add_ending(infos, record, ended)
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                record, infos = self._same_step(record, infos, ended)
            else:
                self._over = ended.copy()  # the caller has the other one
        elif was_over is not None:
            self._over = ended
        return observation_of(record), rewards, terminated, truncated, infos

    def snapshot(self) -> Snapshot:
        """All fights as they stand, to go back to with `reset(options={"start": snapshot})`."""
        return self._batch.snapshot()

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """A picture of every fight."""
        if self.render_mode is None:
            return None
        from soulsgym.render import FightRenderer

        while len(self._renderers) < self.num_envs:
            self._renderers.append(FightRenderer(self.engine.spec_of(len(self._renderers))))
        return tuple(
            renderer.draw(record) for renderer, record in zip(self._renderers, self._batch.engine.fights, strict=True)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """End threads and pictures."""
        for renderer in self._renderers:
            renderer.close()
        self._batch.engine.close()

    def _begin(self, mask: Flags) -> None:
        self._batch.begin(mask)
        self._steps[mask] = 0

    def _same_step(self, record: Fights, infos: dict[str, Any], ended: Flags) -> tuple[Fights, dict[str, Any]]:
        final = np.full(self.num_envs, None, dtype=object)
        for index in np.flatnonzero(ended):
            final[index] = {key: values[index] for key, values in observation_of(record).items()}
        self._begin(ended)
        fresh = self._batch.record()
        again = self._infos(fresh, None)
        again |= {"final_obs": final, "_final_obs": ended, "final_info": infos, "_final_info": ended}
        if "reward_terms" in infos:
            again |= {"reward_terms": infos["reward_terms"], "_reward_terms": self._all}
        return fresh, again

    def _infos(self, record: Fights, terms: npt.NDArray[np.float64] | None) -> dict[str, Any]:
        infos: dict[str, Any] = {"action_mask": action_mask_of(record), "_action_mask": self._all}
        if terms is not None:
            names = self._batch.reward.names
            infos["reward_terms"] = {name: terms[:, column] for column, name in enumerate(names)}
            infos["_reward_terms"] = self._all
        return infos

    def _add_ending(self, infos: dict[str, Any], record: Fights, ended: Flags) -> None:
        which = np.flatnonzero(ended)
        for key, values in self._batch.ending(record, which).items():
            everyone = np.zeros(self.num_envs, values.dtype)
            everyone[which] = values
            infos[key], infos[f"_{key}"] = everyone, ended

    def _checked(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise MisuseError(f"actions are {chosen.dtype} of shape {chosen.shape}; give {self.num_envs} integers")
        # Seen without its sign a negative number is a huge one, so one look finds both kinds of mistake.
        if chosen.view(f"u{chosen.itemsize}").max() >= NUM_ACTIONS:
            bad = chosen[(chosen < 0) | (chosen >= NUM_ACTIONS)][0]
            raise MisuseError(f"action {bad} is out of range; give 0 to {NUM_ACTIONS - 1}")
        return chosen

    def _reset_mask(self, options: dict[str, Any] | None) -> Flags:
        given = checked_options(options).get("reset_mask")
        if given is None:
            return self._all
        mask = np.asarray(given)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise MisuseError(f"reset_mask is {mask.dtype} of shape {mask.shape}; give {self.num_envs} booleans")
        return mask

    def _seeds(self, seed: int | Sequence[int | None] | None) -> npt.NDArray[np.uint64] | None:
        if seed is None:
            return None
        if isinstance(seed, (int, np.integer)):
            return seed_number(int(seed)) + np.arange(self.num_envs, dtype=np.uint64)
        if len(seed) != self.num_envs or any(one is None for one in seed):
            raise MisuseError(f"seed is a list of {len(seed)}; give one number for each of {self.num_envs} fights")
        return np.array([seed_number(int(one)) for one in seed if one is not None])


def _autoreset_mode(given: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError:
        known = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise MisuseError(f"autoreset_mode {given!r} is not known; give one of {known}") from None
