"""The environment ids. What makes an environment is imported when one is made: the simulator takes a second to load."""

from __future__ import annotations

from typing import Any

import gymnasium

MAX_EPISODE_STEPS = 3000
"""About five minutes of the game."""

SIMULATED: dict[str, dict[str, Any]] = {
    "SoulsGymIudexSim-v0": {"boss": "iudex", "changes": False},
    "SoulsGymIudexSimDemo-v0": {"boss": "iudex", "changes": True},
    "SoulsGymSim-v0": {"changes": True},
}
"""By id: whom to fight, and whether he goes on to his next phase or stays in one for all his health.

`SoulsGymSim-v0` is for any boss: `boss=` is a name, or the path of a file of the user's own."""

ENCODED: dict[str, dict[str, Any]] = {
    name.replace("-v0", "Encoded-v0"): {**fixed, "encoder": "player", "reward": "duel", "decisions": True}
    for name, fixed in SIMULATED.items()
}
"""The same fights as our own learner has them: numbers to see, a reward to learn from, only steps with a choice."""

WITHOUT_CENTRE = {"preset": "soulsgym", "weights": {"win": 0.0, "death": 0.0, "end": 0.1, "centre": 0.0}}
"""SoulsGym's reward for Vordt: nothing draws the player to the middle of his arena."""

IN_THE_GAME: dict[str, tuple[str, dict[str, Any]]] = {
    "SoulsGymIudex-v0": ("GameEnv", {"boss": "iudex", "changes": False}),
    "SoulsGymIudexImg-v0": ("ScreenEnv", {"boss": "iudex", "changes": False}),
    "SoulsGymIudexDemo-v0": ("GameEnv", {"boss": "iudex", "changes": True}),
    "SoulsGymVordt-v0": ("GameEnv", {"boss": "vordt", "changes": False, "reward": WITHOUT_CENTRE}),
}
"""By id: the class of an environment on the running game, and whom to fight. Ids and keywords are those of SoulsGym."""


def register_all() -> None:
    """Make the ids known to Gymnasium."""
    for name, fixed in (SIMULATED | ENCODED).items():
        gymnasium.register(
            name,
            entry_point="soulsgym.envs.simulated:FightEnv",
            vector_entry_point="soulsgym.envs.vector:FightVectorEnv",
            max_episode_steps=MAX_EPISODE_STEPS,
            kwargs=fixed,
        )
    for name, (kind, fixed) in IN_THE_GAME.items():
        gymnasium.register(
            name,
            entry_point=f"soulsgym.envs.game:{kind}",
            max_episode_steps=MAX_EPISODE_STEPS,
            nondeterministic=True,
            kwargs=fixed,
        )
