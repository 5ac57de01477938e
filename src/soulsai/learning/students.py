"""What learns, wherever its experience comes from: from a world in the same process, or from workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.policy import NetworkPolicy
from soulsai.acting.rollouts import Rollout
from soulsai.algorithms.ppo import PPOLearner
from soulsai.algorithms.q import QBatch, QLearner
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.networks import ActorCritic
from soulsai.ops.schedules import linear
from soulsai.replay import Batch, PrioritizedSampler, TransitionStore, UniformSampler
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import restore_generator, state_of_generator

Arrays = dict[str, torch.Tensor | npt.NDArray[Any]]
Parts = dict[str, Arrays]


@dataclass
class Counters:
    """How far a run has come."""

    steps: int = 0
    updates: int = 0
    updates_owed: float = 0.0


class PPOStudent:
    """The network and what improves it with rollouts."""

    def __init__(self, config: Config, observation_size: int, num_actions: int, device: torch.device) -> None:
        self.config, self._device = config, device
        self.counters, self.clock = Counters(), LoopClock()
        self._generator = torch.Generator().manual_seed(config.run.seed)
        torch.manual_seed(config.run.seed)
        self.network = ActorCritic(observation_size, num_actions, config.network).to(device)
        self.learner = PPOLearner(self.network, config.ppo, self._generator)

    def learn_from(self, rollout: Rollout, steps: int) -> dict[str, float]:
        """The update that a rollout of so many environment steps allows."""
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
        """Network, optimizer, randomness."""
        return {
            "network": dict(self.network.state_dict()),
            "optimizer": optimizer_arrays(self.learner.optimizer),
            "random": {"torch": self._generator.get_state()},
        }

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.network.load_state_dict(saved.parts["network"])
        restore_optimizer(self.learner.optimizer, saved.parts["optimizer"])
        self.learner.updates = self.counters.updates
        self._generator.set_state(saved.parts["random"]["torch"])


class QStudent:
    """The networks, the replay and what improves the one with the other."""

    def __init__(self, config: Config, observation_size: int, num_actions: int, device: torch.device) -> None:
        self.config, self._device = config, device
        self.counters, self.clock = Counters(), LoopClock()
        self._torch = torch.Generator().manual_seed(config.run.seed)
        torch.manual_seed(config.run.seed)
        self._numpy = np.random.default_rng([config.run.seed, 1])
        size, actions = observation_size, num_actions
        self.learner = QLearner(size, actions, config.network, config.q, device=device, generator=self._torch)
        self.store = TransitionStore(config.replay.capacity, size, actions)
        self.sampler = (
            PrioritizedSampler(config.replay.capacity, config.replay.alpha)
            if config.replay.prioritized
            else UniformSampler(self.store)
        )
        self._batch = Batch(config.q.batch, size, actions)
        self.batch = QBatch(
            **{field.name: torch.from_numpy(getattr(self._batch, field.name)) for field in fields(QBatch)}
        )

    def count(self, steps: int) -> None:
        """Environment steps were stored: gradient steps are owed for them."""
        self.counters.steps += steps
        if self.counters.steps >= self.config.q.warmup_steps:
            self.counters.updates_owed += steps / self.config.q.update_every

    def owes(self) -> bool:
        """Whether a burst of gradient steps is due."""
        return self.counters.updates_owed >= self.config.q.burst and len(self.store) >= self.config.q.batch

    def learn_burst(self) -> dict[str, torch.Tensor]:
        """Gradient steps that are done together."""
        self.counters.updates_owed -= self.config.q.burst
        metrics: dict[str, torch.Tensor] = {}
        for _ in range(self.config.q.burst):
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

    def replay_metrics(self) -> dict[str, float]:
        """How the replay stands."""
        values = {"replay/size": float(len(self.store))}
        if isinstance(self.sampler, PrioritizedSampler):
            values |= {"beta": self._beta(), "replay/priority_mean": self.sampler.mean,
                       "replay/priority_max": self.sampler.largest}  # fmt: skip
        return values

    def policy(self) -> NetworkPolicy:
        """The greedy policy as it is now, without noise; acting and learning draw theirs again each time."""
        for net in self.learner.online:
            net.quiet()
        return NetworkPolicy(*self.learner.online)

    def networks(self) -> Mapping[str, torch.nn.Module]:
        """The online network, or both twins."""
        return {("network", "twin")[i]: net for i, net in enumerate(self.learner.online)}

    def parts(self) -> Parts:
        """Networks, optimizers, sampler, randomness."""
        parts: Parts = {name: dict(net.state_dict()) for name, net in self.networks().items()}
        for i, net in enumerate(self.learner.targets):
            parts[("target", "target_twin")[i]] = dict(net.state_dict())
        for i, optimizer in enumerate(self.learner.optimizers):
            parts[("optimizer", "optimizer_twin")[i]] = optimizer_arrays(optimizer)
        random: Arrays = {"torch": self._torch.get_state(), "numpy": state_of_generator(self._numpy)}
        return parts | {"sampler": dict(self.sampler.state()), "random": random}

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
        self._torch.set_state(saved.parts["random"]["torch"])
        restore_generator(self._numpy, saved.arrays("random")["numpy"])

    def _beta(self) -> float:
        replay = self.config.replay
        return linear(replay.beta, replay.final_beta, min(1.0, self.counters.steps / self.config.run.steps))


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
