"""A part of a checkpoint: named tensors and arrays as one safetensors file. Nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch

from soulsgym.errors import MisuseError

Values = Mapping[str, "torch.Tensor | npt.NDArray[Any]"]


def part_to_bytes(values: Values) -> bytes:
    """The content of the file; the tensors may be views, on any device, and are not changed."""
    return bytes(safetensors.torch.save({name: _as_tensor(name, value) for name, value in values.items()}))


def _as_tensor(name: str, value: object) -> torch.Tensor:
    """A contiguous copy on the CPU. Copies, for views of one flat tensor are no separate tensors to safetensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True).contiguous()
    if not isinstance(value, (np.ndarray, np.generic)):
        raise MisuseError(f"{name} is a {type(value).__name__}: parts take tensors and arrays, the rest is state")
    if value.dtype.kind not in "biuf" or not value.dtype.isnative or value.dtype.itemsize > 8:
        raise MisuseError(f"{name} has the dtype {value.dtype}: pass a uint8 view of its bytes")
    return torch.from_numpy(np.array(value, order="C", copy=True))


def part_from_bytes(data: bytes) -> dict[str, torch.Tensor]:
    """Read the content of the file back; ValueError if it is none."""
    try:
        return safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from error
