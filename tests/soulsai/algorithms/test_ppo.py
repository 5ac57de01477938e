"""The PPO learner beside a plain implementation, its schedules, and that it learns at all."""

import copy

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from torch.nn import functional

from soulsai.acting.rollouts import ROLLOUT, RolloutActor
from soulsai.acting.world import sizes_of
from soulsai.algorithms.ppo.config import PPOConfig
from soulsai.algorithms.ppo.learner import PPOLearner
from soulsai.config.schema import Config, NetworkConfig, RunConfig
from soulsai.experience import Chunk, Ended, Schema

T, N, SIZE, ACTIONS = 5, 4, 3, 4
ONE_PASS = PPOConfig(epochs=1, minibatch=T * N, learning_rate=0.01, entropy=0.02, final_entropy=0.02, gamma=0.9)


STEPS = 1000


def made(ppo=ONE_PASS, *, progress=0.0, threads=1, sizes=(SIZE, ACTIONS, 1, T), hidden=(8,)):
    """A learner of a run that is so far done."""
    config = Config(ppo=ppo, network=NetworkConfig(hidden=hidden), run=RunConfig(steps=STEPS, seed=1, threads=threads))
    learner = PPOLearner(config, Schema(ROLLOUT, *sizes), torch.device("cpu"))
    learner.counters.steps = int(STEPS * progress)
    return learner


def random_rollout():
    """Everything drawn, with ends of both kinds and some closed actions; the policy that acted was another one."""
    generator = torch.Generator().manual_seed(3)
    columns = Schema(ROLLOUT, SIZE, ACTIONS, 1, T).empty(T * N)
    rollout = {name: torch.from_numpy(column) for name, column in columns.items()}
    for name in ("observations", "values", "next_values", "rewards"):
        rollout[name].normal_(generator=generator)
    rollout["masks"][:] = torch.rand(T, N, ACTIONS, generator=generator) < 0.7
    rollout["actions"][:] = torch.randint(ACTIONS, (T, N), generator=generator)
    rollout["masks"].scatter_(2, rollout["actions"][..., None], True)
    rollout["log_probs"][:] = -torch.rand(T, N, generator=generator) - 0.5
    rollout["continues"][:] = torch.rand(T, N, generator=generator) < 0.7
    rollout["discounts"][:] = 0.9
    ends = ~rollout["continues"]
    rollout["discounts"][ends] = torch.tensor([0.0, 0.9]).repeat(T * N)[: int(ends.sum())]  # over, and cut off
    return rollout


def learned(learner, *rollouts):
    """What the learner says of one update with all of these."""
    for rollout in rollouts:
        columns = {name: tensor.numpy() for name, tensor in rollout.items()}
        learner.take(Chunk(columns, Ended.join([], 1), 3 * T * N))
    return {name: float(value) for name, value in learner.update(1.0).items()}


def plain_advantages(rollout, lam):
    """By the definition, backwards, one number at a time."""
    advantages = np.zeros((T, N))
    for n in range(N):
        later = 0.0
        for t in reversed(range(T)):
            discount = float(rollout["discounts"][t, n])
            delta = float(rollout["rewards"][t, n]) + discount * float(rollout["next_values"][t, n])
            delta -= float(rollout["values"][t, n])
            later = delta + discount * lam * float(rollout["continues"][t, n]) * later
            advantages[t, n] = later
    return torch.tensor(advantages, dtype=torch.float32)


def plain_update(network, rollout, config):
    """One Adam step on the whole rollout, written straight down; the losses, and the norm of the gradient."""
    advantages = plain_advantages(rollout, config.lam)
    returns = (advantages + rollout["values"]).flatten()
    weight = advantages.flatten()
    weight = (weight - weight.mean()) / (weight.std(correction=0) + 1e-8)
    logits, values = network(rollout["observations"].flatten(0, 1))
    logits = logits.masked_fill(~rollout["masks"].flatten(0, 1), -1e9)
    every = functional.log_softmax(logits, 1)
    taken = every.gather(1, rollout["actions"].flatten()[:, None])[:, 0]
    log_ratio = taken - rollout["log_probs"].flatten()
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy = -torch.min(ratio * weight, clipped * weight).mean()
    value = 0.5 * ((values - returns) ** 2).mean()
    entropy = torch.distributions.Categorical(logits=logits).entropy().mean()
    optimizer = torch.optim.Adam(network.parameters(), config.learning_rate, eps=config.adam_eps)
    (policy + config.value * value - config.entropy * entropy).backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), config.gradient_norm)
    optimizer.step()
    metrics = {
        "loss/policy": policy,
        "loss/value": value,
        "policy/entropy": entropy,
        "policy/kl": (ratio - 1 - log_ratio).mean(),
        "policy/clip_fraction": ((ratio - 1).abs() > config.clip).float().mean(),
        "gradient/norm": norm,
    }
    return {name: float(value.detach()) for name, value in metrics.items()}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_update_is_the_plain_one(threads):
    learner, rollout = made(threads=threads), random_rollout()
    network = copy.deepcopy(learner.network)
    expected = plain_update(network, rollout, ONE_PASS)
    found = learned(learner, rollout)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6, rel=1e-5)
    assert learner.counters.updates == 1
    for (name, mine), its in zip(learner.network.named_parameters(), network.parameters(), strict=True):
        assert mine.detach().numpy() == pytest.approx(its.detach().numpy(), abs=1e-6), name


def test_explained_variance():
    learner, rollout = made(), random_rollout()
    advantages = plain_advantages(rollout, ONE_PASS.lam)
    returns = advantages + rollout["values"]
    expected = 1.0 - float(advantages.var() / returns.var())
    assert learned(learner, rollout)["value/explained_variance"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("progress", "rate", "entropy"), [(0.0, 0.01, 0.9), (0.5, 0.006, 0.5), (1.0, 0.002, 0.1)])
def test_rate_and_entropy_go_down_in_a_line(progress, rate, entropy):
    learner = made(replace(ONE_PASS, final_learning_rate=0.2, entropy=0.9, final_entropy=0.1), progress=progress)
    network = copy.deepcopy(learner.network)
    expected = plain_update(network, random_rollout(), replace(ONE_PASS, learning_rate=rate, entropy=entropy))
    found = learned(learner, random_rollout())
    assert found["learning_rate"] == pytest.approx(rate)
    assert found["gradient/norm"] == pytest.approx(expected["gradient/norm"], rel=1e-5)
    for mine, its in zip(learner.network.parameters(), network.parameters(), strict=True):
        assert mine.detach().numpy() == pytest.approx(its.detach().numpy(), abs=1e-6)


def test_passes_and_minibatches():
    learner = made(PPOConfig(epochs=3, minibatch=6))
    learned(learner, random_rollout())
    assert learner.counters.updates == 3 * (T * N // 6)
    learner = made(PPOConfig(epochs=2, minibatch=1000))
    learned(learner, random_rollout())
    assert learner.counters.updates == 2


def test_every_pass_takes_each_decision_once_in_another_order():
    learner, rollout, seen = made(PPOConfig(epochs=2, minibatch=5)), random_rollout(), []
    step = learner._step
    learner._step = lambda data, rows, weight: seen.extend(rows.tolist()) or step(data, rows, weight)
    learned(learner, rollout)
    one, other = seen[: T * N], seen[T * N :]
    assert sorted(one) == sorted(other) == list(range(T * N))
    assert one != other


def test_divergence_ends_the_passes():
    def updates(target_kl):
        learner = made(PPOConfig(epochs=10, minibatch=20, learning_rate=0.1, target_kl=target_kl))
        rollout = random_rollout()
        with torch.no_grad():
            logits, _ = learner.network(rollout["observations"].flatten(0, 1))
            logits = logits.masked_fill(~rollout["masks"].flatten(0, 1), -1e9)
            every = functional.log_softmax(logits, 1).view(T, N, ACTIONS)
            rollout["log_probs"][:] = every.gather(2, rollout["actions"][..., None])[..., 0]
        learned(learner, rollout)
        return learner.counters.updates

    # Nothing has changed before the first step; before the second it has.
    assert updates(1e-4) == 2
    assert updates(0.0) == 10


def test_rollouts_of_several_workers_are_one_update():
    rollout = random_rollout()
    halves = [
        {name: tensor[:, part].contiguous() for name, tensor in rollout.items()} for part in (slice(2), slice(2, N))
    ]
    whole, joined = made(), made()
    expected, found = learned(whole, rollout), learned(joined, *halves)
    assert found == pytest.approx(expected, abs=1e-6, rel=1e-5)
    assert torch.equal(whole.flat.data, joined.flat.data)
    assert whole.counters.updates == joined.counters.updates == 1
    assert (whole.counters.steps, joined.counters.steps) == (3 * T * N, 6 * T * N)


def test_nothing_taken_is_nothing_learned():
    learner = made()
    assert not learner.is_due
    assert learner.update(1.0) == {}
    assert learner.counters.updates == 0


def test_a_single_decision_can_be_learned_from():
    """There is no variance to explain, and no number that would look like divergence."""
    learner = made(PPOConfig(rollout=1, minibatch=1), sizes=(SIZE, ACTIONS, 1, 1))
    rollout = {name: tensor[:1, :1].contiguous() for name, tensor in random_rollout().items()}
    assert np.isfinite(list(learned(learner, rollout).values())).all()


def test_it_finds_the_best_arm(bandit):
    world = bandit
    ppo = PPOConfig(
        rollout=4, minibatch=64, learning_rate=0.01, final_learning_rate=1.0, entropy=0.0, final_entropy=0.0
    )
    learner = made(ppo, sizes=(1, 4, 1, 4), hidden=(16,))
    schema = Schema.of(ROLLOUT, sizes_of(world), 4)
    actor = RolloutActor(world, schema, learner.network, gamma=0.9, masks=True, seed=[0])
    for _ in range(25):
        learner.take(actor.play())
        learner.update(1.0)
    with torch.no_grad():
        logits, value = learner.network(torch.ones(1, 1))
    assert logits[0, :3].softmax(0)[2] > 0.95
    assert float(value) == pytest.approx(1.0, abs=0.1)
