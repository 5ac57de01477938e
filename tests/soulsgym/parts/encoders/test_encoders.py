"""What holds for every encoder: masks, forgetting, saving, and that only what can be seen is encoded."""

import numpy as np
import pytest

from soulsgym.errors import MisuseError
from soulsgym.parts.encoders import make_encoder
from soulsgym.state import FIGHT, OBSERVATION_KEYS

MIDDLE = 150
SEEN = {*OBSERVATION_KEYS, "time_s", "step"}

ALL = pytest.mark.parametrize(
    ("name", "history"), [("player", 1), ("soulsai74", 1), ("player", 3)], ids=["player", "soulsai74", "history"]
)


def fresh(spec, name, history, n=200):
    return make_encoder(name, n, spec, history=history)


def same_state(one, other):
    return one.keys() == other.keys() and all(one[key].tobytes() == other[key].tobytes() for key in one)


@ALL
def test_every_number_has_its_own_name(spec, name, history):
    encoder = fresh(spec, name, history)
    assert len(encoder.names) == encoder.size == len(set(encoder.names))


@ALL
def test_all_numbers_are_finite(spec, played, name, history):
    assert np.isfinite(played.encoded(fresh(spec, name, history))).all()


@ALL
def test_one_fight_alone_is_encoded_as_in_the_batch(spec, played, name, history):
    batch = played.encoded(fresh(spec, name, history))
    for which in (0, 77, 199):
        alone = played.encoded(fresh(spec, name, history, 1), of=slice(which, which + 1))
        assert alone[:, 0].tobytes() == batch[:, which].tobytes()


@ALL
def test_a_restored_encoder_goes_on_as_if_nothing_had_been(spec, played, name, history):
    encoder = fresh(spec, name, history)
    played.encoded(encoder, last=MIDDLE)
    state = encoder.state()
    went_on = played.encoded(encoder, first=MIDDLE)
    restored = fresh(spec, name, history)
    restored.restore(state)
    assert played.encoded(restored, first=MIDDLE).tobytes() == went_on.tobytes()
    assert played.encoded(fresh(spec, name, history), first=MIDDLE).tobytes() != went_on.tobytes()


@ALL
def test_the_state_is_a_copy_of_plain_numbers(spec, played, name, history):
    encoder = fresh(spec, name, history)
    played.encoded(encoder, last=MIDDLE)
    state = encoder.state()
    before = {key: array.copy() for key, array in state.items()}
    played.encoded(encoder, first=MIDDLE)
    assert same_state(state, before)
    assert not same_state(state, encoder.state())
    assert all(array.dtype.kind in "if" for array in state.values())


@ALL
def test_what_begins_anew_is_forgotten(spec, played, name, history):
    everyone = np.ones(200, np.bool_)
    used, new = fresh(spec, name, history), fresh(spec, name, history)
    played.encoded(used, last=MIDDLE)
    used.begin(played.fights[MIDDLE], everyone)
    new.begin(played.fights[MIDDLE], everyone)
    assert played.encoded(used, first=MIDDLE).tobytes() == played.encoded(new, first=MIDDLE).tobytes()


@ALL
def test_outside_the_mask_nothing_is_written_remembered_or_forgotten(spec, played, name, history):
    mask = np.arange(200) % 3 == 0
    encoder = fresh(spec, name, history)
    played.encoded(encoder, last=MIDDLE)
    before, out = encoder.state(), np.full((200, encoder.size), 7.0, np.float32)
    encoder.encode(played.fights[MIDDLE], played.actions[MIDDLE], mask, out)
    encoder.begin(played.fights[MIDDLE], mask)
    assert (out[~mask] == 7.0).all()
    assert not (out[mask] == 7.0).any()
    after = encoder.state()
    assert all(before[key][~mask].tobytes() == after[key][~mask].tobytes() for key in before)
    assert not all(before[key][mask].tobytes() == after[key][mask].tobytes() for key in before)


@ALL
def test_what_a_player_cannot_see_is_not_read(spec, played, name, history):
    seen = played.encoded(fresh(spec, name, history))
    rng = np.random.default_rng(3)
    scrambled = type(played)(played.fights.copy(), played.actions, played.begun)
    for field in set(FIGHT.names) - SEEN:
        values = scrambled.fights[field]
        values[...] = rng.integers(0, 9, values.shape)
    assert scrambled.encoded(fresh(spec, name, history)).tobytes() == seen.tobytes()


@ALL
def test_the_records_are_not_changed(spec, played, name, history):
    before = played.fights.tobytes()
    played.encoded(fresh(spec, name, history), last=3)
    assert played.fights.tobytes() == before


@ALL
def test_a_state_of_other_fights_is_refused(spec, name, history):
    state = fresh(spec, name, history, 2).state()
    with pytest.raises(MisuseError, match=r"not \[3"):
        fresh(spec, name, history, 3).restore(state)
    state.popitem()
    with pytest.raises(MisuseError, match="state lacks"):
        fresh(spec, name, history, 2).restore(state)


@ALL
@pytest.mark.parametrize("wrong", ["shape", "dtype", "layout", "actions"])
def test_buffers_that_do_not_fit_are_refused(spec, played, name, history, wrong):
    encoder = fresh(spec, name, history, 2)
    out, actions = np.zeros((2, encoder.size), np.float32), np.zeros(2, np.int64)
    if wrong == "shape":
        out = out[:, 1:].copy()
    elif wrong == "dtype":
        out = out.astype(np.float64)
    elif wrong == "layout":
        out = np.asfortranarray(out)
    else:
        actions = actions.astype(np.int32)
    with pytest.raises(MisuseError, match=r"give .*\[2"):
        encoder.encode(played.fights[0, :2], actions, np.ones(2, np.bool_), out)


def test_an_unknown_encoder_is_refused_with_a_suggestion(spec):
    with pytest.raises(MisuseError, match="encoder 'plaier' is not known, did you mean 'player'"):
        make_encoder("plaier", 1, spec)


@pytest.mark.parametrize(("n", "history"), [(0, 1), (1, 0), (1, -2)])
def test_no_fights_and_no_history_are_refused(spec, n, history):
    with pytest.raises(MisuseError, match="give 1 or more"):
        make_encoder("player", n, spec, history=history)
