"""A worker: plays with the newest policy it has and sends what it saw to the learner."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol, TypedDict

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.chunks import PooledTransitions
from soulsai.acting.episodes import Collected
from soulsai.acting.explorer import scheduled_epsilons
from soulsai.acting.rollouts import RolloutActor
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import World
from soulsai.config.schema import Config
from soulsai.networks import ActorCritic, QNetwork
from soulsai.telemetry.clock import LoopClock
from soulsai.transport.experience import RolloutChunk, TransitionChunk, pack_rollout, pack_transitions
from soulsai.transport.frames import BadFrame, keep_freed_memory
from soulsai.transport.links import Parcel, Progress, WorkerLink
from soulsai.transport.policies import Policy, unpack_policy
from soulsgym.batch import Step

FAILURES_IN_A_ROW = 3
"""Failures of the environment, with no chunk between them, after which the worker gives up and is started again."""
PAUSE_S = 0.02
REPORT_EVERY_S = 0.5
PATIENCE = 3.0
"""A worker that has sent its share of an update waits for the policy that comes of it, for so many times as long as it
has played for the share. Then some other may be gone, and it plays on."""
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0

log = logging.getLogger(__name__)
Networks = Mapping[str, ActorCritic | QNetwork]
Chunk = TransitionChunk | RolloutChunk


class _About(TypedDict):
    run: str
    worker: str
    sequence: int
    policy: int
    squeeze: bool


class WorldFailed(Exception):
    """The environment raised an error."""


class PacedWorld:
    """A world whose errors are told from ours, that touches the watchdog, and plays in real time if asked to."""

    def __init__(self, world: World, touch: Callable[[], None], pace: float) -> None:
        self._world, self._touch, self._pace = world, touch, pace
        self.number, self.observation_size, self.num_actions = world.number, world.observation_size, world.num_actions
        self.term_names = world.term_names
        self.observations, self.masks = world.observations, world.masks
        self._due_s = 0.0
        self.steps = 0

    def reset(self, seed: int) -> None:
        """Begin all episodes."""
        try:
            self._world.reset(seed)
        except Exception as error:
            raise WorldFailed(f"{type(error).__name__}: {error}") from error
        self._due_s = time.monotonic()

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on in all of them."""
        self._touch()
        try:
            step = self._world.step(actions)
        except Exception as error:
            raise WorldFailed(f"{type(error).__name__}: {error}") from error
        self.steps += int(step.steps.sum())
        if self._pace:
            self._due_s = max(self._due_s + float(step.steps.max()) / self._pace, time.monotonic() - 1.0)
            time.sleep(max(0.0, self._due_s - time.monotonic()))
        return step

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Nobody asks a worker."""
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Nobody asks a worker."""

    def close(self) -> None:
        """Close the world, whatever it says to that."""
        try:
            self._world.close()
        except Exception as error:  # it has failed before
            log.warning("the environment could not be closed: %s", error)


class Player(Protocol):
    """Plays some steps in a world."""

    def play(self, policy: Policy) -> Chunk | None:
        """Play on; a chunk when one is complete."""

    def left(self) -> Chunk | None:
        """What is not complete but worth sending."""


class Worker:
    """Plays until its link says to stop."""

    def __init__(
        self,
        config: Config,
        link: WorkerLink,
        *,
        make_world: Callable[[], World],
        networks: Networks,
        pace: float = 0.0,
        touch: Callable[[], None] = lambda: None,
    ) -> None:
        self._config, self._link, self._networks = config, link, networks
        self._make_world, self._pace, self._touch = make_world, pace, touch
        self._seed = np.random.SeedSequence([config.run.seed, zlib.crc32(link.worker.encode())])
        self._sent_rows = 0  # with the policy as it is
        self._policy_s = 0.0  # when it came
        self._sequence = 0
        self._policy: Policy | None = None
        self._told: set[str] = set()
        self._restarts = self._failures = 0
        self._steps_before = 0  # of environments that failed
        self._totals = np.zeros(3, np.int64)  # episodes, standard fights, wins
        self._reported_s, self._reported_steps, self._rate = time.monotonic(), 0, 0.0

    def run(self) -> None:
        """Play; an environment that fails is made again, some times."""
        keep_freed_memory()
        while not self._link.stopping:
            world: PacedWorld | None = None
            try:
                world = self._begin()
                self._play(world)
            except WorldFailed as error:
                self._restarts += 1
                self._failures += 1
                log.warning("the environment failed (%s); starting it again", error)
                if self._failures >= FAILURES_IN_A_ROW:
                    raise
            finally:
                if world is not None:
                    self._steps_before += world.steps
                    world.close()

    def _begin(self) -> PacedWorld:
        try:
            made = self._make_world()
        except Exception as error:
            raise WorldFailed(f"{type(error).__name__}: {error}") from error
        world = PacedWorld(made, self._touch, self._pace)
        world.reset(int(self._seed.spawn(1)[0].generate_state(1)[0]))
        return world

    def _play(self, world: PacedWorld) -> None:
        player = self._player(world)
        while not self._link.stopping:
            self._refresh()
            if self._policy is None:
                self._touch()
                self._report(world, "starting")
                time.sleep(PAUSE_S)
                continue
            chunk = player.play(self._policy)
            if chunk is not None and not self._send(chunk, world):
                return
            self._wait_for_policy(world)
            self._report(world, "playing")
        if (chunk := player.left()) is not None:
            self._send(chunk, world)

    def _wait_for_policy(self, world: PacedWorld) -> None:
        """On-policy, and not in real time: more than an update takes would only be too old."""
        assert self._policy is not None
        if self._pace or not self._policy.share:
            return
        played_s = time.monotonic() - self._policy_s
        until_s = time.monotonic() + min(max(PATIENCE * played_s, SHORTEST_WAIT_S), LONGEST_WAIT_S)
        while self._sent_rows >= self._policy.share and time.monotonic() < until_s and not self._link.stopping:
            self._touch()
            self._report(world, "waiting")
            time.sleep(PAUSE_S / 10)
            self._refresh()
        if time.monotonic() >= until_s:
            self._sent_rows, self._policy_s = 0, time.monotonic()

    def _player(self, world: PacedWorld) -> Player:
        seed = self._seed.spawn(1)[0]
        if self._config.algorithm == "ppo":
            return RolloutPlayer(self._config, world, self._networks, seed)
        return TransitionPlayer(self._config, world, self._networks, seed)

    def _send(self, chunk: Chunk, world: PacedWorld) -> bool:
        assert self._policy is not None
        self._failures = 0
        self._sequence += 1
        about = _About(
            run=self._link.run,
            worker=self._link.worker,
            sequence=self._sequence,
            policy=self._policy.version,
            squeeze=not self._link.is_near,
        )
        frame = pack_transitions(chunk, **about) if isinstance(chunk, TransitionChunk) else pack_rollout(chunk, **about)
        ended = chunk.ended
        self._totals += (len(ended.lengths), int(ended.standard.sum()), int(ended.won[ended.standard].sum()))
        self._sent_rows += chunk.rows
        self._report(world, "waiting")
        return self._link.send(Parcel(self._link.worker, self._sequence, chunk.rows, frame))

    def _refresh(self) -> None:
        data = self._link.newest()
        if data is None:
            return
        try:
            policy = unpack_policy(data, run=self._link.run)
            for name, network in self._networks.items():
                own = {
                    key.removeprefix(f"{name}."): value
                    for key, value in policy.tensors.items()
                    if key.startswith(f"{name}.")
                }
                network.load_state_dict(own)
        except (BadFrame, RuntimeError) as error:  # RuntimeError: tensors of other networks
            if str(error) not in self._told:
                self._told.add(str(error))
                log.warning("a policy was passed over: %s", error)
            return
        self._policy = policy
        self._sent_rows, self._policy_s = 0, time.monotonic()

    def _report(self, world: PacedWorld, state: str) -> None:
        now_s, steps = time.monotonic(), self._steps_before + world.steps
        passed_s = now_s - self._reported_s
        if passed_s < REPORT_EVERY_S and state != "waiting":
            return
        if passed_s >= REPORT_EVERY_S:
            self._rate = (steps - self._reported_steps) / passed_s
            self._reported_s, self._reported_steps = now_s, steps
        episodes, fights, wins = (int(number) for number in self._totals)
        self._link.report(
            Progress(
                state=state,
                policy=self._policy.version if self._policy else 0,
                steps=steps,
                steps_per_s=self._rate,
                episodes=episodes,
                wins=wins,
                fights=fights if self._config.world == "fight" else 0,
                restarts=self._restarts,
            )
        )


class TransitionPlayer:
    """For Q-learning: a decision at a time, sent when there are enough of them or enough time has passed."""

    def __init__(self, config: Config, world: PacedWorld, networks: Networks, seed: np.random.SeedSequence) -> None:
        self._config, self._world = config, world
        self._networks = [net for net in networks.values() if isinstance(net, QNetwork)]
        self._noise = torch.Generator().manual_seed(int(seed.generate_state(1)[0]))
        self._episodes = Collected(world.number, len(world.term_names))
        self._chunks = PooledTransitions(
            world.number, config.q.n_step, config.q.gamma, world.observation_size, world.num_actions
        )
        self._actor = TransitionActor(
            world,
            self._values,
            self._chunks,
            masks=config.actions.masks,
            generator=np.random.default_rng(seed),
            episodes=self._episodes,
            device=torch.device("cpu"),
        )
        self._steps, self._begun_s = 0, time.monotonic()

    def play(self, policy: Policy) -> Chunk | None:
        """One decision of every episode."""
        fleet = self._config.fleet
        if self._config.q.noisy:
            for net in self._networks:
                net.draw_noise(self._noise)
        shares = scheduled_epsilons(self._config.q, policy.steps, self._world.number)
        _, steps = self._actor.play(self._actor.choose(shares))
        self._steps += steps
        late = time.monotonic() - self._begun_s >= fleet.chunk_s
        return self.left() if self._chunks.rows >= fleet.chunk_rows or late else None

    def left(self) -> Chunk | None:
        """Everything that is ready."""
        self._begun_s = time.monotonic()
        if not self._chunks.rows:
            return None
        chunk = self._chunks.take(self._episodes.take(), self._steps)
        self._steps = 0
        return chunk

    def _values(self, observations: torch.Tensor) -> torch.Tensor:
        total = self._networks[0].means(observations)
        for net in self._networks[1:]:
            total = total + net.means(observations)
        return total


class RolloutPlayer:
    """For PPO: a rollout at a time, all of it with one policy."""

    def __init__(self, config: Config, world: PacedWorld, networks: Networks, seed: np.random.SeedSequence) -> None:
        network = networks["network"]
        assert isinstance(network, ActorCritic)
        self._episodes = Collected(world.number, len(world.term_names))
        self._actor = RolloutActor(
            world,
            network,
            rollout=config.ppo.rollout,
            gamma=config.ppo.gamma,
            masks=config.actions.masks,
            generator=torch.Generator().manual_seed(int(seed.generate_state(1)[0])),
            episodes=self._episodes,
            clock=LoopClock(),
        )

    def play(self, policy: Policy) -> Chunk | None:
        """A rollout."""
        rollout, steps = self._actor.collect()
        arrays = {name: tensor.numpy() for name, tensor in vars(rollout).items()}
        return RolloutChunk(**arrays, ended=self._episodes.take(), steps=steps)

    def left(self) -> Chunk | None:
        """Part of a rollout is of no use."""
        return None
