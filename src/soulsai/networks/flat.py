"""All parameters of a network as one tensor, so that optimizer, clipping and target updates are one call each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from soulsgym.errors import MisuseError

NEVER_ZERO = 1e-6


class FlatParameters:
    """Makes the parameters of a module views of one tensor, and their gradients views of another.

    Move the module to its device first. Buffers stay where they are. Optimize `parameter`, and set gradients to zero
    here only: the zero_grad of module and optimizer drop them, and with them the views.
    """

    def __init__(self, module: nn.Module) -> None:
        self._parameters = list(module.parameters())
        self.data = torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters])
        self.grad = torch.zeros_like(self.data)
        self.parameter = nn.Parameter(self.data)
        self.parameter.grad = self.grad
        sizes = [parameter.numel() for parameter in self._parameters]
        for parameter, data, grad in zip(
            self._parameters, torch.split(self.data, sizes), torch.split(self.grad, sizes), strict=True
        ):
            parameter.data = data.view(parameter.shape)
            parameter.grad = grad.view(parameter.shape)

    def zero_grad(self) -> None:
        """Set all gradients to zero, in place."""
        if self.parameter.grad is None or self._parameters[0].grad is None:
            raise MisuseError(
                "the gradients were dropped; call zero_grad of FlatParameters, not of module or optimizer"
            )
        self.grad.zero_()

    def clip_(self, max_norm: float) -> Tensor:
        """Scale the gradient down to `max_norm` (0 for no limit); gives the norm it had."""
        norm: Tensor = torch.linalg.vector_norm(self.grad)
        if max_norm > 0.0:
            self.grad.mul_((max_norm / (norm + NEVER_ZERO)).clamp_(max=1.0))
        return norm

    def copy_from(self, other: FlatParameters) -> None:
        """Take over the other's parameters."""
        self.data.copy_(other.data)

    def lerp_from(self, other: FlatParameters, tau: float) -> None:
        """Move by the share `tau` towards the other's parameters."""
        self.data.lerp_(other.data, tau)
