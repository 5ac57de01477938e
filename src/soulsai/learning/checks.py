"""Spot checks: what workers say they have played is played again, and has to come out the same.

The simulator is deterministic, and a worker that is checked makes its world anew for every round, from a seed that the
learner knows (`acting/worker.py`). So all that has to be told are the actions: a shadow of the worker plays them, and
what comes out is compared with the rows that came. Nothing that decides how a fight goes is believed.

Rounds are judged from their beginning. Where a chunk is missing the rest of a round is not: then, and for names of
which little was checked so far, rows are on probation.
"""

from __future__ import annotations

import random
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.acting.actor import Actor
from soulsai.acting.network import CLOSED
from soulsai.acting.rollouts import ROLLOUT, RolloutActor
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.worker import world_seed
from soulsai.acting.world import FightWorld, JointWorld, World, sizes_of
from soulsai.algorithms.algorithm import Algorithm, LightNetworks
from soulsai.config.schema import Config
from soulsai.experience import Array, Chunk, Schema
from soulsai.learning.wiring import build_world, config_of_worker
from soulsai.replay.n_step import TRANSITION
from soulsai.telemetry.clock import LoopClock
from soulsai.transport.frames import Header
from soulsai.transport.gateway.quotas import Bucket
from soulsai.transport.links import name_of, round_of
from soulsai.transport.policies import unpack_policy, weights_of

TOLERANCE = 1e-4
"""Of numbers that were computed on another machine, relative beyond 1."""
POLICY_TOLERANCE = 1e-3
"""The same of what a network thinks of them."""
POLICY_COLUMNS = ("log_probs", "values", "next_values")
POLICY_SHARE = 0.125
"""Share of checked rollouts of which it is also computed what the policy thought."""
POLICIES = 8
"""Versions of the policy that are kept for it."""
SHADOW_BYTES = 1 << 30
"""Memory of all shadows together, about; beyond it the oldest of the name that has most of them goes."""
FEWEST_SHADOWS = 8
BUILD_SHARE, BUILD_S = 0.02, 10.0
"""Share of processor time for making worlds of one name, whose workers may all begin at once: so many seconds."""
MOST_LIVES = 4096
"""Workers whose place is remembered; of those not heard of for longest, a round is not judged to its end."""


def can_check(schema: Schema) -> bool:
    """Whether it is known how the experience of an algorithm comes about."""
    return schema.columns in (TRANSITION, ROLLOUT)


class _Rollouts(RolloutActor):
    """Plays rollouts whose actions are given; what the network thinks is asked for where it `thinks`."""

    given: Array
    thinks = False

    def _act(self, t: int) -> npt.NDArray[np.int64]:
        self._see(t)
        arrays = self._arrays
        actions: npt.NDArray[np.int64] = self.given[t]
        arrays["actions"][t] = actions
        if self.thinks:
            logits, arrays["values"][t] = self._network.think(arrays["observations"][t])
            logits = np.where(arrays["masks"][t], logits, CLOSED)
            logits -= logits.max(axis=1, keepdims=True)
            chosen = np.take_along_axis(logits, actions[:, None], 1)[:, 0]
            arrays["log_probs"][t] = chosen - np.log(np.exp(logits).sum(axis=1))
        return actions


class Shadow:
    """Plays a round of a worker once more."""

    def __init__(
        self, config: Config, algorithm: Algorithm, schema: Schema, world: World, networks: LightNetworks
    ) -> None:
        self._schema, self._actions = schema, np.zeros(0, np.int64)
        gamma, masks = algorithm.gamma(config), config.actions.masks
        self._decisions_of_row = algorithm.decisions_of_row(config)
        self._number = world.number
        self._actor: Actor
        if schema.length:
            self._actor = _Rollouts(world, schema, networks["network"], gamma=gamma, masks=masks, seed=[0])
        else:
            n_step = self._decisions_of_row
            self._actor = TransitionActor(
                world, schema, lambda *_: self._actions, n_step=n_step, gamma=gamma, masks=masks, seed=[0]
            )

    def differs(self, chunk: Chunk, header: Header, *, thinks: bool) -> str:
        """How the next chunk differs from what its actions lead to, in words; empty if it does not."""
        assert chunk.proof is not None
        played = chunk.proof.actions
        # Rows wait for later decisions, and some did before: so many more or fewer than decisions there can be.
        if abs(played.size - chunk.rows) > self._number * self._decisions_of_row:
            return f"{chunk.rows:,} rows of {played.size:,} decisions"
        if isinstance(self._actor, _Rollouts):
            if len(played) != self._schema.length:
                return f"a rollout of {len(played)} decisions"
            self._actor.given, self._actor.thinks = played, thinks
            again = self._actor.play()
        else:
            pieces = []
            for self._actions in played:
                piece = self._actor.play()  # in arrays that it uses again
                pieces.append(replace(piece, columns={name: array.copy() for name, array in piece.columns.items()}))
            again = Chunk.join(pieces, self._schema)
        if again.steps != header.steps:
            return f"{header.steps:,} steps instead of {again.steps:,}"
        compared = [name for name in self._schema.columns if thinks or name not in POLICY_COLUMNS]
        for name in compared:
            tolerance = POLICY_TOLERANCE if name in POLICY_COLUMNS else TOLERANCE
            if found := _difference(name, chunk.columns[name], again.columns[name], tolerance):
                return found
        return next(filter(None, (_difference(f"{name} of episodes", array, getattr(again.ended, name), TOLERANCE)
                                  for name, array in vars(chunk.ended).items())), "")  # fmt: skip


def _difference(name: str, sent: Array, again: Array, tolerance: float) -> str:
    if sent.shape != again.shape:
        return f"{len(sent):,} {name} instead of {len(again):,}"
    if np.array_equal(sent, again):
        return ""
    if sent.dtype.kind != "f":
        wrong = sent != again
    else:
        # What is no number was refused before; a difference that is none is one.
        wrong = ~(np.abs(sent - again) <= tolerance * np.maximum(1.0, np.abs(again)))
    if not wrong.any():
        return ""
    at = tuple(np.argwhere(wrong)[0])
    return f"{name} {float(sent[at]):.6g} instead of {float(again[at]):.6g}"


@dataclass
class _Life:
    """Where a worker is: its round, the place in it of the chunk that came last, and who plays it again."""

    number: int
    at: int
    is_whole: bool  # everything of the round has come so far
    shadow: Shadow | None = None


class Checks:
    """Knows which names have been checked, and checks them."""

    def __init__(
        self, config: Config, algorithm: Algorithm, schema: Schema, clock: LoopClock, run: str, environment: str
    ) -> None:
        self._clock = clock
        self._config, self._algorithm, self._schema, self._run = config, algorithm, schema, run
        self._own, self._environment = config_of_worker(config), environment
        world = build_world(self._own)
        self._number = world.number
        self._most_shadows = max(FEWEST_SHADOWS, SHADOW_BYTES // _bytes_of(world))
        self._networks = algorithm.light_networks(config, sizes_of(world)) if schema.length else {}
        world.close()
        for network in self._networks.values():
            network.clear()
        self._policies: OrderedDict[int, bytes] = OrderedDict()
        self._lives: OrderedDict[str, _Life] = OrderedDict()
        self._building: dict[str, Bucket] = {}
        self._before: dict[str, int] = {}  # the last sequence of workers that an earlier learner knew
        self.fights: Counter[str] = Counter()
        """Fights of each name that were played again and held."""
        self.held = 0
        """Those of all names since this learner was started."""

    def is_new(self, name: str) -> bool:
        """Whether a name is on probation."""
        return self.fights[name] < self._config.fleet.probation_fights

    def newcomers(self) -> dict[str, int]:
        """Names on probation of which something came, and their fights that held."""
        names = sorted(set(map(name_of, self._lives)))
        return {name: self.fights[name] for name in names if self.is_new(name)}

    def keep(self, version: int, frame: bytes) -> None:
        """Remember a policy that workers play with."""
        if self._networks:
            self._policies[version] = frame
            while len(self._policies) > POLICIES:
                self._policies.popitem(last=False)

    def skip(self, header: Header) -> None:
        """A chunk came that was judged by an earlier learner."""
        number, at = round_of(header.sequence)
        self._note(header.worker, _Life(number, at, is_whole=True))

    def vouch(self, header: Header) -> bool:
        """Whether a chunk that was looked at counts like those of names one knows."""
        life = self._lives.get(header.worker)
        return life is not None and life.is_whole and not self.is_new(name_of(header.worker))

    def look(self, header: Header, chunk: Chunk) -> str:
        """What is wrong with a chunk, in words; nothing also where that cannot be told."""
        worker, name = header.worker, name_of(header.worker)
        life = self._next(header)
        proof = chunk.proof
        if proof is None or proof.environment != self._environment or proof.actions.shape[1] != self._number:
            life.is_whole, life.shadow = False, None  # in the game, of another version, or with other settings
        elif life.at == 0 and (self.is_new(name) or random.random() < self._config.fleet.checked_share):
            with self._clock.phase("check"):
                life.shadow = self._shadow(worker, life.number)
            life.is_whole = life.shadow is not None
        self._note(worker, life)
        if life.shadow is None:
            return ""
        with self._clock.phase("check"):
            thinks = self._schema.length > 0 and random.random() < POLICY_SHARE and self._load(header.policy)
            wrong = life.shadow.differs(chunk, header, thinks=thinks)
        if not wrong:
            self.fights[name] += len(chunk.ended.lengths)
            self.held += len(chunk.ended.lengths)
        return wrong

    def _next(self, header: Header) -> _Life:
        """Where the worker of a chunk is now."""
        worker, (number, at) = header.worker, round_of(header.sequence)
        life = self._lives.get(worker)
        if at == 0:
            return _Life(number, at, is_whole=True)
        if life is not None and (life.number, life.at + 1) == (number, at):
            life.at = at
            return life
        # What came between two learners may be lost, and nobody else is to blame for it.
        is_whole = life is None and worker in self._before and round_of(self._before[worker])[0] == number
        return _Life(number, at, is_whole=is_whole)

    def _shadow(self, worker: str, number: int) -> Shadow | None:
        """One that plays a round again; None for a name that begins more of them than workers do."""
        now_s, began_s = time.monotonic(), time.thread_time()
        building = self._building.setdefault(name_of(worker), Bucket(BUILD_SHARE, BUILD_S, now_s))
        if building.wait_s(0.0, now_s) > 0.0:
            return None
        with_shadow = [who for who, life in self._lives.items() if life.shadow is not None and who != worker]
        if len(with_shadow) >= self._most_shadows:
            crowded = Counter(map(name_of, with_shadow)).most_common(1)[0][0]
            self._lives[next(who for who in with_shadow if name_of(who) == crowded)].shadow = None
        world = build_world(self._own)
        world.reset(world_seed(self._config.run.seed, worker, number))
        building.take(time.thread_time() - began_s)
        return Shadow(self._config, self._algorithm, self._schema, world, self._networks)

    def _load(self, version: int) -> bool:
        """Think with a policy from now on; False if it is too old to be known."""
        frame = self._policies.get(version)
        if frame is None:
            return False
        policy = unpack_policy(frame, run=self._run)
        for name, network in self._networks.items():
            network.load(weights_of(name, policy.tensors))
        return True

    def _note(self, worker: str, life: _Life) -> None:
        self._lives[worker] = life
        self._lives.move_to_end(worker)
        if len(self._lives) > MOST_LIVES:
            self._lives.popitem(last=False)

    def forget(self, name: str) -> None:
        """A name is not invited any more; whoever comes under it next is new."""
        del self.fights[name]
        for worker in [worker for worker in self._lives if name_of(worker) == name]:
            del self._lives[worker]

    def notes(self) -> dict[str, Any]:
        """What the next learner has to know."""
        return dict(self.fights)

    def restore(self, fights: Mapping[str, int], marks: Mapping[str, int]) -> None:
        """Go on from a checkpoint, unless this learner has checked something since."""
        if not self._lives:
            self.fights, self._before = Counter(fights), dict(marks)


def _bytes_of(world: World) -> int:
    """What most of the memory of a world is taken by: the tables of its bosses."""
    if isinstance(world, JointWorld):
        return sum(map(_bytes_of, world.worlds))
    engine: Any = world.batch.engine if isinstance(world, FightWorld) else None
    return int(engine.tables.nbytes) if engine is not None else 1
