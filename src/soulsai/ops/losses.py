"""How far a value is from its target."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from soulsai.ops.masked import masked_logits
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


def margin_loss(q_tm1: Tensor, a_tm1: Tensor, mask: Tensor, margin: float) -> Tensor:
    """By how much each demonstrated action [B] is not valued `margin` above all others that were open (DQfD).

    max over a of (Q(s, a) + margin where a is another) - Q(s, demonstrated); Hester et al. 2018.
    """
    assert_rank(2, q_tm1=q_tm1)
    assert_same_shape(q_tm1=q_tm1, mask=mask)
    chosen = functional.one_hot(a_tm1, q_tm1.shape[1]).bool()
    wanted = masked_logits(q_tm1 + margin * ~chosen, mask | chosen)
    return wanted.amax(1) - q_tm1[chosen]
