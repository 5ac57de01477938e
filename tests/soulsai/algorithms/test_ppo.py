"""The PPO learner beside a plain implementation, its schedules, and that it learns at all."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from soulsai.acting.episodes import Episodes
from soulsai.acting.rollouts import Rollout, RolloutActor
from soulsai.algorithms.ppo import PPOLearner
from soulsai.config.schema import NetworkConfig, PPOConfig
from soulsai.networks import build_actor_critic
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import Step

T, N, SIZE, ACTIONS = 5, 4, 3, 4
ONE_PASS = PPOConfig(epochs=1, minibatch=T * N, learning_rate=0.01, entropy=0.02, final_entropy=0.02, gamma=0.9)


def made(config=ONE_PASS, **network):
    net = build_actor_critic(SIZE, ACTIONS, NetworkConfig(hidden=(8,), **network), seed=1)
    return PPOLearner(net, config, torch.Generator().manual_seed(0))


def random_rollout():
    """Everything drawn, with ends of both kinds and some closed actions; the policy that acted was another one."""
    generator = torch.Generator().manual_seed(3)
    rollout = Rollout.of_size(T, N, SIZE, ACTIONS)
    for name in ("observations", "values", "next_values", "rewards"):
        getattr(rollout, name).normal_(generator=generator)
    rollout.masks[:] = torch.rand(T, N, ACTIONS, generator=generator) < 0.7
    rollout.actions[:] = torch.randint(ACTIONS, (T, N), generator=generator)
    rollout.masks.scatter_(2, rollout.actions[..., None], True)
    rollout.log_probs[:] = -torch.rand(T, N, generator=generator) - 0.5
    rollout.continues[:] = (torch.rand(T, N, generator=generator) < 0.7).float()
    rollout.discounts[:] = 0.9
    ends = rollout.continues == 0
    rollout.discounts[ends] = torch.tensor([0.0, 0.9]).repeat(T * N)[: int(ends.sum())]  # over, and cut off
    return rollout


def plain_advantages(rollout, lam):
    """By the definition, backwards, one number at a time."""
    advantages = np.zeros((T, N))
    for n in range(N):
        later = 0.0
        for t in reversed(range(T)):
            discount = float(rollout.discounts[t, n])
            delta = float(rollout.rewards[t, n]) + discount * float(rollout.next_values[t, n])
            delta -= float(rollout.values[t, n])
            later = delta + discount * lam * float(rollout.continues[t, n]) * later
            advantages[t, n] = later
    return torch.tensor(advantages, dtype=torch.float32)


def plain_update(network, rollout, config):
    """One Adam step on the whole rollout, written straight down; the losses, and the norm of the gradient."""
    advantages = plain_advantages(rollout, config.lam)
    returns = (advantages + rollout.values).flatten()
    weight = advantages.flatten()
    weight = (weight - weight.mean()) / (weight.std(correction=0) + 1e-8)
    logits, values = network(rollout.observations.flatten(0, 1))
    logits = logits.masked_fill(~rollout.masks.flatten(0, 1), -1e9)
    every = functional.log_softmax(logits, 1)
    taken = every.gather(1, rollout.actions.flatten()[:, None])[:, 0]
    log_ratio = taken - rollout.log_probs.flatten()
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


def test_an_update_is_the_plain_one():
    learner, rollout = made(), random_rollout()
    network = copy.deepcopy(learner.network)
    expected = plain_update(network, rollout, ONE_PASS)
    found = learner.learn(rollout, 0.0)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6, rel=1e-5)
    assert learner.updates == 1
    for (name, mine), its in zip(learner.network.named_parameters(), network.parameters(), strict=True):
        assert mine.detach().numpy() == pytest.approx(its.detach().numpy(), abs=1e-6), name


def test_explained_variance():
    learner, rollout = made(), random_rollout()
    advantages = plain_advantages(rollout, ONE_PASS.lam)
    returns = advantages + rollout.values
    expected = 1.0 - float(advantages.var() / returns.var())
    assert learner.learn(rollout, 0.0)["value/explained_variance"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("progress", "rate", "entropy"), [(0.0, 0.01, 0.9), (0.5, 0.006, 0.5), (1.0, 0.002, 0.1)])
def test_rate_and_entropy_go_down_in_a_line(progress, rate, entropy):
    learner = made(replace(ONE_PASS, final_learning_rate=0.2, entropy=0.9, final_entropy=0.1))
    network = copy.deepcopy(learner.network)
    expected = plain_update(network, random_rollout(), replace(ONE_PASS, learning_rate=rate, entropy=entropy))
    found = learner.learn(random_rollout(), progress)
    assert found["learning_rate"] == pytest.approx(rate)
    assert found["gradient/norm"] == pytest.approx(expected["gradient/norm"], rel=1e-5)
    for mine, its in zip(learner.network.parameters(), network.parameters(), strict=True):
        assert mine.detach().numpy() == pytest.approx(its.detach().numpy(), abs=1e-6)


def test_passes_and_minibatches():
    learner = made(PPOConfig(epochs=3, minibatch=6))
    learner.learn(random_rollout(), 0.0)
    assert learner.updates == 3 * (T * N // 6)
    learner = made(PPOConfig(epochs=2, minibatch=1000))
    learner.learn(random_rollout(), 0.0)
    assert learner.updates == 2


def test_every_pass_takes_each_decision_once_in_another_order():
    learner, rollout, seen = made(PPOConfig(epochs=2, minibatch=5)), random_rollout(), []
    rollout.observations[:] = torch.arange(T * N, dtype=torch.float32).view(T, N, 1)
    learner.network.register_forward_pre_hook(lambda module, inputs: seen.extend(inputs[0][:, 0].tolist()))
    learner.learn(rollout, 0.0)
    one, other = seen[: T * N], seen[T * N :]
    assert sorted(one) == sorted(other) == list(range(T * N))
    assert one != other


def test_divergence_ends_the_passes():
    def updates(target_kl):
        learner = made(PPOConfig(epochs=10, minibatch=20, learning_rate=0.1, target_kl=target_kl))
        rollout = random_rollout()
        with torch.no_grad():
            logits, _ = learner.network(rollout.observations.flatten(0, 1))
            logits = logits.masked_fill(~rollout.masks.flatten(0, 1), -1e9)
            every = functional.log_softmax(logits, 1).view(T, N, ACTIONS)
            rollout.log_probs[:] = every.gather(2, rollout.actions[..., None])[..., 0]
        learner.learn(rollout, 0.0)
        return learner.updates

    # Nothing has changed before the first step; before the second it has.
    assert updates(1e-4) == 2
    assert updates(0.0) == 10


class Bandit:
    """One decision an episode; the third of four arms pays, the last would pay more but is closed."""

    number, observation_size, num_actions, term_names = 32, 1, 4, ("reward",)
    pays = np.array([0.0, 0.2, 1.0, 5.0], np.float32)

    def __init__(self):
        self.observations = np.ones((self.number, 1), np.float32)
        self.masks = np.tile([True, True, True, False], (self.number, 1))
        self._step = Step.of_size(self.number, 1, 4, 1)
        self._step.steps[:], self._step.terminated[:], self._step.ended[:] = 1, True, True

    def step(self, actions):
        self._step.rewards[:] = self.pays[actions]
        return self._step


def test_it_finds_the_best_arm():
    world, generator = Bandit(), torch.Generator().manual_seed(0)
    network = build_actor_critic(1, 4, NetworkConfig(hidden=(16,)), seed=0)
    config = PPOConfig(rollout=4, minibatch=64, learning_rate=0.01, entropy=0.0, final_entropy=0.0)
    learner = PPOLearner(network, config, generator)
    actor = RolloutActor(
        world, network, rollout=4, gamma=0.9, masks=True, generator=generator,
        episodes=Episodes(32, ("reward",), fights=False), clock=LoopClock(),
    )  # fmt: skip
    for _ in range(25):
        learner.learn(actor.collect()[0], 0.0)
    with torch.no_grad():
        logits, value = network(torch.ones(1, 1))
    assert logits[0, :3].softmax(0)[2] > 0.95
    assert float(value) == pytest.approx(1.0, abs=0.1)
