"""The environment ids. What makes an environment is imported when one is made: the simulator takes a second to load."""

from __future__ import annotations

from typing import Any

import gymnasium

MAX_EPISODE_STEPS = 3000
"""About five minutes of the game."""

SIMULATED: dict[str, dict[str, Any]] = {
    "SoulsGymIudexSim-v0": {"boss": "iudex", "changes": False},
    "SoulsGymIudexSimDemo-v0": {"boss": "iudex", "changes": True},
}
"""By id: whom to fight, and whether he goes on to his next phase or stays in one for all his health."""

IN_THE_GAME: dict[str, tuple[str, dict[str, Any]]] = {
    "SoulsGymIudex-v0": ("fight", {"boss": "iudex"}),
    "SoulsGymIudexImg-v0": ("screen_fight", {"boss": "iudex"}),
    "SoulsGymIudexDemo-v0": ("demo_fight", {"boss": "iudex"}),
    "SoulsGymVordt-v0": ("fight", {"boss": "vordt"}),
}
"""By id: how an environment on the running game is made, and whom to fight. Ids and keywords are those of SoulsGym."""


def register_all() -> None:
    """Make the ids known to Gymnasium."""
    for name, fixed in SIMULATED.items():
        gymnasium.register(
            name,
            entry_point="soulsgym.envs.simulated:fight",
            vector_entry_point="soulsgym.envs.simulated:fights",
            max_episode_steps=MAX_EPISODE_STEPS,
            kwargs=fixed,
        )
    for name, (maker, fixed) in IN_THE_GAME.items():
        gymnasium.register(
            name,
            entry_point=f"soulsgym.envs.game:{maker}",
            max_episode_steps=MAX_EPISODE_STEPS,
            nondeterministic=True,
            kwargs=fixed,
        )
