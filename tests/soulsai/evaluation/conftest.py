"""What the tests of evaluation share."""

import dataclasses

import numpy as np
import pytest

from soulsai.evaluation import ScriptedFighter, evaluate
from soulsgym.spec import load_fight
from soulsgym.state import Outcome


@pytest.fixture(scope="session")
def spec():
    return load_fight("iudex")


@pytest.fixture(scope="session")
def idle_fights():
    """Five fights of a player who does nothing."""
    return evaluate(ScriptedFighter("idle"), 5, seed=7)


@pytest.fixture(scope="session")
def duels():
    """Sixty full fights of the duellist."""
    return evaluate(ScriptedFighter("duellist"), 60, seed=7)


@pytest.fixture
def with_outcomes(idle_fights):
    """An evaluation with made-up outcomes: `with_outcomes([1, 2, 0], seed=3)`."""

    def make(outcomes, **settings):
        outcome = np.array(outcomes, np.int32)
        n = len(outcome)
        given = dataclasses.replace(idle_fights.settings, **settings, fights=n)
        columns = {name: np.resize(getattr(idle_fights, name), n) for name in ("time_s", "player_hp_share", "steps")}
        columns |= {
            name: np.resize(getattr(idle_fights, name), n) for name in ("boss_hp_share", "damage_taken", "phase")
        }
        killed_by = tuple("slam" if each == Outcome.DIED else "" for each in outcome)
        return dataclasses.replace(idle_fights, settings=given, outcome=outcome, killed_by=killed_by, **columns)

    return make
