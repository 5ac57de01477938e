"""A script as SoulsGym's users write it: a policy for each phase, measured in the full fight, with their reward."""
# ruff: noqa: T201

import random
import sys

import gymnasium as gym
import numpy as np

import soulsgym  # noqa: F401
from soulsgym.core.static import boss_animations, coordinates, player_animations

ATTACKS = [boss_animations["DarkSoulsIII"]["iudex"]["all"][name]["ID"]
           for name in boss_animations["DarkSoulsIII"]["iudex"]["attacks"]]  # fmt: skip
ROLLING = [value["ID"] for name, value in player_animations["DarkSoulsIII"].items() if "Rolling" in name]
CENTRE = np.array(coordinates["DarkSoulsIII"]["iudex"]["center"][:2])


def careful(obs):
    return random.choice([12, 10, 14]) if obs["boss_animation"] in ATTACKS else 16


def reckless(obs):
    return 19 if obs["player_animation"] in ROLLING else 0


def reward_of(state, next_state):
    """Put into this one environment alone, and with other names for its arguments."""
    away = np.linalg.norm(next_state.player_pose[:2] - CENTRE)
    same = next_state.player_animation == state.player_animation
    return np.float32(state.boss_hp - next_state.boss_hp) / next_state.boss_max_hp - 0.001 * away - 0.01 * same


env = gym.make(sys.argv[1], game_speed=1)
env.unwrapped.compute_reward = reward_of
wins, lengths = 0, []
while len(lengths) < 2:
    obs, info = env.reset(options=None)
    steps = 0
    while steps < 60:
        policy = careful if int(obs["phase"]) == 1 else reckless
        obs, reward, done, truncated, info = env.step(policy(obs))
        assert isinstance(reward, float)
        steps += 1
        if done or truncated:
            break
    wins += bool(obs["boss_hp"].item() == 0)
    lengths.append(steps)
env.close()
print(f"episode lengths {lengths}, wins {wins} of {len(lengths)}")
