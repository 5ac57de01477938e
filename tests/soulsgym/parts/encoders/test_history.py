"""The history: the newest encoding first, then the older ones, zeros before the beginning."""

import numpy as np

from soulsgym.parts.encoders import History, make_encoder

ALONE = np.ones(1, np.bool_)


class Counter:
    """An encoder that counts its calls for each fight."""

    size = 2
    names = ("count", "pressed")
    low, high = np.array([1, -1], np.float32), np.array([100, 19], np.float32)

    def __init__(self, n):
        self.counts = np.zeros(n, np.float32)

    def begin(self, fights, mask):
        self.counts[mask] = 0.0

    def encode(self, fights, actions, mask, out):
        self.counts[mask] += 1.0
        out[mask] = np.stack([self.counts, actions], axis=1)[mask]

    def state(self):
        return {"counts": self.counts.copy()}

    def restore(self, state):
        self.counts[:] = state["counts"]


def pushed(history, action, mask=ALONE):
    out = np.full((len(mask), history.size), -1.0, np.float32)
    history.encode(None, np.full(len(mask), action, np.int64), mask, out)
    return out.tolist()


def test_the_newest_comes_first():
    history = History(Counter(1), 1, 3)
    assert history.size == 6
    assert history.names == ("count", "pressed", "count_1_ago", "pressed_1_ago", "count_2_ago", "pressed_2_ago")
    assert pushed(history, 11) == [[1, 11, 0, 0, 0, 0]]
    assert pushed(history, 12) == [[2, 12, 1, 11, 0, 0]]
    assert pushed(history, 13) == [[3, 13, 2, 12, 1, 11]]
    assert pushed(history, 14) == [[4, 14, 3, 13, 2, 12]]


def test_bounds_are_those_of_the_encoder_and_hold_the_zeros_before_the_beginning():
    history = History(Counter(1), 1, 2)
    assert history.low.tolist() == [0, -1, 0, -1]
    assert history.high.tolist() == [100, 19, 100, 19]
    assert history.low.dtype == history.high.dtype == np.float32


def test_a_fight_that_begins_anew_has_no_past():
    history = History(Counter(2), 2, 2)
    both, second = np.ones(2, np.bool_), np.array([False, True])
    pushed(history, 5, both)
    history.begin(None, second)
    assert pushed(history, 6, both) == [[2, 6, 1, 5], [1, 6, 0, 0]]


def test_the_state_holds_the_inner_one_too():
    history = History(Counter(1), 1, 2)
    pushed(history, 5)
    state = history.state()
    assert set(state) == {"stacked", "inner.counts"}
    other = History(Counter(1), 1, 2)
    other.restore(state)
    assert pushed(other, 6) == pushed(history, 6) == [[2, 6, 1, 5]]


def test_a_history_of_one_is_the_encoder_itself(spec):
    assert not isinstance(make_encoder("player", 1, spec, history=1), History)
    assert make_encoder("soulsai74", 1, spec, history=4).size == 4 * 74


def test_histories_can_be_nested():
    nested = History(History(Counter(1), 1, 2), 1, 2)
    pushed(nested, 7)
    assert pushed(nested, 8) == [[2, 8, 1, 7, 1, 7, 0, 0]]
    assert nested.state().keys() == {"stacked", "inner.stacked", "inner.inner.counts"}


def test_stacked_encodings_are_those_of_the_encoder(spec, played):
    plain, stacked = (make_encoder("player", 200, spec, history=history) for history in (1, 2))
    alone, both = played.encoded(plain), played.encoded(stacked)
    assert (both[..., : plain.size] == alone).all()
    older = np.where(played.begun[1:, :, None], 0.0, alone[:-1])
    assert (both[1:, :, plain.size :] == older).all()
