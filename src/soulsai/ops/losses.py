"""How far a value is from its target."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from soulsai.ops.shapes import assert_rank, assert_same_shape
from soulsgym.errors import MisuseError


def td_loss(q_a_tm1: Tensor, target: Tensor, kind: str = "huber") -> Tensor:
    """Loss of each sample [B]: huber (half the square up to 1, then straight) or mse (the square)."""
    assert_rank(1, q_a_tm1=q_a_tm1)
    assert_same_shape(q_a_tm1=q_a_tm1, target=target)
    if kind == "huber":
        return functional.huber_loss(q_a_tm1, target.detach(), reduction="none")
    if kind == "mse":
        return functional.mse_loss(q_a_tm1, target.detach(), reduction="none")
    raise MisuseError(f"loss {kind!r} is not known; give 'huber' or 'mse'")
