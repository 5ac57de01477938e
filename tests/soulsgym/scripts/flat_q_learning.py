"""A script as SoulsGym's users write it: their reward put into the class, a wrapper that flattens, a replay memory."""
# ruff: noqa: T201

import argparse
import random
from collections import deque

import gymnasium as gym
import numpy as np

import soulsgym  # noqa: F401
from soulsgym.envs.darksouls3.iudex import IudexEnv

parser = argparse.ArgumentParser()
parser.add_argument("env")
parser.add_argument("--hit", type=float, default=50.0)
parser.add_argument("--steps", type=int, default=120)
opt = parser.parse_args()


class Flattened(gym.Wrapper):
    """Hands every other attribute through to the environment inside."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.env, name)

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        return flat(obs), info

    def step(self, action):
        obs, *rest = self.env.step(action)
        return flat(obs), *rest


def flat(obs):
    """26 numbers."""
    whole = [obs["phase"], obs["player_max_hp"], obs["player_max_sp"], obs["boss_max_hp"], int(obs["lock_on"])]
    shown = [obs["player_animation"], obs["boss_animation"]]
    arrays = ("player_hp", "player_sp", "boss_hp", "player_animation_duration", "boss_animation_duration")
    poses = np.concatenate([obs["player_pose"], obs["boss_pose"], obs["camera_pose"]])
    return np.concatenate([whole, shown, [obs[name][0] for name in arrays], poses])


def compute_reward(game_state, next_game_state, hit):
    dealt = hit * (game_state.boss_hp - next_game_state.boss_hp) / game_state.boss_max_hp
    taken = hit * (next_game_state.player_hp - game_state.player_hp) / game_state.player_max_hp
    rolling = -0.5 if game_state.player_animation in ("RollingMedium", "RollingMediumSelftra") else 0
    centre = np.array([139.0, 596.0])
    was, now = (np.linalg.norm(state.player_pose[:2] - centre) for state in (game_state, next_game_state))
    return dealt + taken + rolling + 0.5 * (was - now) * (now > 4)


def main():
    def with_options(game_state, next_game_state):
        return compute_reward(game_state, next_game_state, hit=opt.hit)

    IudexEnv.compute_reward = staticmethod(with_options)
    env = Flattened(gym.make(opt.env))
    assert env._max_episode_steps == 3000
    weights, memory = np.zeros((env.action_space.n, 26)), deque(maxlen=1000)
    state, info = env.reset(seed=0)
    for step in range(opt.steps):
        action = env.action_space.sample() if random.random() < 0.5 else int(np.argmax(weights @ state))
        after, reward, terminated, truncated, info = env.step(action)
        memory.append((state, action, reward, after, terminated))
        state = env.reset(seed=step)[0] if terminated or truncated else after
        if len(memory) >= 32:
            for was, did, paid, then, over in random.sample(memory, 8):
                target = paid + (0.0 if over else 0.9 * np.max(weights @ then))
                weights[did] += 1e-7 * (target - weights[did] @ was) * was
    print(env.unwrapped.ENV_ID, "phase", env.unwrapped.phase, "return", sum(one[2] for one in memory))
    assert set(info["reward_terms"]) == {"compute_reward"}
    assert np.isfinite(weights).all()
    env.close()


if __name__ == "__main__":
    main()
