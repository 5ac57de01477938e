"""Chunks of experience: exactly what was packed comes out, and nothing that could not be learned from."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soulsai.acting.rollouts import ROLLOUT
from soulsai.experience import LARGEST, Chunk, Ended, Limits, Proof, Schema
from soulsai.replay.n_step import TRANSITION
from soulsai.transport.chunks import MOST_STEPS_PER_ROW, pack_chunk, unpack_chunk
from soulsai.transport.frames import BadFrame, Kind, decode, encode, peek
from soulsgym.errors import MisuseError

D, A, TERMS, T = 6, 5, 3, 4
TRANSITIONS = Schema(TRANSITION, D, A, TERMS)
ROLLOUTS = Schema(ROLLOUT, D, A, TERMS, T)
ABOUT = {"run": "run-1", "worker": "alice.1.5f3a9c", "sequence": 7, "policy": 3}


def ended(number=2, terms=TERMS):
    flags = np.arange(number) % 2 == 0
    return Ended(np.linspace(-1.0, 1.0, number * terms).reshape(number, terms), np.arange(1, number + 1),
                 flags, ~flags, flags)  # fmt: skip


def chunk_of(schema, rows, episodes=2, seed=0):
    """Every column drawn, and all of it sound."""
    rng = np.random.default_rng([rows, seed])
    columns = schema.empty(rows)
    for name, column in schema.columns.items():
        shape = schema.shape(name, rows)
        if column.dtype == "b1":
            columns[name] = rng.random(shape) < 0.5
            if column.width:
                columns[name][..., 0] = True
        elif column.dtype == "i8":
            columns[name] = rng.integers(0, schema.num_actions, shape)
        else:
            low, high = max(column.low, -3.0), min(column.high, 3.0)
            columns[name] = rng.uniform(low, high, shape).astype(np.float32)
    if "masks" in columns:
        np.put_along_axis(columns["masks"], columns["actions"][..., None], True, -1)
        columns["continues"].reshape(-1)[:episodes] = False
    return Chunk(columns, ended(episodes, schema.terms), rows + 17)


def transitions(rows=11, episodes=2):
    return chunk_of(TRANSITIONS, rows, episodes)


def rollout(n=3, episodes=2):
    return chunk_of(ROLLOUTS, T * n, episodes)


def schema_of(chunk):
    return ROLLOUTS if "masks" in chunk.columns else TRANSITIONS


def pack(chunk, schema=None, **about):
    return pack_chunk(chunk, schema or schema_of(chunk), **(ABOUT | about))


def read(data, schema, run="run-1", **how):
    return unpack_chunk(data, schema, run=run, **how)


def refusal(data, schema, **how):
    with pytest.raises(BadFrame) as caught:
        read(data, schema, **how)
    return caught.value.reason, str(caught.value)


def changed(chunk, **columns):
    return replace(chunk, columns=chunk.columns | columns)


def remade(data, *, arrays=None, without=(), **header):
    """The same frame with other arrays or another header, properly sealed."""
    frame = decode(data, Kind.CHUNK)
    there = {name: array for name, array in frame.arrays.items() if name not in without}
    about = {name: getattr(frame.header, name) for name in ("run", "worker", "sequence", "policy", "rows", "steps")}
    return encode(frame.header.kind, **(about | header), arrays=there | (arrays or {}))


def poked(array, value, at=0):
    """A copy with one other number."""
    copied = array.copy()
    copied.reshape(-1)[at] = value
    return copied


def assert_same(found, chunk):
    assert found.columns.keys() == chunk.columns.keys()
    assert found.steps == chunk.steps
    pairs = [(found.columns[name], column) for name, column in chunk.columns.items()]
    pairs += [(getattr(found.ended, field.name), getattr(chunk.ended, field.name)) for field in fields(Ended)]
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("chunk", [transitions(), transitions(1, 1), transitions(64, episodes=0), transitions(8192),
                                   rollout(), rollout(1, episodes=0), rollout(500)])  # fmt: skip
def test_what_is_packed_comes_out(chunk):
    header, found = read(pack(chunk), schema_of(chunk))
    assert_same(found, chunk)
    assert found.rows == header.rows == chunk.columns["actions"].size
    assert header.steps == chunk.steps
    assert (header.run, header.worker, header.sequence, header.policy) == tuple(ABOUT.values())


SIZES = {"observation_size": st.integers(1, 9), "num_actions": st.integers(1, 300), "terms": st.integers(1, 4)}


@settings(max_examples=80, deadline=None)
@given(st.fixed_dictionaries(SIZES), st.integers(1, 40), st.integers(0, 5), st.integers(0, 6), st.booleans())
def test_any_sizes_come_out(sizes, rows, length, episodes, squeeze):
    """Both kinds of experience: rows that stand alone, and sequences."""
    columns = ROLLOUT if length else TRANSITION
    schema = Schema(columns, length=length, **sizes)
    rows *= length or 1
    chunk = chunk_of(schema, rows, min(episodes, rows))
    header, found = read(pack(chunk, schema, squeeze=squeeze), schema)
    assert (header.rows, header.steps) == (rows, chunk.steps)
    assert_same(found, chunk)


@pytest.mark.parametrize(("number", "dtype"), [(256, "u1"), (257, "u2"), (2, "u1"), (1000, "u2")])
def test_many_actions(number, dtype):
    schema = replace(TRANSITIONS, num_actions=number)
    chunk = chunk_of(schema, 40)
    chunk.columns["actions"][0] = number - 1
    data = pack(chunk, schema)
    assert decode(data, Kind.CHUNK).arrays["actions"].dtype == np.dtype(dtype)
    assert_same(read(data, schema)[1], chunk)
    assert refusal(data, replace(schema, num_actions=number - 1))[0] == "invalid"


def test_other_dtypes_are_converted():
    chunk = transitions()
    wide = changed(
        chunk,
        observations=chunk.columns["observations"].astype(np.float64),
        actions=chunk.columns["actions"].astype(np.int32),
        rewards=np.asfortranarray(chunk.columns["rewards"].astype(np.float64)),
    )
    assert_same(read(pack(wide), TRANSITIONS)[1], chunk)


def test_observations_are_not_copied():
    data = pack(transitions(200), squeeze=False)
    assert not peek(data).packed
    found = read(data, TRANSITIONS)[1].columns["observations"]
    assert np.shares_memory(found, np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("name", ["observations", "next_observations", "rewards"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_numbers_are_as_large_as_can_be_learned_from(name, sign):
    chunk = transitions()
    chunk.columns[name][:] = sign * LARGEST
    assert_same(read(pack(chunk), TRANSITIONS)[1], chunk)
    chunk.columns[name].reshape(-1)[3] = sign * 1.001 * LARGEST
    reason, text = refusal(pack(chunk), TRANSITIONS)
    assert reason == "invalid"
    assert name in text


def of_one_episode(rows=200):
    """Each row leads to the next, but for the last and for one whose next observation differs in the sign of a zero."""
    chunk = transitions(rows)
    seen, after = chunk.columns["observations"], chunk.columns["next_observations"]
    seen[5, 2] = 0.0
    after[:-1] = seen[1:]
    after[4, 2] = -0.0
    return chunk


def test_a_next_observation_that_is_in_another_row_is_not_sent():
    chunk = of_one_episode()
    data = pack(chunk, squeeze=False)
    arrays = decode(data, Kind.CHUNK).arrays
    assert arrays["next_at"].tolist() == [1, 2, 3, 4, 200, *range(6, 200), 200]
    assert np.array_equal(arrays["next_observations"], chunk.columns["next_observations"][[4, 199]])
    found = read(data, TRANSITIONS)[1]
    assert_same(found, chunk)
    assert np.signbit(found.columns["next_observations"][4, 2])


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (lambda at, others: {"next_at": poked(at, -1)}, "next_at from -1 to 200, not 0 to 200"),
        (lambda at, others: {"next_at": poked(at, 201)}, "next_at from 2 to 201, not 0 to 200"),
        (lambda at, others: {"next_at": poked(at, 200)}, "2 next_observations are sent, for 3 rows"),
        (lambda at, others: {"next_observations": others[:1]}, "1 next_observations are sent, for 2 rows"),
        (lambda at, others: {"next_at": at[:-1]}, "next_at"),
        (lambda at, others: {"next_observations": np.zeros((201, D), np.float32)}, "201 next_observations"),
    ],
)
def test_next_observations_that_are_nowhere(arrays, text):
    data = pack(of_one_episode())
    sent = decode(data, Kind.CHUNK).arrays
    reason, found = refusal(remade(data, arrays=arrays(sent["next_at"], sent["next_observations"])), TRANSITIONS)
    assert reason == "invalid"
    assert text in found


def test_rounding_above_a_log_probability_of_zero():
    chunk = rollout()
    log_probs = chunk.columns["log_probs"]
    assert read(pack(changed(chunk, log_probs=poked(log_probs, 1e-6))), ROLLOUTS)[1].rows == chunk.rows
    assert refusal(pack(changed(chunk, log_probs=poked(log_probs, 0.01))), ROLLOUTS)[0] == "invalid"


def test_another_run():
    assert refusal(pack(transitions()), TRANSITIONS, run="run-2")[0] == "foreign"
    assert refusal(pack(rollout(), run="run"), ROLLOUTS)[0] == "foreign"


def test_experience_of_another_algorithm():
    assert refusal(pack(rollout()), TRANSITIONS)[0] == "invalid"
    assert refusal(pack(transitions(12)), ROLLOUTS)[0] == "invalid"
    for kind in (Kind.POLICY, Kind.WELCOME):
        data = encode(kind, **ABOUT, rows=1, arrays={})
        assert refusal(data, TRANSITIONS)[0] == "invalid"


@pytest.mark.parametrize(
    "sizes", [(D + 1, A, TERMS, T), (D, A + 1, TERMS, T), (D, A - 1, TERMS, T), (D, A, TERMS - 1, T),
              (D, A, TERMS, T + 1), (D, A, TERMS, 2 * T)]
)  # fmt: skip
def test_other_sizes(sizes):
    assert refusal(pack(rollout(6)), Schema(ROLLOUT, *sizes))[0] == "invalid"
    if sizes[3] == T:
        assert refusal(pack(transitions()), Schema(TRANSITION, *sizes[:3]))[0] == "invalid"


NUMBERS = [float("nan"), float("inf"), -float("inf"), 1.1e9, -1.1e9]
BREAKS = {
    "action too large": (transitions, "actions", A),
    "discount below 0": (transitions, "discounts", -0.001),
    "discount above 1": (transitions, "discounts", 1.001),
    "no length": (transitions, "ended_lengths", 0),
    "negative length": (transitions, "ended_lengths", -5),
    "endless length": (transitions, "ended_lengths", 1 << 62),
    "rollout action too large": (rollout, "actions", 255),
    "rollout discount above 1": (rollout, "discounts", 1.001),
    "rollout discount below 0": (rollout, "discounts", -0.001),
    "log_probs": (rollout, "log_probs", 0.5),
    **{f"{name} {value}": (transitions, name, value)
       for name in ("observations", "next_observations", "rewards", "discounts", "ended_terms") for value in NUMBERS},
    **{f"rollout {name} {value}": (rollout, name, value)
       for name in ("observations", "log_probs", "values", "next_values", "rewards", "discounts", "ended_terms")
       for value in NUMBERS},
}  # fmt: skip


@pytest.mark.parametrize("case", BREAKS)
def test_one_wrong_number(case):
    make, name, value = BREAKS[case]
    chunk = make()
    data, schema = pack(chunk), schema_of(chunk)
    array = decode(data, Kind.CHUNK).arrays[name]
    for at in {0, array.size // 2, array.size - 1}:
        reason, text = refusal(remade(data, arrays={name: poked(array, value, at)}), schema)
        assert reason == "invalid"
        assert name in text
    read(remade(data), schema)  # the frame is otherwise fine


def test_a_row_that_leads_to_no_open_action():
    chunk = transitions()
    chunk.columns["next_masks"][4] = False
    assert refusal(pack(chunk), TRANSITIONS)[0] == "invalid"


def test_an_action_that_was_closed():
    chunk = rollout()
    chunk.columns["masks"][2, 1] = True
    chunk.columns["masks"][2, 1, chunk.columns["actions"][2, 1]] = False
    reason, text = refusal(pack(chunk), ROLLOUTS)
    assert reason == "invalid"
    assert "an action is closed in its mask" in text


@pytest.mark.parametrize(("make", "name"), [(transitions, "next_masks"), (lambda: rollout(1), "continues")])
def test_flags_end_with_their_last_row(make, name):
    chunk = make()
    packed = np.packbits(chunk.columns[name].reshape(-1))
    packed[-1] |= 1
    assert refusal(remade(pack(chunk), arrays={name: packed}), schema_of(chunk))[0] == "invalid"


@pytest.mark.parametrize("make", [transitions, rollout])
def test_the_arrays_are_exactly_these(make):
    chunk = make()
    data, schema = pack(chunk), schema_of(chunk)
    arrays = decode(data, Kind.CHUNK).arrays
    for name, array in arrays.items():
        other = "f8" if array.dtype != np.float64 else "f4"
        assert refusal(remade(data, without=(name,)), schema)[0] == "invalid"
        assert refusal(remade(data, arrays={name: array.astype(other)}), schema)[0] == "invalid"
        assert refusal(remade(data, arrays={name: array[:-1]}), schema)[0] == "invalid"
        assert refusal(remade(data, arrays={name: array[:0]}), schema)[0] == "invalid"
        assert refusal(remade(data, arrays={name: array[..., None]}), schema)[0] == "invalid"
        assert refusal(remade(data, arrays={name: np.concatenate([array, array])}), schema)[0] == "invalid"
    assert refusal(remade(data, arrays={"more": np.zeros(3)}), schema)[0] == "invalid"
    first = next(iter(arrays))
    assert refusal(remade(data, arrays={f"{first}_": arrays[first]}, without=(first,)), schema)[0] == "invalid"


@pytest.mark.parametrize("make", [transitions, rollout])
@pytest.mark.parametrize("header", [{"rows": 0}, {"rows": 1}, {"rows": 10_000}, {"rows": (1 << 63) - 1},
                                    {"steps": 0}, {"steps": 100_000_000}, {"sequence": 0}, {"worker": ""}])  # fmt: skip
def test_the_header_says_what_is_there(make, header):
    chunk = make()
    assert refusal(remade(pack(chunk), **header), schema_of(chunk))[0] == "invalid"


def test_steps_are_in_proportion_to_rows():
    """One row that stands for millions of steps would end a run, and all its schedules, at once."""
    one = transitions(1, 0)
    most = replace(one, steps=MOST_STEPS_PER_ROW)
    assert read(pack(most), TRANSITIONS)[0].steps == MOST_STEPS_PER_ROW
    for steps in (MOST_STEPS_PER_ROW + 1, 100_000_000):
        reason, text = refusal(pack(replace(one, steps=steps)), TRANSITIONS)
        assert reason == "invalid"
        assert f"{steps} steps cannot be those of 1 decisions" in text


BOX = Limits(
    low=np.array([-1.0, 0, 0, 0, 0, 0], np.float32) - 4,
    high=np.array([1.0, 1, 1, 1, 1, 9], np.float32) + 4,
    numbers={"rewards": (-5.0, 5.0), "values": (-50.0, 50.0), "log_probs": (-20.0, 1e-4)},
    rows=12,
    steps_per_row=2,
    length=100,
    term=5.0,
)


@pytest.mark.parametrize(
    ("make", "name", "value", "told"),
    [
        (transitions, "observations", 6.0, "number 0 of observations is 6, not -5 to 5"),
        (transitions, "next_observations", -6.0, "number 0 of next_observations"),
        (rollout, "observations", 3e8, "number 0 of observations"),
        (transitions, "rewards", 5.1, "rewards"),
        (rollout, "values", -51.0, "values"),
        (rollout, "log_probs", -21.0, "log_probs"),
        (transitions, "ended_lengths", 101, "ended_lengths"),
        (transitions, "ended_terms", 5.1, "ended_terms are more than 5 a step"),
    ],
)
def test_what_no_worker_of_the_run_can_have_played(make, name, value, told):
    chunk = make()
    data, schema = pack(chunk), schema_of(chunk)
    assert read(data, schema, limits=BOX)[1].rows == chunk.rows
    array = decode(data, Kind.CHUNK).arrays[name]
    wrong = remade(data, arrays={name: poked(array, value)})
    assert read(wrong, schema)[1].rows == chunk.rows  # of another run it may be right
    reason, text = refusal(wrong, schema, limits=BOX)
    assert reason == "invalid"
    assert told in text


def test_every_number_of_an_observation_has_its_own_limits():
    chunk = transitions()
    chunk.columns["observations"][3, 5] = 12.9
    assert_same(read(pack(chunk), TRANSITIONS, limits=replace(BOX, steps_per_row=100))[1], chunk)
    chunk.columns["observations"][3, 4] = 5.1
    assert "number 4 of observations is 5.1, not -4 to 5" in refusal(pack(chunk), TRANSITIONS, limits=BOX)[1]


def test_more_rows_than_a_message_of_the_run_holds():
    assert "it has 13 rows, not 1 to 12" in refusal(pack(transitions(13)), TRANSITIONS, limits=BOX)[1]


def test_steps_are_counted_by_rows_whatever_the_header_says():
    one = replace(transitions(1, 0), steps=9999)
    header, chunk = read(pack(one), TRANSITIONS, limits=BOX)
    assert (header.steps, chunk.steps) == (9999, 2)


def test_no_more_episodes_than_end_in_a_rollout():
    chunk = rollout()
    chunk.columns["continues"][:] = True
    chunk.columns["continues"][0, 0] = False
    assert "2 episodes ended, but only 1 do not go on" in refusal(pack(chunk), ROLLOUTS)[1]


def test_no_more_episodes_than_rows():
    assert len(read(pack(transitions(3, 3)), TRANSITIONS)[1].ended.lengths) == 3
    reason, text = refusal(pack(transitions(3, 4)), TRANSITIONS)
    assert reason == "invalid"
    assert "4 episodes ended in 3 decisions" in text


def test_rows_that_wait_for_an_end_may_be_more_than_its_steps():
    """Rows of several decisions: those that waited when the chunk before was sent come with the end of the episode."""
    assert read(pack(replace(transitions(3, 1), steps=1)), TRANSITIONS)[0].steps == 1


def test_rows_that_are_no_whole_rollout():
    schema = replace(ROLLOUTS, num_actions=1)  # 12 and 13 rows have masks of as many bytes
    one_action = chunk_of(schema, 12)
    assert_same(read(pack(one_action, schema), schema)[1], one_action)
    assert refusal(remade(pack(one_action, schema), rows=13), schema)[0] == "invalid"


def test_no_rows():
    assert refusal(pack(transitions(0, 0)), TRANSITIONS)[0] == "invalid"
    assert refusal(pack(rollout(0, 0)), ROLLOUTS)[0] == "invalid"


@pytest.mark.parametrize("value", [-1, A, 256, 1 << 40])
def test_actions_that_do_not_exist_are_not_sent(value):
    for chunk in (transitions(), rollout()):
        with pytest.raises(MisuseError, match="of 5 that there are"):
            pack(changed(chunk, actions=poked(chunk.columns["actions"], value)))


PROOF = Proof("0123456789abcdef", np.arange(12).reshape(4, 3) % A)


@pytest.mark.parametrize("chunk", [transitions(), rollout()], ids=["transitions", "rollouts"])
def test_how_to_play_it_again_comes_with_it(chunk):
    _, back = read(pack(replace(chunk, proof=PROOF)), schema_of(chunk))
    assert back.proof.environment == PROOF.environment
    assert back.proof.actions.tolist() == PROOF.actions.tolist()
    assert read(pack(chunk), schema_of(chunk))[1].proof is None


@pytest.mark.parametrize(
    "arrays",
    [
        {"played": None},
        {"environment": None},
        {"played": np.zeros(12, np.uint8)},
        {"played": np.zeros((2, 3, 2), np.uint8)},
        {"played": np.zeros((4, 3), np.int64)},
        {"played": np.zeros((0, 3), np.uint8)},
        {"played": np.full((4, 3), A, np.uint8)},
        {"environment": np.full(8, 200, np.uint8)},
        {"environment": np.full(201, 65, np.uint8)},
        {"environment": np.zeros((2, 2), np.uint8)},
        {"environment": np.zeros(8, np.float32)},
    ],
)
def test_a_proof_that_is_none_is_refused(arrays):
    frame = decode(pack(replace(transitions(), proof=PROOF)), Kind.CHUNK)
    kept = {name: array for name, array in (frame.arrays | arrays).items() if array is not None}
    about = {name: getattr(frame.header, name) for name in ("run", "worker", "sequence", "policy", "rows", "steps")}
    assert refusal(encode(Kind.CHUNK, **about, arrays=kept), TRANSITIONS)[0] == "invalid"
