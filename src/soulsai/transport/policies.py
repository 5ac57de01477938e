"""The weights that workers play with, as frames: safetensors inside, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from soulsai.checkpoints.part import part_from_bytes, part_to_bytes
from soulsai.transport.frames import BadFrame, Kind, decode, encode
from soulsgym.errors import MisuseError

DTYPES = (torch.float32, torch.float64, torch.int64)
"""What weights and running statistics are made of."""
LENGTH_BYTES = 8
LARGEST_TABLE = 1 << 20
"""Bytes of the table of tensors in front of them."""


@dataclass(frozen=True)
class Policy:
    """Weights by name, such as "network.xxx" and "twin.xxx"; `steps` are those of the whole run so far.

    `share` is how many rows the next update takes from each worker, if all of them send as many; 0 if that is not so.
    """

    version: int
    steps: int
    tensors: dict[str, torch.Tensor]
    share: int = 0


def pack_policy(policy: Policy, *, run: str) -> bytes:
    """The frame of a policy; the tensors may be views, on any device, and are not changed."""
    if policy.version < 1 or not policy.tensors:
        raise MisuseError(f"version {policy.version} with {len(policy.tensors)} tensors is no policy to play with")
    for name, tensor in policy.tensors.items():
        if tensor.dtype not in DTYPES:
            raise MisuseError(f"{name} has the dtype {tensor.dtype}: policies carry {', '.join(map(str, DTYPES))}")
    stored = np.frombuffer(part_to_bytes(policy.tensors), np.uint8)
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
    tensors = _loaded(stored.tobytes())
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES or not bool(tensor.isfinite().all()):
            raise BadFrame("invalid", f"{name[:80]!r} is no tensor of finite numbers")
    return Policy(header.policy, header.steps, tensors, header.rows)


def _loaded(data: bytes) -> dict[str, torch.Tensor]:
    if not len(data) > LENGTH_BYTES or int.from_bytes(data[:LENGTH_BYTES], "little") > LARGEST_TABLE:
        raise BadFrame("invalid", "the table of tensors is missing or too long")
    try:
        tensors = part_from_bytes(data)
    except (KeyError, ValueError, TypeError, OverflowError, RuntimeError, AssertionError) as error:
        # Beside damage: a dtype that torch does not have, or a shape that no tensor without elements can have.
        raise BadFrame("invalid", f"the tensors cannot be read: {type(error).__name__}: {error}") from error
    if not tensors:
        raise BadFrame("invalid", "it holds no tensors")
    return tensors
