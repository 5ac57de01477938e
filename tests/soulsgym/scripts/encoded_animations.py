"""A script as SoulsGym's users write it: an encoder of its static data, one number for each animation."""
# ruff: noqa: T201

import sys

import gymnasium as gym
import numpy as np

import soulsgym  # noqa: F401
from soulsgym.games.game import StaticGameData

data = StaticGameData("DarkSoulsIII")
player_ids = [animation["ID"] for animation in data.player_animations.values()]
boss_ids = [animation["ID"] for animation in data.boss_animations["iudex"]["all"].values()]


class OneHot(gym.ObservationWrapper):
    """Its space is made from a first observation."""

    def __init__(self, env):
        super().__init__(env)
        size = self.observation(env.reset()[0]).shape
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, size, np.float32)

    def observation(self, obs):
        for key in ("player_hp", "player_sp", "boss_hp"):
            if isinstance(obs[key], np.ndarray):
                obs[key] = obs[key].item()
        shares = [obs[f"{who}_hp"] / obs[f"{who}_max_hp"] for who in ("player", "boss")]
        player = [float(obs["player_animation"] == number) for number in player_ids]
        boss = [float(obs["boss_animation"] == number) for number in boss_ids]
        return np.array([*shares, *player, *boss], np.float32)


env = OneHot(gym.make(sys.argv[1]))
obs, info = env.reset()
for _ in range(60):
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert obs in env.observation_space
    keys = " + ".join(data.actions.get(19, ["?"])) or "nothing"
    if terminated or truncated:
        obs, info = env.reset()
env.close()
print(obs.shape[0], "numbers; action 19 presses", keys)
