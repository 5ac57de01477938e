"""A script as SoulsGym's users write it: looks at the keys, and has the means to press them ready."""
# ruff: noqa: T201

import soulsgym
import soulsgym.core
import soulsgym.core.game_input
import soulsgym.core.speedhack
import soulsgym.core.static
from soulsgym.core.game_input import GameInput
from soulsgym.core.speedhack import SpeedHackConnector, inject_dll  # noqa: F401

print(soulsgym.__version__, soulsgym.core.static.keybindings.keys())
game_input = GameInput(game_id="DarkSoulsIII")
game_input.add_action("lock_on")
assert game_input.queued_actions == ["lock_on"]
game_input.reset()
