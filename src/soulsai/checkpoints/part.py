"""A part of a checkpoint: named tensors and arrays as one safetensors file. Nothing is ever unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch

from soulsgym.errors import MisuseError

Values = Mapping[str, "torch.Tensor | npt.NDArray[Any]"]

TORCH_KINDS = frozenset(("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"))
"""NumPy dtypes that safetensors and torch know; others are stored as bytes with the dtype beside them."""
BYTE_KINDS = frozenset("biufcSUmM")
"""Kinds of NumPy dtypes that are plain bytes: no objects, no records."""
HEADER_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Part:
    """What was read: tensors, and the true dtype and shape of those that are stored as bytes."""

    tensors: dict[str, torch.Tensor]
    disguised: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The tensors as arrays of their own memory, with the dtypes and shapes they were saved with."""
        return {name: self._array(name, tensor) for name, tensor in self.tensors.items()}

    def _array(self, name: str, tensor: torch.Tensor) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = tensor.numpy().copy()
        if name not in self.disguised:
            return array
        dtype, shape = self.disguised[name]
        return array.view(dtype).reshape(shape) if array.size else np.empty(shape, dtype)


def part_to_bytes(values: Values) -> bytes:
    """The content of the file; the tensors may be views, on any device, and are not changed."""
    tensors: dict[str, torch.Tensor] = {}
    disguised: dict[str, list[Any]] = {}
    for name, value in values.items():
        array = _as_array(name, value)
        if isinstance(array, torch.Tensor):
            tensors[name] = array
        elif array.dtype.str[1:] in TORCH_KINDS and array.dtype.isnative:
            tensors[name] = torch.from_numpy(array)
        else:
            tensors[name] = torch.from_numpy(array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8))
            disguised[name] = [array.dtype.str, list(array.shape)]
    return bytes(safetensors.torch.save(tensors, {"disguised": json.dumps(disguised)}))


def _as_array(name: str, value: object) -> torch.Tensor | npt.NDArray[Any]:
    """A contiguous copy on the CPU. Copies, for views of one flat tensor are no separate tensors to safetensors."""
    if isinstance(value, torch.Tensor):
        copied = value.detach().to("cpu", copy=True).contiguous()
        return copied if copied.dtype != torch.complex128 else copied.numpy()
    if not isinstance(value, (np.ndarray, np.generic)):
        raise MisuseError(f"{name} is a {type(value).__name__}: parts take tensors and arrays, the rest is state")
    if value.dtype.kind not in BYTE_KINDS:
        raise MisuseError(f"{name} has the dtype {value.dtype}: pass a uint8 view of its bytes")
    return np.array(value, order="C", copy=True)


def part_from_bytes(data: bytes) -> Part:
    """Read the content of the file back; ValueError if it is none."""
    try:
        tensors = safetensors.torch.load(data)
        end = HEADER_LENGTH_BYTES + int.from_bytes(data[:HEADER_LENGTH_BYTES], "little")
        notes = json.loads(json.loads(data[HEADER_LENGTH_BYTES:end])["__metadata__"]["disguised"])
    except (safetensors.SafetensorError, KeyError) as error:
        raise ValueError(str(error)) from error
    return Part(tensors, {name: (np.dtype(kind), tuple(shape)) for name, (kind, shape) in notes.items()})
