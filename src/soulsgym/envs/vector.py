"""Many fights as one Gymnasium vector environment, stepped together without a loop over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from soulsgym.batch import Flags, Step, seed_number
from soulsgym.engine import Snapshot
from soulsgym.envs.pickled import Pickled
from soulsgym.envs.simulated import FightSettings, simulated_batch
from soulsgym.envs.single import checked_options
from soulsgym.envs.spaces import RecordView, encoded_space, limits_of
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.parts import PartChoices
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import STANDARD
from soulsgym.state import FIGHT, ROW, Fights, copied

if TYPE_CHECKING:
    from soulsgym.render import FightRenderer

Observations = Any
"""Arrays by key, or one array with an encoder."""
StepResult = tuple[Observations, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]


class FightVectorEnv(Pickled, VectorEnv[Observations, npt.NDArray[np.int64], Any]):
    """`num_envs` fights. Fight i of a batch seeded with s is the fight of a single environment seeded with s + i.

    (Starts that are drawn anywhere in a fight are drawn for all fights together, and differ from those.)

    `autoreset_mode` says what happens to a fight that ends: NEXT_STEP begins it again in the next step (whose action is
    ignored), SAME_STEP at once (the last observation is in `infos["final_obs"]`), DISABLED leaves it to
    `reset(options={"reset_mask": ...})`. The other keywords are those of the single environment; `game_speed` is taken
    so that one set of keywords serves both, and paces nothing.
    """

    def __init__(
        self,
        boss: str = "",
        changes: bool = False,
        num_envs: int = 1,
        phase: int = 1,
        random_player_pose: bool = False,
        skip_steps: bool = False,
        randomize: float = 0.0,
        variant: str = STANDARD,
        game_speed: float = 1.0,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        max_episode_steps: int | None = None,
        *,
        decisions: bool = False,
        zero_based: bool = False,
        **choices: Unpack[PartChoices],
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise MisuseError(f"render_mode {render_mode!r} is not possible for many fights; give 'rgb_array'")
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": ["rgb_array"], "render_fps": 10}
        skip = skip_steps or decisions
        self.batch = simulated_batch(
            FightSettings(boss, phase, changes, random_player_pose, skip, randomize, variant),
            num_envs,
            threads=threads,
            autoreset=self.autoreset_mode,
            max_episode_steps=max_episode_steps,
            **choices,
        )
        self.fight_spec = self.engine.spec
        self._view = RecordView(limits_of(self.fight_spec), zero_based=zero_based)
        encoder = self.batch.parts.encoder
        self.single_observation_space = encoded_space(encoder) if encoder else self._view.space
        self.single_action_space = spaces.Discrete(self.batch.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._all, nobody = np.ones(num_envs, np.bool_), np.zeros(num_envs, np.bool_)
        told = self.batch.ending(self.batch.record()[:0], nobody[:0])
        self._gaps = {
            key: np.full(num_envs, None if one.dtype == object else 0, one.dtype) for key, one in told.items()
        }
        self._nothing_ended = {
            name: each for key, gaps in self._gaps.items() for name, each in ((key, gaps), (f"_{key}", nobody))
        }
        for shared in (self._all, *self._nothing_ended.values()):
            shared.setflags(write=False)
        self._begun = False
        self._renderers: list[FightRenderer] = []

    @property
    def engine(self) -> SimEngine:
        """What runs the fights, for measuring it bare."""
        return self.batch.engine  # type: ignore[return-value]

    @property
    def fights(self) -> Fights:
        """The records of all fights as they stand, a copy."""
        return self.batch.record()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are open now: a row for each fight."""
        return self.batch.masks.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin all fights, or those of `options["reset_mask"]`; `options["start"]` says how."""
        known = checked_options(options)
        mask, (seeds, seeded) = self._reset_mask(known.get("reset_mask")), self._seeds(seed)
        super().reset(seed=_one_seed(seed))
        if not self._begun and not mask.all():
            raise ResetNeeded("reset_mask leaves out fights that have not begun; reset all of them first")
        start = known.get("start")
        self.batch.begin(mask, seeds=seeds, seeded=seeded, generator=self.np_random, start=start)
        self._begun = True
        return self._observations(), self._infos(np.zeros((self.num_envs, len(self.batch.term_names))))

    def step(self, actions: npt.NDArray[Any]) -> StepResult:
        """Play 0.1 s of every fight, or with `decisions` on to the next choice."""
        if not self._begun:
            raise ResetNeeded("the fights have not begun; call reset()")
        step = self.batch.step(self._checked(actions))
        infos = self._infos(step.terms.copy())
        if step.ended.any():
            self._add_endings(infos, step)
        return self._observations(), step.rewards.copy(), step.terminated.copy(), step.truncated.copy(), infos

    def snapshot(self) -> Snapshot:
        """All fights as they stand, to go back to with `reset(options={"start": snapshot})`."""
        return self.batch.snapshot()

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """A picture of every fight."""
        if self.render_mode is None:
            return None
        from soulsgym.render import FightRenderer

        while len(self._renderers) < self.num_envs:
            self._renderers.append(FightRenderer(self.engine.spec_of(len(self._renderers))))
        return tuple(
            renderer.draw(record) for renderer, record in zip(self._renderers, self.engine.fights, strict=True)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """End threads and pictures."""
        for renderer in self._renderers:
            renderer.close()
        self.batch.close()

    def _observations(self) -> Observations:
        if self.batch.parts.encoder:
            return self.batch.observations.copy()
        return self._view.of(self.batch.record())

    def _infos(self, terms: npt.NDArray[np.float64]) -> dict[str, Any]:
        """The same keys after a reset and after a step; `_key` says of which fights there is something to tell."""
        by_name: dict[str, Any] = {name: terms[:, column] for column, name in enumerate(self.batch.term_names)}
        by_name |= {f"_{name}": self._all for name in self.batch.term_names}
        return {
            "action_mask": self.batch.masks.copy(),
            "_action_mask": self._all,
            "reward_terms": by_name,
            "_reward_terms": self._all,
            **self._nothing_ended,
        }

    def _add_endings(self, infos: dict[str, Any], step: Step) -> None:
        ended = step.ended.copy()
        endings = self._endings(step, ended)
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            infos |= endings
            return
        # What was told above is of the fights that have begun again.
        masks = np.where(ended[:, None], step.final_masks, infos["action_mask"])
        infos["final_info"] = infos | endings | {"action_mask": masks}
        infos |= {"_final_info": ended, "final_obs": self._final_observations(step), "_final_obs": ended}

    def _endings(self, step: Step, ended: Flags) -> dict[str, Any]:
        """How the fights that `ended` went, with gaps for the others."""
        told: dict[str, Any] = {}
        which = ended.nonzero()[0]
        for key, values in self.batch.ending(step.endings.view(ROW)[which].view(FIGHT), step.won[which]).items():
            everyone = self._gaps[key].copy()
            everyone[which] = values
            told |= {key: everyone, f"_{key}": ended}
        return told

    def _final_observations(self, step: Step) -> npt.NDArray[Any]:
        final = np.full(self.num_envs, None, dtype=object)
        if self.batch.parts.encoder:
            for index in np.flatnonzero(step.ended):
                final[index] = step.final_observations[index].copy()
            return final
        endings = copied(step.endings)
        for index in np.flatnonzero(step.ended):
            final[index] = self._view.one(endings[index])
        return final

    def _checked(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        chosen, number = np.asarray(actions), self.batch.num_actions
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise MisuseError(f"actions are {chosen.dtype} of shape {chosen.shape}; give {self.num_envs} integers")
        # Seen without its sign a negative number is a huge one, so one look finds both kinds of mistake.
        if chosen.view(f"u{chosen.itemsize}").max() >= number:
            bad = chosen[(chosen < 0) | (chosen >= number)][0]
            raise MisuseError(f"action {bad} is out of range; give 0 to {number - 1}")
        return chosen

    def _reset_mask(self, given: object) -> Flags:
        if given is None:
            return self._all
        mask = np.asarray(given)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise MisuseError(f"reset_mask is {mask.dtype} of shape {mask.shape}; give {self.num_envs} booleans")
        return mask

    def _seeds(
        self, seed: int | Sequence[int | None] | None
    ) -> tuple[npt.NDArray[np.uint64] | None, npt.NDArray[np.bool_] | None]:
        """Seeds for all fights, and which of them count; those without one go on with their own randomness."""
        if seed is None:
            return None, None
        if isinstance(seed, (int, np.integer)):
            return seed_number(int(seed)) + np.arange(self.num_envs, dtype=np.uint64), None
        if len(seed) != self.num_envs:
            raise MisuseError(
                f"seed is a list of {len(seed)}; give one number or None for each of {self.num_envs} fights"
            )
        given = np.array([one is not None for one in seed])
        if not given.any():
            return None, None
        return np.array([seed_number(int(one or 0)) for one in seed]), None if given.all() else given


def _one_seed(seed: int | Sequence[int | None] | None) -> int | None:
    """A seed for what is drawn for all fights together."""
    if seed is None or isinstance(seed, (int, np.integer)):
        return None if seed is None else int(seed)
    given = [int(one) for one in seed if one is not None]
    return int(np.random.SeedSequence(given).generate_state(1)[0]) if given else None


def _autoreset_mode(given: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError:
        known = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise MisuseError(f"autoreset_mode {given!r} is not known; give one of {known}") from None
