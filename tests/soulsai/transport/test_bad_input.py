"""Tens of thousands of damaged, invented and malicious messages of every kind: none does harm, none gets in.

What is accepted all the same has to be sound, as judged by checks of this file's own. The pieces of frames are put
together here by hand, with checksums that match, so that the checks behind the checksum are reached.
"""

import json
import random
import struct
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache

import lz4.block
import msgspec
import numpy as np
import pytest
import torch
import xxhash

from soulsai.acting.ended import Ended
from soulsai.errors import TransportError
from soulsai.transport.experience import Layout, RolloutChunk, TransitionChunk, pack_rollout, pack_transitions, unpack
from soulsai.transport.frames import BadFrame, Kind, decode
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


def ended():
    flags = np.array([True, False, True])
    return Ended(np.array([[0.5, 1.0], [-1.0, 0.0], [2.0, 2.0]]), np.array([3, 40, 500]), flags, flags, ~flags)


def transitions(rng, rows=9):
    masks = rng.random((rows, A)) < 0.4
    masks[:, 1] = True
    return TransitionChunk(
        pool=(rng.normal(size=(rows + 2, D)) * (rng.random((rows + 2, D)) < 0.3)).astype(np.float32),
        first=np.arange(rows, dtype=np.int32),
        following=np.arange(2, rows + 2, dtype=np.int32),
        actions=rng.integers(0, A, rows),
        rewards=rng.normal(size=rows).astype(np.float32),
        discounts=(rng.integers(0, 2, rows) * 0.98).astype(np.float32),
        next_masks=masks,
        ended=ended(),
        steps=44,
    )


def rollout(rng, n=4):
    masks = rng.random((T, n, A)) < 0.4
    masks[..., 1] = True
    numbers = [rng.normal(size=(T, n)).astype(np.float32) for _ in range(3)]
    return RolloutChunk(
        observations=(rng.normal(size=(T, n, D)) * (rng.random((T, n, D)) < 0.3)).astype(np.float32),
        masks=masks,
        actions=masks.argmax(axis=2),
        log_probs=-rng.random((T, n)).astype(np.float32),
        values=numbers[0],
        next_values=numbers[1],
        rewards=numbers[2],
        discounts=np.full((T, n), 0.98, np.float32),
        continues=rng.integers(0, 2, (T, n)).astype(np.float32),
        ended=ended(),
        steps=44,
    )


def policy(rng):
    weights = torch.from_numpy(rng.normal(size=(3, 5)).astype(np.float32))
    return Policy(5, 1000, {"network.w": weights, "network.b": torch.zeros(9), "twin.count": torch.ones(2).double()})


@cache
def valid_frame(kind, seed=0):
    rng = np.random.default_rng(seed)
    if kind is Kind.TRANSITIONS:
        return pack_transitions(transitions(rng), **ABOUT)
    if kind is Kind.ROLLOUT:
        return pack_rollout(rollout(rng), **ABOUT)
    if kind is Kind.POLICY:
        return pack_policy(policy(rng), run=RUN)
    return pack_welcome(Welcome(RUN, 'algorithm = "q"\n' * 4, "0.3.0", "sha256:12ab"))


def layout_of(kind):
    return Layout(D, A, TERMS, T if kind is Kind.ROLLOUT else 0)


def read(kind, data):
    """What came out, or why nothing did. No other exception is expected, and none is caught."""
    try:
        if kind is Kind.POLICY:
            return unpack_policy(data, run=RUN), None
        if kind is Kind.WELCOME:
            return unpack_welcome(data), None
        return unpack(data, layout_of(kind), run=RUN, kind=kind), None
    except BadFrame as error:
        return None, error.reason
    except TransportError as error:
        assert kind is Kind.WELCOME
        return None, "version" if "protocol" in str(error) else str(error).split("(")[1].split(":")[0]


# Whether something accepted can be worked with: slow and plain, and written apart from what it judges.


def is_number_list(array, dtype, shape):
    return array.dtype == np.dtype(dtype) and array.shape == shape and all(np.isfinite(array).reshape(-1).tolist())


def is_sound_ended(done):
    k = len(done.lengths)
    flags = (done.standard, done.won, done.timed_out)
    return (
        is_number_list(done.terms, "f8", (k, TERMS))
        and is_number_list(done.lengths, "i8", (k,))
        and all(length > 0 for length in done.lengths.tolist())
        and all(flag.dtype == bool and flag.shape == (k,) and set(flag.view("u1").tolist()) <= {0, 1} for flag in flags)
    )


def is_sound_experience(kind, found):
    header, chunk = found
    rows = header.rows
    fine = header.run == RUN and header.worker and header.sequence > 0 and rows > 0 and 0 <= header.steps <= 10**8
    fine = fine and chunk.steps == header.steps and is_sound_ended(chunk.ended) and chunk.actions.size == rows
    fine = fine and all(0 <= action < A for action in chunk.actions.reshape(-1).tolist())
    fine = fine and all(0.0 <= discount <= 1.0 for discount in chunk.discounts.reshape(-1).tolist())
    if kind is Kind.TRANSITIONS:
        pool = len(chunk.pool)
        return (
            fine
            and is_number_list(chunk.pool, "f4", (pool, D))
            and all(is_number_list(getattr(chunk, name), "f4", (rows,)) for name in ("rewards", "discounts"))
            and all(0 <= i < pool for i in (*chunk.first.tolist(), *chunk.following.tolist()))
            and chunk.first.shape == chunk.following.shape == (rows,)
            and chunk.next_masks.shape == (rows, A)
            and all(any(row) for row in chunk.next_masks.tolist())
        )
    n = rows // T
    numbers = ("log_probs", "values", "next_values", "rewards", "discounts", "continues")
    return (
        fine
        and chunk.actions.shape == (T, n)
        and is_number_list(chunk.observations, "f4", (T, n, D))
        and all(is_number_list(getattr(chunk, name), "f4", (T, n)) for name in numbers)
        and set(chunk.continues.reshape(-1).tolist()) <= {0.0, 1.0}
        and max(chunk.log_probs.reshape(-1).tolist()) <= 1e-3
        and chunk.masks.shape == (T, n, A)
        and all(chunk.masks[t, i, chunk.actions[t, i]] for t in range(T) for i in range(n))
    )


def is_sound(kind, found):
    if kind is Kind.POLICY:
        kinds = (torch.float32, torch.float64, torch.int64)
        return found.version > 0 and found.steps >= 0 and found.tensors and all(
            tensor.dtype in kinds and bool(torch.isfinite(tensor).all()) for tensor in found.tensors.values()
        )  # fmt: skip
    if kind is Kind.WELCOME:
        texts = (found.run, found.config_toml, found.package, found.environment)
        return all(isinstance(text, str) for text in texts) and found.package.isascii() and found.package.isprintable()
    return is_sound_experience(kind, found)


def says(found):
    """Everything that can be told from it, to compare with."""
    if isinstance(found, (np.ndarray, torch.Tensor)):
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

    kind: int
    header: dict
    arrays: dict  # name -> bytes as they lie in the body
    protocol: int = 1
    flags: int | None = None  # None: pack it where it shrinks
    described: bytes | None = None
    body: bytes | None = None
    prefix: dict = field(default_factory=dict)  # lengths that are not true

    def sealed(self):
        described = msgspec.msgpack.encode(self.header) if self.described is None else self.described
        body = (
            b"".join(data + bytes(-len(data) % 8) for data in self.arrays.values()) if self.body is None else self.body
        )
        packed = lz4.block.compress(body, store_size=False)
        flags = int(len(packed) < len(body)) if self.flags is None else self.flags
        stored = packed if flags & 1 else body
        true = {"header": len(described), "stored": len(stored), "plain": len(body)} | self.prefix
        prefix = struct.pack("<4sHBBIQQ", b"SOUL", self.protocol, self.kind, flags, *true.values())
        return with_checksum(prefix, described + bytes(-(36 + len(described)) % 8) + stored)


def filled(data):
    return data + bytes(-len(data) % 8)


def with_checksum(prefix, rest):
    return prefix + struct.pack("<Q", xxhash.xxh3_64_intdigest(prefix + rest)) + rest


def resealed(data):
    """The same bytes with the checksum that they should have."""
    return with_checksum(data[:28], data[36:])


@cache
def apart(data):
    frame = decode(data, kinds=tuple(Kind))
    arrays = {name: array.tobytes() for name, array in frame.arrays.items()}
    return int(frame.kind), msgspec.msgpack.encode(frame.header), arrays


def pieces_of(data):
    kind, header, arrays = apart(data)
    return Pieces(kind, msgspec.msgpack.decode(header), dict(arrays))


# Ways to spoil a frame. Each gets the random source, the kind, and a valid frame.


def flipped_bits(random, kind, data):
    changed = bytearray(data)
    for bit in random.sample(range(8 * len(data)), random.choice((1, 1, 2, 3, 16))):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def truncated(random, kind, data):
    return data[: random.randrange(len(data))]


def extended(random, kind, data):
    return data + random.choice((bytes(8), random.randbytes(random.randrange(1, 50)), data))


def spliced(random, kind, data):
    other = valid_frame(random.choice(list(Kind)), seed=random.randrange(1, 50))
    cut = random.randrange(1, len(data))
    return data[:cut] + other[random.choice((cut, random.randrange(len(other)))) :]


def random_bytes(random, kind, data):
    noise = random.randbytes(random.choice((0, 1, 5, 35, 36, 37, 200, 2000)))
    return random.choice((b"", b"SOUL", b"SOUL\x01\x00", data[:8], data[:28])) + noise


def random_bytes_sealed(random, kind, data):
    return resealed(data[:28] + bytes(8) + random.randbytes(len(data) - 36))


def wild_lengths(random, kind, data):
    pieces = pieces_of(data)
    pieces.flags = random.choice((0, 1, None))
    true = dict(zip(("header", "stored", "plain"), struct.unpack("<IQQ", data[8:28]), strict=True))
    for name in random.sample(list(true), random.randint(1, 3)):
        size = random.choice((*WILD_SIZES, true[name] + 1, true[name] - 1, true[name] + 8))
        pieces.prefix[name] = size % (1 << (32 if name == "header" else 64))
    return pieces.sealed()


def wrong_flags_or_kind(random, kind, data):
    pieces = pieces_of(data)
    if random.random() < 0.5:
        pieces.flags = random.choice((2, 3, 4, 128, 255))
    else:
        pieces.kind = random.choice([number for number in (0, *range(1, 6), 77, 255) if number != kind])
    return pieces.sealed()


def other_protocol(random, kind, data):
    pieces = pieces_of(data)
    pieces.protocol = random.choice((0, 2, 3, 256, 65_535))
    return pieces.sealed()


def other_run(random, kind, data):
    pieces = pieces_of(data)
    pieces.header["run"] = random.choice(("run-2", "run", "Run-1", "run-11", "x"))
    return pieces.sealed()


def wild_header_value(random, kind, data):
    pieces = pieces_of(data)
    pieces.header[random.choice(list(pieces.header))] = random.choice(WILD_VALUES)
    return pieces.sealed()


def missing_or_unknown_header_field(random, kind, data):
    pieces = pieces_of(data)
    if random.random() < 0.5:
        del pieces.header[random.choice(list(pieces.header))]
    else:
        pieces.header["more"] = random.choice(WILD_VALUES)
    return pieces.sealed()


def spoiled_header_bytes(random, kind, data):
    pieces = pieces_of(data)
    described = bytearray(msgspec.msgpack.encode(pieces.header))
    for _ in range(random.choice((1, 1, 2, 5))):
        described[random.randrange(len(described))] = random.randrange(256)
    cut = random.choice((len(described), len(described), random.randrange(len(described))))
    pieces.described = bytes(described[:cut])
    return pieces.sealed()


def wild_shape(random, kind, data):
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


def wrong_dtype(random, kind, data):
    pieces = pieces_of(data)
    entry = random.choice(pieces.header["arrays"])
    before = entry[1]
    entry[1] = random.choice([code for code in (*DTYPES, "O", "<f4", "f2", "V8", "", "S1", 4) if code != before])
    if random.random() < 0.5 and entry[1] in DTYPES and 0 not in entry[2]:  # as many bytes as this dtype takes
        wanted = np.dtype(entry[1]).itemsize * int(np.prod(entry[2]))
        pieces.arrays[entry[0]] = bytes(wanted)
    return pieces.sealed()


def wrong_names(random, kind, data):
    pieces = pieces_of(data)
    table = pieces.header["arrays"]
    entry = random.choice(table)
    choice = random.randrange(4)
    if choice == 0:
        entry[0] = random.choice(("", "Pool", "../x", "x" * 33, "other", "__class__", "a\0", 3))
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


def lying_lz4(random, kind, data):
    pieces = pieces_of(data)
    body = b"".join(map(filled, pieces.arrays.values()))
    stored = random.choice((
        lz4.block.compress(bytes(1 << 20), store_size=False),  # expands to far more than was said
        lz4.block.compress(body + bytes(8), store_size=False),
        lz4.block.compress(body[:-8], store_size=False),
        lz4.block.compress(body)[: random.randrange(1, 20)],
        lz4.block.compress(body, store_size=True),
        random.randbytes(random.randrange(1, 200)),
        b"",
    ))  # fmt: skip
    described = msgspec.msgpack.encode(pieces.header)
    plain = random.choice((len(body), len(body), 255 * len(stored), 1 << 26, 1 << 40))
    prefix = struct.pack("<4sHBBIQQ", b"SOUL", 1, pieces.kind, 1, len(described), len(stored), plain)
    return with_checksum(prefix, described + bytes(-(36 + len(described)) % 8) + stored)


def spoiled_contents(random, kind, data):
    """Any bytes of an array; the frame itself is in order, and what it holds may still be sound."""
    pieces = pieces_of(data)
    name = random.choice(list(pieces.arrays))
    changed = bytearray(pieces.arrays[name])
    for _ in range(random.choice((1, 1, 2, 8))):
        changed[random.randrange(len(changed))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    pieces.arrays[name] = bytes(changed)
    return pieces.sealed()


def wild_number(random, kind, data):
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
    wrong_flags_or_kind,
    other_protocol,
    missing_or_unknown_header_field,
    wild_shape,
    wrong_dtype,
    wrong_names,
    lying_lz4,
)
"""What is spoiled like this is never a frame; the others may happen to make one that is sound."""
SOMETIMES = (spliced, other_run, wild_header_value, spoiled_header_bytes, spoiled_contents, wild_number)


@pytest.mark.parametrize("kind", Kind)
def test_thousands_of_bad_messages(kind):
    source = random.Random(int(kind))
    valid = {data: read(kind, data)[0] for data in (valid_frame(kind, seed) for seed in range(8))}
    assert all(is_sound(kind, found) for found in valid.values())
    said = {data: says(found) for data, found in valid.items()}
    ways = (*ALWAYS, *SOMETIMES)
    reasons, accepted = Counter(), Counter()
    for number in range(MESSAGES):
        way, original = ways[number % len(ways)], source.choice(list(valid))
        data = way(source, kind, original)
        found, reason = read(kind, data)
        reasons[reason] += 1
        if found is None or says(found) == said[original]:
            continue
        assert way not in ALWAYS, f"{way.__name__} was accepted: {data!r}"
        assert is_sound(kind, found), f"{way.__name__} was accepted: {data!r}"
        accepted[way] += 1
    assert reasons.total() - reasons[None] > 10_000
    assert all(reasons[reason] > 100 for reason in ("malformed", "version", "invalid"))
    assert accepted[spoiled_contents] > 10  # what was judged here did come through
    assert kind is Kind.WELCOME or reasons["foreign"] > 100  # a welcome tells which run it is


@pytest.mark.parametrize("kind", Kind)
def test_every_single_bit_and_every_length(kind):
    data = valid_frame(kind)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert read(kind, bytes(changed))[0] is None
    for length in range(len(data)):
        assert read(kind, data[:length])[0] is None
    for other in Kind:
        if other is not kind:
            assert read(other, data)[1] == "invalid"


@pytest.mark.parametrize("kind", [Kind.TRANSITIONS, Kind.ROLLOUT])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_number_but_a_number_in_any_place(kind, value):
    data = valid_frame(kind)
    for name, code, _ in pieces_of(data).header["arrays"]:
        if code[0] != "f":
            continue
        pieces = pieces_of(data)
        true = pieces.arrays[name]
        for at in range(len(true) // np.dtype(code).itemsize):
            array = np.frombuffer(true, f"<{code}").copy()
            array[at] = value
            pieces.arrays[name] = array.tobytes()
            assert read(kind, pieces.sealed())[1] == "invalid"


def claims(kind):
    """Small frames that claim to be huge."""
    valid = valid_frame(kind)
    for size in (1 << 26, 1 << 32, 1 << 50, (1 << 63) - 1):
        for flags in (0, 1):
            for names in (("plain",), ("stored", "plain"), ("header",)):
                pieces = pieces_of(valid)
                pieces.flags = flags
                pieces.prefix = {name: min(size, (1 << 32) - 1) if name == "header" else size for name in names}
                yield pieces.sealed()
        for shape in ([size], [size, size], [0, size, size], [1 << 26] * 4, [0, 1 << 26, 1 << 26, 1 << 26]):
            pieces = pieces_of(valid)
            pieces.header["arrays"][0][2] = shape
            yield pieces.sealed()
            pieces.prefix = {"plain": int(np.prod([1, *shape], dtype=object)) * 4 % (1 << 64)}
            yield pieces.sealed()
    for described in (b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\x91" * 65_000,
                      b"\x89\xa3run\xdb\xff\xff\xff\xff", b"\x89\xa6arrays\xdd\xff\xff\xff\xff"):  # fmt: skip
        pieces = pieces_of(valid)
        pieces.described = described
        yield pieces.sealed()
    for plain in (60 << 20, 64 << 20):
        pieces = pieces_of(valid)
        pieces.header["arrays"] = [["a", "u1", [plain]]]
        pieces.prefix, pieces.flags = {"plain": plain}, 1
        yield pieces.sealed()
    bomb = pieces_of(valid)
    bomb.body, bomb.flags = bytes(32 << 20), 1
    yield bomb.sealed()
    bomb.prefix = {"plain": len(b"".join(bomb.arrays.values()))}
    yield bomb.sealed()


def peak_of(kind, data):
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    found, _ = read(kind, data)
    peak = tracemalloc.get_traced_memory()[1] - before
    return found, peak


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.usefixtures("traced")
def test_claims_take_no_memory(kind):
    number = 0
    for data in claims(kind):
        found, peak = peak_of(kind, data)
        assert found is None
        assert peak < FEW_BYTES
        number += 1
    assert number > 60


@pytest.mark.usefixtures("traced")
def test_memory_is_seen_where_it_is_taken():
    rng = np.random.default_rng(0)
    data = pack_transitions(transitions(rng, 200_000), **ABOUT)
    found, peak = peak_of(Kind.TRANSITIONS, data)
    assert found is not None
    assert peak > FEW_BYTES


@pytest.mark.usefixtures("traced")
def test_weights_that_claim_to_be_huge():
    for entry in ({"shape": [1 << 60], "data_offsets": [0, 1 << 62]}, {"shape": [1 << 40], "data_offsets": [0, 4]},
                  {"shape": [0, 1 << 60, 1 << 60], "data_offsets": [0, 0]}):  # fmt: skip
        table = json.dumps({"a": {"dtype": "F32"} | entry}).encode()
        for length in (len(table), 1 << 40, (1 << 64) - 1):
            pieces = pieces_of(valid_frame(Kind.POLICY))
            stored = length.to_bytes(8, "little") + table + bytes(4)
            pieces.arrays = {"tensors": stored}
            pieces.header["arrays"] = [["tensors", "u1", [len(stored)]]]
            found, peak = peak_of(Kind.POLICY, pieces.sealed())
            assert found is None
            assert peak < FEW_BYTES
