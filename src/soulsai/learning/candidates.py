"""Those who can be measured or watched: trained policies and, without torch, scripted players."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from soulsai.config.schema import Config
from soulsai.evaluation.fighter import Fighter, ScriptedFighter
from soulsgym.errors import MisuseError

if TYPE_CHECKING:
    from soulsai.acting.policy import Policy
    from soulsai.runs.run import Run

PLAYER = "player:"
"""Before the name of a scripted player."""

Warn = Callable[[str], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """Someone to measure or watch: the policy of a run, of zoo:NAME or of an exported file, or a scripted player."""

    name: str
    config: Config | None = None  # none for a scripted player
    policy: Policy | None = None
    run: Run | None = None
    player: str = ""

    @property
    def is_gym(self) -> bool:
        """Whether it plays a Gymnasium environment instead of fights."""
        return self.config is not None and self.config.world == "gym"

    def fighter(self, boss: str) -> Fighter:
        """The same as a fighter against `boss`, one of those that it was trained on; a scripted player fights any."""
        if self.config is None or self.policy is None:
            return ScriptedFighter(self.player, boss=boss)
        from soulsai.learning.wiring import against, build_fighter

        refuse_gym(self.name, self.config)
        config = against(self.config, boss) if boss in self.config.fight.bosses else self.config
        return build_fighter(config, self.policy)


def load_candidate(text: str, *, latest: bool = False, warn: Warn = log.warning) -> Candidate:
    """Who is meant by the folder or the name of a run, zoo:NAME, an exported file, or player:NAME."""
    if text.startswith(PLAYER):
        name = text.removeprefix(PLAYER)
        ScriptedFighter(name)
        return Candidate(text, player=name)
    from soulsai.learning.loading import load_trained

    return load_trained(text, latest=latest, warn=warn)


def refuse_gym(name: str, config: Config) -> None:
    """Refuse a policy that does not play fights."""
    if config.world == "gym":
        raise MisuseError(f"{name} plays {config.gym.id}, not fights: give a run that was trained on fights")
