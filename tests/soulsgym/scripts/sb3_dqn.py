"""A script as SoulsGym's users write it: Stable-Baselines3's DQN, a wrapper of 26 numbers, wins told by a callback."""
# ruff: noqa: T201

import sys

import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor

import soulsgym  # noqa: F401
from soulsgym.games import StaticGameData

BOSS = StaticGameData(game_id="DarkSoulsIII").boss_animations["iudex"]["all"]


class Numbers(gym.ObservationWrapper):
    """Health, places and animations."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (14 + len(BOSS),), np.float32)

    def observation(self, obs):
        shares = [obs[f"{who}_hp"].item() / obs[f"{who}_max_hp"] for who in ("player", "boss")]
        boss = np.eye(len(BOSS) + 1)[int(obs["boss_animation"])][:-1]
        away = obs["boss_pose"] - obs["player_pose"]
        rest = [obs["player_sp"][0] / 100, float(obs["lock_on"]), *obs["camera_pose"][3:], obs["phase"]]
        durations = obs["player_animation_duration"].item(), obs["boss_animation_duration"].item()
        return np.array([*shares, *away, *rest, *durations, *boss], np.float32)


class Wins(BaseCallback):
    """Counts episodes by what is in info."""

    def __init__(self):
        super().__init__()
        self.wins, self.episodes, self.boss_hp = 0, 0, []

    def _on_step(self):
        for done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if done:
                self.episodes += 1
                self.wins += info["won"]
                self.boss_hp.append(info["boss_hp"])
        return True


env = Numbers(Monitor(gym.make(sys.argv[1], game_speed=3.0), info_keywords=("won",)))
wins = Wins()
model = DQN("MlpPolicy", env, learning_starts=32, buffer_size=500, batch_size=16, train_freq=8, seed=0)
model.learn(160, callback=wins)
action, _ = model.predict(env.reset()[0], deterministic=True)
env.close()
print(wins.wins, "wins of", wins.episodes, "next", int(action))
