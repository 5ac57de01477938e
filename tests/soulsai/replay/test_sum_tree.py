import numpy as np
import pytest

from soulsai.replay.sum_tree import fill_leaves, find_leaves, make_tree, rebuild, set_leaf


def found(tree, masses):
    leaves = np.zeros(len(masses), np.int64)
    find_leaves(tree, np.array(masses, np.float64), leaves)
    return leaves.tolist()


@pytest.mark.parametrize(("leaves", "room"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (262_144, 262_144)])
def test_room_is_the_next_power_of_two(leaves, room):
    assert len(make_tree(leaves)) == 2 * room


def test_nodes_are_the_sums_of_their_children():
    tree = make_tree(4)
    for leaf, value in enumerate([1.0, 2.0, 4.0, 8.0]):
        set_leaf(tree, leaf, value)
    assert tree.tolist() == [0, 15, 3, 12, 1, 2, 4, 8]
    fill_leaves(tree, np.array([0, 3]), 0.5)
    assert tree.tolist() == [0, 7, 2.5, 4.5, 0.5, 2, 4, 0.5]


def test_leaves_are_found_by_their_running_sum():
    tree = make_tree(4)
    tree[4:] = [1.0, 2.0, 0.0, 8.0]
    rebuild(tree)
    assert found(tree, [0.0, 0.999, 1.0, 2.999, 3.0, 10.999]) == [0, 0, 1, 1, 3, 3]


def test_masses_at_and_beyond_the_total_end_in_the_last_leaf_that_is_filled():
    tree = make_tree(8)
    fill_leaves(tree, np.arange(5), 0.1)
    assert found(tree, [tree[1], np.nextafter(tree[1], 1), 2 * tree[1]]) == [4, 4, 4]


def test_a_tree_of_one_leaf_always_finds_it():
    tree = make_tree(1)
    set_leaf(tree, 0, 3.0)
    assert found(tree, [0.0, 2.0, 3.0]) == [0, 0, 0]


def test_sums_do_not_drift_however_often_leaves_change():
    generator = np.random.default_rng(1)
    tree = make_tree(100)
    for _ in range(2000):
        set_leaf(tree, generator.integers(100), 10.0 ** generator.uniform(-9, 9))
    again = tree.copy()
    again[1:128] = 0
    rebuild(again)
    np.testing.assert_array_equal(tree, again)
