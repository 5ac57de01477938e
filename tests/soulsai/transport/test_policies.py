"""Policies: the same weights come out, whole, or nothing does."""

import json

import numpy as np
import pytest
import safetensors.torch
import torch

from soulsai.transport.frames import BadFrame, Kind, decode, encode
from soulsai.transport.policies import Policy, arrays_of, pack_policy, unpack_policy
from soulsgym.errors import MisuseError


def a_policy(version=4):
    torch.manual_seed(0)
    flat = torch.randn(12)
    return Policy(
        version,
        steps=1 << 40,
        tensors=arrays_of(
            {
                "network.weight": flat[:6].reshape(2, 3).T,
                "network.bias": flat[6:],
                "network.scale": flat[4:8],
                "twin.mean": torch.randn(3, dtype=torch.float64),
                "twin.count": torch.tensor(7.0, dtype=torch.float64),
                "twin.updates": torch.tensor([1, -2]),
            }
        ),
    )


def frame_of(data, *, run="r", policy=1, **arrays):
    """A frame around bytes that may be no tensors."""
    return encode(Kind.POLICY, run=run, policy=policy, arrays={"tensors": np.frombuffer(data, np.uint8)} | arrays)


def raw(table, body=b"", length=0):
    described = json.dumps(table).encode().ljust(length)
    return len(described).to_bytes(8, "little") + described + body


def reason_of(data, run="r"):
    with pytest.raises(BadFrame) as caught:
        unpack_policy(data, run=run)
    return caught.value.reason


def test_the_same_weights_come_out():
    policy = a_policy()
    found = unpack_policy(pack_policy(policy, run="r"), run="r")
    assert (found.version, found.steps) == (4, 1 << 40)
    assert found.tensors.keys() == policy.tensors.keys()
    for name, tensor in policy.tensors.items():
        assert (found.tensors[name].dtype, found.tensors[name].shape) == (tensor.dtype, tensor.shape)
        assert np.array_equal(found.tensors[name], tensor)


def test_packing_takes_a_copy_at_that_moment():
    policy = a_policy()
    bias = policy.tensors["network.bias"]
    before = bias.copy()
    data = pack_policy(policy, run="r")
    bias[:] = 0.0
    assert np.array_equal(unpack_policy(data, run="r").tensors["network.bias"], before)


def test_a_network_plays_on_with_what_came():
    source, target = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    found = unpack_policy(pack_policy(Policy(1, 0, arrays_of(source.state_dict())), run="r"), run="r")
    target.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in found.tensors.items()})
    x = torch.randn(2, 5)
    assert torch.equal(source(x), target(x))


def test_weights_are_not_packed_and_zeros_are():
    assert pack_policy(Policy(1, 0, {"w": np.random.default_rng(0).normal(size=50_000)}), run="r")[7] == 0
    assert len(pack_policy(Policy(1, 0, {"w": np.zeros(50_000)}), run="r")) < 5000


def test_half_precision_takes_half_the_bytes_and_keeps_three_digits():
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(100, 500)).astype(np.float32), "mean": rng.normal(size=9), "n": np.array([3])}
    whole, half = (pack_policy(Policy(1, 0, weights), run="r", half=half) for half in (False, True))
    assert len(half) < 0.51 * len(whole)
    found = unpack_policy(half, run="r").tensors
    assert found["w"].dtype == np.float32
    assert np.abs(found["w"] - weights["w"]).max() < 1e-3 * np.abs(weights["w"]).max()
    assert all(np.array_equal(found[name], weights[name]) for name in ("mean", "n"))


@pytest.mark.parametrize("value", [7e4, -7e4, float("nan"), float("inf")])
def test_what_half_precision_cannot_hold_stays_as_it_is(value):
    data = pack_policy(Policy(1, 0, {"w": np.array([1.0, value], np.float32)}), run="r", half=True)
    if np.isfinite(value):
        assert unpack_policy(data, run="r").tensors["w"].tolist() == [1.0, value]
    else:
        assert reason_of(data) == "invalid"


def test_another_run():
    assert reason_of(pack_policy(a_policy(), run="other")) == "foreign"


def test_another_kind():
    assert reason_of(encode(Kind.CHUNK, run="r", policy=1, arrays={})) == "invalid"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers(value):
    for name in ("network.bias", "twin.mean"):
        policy = a_policy()
        policy.tensors[name][1] = value
        assert reason_of(pack_policy(policy, run="r")) == "invalid"


def test_no_version():
    data = decode(pack_policy(a_policy(), run="r"), Kind.POLICY).arrays["tensors"].tobytes()
    assert unpack_policy(frame_of(data), run="r").version == 1
    assert reason_of(frame_of(data, policy=0)) == "invalid"


def test_other_arrays():
    stored = decode(pack_policy(a_policy(), run="r"), Kind.POLICY).arrays["tensors"]
    assert reason_of(frame_of(stored.tobytes(), more=np.zeros(1))) == "invalid"
    numbers = np.frombuffer(safetensors.torch.save({"a": torch.zeros(8)}), np.int64)
    assert reason_of(encode(Kind.POLICY, run="r", policy=1, arrays={"tensors": numbers})) == "invalid"
    assert unpack_policy(frame_of(numbers.tobytes()), run="r").tensors["a"].tolist() == [0.0] * 8
    for arrays in ({}, {"weights": stored}, {"tensors": stored[None]}, {"tensors": stored.astype(np.int64)}):
        assert reason_of(encode(Kind.POLICY, run="r", policy=1, arrays=arrays)) == "invalid"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(8),
        b"\xff" * 64,
        (1 << 40).to_bytes(8, "little") + bytes(64),
        ((1 << 20) + 1).to_bytes(8, "little") + bytes(1 << 21),
        raw({}),
        raw([1]),
        raw({"a": 1}),
        raw({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        raw({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(8)),
        raw({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
        raw({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
        raw({"a": {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 4]}}, bytes(4)),
        raw({"a": {"dtype": "F32", "shape": [0, 1 << 62, 1 << 62], "data_offsets": [0, 0]}}),
        raw({"a": {"dtype": "F32", "shape": [1 << 30], "data_offsets": [0, 1 << 32]}}, bytes(4)),
        raw({"a": {"dtype": "O", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
        raw({"a": {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)),
        safetensors.torch.save({"a": torch.ones(3, dtype=torch.bool)}),
        safetensors.torch.save({"a": torch.ones(3, dtype=torch.bfloat16)}),
        safetensors.torch.save({"a": torch.ones(3, dtype=torch.complex64)}),
    ],
)
def test_bytes_that_are_no_weights(data):
    assert reason_of(frame_of(data)) == "invalid"


def test_a_table_that_is_too_long():
    table = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    assert list(unpack_policy(frame_of(raw(table, bytes(4), 1 << 20)), run="r").tensors) == ["a"]
    assert reason_of(frame_of(raw(table, bytes(4), (1 << 20) + 1))) == "invalid"


@pytest.mark.parametrize(
    "policy",
    [Policy(0, 1, {"a": np.zeros(1)}), Policy(-3, 1, {"a": np.zeros(1)}), Policy(1, 1, {}),
     Policy(1, -1, {"a": np.zeros(1)}), Policy(1, 1, {"a": np.zeros(1, np.float16)})],
)  # fmt: skip
def test_misuse(policy):
    with pytest.raises(MisuseError):
        pack_policy(policy, run="r")
