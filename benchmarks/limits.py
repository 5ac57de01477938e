"""How long learning takes, beside the limit of any loop: network and simulator alone, shared evenly by all cores."""

from __future__ import annotations

import copy
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from soulsai.algorithms.ppo.config import PPOConfig
from soulsai.config import with_settings
from soulsai.config.schema import Config
from soulsai.learning.loop import build_loop
from soulsai.learning.wiring import build_worlds
from soulsai.networks import ActorCritic

FEWEST_ROUNDS = 5
WARM_UP_ITERATIONS = 2
STEPS_PER_ROUND = 20
"""Gradient steps of the Q-learner in a round."""
PLAYED_ROWS = 4096
"""Transitions that are really played before the store is filled with copies of them."""
NO_LEARNING = 2**62
CORES = os.cpu_count() or 1


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
    loop = _start(config)
    bare = _BarePPO(config, loop)
    rounds = _Rounds()
    steps: list[float] = []
    spent: dict[str, float] = {}
    for _ in _rounds(seconds):
        bare.restore()
        steps_before = loop.counters.steps
        loop.clock.take()
        real_s = rounds.time("real", loop.iterate)
        _add(spent, loop.clock.take())
        steps.append((loop.counters.steps - steps_before) / real_s)
        for name in ("environment", "acting", "learning"):
            rounds.time_on_one_thread(name, getattr(bare, name))
    loop.source.close()
    bare.close()
    against = rounds.against(spent)
    return PPOSpeed(against, statistics.median(steps), loop.algorithm.rows_of_update(config) / against.real_s)


def measure_q(config: Config, seconds: float) -> Against:
    """Whole gradient steps, from sampling to the new priorities, in turns with bare passes of the networks."""
    loop = _fill(config)
    learner = loop.learner
    bare = _BareQ(learner)
    rounds = _Rounds(STEPS_PER_ROUND)
    _repeat(learner.learn_once)
    bare.learning()
    spent: dict[str, float] = {}
    for _ in _rounds(seconds):
        loop.clock.take()
        rounds.time("real", lambda: _repeat(learner.learn_once))
        _add(spent, loop.clock.take())
        rounds.time_on_one_thread("learning", bare.learning)
    loop.source.close()
    return rounds.against(spent)


def update_times(ppo: Config, q: Config, seconds: float) -> tuple[float, float]:
    """Seconds of one update of PPO from a whole rollout, and of one gradient step of the Q-learner."""
    on_policy, off_policy = _start(ppo), _fill(q)
    chunks = [actor.play() for actor in on_policy.source.actors]
    rounds = _Rounds()

    def update() -> None:
        for chunk in chunks:
            on_policy.learner.take(chunk)
        on_policy.learner.update(float("inf"))

    for _ in _rounds(seconds):
        rounds.time("ppo", update)
        rounds.time("q", lambda: _repeat(off_policy.learner.learn_once))
    for loop in (on_policy, off_policy):
        loop.source.close()
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

    def time_on_one_thread(self, name: str, work: Callable[[], object]) -> None:
        """The time that the work takes on one thread, divided by the number of cores: no loop can be faster."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            self.time(name, work)
        finally:
            torch.set_num_threads(threads)
        self._columns[name][-1] /= CORES

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

    def __init__(self, config: Config, loop: Any) -> None:
        self._settings, self._actors = config.section(PPOConfig), loop.source.actors
        self._columns = [actor._arrays for actor in self._actors]  # of the last rollouts
        self._network = copy.deepcopy(loop.learner.network)
        self._device = loop.learner.device
        self._worlds: list[Any] = build_worlds(config)
        for world in self._worlds:
            world.reset(0)

    def restore(self) -> None:
        """Stand where the actors stand."""
        for world, actor in zip(self._worlds, self._actors, strict=True):
            world.restore(actor.world.state())

    def close(self) -> None:
        for world in self._worlds:
            world.close()

    def environment(self) -> None:
        """The steps of the last iteration once more."""
        for world, columns in zip(self._worlds, self._columns, strict=True):
            for actions in columns["actions"]:
                world.step(actions)

    @torch.no_grad()
    def acting(self) -> None:
        """One pass for every decision, and one for the values after the last."""
        for columns in self._columns:
            rows = torch.from_numpy(columns["observations"])
            for observations in (*rows, rows[-1]):
                self._network(observations.to(self._device))

    def learning(self) -> None:
        """As many passes back and forth as an update has minibatches, of the same size; in order, not gathered."""
        rows = torch.cat([torch.from_numpy(columns["observations"]).flatten(0, 1) for columns in self._columns])
        rows = rows.to(self._device)
        size = min(self._settings.minibatch, len(rows))
        for _ in range(self._settings.epochs):
            for batch in torch.split(rows[: len(rows) - len(rows) % size], size):
                pass_back(self._network, batch)


class _BareQ:
    """The passes of a gradient step, and nothing else."""

    def __init__(self, learner: Any) -> None:
        # Copies: the limit is that of the networks as such, their gradients kept as torch does by itself.
        q, online, targets = learner.settings, copy.deepcopy(learner.online), copy.deepcopy(learner.targets)
        self._learning = online if q.clipped else online[:1]
        choosing = online[:1] if (q.double or q.twin) and not q.clipped else []
        self._looking = [*choosing, *(online[1:] if q.twin else targets)]
        columns = learner._batch.columns
        self._observations, self._following = (
            torch.from_numpy(columns[name].copy()) for name in ("observations", "next_observations")
        )

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


def _start(config: Config) -> Any:
    loop = build_loop(config, *build_worlds(config))
    loop.begin()
    for _ in range(WARM_UP_ITERATIONS):
        loop.iterate()
    return loop


def _fill(config: Config) -> Any:
    """A Q-loop with a full store, as after a long while: rows lie all over memory."""
    playing = with_settings(config, [f"q.warmup_steps={NO_LEARNING}"])
    loop: Any = build_loop(playing, *build_worlds(playing))
    loop.begin()
    store = loop.learner.store
    rows = min(PLAYED_ROWS, store.capacity)
    while len(store) < rows:
        loop.iterate()
    played = {name: np.array(column[:rows]) for name, column in store.columns.items()}
    while store.added < store.capacity:
        loop.learner.sampler.add(store.add(played))
    return loop
