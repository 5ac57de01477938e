"""The learner of SAC."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from soulsai.algorithms.algorithm import Metrics, Networks
from soulsai.algorithms.replay_learner import ReplayLearner
from soulsai.algorithms.sac.config import SACConfig
from soulsai.config.schema import Config
from soulsai.experience import Schema
from soulsai.networks import ActorCritic, Adam, FlatParameters, QNetwork
from soulsai.ops.importance import weighted_mean
from soulsai.ops.masked import LOWEST_LOG_PROBABILITY, masked_logits

Tensor = torch.Tensor
Batch = dict[str, Tensor]
CRITICS = ("critic", "second_critic")


class Temperature(torch.nn.Module):
    """The weight of the entropy, learned as its logarithm."""

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log_value = torch.nn.Parameter(torch.tensor([math.log(initial)]))


class SACLearner(ReplayLearner):
    """Two critics with targets, a policy, and a temperature that keeps its entropy."""

    def __init__(self, config: Config, schema: Schema, device: torch.device) -> None:
        self.settings = settings = config.section(SACConfig)
        super().__init__(
            config,
            schema,
            device,
            batch=settings.batch,
            update_every=settings.update_every,
            warmup_steps=settings.warmup_steps,
        )
        size, actions = schema.observation_size, schema.num_actions
        self.policy = ActorCritic(size, actions, config.network).to(device)
        self.critics = [QNetwork(size, actions, config.network).to(device) for _ in CRITICS]
        self.targets = [QNetwork(size, actions, config.network).to(device).requires_grad_(False) for _ in CRITICS]
        self.temperature = Temperature(settings.temperature).to(device)
        for critic in (*self.critics, *self.targets):
            critic.normalizer = self.policy.normalizer  # one set of statistics for all
        learned = {
            "network": self.policy,
            **dict(zip(CRITICS, self.critics, strict=True)),
            "temperature": self.temperature,
        }
        for name, module in learned.items():
            self.modules[name], self.flats[name] = module, FlatParameters(module)
            self.optimizers[name] = Adam(self.flats[name], settings.learning_rate, eps=settings.adam_eps)
        self._target_flats = [FlatParameters(target) for target in self.targets]
        for name, target, flat in zip(CRITICS, self.targets, self._target_flats, strict=True):
            self.modules[f"target.{name}"] = target
            flat.copy_from(self.flats[name])

    @property
    def networks(self) -> Networks:
        """The policy."""
        return {"network": self.policy}

    def normalize_with(self, observations: Tensor) -> None:
        """Take new observations into the statistics that inputs are scaled by."""
        if self.policy.normalizer is not None:
            self.policy.normalizer.update(observations)

    def learn(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """One gradient step of everything; how wrong the critics were, for the priorities, and metrics."""
        alpha = self.temperature.log_value.detach().exp()
        # The policy learns where each transition led to: which actions are open is known there.
        logits, values = self.policy(batch["next_observations"])
        log_p = functional.log_softmax(masked_logits(logits, batch["next_masks"]), 1).clamp_min(LOWEST_LOG_PROBABILITY)
        p = log_p.exp() * batch["next_masks"]
        with torch.no_grad():
            lower = torch.minimum(*(target(batch["next_observations"]) for target in self.targets))
            soft = (p * (lower - alpha * log_p)).sum(1)
            goal = batch["rewards"] + batch["discounts"] * soft
        wrong, critic_loss = self._improve_critics(batch, goal)
        alive = (batch["discounts"] > 0.0).float()  # nothing is decided after the end
        entropy = -(p * log_p).sum(1)
        policy_loss = _mean_where(alive, (p * (alpha * log_p - lower)).sum(1))
        value_loss = _mean_where(alive, 0.5 * (values - soft).square())
        norm = self._step("network", policy_loss + value_loss)
        self._improve_temperature(entropy.detach(), batch["next_masks"], alive)
        for target, name in zip(self._target_flats, CRITICS, strict=True):
            target.lerp_from(self.flats[name], self.settings.tau)
        return wrong, {
            "loss/q": critic_loss,
            "loss/policy": policy_loss.detach(),
            "loss/value": value_loss.detach(),
            "policy/entropy": _mean_where(alive, entropy.detach()),
            "q/mean": goal.mean(),
            "q/max": goal.max(),
            "temperature": alpha.squeeze(),
            "gradient/norm": norm,
        }

    def _improve_critics(self, batch: Batch, goal: Tensor) -> tuple[Tensor, Tensor]:
        wrong, losses = torch.zeros_like(goal), []
        for name, critic in zip(CRITICS, self.critics, strict=True):
            error = critic.of_actions(batch["observations"], batch["actions"]) - goal
            loss = weighted_mean(0.5 * error.square(), batch["weights"])
            self._step(name, loss)
            losses.append(loss.detach())
            wrong = torch.maximum(wrong, error.detach().abs())
        return wrong, torch.stack(losses).mean()

    def _improve_temperature(self, entropy: Tensor, masks: Tensor, alive: Tensor) -> None:
        if not self.settings.target_entropy:
            return
        wanted = self.settings.target_entropy * masks.sum(1).float().log()
        self._step("temperature", self.temperature.log_value.squeeze() * _mean_where(alive, entropy - wanted))

    def _step(self, name: str, loss: Tensor) -> float | Tensor:
        self.flats[name].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        return self.optimizers[name].step(self.settings.gradient_norm)


def _mean_where(flags: Tensor, values: Tensor) -> Tensor:
    return (flags * values).sum() / flags.sum().clamp_min(1.0)


LEARNER = SACLearner
