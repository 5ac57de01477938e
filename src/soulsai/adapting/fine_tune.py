"""Learning in the target itself: a Q-learner whose replay is half target, half calibrated simulator.

It follows RLPD (Ball et al. 2023) and WSRL (Zhou et al. 2024): first the values are learned in the simulator, from the
agent's fights there and from its own; then it plays on in the target with what it has learned, and in many simulated
fights beside it, and learns from batches that are half of either. Layer norm and two networks of which the smaller
value counts keep values of rare actions from growing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.acting.network import mix_random
from soulsai.acting.policy import Policy
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import FightWorld
from soulsai.algorithms.algorithm import Learner
from soulsai.algorithms.replay_learner import ReplayLearner
from soulsai.config.schema import Config
from soulsai.experience import Chunk
from soulsai.learning.loop import Loop, build_loop
from soulsai.learning.session import run_session
from soulsai.learning.sources import ActorSource
from soulsai.learning.wiring import build_world, game_parts
from soulsai.networks.parallel import Threads
from soulsai.replay import Batch, ReplayStore, UniformSampler
from soulsai.replay.sampler import saved_array
from soulsai.runtime.fleet import Fleet
from soulsgym.batch import FightBatch
from soulsgym.spec import load_fight
from soulsgym.target import TargetOptions, open_target

LEARNER = (
    'algorithm="q"', "network.layer_norm=true", "q.clipped=true", "q.dueling=true", "starts.random_pose=false",
    "fight.randomize=0",
)  # fmt: skip
"""The Q-learner, whatever the agent was trained by."""
IN_SIMULATOR = (
    "run.steps=300_000", "run.evaluate_every_steps=100_000", "run.final_fights=200", "fight.number=32",
    "q.epsilon=0.3", "q.epsilon_steps=100_000", "q.update_every=8", "q.tau=0.002",
)  # fmt: skip
IN_TARGET = (
    "fight.number=32", 'fight.variants=["standard"]', "starts.mid_fight=0", "q.epsilon=0.02", "q.update_every=0.2",
    "q.warmup_steps=600", "q.learning_rate=1e-4", "q.tau=0.002", "run.evaluate_every_steps=0", "run.final_fights=0",
    "run.checkpoint_every_s=10",
)  # fmt: skip
"""A decision takes four steps or five, so it is followed by about 20 gradient steps."""
GUIDED = 0.05
"""Of the actions in the agent's fights, those that are random: values of others than his are needed too."""


def train_with(fleet: Fleet, make_loop: Callable[[], Loop]) -> bool:
    """Train a run with another loop than its config's own; whether that came to its end."""
    outcome = run_session(
        fleet.run, fleet.config, resume=fleet.resume, view=fleet, stop=fleet.stop, check=False, make_loop=make_loop
    )
    return outcome.finished


def simulator_loop(config: Config, agent: Policy) -> Loop:
    """A Q-learner that begins in the calibrated simulator: half of the fights are its own, half the agent's."""
    loop = build_loop(config, build_world(config), build_world(config))
    source = loop.source
    assert isinstance(source, ActorSource)

    def choose(
        observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_], generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        return mix_random(agent.choose(observations, masks), masks, np.full(len(masks), GUIDED), generator)

    guided = source.actors[1]
    assert isinstance(guided, TransitionActor)
    guided.choose = choose
    return loop


def target_loop(config: Config, boss: str, target: TargetOptions) -> Loop:
    """The same learner in the target, with simulated fights beside it; `boss` is what the target is known as."""
    fight, parts, beside = config.fight, game_parts(config, target), build_world(config)
    engine = open_target(load_fight(boss), target, phase=fight.phase, changes=fight.full)
    world = FightWorld(FightBatch(engine, parts, decisions=fight.decisions), resumable=False)
    loop = build_loop(config, world, beside)
    learner, source = loop.learner, loop.source
    assert isinstance(learner, ReplayLearner)
    assert learner.store is not None
    assert isinstance(source, ActorSource)
    assert learner.store is not None
    learner.sampler = HalfSampler(learner.store)
    return Loop(loop.algorithm, learner, TargetSource(source.actors, Threads(1), config.run.seed), loop.episodes)


class TargetSource(ActorSource):
    """Actors of which the first plays in the target; only its steps count."""

    def next(self, learner: Learner) -> Sequence[Chunk]:
        """A decision in the target and one in each fight beside it."""
        first, *others = super().next(learner)
        return [first, *(replace(chunk, steps=0) for chunk in others)]


class HalfSampler(UniformSampler):
    """Half of a batch from the target, half from the simulator, each evenly.

    The target plays one fight and the simulator many: rows that come alone are of the target.
    """

    def __init__(self, store: ReplayStore) -> None:
        super().__init__(store)
        self._of_target = np.zeros(store.capacity, np.uint8)

    def add(self, slots: npt.NDArray[np.int64]) -> None:
        """Remember where the rows came from."""
        self._of_target[slots] = len(slots) == 1

    def sample(self, batch: Batch, generator: np.random.Generator, beta: float = 0.0) -> None:
        """Fill the slots and weights of the batch."""
        super().sample(batch, generator, beta)
        known, half = self._of_target[: len(self._store)], len(batch) // 2
        for which, part in ((np.flatnonzero(known), slice(half)), (np.flatnonzero(known == 0), slice(half, None))):
            if len(which):
                batch.slots[part] = generator.choice(which, len(batch.slots[part]))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Where the rows came from."""
        return {"of_target": self._of_target.copy()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a saved state."""
        self._of_target[:] = saved_array(state, "of_target", self._of_target)
