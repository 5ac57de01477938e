"""PPO with action masks in one file, in the style of CleanRL: plain torch on the native vector environment.

pip install torch
python examples/cleanrl_ppo.py
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import nn
from torch.distributions import Categorical

import soulsgym  # noqa: F401 (registers the ids)

NUM_ENVS, NUM_STEPS, MINIBATCH, EPOCHS = 64, 128, 1024, 4
GAMMA, GAE_LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.95, 0.9, 0.2, 0.01, 1e-3


class Agent(nn.Module):
    """A network for the policy and one for the value."""

    def __init__(self, envs):
        super().__init__()
        size, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
        self.actor, self.critic = network(size, actions, 0.01), network(size, 1, 1.0)

    def policy(self, observations, masks):
        """The distribution over the open actions."""
        return Categorical(logits=self.actor(observations).masked_fill(~masks, -1e8))

    def value(self, observations):
        return self.critic(observations).squeeze(-1)


def network(inputs, outputs, scale):
    layers = [nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, outputs)]
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, scale if layer is layers[-1] else 2**0.5)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def make(name, num_envs, **keywords):
    return gymnasium.make_vec(name, num_envs=num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **keywords)


def win_rate(agent, name, fights=200):
    """The share of fights that the greedy policy wins, the first of each environment."""
    envs, won = make(name, fights), {}
    observations, infos = envs.reset(seed=1_000_000)
    while len(won) < fights:
        with torch.no_grad():
            policy = agent.policy(torch.as_tensor(observations), torch.as_tensor(infos["action_mask"]))
        observations, _, terminated, truncated, infos = envs.step(policy.probs.argmax(1).numpy())
        for fight in np.flatnonzero(terminated | truncated):
            won.setdefault(int(fight), bool(infos["final_info"]["won"][fight]))
    envs.close()
    return sum(won.values()) / fights


def train(name, steps, seed=1, **keywords):
    torch.manual_seed(seed)
    envs = make(name, NUM_ENVS, **keywords)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)

    shape = NUM_STEPS, NUM_ENVS
    obs = torch.zeros(*shape, *envs.single_observation_space.shape)
    masks = torch.zeros(*shape, int(envs.single_action_space.n), dtype=torch.bool)
    actions, logprobs = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    rewards, dones, values = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)

    next_obs, infos = envs.reset(seed=seed)
    begun, wins = time.monotonic(), []
    for update in range(1, max(1, steps // (NUM_STEPS * NUM_ENVS)) + 1):
        for step in range(NUM_STEPS):
            obs[step], masks[step] = torch.as_tensor(next_obs), torch.as_tensor(infos["action_mask"])
            with torch.no_grad():
                policy, values[step] = agent.policy(obs[step], masks[step]), agent.value(obs[step])
                actions[step] = policy.sample()
                logprobs[step] = policy.log_prob(actions[step])
            next_obs, reward, terminated, truncated, infos = envs.step(actions[step].numpy())
            rewards[step], dones[step] = torch.as_tensor(reward), torch.as_tensor(terminated | truncated)
            for fight in np.flatnonzero(terminated | truncated):
                wins.append(bool(infos["final_info"]["won"][fight]))
                if not terminated[fight]:  # cut off, not over: it would have gone on from its last observation
                    with torch.no_grad():
                        last = agent.value(torch.as_tensor(infos["final_obs"][fight]))
                    rewards[step, fight] += GAMMA * last

        with torch.no_grad():
            next_value, advantage = agent.value(torch.as_tensor(next_obs)), torch.zeros(NUM_ENVS)
            advantages = torch.zeros(shape)
            for step in reversed(range(NUM_STEPS)):
                going_on = 1.0 - dones[step]
                delta = rewards[step] + GAMMA * next_value * going_on - values[step]
                advantages[step] = advantage = delta + GAMMA * GAE_LAMBDA * going_on * advantage
                next_value = values[step]
            returns = advantages + values

        flat = [x.flatten(0, 1) for x in (obs, masks, actions, logprobs, advantages, returns)]
        for _ in range(EPOCHS):
            for rows in torch.randperm(NUM_STEPS * NUM_ENVS).split(MINIBATCH):
                o, m, a, old_logprob, advantage, target = (x[rows] for x in flat)
                policy = agent.policy(o, m)
                ratio = (policy.log_prob(a) - old_logprob).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                policy_loss = -torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
                value_loss = 0.5 * (agent.value(o) - target).square().mean()
                loss = policy_loss + value_loss - ENTROPY * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()

        if update % 10 == 0:
            done, rate = update * NUM_STEPS * NUM_ENVS, np.mean(wins[-200:] or [0.0])
            print(f"{done:,} steps, {done / (time.monotonic() - begun):,.0f} a second, won {rate:.0%}")  # noqa: T201
    envs.close()
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", default="SoulsGymIudexSimEncoded-v0")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--fights", type=int, default=200, help="to play for the win rate at the end")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the network is small: a second thread costs more than it gives
    # Half of the fights begin somewhere in the middle, so that the end of a fight is seen early.
    agent = train(args.id, args.steps, starts={"mid_fight": 0.5})
    print(f"won {win_rate(agent, args.id, args.fights):.1%} of {args.fights} fights")  # noqa: T201
