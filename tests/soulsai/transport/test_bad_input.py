"""Tens of thousands of damaged, invented and malicious messages of every kind: none does harm, none gets in.

What is accepted all the same has to be sound, as judged by checks of this file's own. The pieces of frames are put
together here by hand, with checksums that match, so that the checks behind the checksum are reached.
"""

import json
import random
import struct
import tracemalloc
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache

import lz4.block
import msgspec
import numpy as np
import pytest
import xxhash

from soulsai.acting.rollouts import ROLLOUT
from soulsai.errors import TransportError
from soulsai.experience import Chunk, Ended, Schema
from soulsai.replay.n_step import TRANSITION
from soulsai.transport.chunks import pack_chunk, unpack_chunk
from soulsai.transport.frames import PROTOCOL, BadFrame, Kind, decode, peek
from soulsai.transport.policies import Policy, pack_policy, unpack_policy
from soulsai.transport.welcome import Welcome, pack_welcome, unpack_welcome

MESSAGES = 12_500
"""Of each kind."""
D, A, TERMS, T = 7, 5, 2, 3
RUN = "run-1"
ABOUT = {"run": RUN, "worker": "alice.1.5f3a9c", "sequence": 7, "policy": 3}
FEW_BYTES = 2 << 20
"""What reading a small frame may take, whatever it claims."""
DTYPES = ("f4", "f8", "u1", "u2", "i4", "i8", "b1")
WILD_SIZES = (0, 1, 7, 255, 1 << 16, (1 << 26) - 1, 1 << 26, 1 << 31, 1 << 32, 1 << 50, (1 << 63) - 1, 1 << 63,
              (1 << 64) - 1)  # fmt: skip
WILD_NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e30, -1e30, -1.0, 0.5, 2.0)
WILD_VALUES = (None, True, -1, 0, 1, 1 << 63, 1.5, float("nan"), float("inf"), "", "x" * 100, "a\n", b"bytes", [], {},
               [[1]], "alice.2.000000", "run-2", 1 << 40)  # fmt: skip


class Message(Enum):
    """What is sent; experience of both kinds travels as chunks."""

    TRANSITIONS = "transitions"
    ROLLOUT = "rollout"
    POLICY = "policy"
    WELCOME = "welcome"


SCHEMAS = {Message.TRANSITIONS: Schema(TRANSITION, D, A, TERMS), Message.ROLLOUT: Schema(ROLLOUT, D, A, TERMS, T)}
KINDS = {Message.POLICY: Kind.POLICY, Message.WELCOME: Kind.WELCOME}


def kind_of(message):
    return KINDS.get(message, Kind.CHUNK)


def ended():
    flags = np.array([True, False, True])
    return Ended(np.array([[0.5, 1.0], [-1.0, 0.0], [2.0, 2.0]]), np.array([3, 40, 500]), flags, flags, ~flags)


def observations(rng, *shape):
    """Mostly zeros, as encoded fights are, so that they shrink."""
    return (rng.normal(size=(*shape, D)) * (rng.random((*shape, D)) < 0.3)).astype(np.float32)


def transitions(rng, rows=9):
    masks = rng.random((rows, A)) < 0.4
    masks[:, 1] = True
    columns = {
        "observations": observations(rng, rows),
        "actions": rng.integers(0, A, rows),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "discounts": (rng.integers(0, 2, rows) * 0.98).astype(np.float32),
        "next_observations": observations(rng, rows),
        "next_masks": masks,
    }
    return Chunk(columns, ended(), rows + 35)


def rollout(rng, n=4):
    masks = rng.random((T, n, A)) < 0.4
    masks[..., 1] = True
    numbers = [rng.normal(size=(T, n)).astype(np.float32) for _ in range(3)]
    columns = {
        "observations": observations(rng, T, n),
        "masks": masks,
        "actions": masks.argmax(axis=2),
        "log_probs": -rng.random((T, n)).astype(np.float32),
        "values": numbers[0],
        "next_values": numbers[1],
        "rewards": numbers[2],
        "discounts": np.full((T, n), 0.98, np.float32),
        "continues": rng.random((T, n)) < 0.5,
    }
    return Chunk(columns, ended(), 44)


def policy(rng):
    weights = rng.normal(size=(3, 5)).astype(np.float32)
    return Policy(5, 1000, {"network.w": weights, "network.b": np.zeros(9, np.float32), "twin.count": np.ones(2)})


@cache
def valid_frame(message, seed=0):
    rng = np.random.default_rng(seed)
    if message in SCHEMAS:
        chunk = transitions(rng) if message is Message.TRANSITIONS else rollout(rng)
        return pack_chunk(chunk, SCHEMAS[message], **ABOUT)
    if message is Message.POLICY:
        return pack_policy(policy(rng), run=RUN)
    return pack_welcome(Welcome(RUN, 'algorithm = "q"\n' * 4, "0.3.0", "sha256:12ab"))


def read(message, data):
    """What came out, or why nothing did. No other exception is expected, and none is caught."""
    try:
        if message is Message.POLICY:
            return unpack_policy(data, run=RUN), None
        if message is Message.WELCOME:
            return unpack_welcome(data), None
        return unpack_chunk(data, SCHEMAS[message], run=RUN), None
    except BadFrame as error:
        return None, error.reason
    except TransportError as error:
        assert message is Message.WELCOME
        return None, "version" if "protocol" in str(error) else str(error).split("(")[1].split(":")[0]


# Whether something accepted can be worked with: slow and plain, and written apart from what it judges.


def is_number_list(array, dtype, shape):
    return (
        array.dtype == np.dtype(dtype)
        and array.shape == shape
        and all(abs(number) <= 1e9 for number in array.reshape(-1).tolist())
    )


def is_flag_list(array, shape):
    return array.dtype == bool and array.shape == shape and set(array.view("u1").reshape(-1).tolist()) <= {0, 1}


def is_sound_ended(done, rows):
    k = len(done.lengths)
    return (
        k <= rows
        and is_number_list(done.terms, "f8", (k, TERMS))
        and is_number_list(done.lengths, "i8", (k,))
        and all(length > 0 for length in done.lengths.tolist())
        and all(is_flag_list(flag, (k,)) for flag in (done.standard, done.won, done.timed_out))
    )


def is_sound_experience(message, found):
    header, chunk = found
    rows, columns = header.rows, chunk.columns
    fine = header.run == RUN and header.worker and header.sequence > 0 and rows > 0
    fine = fine and 0 < header.steps <= 10_000 * rows
    fine = fine and chunk.steps == header.steps and is_sound_ended(chunk.ended, rows) and chunk.rows == rows
    fine = fine and columns["actions"].dtype == np.int64
    fine = fine and all(0 <= action < A for action in columns["actions"].reshape(-1).tolist())
    fine = fine and all(0.0 <= discount <= 1.0 for discount in columns["discounts"].reshape(-1).tolist())
    if message is Message.TRANSITIONS:
        seen = ("observations", "next_observations")
        return (
            fine
            and columns.keys() == {*seen, "actions", "rewards", "discounts", "next_masks"}
            and columns["actions"].shape == (rows,)
            and all(is_number_list(columns[name], "f4", (rows, D)) for name in seen)
            and all(is_number_list(columns[name], "f4", (rows,)) for name in ("rewards", "discounts"))
            and is_flag_list(columns["next_masks"], (rows, A))
            and all(any(row) for row in columns["next_masks"].tolist())
        )
    n = rows // T
    numbers = ("log_probs", "values", "next_values", "rewards", "discounts")
    masks, actions = columns["masks"], columns["actions"]
    return (
        fine
        and columns.keys() == {*numbers, "observations", "masks", "actions", "continues"}
        and actions.shape == (T, n)
        and is_number_list(columns["observations"], "f4", (T, n, D))
        and all(is_number_list(columns[name], "f4", (T, n)) for name in numbers)
        and is_flag_list(columns["continues"], (T, n))
        and max(columns["log_probs"].reshape(-1).tolist()) <= 1e-3
        and is_flag_list(masks, (T, n, A))
        and all(masks[t, i, actions[t, i]] for t in range(T) for i in range(n))
    )


def is_sound(message, found):
    if message is Message.POLICY:
        kinds = (np.float32, np.float64, np.int64)
        return found.version > 0 and found.steps >= 0 and found.tensors and all(
            tensor.dtype in kinds and np.isfinite(tensor).all() for tensor in found.tensors.values()
        )  # fmt: skip
    if message is Message.WELCOME:
        texts = (found.run, found.config_toml, found.package, found.environment)
        return all(isinstance(text, str) for text in texts) and found.package.isascii() and found.package.isprintable()
    return is_sound_experience(message, found)


def says(found):
    """Everything that can be told from it, to compare with."""
    if isinstance(found, np.ndarray):
        return str(found.dtype), tuple(found.shape), np.asarray(found).tobytes()
    if isinstance(found, (tuple, list)):
        return [says(one) for one in found]
    if isinstance(found, dict):
        return {key: says(one) for key, one in found.items()}
    if is_dataclass(found):
        return {one.name: says(getattr(found, one.name)) for one in fields(found)}
    return found


# Frames in pieces, to be put together wrongly.


@dataclass
class Pieces:
    """A frame taken apart; `sealed` puts it together with a checksum that matches."""

    header: dict
    arrays: dict  # name -> bytes as they lie in the body
    protocol: int = PROTOCOL
    described: bytes | None = None
    stored: bytes | None = None
    length: int | None = None  # of the header, where it is not true

    def sealed(self):
        body = b"".join(map(filled, self.arrays.values()))
        packed = lz4.block.compress(body, store_size=False)
        if self.stored is None:
            self.header["packed"] = len(packed) < len(body)
        stored = (packed if self.header["packed"] else body) if self.stored is None else self.stored
        described = msgspec.msgpack.encode(self.header) if self.described is None else self.described
        length = len(described) if self.length is None else self.length
        prefix = struct.pack("<4sHH", b"SOUL", self.protocol, length % (1 << 16))
        return with_checksum(prefix, filled(described) + stored)


def filled(data):
    return data + bytes(-len(data) % 8)


def with_checksum(prefix, rest):
    return prefix + struct.pack("<Q", xxhash.xxh3_64_intdigest(prefix + rest)) + rest


def resealed(data):
    """The same bytes with the checksum that they should have."""
    return with_checksum(data[:8], data[16:])


@cache
def apart(data):
    frame = decode(data, peek(data).kind)
    arrays = {name: array.tobytes() for name, array in frame.arrays.items()}
    return msgspec.msgpack.encode(frame.header), arrays


def pieces_of(data):
    header, arrays = apart(data)
    return Pieces(msgspec.msgpack.decode(header), dict(arrays))


# Ways to spoil a frame. Each gets the random source, the kind, and a valid frame.


def flipped_bits(random, message, data):
    changed = bytearray(data)
    for bit in random.sample(range(8 * len(data)), random.choice((1, 1, 2, 3, 16))):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def truncated(random, message, data):
    return data[: random.randrange(len(data))]


def extended(random, message, data):
    return data + random.choice((bytes(8), random.randbytes(random.randrange(1, 50)), data))


def spliced(random, message, data):
    other = valid_frame(random.choice(list(Message)), seed=random.randrange(1, 50))
    cut = random.randrange(1, len(data))
    return data[:cut] + other[random.choice((cut, random.randrange(len(other)))) :]


def random_bytes(random, message, data):
    noise = random.randbytes(random.choice((0, 1, 5, 15, 16, 17, 200, 2000)))
    return random.choice((b"", b"SOUL", b"SOUL\x03\x00", data[:8], data[:16])) + noise


def random_bytes_sealed(random, message, data):
    return resealed(data[:8] + bytes(8) + random.randbytes(len(data) - 16))


def wild_lengths(random, message, data):
    pieces = pieces_of(data)
    true = struct.unpack("<H", data[6:8])[0]
    pieces.length = random.choice((0, 1, 7, 255, 4096, 4097, (1 << 16) - 1, true - 1, true + 1, true + 8))
    return pieces.sealed()


def wrong_packing_or_kind(random, message, data):
    pieces = pieces_of(data)
    if random.random() < 0.5:
        body = b"".join(map(filled, pieces.arrays.values()))
        packed = lz4.block.compress(body, store_size=False)
        pieces.header["packed"], pieces.stored = random.choice(((True, body), (False, packed), (2, body), (None, body)))
    else:
        pieces.header["kind"] = random.choice([kind for kind in (*Kind, "", "other", 1) if kind != kind_of(message)])
    return pieces.sealed()


def other_protocol(random, message, data):
    pieces = pieces_of(data)
    pieces.protocol = random.choice((0, 1, 2, 4, 256, 65_535))
    return pieces.sealed()


def other_run(random, message, data):
    pieces = pieces_of(data)
    pieces.header["run"] = random.choice(("run-2", "run", "Run-1", "run-11", "x"))
    return pieces.sealed()


def wild_header_value(random, message, data):
    pieces = pieces_of(data)
    sealed = pieces.sealed()
    pieces.header[random.choice(list(pieces.header))] = random.choice(WILD_VALUES)
    pieces.stored = sealed[16 + len(filled(msgspec.msgpack.encode(pieces_of(sealed).header))) :]
    return pieces.sealed()


def missing_or_unknown_header_field(random, message, data):
    pieces = pieces_of(data)
    if random.random() < 0.5:
        del pieces.header[random.choice(list(pieces.header))]
    else:
        pieces.header["more"] = random.choice(WILD_VALUES)
    pieces.stored = b"".join(map(filled, pieces.arrays.values()))
    return pieces.sealed()


def spoiled_header_bytes(random, message, data):
    pieces = pieces_of(data)
    described = bytearray(msgspec.msgpack.encode(pieces.header))
    for _ in range(random.choice((1, 1, 2, 5))):
        described[random.randrange(len(described))] = random.randrange(256)
    cut = random.choice((len(described), len(described), random.randrange(len(described))))
    pieces.described = bytes(described[:cut])
    return pieces.sealed()


def wild_shape(random, message, data):
    pieces = pieces_of(data)
    entry = random.choice(pieces.header["arrays"])
    shape = list(entry[2])
    at = random.randrange(len(shape))
    choice = random.randrange(4)
    if choice == 0:
        shape[at] = random.choice((-1, -(1 << 63), 0, *WILD_SIZES))
    elif choice == 1:
        shape = [random.choice(WILD_SIZES) for _ in range(random.randint(0, 6))]
    elif choice == 2:
        shape[at] += random.choice((-1, 1, 2))
    else:
        shape = random.choice(([1, *shape], [*shape, 1], [*shape, 0], shape[::-1] if len(set(shape)) > 1 else []))
    entry[2] = shape
    return pieces.sealed()


def wrong_dtype(random, message, data):
    pieces = pieces_of(data)
    entry = random.choice(pieces.header["arrays"])
    before = entry[1]
    entry[1] = random.choice([code for code in (*DTYPES, "O", "<f4", "f2", "V8", "", "S1", 4) if code != before])
    if random.random() < 0.5 and entry[1] in DTYPES and 0 not in entry[2]:  # as many bytes as this dtype takes
        wanted = np.dtype(entry[1]).itemsize * int(np.prod(entry[2]))
        pieces.arrays[entry[0]] = bytes(wanted)
    return pieces.sealed()


def wrong_names(random, message, data):
    pieces = pieces_of(data)
    table = pieces.header["arrays"]
    entry = random.choice(table)
    choice = random.randrange(4)
    if choice == 0:
        entry[0] = random.choice(("", "Actions", "../x", "x" * 33, "other", "__class__", "a\0", 3))
    elif choice == 1:  # twice
        table.append(entry)
        pieces.arrays["twice"] = pieces.arrays[entry[0]]
    elif choice == 2:  # one more
        table.append(["more", "f4", [2]])
        pieces.arrays["more"] = bytes(8)
    else:  # one less
        table.remove(entry)
        del pieces.arrays[entry[0]]
    return pieces.sealed()


def lying_lz4(random, message, data):
    pieces = pieces_of(data)
    body = b"".join(map(filled, pieces.arrays.values()))
    pieces.stored = random.choice((
        lz4.block.compress(bytes(1 << 20), store_size=False),  # expands to far more than was said
        lz4.block.compress(body + bytes(8), store_size=False),
        lz4.block.compress(body[:-8], store_size=False),
        lz4.block.compress(body)[: random.randrange(1, 20)],
        lz4.block.compress(body, store_size=True),
        random.randbytes(random.randrange(1, 200)),
        b"",
    ))  # fmt: skip
    pieces.header["packed"] = True
    return pieces.sealed()


def spoiled_contents(random, message, data):
    """Any bytes of an array; the frame itself is in order, and what it holds may still be sound."""
    pieces = pieces_of(data)
    name = random.choice(list(pieces.arrays))
    changed = bytearray(pieces.arrays[name])
    for _ in range(random.choice((1, 1, 2, 8))):
        changed[random.randrange(len(changed))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    pieces.arrays[name] = bytes(changed)
    return pieces.sealed()


def wild_number(random, message, data):
    """A number that is not one, or out of its range, in an array of numbers."""
    pieces = pieces_of(data)
    numbers = [entry for entry in pieces.header["arrays"] if entry[1] in ("f4", "f8", "i4", "i8", "u1", "u2", "b1")]
    name, code, _ = random.choice(numbers)
    array = np.frombuffer(pieces.arrays[name], f"<{code}").copy()
    at = random.randrange(len(array))
    if code[0] == "f":
        array[at] = random.choice(WILD_NUMBERS)
    elif code == "b1":
        array.view(np.uint8)[at] = random.randrange(2, 256)
    else:
        limits = np.iinfo(code)
        array[at] = random.choice((limits.min, limits.max, A, min(99, limits.max)))
    pieces.arrays[name] = array.tobytes()
    return pieces.sealed()


ALWAYS = (
    flipped_bits,
    truncated,
    extended,
    random_bytes,
    random_bytes_sealed,
    wild_lengths,
    wrong_packing_or_kind,
    other_protocol,
    missing_or_unknown_header_field,
    wild_shape,
    wrong_dtype,
    wrong_names,
    lying_lz4,
)
"""What is spoiled like this is never a frame; the others may happen to make one that is sound."""
SOMETIMES = (spliced, other_run, wild_header_value, spoiled_header_bytes, spoiled_contents, wild_number)


@pytest.mark.parametrize("message", Message)
def test_thousands_of_bad_messages(message):
    source = random.Random(list(Message).index(message) + 1)
    valid = {data: read(message, data)[0] for data in (valid_frame(message, seed) for seed in range(8))}
    assert all(is_sound(message, found) for found in valid.values())
    said = {data: says(found) for data, found in valid.items()}
    ways = (*ALWAYS, *SOMETIMES)
    reasons, accepted = Counter(), Counter()
    for number in range(MESSAGES):
        way, original = ways[number % len(ways)], source.choice(list(valid))
        data = way(source, message, original)
        found, reason = read(message, data)
        reasons[reason] += 1
        if found is None or says(found) == said[original]:
            continue
        assert way not in ALWAYS, f"{way.__name__} was accepted: {data!r}"
        assert is_sound(message, found), f"{way.__name__} was accepted: {data!r}"
        accepted[way] += 1
    assert reasons.total() - reasons[None] > 10_000
    assert all(reasons[reason] > 100 for reason in ("malformed", "version", "invalid"))
    assert accepted[spoiled_contents] > 10  # what was judged here did come through
    assert message is Message.WELCOME or reasons["foreign"] > 100  # a welcome tells which run it is


@pytest.mark.parametrize("message", Message)
def test_every_single_bit_and_every_length(message):
    data = valid_frame(message)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert read(message, bytes(changed))[0] is None
    for length in range(len(data)):
        assert read(message, data[:length])[0] is None
    for other in Message:
        if other is not message:
            assert read(other, data)[1] == "invalid"


@pytest.mark.parametrize("message", list(SCHEMAS))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1.1e9, -1.1e9])
def test_no_number_but_a_number_in_any_place(message, value):
    data = valid_frame(message)
    for name, code, _ in pieces_of(data).header["arrays"]:
        if code[0] != "f":
            continue
        pieces = pieces_of(data)
        true = pieces.arrays[name]
        for at in range(len(true) // np.dtype(code).itemsize):
            array = np.frombuffer(true, f"<{code}").copy()
            array[at] = value
            pieces.arrays[name] = array.tobytes()
            assert read(message, pieces.sealed())[1] == "invalid"


def claims(message):
    """Small frames that claim to be huge."""
    valid = valid_frame(message)
    for length in (1 << 12, (1 << 12) + 1, 1 << 15, (1 << 16) - 1):
        pieces = pieces_of(valid)
        pieces.length = length
        yield pieces.sealed()
    for size in (1 << 20, 1 << 26, 1 << 32, 1 << 50, (1 << 63) - 1):
        for shape in ([size], [size, size], [0, size, size], [1 << 26] * 4, [0, 1 << 26, 1 << 26, 1 << 26]):
            for packed in (False, True):
                pieces = pieces_of(valid)
                pieces.header["arrays"][0][2] = shape
                pieces.header["packed"], pieces.stored = packed, random.randbytes(500)
                yield pieces.sealed()
    for described in (b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\x91" * 4000,
                      b"\x89\xa3run\xdb\xff\xff\xff\xff", b"\x89\xa6arrays\xdd\xff\xff\xff\xff"):  # fmt: skip
        pieces = pieces_of(valid)
        pieces.described = described
        yield pieces.sealed()
    for plain in (60 << 20, 64 << 20):
        for packed in (False, True):
            pieces = pieces_of(valid)
            pieces.header["arrays"] = [["a", "u1", [plain]]]
            pieces.header["packed"], pieces.stored = packed, bytes(500)
            yield pieces.sealed()
    bomb = pieces_of(valid)
    bomb.header["packed"], bomb.stored = True, lz4.block.compress(bytes(32 << 20), store_size=False)
    yield bomb.sealed()


def peak_of(message, data):
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    found, _ = read(message, data)
    peak = tracemalloc.get_traced_memory()[1] - before
    return found, peak


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("message", Message)
@pytest.mark.usefixtures("traced")
def test_claims_take_no_memory(message):
    number = 0
    for data in claims(message):
        found, peak = peak_of(message, data)
        assert found is None
        assert peak < FEW_BYTES
        number += 1
    assert number > 60


@pytest.mark.usefixtures("traced")
def test_memory_is_seen_where_it_is_taken():
    rng = np.random.default_rng(0)
    data = pack_chunk(transitions(rng, 100_000), SCHEMAS[Message.TRANSITIONS], **ABOUT)
    found, peak = peak_of(Message.TRANSITIONS, data)
    assert found is not None
    assert peak > FEW_BYTES


@pytest.mark.usefixtures("traced")
def test_weights_that_claim_to_be_huge():
    for entry in ({"shape": [1 << 60], "data_offsets": [0, 1 << 62]}, {"shape": [1 << 40], "data_offsets": [0, 4]},
                  {"shape": [0, 1 << 60, 1 << 60], "data_offsets": [0, 0]}):  # fmt: skip
        table = json.dumps({"a": {"dtype": "F32"} | entry}).encode()
        for length in (len(table), 1 << 40, (1 << 64) - 1):
            pieces = pieces_of(valid_frame(Message.POLICY))
            stored = length.to_bytes(8, "little") + table + bytes(4)
            pieces.arrays = {"tensors": stored}
            pieces.header["arrays"] = [["tensors", "u1", [len(stored)]]]
            found, peak = peak_of(Message.POLICY, pieces.sealed())
            assert found is None
            assert peak < FEW_BYTES
