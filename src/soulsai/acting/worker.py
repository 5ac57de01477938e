"""A worker: plays with the newest policy it has and sends what it saw to the learner."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from soulsai.acting.actor import Actor, Stopped
from soulsai.acting.light import LightNetwork
from soulsai.acting.world import World
from soulsai.config.schema import Config
from soulsai.experience import Array, Chunk, Proof, Schema
from soulsai.transport.chunks import pack_chunk
from soulsai.transport.frames import BadFrame, keep_freed_memory
from soulsai.transport.links import ROUND, Message, Progress, WorkerLink, round_of
from soulsai.transport.policies import Policy, unpack_policy, weights_of
from soulsgym.batch import Step

FAILURES_IN_A_ROW = 3
"""Failures of the environment, with no chunk between them, after which the worker gives up and is started again."""
PAUSE_S = 0.02
REPORT_EVERY_S = 0.5
PATIENCE = 3.0
"""A worker that has sent its share of an update waits for the policy that comes of it, for so many times as long as it
has played for the share. Then some other may be gone, and it plays on."""
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
ROUND_EPISODES = 50
"""Episodes side by side, so many times over, after which a worker that is checked makes its world anew."""
CHECKED = 0x6368_6563
"""Beside the user's seed: the worlds of workers that are checked."""

log = logging.getLogger(__name__)
Networks = Mapping[str, LightNetwork]
MakeActor = Callable[[World, Sequence[int]], Actor]


def world_seed(run_seed: int, worker: str, number: int) -> int:
    """The seed of the world that a worker which is checked makes for a round: the learner knows it, too."""
    words = [run_seed, CHECKED, zlib.crc32(worker.encode()), number]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)


class WorldFailed(Exception):
    """The environment raised an error."""


@contextmanager
def _name_world_errors() -> Iterator[None]:
    """Errors of the environment, told from ours."""
    try:
        yield
    except Exception as error:
        raise WorldFailed(f"{type(error).__name__}: {error}") from error


class PacedWorld:
    """A world whose errors are told from ours, that touches the watchdog, and plays in real time if asked to."""

    def __init__(self, world: World, touch: Callable[[], None], pace: float) -> None:
        self._world, self._touch, self._pace = world, touch, pace
        self.number, self.observation_size, self.num_actions = world.number, world.observation_size, world.num_actions
        self.term_names = world.term_names
        self.observations, self.masks = world.observations, world.masks
        self._due_s = 0.0
        self.steps = self.ended = 0
        self.played: list[Array] = []  # actions since somebody has taken them

    def reset(self, seed: int) -> None:
        """Begin all episodes."""
        with _name_world_errors():
            self._world.reset(seed)
        self._due_s = time.monotonic()

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on in all of them."""
        self._touch()
        with _name_world_errors():
            step = self._world.step(actions)
        self.steps += int(step.steps.sum())
        self.ended += int(np.count_nonzero(step.ended))
        self.played.append(actions.copy())
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


class Worker:
    """Plays until its link says to stop."""

    def __init__(
        self,
        config: Config,
        link: WorkerLink,
        *,
        schema: Schema,
        make_world: Callable[[], World],
        make_actor: MakeActor,
        networks: Networks,
        pace: float = 0.0,
        touch: Callable[[], None] = lambda: None,
        environment: str = "",
    ) -> None:
        """With the version of an `environment` that can be played again, chunks tell how; see `learning/checks.py`."""
        self._environment = environment
        self._config, self._link, self._schema, self._networks = config, link, schema, networks
        self._make_world, self._make_actor, self._pace, self._touch = make_world, make_actor, pace, touch
        self._pieces: list[Chunk] = []  # played, to be sent together
        self._piece_rows, self._piece_s = 0, time.monotonic()
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
        with _name_world_errors():
            made = self._make_world()
        world = PacedWorld(made, self._touch, self._pace)
        if self._environment:
            self._sequence = -(-self._sequence // ROUND) * ROUND
            self._pieces = []  # steps without rows of a world that failed
            number = round_of(self._sequence + 1)[0]
            world.reset(world_seed(self._config.run.seed, self._link.worker, number))
        else:
            world.reset(self._next_seed()[0])
        return world

    def _play(self, world: PacedWorld) -> None:
        actor = self._make_actor(world, self._next_seed())
        try:
            while not self._link.stopping:
                self._refresh()
                if self._policy is None:
                    self._touch()
                    self._report(world, "starting")
                    time.sleep(PAUSE_S)
                    continue
                actor.steps = self._policy.steps
                self._keep(actor.play())
                if self._is_complete():
                    self._failures = 0
                    if not self._send(world) or self._is_round_over(world):
                        return
                self._wait_for_policy(world)
                self._report(world, "playing")
        except Stopped:
            log.info("stopped in the middle of a rollout, which is not sent")
        finally:
            self._send(world)  # also what was played before the environment failed

    def _is_round_over(self, world: PacedWorld) -> bool:
        """Whether to begin anew, so that the learner can check on from there, whatever has become of a chunk."""
        is_last = round_of(self._sequence)[1] >= ROUND - 2  # one more may be sent at the end
        return bool(self._environment) and (is_last or world.ended >= ROUND_EPISODES * world.number)

    def _keep(self, piece: Chunk) -> None:
        """Add what was played to what is to be sent; a piece without rows still has steps and episodes."""
        if not self._pieces:
            self._piece_s = time.monotonic()
        self._pieces.append(Chunk.join([piece], self._schema))  # the actor uses its arrays again
        self._piece_rows += piece.rows

    def _is_complete(self) -> bool:
        """A rollout is complete in itself; rows that stand alone wait for others, but not for long."""
        fleet = self._config.fleet
        late = time.monotonic() - self._piece_s >= fleet.chunk_s
        return bool(self._schema.length) or self._piece_rows >= fleet.chunk_rows or (late and self._piece_rows > 0)

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

    def _next_seed(self) -> list[int]:
        return [int(word) for word in self._seed.spawn(1)[0].generate_state(4)]

    def _send(self, world: PacedWorld) -> bool:
        """Send what was played; False if the link was told to stop meanwhile."""
        if not self._piece_rows:
            return True
        assert self._policy is not None
        chunk = Chunk.join(self._pieces, self._schema)
        self._pieces, self._piece_rows = [], 0
        actions, world.played = np.stack(world.played), []
        if self._environment:
            chunk = replace(chunk, proof=Proof(self._environment, actions))
        self._sequence += 1
        worker = self._link.worker
        frame = pack_chunk(
            chunk,
            self._schema,
            run=self._link.run,
            worker=worker,
            sequence=self._sequence,
            policy=self._policy.version,
            squeeze=not self._link.is_near,
        )
        ended = chunk.ended
        self._totals += (len(ended.lengths), int(ended.standard.sum()), int(ended.won[ended.standard].sum()))
        self._sent_rows += chunk.rows
        self._report(world, "waiting")
        return self._link.send(Message(worker, self._sequence, chunk.rows, frame))

    def _refresh(self) -> None:
        data = self._link.newest()
        if data is None:
            return
        try:
            policy = unpack_policy(data, run=self._link.run)
            for name, network in self._networks.items():
                network.load(weights_of(name, policy.tensors))
        except (BadFrame, ValueError) as error:  # ValueError: tensors of other networks
            if str(error) not in self._told:
                self._told.add(str(error))
                log.warning("a policy was skipped: %s", error)
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
