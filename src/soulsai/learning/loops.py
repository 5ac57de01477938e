"""The two loops of one process: act, learn, again. Each can be stopped and taken up again exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.episodes import Episodes
from soulsai.acting.explorer import epsilons
from soulsai.acting.policy import NetworkPolicy
from soulsai.acting.rollouts import RolloutActor
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import World
from soulsai.algorithms.ppo import PPOLearner
from soulsai.algorithms.q import QBatch, QLearner
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.networks import ActorCritic
from soulsai.ops.schedules import linear
from soulsai.replay import Batch, NStepAccumulator, PrioritizedSampler, TransitionStore, UniformSampler
from soulsai.telemetry.clock import LoopClock
from soulsgym.envs.encoded import restore_generator, state_of_generator

Arrays = dict[str, torch.Tensor | npt.NDArray[Any]]
Parts = dict[str, Arrays]
STEPS_PER_ITERATION = 256
"""Environment steps after which the Q-loop looks up: for messages, checkpoints and evaluations."""


@dataclass
class Counters:
    """How far a run has come."""

    steps: int = 0
    updates: int = 0
    updates_owed: float = 0.0


class Loop(Protocol):
    """Acts and learns."""

    counters: Counters
    episodes: Episodes
    clock: LoopClock
    world: World

    def begin(self) -> None:
        """Start from nothing."""

    def iterate(self) -> dict[str, float]:
        """Act and learn for a little while."""

    def policy(self) -> NetworkPolicy:
        """The greedy policy as it is now; it changes with further learning."""

    def networks(self) -> Mapping[str, torch.nn.Module]:
        """The networks the policy is made of, by name."""

    def parts(self) -> Parts:
        """Everything that decides how the loop goes on, except what is in `counters` and in a replay store."""

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint of `parts`; counters and store are restored before."""


class PPOLoop:
    """Collect a rollout, learn from it, again."""

    def __init__(self, config: Config, world: World, device: torch.device) -> None:
        self.config, self.world, self._device = config, world, device
        self.counters, self.clock = Counters(), LoopClock()
        self.episodes = Episodes(world.number, world.term_names, fights=config.world == "fight")
        self._generator = torch.Generator().manual_seed(config.run.seed)
        torch.manual_seed(config.run.seed)
        self.network = ActorCritic(world.observation_size, world.num_actions, config.network).to(device)
        self.learner = PPOLearner(self.network, config.ppo, self._generator)
        self.actor = RolloutActor(
            world,
            self.network,
            rollout=config.ppo.rollout,
            gamma=config.ppo.gamma,
            masks=config.actions.masks,
            generator=self._generator,
            episodes=self.episodes,
            clock=self.clock,
        )

    def begin(self) -> None:
        """Start from nothing."""
        self.world.reset(self.config.run.seed)

    def iterate(self) -> dict[str, float]:
        """One rollout and the update it allows."""
        rollout, steps = self.actor.collect()
        with self.clock.phase("learn"):
            metrics = self.learner.learn(rollout, min(1.0, self.counters.steps / self.config.run.steps))
        if self.network.normalizer is not None:
            # Not before: the log probabilities of the rollout belong to inputs scaled as they were then.
            self.network.normalizer.update(rollout.observations.flatten(0, 1).to(self._device))
        self.counters.steps += steps
        self.counters.updates = self.learner.updates
        return metrics

    def policy(self) -> NetworkPolicy:
        """The greedy policy as it is now."""
        return NetworkPolicy(self.network)

    def networks(self) -> Mapping[str, torch.nn.Module]:
        """The one network."""
        return {"network": self.network}

    def parts(self) -> Parts:
        """Network, optimizer, randomness, world, episodes."""
        return {
            "network": dict(self.network.state_dict()),
            "optimizer": optimizer_arrays(self.learner.optimizer),
            "world": dict(self.world.state()),
            "episodes": dict(self.episodes.state()),
            "random": {"torch": self._generator.get_state()},
        }

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.network.load_state_dict(saved.parts["network"])
        restore_optimizer(self.learner.optimizer, saved.parts["optimizer"])
        self.learner.updates = self.counters.updates
        self._generator.set_state(saved.parts["random"]["torch"])
        self.episodes.restore(saved.arrays("episodes"))
        restore_world(self, saved.arrays("world"))


class QLoop:
    """Play a decision, remember it, learn as often as is owed, again."""

    def __init__(self, config: Config, world: World, device: torch.device) -> None:
        self.config, self.world, self._device = config, world, device
        self.counters, self.clock = Counters(), LoopClock()
        self.episodes = Episodes(world.number, world.term_names, fights=config.world == "fight")
        self._torch = torch.Generator().manual_seed(config.run.seed)
        torch.manual_seed(config.run.seed)
        self._numpy = np.random.default_rng([config.run.seed, 1])
        size, actions = world.observation_size, world.num_actions
        self.learner = QLearner(size, actions, config.network, config.q, device=device, generator=self._torch)
        self.store = TransitionStore(config.replay.capacity, size, actions)
        self.sampler = (
            PrioritizedSampler(config.replay.capacity, config.replay.alpha)
            if config.replay.prioritized
            else UniformSampler(self.store)
        )
        self.actor = TransitionActor(
            world,
            self.learner.values,
            NStepAccumulator(world.number, config.q.n_step, config.q.gamma, size, actions),
            masks=config.actions.masks,
            generator=self._numpy,
            episodes=self.episodes,
            device=device,
        )
        self._batch = Batch(config.q.batch, size, actions)
        self.batch = QBatch(
            **{field.name: torch.from_numpy(getattr(self._batch, field.name)) for field in fields(QBatch)}
        )

    def begin(self) -> None:
        """Start from nothing."""
        self.world.reset(self.config.run.seed)

    def iterate(self) -> dict[str, float]:
        """Play and learn for some hundred steps."""
        until = self.counters.steps + STEPS_PER_ITERATION
        metrics: dict[str, torch.Tensor] = {}
        while self.counters.steps < until:
            self._play()
            metrics = self._learn_as_owed() or metrics
        values = {name: float(value) for name, value in metrics.items()}
        values |= {"epsilon": float(self._epsilons().mean()), "replay/size": float(len(self.store))}
        return values | ({"beta": self._beta()} if self.config.replay.prioritized else {})

    def policy(self) -> NetworkPolicy:
        """The greedy policy as it is now, without noise; acting and learning draw theirs anew each time."""
        for net in self.learner.online:
            net.quiet()
        return NetworkPolicy(*self.learner.online)

    def networks(self) -> Mapping[str, torch.nn.Module]:
        """The online network, or both twins."""
        return {("network", "twin")[i]: net for i, net in enumerate(self.learner.online)}

    def parts(self) -> Parts:
        """Networks, optimizers, sampler, pending transitions, randomness, world, episodes."""
        parts: Parts = {name: dict(net.state_dict()) for name, net in self.networks().items()}
        for i, net in enumerate(self.learner.targets):
            parts[("target", "target_twin")[i]] = dict(net.state_dict())
        for i, optimizer in enumerate(self.learner.optimizers):
            parts[("optimizer", "optimizer_twin")[i]] = optimizer_arrays(optimizer)
        random: Arrays = {"torch": self._torch.get_state(), "numpy": state_of_generator(self._numpy)}
        return parts | {
            "sampler": dict(self.sampler.state()),
            "pending": dict(self.actor.accumulator.state()),
            "world": dict(self.world.state()),
            "episodes": dict(self.episodes.state()),
            "random": random,
        }

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint; the store is filled before."""
        for name, net in self.networks().items():
            net.load_state_dict(saved.parts[name])
        for i, net in enumerate(self.learner.targets):
            net.load_state_dict(saved.parts[("target", "target_twin")[i]])
        for i, optimizer in enumerate(self.learner.optimizers):
            restore_optimizer(optimizer, saved.parts[("optimizer", "optimizer_twin")[i]])
        self.learner.updates = self.counters.updates
        self.sampler.restore(saved.arrays("sampler"))
        if saved.arrays("world"):  # otherwise new episodes begin, and nothing that waits belongs to them
            self.actor.accumulator.restore(saved.arrays("pending"))
        self._torch.set_state(saved.parts["random"]["torch"])
        restore_generator(self._numpy, saved.arrays("random")["numpy"])
        self.episodes.restore(saved.arrays("episodes"))
        restore_world(self, saved.arrays("world"))

    def _epsilons(self) -> npt.NDArray[np.float64]:
        q = self.config.q
        return epsilons(
            self.counters.steps,
            self.world.number,
            start=q.epsilon,
            end=q.final_epsilon,
            steps=q.epsilon_steps,
            spread=q.spread,
            warmup=q.warmup_steps if q.random_warmup else 0,
        )

    def _beta(self) -> float:
        replay = self.config.replay
        return linear(replay.beta, replay.final_beta, min(1.0, self.counters.steps / self.config.run.steps))

    def _play(self) -> None:
        with self.clock.phase("act"):
            self.learner.draw_noise()
            actions = self.actor.choose(self._epsilons())
        with self.clock.phase("simulate"):
            rows, steps = self.actor.play(actions)
        with self.clock.phase("store"):
            self.sampler.added(self.store.add(*rows))
            if self.config.network.normalize:
                self.learner.normalize_with(torch.from_numpy(self.world.observations).to(self._device))
        self.counters.steps += steps
        if self.counters.steps >= self.config.q.warmup_steps:
            self.counters.updates_owed += steps / self.config.q.update_every

    def _learn_as_owed(self) -> dict[str, torch.Tensor]:
        metrics: dict[str, torch.Tensor] = {}
        burst = self.config.q.burst
        while self.counters.updates_owed >= burst and len(self.store) >= self.config.q.batch:
            self.counters.updates_owed -= burst
            for _ in range(burst):
                metrics = self.learn_once()
        return metrics

    def learn_once(self) -> dict[str, torch.Tensor]:
        """One gradient step: sample, learn, set priorities."""
        with self.clock.phase("sample"):
            self.sampler.sample(self._batch, self._numpy, self._beta())
            self.store.gather(self._batch.slots, self._batch)
        with self.clock.phase("learn"):
            progress = min(1.0, self.counters.steps / self.config.run.steps)
            wrong, metrics = self.learner.learn(self.batch.to(self._device), progress)
        with self.clock.phase("sample"):
            self.sampler.update(self._batch.slots, wrong.cpu().numpy())
        self.counters.updates = self.learner.updates
        return metrics


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> Arrays:
    """What an optimizer of one flat parameter remembers."""
    (parameter,) = optimizer.param_groups[0]["params"]
    return dict(optimizer.state[parameter])


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: Mapping[str, torch.Tensor]) -> None:
    """Give an optimizer its memory back."""
    (parameter,) = optimizer.param_groups[0]["params"]
    optimizer.state[parameter] = {
        name: value.clone() if name == "step" else value.clone().to(parameter.device) for name, value in arrays.items()
    }


def restore_world(loop: PPOLoop | QLoop, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """Put the world back where it was, or begin new episodes where that cannot be done."""
    if state:
        loop.world.restore(state)
    else:
        loop.world.reset(loop.config.run.seed + loop.counters.steps)
        loop.episodes.forget_running()
