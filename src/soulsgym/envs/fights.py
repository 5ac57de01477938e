"""A batch of fights as an environment sees it: actions in; records, rewards and endings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import controls_of
from soulsgym.engine import Engine, Snapshot, standard_starts
from soulsgym.errors import MisuseError, StartError, suggestion
from soulsgym.parts.rewards import SOULSGYM, Reward, make_reward
from soulsgym.parts.starts import given_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import STANDARD, FightSpec
from soulsgym.spec.population import evaluation_specs
from soulsgym.state import Fights, Outcome, copied

OPTIONS = ("start", "reset_mask")
SEEDS = 1 << 63
FALL = "fall"
"""What a player dies of without a blow."""
UNKNOWN = "unknown"
"""The killer that a running game does not tell; the simulator always does."""
WON, DIED, FELL = int(Outcome.WON), int(Outcome.DIED), int(Outcome.FELL)


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


class EngineBatch:
    """The fights of one engine with their rewards. Moves of the boss are known by `move_names`."""

    def __init__(self, engine: Engine, reward: Reward, move_names: Sequence[str], settings: FightSettings) -> None:
        self.engine, self.reward, self.settings = engine, reward, settings
        n = len(engine.fights)
        self._starts = standard_starts(n)
        self._starts["random_pose"] = settings.random_player_pose
        self._move_names = np.array([*move_names, UNKNOWN], dtype=object)
        self._seeded = False

    def __len__(self) -> int:
        return len(self.engine.fights)

    def begin(
        self,
        mask: npt.NDArray[np.bool_],
        *,
        seeds: npt.NDArray[np.uint64] | None = None,
        generator: np.random.Generator | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin the fights of `mask`. The first time without seeds they are drawn from `generator`."""
        start = self._start_of(options)
        if seeds is None and not self._seeded:
            drawn = (generator or np.random.default_rng()).integers(SEEDS, size=len(self))
            seeds = drawn.astype(np.uint64)
        snapshot = start.pop("snapshot", None)
        if snapshot is not None:
            self._restore(snapshot, mask, start)
        else:
            starts = given_starts(len(self), start) if start else self._starts
            if start and "player_pose" not in start:
                starts["random_pose"] = self.settings.random_player_pose
            if start:
                self.engine.check_starts(starts[mask])
            self.engine.reset(mask, starts, seeds)
        self._seeded = True
        self.reward.begin(self.engine.fights, mask)

    def step(self, actions: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Play one step and return the rewards and their terms; fights that are over stay as they are."""
        self.engine.step(controls_of(actions), skip=self.settings.skip_steps)
        return self.reward.of(self.engine.fights)

    def record(self) -> Fights:
        """A copy of the record that later steps do not touch."""
        return copied(self.engine.fights)

    def ending(self, fights: Fights, which: npt.NDArray[np.intp]) -> dict[str, npt.NDArray[Any]]:
        """What is to be said of the fights `which`, that ended: who won, and of which attack the player died."""
        outcome = fights["outcome"][which]
        killers = np.where(outcome == FELL, FALL, self._move_names[fights["killed_by"][which]])
        return {
            "won": outcome == WON,
            "killed_by": np.where((outcome == DIED) | (outcome == FELL), killers, ""),
            "time_s": fights["time_s"][which],
            "damage_dealt": fights["dealt_total"][which],
            "damage_taken": fights["taken_total"][which],
        }

    def snapshot(self) -> Snapshot:
        """Everything that decides how the fights go on; give it back as `options={"start": {"snapshot": ...}}`."""
        return self.engine.snapshot()

    def _restore(self, snapshot: object, mask: npt.NDArray[np.bool_], rest: Mapping[str, Any]) -> None:
        if not isinstance(snapshot, Snapshot):
            raise StartError(f"start snapshot is a {type(snapshot).__name__}; give what snapshot() returned")
        if rest:
            raise StartError(f"start has a snapshot and also {', '.join(rest)}; give one or the other")
        if not mask.all():
            raise StartError("start has a snapshot but only some fights are reset; reset all of them")
        self.engine.restore(snapshot)

    @staticmethod
    def _start_of(options: Mapping[str, Any] | None) -> dict[str, Any]:
        start = checked_options(options).get("start")
        if start is None:
            return {}
        if isinstance(start, Snapshot):
            return {"snapshot": start}
        if not isinstance(start, Mapping):
            raise StartError(f"start is a {type(start).__name__}; give a dict or a snapshot")
        return dict(start)


class FightBatch(EngineBatch):
    """`n` fights on the simulator."""

    engine: SimEngine

    def __init__(self, settings: FightSettings, n: int = 1, *, threads: int = 1) -> None:
        specs = evaluation_specs(settings.boss, settings.variant)
        if len(specs) > max(n, 1):
            raise MisuseError(
                f"variant {settings.variant!r} is {len(specs)} files and needs as many fights, not {n}; "
                "give the path of one file, such as souls variant draw writes"
            )
        self.spec: FightSpec = specs[0]
        engine = SimEngine(
            specs,
            n,
            phase=settings.phase,
            changes=settings.changes,
            randomize=settings.randomize,
            threads=threads,
        )
        names = [move.name for move in self.spec.boss.moves]
        super().__init__(engine, make_reward(SOULSGYM, n, self.spec), names, settings)


def checked_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The options of a reset, all of them known."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise MisuseError(f"options is a {type(options).__name__}; give a dict")
    for key in options:
        if key not in OPTIONS:
            raise MisuseError(f"option {key!r} is not known{suggestion(str(key), OPTIONS)}")
    return options


def seed_number(seed: int) -> np.uint64:
    """A seed as the engine takes it; its lowest 64 bits."""
    return np.uint64(seed & (2**64 - 1))
