"""The one loop: experience from a source, learned from, and the policy that comes of it back to the source.

It is put together here for a learner that plays itself, and for one with workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from soulsai.acting.actor import Stopped
from soulsai.acting.episodes import Episodes
from soulsai.acting.policy import NetworkPolicy
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.algorithm import REFUSED, Algorithm, Counters, Learner, Metrics, Parts, algorithm_of
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, DivergedError
from soulsai.learning.checks import Checks, can_check
from soulsai.learning.limits import limits_of
from soulsai.learning.sources import ActorSource, FleetSource, Source, Start
from soulsai.learning.wiring import build_world, can_be_checked, environment_version, smallest
from soulsai.networks.parallel import Threads
from soulsai.telemetry.clock import LoopClock
from soulsai.transport.links import LearnerLink

REFUSED_IN_A_ROW = 20
"""Iterations in a row with gradient steps that had to be refused, after which learning has come to its end."""
ACTOR = 2
"""Beside the user's seed: the actor of this process draws from another stream than the learner does."""
STEPS_PER_ITERATION = 256
"""Environment steps after which the loop looks up: for messages, checkpoints and evaluations."""


class Loop:
    """Acts and learns, or learns from those who act. It can be stopped and taken up again exactly."""

    def __init__(self, algorithm: Algorithm, learner: Learner, source: Source, episodes: Episodes) -> None:
        self.algorithm, self.learner, self.source, self.episodes = algorithm, learner, source, episodes
        self._refused = self._in_a_row = 0

    @property
    def counters(self) -> Counters:
        """How far the run has come."""
        return self.learner.counters

    @property
    def clock(self) -> LoopClock:
        """Where the time goes."""
        return self.learner.clock

    def begin(self) -> None:
        """Start from nothing."""
        self.source.begin(self.learner)

    def iterate(self, stop: Callable[[], bool] = lambda: False) -> dict[str, float]:
        """Act and learn for a little while, or until `stop`; DivergedError if what is learned are no longer numbers."""
        learner, source = self.learner, self.source
        until = learner.counters.steps + STEPS_PER_ITERATION
        metrics: Metrics = {}
        source.stop = stop
        while True:
            try:
                chunks = source.next(learner)
            except Stopped:
                break
            for chunk in chunks:
                learner.take(chunk)
                self.episodes.record(chunk.ended)
            metrics |= learner.update(source.limit_s)
            source.publish(learner)
            if not chunks or learner.counters.steps >= until or stop():
                break
        values = self._finite({name: float(value) for name, value in metrics.items()})
        return values | learner.metrics() | source.metrics(learner.counters)

    def _finite(self, values: dict[str, float]) -> dict[str, float]:
        """The metrics of gradient steps that were followed; DivergedError where that no longer leads anywhere."""
        learner, counters = self.learner, self.learner.counters
        broken = [(name, value) for name, value in values.items() if not math.isfinite(value)]
        refused = sum(optimizer.refused for optimizer in learner.optimizers.values())
        if not (broken or REFUSED in values or refused > self._refused):
            self._in_a_row = 0
            return values
        counters.updates_refused += max(1, refused - self._refused)
        self._refused, self._in_a_row = refused, self._in_a_row + 1
        if self._in_a_row >= REFUSED_IN_A_ROW or not learner.is_finite():
            name, value = broken[0] if broken else ("the gradient", math.nan)
            raise DivergedError(f"{name} is {value} at step {counters.steps:,}")
        return {name: value for name, value in values.items() if math.isfinite(value)} | {
            REFUSED: float(counters.updates_refused)
        }

    def policy(self) -> NetworkPolicy:
        """The greedy policy as it is now; it changes with further learning."""
        return self.algorithm.policy(self.learner.networks)

    def parts(self) -> Parts:
        """Everything that decides how the loop goes on, but for counters, notes of the source and a replay store."""
        return self.learner.parts() | self.source.parts() | {"episodes": dict(self.episodes.state())}

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint; counters and store are restored before."""
        self.learner.restore(saved)
        self.episodes.restore(saved.arrays("episodes"))
        self.source.restore(saved, self.learner)


def device_of(config: Config) -> torch.device:
    """Where to train."""
    wanted = config.run.device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("run.device = 'cuda' but torch sees no CUDA device; use --set run.device=cpu")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def build_loop(config: Config, *worlds: World) -> Loop:
    """The loop of a learner that plays itself, in one world or in several at once."""
    algorithm, seed = algorithm_of(config), config.run.seed
    learner = algorithm.learner(config, sizes_of(worlds[0]), device_of(config))
    # The first plays on the learner's thread, by its clock.
    actors = [
        algorithm.actor(config, world, learner.networks, [seed, ACTOR, number], None if number else learner.clock)
        for number, world in enumerate(worlds)
    ]
    source = ActorSource(actors, Threads(len(worlds)), seed)
    return Loop(algorithm, learner, source, Episodes(worlds[0].term_names, fights=config.world == "fight"))


def build_fleet_loop(config: Config, link: LearnerLink, start: Start, say: Callable[[str], None]) -> Loop:
    """The loop of a learner whose workers are at the other end of the link."""
    algorithm, world = algorithm_of(config), build_world(smallest(config))
    sizes, episodes = sizes_of(world), Episodes(world.term_names, fights=config.world == "fight")
    limits = limits_of(config, algorithm, world)
    world.close()
    learner = algorithm.learner(config, sizes, device_of(config))
    checks = None
    if can_be_checked(config) and link.has_invitations and can_check(learner.schema):
        checks = Checks(config, algorithm, learner.schema, learner.clock, start.run, environment_version(config))
    source = FleetSource(config, algorithm, learner.schema, link, start, say, limits, checks)
    return Loop(algorithm, learner, source, episodes)
