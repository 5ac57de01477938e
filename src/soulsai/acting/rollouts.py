"""On-policy acting: rollouts, which are sequences of decisions with what the policy thought of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from soulsai.acting.actor import Actor, Stopped
from soulsai.acting.network import Floats, acting_network
from soulsai.acting.world import World
from soulsai.experience import ACTION, FLAG, MASK, NUMBER, OBSERVATION, SHARE, Chunk, Column, Schema
from soulsai.ops.mersenne import Mersenne
from soulsai.ops.ppo_compiled import draw_actions
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import State, Step

if TYPE_CHECKING:
    from soulsai.acting.light import LightNetwork
    from soulsai.networks import PolicyNetwork

ROLLOUT: dict[str, Column] = {
    "observations": OBSERVATION,
    "masks": MASK,
    "actions": ACTION,
    "log_probs": Column("f4", low=-1e9, high=1e-4),  # rounding may add a little to the logarithm of 1
    "values": NUMBER,  # of the observation acted on
    "next_values": NUMBER,  # of what came after; of the final observation where an episode was cut off
    "rewards": NUMBER,
    "discounts": SHARE,  # gamma to the steps that passed; 0 where terminated
    "continues": FLAG,  # false where the episode ended in any way
}


class RolloutActor(Actor):
    """Plays `schema.length` decisions in every episode with the network as it is."""

    def __init__(
        self,
        world: World,
        schema: Schema,
        network: PolicyNetwork | LightNetwork,
        *,
        gamma: float,
        masks: bool,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> None:
        super().__init__(world, clock)
        self._network, self._gamma, self._use_masks = acting_network(network), gamma, masks
        self._generator = Mersenne(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        self._length = schema.length
        self._arrays = schema.empty(schema.length * world.number)
        self._arrays["masks"][:] = True
        self._uniform = np.empty(world.number, np.float32)

    def play(self) -> Chunk:
        """A rollout, in buffers that the next one reuses."""
        steps = 0
        for t in range(self._length):
            if self.stop():
                raise Stopped
            with self.clock.phase("act"):
                actions = self._act(t)
            with self.clock.phase("simulate"):
                step = self.world.step(actions)
            with self.clock.phase("store"):
                self._store(t, step)
                steps += int(step.steps.sum())
                self.running.add(step)
        with self.clock.phase("act"):
            self._link_values(self._network.think(self.world.observations)[1])
        return Chunk(self._arrays, self.running.take(), steps)

    def own_state(self) -> State:
        """Randomness."""
        return {"generator": self._generator.state()}

    def restore_own(self, state: Mapping[str, npt.NDArray[Any]], *, same_episodes: bool) -> None:
        """Go on with the randomness of a state."""
        self._generator.restore(state["generator"])

    def _see(self, t: int) -> None:
        self._arrays["observations"][t] = self.world.observations
        if self._use_masks:
            self._arrays["masks"][t] = self.world.masks

    def _act(self, t: int) -> npt.NDArray[np.int64]:
        self._see(t)
        arrays = self._arrays
        logits, arrays["values"][t] = self._network.think(arrays["observations"][t])
        self._generator.uniform(self._uniform)
        draw_actions(logits, arrays["masks"][t], self._uniform, arrays["actions"][t], arrays["log_probs"][t])
        chosen: npt.NDArray[np.int64] = arrays["actions"][t]
        return chosen

    def _store(self, t: int, step: Step) -> None:
        arrays = self._arrays
        arrays["rewards"][t] = step.rewards
        np.power(self._gamma, step.steps, out=arrays["discounts"][t], casting="same_kind")
        arrays["discounts"][t][step.terminated] = 0.0
        np.logical_not(step.ended, out=arrays["continues"][t])
        arrays["next_values"][t] = 0.0
        cut = np.flatnonzero(step.truncated & ~step.terminated)
        if len(cut):
            arrays["next_values"][t, cut] = self._network.values(step.final_observations[cut])

    def _link_values(self, last: Floats) -> None:
        """Where an episode went on, the value of what came after is the value of the next observation."""
        arrays = self._arrays
        following = np.concatenate((arrays["values"][1:], last[None]))
        np.copyto(arrays["next_values"], following, where=arrays["continues"])
