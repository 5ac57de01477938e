"""A script as SoulsGym's users write it: Gymnasium's own wrappers around a fight, one over the other."""
# ruff: noqa: T201

import sys

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import (
    FilterObservation,
    FlattenObservation,
    FrameStackObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformReward,
)

import soulsgym

assert {"SoulsGymIudex-v0", "SoulsGymIudexDemo-v0"} <= set(soulsgym.available_envs)
kept = ["player_hp", "boss_hp", "player_animation", "boss_animation", "boss_animation_duration", "lock_on"]
env = gym.make(sys.argv[1], game_speed=3.0, random_player_pose=True)
assert env.spec.max_episode_steps == 3000
base, full = env.unwrapped, FlattenObservation(env)
assert full.reset(seed=3)[0] in full.observation_space
small = FrameStackObservation(FlattenObservation(FilterObservation(TimeLimit(env, 25), kept)), 4)
env = RecordEpisodeStatistics(NormalizeReward(TransformReward(small, lambda reward: 10.0 * reward)))
obs, info = env.reset(seed=1)
episodes = []
for _ in range(70):
    allowed = np.flatnonzero(base.info["action_mask"])
    assert allowed.tolist() == base.current_valid_actions()
    obs, reward, terminated, truncated, info = env.step(env.np_random.choice(allowed))
    assert obs.shape == (4, *small.observation_space.shape[1:])
    if terminated or truncated:
        episodes.append(float(info["episode"]["r"]))
        obs, info = env.reset()
env.close()
print(len(episodes), "episodes:", episodes)
