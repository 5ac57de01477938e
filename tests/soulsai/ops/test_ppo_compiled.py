"""The compiled loss of PPO is that of `ops/ppo.py`, gradient and all; actions come as often as they should."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from soulsai.ops.masked import entropy_of, log_prob_of, masked_logits
from soulsai.ops.ppo import approximate_kl, clip_fraction, clipped_surrogate, value_loss
from soulsai.ops.ppo_compiled import METRICS, draw_actions, write_slopes

ROWS, ACTIONS = 500, 7


def drawn(seed):
    generator = torch.Generator().manual_seed(seed)

    def numbers(*shape):
        return torch.randn(*shape, generator=generator)

    actions = torch.randint(ACTIONS, (ROWS,), generator=generator)
    masks = (torch.rand(ROWS, ACTIONS, generator=generator) < 0.6).scatter_(1, actions[:, None], True)
    logits, values = 2.0 * numbers(ROWS, ACTIONS), numbers(ROWS)
    log_p = log_prob_of(functional.log_softmax(masked_logits(logits, masks), 1), actions)
    batch = {
        "masks": masks,
        "actions": actions,
        "log_probs": log_p + 0.3 * numbers(ROWS),
        "advantages": numbers(ROWS),
        "values": values + 0.3 * numbers(ROWS),
        "returns": numbers(ROWS),
    }
    return logits, values, batch


def by_torch(logits, values, batch, clip, value_clip):
    log_p = functional.log_softmax(masked_logits(logits, batch["masks"]), 1)
    log_ratio = log_prob_of(log_p, batch["actions"]) - batch["log_probs"]
    policy = clipped_surrogate(log_ratio, batch["advantages"], clip).mean()
    value = value_loss(values, batch["values"], batch["returns"], value_clip).mean()
    entropy = entropy_of(log_p).mean()
    (policy + 0.5 * value - 0.02 * entropy).backward()
    return policy, value, entropy, approximate_kl(log_ratio), clip_fraction(log_ratio, clip)


def compiled(logits, values, batch, part=slice(None), clip=0.2, value_clip=0.0):
    """Metrics and slopes; the rows come in an order of their own."""
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(9))
    index = order[part]
    to_logits, to_values, sums = np.empty((len(index), ACTIONS), "f4"), np.empty((len(index), 1), "f4"), np.zeros(5)
    given = {name: column.numpy() for name, column in batch.items()}
    write_slopes(logits[index].numpy(), values[index, None].numpy(), index.numpy(), given["masks"], given["actions"],
                 given["log_probs"], batch["advantages"][index].numpy(), given["values"], given["returns"],
                 clip, value_clip, 0.5, 0.02, 1.0 / ROWS, to_logits, to_values, sums)  # fmt: skip
    slopes = torch.zeros(ROWS, ACTIONS), torch.zeros(ROWS)
    slopes[0][index], slopes[1][index] = torch.from_numpy(to_logits), torch.from_numpy(to_values[:, 0])
    return sums, slopes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("clip", "value_clip"), [(0.2, 0.0), (0.05, 0.2), (10.0, 5.0)])
def test_it_is_the_loss_of_the_equations(seed, clip, value_clip):
    logits, values, batch = drawn(seed)
    theirs = [one.clone().requires_grad_() for one in (logits, values)]
    found, slopes = compiled(logits, values, batch, clip=clip, value_clip=value_clip)
    expected = by_torch(*theirs, batch, clip, value_clip)
    for name, one, other in zip(METRICS, found, expected, strict=True):
        assert one == pytest.approx(float(other.detach()), abs=1e-5), name
    for one, other in zip(slopes, theirs, strict=True):
        torch.testing.assert_close(one, other.grad, atol=2e-7, rtol=1e-4)


def test_parts_add_up():
    logits, values, batch = drawn(0)
    expected, whole = compiled(logits, values, batch)
    parts = [compiled(logits, values, batch, part) for part in (slice(0, 123), slice(123, ROWS))]
    assert parts[0][0] + parts[1][0] == pytest.approx(expected, rel=1e-6)
    for number in (0, 1):
        torch.testing.assert_close(parts[0][1][number] + parts[1][1][number], whole[number])


def draw(logits, masks, uniform):
    rows = len(logits)
    actions, log_probs = np.zeros(rows, np.int64), np.zeros(rows, np.float32)
    draw_actions(logits, masks, np.broadcast_to(np.float32(uniform), rows).copy(), actions, log_probs)
    return actions, log_probs


def test_actions_come_as_often_as_their_probability_says():
    rows = 100_000
    logits, masks = np.tile(np.float32([0.5, 9.0, -1.0, 2.0]), (rows, 1)), np.tile([True, False, True, True], (rows, 1))
    actions, log_probs = draw(logits, masks, np.random.default_rng(1).random(rows))
    p = np.exp([0.5, -np.inf, -1.0, 2.0])
    p /= p.sum()
    assert np.bincount(actions, minlength=4) / rows == pytest.approx(p, abs=0.005)
    assert np.exp(log_probs) == pytest.approx(p[actions], rel=1e-5)


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(np.float32(1.0), np.float32(0.0))])
def test_a_closed_action_is_never_drawn(uniform):
    logits = np.random.default_rng(2).normal(0.0, 30.0, (500, 6)).astype(np.float32)
    masks = np.random.default_rng(3).random((500, 6)) < 0.3
    masks[:, 4] |= ~masks.any(1)
    actions, log_probs = draw(logits, masks, uniform)
    assert masks[np.arange(500), actions].all()
    assert np.isfinite(log_probs).all()
    assert (log_probs <= 1e-4).all()
