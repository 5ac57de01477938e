"""The environments of the running game, on a fake one; the same on a real process are in test_game_on_standin."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.actions import NOTHING
from soulsgym.batch import ENDING_KEYS
from soulsgym.errors import MisuseError
from soulsgym.game.engine import GameEngine
from soulsgym.spec import load_fight
from soulsgym.state import OBSERVATION_KEYS, Outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "game"))

from fake_game import FakeTime, fake_game

IUDEX, DEMO, VORDT = "SoulsGymIudex-v0", "SoulsGymIudexDemo-v0", "SoulsGymVordt-v0"


@pytest.fixture
def make(monkeypatch):
    """Makes an environment on a fake game."""

    def open_fake(plan, options, *, phase=1, changes=False):
        source = FakeTime()
        game = fake_game(plan.boss, source=source)
        return GameEngine(plan, [game], phase=phase, changes=changes, game_speed=math.inf, source=source)

    monkeypatch.setattr("soulsgym.game.engine.open_engine", open_fake)
    return lambda name, **keywords: gymnasium.make(name, disable_env_checker=True, **keywords)


def test_the_record_is_seen_by_key(make):
    env = make(IUDEX)
    observation, info = env.reset(seed=1)
    assert set(observation) == set(OBSERVATION_KEYS)
    assert {"action_mask", "reward_terms", "allowed_actions", "player_hp", *ENDING_KEYS} <= set(info)
    assert set(info["reward_terms"]) == {"dealt", "taken", "end", "centre"}
    before = set(info)
    observation, _, terminated, truncated, info = env.step(NOTHING)
    assert before <= set(info)
    assert observation in env.observation_space
    assert (terminated, truncated) == (False, False)
    assert info["time_s"] == pytest.approx(0.1, abs=0.02)
    env.close()


@pytest.mark.parametrize("name", [IUDEX, DEMO])
def test_parts_are_those_of_the_simulator(make, name):
    keywords = {"encoder": "player", "reward": "duel", "actions": "reduced", "decisions": True}
    env = make(name, **keywords)
    simulated = gymnasium.make("SoulsGymIudexSim-v0", **keywords)
    assert env.observation_space == simulated.observation_space
    assert env.action_space == simulated.action_space == spaces.Discrete(16)
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert info["action_mask"].shape == (16,)
    assert env.unwrapped.action_masks().tolist() == info["action_mask"].tolist()
    env.step(8)
    assert env.unwrapped.fight["step"][0] > 1


def test_a_game_that_fails_cuts_the_fight_off(make):
    env = make(IUDEX)
    env.reset(seed=1)
    engine = env.unwrapped.batch.engine
    engine.fights["outcome"] = Outcome.BROKEN
    engine.step = lambda controls, skip: None
    _, _, terminated, truncated, info = env.step(NOTHING)
    assert (terminated, truncated) == (False, True)
    assert (info["won"], info["killed_by"]) == (False, "")


def test_vordt_shows_frost_and_pays_no_way_to_the_middle(make):
    env = make(VORDT)
    observation, info = env.reset(seed=1)
    assert set(observation) == {*OBSERVATION_KEYS, "frost_resistance", "frost_effect"}
    assert observation in env.observation_space
    assert set(info["reward_terms"]) == {"dealt", "taken", "end"}


def test_parts_that_need_what_nobody_has_written_down_are_refused(make, monkeypatch):
    env = make(VORDT, encoder="soulsai74", reward="duel", actions="no-parry")
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert info["action_mask"].shape == (19,)
    spec = load_fight("vordt")
    bare = replace(spec, arena=replace(spec.arena, corners=()))
    monkeypatch.setattr("soulsgym.envs.game.load_fight", lambda boss, moves: bare)
    with pytest.raises(MisuseError, match="encoder 'player' needs the edges of vordts_hall, which has none"):
        make(VORDT, encoder="player")


def test_the_screen_takes_no_encoder(make):
    with pytest.raises(MisuseError, match="encoder cannot be used with the screen"):
        make("SoulsGymIudexImg-v0", encoder="player")


def test_whole_numbers_may_count_from_zero(make):
    env = make(VORDT, zero_based=True)
    observation, _ = env.reset(seed=1)
    assert observation["player_max_hp"] == 0
    assert observation in env.observation_space
    assert np.isfinite(observation["frost_effect"]).all()
