"""A script as SoulsGym's users write it: a class of its own, made without gym.make, on the running game."""
# ruff: noqa: T201

from soulsgym.envs.darksouls3.iudex import IudexEnv, IudexState
from soulsgym.envs.utils import max_retries
from soulsgym.exception import ResetNeeded


class AggressiveEnv(IudexEnv):
    """Damage to the boss counts three times."""

    @staticmethod
    def compute_reward(game_state: IudexState, next_game_state: IudexState) -> float:
        more = 2 * (game_state.boss_hp - next_game_state.boss_hp) / game_state.boss_max_hp
        return IudexEnv.compute_reward(game_state, next_game_state) + more

    @max_retries(retries=3)
    def reset(self, **keywords):
        return super().reset(**keywords)


env = AggressiveEnv(game_speed=3, phase=1, init_pose_randomization=False)
try:
    env.step(0)
    raise SystemExit("a fight that has not begun was played")
except ResetNeeded:
    print("reset first")
obs, info = env.reset()
total, terminated, truncated, steps = 0.0, False, False, 0
while not (terminated or truncated or steps == 80):
    before = env.game_state()
    obs, reward, terminated, truncated, info = env.step(env.current_valid_actions()[-1])
    assert abs(reward - env.compute_reward(before, env.game_state())) < 1e-9
    assert env.obs["boss_hp"] == obs["boss_hp"]
    total, steps = total + reward, steps + 1
env.close()
print(env.ENV_ID, env.phase, env.step_size, len(env.info["action_mask"]), "return", total)
