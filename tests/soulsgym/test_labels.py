"""Labels of the observation."""

import numpy as np

from soulsgym.labels import label_begins, player_labels


def test_a_label_begins_when_it_changes_or_starts_again():
    label, shown_s = np.array([3, 3, 3, 5, 5, 5]), np.array([0.2, 0.3, 0.0, 0.1, 0.1, 0.05])
    assert label_begins(label, shown_s).tolist() == [True, False, True, True, False, True]
    assert label_begins(label[:0], shown_s[:0]).tolist() == []


def test_labels_of_the_player(spec):
    assert player_labels(spec)[17] == "Idle"
