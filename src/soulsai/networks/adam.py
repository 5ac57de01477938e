"""Adam and AdamW over all parameters of a network at once (Kingma and Ba 2015, Loshchilov and Hutter 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from soulsai.errors import RunError
from soulsai.networks.flat import FlatParameters
from soulsgym.compiling import njit

BETA1, BETA2 = 0.9, 0.999
NEVER_ZERO = 1e-6


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _norm(grad: Any) -> Any:
    total = 0.0
    for i in range(len(grad)):
        total += float(grad[i]) * float(grad[i])
    return np.sqrt(total)


@njit(cache=True, fastmath={"contract", "nsz"})
def _step(data: Any, grad: Any, mean: Any, square: Any, scale: float, rate: float, root: float, eps: float,
          kept: float) -> None:  # fmt: skip
    """One pass; in single precision."""
    scale32, rate32, root32, eps32, kept32 = (
        np.float32(scale), np.float32(rate), np.float32(root), np.float32(eps), np.float32(kept)
    )  # fmt: skip
    for i in range(len(data)):
        g = grad[i] * scale32
        m = mean[i] + (g - mean[i]) * np.float32(1.0 - BETA1)
        v = square[i] * np.float32(BETA2) + g * g * np.float32(1.0 - BETA2)
        grad[i], mean[i], square[i] = g, m, v
        data[i] = data[i] * kept32 - rate32 * m / (np.sqrt(v) * root32 + eps32)


class Adam:
    """Improves flat parameters by their gradient; with `decay` weights shrink beside (AdamW)."""

    def __init__(self, flat: FlatParameters, rate: float, *, eps: float, decay: float = 0.0) -> None:
        self._flat, self.rate, self._eps, self._decay = flat, rate, eps, decay
        self._compiled = flat.data.device.type == "cpu"
        self._steps = self.refused = 0
        self._mean, self._square = torch.zeros_like(flat.data), torch.zeros_like(flat.data)

    def step(self, max_norm: float = 0.0) -> float | Tensor:
        """Scale the gradient down to `max_norm` (0 for no limit) and follow it; gives the norm it had.

        One that is not finite is refused: nothing changes by it.
        """
        if self._compiled and not math.isfinite(norm := _norm(self._flat.grad.numpy())):
            self.refused += 1
            return float(norm)
        self._steps += 1
        data, grad, mean, square = self._flat.data, self._flat.grad, self._mean, self._square
        rate, root = self.rate / (1.0 - BETA1**self._steps), 1.0 / math.sqrt(1.0 - BETA2**self._steps)
        kept = 1.0 - self.rate * self._decay
        if self._compiled:
            scale = min(1.0, max_norm / (norm + NEVER_ZERO)) if max_norm > 0.0 else 1.0
            _step(data.numpy(), grad.numpy(), mean.numpy(), square.numpy(), scale, rate, root, self._eps, kept)
            return float(norm)
        length: Tensor = torch.linalg.vector_norm(grad)
        grad.nan_to_num_(0.0, 0.0, 0.0).mul_(length.isfinite())  # without waiting for the device
        if max_norm > 0.0:
            grad.mul_((max_norm / (length + NEVER_ZERO)).clamp_(max=1.0).nan_to_num_(0.0))
        mean.lerp_(grad, 1.0 - BETA1)
        square.mul_(BETA2).addcmul_(grad, grad, value=1.0 - BETA2)
        data.mul_(kept).addcdiv_(mean, square.sqrt().mul_(root).add_(self._eps), value=-rate)
        return length

    def state(self) -> dict[str, Tensor]:
        """What it remembers, under the names that torch has for it."""
        return {"step": torch.tensor(float(self._steps)), "exp_avg": self._mean, "exp_avg_sq": self._square}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state; one that never took a step remembers nothing."""
        for name, own in (("exp_avg", self._mean), ("exp_avg_sq", self._square)):
            if name in state and state[name].shape != own.shape:
                raise RunError(
                    "the optimizer of the checkpoint is of another network; resume with the settings of the run"
                )
            own.copy_(state.get(name, torch.zeros_like(own)))
        self._steps = int(state["step"]) if "step" in state else 0
