"""Fights to encode: random ones of the simulator, and records made by hand."""

from dataclasses import dataclass

import numpy as np
import pytest

from soulsgym.actions import controls_of
from soulsgym.engine import standard_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.state import FIGHT, Fights, Outcome, copied

FIGHTS, STEPS = 200, 420


@dataclass(frozen=True)
class Played:
    """Records [steps, n], the last actions, and which fights began with that record."""

    fights: Fights
    actions: np.ndarray
    begun: np.ndarray

    def __len__(self):
        return len(self.fights)

    def encoded(self, encoder, *, first=0, last=None, of=slice(None)):
        """All encodings of some fights from one record to another."""
        rows = []
        for fights, actions, begun in zip(
            self.fights[first:last, of], self.actions[first:last, of], self.begun[first:last, of], strict=True
        ):
            out = np.full((len(fights), encoder.size), np.nan, np.float32)
            encoder.begin(fights, begun)
            encoder.encode(fights, actions, np.ones(len(fights), np.bool_), out)
            rows.append(out)
        return np.array(rows)


@pytest.fixture(scope="session")
def played(spec):
    """200 full fights of a random player; those that are over begin again, half of them in the second phase."""
    rng = np.random.default_rng(11)
    engine = SimEngine(spec, FIGHTS, changes=True, randomize=1.0)
    starts = standard_starts(FIGHTS)
    starts["random_pose"] = 1
    starts["phase"][::2] = 2
    begun, actions = np.ones(FIGHTS, np.bool_), np.full(FIGHTS, -1, np.int64)
    engine.reset(begun, starts, np.arange(FIGHTS, dtype=np.uint64))
    records = []
    for _ in range(STEPS):
        records.append((copied(engine.fights), actions, begun))
        begun = engine.fights["outcome"] != Outcome.RUNNING
        actions = np.where(begun, -1, rng.integers(0, 20, FIGHTS))
        engine.step(controls_of(np.maximum(actions, 0)))
        engine.reset(begun, starts, None)
    engine.close()
    return Played(*(np.array(column) for column in zip(*records, strict=True)))


@pytest.fixture(scope="session")
def record(spec):
    """Makes a record: both stand still in the middle, unless told otherwise; animations by name."""
    player_ids = {animation.name: i for i, animation in enumerate(spec.player_animations)}
    boss_ids = {name: i for i, name in enumerate(spec.boss_animations)}

    def made(*, player_animation="Idle", boss_animation="IdleBattle", **fields):
        fight = np.zeros(1, FIGHT)
        values = {
            "phase": 1, "player_hp": 454.0, "player_max_hp": 454, "player_sp": 95.0, "player_max_sp": 95,
            "boss_hp": 1037.0, "boss_max_hp": 1037, "player_pose": (140.0, 590.0, -69.0, np.pi),
            "boss_pose": (140.0, 600.0, -69.0, 0.0), "camera_pose": (140.0, 586.0, -67.0, 0.0, 1.0, 0.0), "lock_on": 1,
        }  # fmt: skip
        for name, value in (values | fields).items():
            fight[name] = value
        fight["player_animation"] = player_ids.get(player_animation, -1)
        fight["boss_animation"] = boss_ids.get(boss_animation, -1)
        return fight

    return made


def _encodings(encoder, records, actions=None):
    """The encodings of one fight, record by record, as dicts by name."""
    alone = np.ones(1, np.bool_)
    encoder.begin(records[0], alone)
    rows = []
    for step, fight in enumerate(records):
        out = np.full((1, encoder.size), np.nan, np.float32)
        action = -1 if actions is None else actions[step]
        encoder.encode(fight, np.array([action], np.int64), alone, out)
        rows.append(dict(zip(encoder.names, out[0].tolist(), strict=True)))
    return rows


@pytest.fixture(scope="session")
def encodings():
    return _encodings
