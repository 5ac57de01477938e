"""Frames: what goes in comes out, the layout is the one on the page, and limits hold before memory is taken."""

import platform
import struct
import subprocess
import sys
import threading

import lz4.block
import msgspec
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from soulsai.errors import TransportError
from soulsai.transport.frames import PROTOCOL, BadFrame, Kind, decode, encode, peek, protocol_of
from soulsgym.errors import MisuseError

RNG = np.random.default_rng(5)
DTYPES = ("f4", "f8", "u1", "u2", "i4", "i8", "b1")
ZEROS = lz4.block.compress(bytes(80), store_size=False)


def a_frame(arrays=None, kind=Kind.CHUNK, **header):
    arrays = {"numbers": np.arange(7, dtype=np.float32)} if arrays is None else arrays
    return encode(kind, **({"run": "run-1", "worker": "alice.1.5f3a9c", "sequence": 3} | header), arrays=arrays)


def sealed(prefix, rest):
    """A frame of these pieces with a checksum that matches."""
    return prefix + struct.pack("<Q", xxhash.xxh3_64_intdigest(prefix + rest)) + rest


def by_hand(header, body, *, protocol=PROTOCOL, magic=b"SOUL", length=None):
    described = header if isinstance(header, bytes) else msgspec.msgpack.encode(header)
    prefix = struct.pack("<4sHH", magic, protocol, len(described) if length is None else length)
    return sealed(prefix, described + bytes(-len(described) % 8) + body)


def header_of(*arrays, **changed):
    header = {"kind": "chunk", "run": "r", "worker": "w", "sequence": 1, "policy": 2, "rows": 3, "steps": 4}
    return header | {"packed": False, "arrays": list(arrays)} | changed


def reason_of(data, kind=Kind.CHUNK):
    with pytest.raises(BadFrame) as caught:
        decode(data, kind)
    return caught.value.reason


def test_what_goes_in_comes_out():
    arrays = {"abcdefg"[i]: (RNG.random((3, 5)) * 2).astype(code) for i, code in enumerate(DTYPES)}
    frame = decode(a_frame(arrays, Kind.WELCOME, policy=9, rows=15, steps=1 << 40), Kind.WELCOME)
    assert frame.header.kind is Kind.WELCOME
    assert list(frame.arrays) == list(arrays)
    for name, array in arrays.items():
        assert frame.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(frame.arrays[name], array)
    header = frame.header
    assert (header.run, header.worker, header.sequence) == ("run-1", "alice.1.5f3a9c", 3)
    assert (header.policy, header.rows, header.steps) == (9, 15, 1 << 40)


def test_the_layout_is_the_one_on_the_page():
    numbers, flags = np.array([1.5, -2.0, 0.25], "<f4"), np.array([True, False])
    body = numbers.tobytes() + bytes(4) + flags.tobytes() + bytes(6)
    made = by_hand(header_of(["numbers", "f4", [3]], ["flags", "b1", [2]]), body)
    frame = decode(made, Kind.CHUNK)
    np.testing.assert_array_equal(frame.arrays["numbers"], numbers)
    np.testing.assert_array_equal(frame.arrays["flags"], flags)
    ours = encode(Kind.CHUNK, run="r", worker="w", sequence=1, policy=2, rows=3, steps=4,
                  arrays={"numbers": numbers, "flags": flags})  # fmt: skip
    assert ours == made


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 5), max_size=4)), max_size=8), st.booleans())
def test_any_shapes(specs, is_zero):
    shapes = [tuple(shape) or (1,) for _, shape in specs]
    drawn = RNG.integers(0, 2, 5**4) * (not is_zero)
    arrays = {f"a{'b' * i}": np.resize(drawn, shape).astype(code)
              for i, ((code, _), shape) in enumerate(zip(specs, shapes, strict=True))}  # fmt: skip
    found = decode(a_frame(arrays), Kind.CHUNK).arrays
    assert {name: (array.dtype, array.shape) for name, array in found.items()} == {
        name: (array.dtype, array.shape) for name, array in arrays.items()
    }
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_arrays_that_are_no_plain_memory():
    grid = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    arrays = {"turned": grid.T, "sparse": grid[::2, ::3], "big_endian": grid.astype(">f4")}
    found = decode(a_frame(arrays), Kind.CHUNK).arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_arrays_cannot_be_written_to_and_are_aligned():
    arrays = {"a": np.ones(3, np.uint8), "b": np.ones(3), "c": np.ones(1, np.bool_), "d": np.ones(5, np.int64),
              "e": np.empty((0, 3), np.float32)}  # fmt: skip
    for data in (a_frame(arrays), a_frame(arrays | {"zeros": np.zeros(10_000)})):
        for array in decode(data, Kind.CHUNK).arrays.values():
            assert not array.flags.writeable
            assert array.size == 0 or array.ctypes.data % 8 == 0


def test_what_does_not_shrink_is_not_packed_nor_copied():
    noise = RNG.random(5000)
    data = a_frame({"noise": noise})
    assert not peek(data).packed
    array = decode(data, Kind.CHUNK).arrays["noise"]
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))


def test_what_shrinks_is_packed():
    data = a_frame({"zeros": np.zeros(5000)})
    assert peek(data).packed
    assert len(data) < 1000
    np.testing.assert_array_equal(decode(data, Kind.CHUNK).arrays["zeros"], np.zeros(5000))


def test_frames_do_not_share_memory():
    first, second = (a_frame({"noise": RNG.random(100)}) for _ in range(2))
    kept = decode(first, Kind.CHUNK).arrays["noise"].copy()
    a_frame({"noise": RNG.random(100)})
    np.testing.assert_array_equal(decode(first, Kind.CHUNK).arrays["noise"], kept)
    assert not np.array_equal(decode(second, Kind.CHUNK).arrays["noise"], kept)


def test_threads_do_not_disturb_each_other():
    wrong = []

    def work(number):
        array = np.full(50_000, number, np.int64)
        for _ in range(50):
            if not np.array_equal(decode(a_frame({"a": array}), Kind.CHUNK).arrays["a"], array):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_every_flipped_bit_is_noticed():
    data = a_frame()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert reason_of(bytes(flipped)) == ("version" if bit // 8 in (4, 5) else "malformed")


def test_every_length_but_the_right_one_is_noticed():
    data = a_frame()
    for length in range(len(data)):
        assert reason_of(data[:length]) == "malformed"
    for more in (b"\0", bytes(8), data):
        assert reason_of(data + more) == "malformed"


def test_another_protocol():
    data = by_hand(header_of(), b"", protocol=PROTOCOL + 1)
    assert reason_of(data) == "version"
    assert reason_of(by_hand(header_of(), b"", protocol=PROTOCOL - 1)) == "version"
    assert reason_of(b"SOUL\x07\x00whatever comes later") == "version"
    assert (protocol_of(data), protocol_of(b"SOUL"), protocol_of(b"GET / HTTP/1.1")) == (PROTOCOL + 1, None, None)


def test_another_kind():
    assert reason_of(a_frame(kind=Kind.POLICY)) == "invalid"
    assert reason_of(a_frame(kind=Kind.WELCOME), Kind.POLICY) == "invalid"
    assert reason_of(by_hand(header_of(kind="other"), b"")) == "malformed"


@pytest.mark.parametrize(
    "data",
    [
        by_hand(header_of(["a", "f4", [3]], packed=2), bytes(16)),
        by_hand(header_of(["a", "f4", [3]]), bytes(24)),
        by_hand(header_of(["a", "f4", [3]]), bytes(8)),
        by_hand(header_of(["a", "f4", [3]]), bytes(12)),
        by_hand(header_of(["a", "b1", [3]]), b"\0\1\2" + bytes(5)),
        by_hand(header_of(["a", "f4", [3]]), bytes(16), length=0),
        by_hand(header_of(["a", "f4", [3]]), bytes(16), length=50),
        by_hand(header_of(["a", "f4", [3]]), bytes(16), length=65_535),
        by_hand(header_of(["a", "f4", [6]]), bytes(16)),
        by_hand(header_of(["a", "u1", [80]], packed=True), ZEROS + bytes(8)),
        by_hand(header_of(["a", "u1", [80]], packed=True), ZEROS[:-1]),
        by_hand(header_of(["a", "u1", [80]], packed=True), b""),
        by_hand(header_of(["a", "u1", [80]]), ZEROS),
        by_hand(header_of(["a", "f4", [2]], ["a", "f4", [2]]), bytes(16)),
        by_hand(header_of(["a", "O", [2]]), bytes(16)),
        by_hand(header_of(["a", "<f4", [2]]), bytes(8)),
        by_hand(header_of(["A b", "f4", [2]]), bytes(8)),
        by_hand(header_of(["a", "f4", [-2]]), bytes(8)),
        by_hand(header_of(["a", "f4", [2, 1, 1, 1, 1]]), bytes(8)),
        by_hand(header_of(["a", "f4", [2.0]]), bytes(8)),
        by_hand(header_of(["a", "f4", [2], "more"]), bytes(8)),
        by_hand(header_of(["a", "f4", [1 << 62, 4]]), b""),
        by_hand(header_of(["a", "f4", [1 << 26, 1 << 26, 1 << 26, 1 << 26]]), b""),
        by_hand(header_of(["a", "f4", [0, 1 << 26, 1 << 26, 1 << 26]]), b""),
        by_hand(header_of(*[["a" + "b" * i, "f4", [0]] for i in range(33)]), b""),
        by_hand(header_of(run=""), b""),
        by_hand(header_of(run="a\n"), b""),
        by_hand(header_of(run="a" * 81), b""),
        by_hand(header_of(worker="../x"), b""),
        by_hand(header_of(sequence=-1), b""),
        by_hand(header_of(rows=1 << 63), b""),
        by_hand(header_of(rows=True), b""),
        by_hand(header_of(steps="4"), b""),
        by_hand(header_of(more=1), b""),
        by_hand({"run": "r"}, b""),
        by_hand(b"", b""),
        by_hand(b"\xc1", b""),
        by_hand(b"\x91" * 60_000, b""),
        by_hand(b"\xdf\xff\xff\xff\xff", b""),
        by_hand(b"\x81\xa3run\xa2\xff\xff", b""),
        by_hand(msgspec.msgpack.encode(header_of()) + b"\0", b""),
        by_hand(msgspec.msgpack.encode(header_of(run="r" * 80)) + bytes(4096), b""),
        by_hand(header_of(["a", "u1", [16]], packed=True), lz4.block.compress(bytes(8), store_size=False)),
        by_hand(header_of(["a", "u1", [8]], packed=True), lz4.block.compress(bytes(80), store_size=False)),
        by_hand(header_of(["a", "u1", [800]], packed=True), bytes(3)),
        by_hand(header_of(packed=True), b"", magic=b"LUOS"),
    ],
)  # fmt: skip
def test_lies_under_a_checksum_that_matches(data):
    assert reason_of(data) == "malformed"


def test_too_large_to_send():
    with pytest.raises(TransportError, match=r"64\.0 MiB is larger than the 64 MiB that can travel; lower"):
        a_frame({"a": np.broadcast_to(np.uint8(0), ((64 << 20) + 1,))})
    noise = np.frombuffer(np.random.default_rng(0).bytes(17 << 20), np.uint8)
    with pytest.raises(TransportError, match=r"17\.0 MiB is larger than the 16 MiB that can travel"):
        a_frame({"a": noise})
    assert len(decode(a_frame({"a": noise}, Kind.POLICY), Kind.POLICY).arrays["a"]) == len(noise)


def test_too_large_to_read():
    described = header_of(["a", "u1", [17 << 20]])
    body = np.random.default_rng(0).bytes(17 << 20)
    assert reason_of(by_hand(described, body)) == "malformed"
    assert decode(by_hand(described | {"kind": "policy"}, body), Kind.POLICY).header.kind is Kind.POLICY


def test_arrays_that_are_too_large_together():
    body = bytes(70 << 20)
    described = header_of(["a", "u1", [30 << 20]], ["b", "u1", [40 << 20]], packed=True)
    data = by_hand(described, lz4.block.compress(body, store_size=False))
    assert len(data) < 1 << 20
    with pytest.raises(BadFrame, match="bytes cannot become"):
        decode(data, Kind.CHUNK)


@pytest.mark.parametrize(
    "wrong",
    [
        {"arrays": {"a": np.array([None, {}])}},
        {"arrays": {"a": np.zeros(3, np.float16)}},
        {"arrays": {"a": np.zeros(3, "M8[s]")}},
        {"arrays": {"Name": np.zeros(3)}},
        {"arrays": {"a": np.zeros((1, 1, 1, 1, 1))}},
        {"run": "a b"},
        {"run": ""},
        {"sequence": -1},
    ],
)
def test_misuse(wrong):
    with pytest.raises(MisuseError):
        a_frame(**({"arrays": {}} | wrong))


COUNT_FAULTS = """
import resource
from soulsai.transport.frames import Kind, decode, encode, keep_freed_memory
import numpy as np
data = encode(Kind.CHUNK, run="r", arrays={"a": np.zeros(1 << 20)})
assert keep_freed_memory()
for _ in range(3):
    decode(data, Kind.CHUNK)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    decode(data, Kind.CHUNK)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_unpacking_again_takes_no_fresh_pages():
    done = subprocess.run([sys.executable, "-c", COUNT_FAULTS], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 2048  # of 20480 that the bodies have
