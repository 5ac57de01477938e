"""Fights ready for a learner: encoded, masked, rewarded by term, and begun anew when they end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from soulsgym.actions import controls_of
from soulsgym.engine import Engine, Snapshot
from soulsgym.errors import MisuseError
from soulsgym.parts.actions import ActionSet
from soulsgym.parts.encoders import Encoder
from soulsgym.parts.endings import Ending
from soulsgym.parts.rewards import Reward
from soulsgym.parts.starts import Starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec.population import Population
from soulsgym.state import FIGHT, Fights

TRAINING_SEEDS = 0x7261_696E
"""Beside the user's seed: training draws its fights from another stream than evaluation does."""

State = dict[str, npt.NDArray[Any]]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Step:
    """What a step of `n` fights brought. The arrays are reused by the next step."""

    rewards: npt.NDArray[np.float32]
    terms: npt.NDArray[np.float64]  # fights x names of the reward
    steps: npt.NDArray[np.int32]  # environment steps that passed; more than one where forced ones were merged
    terminated: Flags
    truncated: Flags
    ended: Flags
    final_observations: npt.NDArray[np.float32]  # of the fights that ended, before they began anew
    final_masks: Flags
    endings: Fights  # last records, valid where ended
    won: Flags
    standard: Flags  # fights that had begun in the standard way

    @classmethod
    def of_size(cls, n: int, observation_size: int, num_actions: int, terms: int) -> Step:
        """Empty buffers."""
        flags = [np.zeros(n, np.bool_) for _ in range(5)]
        return cls(
            rewards=np.zeros(n, np.float32),
            terms=np.zeros((n, terms)),
            steps=np.zeros(n, np.int32),
            terminated=flags[0],
            truncated=flags[1],
            ended=flags[2],
            final_observations=np.zeros((n, observation_size), np.float32),
            final_masks=np.ones((n, num_actions), np.bool_),
            endings=np.zeros(n, FIGHT),
            won=flags[3],
            standard=flags[4],
        )


@dataclass(frozen=True)
class FightParts:
    """The parts that make an engine's records into something to learn from, all for the same number of fights."""

    encoder: Encoder
    reward: Reward
    actions: ActionSet
    ending: Ending
    starts: Starts


class EncodedFights:
    """The fights of one engine. With `decisions` steps that leave no choice are merged into the one before.

    A `population` says which files they are played on; the engine must be a simulator made for it.
    """

    def __init__(
        self, engine: Engine, parts: FightParts, *, decisions: bool = True, population: Population | None = None
    ) -> None:
        self.engine, self.parts, self.decisions, self.population = engine, parts, decisions, population
        if population is not None and (not isinstance(engine, SimEngine) or engine.counts != population.counts):
            raise MisuseError("the population is not of these fights; make the engine of its movesets and counts")
        self.number = len(engine.fights)
        self.observation_size = parts.encoder.size
        self.num_actions = len(parts.actions.indices)
        self.term_names = parts.reward.names
        self.observations = np.zeros((self.number, self.observation_size), np.float32)
        self.masks = np.ones((self.number, self.num_actions), np.bool_)
        self._step = Step.of_size(self.number, self.observation_size, self.num_actions, len(self.term_names))
        self._everyone = np.ones(self.number, np.bool_)
        self._last_actions = np.full(self.number, -1, np.int64)
        self._generator = np.random.default_rng()

    def reset(self, seed: int) -> None:
        """Begin all fights; the same seed leads to the same fights."""
        sequence = np.random.SeedSequence([seed, TRAINING_SEEDS])
        fights, starts = sequence.spawn(2)
        self._generator = np.random.default_rng(starts)
        seeds = fights.generate_state(self.number, np.uint64).astype(np.uint64)
        if self.population is not None:
            self.population.reset(seed, partial(self._simulator.replace, all_begin=True))
        self._begin(self._everyone, seeds)

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on with `actions`, positions in the action set."""
        step, fights = self._step, self.engine.fights
        numbers = self.parts.actions.numbers(actions)
        before = fights["step"].copy()
        self.engine.step(controls_of(numbers), skip=self.decisions)
        np.subtract(fights["step"], before, out=step.steps)
        step.rewards[:], step.terms[:] = self.parts.reward.of(fights)
        step.terminated[:], step.truncated[:] = self.parts.ending.of(fights)
        np.logical_or(step.terminated, step.truncated, out=step.ended)
        self._last_actions[:] = numbers
        self._show(self._everyone)
        if step.ended.any():
            self._end(step)
        return step

    def state(self) -> State:
        """Everything that decides how the fights go on."""
        snapshot = self.engine.snapshot()
        state: State = {
            "fights": snapshot.fights.view(np.uint8),
            "hidden": snapshot.hidden.view(np.uint8),
            "kind": np.frombuffer(snapshot.kind.encode(), np.uint8),
            "last_actions": self._last_actions.copy(),
            "observations": self.observations.copy(),
            "masks": self.masks.copy(),
            "generator": state_of_generator(self._generator),
        }
        for name, part in self._saved_parts().items():
            state |= {f"{name}.{key}": value for key, value in part.state().items()}
        return state

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state of the same number of fights."""
        own = self.engine.snapshot()
        if state["fights"].size != own.fights.nbytes or state["hidden"].size != own.hidden.nbytes:
            raise MisuseError(
                f"the saved fights are not {self.number} of this simulator; use the version that saved them"
            )
        for name, part in self._saved_parts().items():
            part.restore(
                {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}
            )
        self.engine.restore(
            Snapshot(
                state["kind"].tobytes().decode(),
                state["fights"].reshape(-1).view(own.fights.dtype),
                state["hidden"].reshape(-1).view(own.hidden.dtype),
                self.population.tables if self.population is not None else (),
            )
        )
        self._last_actions[:] = state["last_actions"]
        self.observations[:], self.masks[:] = state["observations"], state["masks"]
        restore_generator(self._generator, state["generator"])

    def close(self) -> None:
        """Release the engine."""
        self.engine.close()

    @property
    def _simulator(self) -> SimEngine:
        return cast(SimEngine, self.engine)

    def _saved_parts(self) -> dict[str, Any]:
        parts = {name: getattr(self.parts, name) for name in ("encoder", "reward", "starts")}
        return parts if self.population is None else parts | {"population": self.population}

    def _show(self, mask: Flags) -> None:
        self.parts.encoder.encode(self.engine.fights, self._last_actions, mask, self.observations)
        self.parts.actions.open(self.engine.fights, self.masks)

    def _begin(self, mask: Flags, seeds: npt.NDArray[np.uint64] | None) -> None:
        fights, parts = self.engine.fights, self.parts
        self.engine.reset(mask, parts.starts.draw(mask, self._generator), seeds)
        parts.reward.begin(fights, mask)
        parts.encoder.begin(fights, mask)
        self._last_actions[mask] = -1
        self._show(mask)

    def _end(self, step: Step) -> None:
        which = np.flatnonzero(step.ended)
        fights = self.engine.fights
        step.endings[which] = fights[which]
        step.standard[:] = self.parts.starts.is_standard
        step.won[:] = self.parts.ending.won(fights)
        step.final_observations[which] = self.observations[which]
        step.final_masks[which] = self.masks[which]
        self.parts.starts.report(step.ended, step.won)
        if self.population is not None:
            self.population.report(step.ended, self._simulator.replace)
        self._begin(step.ended, None)


class LiveFights(EncodedFights):
    """Fights in a running game, which cannot be put back: it has no state to save, and going on means a new fight."""

    def state(self) -> State:
        """Nothing."""
        return {}


def state_of_generator(generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    """The state of a PCG64 as bytes."""
    return np.frombuffer(json.dumps(generator.bit_generator.state).encode(), np.uint8).copy()


def restore_generator(generator: np.random.Generator, state: npt.NDArray[Any]) -> None:
    """Let a generator go on from a state."""
    generator.bit_generator.state = json.loads(state.tobytes())
