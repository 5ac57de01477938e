"""Chunks of experience: exactly what was packed comes out, and nothing that could not be learned from."""

from dataclasses import fields, replace

import numpy as np
import pytest

from soulsai.acting.ended import Ended
from soulsai.transport.experience import Layout, RolloutChunk, TransitionChunk, pack_rollout, pack_transitions, unpack
from soulsai.transport.frames import BadFrame, Kind, decode, encode
from soulsgym.errors import MisuseError

D, A, TERMS, T = 6, 5, 3, 4
Q_LAYOUT = Layout(D, A, TERMS, 0)
PPO_LAYOUT = Layout(D, A, TERMS, T)
ABOUT = {"run": "run-1", "worker": "alice.1.5f3a9c", "sequence": 7, "policy": 3}


def ended(number=2):
    flags = np.arange(number) % 2 == 0
    return Ended(np.linspace(-1.0, 1.0, number * TERMS).reshape(number, TERMS), np.arange(1, number + 1),
                 flags, ~flags, flags)  # fmt: skip


def transitions(rows=11, actions=A, episodes=2):
    rng = np.random.default_rng(rows)
    masks = rng.random((rows, actions)) < 0.5
    masks[:, 0] = True
    return TransitionChunk(
        pool=rng.normal(size=(rows + 3, D)).astype(np.float32),
        first=np.arange(rows, dtype=np.int32),
        following=np.arange(3, rows + 3, dtype=np.int32),
        actions=rng.integers(0, actions, rows),
        rewards=rng.normal(size=rows).astype(np.float32),
        discounts=rng.random(rows).astype(np.float32),
        next_masks=masks,
        ended=ended(episodes),
        steps=123,
    )


def rollout(n=3, episodes=2):
    rng = np.random.default_rng(n)
    masks = rng.random((T, n, A)) < 0.5
    masks[..., 0] = True
    numbers = {name: rng.random((T, n)).astype(np.float32) for name in ("values", "next_values", "rewards")}
    return RolloutChunk(
        observations=rng.normal(size=(T, n, D)).astype(np.float32),
        masks=masks,
        actions=masks.argmax(axis=2),
        log_probs=-rng.random((T, n)).astype(np.float32),
        discounts=rng.random((T, n)).astype(np.float32),
        continues=rng.integers(0, 2, (T, n)).astype(np.float32),
        **numbers,
        ended=ended(episodes),
        steps=0,
    )


def pack(chunk, **about):
    packing = pack_transitions if isinstance(chunk, TransitionChunk) else pack_rollout
    return packing(chunk, **(ABOUT | about))


def read(data, layout=None, run="run-1", kind=None):
    kind = kind or Kind(data[6])
    return unpack(data, layout or (Q_LAYOUT if kind is Kind.TRANSITIONS else PPO_LAYOUT), run=run, kind=kind)


def refusal(data, **how):
    with pytest.raises(BadFrame) as caught:
        read(data, **how)
    return caught.value.reason, str(caught.value)


def remade(data, *, arrays=None, without=(), **header):
    """The same frame with other arrays or another header, properly sealed."""
    frame = decode(data, kinds=tuple(Kind))
    there = {name: array for name, array in frame.arrays.items() if name not in without}
    about = {name: getattr(frame.header, name) for name in ("run", "worker", "sequence", "policy", "rows", "steps")}
    return encode(frame.kind, **(about | header), arrays=there | (arrays or {}))


def poked(array, value, at=0):
    """A copy with one other number."""
    copied = array.copy()
    copied.reshape(-1)[at] = value
    return copied


def assert_same(found, chunk):
    for field in fields(chunk):
        one, other = getattr(found, field.name), getattr(chunk, field.name)
        if field.name == "ended":
            assert_same(one, other)
        else:
            np.testing.assert_array_equal(one, other)
            assert field.name == "steps" or one.dtype == other.dtype


@pytest.mark.parametrize("chunk", [transitions(), transitions(1), transitions(64, episodes=0), transitions(8192),
                                   rollout(), rollout(1, episodes=0), rollout(500)])  # fmt: skip
def test_what_is_packed_comes_out(chunk):
    header, found = read(pack(chunk))
    assert type(found) is type(chunk)
    assert_same(found, chunk)
    assert found.rows == header.rows == chunk.actions.size
    assert header.steps == chunk.steps
    assert (header.run, header.worker, header.sequence, header.policy) == tuple(ABOUT.values())


@pytest.mark.parametrize(("number", "dtype"), [(256, "u1"), (257, "u2"), (2, "u1"), (1000, "u2")])
def test_many_actions(number, dtype):
    chunk = transitions(40, number)
    chunk.actions[0] = number - 1
    data = pack(chunk)
    assert decode(data, kinds=(Kind.TRANSITIONS,)).arrays["actions"].dtype == np.dtype(dtype)
    layout = replace(Q_LAYOUT, num_actions=number)
    assert_same(read(data, layout)[1], chunk)
    assert refusal(data, layout=replace(layout, num_actions=number - 1))[0] == "invalid"


def test_other_dtypes_are_converted():
    chunk = transitions()
    wide = replace(chunk, pool=chunk.pool.astype(np.float64), first=chunk.first.astype(np.int64),
                   rewards=np.asfortranarray(chunk.rewards.astype(np.float64)))  # fmt: skip
    assert_same(read(pack(wide))[1], chunk)


def test_observations_are_not_copied():
    rng = np.random.default_rng(0)
    chunk = replace(transitions(200), pool=rng.normal(size=(203, D)).astype(np.float32))
    data = pack(chunk)
    assert data[7] == 0  # noise is not packed
    assert np.shares_memory(read(data)[1].pool, np.frombuffer(data, np.uint8))


def test_large_numbers_are_finite_numbers():
    chunk = transitions()
    chunk.pool[:] = 3e38  # add up to infinity
    chunk.rewards[:] = -3e38
    assert_same(read(pack(chunk))[1], chunk)


def test_rounding_above_a_log_probability_of_zero():
    chunk = rollout()
    assert_same(read(pack(replace(chunk, log_probs=poked(chunk.log_probs, 1e-6))))[1].ended, chunk.ended)
    assert refusal(pack(replace(chunk, log_probs=poked(chunk.log_probs, 0.01))))[0] == "invalid"


def test_another_run():
    assert refusal(pack(transitions()), run="run-2")[0] == "foreign"
    assert refusal(pack(rollout(), run="run"))[0] == "foreign"


def test_another_kind():
    assert refusal(pack(rollout()), layout=Q_LAYOUT, kind=Kind.TRANSITIONS)[0] == "invalid"
    assert refusal(pack(transitions()), layout=PPO_LAYOUT, kind=Kind.ROLLOUT)[0] == "invalid"
    for kind in (Kind.POLICY, Kind.WELCOME):
        data = encode(kind, **ABOUT, rows=1, arrays={})
        assert refusal(data, layout=Q_LAYOUT)[0] == "invalid"


@pytest.mark.parametrize(
    "layout", [Layout(D + 1, A, TERMS, T), Layout(D, A + 1, TERMS, T), Layout(D, A - 1, TERMS, T),
               Layout(D, A, TERMS - 1, T), Layout(D, A, TERMS, T + 1), Layout(D, A, TERMS, 2 * T)]
)  # fmt: skip
def test_another_layout(layout):
    assert refusal(pack(rollout(6)), layout=layout)[0] == "invalid"
    if layout.rollout == T:
        assert refusal(pack(transitions()), layout=layout)[0] == "invalid"


def test_a_rollout_for_q_learning():
    assert refusal(pack(rollout()), layout=Q_LAYOUT)[0] == "invalid"


NUMBERS = [float("nan"), float("inf"), -float("inf")]
BREAKS = {
    "first too small": (transitions, "first", -1),
    "first too large": (transitions, "first", 14),
    "following too small": (transitions, "following", -(1 << 31)),
    "following too large": (transitions, "following", 14),
    "action too large": (transitions, "actions", A),
    "discount below 0": (transitions, "discounts", -0.001),
    "discount above 1": (transitions, "discounts", 1.001),
    "no length": (transitions, "ended_lengths", 0),
    "negative length": (transitions, "ended_lengths", -5),
    "endless length": (transitions, "ended_lengths", 1 << 62),
    "rollout action too large": (rollout, "actions", 255),
    "rollout discount above 1": (rollout, "discounts", 1.001),
    "rollout discount below 0": (rollout, "discounts", -0.001),
    "continues": (rollout, "continues", 0.5),
    "log_probs": (rollout, "log_probs", 0.5),
    **{f"{name} {value}": (transitions, name, value)
       for name in ("pool", "rewards", "discounts", "ended_terms") for value in NUMBERS},
    **{f"rollout {name} {value}": (rollout, name, value)
       for name in ("observations", "log_probs", "values", "next_values", "rewards", "discounts", "continues",
                    "ended_terms") for value in NUMBERS},
}  # fmt: skip


@pytest.mark.parametrize("case", BREAKS)
def test_one_wrong_number(case):
    make, name, value = BREAKS[case]
    data = pack(make())
    array = decode(data, kinds=tuple(Kind)).arrays[name]
    for at in {0, array.size // 2, array.size - 1}:
        reason, text = refusal(remade(data, arrays={name: poked(array, value, at)}))
        assert reason == "invalid"
        assert name in text
    read(remade(data))  # the frame is otherwise fine


def test_a_row_that_leads_to_no_open_action():
    chunk = transitions()
    chunk.next_masks[4] = False
    assert refusal(pack(chunk))[0] == "invalid"


def test_an_action_that_was_closed():
    chunk = rollout()
    chunk.masks[2, 1, chunk.actions[2, 1]] = False
    assert refusal(pack(chunk))[0] == "invalid"


def test_masks_end_with_their_last_row():
    chunk = transitions()
    packed = np.packbits(chunk.next_masks.reshape(-1))
    packed[-1] |= 1
    assert refusal(remade(pack(chunk), arrays={"next_masks": packed}))[0] == "invalid"


@pytest.mark.parametrize("make", [transitions, rollout])
def test_the_arrays_are_exactly_these(make):
    data = pack(make())
    arrays = decode(data, kinds=tuple(Kind)).arrays
    for name, array in arrays.items():
        other = "f8" if array.dtype != np.float64 else "f4"
        assert refusal(remade(data, without=(name,)))[0] == "invalid"
        assert refusal(remade(data, arrays={name: array.astype(other)}))[0] == "invalid"
        assert refusal(remade(data, arrays={name: array[:-1]}))[0] == "invalid"
        assert refusal(remade(data, arrays={name: array[:0]}))[0] == "invalid"
        assert refusal(remade(data, arrays={name: array[..., None]}))[0] == "invalid"
        if name != "pool":  # may hold more observations than rows lead to
            assert refusal(remade(data, arrays={name: np.concatenate([array, array])}))[0] == "invalid"
    assert refusal(remade(data, arrays={"more": np.zeros(3)}))[0] == "invalid"
    assert (
        refusal(remade(data, arrays={"pool_": arrays[next(iter(arrays))]}, without=(next(iter(arrays)),)))[0]
        == "invalid"
    )


@pytest.mark.parametrize("make", [transitions, rollout])
@pytest.mark.parametrize("header", [{"rows": 0}, {"rows": 1}, {"rows": 10_000}, {"rows": (1 << 63) - 1},
                                    {"steps": 100_000_001}, {"sequence": 0}, {"worker": ""}])  # fmt: skip
def test_the_header_says_what_is_there(make, header):
    assert refusal(remade(pack(make()), **header))[0] == "invalid"


def test_rows_that_are_no_whole_rollout():
    chunk = rollout()
    one_action = replace(chunk, masks=chunk.masks[..., :1], actions=np.zeros_like(chunk.actions))
    layout = replace(PPO_LAYOUT, num_actions=1)  # 12 and 13 rows have masks of as many bytes
    assert_same(read(pack(one_action), layout)[1], one_action)
    assert refusal(remade(pack(one_action), rows=13), layout=layout)[0] == "invalid"


def test_no_rows():
    assert refusal(pack(transitions(0)))[0] == "invalid"
    assert refusal(pack(rollout(0)))[0] == "invalid"


@pytest.mark.parametrize("value", [-1, A, 256, 1 << 40])
def test_actions_that_do_not_exist_are_not_sent(value):
    for chunk in (transitions(), rollout()):
        with pytest.raises(MisuseError, match="of 5 that there are"):
            pack(replace(chunk, actions=poked(chunk.actions, value)))
