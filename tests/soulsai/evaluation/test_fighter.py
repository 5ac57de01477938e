"""Who plays, and whose turn it is."""

import numpy as np
import pytest

from soulsai.evaluation import PhaseFighters, ScriptedFighter
from soulsgym.actions import NOTHING
from soulsgym.errors import MisuseError
from soulsgym.state import FIGHT


class Always:
    """Plays one action and remembers when it was told to begin."""

    def __init__(self, action):
        self.action, self.began, self.acted = action, [], 0

    def begin(self, fights, mask):
        self.began.append(mask.tolist())

    def act(self, fights):
        self.acted += 1
        return np.full(len(fights), self.action)


def _fights(*phases):
    fights = np.zeros(len(phases), FIGHT)
    fights["phase"] = phases
    return fights


def test_scripted_fighter_plays_its_player():
    fighter = ScriptedFighter("idle")
    fights = _fights(1, 1, 2)
    fighter.begin(fights, np.ones(3, bool))
    assert fighter.act(fights).tolist() == [NOTHING] * 3


def test_scripted_fighter_takes_any_number():
    fighter = ScriptedFighter("roll_spam")
    for n in (2, 5):
        fights = _fights(*[1] * n)
        fighter.begin(fights, np.ones(n, bool))
        assert len(fighter.act(fights)) == n


def test_unknown_player_is_refused_at_once():
    with pytest.raises(MisuseError, match="'duelist'"):
        ScriptedFighter("duelist")


def test_each_phase_has_its_fighter():
    fighters = PhaseFighters(Always(3), Always(5))
    fights = _fights(1, 2, 1, 3)
    fighters.begin(fights, np.ones(4, bool))
    assert fighters.act(fights).tolist() == [3, 5, 3, 5]


def test_a_fighter_begins_with_its_phase():
    first, second = Always(3), Always(5)
    fighters = PhaseFighters(first, second)
    fights = _fights(1, 1)
    fighters.begin(fights, np.ones(2, bool))
    fighters.act(fights)
    assert second.acted == 0
    second.began.clear()
    fights["phase"] = 1, 2
    assert fighters.act(fights).tolist() == [3, 5]
    fighters.act(fights)
    assert second.began == [[False, True]]
