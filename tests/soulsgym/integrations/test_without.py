"""Importing soulsgym needs no learner."""

import subprocess
import sys

PROGRAM = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "stable_baselines3", "soulsai"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
import gymnasium, soulsgym
env = gymnasium.make_vec("SoulsGymIudexSimEncoded-v0", num_envs=2)
env.reset(seed=1)
try:
    import soulsgym.integrations.sb3
except ImportError as error:
    print(error)
"""


def test_environments_need_no_torch_and_the_adapter_says_what_it_needs():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "stable-baselines3 is not installed; run: pip install 'souls-arena[sb3]'\n"
