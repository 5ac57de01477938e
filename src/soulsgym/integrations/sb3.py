"""A Stable-Baselines3 VecEnv on the native batch: hundreds of fights in one process, with action masks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.batch import ENDING_KEYS
from soulsgym.envs.vector import FightVectorEnv
from soulsgym.errors import MisuseError
from soulsgym.packages import missing_package
from soulsgym.state import Fights

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise missing_package(error) or error from error


class OneFight:
    """One fight of the batch, as `get_attr`, `set_attr` and `env_method` of a VecEnv reach it."""

    def __init__(self, env: FightVectorEnv, index: int) -> None:
        self._env, self._index = env, index

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked for is the same for all fights."""
        return getattr(self._env, name)

    @property
    def fight(self) -> Fights:
        """The record of the fight as it stands, a copy."""
        return self._env.fights[self._index : self._index + 1]

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are open now, by the name that sb3-contrib looks for."""
        mask: npt.NDArray[np.bool_] = self._env.batch.masks[self._index].copy()
        return mask

    def current_valid_actions(self) -> list[int]:
        """The numbers of the actions that are open now."""
        return np.flatnonzero(self.action_masks()).tolist()


class FightVecEnv(VecEnv):
    """`num_envs` fights of a simulated id, with the keywords of `gymnasium.make_vec`.

    The info of a fight that ended has `episode` as SB3's Monitor writes it, `is_success`, `terminal_observation`,
    `TimeLimit.truncated` and how the fight went; that of the others is empty.
    """

    def __init__(self, name: str = "SoulsGymIudexSimDemoEncoded-v0", num_envs: int = 64, **keywords: Any) -> None:
        made = gymnasium.make_vec(
            name,
            num_envs=num_envs,
            vectorization_mode="vector_entry_point",
            autoreset_mode=AutoresetMode.SAME_STEP,
            **keywords,
        )
        self.env = cast(FightVectorEnv, made.unwrapped)
        self._fights = [OneFight(self.env, index) for index in range(num_envs)]
        self._actions: npt.NDArray[Any] = np.zeros(num_envs, np.int64)
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._begun = time.monotonic()
        super().__init__(num_envs, self.env.single_observation_space, self.env.single_action_space)

    def reset(self) -> Any:
        """Begin all fights, with the seeds and options that were set before."""
        options = self._options[0]
        if any(other != options for other in self._options):
            raise MisuseError("options differ between the fights; give all the same, or lists in options['start']")
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        observations, _ = self.env.reset(seed=seeds, options=options or None)
        self._returns[:], self._lengths[:] = 0.0, 0
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Remember the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Play on in all fights; those that end begin again at once."""
        observations, rewards, terminated, truncated, infos = self.env.step(np.asarray(self._actions))
        self._returns += rewards
        self._lengths += 1
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = terminated | truncated
        for index in np.flatnonzero(ended):
            told[index] = self._ending(int(index), infos) | {
                "TimeLimit.truncated": bool(truncated[index] and not terminated[index])
            }
        self._returns[ended], self._lengths[ended] = 0.0, 0
        return observations, rewards.astype(np.float32), ended, told

    def _ending(self, index: int, infos: dict[str, Any]) -> dict[str, Any]:
        final = infos["final_info"]
        return {
            "episode": {
                "r": round(float(self._returns[index]), 6),
                "l": int(self._lengths[index]),
                "t": round(time.monotonic() - self._begun, 6),
            },
            "is_success": bool(final["won"][index]),
            "terminal_observation": infos["final_obs"][index],
            "reward_terms": {name: float(final["reward_terms"][name][index]) for name in self.env.batch.term_names},
            **{key: final[key][index] for key in ENDING_KEYS},
        }

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of each fight."""
        return [getattr(fight, attr_name) for fight in self._of(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of each fight; `get_attr` then gives it back."""
        for fight in self._of(indices):
            setattr(fight, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """What a method gives for each fight."""
        if method_name in ("reset", "step", "close"):
            raise MisuseError(f"{method_name} is for all fights together; call it on the FightVecEnv itself")
        return [getattr(fight, method_name)(*method_args, **method_kwargs) for fight in self._of(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        """No fight is wrapped, but all tell what SB3's Monitor would tell."""
        return [wrapper_class is Monitor for _ in self._of(indices)]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """A picture of every fight."""
        return self.env.render() or [None] * self.num_envs

    def close(self) -> None:
        """Release the engine."""
        self.env.close()

    def _of(self, indices: int | Iterable[int] | None) -> list[OneFight]:
        return [self._fights[index] for index in self._get_indices(indices)]
