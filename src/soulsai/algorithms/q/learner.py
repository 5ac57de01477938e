"""Q-learning composed by its settings: double, twin, dueling, noisy, distributional, on any sampler."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from soulsai.acting.demonstrations import Demos
from soulsai.algorithms.algorithm import Metrics, Networks
from soulsai.algorithms.q.compiled import look_ahead, write_gradient
from soulsai.algorithms.q.config import QConfig, names_of
from soulsai.algorithms.q.exploration import epsilons
from soulsai.algorithms.q.networks import build_network
from soulsai.algorithms.replay_learner import ReplayLearner
from soulsai.config.schema import Config
from soulsai.experience import Array, Schema
from soulsai.networks import Adam, FlatParameters, QNetwork
from soulsai.networks.passes import Floats, Passes
from soulsai.networks.q_network import of_actions
from soulsai.ops.categorical import categorical_loss, categorical_mean, categorical_target
from soulsai.ops.importance import weighted_mean
from soulsai.ops.losses import margin_loss, td_loss
from soulsai.ops.masked import masked_argmax
from soulsai.ops.q_targets import bootstrap_target, clipped_target
from soulsai.ops.quantile import quantile_huber_loss, quantile_target
from soulsai.ops.schedules import linear

Tensor = torch.Tensor
Batch = dict[str, Tensor]

NONE_SHOWN = np.zeros((0, 0), np.bool_)
FEWEST_ROWS = 64
"""Of a batch, for a thread: with fewer it costs more to wake it."""


class QLearner(ReplayLearner):
    """The networks and one gradient step."""

    def __init__(self, config: Config, schema: Schema, device: torch.device) -> None:
        self.settings = settings = config.section(QConfig)
        super().__init__(
            config,
            schema,
            device,
            batch=settings.batch,
            update_every=settings.update_every,
            warmup_steps=settings.warmup_steps,
            burst=settings.burst,
        )
        names = names_of(settings)
        self.online = [self._build() for _ in names]
        self.targets = [] if settings.twin else [self._build().requires_grad_(False) for _ in names]
        for net in (*self.online, *self.targets):
            net.normalizer = self.online[0].normalizer  # one set of statistics for all
        decay = settings.weight_decay if settings.optimizer == "adamw" else 0.0
        for name, net in zip(names, self.online, strict=True):
            self.modules[name], self.flats[name] = net, FlatParameters(net)
            self.optimizers[name] = Adam(self.flats[name], settings.learning_rate, eps=settings.adam_eps, decay=decay)
        self._flats, self._optimizers = list(self.flats.values()), list(self.optimizers.values())
        self._target_flats = [FlatParameters(net) for net in self.targets]
        for name, net, target, flat in zip(names, self.targets, self._target_flats, self._flats, strict=False):
            self.modules[f"target.{name}"] = net
            target.copy_from(flat)
        self._passes: list[Passes] = []
        if device.type == "cpu" and self.online[0].chains():
            self._passes = [
                Passes(*each) for each in zip(self.online, (flat.grad for flat in self._flats), strict=True)
            ]
            parts = max(len(names), min(self.threads.count, settings.batch // FEWEST_ROWS))
            self._looking = [[Passes(net) for net in (*self.online, *self.targets)] for _ in range(parts)]

    def _build(self) -> QNetwork:
        return build_network(self.config, self.schema.observation_size, self.schema.num_actions).to(self.device)

    @property
    def networks(self) -> Networks:
        """The online network, or both twins."""
        return dict(zip(names_of(self.settings), self.online, strict=True))

    def normalize_with(self, observations: Tensor) -> None:
        """Take new observations into the statistics that inputs are scaled by."""
        if self.online[0].normalizer is not None:
            self.online[0].normalizer.update(observations)

    def teach(self, demos: Demos) -> None:
        """Keep what was demonstrated for batches."""
        self.remember_demos(demos.transitions(self.settings.n_step, self.settings.gamma, self.schema))

    def metrics(self) -> dict[str, float]:
        """How the replay stands, and how much is tried out."""
        shares = epsilons(self.settings, self.counters.steps, self.config.side_by_side()[1])
        return super().metrics() | {"epsilon": float(shares.mean())}

    def learn(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """One gradient step; how wrong each transition was, for its priority, and metrics."""
        if self.settings.noisy:
            for net in (*self.online, *self.targets):
                net.draw_noise(self.generator)
        if self.settings.final_learning_rate != 1.0:
            low = self.settings.learning_rate * self.settings.final_learning_rate
            for optimizer in self._optimizers:
                optimizer.rate = linear(self.settings.learning_rate, low, self.progress)
        which = int(torch.randint(2, (), generator=self.generator)) if self.settings.twin else 0
        if self._passes:
            return self._learn_compiled(batch, which)
        if self.settings.clipped:
            return self._learn_both(batch)
        other = self.online[1 - which] if self.settings.twin else self.targets[0]
        return self._improve(which, batch, self._next_values(self.online[which], other, batch))

    def _learn_both(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Both networks learn from the smaller value of their targets."""
        following = self._smaller(batch)
        wrong, metrics = self._improve(0, batch, following)
        also_wrong, _ = self._improve(1, batch, following)
        return torch.maximum(wrong, also_wrong), metrics

    def _learn_compiled(self, batch: Batch, which: int) -> tuple[Tensor, Metrics]:
        """The same without autograd: threads share all passes forward, then each has a network to go back through.

        Not rows again: whatever another core wrote comes slowly, and so would a network that two of them change.
        """
        settings, columns = self.settings, {name: column.numpy() for name, column in batch.items()}
        learning = (0, 1) if settings.clipped else (which,)
        looking = (2, 3) if settings.clipped else (which, 1 - which) if settings.twin else (int(not settings.double), 1)
        targets = np.empty(len(columns["actions"]), np.float32)
        inputs = {each: self._passes[each].inputs(columns["observations"]) for each in learning}
        given = self._looks(columns, inputs, looking, targets)
        self.threads.run([partial(look_ahead, *each) for each in given])
        found = self.threads.run([partial(self._follow, each, x, columns, targets) for each, x in inputs.items()])
        return torch.from_numpy(np.maximum(found[0][0], found[-1][0])), found[0][1]

    def _looks(
        self, columns: dict[str, Array], inputs: dict[int, Floats], looking: tuple[int, int], targets: Floats
    ) -> Iterator[tuple[Any, ...]]:
        """What each thread needs to know, made ready here: only one at a time can be in Python.

        The first have a network that learns to pass through, so that they look at fewer rows of what follows.
        """
        settings, count, parts, end = self.settings, len(targets), len(self._looking), 0
        for number, passes in enumerate(self._looking):
            own = list(inputs)[number] if number < len(inputs) else None
            share = max(0.0, ((len(inputs) + len(looking)) / parts - (own is not None)) / len(looking))
            begin, end = end, count if number == parts - 1 else min(count, end + int(count * share))
            nets = [*(passes[each] for each in looking), self._passes[own or 0]]
            x = nets[0].inputs(columns["next_observations"][begin:end])
            yield (
                nets[0].plan, nets[0].value, settings.clipped, settings.dueling, tuple(each.data for each in nets),
                (nets[0].room(len(x)), nets[1].room(len(x)), nets[2].room(count)),
                x[:0] if own is None else inputs[own], x, columns["next_masks"][begin:end],
                columns["rewards"][begin:end], columns["discounts"][begin:end], settings.value_clip, targets[begin:end],
            )  # fmt: skip

    def _follow(self, which: int, x: Floats, columns: dict[str, Array], targets: Floats) -> tuple[Floats, Metrics]:
        """One network learns, and its target network with it."""
        passes, settings, errors = self._passes[which], self.settings, np.empty_like(targets)
        loss, mean, largest = write_gradient(
            passes.plan, passes.value, settings.dueling, passes.data, passes.room(len(x)), passes.grad, x,
            columns["actions"], columns["weights"], targets, settings.loss == "huber", errors,
            columns.get("open", NONE_SHOWN), self.config.demos.margin, self.config.demos.margin_weight,
        )  # fmt: skip
        norm = self._optimizers[which].step(settings.gradient_norm)
        self._move_target(which)
        return errors, {"loss/q": loss, "q/mean": mean, "q/max": largest, "gradient/norm": norm}

    def _improve(self, which: int, batch: Batch, following: Tensor) -> tuple[Tensor, Metrics]:
        loss, wrong, taken = self._loss(self.online[which], batch, following)
        self._flats[which].zero_grad()
        total = weighted_mean(loss, batch["weights"])
        if len(batch.get("open", ())):
            total = total + self._margin(self.online[which], batch)
        total.backward()  # type: ignore[no-untyped-call]
        norm = self._optimizers[which].step(self.settings.gradient_norm)
        self._move_target(which)
        values = taken.detach()
        return wrong, {"loss/q": total.detach(), "q/mean": values.mean(), "q/max": values.max(), "gradient/norm": norm}

    def _margin(self, net: QNetwork, batch: Batch) -> Tensor:
        """The loss of the demonstrated rows, which are the first ones, if they are not valued above the others."""
        demos, shown = self.config.demos, len(batch["open"])
        q = net.means(batch["observations"][:shown])
        lost = margin_loss(q, batch["actions"][:shown], batch["open"], demos.margin)
        return demos.margin_weight * lost.sum() / len(batch["actions"])

    def _loss(self, net: QNetwork, batch: Batch, following: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and error of each transition, and the value of its action."""
        settings = self.settings
        predicted = net.of_actions(batch["observations"], batch["actions"])
        if settings.distribution == "none":
            target = clipped_target(
                bootstrap_target(batch["rewards"], batch["discounts"], following), settings.value_clip
            )
            return td_loss(predicted, target, settings.loss), (predicted.detach() - target).abs(), predicted
        if settings.distribution == "c51":
            target = categorical_target(batch["rewards"], batch["discounts"], net.support, following.softmax(-1))
            loss = categorical_loss(predicted, target)
            return loss, loss.detach(), categorical_mean(predicted.detach(), net.support)
        loss = quantile_huber_loss(predicted, quantile_target(batch["rewards"], batch["discounts"], following))
        return loss, loss.detach(), predicted.mean(-1)

    @torch.no_grad()
    def _next_values(self, net: QNetwork, other: QNetwork, batch: Batch) -> Tensor:
        """Of the best next action by `net` (or by `other` itself), what `other` says."""
        if self.settings.double or self.settings.twin:
            best = masked_argmax(net.means(batch["next_observations"]), batch["next_masks"])
            return other.of_actions(batch["next_observations"], best)
        out = other(batch["next_observations"])
        return of_actions(out, masked_argmax(other.means_of(out), batch["next_masks"]))

    @torch.no_grad()
    def _smaller(self, batch: Batch) -> Tensor:
        """Of the best next action by both targets together, what the one says that thinks less of it."""
        outs = [net(batch["next_observations"]) for net in self.targets]
        means = [net.means_of(out) for net, out in zip(self.targets, outs, strict=True)]
        best = masked_argmax(means[0] + means[1], batch["next_masks"])
        first, second = (of_actions(out, best) for out in outs)
        lower = of_actions(means[0], best) <= of_actions(means[1], best)
        return torch.where(lower if first.dim() == 1 else lower.unsqueeze(1), first, second)

    def _move_target(self, which: int) -> None:
        """The target network follows the one that has learned; twins have none."""
        settings = self.settings
        if settings.twin or (self.counters.updates + 1) % settings.target_period:
            return
        if settings.target == "hard":
            self._target_flats[which].copy_from(self._flats[which])
        else:
            self._target_flats[which].lerp_from(self._flats[which], settings.tau)


LEARNER = QLearner
