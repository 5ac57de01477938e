"""The learner of PPO."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch.nn import functional

from soulsai.algorithms.algorithm import Metrics, tensors_of
from soulsai.algorithms.ppo.compiled import BLOCK, write_gradient
from soulsai.algorithms.ppo.config import PPOConfig
from soulsai.algorithms.rollout_learner import RolloutLearner
from soulsai.config.schema import Config
from soulsai.experience import Schema
from soulsai.networks.passes import SharedPasses
from soulsai.ops.advantages import gae
from soulsai.ops.masked import entropy_of, log_prob_of, masked_logits
from soulsai.ops.ppo import approximate_kl, clip_fraction, clipped_surrogate, normalize, value_loss
from soulsai.ops.ppo_compiled import METRICS
from soulsai.ops.schedules import linear

Tensor = torch.Tensor


class PPOLearner(RolloutLearner):
    """Improves the network with the rollouts that came since the last update."""

    def __init__(self, config: Config, schema: Schema, device: torch.device) -> None:
        self.settings = settings = config.section(PPOConfig)
        super().__init__(config, schema, device, learning_rate=settings.learning_rate, adam_eps=settings.adam_eps)
        self._passes = SharedPasses(self.network, self.flat, self.threads) if device.type == "cpu" else None

    def update(self, limit_s: float) -> Metrics:
        """One update with all that was taken; nothing without."""
        if not self.is_due:
            return {}
        chunk = self.take_all()
        rollout = tensors_of(chunk)
        with self.clock.phase("learn"):
            metrics = self._learn(rollout)
        if self.network.normalizer is not None:
            # Not before: the log probabilities of the rollout belong to inputs scaled as they were then.
            self.network.normalizer.update(rollout["observations"].flatten(0, 1).to(self.device))
        self.counters.steps += chunk.steps
        return metrics

    def _learn(self, rollout: dict[str, Tensor]) -> Metrics:
        settings, progress = self.settings, self.progress
        rate = linear(settings.learning_rate, settings.learning_rate * settings.final_learning_rate, progress)
        self.optimizer.rate = rate
        entropy_weight = linear(settings.entropy, settings.final_entropy, progress)
        data = self._prepare(rollout)
        sums: dict[str, float | Tensor] = {}
        passes = 0
        for _ in range(settings.epochs):
            last: dict[str, float | Tensor] = {}
            for rows in self._minibatches(len(data["actions"])):
                last = self._step(data, rows, entropy_weight)
                passes += 1
                for name, value in last.items():
                    sums[name] = sums[name] + value if name in sums else value
            if settings.target_kl and float(last["policy/kl"]) > settings.target_kl:
                break
        returns, values = data["returns"], data["values"]
        unexplained = torch.var(returns - values, correction=0) / torch.var(returns, correction=0).clamp_min(1e-8)
        return {
            **{name: value / passes for name, value in sums.items()},
            "learning_rate": rate,
            "value/mean": values.mean(),
            "value/explained_variance": 1.0 - unexplained,
        }

    def _prepare(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        advantages = gae(
            rollout["rewards"],
            rollout["discounts"],
            rollout["values"],
            rollout["next_values"],
            rollout["continues"].float(),
            self.settings.lam,
        )
        data = {name: rollout[name] for name in ("observations", "actions", "log_probs", "values")}
        data |= {"masks": rollout["masks"], "advantages": advantages}
        data["returns"] = advantages + rollout["values"]
        data = {name: values.flatten(0, 1).to(self.device) for name, values in data.items()}
        if self._passes is not None and self.network.normalizer is not None:
            data["observations"] = self.network.normalizer(data["observations"])  # once: it stays as it is
        return data

    def _minibatches(self, count: int) -> list[Tensor]:
        order = torch.randperm(count, generator=self.generator).to(self.device)
        size = min(self.settings.minibatch, count)
        return list(torch.split(order[: count - count % size], size))

    def _step(self, data: dict[str, Tensor], rows: Tensor, entropy_weight: float) -> dict[str, float | Tensor]:
        """One gradient step with some rows."""
        advantages = data["advantages"].index_select(0, rows)
        if self.settings.normalize_advantages:
            deviation, mean = torch.std_mean(advantages, correction=0)
            advantages = normalize(advantages, mean, deviation)
        backward = self._backward if self._passes is None else partial(self._backward_compiled, self._passes)
        metrics = backward(data, rows, advantages, entropy_weight)
        self.counters.updates += 1
        return metrics | {"gradient/norm": self.optimizer.step(self.settings.gradient_norm)}

    def _backward_compiled(
        self, passes: SharedPasses, data: dict[str, Tensor], rows: Tensor, advantages: Tensor, entropy_weight: float
    ) -> dict[str, float | Tensor]:
        """The gradient without autograd, every thread with a part of the rows."""
        settings, columns = self.settings, {name: values.numpy() for name, values in data.items()}
        sums, work = [], []
        for own, part, gains in zip(passes.of_thread, rows.chunk(self.threads.count),
                                    advantages.chunk(self.threads.count), strict=False):  # fmt: skip
            sums.append(np.zeros(len(METRICS)))
            work.append(
                partial(write_gradient, own.plan, own.value, own.data, own.room(BLOCK), own.grad,
                        columns["observations"], part.numpy(), columns["masks"], columns["actions"],
                        columns["log_probs"], gains.numpy(), columns["values"], columns["returns"], settings.clip,
                        settings.value_clip, settings.value, entropy_weight, 1.0 / len(rows), sums[-1])
            )  # fmt: skip
        self.threads.run(work)
        passes.add_up(len(work))
        return dict(zip(METRICS, np.sum(sums, 0).tolist(), strict=True))

    def _backward(
        self, data: dict[str, Tensor], rows: Tensor, advantages: Tensor, entropy_weight: float
    ) -> dict[str, float | Tensor]:
        """The gradient by autograd."""
        settings, batch = self.settings, {name: values.index_select(0, rows) for name, values in data.items()}
        self.flat.zero_grad()
        logits, values = self.network(batch["observations"])
        log_p = functional.log_softmax(masked_logits(logits, batch["masks"]), 1)
        log_ratio = log_prob_of(log_p, batch["actions"]) - batch["log_probs"]
        policy = clipped_surrogate(log_ratio, advantages, settings.clip).mean()
        value = value_loss(values, batch["values"], batch["returns"], settings.value_clip).mean()
        entropy = entropy_of(log_p).mean()
        (policy + settings.value * value - entropy_weight * entropy).backward()  # type: ignore[no-untyped-call]
        found = (policy, value, entropy, approximate_kl(log_ratio), clip_fraction(log_ratio, settings.clip))
        return {name: number.detach() for name, number in zip(METRICS, found, strict=True)}


LEARNER = PPOLearner
