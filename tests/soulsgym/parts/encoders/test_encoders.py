"""What holds for every encoder: masks, forgetting, saving, and that only what can be seen is encoded."""

import numpy as np
import pytest

from soulsgym.errors import MisuseError
from soulsgym.parts.encoders import FunctionEncoder, History, PlayerEncoder, bounds_of, make_encoder
from soulsgym.parts.registry import register
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


LIMITS = {
    "phase": (-3, 9), "player_animation": (-5, 80), "boss_animation": (-5, 80), "lock_on": (0, 1), "step": (0, 9000),
    "player_hp": (-50, 500), "player_sp": (-200, 200), "boss_hp": (-50, 1100), "time_s": (0, 900),
    "player_animation_duration": (-1, 12), "boss_animation_duration": (-1, 12),
}  # fmt: skip
"""Beyond what engines show: phases and animations that there are not, health below nothing."""


def random_fights(spec, rng, n):
    """Records with everything anywhere: deep below the arena, far off, at one place, with no view at all."""
    fights = np.zeros(n, FIGHT)
    for key, (low, high) in LIMITS.items():
        shape = fights[key].shape
        drawn = rng.integers(low, high, shape) if fights[key].dtype.kind == "i" else rng.uniform(low, high, shape)
        fights[key] = drawn
    for key, most in (("player_max_hp", spec.player.hp), ("player_max_sp", spec.player.sp), ("boss_max_hp", 1037)):
        fights[key] = most
    scale = rng.choice([0.0, 1.0, 30.0, 1e4], (n, 1))
    for key in ("player_pose", "boss_pose", "camera_pose"):
        fights[key] = rng.normal(0.0, 1.0, fights[key].shape) * scale
        fights[key][:, :2] += spec.arena.centre_m
    fights["boss_pose"][::7, :2] = fights["player_pose"][::7, :2]
    fights["camera_pose"][::5] = 0.0
    return fights


@ALL
def test_numbers_lie_within_the_bounds_that_are_declared(spec, played, name, history):
    encoder = fresh(spec, name, history)
    for array in (encoder.low, encoder.high):
        assert array.dtype == np.float32
        assert array.shape == (encoder.size,)
        assert np.isfinite(array).all()
    rows = [played.encoded(encoder).reshape(-1, encoder.size)]
    rng, everyone = np.random.default_rng(9), np.ones(200, np.bool_)
    for _ in range(100):
        out = np.full((200, encoder.size), np.nan, np.float32)
        encoder.begin(played.fights[0], rng.random(200) < 0.1)
        encoder.encode(random_fights(spec, rng, 200), rng.integers(-3, 30, 200), everyone, out)
        rows.append(out)
    seen = np.concatenate(rows)
    outside = ((seen < encoder.low) | (seen > encoder.high) | np.isnan(seen)).any(axis=0)
    assert [encoder.names[i] for i in np.flatnonzero(outside)] == []


@ALL
def test_bounds_are_no_wider_than_they_must_be(spec, played, name, history):
    """Shares and one-hots are declared as 0 to 1, not as anything."""
    encoder = fresh(spec, name, history)
    bounds = dict(zip(encoder.names, zip(encoder.low, encoder.high, strict=True), strict=True))
    for share in ("player_hp", "boss_hp", "player_is_Free", "boss_is_IdleBattle"):
        assert bounds[share] == (0.0, 1.0)


def test_an_unknown_encoder_is_refused_with_a_suggestion(spec):
    with pytest.raises(MisuseError, match="encoder 'plaier' is not known, did you mean 'player'"):
        make_encoder("plaier", 1, spec)


@pytest.mark.parametrize(("n", "history"), [(0, 1), (1, 0), (1, -2)])
def test_no_fights_and_no_history_are_refused(spec, n, history):
    with pytest.raises(MisuseError, match="give 1 or more"):
        make_encoder("player", n, spec, history=history)


class Own:
    """An encoder of a user."""

    names, size = ("mine",), 1

    def __init__(self, n, spec, scale=1.0):
        self.scale = np.float32(scale)
        self.low, self.high = np.zeros(1, np.float32), np.full(1, self.scale)

    def begin(self, fights, mask):
        """Nothing to forget."""

    def encode(self, fights, actions, mask, out):
        out[mask] = self.scale

    def state(self):
        return {}

    def restore(self, state):
        """Nothing to go back to."""


def shares(fights):
    """A plain function of the fights."""
    return np.stack([fights["player_hp"][:, 0], fights["boss_hp"][:, 0]], axis=1) / 100.0


@pytest.mark.parametrize(
    ("given", "row"),
    [
        (Own, [1.0]),
        (Own(1, None, 2.0), [2.0]),
        (lambda n, spec: Own(n, spec, 3.0), [3.0]),
        ({"name": Own, "scale": 4.0}, [4.0]),
        ({"name": "own", "scale": 4.0, "history": 2}, [4.0, 0.0]),
        ("own", [1.0]),
        (shares, [0.5, 0.25]),
        ("shares", [0.5, 0.25]),
        ({"name": "shares", "history": 2}, [0.5, 0.25, 0.0, 0.0]),
        (FunctionEncoder(shares, 1), [0.5, 0.25]),
    ],
)
def test_an_encoder_is_given_by_name_table_object_maker_or_function(spec, given, row):
    register("encoder", "own")(Own)
    register("encoder", "shares")(shares)
    encoder = make_encoder(given, 1, spec)
    fights = np.zeros(1, FIGHT)
    fights["player_hp"], fights["boss_hp"] = 50.0, 25.0
    out, alone = np.zeros((1, encoder.size), np.float32), np.ones(1, np.bool_)
    encoder.begin(fights, alone)
    encoder.encode(fights, np.zeros(1, np.int64), alone, out)
    assert out[0].tolist() == row
    assert len(encoder.names) == len(encoder.low) == len(encoder.high) == len(row)
    encoder.restore(encoder.state())


@pytest.mark.parametrize("given", ["player", {"name": "player"}, {}, PlayerEncoder, {"name": "player", "history": 4}])
def test_ours_are_given_in_the_same_ways(spec, given):
    history = 4 if given == {"name": "player", "history": 4} else 1
    assert make_encoder(given, 2, spec).names == make_encoder("player", 2, spec, history=history).names


def without(**fields):
    """A class like Own that lacks its bounds, or has other fields."""
    return type("Odd", (Own,), {"__init__": lambda self, n, spec: None, **fields})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "player", "hist": 2}, "setting 'hist' of the encoder is not known, did you mean 'history'?"),
        ({"name": shares, "scale": 2}, "setting 'scale' of the encoder is not known"),
        (None, "encoder None cannot be used; give a name"),
        (7, "encoder 7 cannot be used"),
        (lambda n, spec: 7, "encoder "),
        (lambda fights: np.zeros(len(fights)), "encoder <lambda> returned an array of shape (2,); return a row"),
        (lambda fights: np.zeros((1, 3)), "encoder <lambda> returned an array of shape (1, 3)"),
        (lambda fights: np.zeros((2, 0)), "encoder <lambda> returned an array of shape (2, 0)"),
        (without(names=property()), "encoder Odd has no names; write what is missing"),
        (without(low=[0.0], high=[1.0, 2.0]), "encoder Odd has 1 numbers but 2 high"),
        (without(low=[0.0], high=[1.0], names=()), "encoder Odd has 1 numbers but 0 names"),
        (without(low=[2.0], high=[1.0]), "encoder Odd has a low bound above its high one"),
        (without(low=[np.nan], high=[1.0]), "encoder Odd has a low bound above its high one"),
    ],
)
def test_what_is_no_encoder_is_refused(spec, given, message):
    with pytest.raises(MisuseError) as caught:
        make_encoder(given, 2, spec)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_bounds_that_are_not_declared_are_infinite(spec):
    encoder = make_encoder(without(), 2, spec)
    assert [bound.tolist() for bound in bounds_of(encoder)] == [[-np.inf], [np.inf]]
    assert History(encoder, 2, 2).high.tolist() == [np.inf, np.inf]


def test_a_function_writes_the_rows_of_the_mask_only():
    encoder = FunctionEncoder(shares, 2, names=("player", "boss"), low=0.0, high=[1.0, 2.0])
    assert encoder.names == ("player", "boss")
    assert encoder.high.tolist() == [1.0, 2.0]
    assert FunctionEncoder(shares, 2).names == ("shares_0", "shares_1")
    out = np.full((2, 2), 7.0, np.float32)
    encoder.encode(np.zeros(2, FIGHT), np.zeros(2, np.int64), np.array([True, False]), out)
    assert out.tolist() == [[0.0, 0.0], [7.0, 7.0]]


@pytest.mark.parametrize(
    ("later", "message"),
    [(np.zeros((2, 3)), r"returned an array of shape \(2, 3\)"), (np.full((2, 2), np.nan), "are not finite")],
)
def test_a_function_that_changes_its_mind_is_refused(later, message):
    answers = iter([np.zeros((2, 2)), later])
    encoder = FunctionEncoder(lambda fights: next(answers), 2)
    with pytest.raises(MisuseError, match=message):
        encoder.encode(np.zeros(2, FIGHT), np.zeros(2, np.int64), np.ones(2, np.bool_), np.zeros((2, 2), np.float32))


def test_a_second_buffer_is_written_too(spec, played):
    encoder, actions, everyone = fresh(spec, "player", 1), np.zeros(200, np.int64), np.ones(200, np.bool_)
    first, second = (np.zeros((200, encoder.size), np.float32) for _ in range(2))
    for out in (first, second):
        encoder.begin(played.fights[5], everyone)
        encoder.encode(played.fights[5], actions, everyone, out)
    assert first.any()
    assert first.tobytes() == second.tobytes()
