import numpy as np
import pytest

from soulsai.errors import RunError
from soulsai.replay import Batch, PrioritizedSampler
from soulsgym.errors import MisuseError


class Uniforms:
    """A generator whose numbers are known."""

    def __init__(self, *numbers):
        self.numbers, self.calls = numbers, 0

    def random(self, count):
        self.calls += 1
        assert count == len(self.numbers)
        return np.array(self.numbers)


def sampler_with(errors, alpha=1.0, capacity=8):
    sampler = PrioritizedSampler(capacity, alpha, eps=1e-9)
    sampler.add(np.arange(len(errors)))
    sampler.update(np.arange(len(errors)), np.array(errors))
    return sampler


def test_each_part_of_the_total_gives_one_row(schema):
    # Priorities 1, 2, 1, 4 end at 1, 3, 4, 8; the parts are [0, 2), [2, 4), [4, 6), [6, 8).
    batch, uniforms = Batch(4, schema), Uniforms(0.75, 0.25, 0.01, 0.999)
    sampler_with([1.0, 2.0, 1.0, 4.0]).sample(batch, uniforms, 0.0)
    assert batch.slots.tolist() == [1, 1, 3, 3]
    assert batch.weights.tolist() == [1, 1, 1, 1]
    assert uniforms.calls == 1


def test_weights_correct_for_how_likely_a_row_was(schema):
    # Probabilities 1/8, 2/8, 4/8 of 4 rows: (4p)^-beta is 2, 1, 1/2 with beta 1, by the largest 1, 1/2, 1/4.
    batch = Batch(4, schema)
    sampler = sampler_with([1.0, 2.0, 1.0, 4.0])
    sampler.sample(batch, Uniforms(0.1, 0.1, 0.1, 0.1), 1.0)
    assert batch.slots.tolist() == [0, 1, 3, 3]
    np.testing.assert_allclose(batch.weights, [1, 1 / 2, 1 / 4, 1 / 4], rtol=1e-6)
    sampler.sample(batch, Uniforms(0.1, 0.1, 0.1, 0.1), 0.5)
    np.testing.assert_allclose(batch.weights, [1, 0.5**0.5, 0.5, 0.5], rtol=1e-6)


def test_weights_are_relative_to_the_batch_not_to_all_rows(schema):
    batch = Batch(2, schema)
    sampler_with([1.0, 1.0, 1.0, 13.0]).sample(batch, Uniforms(0.9, 0.9), 1.0)
    assert batch.slots.tolist() == [3, 3]
    assert batch.weights.tolist() == [1, 1]


def test_alpha_flattens_priorities():
    sampler = sampler_with([4.0, 9.0, 0.0], alpha=0.5)
    np.testing.assert_allclose(sampler.state()["priorities"][:3], [2, 3, 1e-9**0.5], rtol=1e-6)


def test_new_rows_count_as_the_largest_priority_there_ever_was():
    sampler = PrioritizedSampler(8, 0.5)
    sampler.add(np.array([0, 1]))
    assert sampler.state()["priorities"][:3].tolist() == [1, 1, 0]
    sampler.update(np.array([0]), np.array([16.0]))
    sampler.update(np.array([0]), np.array([0.25]))
    sampler.add(np.array([2]))
    np.testing.assert_allclose(sampler.state()["priorities"][:4], [0.5, 1, 4, 0], rtol=1e-5)


def test_of_a_slot_given_twice_the_last_error_counts():
    sampler = sampler_with([1.0, 1.0])
    sampler.update(np.array([1, 0, 1]), np.array([5.0, 2.0, 3.0], np.float32))
    np.testing.assert_allclose(sampler.state()["priorities"][:2], [2, 3], rtol=1e-6)
    assert sampler.total == pytest.approx(5)


@pytest.mark.parametrize("filled", [1, 3, 5, 6, 7, 100])
def test_empty_slots_never_come_up_even_at_the_very_end(filled, schema):
    sampler = PrioritizedSampler(1000, 0.6)
    sampler.add(np.arange(filled))
    generator, batch = np.random.default_rng(filled), Batch(64, schema)
    almost_one = Uniforms(*[np.nextafter(1.0, 0.0)] * 64)
    for source in [almost_one, *[generator] * 50]:
        sampler.update(batch.slots, 10.0 ** generator.uniform(-8, 8, 64))
        sampler.sample(batch, source, 0.4)
        assert 0 <= batch.slots.min() <= batch.slots.max() < filled
        assert np.isfinite(batch.weights).all()
        assert 0 < batch.weights.max() <= 1


def test_rows_come_up_in_proportion(schema):
    sampler, batch, counts = sampler_with([1.0, 2.0, 3.0, 4.0]), Batch(16, schema), np.zeros(4)
    generator = np.random.default_rng(0)
    for _ in range(500):
        sampler.sample(batch, generator, 0.0)
        counts += np.bincount(batch.slots, minlength=4)
    np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.2, 0.3, 0.4], atol=0.01)


@pytest.mark.parametrize("error", [np.nan, np.inf, -0.5])
def test_an_error_that_is_no_number_changes_nothing(error):
    sampler = sampler_with([1.0, 2.0])
    before = sampler.state()
    with pytest.raises(MisuseError, match="slot 1 with an error of"):
        sampler.update(np.array([0, 1]), np.array([7.0, error]))
    np.testing.assert_array_equal(sampler.state()["priorities"], before["priorities"])


@pytest.mark.parametrize("slot", [-1, 2, 8])
def test_only_filled_slots_have_a_priority(slot):
    with pytest.raises(MisuseError, match=f"slot {slot} with an error of 1.0.*slots run from 0 to 1"):
        sampler_with([1.0, 2.0]).update(np.array([slot]), np.array([1.0]))


def test_slots_beyond_the_capacity_are_refused():
    with pytest.raises(MisuseError, match="slots 7 to 8"):
        PrioritizedSampler(8, 0.6).add(np.array([7, 8]))


def test_an_empty_sampler_and_impossible_settings_are_refused(schema):
    with pytest.raises(MisuseError, match="empty"):
        PrioritizedSampler(8, 0.6).sample(Batch(2, schema), np.random.default_rng(0), 0.4)
    with pytest.raises(MisuseError, match="eps=0"):
        PrioritizedSampler(8, 0.6, eps=0)


def test_a_restored_sampler_goes_on_bit_for_bit(schema):
    generator = np.random.default_rng(5)
    sampler = sampler_with(generator.random(700), alpha=0.6, capacity=1000)
    restored = PrioritizedSampler(1000, 0.6, eps=1e-9)
    restored.restore(sampler.state())
    batches = []
    for each in (sampler, restored):
        generator, batch = np.random.default_rng(9), Batch(32, schema)
        for round_ in range(20):
            each.sample(batch, generator, 0.4)
            each.update(batch.slots, generator.random(32) * round_)
            each.add(np.arange(700 + round_, 702 + round_))
        batches.append((batch.slots, batch.weights, each.state()["priorities"], each.total))
    for one, other in zip(*batches, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_state_is_a_copy():
    sampler = sampler_with([1.0, 2.0])
    state = sampler.state()
    sampler.update(np.array([0]), np.array([50.0]))
    assert state["priorities"][0] == pytest.approx(1)
    assert state["largest"][0] == pytest.approx(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"priorities": np.zeros(9)}, r"'priorities' are float64 \(9,\), but this run needs float64 \(8,\)"),
        ({"priorities": np.array([1.0, 0, 1, 0, 0, 0, 0, 0])}, "damaged"),
        ({"priorities": np.full(8, np.nan)}, "damaged"),
        ({"largest": np.array([np.inf])}, "damaged"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, message):
    sampler = sampler_with([1.0, 2.0])
    with pytest.raises(RunError, match=message):
        sampler.restore(sampler.state() | change)
    assert sampler.total == pytest.approx(3)


def test_a_state_without_priorities_is_refused():
    with pytest.raises(RunError, match="no 'priorities'"):
        sampler_with([1.0]).restore({})
