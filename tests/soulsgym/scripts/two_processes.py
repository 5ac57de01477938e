"""A script as SoulsGym's users write it: a fight in each of two processes, with their reward in both."""
# ruff: noqa: T201

import sys

import gymnasium as gym
import numpy as np

import soulsgym  # noqa: F401
from soulsgym.envs.darksouls3.iudex import IudexEnv


def alive(game_state, next_game_state):
    return 3.0 if next_game_state.player_hp > 0 else -3.0


def made():
    IudexEnv.compute_reward = staticmethod(alive)  # a process may be a new one
    return gym.make(sys.argv[1])


if __name__ == "__main__":
    envs = gym.vector.AsyncVectorEnv([made, made])
    try:
        obs, infos = envs.reset(seed=1)
        for _ in range(5):
            obs, rewards, terminated, truncated, infos = envs.step(np.array([0, 8]))
            assert rewards.tolist() == [3.0, 3.0]
    finally:
        envs.close()
    print("player health", obs["player_hp"].ravel())
