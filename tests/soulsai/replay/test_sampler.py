import numpy as np
import pytest

from soulsai.replay import Batch, UniformSampler
from soulsgym.errors import MisuseError


def test_only_filled_slots_come_up_and_all_of_them(filled, schema):
    batch = Batch(500, schema)
    batch.weights.fill(7.0)
    UniformSampler(filled(100, 6)).sample(batch, np.random.default_rng(0), 0.4)
    assert np.unique(batch.slots).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.bincount(batch.slots).min() > 50  # 83 expected, deviation 8
    assert (batch.weights == 1.0).all()


def test_the_same_generator_gives_the_same_rows(filled, schema):
    store, first, second = filled(10, 14), Batch(8, schema), Batch(8, schema)
    UniformSampler(store).sample(first, np.random.default_rng(3), 0.0)
    UniformSampler(store).sample(second, np.random.default_rng(3), 0.0)
    np.testing.assert_array_equal(first.slots, second.slots)


def test_an_empty_store_cannot_be_sampled(filled, schema):
    with pytest.raises(MisuseError, match="empty"):
        UniformSampler(filled(10, 0)).sample(Batch(2, schema), np.random.default_rng(0), 0.0)


def test_it_remembers_nothing(filled):
    sampler = UniformSampler(filled(10, 3))
    sampler.add(np.array([0]))
    sampler.update(np.array([0]), np.array([1.0]))
    sampler.restore(sampler.state())
    assert sampler.state() == {}
