"""The two loops of one process: act, learn, again. Each can be stopped and taken up again exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.episodes import Episodes
from soulsai.acting.explorer import scheduled_epsilons
from soulsai.acting.policy import NetworkPolicy
from soulsai.acting.rollouts import RolloutActor
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import World
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.errors import RunError
from soulsai.learning.students import Counters, Parts, PPOStudent, QStudent
from soulsai.replay import NStepAccumulator
from soulsai.telemetry.clock import LoopClock

STEPS_PER_ITERATION = 256
"""Environment steps after which the Q-loop looks up: for messages, checkpoints and evaluations."""


class Loop(Protocol):
    """Acts and learns, or learns from those who act."""

    counters: Counters
    episodes: Episodes
    clock: LoopClock

    @property
    def saving_is_due(self) -> bool:
        """Whether a checkpoint should be written now, whatever the time since the last."""

    def begin(self) -> None:
        """Start from nothing."""

    def iterate(self) -> dict[str, float]:
        """Act and learn for a little while."""

    def policy(self) -> NetworkPolicy:
        """The greedy policy as it is now; it changes with further learning."""

    def networks(self) -> Mapping[str, torch.nn.Module]:
        """The networks the policy is made of, by name."""

    def parts(self) -> Parts:
        """Everything that decides how the loop goes on, except what is in `counters`, `notes` and a replay store."""

    def notes(self) -> dict[str, Any]:
        """The same, of what fits in text."""

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint of `parts` and `notes`; counters and store are restored before."""

    def pause(self) -> None:
        """Until the next iteration the time goes to something else."""

    def saved(self) -> None:
        """A checkpoint with everything up to now was written."""

    def close(self) -> None:
        """Release what it holds."""


class Alone:
    """What the loops of one process need not do."""

    saving_is_due = False

    def notes(self) -> dict[str, Any]:
        """Everything is in the parts."""
        return {}

    def pause(self) -> None:
        """There is nobody to tell."""

    def saved(self) -> None:
        """Nobody waits for it."""


class PPOLoop(Alone, PPOStudent):
    """Collect a rollout, learn from it, again."""

    def __init__(self, config: Config, world: World, device: torch.device) -> None:
        super().__init__(config, world.observation_size, world.num_actions, device)
        self.world = world
        self.episodes = Episodes(world.number, world.term_names, fights=config.world == "fight")
        self.actor = RolloutActor(
            world,
            self.network,
            rollout=config.ppo.rollout,
            gamma=config.ppo.gamma,
            masks=config.actions.masks,
            generator=self._generator,
            episodes=self.episodes,
            clock=self.clock,
        )

    def begin(self) -> None:
        """Start from nothing."""
        self.world.reset(self.config.run.seed)

    def iterate(self) -> dict[str, float]:
        """One rollout and the update it allows."""
        return self.learn_from(*self.actor.collect())

    def parts(self) -> Parts:
        """What learns, world, episodes."""
        return super().parts() | {"world": dict(self.world.state()), "episodes": dict(self.episodes.state())}

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint."""
        super().restore(saved)
        self.episodes.restore(saved.arrays("episodes"))
        restore_world(self, saved.arrays("world"))

    def close(self) -> None:
        """Close the world."""
        self.world.close()


class QLoop(Alone, QStudent):
    """Play a decision, remember it, learn as often as is owed, again."""

    def __init__(self, config: Config, world: World, device: torch.device) -> None:
        size, actions = world.observation_size, world.num_actions
        super().__init__(config, size, actions, device)
        self.world = world
        self.episodes = Episodes(world.number, world.term_names, fights=config.world == "fight")
        self._pending = NStepAccumulator(world.number, config.q.n_step, config.q.gamma, size, actions)
        self.actor = TransitionActor(
            world,
            self.learner.values,
            self._pending,
            masks=config.actions.masks,
            generator=self._numpy,
            episodes=self.episodes,
            device=device,
        )

    def begin(self) -> None:
        """Start from nothing."""
        self.world.reset(self.config.run.seed)

    def iterate(self) -> dict[str, float]:
        """Play and learn for some hundred steps."""
        until = self.counters.steps + STEPS_PER_ITERATION
        metrics: dict[str, torch.Tensor] = {}
        while self.counters.steps < until:
            self._play()
            while self.owes():
                metrics = self.learn_burst()
        values = {name: float(value) for name, value in metrics.items()}
        return values | {"epsilon": float(self._epsilons().mean())} | self.replay_metrics()

    def parts(self) -> Parts:
        """What learns, pending transitions, world, episodes."""
        return super().parts() | {
            "pending": dict(self._pending.state()),
            "world": dict(self.world.state()),
            "episodes": dict(self.episodes.state()),
        }

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint; the store is filled before."""
        super().restore(saved)
        if saved.arrays("world"):  # otherwise new episodes begin, and nothing that waits belongs to them
            self._pending.restore(saved.arrays("pending"))
        self.episodes.restore(saved.arrays("episodes"))
        restore_world(self, saved.arrays("world"))

    def close(self) -> None:
        """Close the world."""
        self.world.close()

    def _epsilons(self) -> npt.NDArray[np.float64]:
        return scheduled_epsilons(self.config.q, self.counters.steps, self.world.number)

    def _play(self) -> None:
        with self.clock.phase("act"):
            self.learner.draw_noise()
            actions = self.actor.choose(self._epsilons())
        with self.clock.phase("simulate"):
            rows, steps = self.actor.play(actions)
        with self.clock.phase("store"):
            self.sampler.added(self.store.add(*rows))
            if self.config.network.normalize:
                self.learner.normalize_with(torch.from_numpy(self.world.observations).to(self._device))
        self.count(steps)


def restore_world(loop: PPOLoop | QLoop, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """Put the world back where it was, or begin new episodes where that cannot be done."""
    if state:
        try:
            loop.world.restore(state)
        except KeyError as error:
            raise RunError(
                "the checkpoint holds fights of another version of soulsgym; go on with that one, or start a new run"
            ) from error
    else:
        loop.world.reset(loop.config.run.seed + loop.counters.steps)
        loop.episodes.forget_running()
