"""MaskablePPO of sb3-contrib learns to win full fights: more than half of them after a few minutes on two cores.

pip install sb3-contrib
python examples/sb3_maskable_ppo.py
"""

import sys

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks

from soulsgym.integrations.sb3 import FightVecEnv

FULL_FIGHT = "SoulsGymIudexSimDemoEncoded-v0"


def win_rate(model: MaskablePPO, fights: int = 200) -> float:
    """The share of full fights that the greedy policy wins, each from the standard start."""
    env = FightVecEnv(FULL_FIGHT, num_envs=fights)
    env.seed(1_000_000)
    observations, won = env.reset(), {}
    while len(won) < fights:
        actions, _ = model.predict(observations, action_masks=get_action_masks(env), deterministic=True)
        observations, _, _, infos = env.step(actions)
        for fight, info in enumerate(infos):
            if "episode" in info:
                won.setdefault(fight, info["is_success"])  # the first of each, or short fights would count more often
    return sum(won.values()) / fights


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    torch.set_num_threads(1)  # the network is small: a second thread costs more than it gives
    # Half of the fights begin somewhere in the middle, so that the second phase is seen early.
    env = FightVecEnv(FULL_FIGHT, num_envs=64, starts={"mid_fight": 0.5})
    model = MaskablePPO(
        "MlpPolicy", env, learning_rate=1e-3, n_steps=128, batch_size=1024, n_epochs=4, gamma=0.95, gae_lambda=0.9,
        ent_coef=0.01, policy_kwargs={"net_arch": [128, 128]}, seed=0, verbose=1,
    )  # fmt: skip
    model.learn(steps)
    model.save("maskable_ppo")
    print(f"won {win_rate(model):.1%} of 200 full fights")  # noqa: T201
