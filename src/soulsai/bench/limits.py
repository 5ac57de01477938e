"""How long learning takes, beside the limit of any loop: network and simulator alone."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from soulsai.config.schema import Config
from soulsai.learning.loops import PPOLoop, QLoop
from soulsai.learning.wiring import build_loop, build_world
from soulsai.networks import ActorCritic

FEWEST_ROUNDS = 5
WARM_UP_ITERATIONS = 2
STEPS_PER_ROUND = 20
"""Gradient steps of the Q-learner in a round."""
PLAYED_ROWS = 4096
"""Transitions that are really played before the store is filled with copies of them."""
NO_LEARNING = 2**62


@dataclass(frozen=True)
class Against:
    """Seconds of one unit of work, really done and at its limit: medians of rounds taken in turns."""

    real_s: float
    limit_s: float
    ratio: float  # limit / real, the median of that of each round
    parts_s: dict[str, float]  # of the limit
    shares: dict[str, float]  # of the real time, by phase of the loop


@dataclass(frozen=True)
class PPOSpeed:
    """Whole iterations of PPO."""

    against: Against
    steps_per_s: float
    decisions_per_s: float


def measure_ppo(config: Config, seconds: float) -> PPOSpeed:
    """Whole iterations, in turns with the same environment steps and the same bare passes of the network."""
    loop = _begun(config)
    assert isinstance(loop, PPOLoop)
    bare = _BarePPO(loop)
    rounds = _Rounds()
    steps: list[float] = []
    loop.clock.take()
    spent: dict[str, float] = {}
    for _ in _rounds(seconds):
        before, steps_before = loop.world.state(), loop.counters.steps
        loop.clock.take()
        real_s = rounds.time("real", loop.iterate)
        _add(spent, loop.clock.take())
        steps.append((loop.counters.steps - steps_before) / real_s)
        loop.world.restore(before)  # the same steps again, and then the fights stand where they stood
        rounds.time("environment", bare.environment)
        rounds.time("acting", bare.acting)
        rounds.time("learning", bare.learning)
    loop.world.close()
    against = rounds.against(spent)
    decisions = config.ppo.rollout * loop.world.number
    return PPOSpeed(against, statistics.median(steps), decisions / against.real_s)


def measure_q(config: Config, seconds: float) -> Against:
    """Whole gradient steps, from sampling to the new priorities, in turns with bare passes of the networks."""
    loop = _filled(config)
    bare = _BareQ(loop)
    rounds = _Rounds(STEPS_PER_ROUND)
    _repeat(loop.learn_once)
    bare.learning()
    spent: dict[str, float] = {}
    for _ in _rounds(seconds):
        loop.clock.take()
        rounds.time("real", lambda: _repeat(loop.learn_once))
        _add(spent, loop.clock.take())
        rounds.time("learning", bare.learning)
    loop.world.close()
    return rounds.against(spent)


def update_times(ppo: Config, q: Config, seconds: float) -> tuple[float, float]:
    """Seconds of one update of PPO from a whole rollout, and of one gradient step of the Q-learner."""
    on_policy, off_policy = _begun(ppo), _filled(q)
    assert isinstance(on_policy, PPOLoop)
    rollout, _ = on_policy.actor.collect()
    rounds = _Rounds()
    for _ in _rounds(seconds):
        rounds.time("ppo", lambda: on_policy.learner.learn(rollout, 0.0))
        rounds.time("q", lambda: _repeat(off_policy.learn_once))
    for loop in (on_policy, off_policy):
        loop.world.close()
    return rounds.median_s("ppo"), rounds.median_s("q") / STEPS_PER_ROUND


class _Rounds:
    """Times of several pieces of work, a column for each."""

    def __init__(self, units: int = 1) -> None:
        self._units = units
        self._columns: dict[str, list[float]] = {}

    def time(self, name: str, work: Callable[[], object]) -> float:
        begun_s = time.perf_counter()
        work()
        _wait_for_devices()
        taken_s = time.perf_counter() - begun_s
        self._columns.setdefault(name, []).append(taken_s)
        return taken_s

    def median_s(self, name: str) -> float:
        return statistics.median(self._columns[name])

    def against(self, spent: dict[str, float]) -> Against:
        """The column "real" against the sum of all others."""
        parts = [name for name in self._columns if name != "real"]
        limits = [sum(values) for values in zip(*(self._columns[name] for name in parts), strict=True)]
        ratios = [limit / real for limit, real in zip(limits, self._columns["real"], strict=True)]
        total_s = sum(spent.values())
        return Against(
            real_s=self.median_s("real") / self._units,
            limit_s=statistics.median(limits) / self._units,
            ratio=statistics.median(ratios),
            parts_s={name: self.median_s(name) / self._units for name in parts},
            shares={name: seconds / total_s for name, seconds in spent.items()},
        )


class _BarePPO:
    """The environment steps and passes of an iteration, and nothing else."""

    def __init__(self, loop: PPOLoop) -> None:
        self._loop, self._network = loop, copy.deepcopy(loop.network)
        self._device = next(self._network.parameters()).device

    def environment(self) -> None:
        """The steps of the last iteration once more."""
        for actions in self._loop.actor.buffer.actions.numpy():
            self._loop.world.step(actions)

    @torch.no_grad()
    def acting(self) -> None:
        """One pass for every decision, and one for the values after the last."""
        rows = self._loop.actor.buffer.observations
        for observations in (*rows, rows[-1]):
            self._network(observations.to(self._device))

    def learning(self) -> None:
        """As many passes back and forth as an update has minibatches, of the same size; in order, not gathered."""
        config = self._loop.config.ppo
        rows = self._loop.actor.buffer.observations.flatten(0, 1).to(self._device)
        size = min(config.minibatch, len(rows))
        for _ in range(config.epochs):
            for batch in torch.split(rows[: len(rows) - len(rows) % size], size):
                pass_back(self._network, batch)


class _BareQ:
    """The passes of a gradient step, and nothing else."""

    def __init__(self, loop: QLoop) -> None:
        # Copies: the limit is that of the networks as such, their gradients kept as torch does by itself.
        learner, q = copy.deepcopy(loop.learner), loop.config.q
        self._learning = learner.online if q.clipped else learner.online[:1]
        choosing = learner.online[:1] if (q.double or q.twin) and not q.clipped else []
        self._looking = [*choosing, *(learner.online[1:] if q.twin else learner.targets)]
        self._observations, self._following = loop.batch.observations.clone(), loop.batch.next_observations.clone()

    def learning(self) -> None:
        """What learns back and forth, and what chooses and values forth, on what follows."""
        _repeat(self._step)

    def _step(self) -> None:
        for network in self._learning:
            pass_back(network, self._observations)
        with torch.no_grad():
            for network in self._looking:
                network(self._following)


def pass_back(network: torch.nn.Module, batch: torch.Tensor) -> None:
    """One pass back and forth, with the sum of all outputs for a loss."""
    for parameter in network.parameters():
        parameter.grad = None
    out = network(batch)
    total = out[0].sum() + out[1].sum() if isinstance(network, ActorCritic) else out.sum()
    total.backward()


def _rounds(seconds: float) -> Iterator[int]:
    begun_s, done = time.perf_counter(), 0
    while done < FEWEST_ROUNDS or time.perf_counter() - begun_s < seconds:
        yield done
        done += 1


def _repeat(work: Callable[[], object]) -> None:
    for _ in range(STEPS_PER_ROUND):
        work()


def _add(sums: dict[str, float], more: dict[str, float]) -> None:
    for name, value in more.items():
        sums[name] = sums.get(name, 0.0) + value


def _wait_for_devices() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _begun(config: Config) -> Any:
    loop = build_loop(config, build_world(config))
    loop.begin()
    for _ in range(WARM_UP_ITERATIONS):
        loop.iterate()
    return loop


def _filled(config: Config) -> QLoop:
    """A Q-loop with a full store, as after a long while: rows lie all over memory."""
    from soulsai.config import with_settings

    playing = with_settings(config, [f"q.warmup_steps={NO_LEARNING}"])
    loop = cast(QLoop, build_loop(playing, build_world(playing)))
    loop.begin()
    rows = min(PLAYED_ROWS, loop.store.capacity)
    while len(loop.store) < rows:
        loop.iterate()
    played: tuple[npt.NDArray[Any], ...] = tuple(np.array(column[:rows]) for column in loop.store.columns)
    while loop.store.added < loop.store.capacity:
        loop.sampler.added(loop.store.add(*played))
    return loop
