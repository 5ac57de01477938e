"""Shapes checked at the access, with Python integers only: this runs in every gradient step."""

from __future__ import annotations

from torch import Tensor

from soulsgym.errors import MisuseError


def assert_rank(rank: int, **tensors: Tensor) -> None:
    """Refuse a tensor that has not exactly `rank` axes."""
    for name, tensor in tensors.items():
        if tensor.dim() != rank:
            raise MisuseError(f"{name} has the shape {tuple(tensor.shape)}; give a tensor with {rank} axes")


def assert_same_shape(**tensors: Tensor) -> None:
    """Refuse tensors that would have to be stretched to fit each other."""
    names = iter(tensors.items())
    first_name, first = next(names)
    shape = first.shape
    for name, tensor in names:
        if tensor.shape != shape:
            raise MisuseError(
                f"{name} has the shape {tuple(tensor.shape)}; give the shape of {first_name}, {tuple(shape)}"
            )


def assert_one_each(batch: Tensor, **tensors: Tensor) -> None:
    """Refuse tensors that do not hold one number for each row of `batch`."""
    rows = batch.shape[0]
    for name, tensor in tensors.items():
        if tensor.dim() != 1 or tensor.shape[0] != rows:
            raise MisuseError(f"{name} has the shape {tuple(tensor.shape)}; give one number per row, ({rows},)")
