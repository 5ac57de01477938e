"""The environment ids. What makes an environment is imported when one is made: the simulator takes a second to load.

Gymnasium itself takes a tenth of a second, which a command line or an error message need not wait for. If it is not
loaded yet, the ids are registered when somebody imports it, for without it nobody can ask for them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MAX_EPISODE_STEPS = 3000
"""About five minutes of the game."""

WITHOUT_CENTRE = {"preset": "soulsgym", "weights": {"win": 0.0, "death": 0.0, "end": 0.1, "centre": 0.0}}
"""SoulsGym's reward for Vordt: nothing draws the player to the middle of his arena."""

SIMULATED: dict[str, dict[str, Any]] = {
    "SoulsGymIudexSim-v0": {"boss": "iudex", "changes": False},
    "SoulsGymIudexSimDemo-v0": {"boss": "iudex", "changes": True},
    "SoulsGymVordtSim-v0": {"boss": "vordt", "changes": False, "reward": WITHOUT_CENTRE},
    "SoulsGymVordtSimDemo-v0": {"boss": "vordt", "changes": True, "reward": WITHOUT_CENTRE},
    "SoulsGymMargitSim-v0": {"boss": "margit", "changes": False},
    "SoulsGymMargitSimDemo-v0": {"boss": "margit", "changes": True},
    "SoulsGymSim-v0": {"changes": True},
}
"""By id: whom to fight, and whether he goes on to his next phase or stays in one for all his health.

`SoulsGymSim-v0` is for any boss: `boss=` is a name, or the path of a file of the user's own."""

ENCODED: dict[str, dict[str, Any]] = {
    name.replace("-v0", "Encoded-v0"): {**fixed, "encoder": "player", "reward": "duel", "decisions": True}
    for name, fixed in SIMULATED.items()
}
"""The same fights as our own learner has them: numbers to see, a reward to learn from, only steps with a choice."""

IN_THE_GAME: dict[str, tuple[str, dict[str, Any]]] = {
    "SoulsGymIudex-v0": ("darksouls3.iudex:IudexEnv", {"boss": "iudex"}),
    "SoulsGymIudexImg-v0": ("darksouls3.iudex:IudexImgEnv", {"boss": "iudex"}),
    "SoulsGymIudexDemo-v0": ("darksouls3.iudex:IudexEnvDemo", {"boss": "iudex"}),
    "SoulsGymVordt-v0": ("darksouls3.vordt:VordtEnv", {"boss": "vordt"}),
}
"""By id: the class of an environment on the running game, and whom to fight. Ids, classes and keywords are SoulsGym's;
a boss that needs no class of his own is `("game:GameEnv", {"boss": ..., "changes": False})`."""


def register_with_gymnasium() -> None:
    """Make the ids known to Gymnasium: now if it is loaded, else as soon as it is."""
    if "gymnasium" in sys.modules:
        register_all()
    else:
        sys.meta_path.insert(0, _GymnasiumFinder())


class _GymnasiumFinder:
    """Finds Gymnasium as Python does, and has the ids registered once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register_all()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def register_all() -> None:
    """Make the ids known to Gymnasium, which must be loaded."""
    import gymnasium

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
            entry_point=f"soulsgym.envs.{kind}",
            max_episode_steps=MAX_EPISODE_STEPS,
            nondeterministic=True,
            kwargs=fixed,
        )
