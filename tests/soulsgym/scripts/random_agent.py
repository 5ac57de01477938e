"""A script as SoulsGym's users write it: random actions until the fight is over."""
# ruff: noqa: T201

import logging
import sys

import gymnasium

import soulsgym

if __name__ == "__main__":
    soulsgym.set_log_level(level=logging.INFO)
    env = gymnasium.make(sys.argv[1], game_speed=3.0)
    obs, info = env.reset()
    terminated, truncated, steps = False, False, 0
    while not (terminated or truncated or steps == 150):
        action = env.action_space.sample(info["action_mask"].astype("int8"))
        obs, reward, terminated, truncated, info = env.step(action)
        steps += 1
    env.close()
    print(steps, "steps, boss health", obs["boss_hp"][0])
