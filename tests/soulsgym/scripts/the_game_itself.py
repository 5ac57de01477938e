"""A script as SoulsGym's users write it: the running game's values, keys, speed and picture, without an environment."""
# ruff: noqa: T201

import time

import numpy as np

from soulsgym.core.game_input import GameInput
from soulsgym.core.speedhack import SpeedHackConnector
from soulsgym.core.utils import get_pid
from soulsgym.games import DarkSoulsIII, game_factory

game = game_factory("DarkSoulsIII")
assert isinstance(game, DarkSoulsIII)
assert get_pid(game.process_name) > 0
assert game.is_ingame
assert len(game.player_stats) == 10
game.allow_attacks = game.allow_moves = game.allow_hits = False
game.player_hp = 100
game.reset_player_hp()
game.reset_player_sp()
game.iudex_hp = 500
game.reset_boss_hp("iudex")
assert game.iudex_hp == game.iudex_max_hp
pose = game.player_pose
game.player_pose = pose + np.array([0.5, 0.5, 0.0, 0.0])
game.sleep(0.2)
assert np.linalg.norm(game.player_pose[:2] - pose[:2]) > 0.3
assert game.window_resolution == (800, 450)
game.img_resolution = (45, 80)
assert game.img.shape == (45, 80, 3)
assert game.img.dtype == np.uint8

speed = SpeedHackConnector(process_name="DarkSoulsIII.exe")  # beside the game of this program
speed.set_game_speed(3.0)
start = game.time
game.sleep(0.3)
assert game.timed(game.time, start) >= 0.3
game.pause()
assert game.game_speed == 0
game.resume()
speed.close()

keys = GameInput("DarkSoulsIII", game_speed=1.0)
keys.add_actions(["forward", "roll"])
keys.update_input()
deadline = time.monotonic() + 60
while not game.player_animation.startswith("Rolling"):
    assert time.monotonic() < deadline, game.player_animation
    keys.single_action("roll", press_time=0.1)
keys.reset()
assert not any(keys.state.values())
for name, value in (("last_bonfire", "Cemetery of Ash"), ("lock_on_bonus_range", 20.0), ("gravity", True)):
    setattr(game, name, value)
    assert getattr(game, name) == value
game.clear_cache()
game.reload()
assert game.player_hp == game.player_max_hp
print(game.last_bonfire, "at", pose[:3].round(1))
game.close()
