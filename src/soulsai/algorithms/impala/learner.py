"""The learner of IMPALA."""

from __future__ import annotations

import torch
from torch.nn import functional

from soulsai.algorithms.algorithm import Metrics, tensors_of
from soulsai.algorithms.impala.config import ImpalaConfig
from soulsai.algorithms.rollout_learner import RolloutLearner
from soulsai.config.schema import Config
from soulsai.experience import Schema
from soulsai.ops.masked import entropy_of, log_prob_of, masked_logits
from soulsai.ops.schedules import linear
from soulsai.ops.vtrace import vtrace

Tensor = torch.Tensor


class ImpalaLearner(RolloutLearner):
    """Learns from each sequence once, however old the policy that played it."""

    def __init__(self, config: Config, schema: Schema, device: torch.device) -> None:
        self.settings = settings = config.section(ImpalaConfig)
        super().__init__(config, schema, device, learning_rate=settings.learning_rate, adam_eps=settings.adam_eps)

    def update(self, limit_s: float) -> Metrics:
        """A gradient step for every so many sequences that were taken, in the order in which they came."""
        if not self.is_due:
            return {}
        chunk = self.take_all()
        data = {name: tensor.to(self.device) for name, tensor in tensors_of(chunk).items()}
        settings, progress = self.settings, self.progress
        low = settings.learning_rate * settings.final_learning_rate
        self.optimizer.rate = linear(settings.learning_rate, low, progress)
        entropy_weight = linear(settings.entropy, settings.final_entropy, progress)
        metrics: Metrics = {}
        with self.clock.phase("learn"):
            for lanes in torch.split(torch.arange(data["actions"].shape[1], device=self.device), settings.sequences):
                metrics = self._step({name: values[:, lanes] for name, values in data.items()}, entropy_weight)
        if self.network.normalizer is not None:
            self.network.normalizer.update(data["observations"].flatten(0, 1))
        self.counters.steps += chunk.steps
        return metrics

    def _step(self, batch: dict[str, Tensor], entropy_weight: float) -> Metrics:
        settings, (length, lanes) = self.settings, batch["actions"].shape
        logits, values = self.network(batch["observations"].flatten(0, 1))
        log_p = functional.log_softmax(masked_logits(logits, batch["masks"].flatten(0, 1)), 1)[: (length - 1) * lanes]
        log_prob = log_prob_of(log_p, batch["actions"][:-1].flatten()).view(length - 1, lanes)
        values = values.view(length, lanes)
        continues = batch["continues"][:-1]
        # Where an episode was cut off, what followed is not in the sequence: the actor's own guess stands for it.
        v_t = torch.where(continues, values.detach()[1:], batch["next_values"][:-1])
        log_ratio = log_prob.detach() - batch["log_probs"][:-1]
        targets, advantages = vtrace(
            log_ratio,
            batch["rewards"][:-1],
            batch["discounts"][:-1],
            values.detach()[:-1],
            v_t,
            continues.float(),
            rho_clip=settings.rho_clip,
            c_clip=settings.c_clip,
        )
        policy = -(advantages * log_prob).mean()
        value = 0.5 * (values[:-1] - targets).square().mean()
        entropy = entropy_of(log_p).mean()
        self.flat.zero_grad()
        (policy + settings.value * value - entropy_weight * entropy).backward()
        norm = self.optimizer.step(settings.gradient_norm)
        self.counters.updates += 1
        return {
            "loss/policy": policy.detach(),
            "loss/value": value.detach(),
            "policy/entropy": entropy.detach(),
            "policy/kl": -log_ratio.mean(),
            "value/mean": values.detach().mean(),
            "gradient/norm": norm,
        }


LEARNER = ImpalaLearner
