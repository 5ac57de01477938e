"""The weights that workers play with, as frames: safetensors inside, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from soulsai.transport.frames import BadFrame, Kind, decode, encode
from soulsgym.errors import MisuseError

if TYPE_CHECKING:
    import torch

Value = TypeVar("Value")
Arrays = Mapping[str, npt.NDArray[Any]]
DTYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.int64))
"""What weights and running statistics are made of."""
HALF = np.dtype(np.float16)
LENGTH_BYTES = 8
LARGEST_TABLE = 1 << 20
"""Bytes of the table of tensors in front of them."""


def arrays_of(tensors: Mapping[str, torch.Tensor]) -> Arrays:
    """Tensors of torch as a policy holds them; on the processor they go on changing with the tensors."""
    return {name: tensor.numpy(force=True) for name, tensor in tensors.items()}


@dataclass(frozen=True)
class Policy:
    """Weights by name, such as "network.xxx" and "twin.xxx"; `steps` are those of the whole run so far.

    `share` is how many rows the next update takes from each worker, if all of them send as many; 0 if that is not so.
    """

    version: int
    steps: int
    tensors: Arrays
    share: int = 0


def pack_policy(policy: Policy, *, run: str, half: bool = False) -> bytes:
    """The frame of a policy, with what its arrays hold at this moment; they may be views and are not changed.

    With `half`, numbers of single precision are sent in half precision where they fit.
    """
    if policy.version < 1 or not policy.tensors:
        raise MisuseError(f"version {policy.version} with {len(policy.tensors)} tensors is not a usable policy")
    for name, tensor in policy.tensors.items():
        if tensor.dtype not in DTYPES:
            raise MisuseError(f"{name} has the dtype {tensor.dtype}: policies carry {', '.join(map(str, DTYPES))}")
    contiguous = {
        name: np.asarray(_halve(array) if half else array, order="C") for name, array in policy.tensors.items()
    }
    stored = np.frombuffer(safetensors.numpy.save(contiguous), np.uint8)
    return encode(Kind.POLICY, run=run, policy=policy.version, steps=policy.steps, rows=policy.share,
                  arrays={"tensors": stored})  # fmt: skip


def unpack_policy(data: bytes, *, run: str) -> Policy:
    """The policy in a frame of this run; BadFrame if it is none, or holds numbers that are not finite."""
    frame = decode(data, Kind.POLICY)
    header = frame.header
    if header.run != run:
        raise BadFrame("foreign", f"it belongs to run {header.run}, this is {run}")
    stored = frame.arrays.get("tensors")
    if stored is None or len(frame.arrays) > 1 or stored.dtype != np.uint8 or stored.ndim != 1:
        raise BadFrame("invalid", "not the array of a policy")
    if not header.policy:
        raise BadFrame("invalid", "it has no version")
    tensors = _load_tensors(stored.tobytes())
    for name, tensor in tensors.items():
        if tensor.dtype not in (*DTYPES, HALF) or not np.isfinite(tensor).all():
            raise BadFrame("invalid", f"{name[:80]!r} is not a tensor of finite numbers")
    whole = {name: array.astype(np.float32) if array.dtype == HALF else array for name, array in tensors.items()}
    return Policy(header.policy, header.steps, whole, header.rows)


def _halve(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype != np.float32 or (array.size and not np.abs(array).max() < np.finfo(HALF).max):
        return array  # too large for it, or not a number, which whoever reads it refuses
    return array.astype(HALF)


def weights_of(name: str, weights: Mapping[str, Value]) -> dict[str, Value]:
    """Those of one network, of weights by network and name."""
    return {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}


def _load_tensors(data: bytes) -> Arrays:
    if not len(data) > LENGTH_BYTES or int.from_bytes(data[:LENGTH_BYTES], "little") > LARGEST_TABLE:
        raise BadFrame("invalid", "the table of tensors is missing or too long")
    try:
        tensors = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, OverflowError, RuntimeError) as error:
        # Beside damage: a dtype that NumPy does not have, or a shape that no array without elements can have.
        raise BadFrame("invalid", f"the tensors cannot be read: {type(error).__name__}: {error}") from error
    if not tensors:
        raise BadFrame("invalid", "it holds no tensors")
    return tensors
