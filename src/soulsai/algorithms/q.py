"""Q-learning composed by config: double, twin, dueling, noisy, distributional, on any sampler."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import torch

from soulsai.config.schema import NetworkConfig, QConfig
from soulsai.networks import FlatParameters, QNetwork
from soulsai.networks.q_network import of_actions
from soulsai.ops.categorical import categorical_loss, categorical_mean, categorical_target
from soulsai.ops.importance import weighted_mean
from soulsai.ops.losses import td_loss
from soulsai.ops.masked import masked_argmax
from soulsai.ops.q_targets import bootstrapped, clipped_target
from soulsai.ops.quantile import quantile_huber_loss, quantile_target
from soulsai.ops.schedules import linear

Tensor = torch.Tensor


@dataclass(frozen=True)
class QBatch:
    """Transitions as tensors."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    next_observations: Tensor
    next_masks: Tensor
    weights: Tensor

    def to(self, device: torch.device) -> QBatch:
        """The same on a device."""
        if self.rewards.device == device:
            return self
        return QBatch(*(getattr(self, field.name).to(device) for field in fields(self)))


class QLearner:
    """The networks and one gradient step."""

    def __init__(
        self,
        observation_size: int,
        num_actions: int,
        network: NetworkConfig,
        config: QConfig,
        *,
        device: torch.device,
        generator: torch.Generator,
    ) -> None:
        self.config, self._generator, self._device = config, generator, device
        make = partial(QNetwork, observation_size, num_actions, network, config)
        self.online = [make().to(device) for _ in range(2 if config.twin or config.clipped else 1)]
        self.flats = [FlatParameters(net) for net in self.online]
        self.targets = [] if config.twin else [make().to(device).requires_grad_(False) for _ in self.online]
        self._target_flats = [FlatParameters(net) for net in self.targets]
        for target, flat in zip(self._target_flats, self.flats, strict=False):
            target.copy_from(flat)
        for net in (*self.online, *self.targets):
            net.normalizer = self.online[0].normalizer  # one set of statistics for all
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        self.optimizers = [
            kind(
                [flat.parameter],
                config.learning_rate,
                eps=config.adam_eps,
                weight_decay=config.weight_decay if config.optimizer == "adamw" else 0.0,
                fused=True,
            )
            for flat in self.flats
        ]
        self.updates = 0

    def values(self, observations: Tensor) -> Tensor:
        """What acting goes by: the value of every action, summed over twins."""
        total = self.online[0].means(observations)
        for net in self.online[1:]:
            total = total + net.means(observations)
        return total

    def draw_noise(self) -> None:
        """New noise for acting, if the networks are noisy."""
        if self.config.noisy:
            for net in self.online:
                net.draw_noise(self._generator)

    def normalize_with(self, observations: Tensor) -> None:
        """Take new observations into the statistics the inputs are scaled by."""
        if self.online[0].normalizer is not None:
            self.online[0].normalizer.update(observations)

    def learn(self, batch: QBatch, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        """One gradient step; how wrong each transition was, for its priority, and metrics."""
        if self.config.noisy:
            for net in (*self.online, *self.targets):
                net.draw_noise(self._generator)
        learning, following = self._roles(batch)
        wrong, metrics = self._improve(learning[0], batch, following, progress)
        for which in learning[1:]:
            also_wrong, _ = self._improve(which, batch, following, progress)
            wrong = torch.maximum(wrong, also_wrong)
        self.updates += 1
        self._move_targets()
        return wrong, metrics

    def _roles(self, batch: QBatch) -> tuple[tuple[int, ...], Tensor]:
        """Which networks learn, and the value [B] or distribution [B, N] of the best next action."""
        if self.config.clipped:
            return (0, 1), self._smaller_following(batch)
        which = int(torch.randint(2, (), generator=self._generator)) if self.config.twin else 0
        other = self.online[1 - which] if self.config.twin else self.targets[0]
        return (which,), self._following(self.online[which], other, batch)

    def _improve(
        self, which: int, batch: QBatch, following: Tensor, progress: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        config = self.config
        flat, optimizer = self.flats[which], self.optimizers[which]
        if config.final_learning_rate != 1.0:
            rate = linear(config.learning_rate, config.learning_rate * config.final_learning_rate, progress)
            optimizer.param_groups[0]["lr"] = rate
        loss, wrong, taken = self._loss(self.online[which], batch, following)
        flat.zero_grad()
        total = weighted_mean(loss, batch.weights)
        total.backward()  # type: ignore[no-untyped-call]
        norm = flat.clip_(config.gradient_norm)
        optimizer.step()
        values = taken.detach()
        return wrong, {"loss/q": total.detach(), "q/mean": values.mean(), "q/max": values.max(), "gradient/norm": norm}

    def _loss(self, net: QNetwork, batch: QBatch, following: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and error of each transition, and the value of its action."""
        config = self.config
        predicted = net.of_actions(batch.observations, batch.actions)
        if config.distribution == "none":
            target = clipped_target(bootstrapped(batch.rewards, batch.discounts, following), config.value_clip)
            return td_loss(predicted, target, config.loss), (predicted.detach() - target).abs(), predicted
        if config.distribution == "c51":
            target = categorical_target(batch.rewards, batch.discounts, net.support, following.softmax(-1))
            loss = categorical_loss(predicted, target)
            return loss, loss.detach(), categorical_mean(predicted.detach(), net.support)
        loss = quantile_huber_loss(predicted, quantile_target(batch.rewards, batch.discounts, following))
        return loss, loss.detach(), predicted.mean(-1)

    @torch.no_grad()
    def _following(self, net: QNetwork, other: QNetwork, batch: QBatch) -> Tensor:
        """Of the best next action by `net` (or by `other` itself), what `other` says."""
        if self.config.double or self.config.twin:
            best = masked_argmax(net.means(batch.next_observations), batch.next_masks)
            return other.of_actions(batch.next_observations, best)
        out = other(batch.next_observations)
        return of_actions(out, masked_argmax(other.means_of(out), batch.next_masks))

    @torch.no_grad()
    def _smaller_following(self, batch: QBatch) -> Tensor:
        """Of the best next action by both targets together, what the one says that thinks less of it."""
        outs = [net(batch.next_observations) for net in self.targets]
        means = [net.means_of(out) for net, out in zip(self.targets, outs, strict=True)]
        best = masked_argmax(means[0] + means[1], batch.next_masks)
        first, second = (of_actions(out, best) for out in outs)
        lower = of_actions(means[0], best) <= of_actions(means[1], best)
        return torch.where(lower if first.dim() == 1 else lower.unsqueeze(1), first, second)

    def _move_targets(self) -> None:
        config = self.config
        if self.updates % config.target_period:
            return
        for target, flat in zip(self._target_flats, self.flats, strict=False):
            if config.target == "hard":
                target.copy_from(flat)
            else:
                target.lerp_from(flat, config.tau)
