"""On-policy acting: rollouts for PPO."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from soulsai.acting.episodes import Follower
from soulsai.acting.world import World
from soulsai.networks import ActorCritic
from soulsai.ops.masked import categorical_log_prob, gumbel_sample, masked_logits
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import Step

Tensor = torch.Tensor


@dataclass(frozen=True)
class Rollout:
    """`T` decisions of `n` episodes; the leading axes are T and n."""

    observations: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor  # of the observation acted on
    next_values: Tensor  # of what came after; of the final observation where an episode was cut off
    rewards: Tensor
    discounts: Tensor  # gamma to the steps that passed; 0 where terminated
    continues: Tensor  # 0 where the episode ended in any way

    @classmethod
    def of_size(cls, t: int, n: int, observation_size: int, num_actions: int) -> Rollout:
        """Empty buffers."""
        numbers = [torch.zeros(t, n) for _ in range(6)]
        return cls(
            observations=torch.zeros(t, n, observation_size),
            masks=torch.ones(t, n, num_actions, dtype=torch.bool),
            actions=torch.zeros(t, n, dtype=torch.int64),
            log_probs=numbers[0],
            values=numbers[1],
            next_values=numbers[2],
            rewards=numbers[3],
            discounts=numbers[4],
            continues=numbers[5],
        )


class RolloutActor:
    """Plays `rollout` decisions in every episode with the network as it is."""

    def __init__(
        self,
        world: World,
        network: ActorCritic,
        *,
        rollout: int,
        gamma: float,
        masks: bool,
        generator: torch.Generator,
        episodes: Follower,
        clock: LoopClock,
    ) -> None:
        self.world, self.network = world, network
        self._gamma, self._use_masks, self._generator = gamma, masks, generator
        self._episodes, self._clock = episodes, clock
        self._device = next(network.parameters()).device
        self.buffer = Rollout.of_size(rollout, world.number, world.observation_size, world.num_actions)
        self._uniform = torch.empty(world.number, world.num_actions)

    @torch.no_grad()
    def collect(self) -> tuple[Rollout, int]:
        """A rollout, in buffers that the next one reuses, and how many environment steps it took."""
        steps = 0
        length = len(self.buffer.rewards)
        for t in range(length):
            with self._clock.phase("act"):
                actions = self._act(t)
            with self._clock.phase("simulate"):
                step = self.world.step(actions)
            with self._clock.phase("store"):
                self._store(t, step)
                steps += int(step.steps.sum())
                self._episodes.add(step)
        with self._clock.phase("act"):
            _, values = self.network(torch.from_numpy(self.world.observations).to(self._device))
            self._link_values(values.cpu())
        return self.buffer, steps

    def _act(self, t: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        buffer = self.buffer
        buffer.observations[t].numpy()[:] = self.world.observations
        if self._use_masks:
            buffer.masks[t].numpy()[:] = self.world.masks
        logits, values = self.network(buffer.observations[t].to(self._device))
        logits = masked_logits(logits.cpu(), buffer.masks[t])
        self._uniform.uniform_(generator=self._generator)
        actions = gumbel_sample(logits, self._uniform)
        buffer.actions[t] = actions
        buffer.log_probs[t] = categorical_log_prob(logits, actions)
        buffer.values[t] = values.cpu()
        return actions.numpy()

    def _store(self, t: int, step: Step) -> None:
        buffer = self.buffer
        buffer.rewards[t].numpy()[:] = step.rewards
        np.power(self._gamma, step.steps, out=buffer.discounts[t].numpy(), casting="same_kind")
        buffer.discounts[t].numpy()[step.terminated] = 0.0
        np.logical_not(step.ended, out=buffer.continues[t].numpy(), casting="unsafe")
        buffer.next_values[t].zero_()
        cut = np.flatnonzero(step.truncated & ~step.terminated)
        if len(cut):
            final = torch.from_numpy(step.final_observations[cut]).to(self._device)
            buffer.next_values[t, torch.from_numpy(cut)] = self.network(final)[1].cpu()

    def _link_values(self, last: Tensor) -> None:
        """Where an episode went on, the value of what came after is the value of the next observation."""
        buffer = self.buffer
        following = torch.cat((buffer.values[1:], last[None]))
        torch.where(buffer.continues.bool(), following, buffer.next_values, out=buffer.next_values)
