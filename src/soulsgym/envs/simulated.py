"""Fights on the simulator: a batch of them, and one as a Gymnasium environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.batch import FightBatch
from soulsgym.envs.pickled import Pickled
from soulsgym.envs.single import FPS, checked_render_mode
from soulsgym.envs.soulsenv import SoulsEnv
from soulsgym.errors import MisuseError
from soulsgym.parts import PartChoices, make_parts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import STANDARD, FightSpec
from soulsgym.spec.population import evaluation_specs
from soulsgym.spec.practice import only_attack

if TYPE_CHECKING:
    from soulsgym.render import FightRenderer


@dataclass(frozen=True)
class FightSettings:
    """What an environment id and its keywords say about the fight."""

    boss: str
    phase: int = 1
    changes: bool = False
    random_player_pose: bool = False
    skip_steps: bool = False
    randomize: float = 0.0
    variant: str = STANDARD
    only: str = ""  # the one attack that the boss does, for practice


def fight_specs(settings: FightSettings) -> tuple[FightSpec, ...]:
    """The fights of the settings: one, or as many as drawn variants there are."""
    specs = evaluation_specs(settings.boss, settings.variant)
    return tuple(only_attack(spec, settings.only) for spec in specs) if settings.only else specs


def simulated_batch(
    settings: FightSettings,
    n: int = 1,
    *,
    threads: int = 1,
    autoreset: AutoresetMode = AutoresetMode.DISABLED,
    max_episode_steps: int | None = None,
    **choices: Unpack[PartChoices],
) -> FightBatch:
    """`n` fights on the simulator with the chosen parts."""
    if not settings.boss:
        raise MisuseError("boss is missing; give the name of one, or the path of its file, such as boss='iudex'")
    specs = fight_specs(settings)
    if len(specs) > max(n, 1):
        raise MisuseError(
            f"variant {settings.variant!r} is {len(specs)} files and needs as many fights, not {n}; "
            "give the path of one file, such as souls variant draw writes"
        )
    engine = SimEngine(
        specs,
        n,
        phase=settings.phase,
        changes=settings.changes,
        randomize=settings.randomize,
        threads=threads,
    )
    parts = make_parts(
        n,
        specs[0],
        choices,
        random_pose=settings.random_player_pose,
        full=settings.changes,
        phase=settings.phase,
    )
    return FightBatch(
        engine,
        parts,
        decisions=settings.skip_steps,
        autoreset=autoreset,
        max_episode_steps=max_episode_steps,
        move_names=[move.name for move in specs[0].boss.moves],
    )


class FightEnv(Pickled, SoulsEnv):
    """A fight in the simulator, which waits for nothing: `game_speed` only paces the window.

    `changes` lets the boss go on to his next phase. `encoder`, `reward`, `actions`, `ending` and `starts` choose the
    parts; `decisions` plays steps without a choice at once, and so does `skip_steps`, SoulsGym's name for it.
    `init_pose_randomization` is an older name of `random_player_pose`. `zero_based` counts the whole numbers of the
    observation from 0.
    """

    def __init__(
        self,
        boss: str = "",
        changes: bool = False,
        phase: int = 1,
        random_player_pose: bool = False,
        skip_steps: bool = False,
        randomize: float = 0.0,
        variant: str = STANDARD,
        game_speed: float = 1.0,
        render_mode: str | None = None,
        *,
        decisions: bool = False,
        zero_based: bool = False,
        init_pose_randomization: bool = False,
        **choices: Unpack[PartChoices],
    ) -> None:
        checked_render_mode(render_mode, self.metadata["render_modes"])
        if not game_speed > 0.0:
            raise MisuseError(f"game_speed {game_speed} is not possible; give a number above 0")
        self._fps = FPS * float(game_speed)
        skip, random_pose = skip_steps or decisions, random_player_pose or init_pose_randomization
        self.settings = FightSettings(boss, phase, changes, random_pose, skip, randomize, variant)
        batch = simulated_batch(self.settings, **choices)
        self.fight_spec = batch.engine.spec  # type: ignore[attr-defined]
        self._renderer: FightRenderer | None = None
        super().__init__(batch, self.fight_spec, render_mode, phase=phase, zero_based=zero_based)

    def close(self) -> None:
        """Close the window, if any."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        super().close()

    def _picture(self) -> npt.NDArray[np.uint8] | None:
        """The fight from above."""
        if self._renderer is None:
            from soulsgym.render import FightRenderer

            self._renderer = FightRenderer(self.fight_spec, fps=self._fps)
        record = self.batch.engine.fights[0]
        if self.render_mode == "rgb_array":
            return self._renderer.draw(record, ACTION_CONTROLS[self._last_action])
        self._renderer.show(record, ACTION_CONTROLS[self._last_action])
        return None
