"""Several worlds side by side: fights with several bosses for one network."""

import numpy as np
import pytest

from soulsai.acting.world import JointWorld, seed_of
from soulsai.config import load_preset, with_settings
from soulsai.learning.wiring import against, build_world, build_worlds, smallest
from soulsgym.state import Outcome

BOSSES = ("iudex", "vordt", "margit")
SMALL = ["fight.number=10", "fight.variants=['standard']", "ppo.minibatch=16", "run.threads=1", "fight.step_limit=40"]
CONFIG = with_settings(load_preset("all-bosses"), SMALL)


@pytest.fixture
def world():
    made = build_world(CONFIG)
    yield made
    made.close()


def played(world, steps=30):
    """What comes of a while of the same play, as bytes."""
    found = []
    for i in range(steps):
        step = world.step((world.masks * ((np.arange(20) + i) % 7 + 1)).argmax(axis=1))
        arrays = (step.rewards, step.steps, step.ended, step.won, world.observations, world.masks)
        found += [array.tobytes() for array in arrays]
    return found


def test_each_boss_has_his_share_of_the_fights(world):
    assert isinstance(world, JointWorld)
    assert [one.number for one in world.worlds] == [4, 3, 3]
    assert [one.batch.engine.spec.boss_name for one in world.worlds] == list(BOSSES)
    world.reset(1)
    assert world.observations[:, :3].argmax(axis=1).tolist() == [0] * 4 + [1] * 3 + [2] * 3
    assert world.observations.shape == (10, world.observation_size)


def test_it_is_the_worlds_one_by_one(world):
    world.reset(1)
    apart = [build_world(CONFIG).worlds[i] for i in range(3)]
    for i, one in enumerate(apart):
        one.reset(seed_of(1, i))
    assert (world.observations == np.concatenate([one.observations for one in apart])).all()
    ended = 0
    for _ in range(60):
        actions = world.masks.argmax(axis=1)
        step, rows = world.step(actions), 0
        for one in apart:
            own = slice(rows, rows + one.number)
            alone, rows = one.step(actions[own]), own.stop
            for name in ("rewards", "terms", "steps", "terminated", "truncated", "ended"):
                assert (getattr(step, name)[own] == getattr(alone, name)).all(), name
            over = alone.ended
            assert (step.final_observations[own][over] == alone.final_observations[over]).all()
            assert (step.endings[own][over] == alone.endings[over]).all()
            assert (step.won[own][over] == alone.won[over]).all()
            assert (step.endings["outcome"][own][over & alone.terminated] != Outcome.RUNNING).all()
        ended += int(step.ended.sum())
        assert (world.observations == np.concatenate([one.observations for one in apart])).all()
    assert ended >= 10


def test_it_goes_on_from_a_state(world):
    world.reset(2)
    played(world)
    state = {key: np.array(array) for key, array in world.state().items()}
    expected = played(world)
    other = build_world(CONFIG)
    other.reset(5)
    other.restore(state)
    assert played(other) == expected
    other.close()


def test_threads_and_small_worlds_have_every_boss():
    two = ["run.threads=2", "fight.number=600", "fight.variants=['standard', 'hard']"]
    config = with_settings(load_preset("all-bosses"), two)
    worlds = build_worlds(config)
    assert [[one.number for one in world.worlds] for world in worlds] == [[100] * 3] * 2
    assert build_world(smallest(config)).number == 6  # three bosses, two variants each


def test_a_config_against_one_boss_still_sees_all():
    config = against(CONFIG, "margit")
    assert (config.fight.main_boss, config.fight.bosses, config.fight.number) == ("margit", BOSSES, 10)
    assert CONFIG.fight.main_boss == "iudex"
    others = with_settings(CONFIG, ["fight.bosses=['vordt', 'margit']"])
    assert others.fight.main_boss == "vordt"
    assert with_settings(others, ["fight.boss=margit"]).fight.main_boss == "margit"
    assert with_settings(load_preset("smoke"), ["fight.boss=vordt"]).fight.all_bosses == ("vordt",)
