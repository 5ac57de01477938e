"""Q-learning composed by config: double, twin, dueling, noisy, distributional, on any sampler."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from soulsai.config.schema import NetworkConfig, QConfig
from soulsai.networks import FlatParameters, QNetwork
from soulsai.ops.categorical import categorical_loss, categorical_mean, categorical_target
from soulsai.ops.losses import td_loss
from soulsai.ops.masked import masked_argmax
from soulsai.ops.q_targets import clipped_target, double_q_target
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
        count = 2 if config.twin else 1
        self.online = [QNetwork(observation_size, num_actions, network, config).to(device) for _ in range(count)]
        self.flats = [FlatParameters(net) for net in self.online]
        self.target = self.online[0] if config.twin else QNetwork(observation_size, num_actions, network, config)
        if not config.twin:
            self.target = self.target.to(device)
            self.target.load_state_dict(self.online[0].state_dict())
            self._target_flat = FlatParameters(self.target)
            self.target.requires_grad_(False)
        for net in (*self.online, self.target):
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
        config = self.config
        which = self._coin() if config.twin else 0
        net, flat, optimizer = self.online[which], self.flats[which], self.optimizers[which]
        if config.final_learning_rate != 1.0:
            rate = linear(config.learning_rate, config.learning_rate * config.final_learning_rate, progress)
            optimizer.param_groups[0]["lr"] = rate
        if config.noisy:
            self.draw_noise()
            self.target.draw_noise(self._generator)
        other = self.online[1 - which] if config.twin else self.target
        loss, wrong, taken = self._loss(net, other, batch)
        flat.zero_grad()
        total = (batch.weights * loss).mean()
        total.backward()  # type: ignore[no-untyped-call]
        norm = flat.clip_(config.gradient_norm)
        optimizer.step()
        self.updates += 1
        self._move_target()
        return wrong, {"loss/q": total.detach(), "q/mean": taken.detach().mean(), "gradient/norm": norm}

    def _coin(self) -> int:
        return int(torch.randint(2, (), generator=self._generator))

    def _loss(self, net: QNetwork, other: QNetwork, batch: QBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and error of each transition, and the value of its action."""
        config = self.config
        predicted = _of_actions(net(batch.observations), batch.actions)
        with torch.no_grad():
            following = other(batch.next_observations)
            apart = config.double or config.twin
            chooser = net.means(batch.next_observations) if apart else other.means_of(following)
        if config.distribution == "none":
            target = double_q_target(batch.rewards, batch.discounts, following, chooser, batch.next_masks)
            target = clipped_target(target, config.value_clip)
            return td_loss(predicted, target, config.loss), (predicted.detach() - target).abs(), predicted
        following = _of_actions(following, masked_argmax(chooser, batch.next_masks))
        if config.distribution == "c51":
            target = categorical_target(batch.rewards, batch.discounts, net.support, following.softmax(-1))
            loss = categorical_loss(predicted, target)
            return loss, loss.detach(), categorical_mean(predicted, net.support)
        loss = quantile_huber_loss(predicted, quantile_target(batch.rewards, batch.discounts, following))
        return loss, loss.detach(), predicted.mean(-1)

    def _move_target(self) -> None:
        config = self.config
        if config.twin or self.updates % config.target_period:
            return
        if config.target == "hard":
            self._target_flat.copy_from(self.flats[0])
        else:
            self._target_flat.lerp_from(self.flats[0], config.tau)


def _of_actions(values: Tensor, actions: Tensor) -> Tensor:
    """The value [B], or the distribution [B, N], of one action of every row."""
    index = actions.view(-1, *([1] * (values.dim() - 1))).expand(-1, 1, *values.shape[2:])
    return values.gather(1, index).squeeze(1)
