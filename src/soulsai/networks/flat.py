"""All parameters of a network as one tensor, so that optimizer, clipping and target updates are one call each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from soulsgym.errors import MisuseError


class FlatParameters:
    """Makes the parameters of a module views of one tensor, and their gradients views of another.

    Move the module to its device first. Buffers stay where they are. Set gradients to zero here only: the zero_grad of
    the module drops them, and with them the views.
    """

    def __init__(self, module: nn.Module) -> None:
        self._parameters = list(module.parameters())
        self.data: Tensor = torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters])
        self.grad = torch.zeros_like(self.data)
        sizes = [parameter.numel() for parameter in self._parameters]
        for parameter, data, grad in zip(
            self._parameters, torch.split(self.data, sizes), torch.split(self.grad, sizes), strict=True
        ):
            parameter.data = data.view(parameter.shape)
            parameter.grad = grad.view(parameter.shape)

    def zero_grad(self) -> None:
        """Set all gradients to zero, in place."""
        if self._parameters[0].grad is None:
            raise MisuseError("the gradients were dropped; call zero_grad of FlatParameters, not of the module")
        self.grad.zero_()

    def copy_from(self, other: FlatParameters) -> None:
        """Take over the other's parameters."""
        self.data.copy_(other.data)

    def lerp_from(self, other: FlatParameters, tau: float) -> None:
        """Move by the share `tau` towards the other's parameters."""
        self.data.lerp_(other.data, tau)


def flat_data(module: nn.Module) -> Tensor:
    """All parameters of a module as one tensor, whose views they become unless they are that already."""
    parameters = list(module.parameters())
    first, size, flat = parameters[0].detach(), 0, True
    for parameter in parameters:
        same = parameter.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        flat = flat and same and parameter.storage_offset() == first.storage_offset() + size
        size += parameter.numel()
    return first.as_strided((size,), (1,)) if flat else FlatParameters(module).data
