"""Recordings of the simulator that look like those of the game: nothing tells how they were made."""

from functools import partial

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.recordings import Recording
from soulsgym.sim.engine import SimEngine


def play(spec, *, seed, fights=3, steps=300, dead=()):
    """Fights of the simulator with random actions; `dead` buttons do nothing."""
    rng = np.random.default_rng(seed)
    engine = SimEngine(spec, 1)
    records, actions, episodes = [], [], []
    for episode in range(fights):
        engine.reset(np.ones(1, np.bool_), standard_starts(1), np.array([100 * seed + episode], np.uint64))
        chosen = [NOTHING, *rng.integers(0, 20, steps).tolist()]
        for step, action in enumerate(chosen):
            if step > 0:
                engine.step(ACTION_CONTROLS[[NOTHING if ACTION_CONTROLS["button"][action] in dead else action]])
            records.append(engine.fights.copy())
            actions.append(action)
            episodes.append(episode)
            if engine.fights["outcome"][0]:
                break
    return Recording(np.concatenate(records), np.array(actions), np.array(episodes))


@pytest.fixture(scope="session")
def played(spec):
    """`play` with the moveset of the tests."""
    return partial(play, spec)


@pytest.fixture(scope="session")
def own(played):
    """Three fights."""
    return played(seed=1)
