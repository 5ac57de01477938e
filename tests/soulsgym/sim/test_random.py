"""Counter-based randomness."""

import numpy as np
import pytest

from soulsgym.sim.hidden import HIDDEN
from soulsgym.sim.random import draw, draw_between, mix, unit

# The published outputs of SplitMix64 for the seed 1234567.
SPLITMIX64 = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)


def fight(key=1234567):
    hidden = np.zeros(1, HIDDEN)
    hidden["key"] = key
    return hidden


def test_the_sequence_of_a_key_is_splitmix64():
    assert tuple(int(mix(np.uint64(1234567), np.uint64(n))) for n in range(5)) == SPLITMIX64


@pytest.mark.parametrize("kind", [np.int32, np.int64, int])
def test_signed_keys_and_counters_give_the_same_bits(kind):
    assert tuple(int(mix(kind(1234567), kind(n))) for n in range(5)) == SPLITMIX64
    assert mix(np.uint64(7), kind(-1)) == mix(np.uint64(7), np.uint64(2**64 - 1))
    assert unit(kind(-1)) == unit(np.uint64(2**64 - 1))


def test_drawing_counts_and_uses_the_top_53_bits():
    hidden = fight()
    drawn = [draw(hidden[0]) for _ in range(5)]
    assert drawn == [(value >> 11) / 2**53 for value in SPLITMIX64]
    assert hidden["draws"][0] == 5


def test_a_draw_depends_on_key_and_counter_alone():
    ahead = fight()
    ahead["draws"] = 3
    assert draw(ahead[0]) == (SPLITMIX64[3] >> 11) / 2**53


def test_unit_stays_below_one():
    assert unit(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53
    assert unit(np.uint64(0)) == 0.0


def test_draw_between_has_its_bounds():
    hidden = fight(9)
    values = np.array([draw_between(hidden[0], 4.0, 6.0) for _ in range(4000)])
    assert values.min() >= 4.0
    assert values.max() < 6.0
    assert abs(values.mean() - 5.0) < 0.05  # five times the standard error of 0.0091


def test_draws_are_uniform_and_neighbours_independent():
    hidden = fight(77)
    values = np.array([draw(hidden[0]) for _ in range(32000)])
    counts = np.bincount((values * 16).astype(int), minlength=16)
    # Chi-square with 15 degrees of freedom: 37.7 is exceeded once in a thousand.
    assert ((counts - 2000.0) ** 2 / 2000.0).sum() < 37.7
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.02


def test_keys_of_neighbouring_seeds_are_unrelated():
    first = np.array([unit(np.uint64(mix(np.uint64(seed), np.uint64(0)))) for seed in range(4000)])
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.06
    assert abs(first.mean() - 0.5) < 0.025
