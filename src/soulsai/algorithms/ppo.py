"""Proximal policy optimisation (Schulman et al. 2017) with generalised advantages."""

from __future__ import annotations

import torch
from torch.nn import functional

from soulsai.acting.rollouts import Rollout
from soulsai.config.schema import PPOConfig
from soulsai.networks import ActorCritic, FlatParameters
from soulsai.ops.advantages import gae
from soulsai.ops.masked import closing, entropy_of, log_prob_of
from soulsai.ops.ppo import approximate_kl, clip_fraction, clipped_surrogate, normalized, value_loss
from soulsai.ops.schedules import linear

Tensor = torch.Tensor
Losses = dict[str, Tensor]


class PPOLearner:
    """Improves the network with one rollout at a time."""

    def __init__(self, network: ActorCritic, config: PPOConfig, generator: torch.Generator) -> None:
        self.network, self.config = network, config
        self.flat = FlatParameters(network)
        self.optimizer = torch.optim.Adam([self.flat.parameter], config.learning_rate, eps=config.adam_eps, fused=True)
        self._generator = generator
        self._device = self.flat.parameter.device
        self.updates = 0

    def learn(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """One update; `progress` is the share of the run that lies behind."""
        config = self.config
        rate = linear(config.learning_rate, config.learning_rate * config.final_learning_rate, progress)
        self.optimizer.param_groups[0]["lr"] = rate
        entropy_weight = linear(config.entropy, config.final_entropy, progress)
        data = self._prepared(rollout)
        sums: dict[str, float] = {}
        passes = 0
        for _ in range(config.epochs):
            last: Losses = {}
            for rows in self._minibatches(len(data["actions"])):
                batch = {name: values.index_select(0, rows) for name, values in data.items()}
                last = self._step(batch, entropy_weight)
                passes += 1
                for name, value in last.items():
                    sums[name] = sums.get(name, 0.0) + float(value)
            if config.target_kl and float(last["policy/kl"]) > config.target_kl:
                break
        metrics = {name: value / passes for name, value in sums.items()}
        returns, values = data["returns"], data["values"]
        unexplained = torch.var(returns - values) / torch.var(returns).clamp_min(1e-8)
        explained = 1.0 - float(unexplained)
        return metrics | {
            "learning_rate": rate,
            "value/mean": float(values.mean()),
            "value/explained_variance": explained,
        }

    def _prepared(self, rollout: Rollout) -> dict[str, Tensor]:
        advantages = gae(
            rollout.rewards, rollout.discounts, rollout.values, rollout.next_values, rollout.continues, self.config.lam
        )
        data = {
            "observations": rollout.observations,
            "closing": closing(rollout.masks),
            "actions": rollout.actions,
            "log_probs": rollout.log_probs,
            "values": rollout.values,
            "advantages": advantages,
            "returns": advantages + rollout.values,
        }
        return {name: values.flatten(0, 1).to(self._device) for name, values in data.items()}

    def _minibatches(self, count: int) -> list[Tensor]:
        order = torch.randperm(count, generator=self._generator).to(self._device)
        size = min(self.config.minibatch, count)
        return list(torch.split(order[: count - count % size], size))

    def _step(self, batch: dict[str, Tensor], entropy_weight: float) -> Losses:
        config = self.config
        logits, values = self.network(batch["observations"])
        log_p = functional.log_softmax(logits + batch["closing"], 1)
        log_ratio = log_prob_of(log_p, batch["actions"]) - batch["log_probs"]
        advantages = normalized(batch["advantages"]) if config.normalize_advantages else batch["advantages"]
        policy = clipped_surrogate(log_ratio, advantages, config.clip).mean()
        value = value_loss(values, batch["values"], batch["returns"], config.value_clip).mean()
        entropy = entropy_of(log_p).mean()
        self.flat.zero_grad()
        (policy + config.value * value - entropy_weight * entropy).backward()  # type: ignore[no-untyped-call]
        norm = self.flat.clip_(config.gradient_norm)
        self.optimizer.step()
        self.updates += 1
        with torch.no_grad():
            return {
                "loss/policy": policy.detach(),
                "loss/value": value.detach(),
                "policy/entropy": entropy.detach(),
                "policy/kl": approximate_kl(log_ratio),
                "policy/clip_fraction": clip_fraction(log_ratio, config.clip),
                "gradient/norm": norm,
            }
