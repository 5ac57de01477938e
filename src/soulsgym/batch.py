"""FightBatch: an engine and the parts around it. Every environment, vectorised or not, is a view of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from soulsgym.actions import controls_of
from soulsgym.engine import Engine, Snapshot
from soulsgym.errors import MisuseError, StartError
from soulsgym.parts import FightParts
from soulsgym.parts.starts import given_starts
from soulsgym.spec.population import Population
from soulsgym.state import FIGHT, ROW, Fights, Outcome

State = dict[str, npt.NDArray[Any]]
Flags = npt.NDArray[np.bool_]

ENDING_KEYS = ("won", "killed_by", "time_s", "damage_dealt", "damage_taken")
"""What `info` tells of how a fight went."""
NO_ACTION = -1
"""In place of the last action at the beginning of a fight."""
FALL = "fall"
"""What a player dies of without a blow."""
NOBODY = ""
"""The killer of a player who lives."""
UNKNOWN = "unknown"
"""The killer that a running game does not tell; the simulator always does."""
FALL_KILLER, NOBODY_KILLER = -3, -2
"""Their places behind the moves of the boss; that of an unknown one is -1, as in the record."""
SEEDS = 1 << 63
RUNNING, WON, DIED, FELL = (int(one) for one in (Outcome.RUNNING, Outcome.WON, Outcome.DIED, Outcome.FELL))


@dataclass(frozen=True)
class Step:
    """What a step of `n` fights brought. The arrays are reused by the next step."""

    rewards: npt.NDArray[Any]
    terms: npt.NDArray[np.float64]  # fights x names of the reward
    steps: npt.NDArray[np.int32]  # environment steps that a running fight took; more where forced ones were merged
    terminated: Flags
    truncated: Flags
    ended: Flags
    final_observations: npt.NDArray[np.float32]  # of the fights that ended, before they began again
    final_masks: Flags
    endings: Fights  # last records, valid where ended
    won: Flags
    standard: Flags  # fights that had begun in the standard way

    @classmethod
    def of_size(cls, n: int, observation_size: int, num_actions: int, terms: int, dtype: Any = np.float32) -> Step:
        """Empty buffers; the rewards are of `dtype`."""
        flags = [np.zeros(n, np.bool_) for _ in range(5)]
        return cls(
            rewards=np.zeros(n, dtype),
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
class BatchSnapshot(Snapshot):
    """A snapshot of the engine with what the parts remember of its fights."""

    memory: State = field(default_factory=dict)


class FightBatch:
    """The fights of one engine: actions in; observations, masks, rewards and endings out.

    Without an encoder there are no `observations`: look at `record()`. With `decisions`, steps that leave no choice are
    merged into the one before. `max_episode_steps` cuts a fight off after so many calls of `step`. `autoreset` says
    what happens to a fight that ended: SAME_STEP begins the next one at once, NEXT_STEP in the next step (which ignores
    its action and pays nothing), DISABLED leaves it to `begin`.

    A `population` says which files the fights are played on; the engine must be a simulator made for it. Moves of the
    boss are known by `move_names`.
    """

    def __init__(
        self,
        engine: Engine,
        parts: FightParts,
        *,
        decisions: bool = False,
        autoreset: AutoresetMode = AutoresetMode.SAME_STEP,
        max_episode_steps: int | None = None,
        population: Population | None = None,
        move_names: Sequence[str] = (),
    ) -> None:
        if population is not None and getattr(engine, "counts", None) != population.counts:
            raise MisuseError("the population is not of these fights; make the engine of its movesets and counts")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise MisuseError(f"max_episode_steps {max_episode_steps} is not possible; give 1 or more")
        self.engine, self.parts, self.decisions, self.population = engine, parts, decisions, population
        self.autoreset, self._limit = autoreset, max_episode_steps
        n = self.number = len(engine.fights)
        self._rows = engine.fights.view(ROW)
        self.observation_size = parts.encoder.size if parts.encoder else 0
        self.num_actions = len(parts.actions)
        self.term_names = parts.reward.names
        self.observations = np.zeros((n, self.observation_size), np.float32)
        self.masks = np.ones((n, self.num_actions), np.bool_)
        self._step = Step.of_size(n, self.observation_size, self.num_actions, len(self.term_names), np.float64)
        self._step.steps[:] = 1
        self._ending_rows = self._step.endings.view(ROW)
        self._everyone = np.ones(n, np.bool_)
        self._last_actions = np.full(n, NO_ACTION, np.int64)
        self._over = np.zeros(n, np.bool_)
        self._calls = np.zeros(n, np.int64)
        self._killers = np.array([*move_names, FALL, NOBODY, UNKNOWN], dtype=object)
        self.generator = np.random.default_rng()
        self._seeded = False

    @property
    def over(self) -> Flags:
        """Fights that ended and have not begun again."""
        return self._over

    def begin(
        self,
        mask: Flags | None = None,
        *,
        seeds: npt.NDArray[np.uint64] | None = None,
        seeded: Flags | None = None,
        generator: np.random.Generator | None = None,
        start: object = None,
    ) -> None:
        """Begin the fights of `mask`, as the starts say or as `start` does: a dict, or a snapshot of all fights.

        Fights without a seed (all, or those not `seeded`) go on with their own stream of randomness; the first time it
        is drawn from `generator`, as are starts from now on.
        """
        mask = self._everyone if mask is None else mask
        given = _start_of(start)
        self.generator = self.generator if generator is None else generator
        if not self._seeded and (seeds is None or seeded is not None):
            drawn = self.generator.integers(SEEDS, size=self.number).astype(np.uint64)
            seeds = drawn if seeds is None or seeded is None else np.where(seeded, seeds, drawn)
            seeded = None
        if isinstance(given, Snapshot):
            self._return_to(given, mask)
        else:
            self._reset(mask, self._starts(mask, given), seeds, seeded)
        self._seeded = True
        self.parts.actions.open(self.engine.fights, self.masks)

    def step(self, actions: npt.NDArray[Any]) -> Step:
        """Play on with `actions`, positions in the action set."""
        step, fights, waiting = self._step, self.engine.fights, self._over
        numbers = self.parts.actions.numbers(actions)
        before = fights["step"].copy() if self.decisions else None
        self.engine.step(controls_of(numbers), skip=self.decisions)
        if before is not None:
            np.subtract(fights["step"], before, out=step.steps)
        step.rewards[:], step.terms[:] = self.parts.reward.of(fights)
        self._last_actions[:] = numbers
        if self._limit is not None:
            self._calls += ~waiting  # a fight that is over does not get older
        # Counting is several times as fast as any(), which shows in a batch of one.
        if np.count_nonzero(waiting):
            self._pass_over(waiting)
        else:
            self._encode(self._everyone)
        self.parts.actions.open(fights, self.masks)
        step.terminated[:], step.truncated[:] = self.parts.ending.of(fights)
        if self._limit is not None:
            np.logical_or(step.truncated, self._calls >= self._limit, out=step.truncated)
        np.logical_or(step.terminated, step.truncated, out=step.ended)
        if np.count_nonzero(step.ended):
            self._end(step, waiting)
        return step

    def record(self) -> Fights:
        """A copy of the record that later steps do not touch."""
        return self._rows.copy().view(FIGHT)

    def ending(self, fights: Fights, won: Flags) -> dict[str, npt.NDArray[Any]]:
        """How these fights went or are going, by `ENDING_KEYS`; without a death nothing killed the player."""
        outcome = fights["outcome"]
        fell = outcome == FELL
        killers = np.where(fell, FALL_KILLER, fights["killed_by"])
        killers[~fell & (outcome != DIED)] = NOBODY_KILLER
        values = won, self._killers[killers], fights["time_s"], fights["dealt_total"], fights["taken_total"]
        return dict(zip(ENDING_KEYS, values, strict=True))

    def snapshot(self) -> BatchSnapshot:
        """Everything that decides how the fights go on; give it back as the `start` of `begin`."""
        taken = self.engine.snapshot()
        own = {each.name: getattr(taken, each.name) for each in fields(Snapshot)}
        return BatchSnapshot(**own, memory=self._memory())

    def state(self) -> State:
        """Everything that decides how the fights go on, as arrays."""
        snapshot = self.engine.snapshot()
        state: State = {
            "fights": snapshot.fights.view(np.uint8),
            "hidden": snapshot.hidden.view(np.uint8),
            "kind": np.frombuffer(snapshot.kind.encode(), np.uint8),
            "calls": self._calls.copy(),
            "generator": state_of_generator(self.generator),
        }
        if self.population is not None:
            state |= {f"population.{key}": value for key, value in self.population.state().items()}
        return state | self._memory()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state of the same number of fights."""
        own = self.engine.snapshot()
        if state["fights"].size != own.fights.nbytes or state["hidden"].size != own.hidden.nbytes:
            raise MisuseError(
                f"the saved fights are not {self.number} of this simulator; use the version that saved them"
            )
        if self.population is not None:
            self.population.restore(_below("population", state))
        self._recall(state)
        self.engine.restore(
            Snapshot(
                state["kind"].tobytes().decode(),
                state["fights"].reshape(-1).view(own.fights.dtype),
                state["hidden"].reshape(-1).view(own.hidden.dtype),
                self.population.tables if self.population is not None else (),
            )
        )
        self._calls[:] = state["calls"]
        restore_generator(self.generator, state["generator"])
        self._seeded = True

    def close(self) -> None:
        """Release the engine."""
        self.engine.close()

    def _starts(self, mask: Flags, given: dict[str, Any]) -> npt.NDArray[Any]:
        drawn = self.parts.starts.draw(mask, self.generator)
        if not given:
            return drawn
        starts = given_starts(self.number, given)
        if "player_pose" not in given:
            starts["random_pose"] = drawn["random_pose"]
        self.engine.check_starts(starts[mask])
        return starts

    def _reset(
        self, mask: Flags, starts: npt.NDArray[Any], seeds: npt.NDArray[np.uint64] | None, seeded: Flags | None
    ) -> None:
        if seeds is None or seeded is None:
            self.engine.reset(mask, starts, seeds)
        else:
            self.engine.reset(mask & seeded, starts, seeds)
            self.engine.reset(mask & ~seeded, starts, None)
        self._over = self._over & ~mask
        self._calls[mask] = 0
        self._forget(mask)

    def _return_to(self, snapshot: Snapshot, mask: Flags) -> None:
        if not mask.all():
            raise StartError("start has a snapshot but only some fights are reset; reset all of them")
        self.engine.restore(snapshot)
        self._calls[:] = 0
        memory, own = getattr(snapshot, "memory", {}), self._memory()
        if memory.keys() == own.keys() and all(memory[key].shape == own[key].shape for key in own):
            self._recall(memory)
            return
        # Of another kind of environment: what its parts remember is of no use here.
        self._over = self.engine.fights["outcome"] != RUNNING
        self._forget(mask)

    def _forget(self, mask: Flags) -> None:
        """Let the parts forget the fights of `mask`."""
        self.parts.reward.begin(self.engine.fights, mask)
        if self.parts.encoder:
            self.parts.encoder.begin(self.engine.fights, mask)
        self._last_actions[mask] = NO_ACTION
        self._encode(mask)

    def _encode(self, mask: Flags) -> None:
        if self.parts.encoder:
            self.parts.encoder.encode(self.engine.fights, self._last_actions, mask, self.observations)

    def _pass_over(self, waiting: Flags) -> None:
        """Nothing was played in the fights that were over: they begin again, or stay as they are."""
        step, which = self._step, waiting.nonzero()[0]
        step.rewards[which], step.terms[which] = 0.0, 0.0
        if self.parts.encoder:
            self._encode(~waiting)
        if self.autoreset is AutoresetMode.NEXT_STEP:
            self._reset(waiting, self._starts(waiting, {}), None, None)

    def _end(self, step: Step, waiting: Flags) -> None:
        which = step.ended.nonzero()[0]
        fights, parts = self.engine.fights, self.parts
        self._ending_rows[which] = self._rows[which]
        step.standard[:] = parts.starts.is_standard
        step.won[:] = parts.ending.won(fights)
        if parts.encoder:
            step.final_observations[which] = self.observations[which]
        step.final_masks[which] = self.masks[which]
        fresh = step.ended & ~waiting
        parts.starts.report(fresh, step.won)
        if self.population is not None:
            self.population.report(fresh, self.engine.replace)  # type: ignore[attr-defined]
        if self.autoreset is AutoresetMode.SAME_STEP:
            self.begin(step.ended)
        else:
            self._over = self._over | step.ended

    def _memory(self) -> State:
        """What is remembered of the fights outside of the engine."""
        memory: State = {
            "last_actions": self._last_actions.copy(),
            "observations": self.observations.copy(),
            "masks": self.masks.copy(),
            "over": self._over.copy(),
        }
        for name, part in self._remembering().items():
            memory |= {f"{name}.{key}": value for key, value in part.state().items()}
        return memory

    def _recall(self, memory: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, part in self._remembering().items():
            part.restore(_below(name, memory))
        self._last_actions[:] = memory["last_actions"]
        self.observations[:], self.masks[:] = memory["observations"], memory["masks"]
        self._over = memory["over"].astype(np.bool_)

    def _remembering(self) -> dict[str, Any]:
        parts = {name: getattr(self.parts, name) for name in ("encoder", "reward", "starts")}
        return {name: part for name, part in parts.items() if hasattr(part, "state")}


def state_of_generator(generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    """The state of a PCG64 as bytes."""
    return np.frombuffer(json.dumps(generator.bit_generator.state).encode(), np.uint8).copy()


def restore_generator(generator: np.random.Generator, state: npt.NDArray[Any]) -> None:
    """Let a generator go on from a state."""
    generator.bit_generator.state = json.loads(state.tobytes())


def seed_number(seed: int) -> np.uint64:
    """A seed as the engine takes it; its lowest 64 bits."""
    return np.uint64(seed & (2**64 - 1))


def _below(name: str, state: Mapping[str, npt.NDArray[Any]]) -> State:
    start = f"{name}."
    return {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}


def _start_of(start: object) -> dict[str, Any] | Snapshot:
    if start is None:
        return {}
    if isinstance(start, Snapshot):
        return start
    if not isinstance(start, Mapping):
        raise StartError(f"start is a {type(start).__name__}; give a dict or a snapshot")
    if "snapshot" not in start:
        return dict(start)
    if len(start) > 1:
        rest = ", ".join(str(key) for key in start if key != "snapshot")
        raise StartError(f"start has a snapshot and also {rest}; give one or the other")
    if not isinstance(start["snapshot"], Snapshot):
        raise StartError(f"start snapshot is a {type(start['snapshot']).__name__}; give what snapshot() returned")
    return start["snapshot"]
