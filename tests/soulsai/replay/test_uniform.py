import numpy as np
import pytest

from soulsai.replay import Batch, UniformSampler
from soulsgym.errors import MisuseError


def test_only_filled_slots_come_up_and_all_of_them(filled):
    batch = Batch(500, 3, 5)
    batch.weights.fill(7.0)
    UniformSampler(filled(100, 6)).sample(batch, np.random.default_rng(0), 0.4)
    assert np.unique(batch.slots).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.bincount(batch.slots).min() > 50  # 83 expected, deviation 8
    assert (batch.weights == 1.0).all()


def test_the_same_generator_gives_the_same_rows(filled):
    store, first, second = filled(10, 14), Batch(8, 3, 5), Batch(8, 3, 5)
    UniformSampler(store).sample(first, np.random.default_rng(3), 0.0)
    UniformSampler(store).sample(second, np.random.default_rng(3), 0.0)
    np.testing.assert_array_equal(first.slots, second.slots)


def test_an_empty_store_cannot_be_sampled(filled):
    with pytest.raises(MisuseError, match="empty"):
        UniformSampler(filled(10, 0)).sample(Batch(2, 3, 5), np.random.default_rng(0), 0.0)


def test_it_remembers_nothing(filled):
    sampler = UniformSampler(filled(10, 3))
    sampler.added(np.array([0]))
    sampler.update(np.array([0]), np.array([1.0]))
    sampler.restore(sampler.state())
    assert sampler.state() == {}
