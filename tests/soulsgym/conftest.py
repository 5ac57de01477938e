"""What the tests of the simulator and the environments share."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.spec.boss import parse_boss
from soulsgym.spec.fight import DATA
from soulsgym.spec.reader import read_toml

settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.load_profile("steady")

HARMLESS = "executed"
"""A move of the boss without motion, turning or blows, in which hits cost him no poise."""


class Duel:
    """One fight on the simulator, with the means to put both fighters where a test needs them.

    The boss starts in the middle of the arena and looks along -y; the player faces him from `away_m` ahead.
    """

    def __init__(self, spec, **settings):
        self.spec = spec
        self.engine = SimEngine(spec, 1, **settings)
        self.player_moves = [move.name for move in spec.player.moves]
        self.still = False

    def begin(self, *, away_m=10.0, player=None, boss=(140.0, 594.0, 0.0), still=True, seed=1, **start):
        """Start a fight. A `still` boss stands where he is and does nothing."""
        starts = standard_starts(1)
        starts["boss_pose"] = boss
        starts["player_pose"] = player or (boss[0], boss[1] - away_m, math.pi)
        for key, value in start.items():
            starts[key] = value
        self.engine.reset(np.ones(1, np.bool_), starts, np.array([seed], np.uint64))
        self.still = still
        return self

    @property
    def now(self):
        """The record as it stands, a copy."""
        return self.engine.fights[0].copy()

    @property
    def hidden(self):
        """The simulator's own record, to look at and to change."""
        return self.engine.hidden[0]

    @property
    def distance_m(self):
        hidden = self.hidden
        return math.hypot(hidden["player_x"] - hidden["boss_x"], hidden["player_y"] - hidden["boss_y"])

    def step(self, action=NOTHING):
        """Play one of the twenty actions."""
        if self.still:
            self.force(HARMLESS)
        self.engine.step(ACTION_CONTROLS[[action]])
        return self.now

    def play(self, *actions, rest=0):
        """Play actions, then nothing for `rest` steps; all records in between."""
        return np.array([self.step(action) for action in (*actions, *[NOTHING] * rest)])

    def until(self, happens, *, at_most=200, action=NOTHING):
        """Play until `happens(record)`; that record."""
        for _ in range(at_most):
            record = self.step(action)
            if happens(record):
                return record
        raise AssertionError(f"did not happen within {at_most} steps")

    def boss_move(self, record):
        """The name of what the boss is really doing."""
        return self.spec.boss.moves[record["boss_move"]].name

    def player_move(self, record):
        return self.player_moves[record["player_move"]] if record["player_move"] >= 0 else ""

    def force(self, move, at_s=0.0, *, blows=True, links=None):
        """Let the boss be `at_s` into a move. `links` is (act, number of its chain) of what may follow."""
        if move != HARMLESS:
            self.still = False
        hidden, tables, index = self.hidden, self.engine.tables[0], self.spec.boss.move_index(move)
        hidden["boss_move"], hidden["boss_move_s"] = index, at_s
        hidden["boss_animation"], hidden["boss_animation_s"] = tables["boss_moves"][index]["animation"], at_s
        cleared = ("boss_carried_x", "boss_carried_y", "link_checked", "decided", "hits_dodged", "links_left")
        for name in (*cleared, "is_first_approach", "throws_dealt", "interrupts_checked", "running"):
            hidden[name] = 0
        hidden["stretch"], hidden["stretch_scale"] = -1, 1.0
        hidden["boss_forward_m"], hidden["boss_right_m"] = self._moved_by(index, at_s)
        hidden["act"] = -1
        hidden["hits_landed"] = 0 if blows else -1
        if links is not None:
            hidden["act"], chain = self.act_row(links[0], int(hidden["phase"])), tables["chains"]
            row = tables["acts"][hidden["act"]]["first_chain"] + links[1]
            hidden["next_link"], hidden["links_left"] = chain[row]["first_link"], chain[row]["links"]
        return self

    def _moved_by(self, index, at_s):
        """Metres forward and to the right that a move has done `at_s` after its start."""
        tables = self.engine.tables[0]
        row = tables["boss_moves"][index]
        curve = tables["boss_curves"][row["first_row"] : row["first_row"] + row["rows"]]
        tick = at_s / tables["constants"]["tick_s"]
        return (np.interp(tick, np.arange(len(curve)), curve[:, column]) for column in (0, 1))

    def act_row(self, name, phase=1):
        """The row of an act in the tables."""
        acts = [act.name for act in self.spec.boss.phases[phase - 1].acts]
        return self.engine.tables[0]["phases"][phase - 1]["first_act"] + acts.index(name)

    def place_player(self, away_m, bearing_deg=0.0):
        """Put the player at a distance and bearing from the boss, without a step."""
        hidden = self.hidden
        bearing = math.radians(bearing_deg)
        ahead, right = away_m * math.cos(bearing), away_m * math.sin(bearing)
        hidden["player_x"] = hidden["boss_x"] - hidden["boss_sin"] * ahead - hidden["boss_cos"] * right
        hidden["player_y"] = hidden["boss_y"] - hidden["boss_cos"] * ahead + hidden["boss_sin"] * right
        hidden["player_safe_radius2"] = 0.0


@pytest.fixture(scope="session")
def spec():
    return load_fight("iudex")


@pytest.fixture(scope="session")
def boss_with(spec):
    """Makes the shipped fight with another boss: a function changes the content of the boss's file."""

    def made(change):
        file = DATA / "darksouls3" / "bosses" / "iudex.toml"
        content = read_toml(file)
        change(content)
        reactions = tuple(move.name for move in spec.player.moves if move.kind in ("reaction", "grabbed"))
        return replace(spec, boss=parse_boss(file, content, spec.boss_animations, reactions))

    return made


@pytest.fixture(scope="session")
def new_duel():
    """Makes a Duel of a moveset."""
    return Duel


@pytest.fixture(scope="session")
def _first_phase(spec):
    return Duel(spec)


@pytest.fixture(scope="session")
def _full_fight(spec):
    return Duel(spec, changes=True)


@pytest.fixture
def duel(_first_phase):
    """A fight of the first phase with a boss who does nothing."""
    return _first_phase.begin()


@pytest.fixture
def full_duel(_full_fight):
    """A full fight, in which the boss may change."""
    return _full_fight.begin(still=False)


def metres_per_step(records, start):
    """How far the player got in every step: along x and y."""
    places = np.vstack([start["player_pose"][:2], records["player_pose"][:, :2]]).astype(np.float64)
    return np.diff(places, axis=0)


@pytest.fixture(scope="session")
def steps_of():
    return metres_per_step


def _same_bits(one, other):
    """Are two snapshots equal in every field? Bytes between the fields are nobody's."""
    return all(
        mine[name].tobytes() == its[name].tobytes()
        for mine, its in ((one.fights, other.fights), (one.hidden, other.hidden))
        for name in mine.dtype.names
    )


@pytest.fixture(scope="session")
def same_bits():
    return _same_bits
