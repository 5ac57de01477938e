"""SoulsGym's names on our environments, and rewards of the user's own."""

import copy
import functools
import itertools
import json
import math
import pickle
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import NormalizeReward, RecordEpisodeStatistics, TransformReward

import soulsgym
from soulsgym.actions import NOTHING
from soulsgym.core.game_state import GameState
from soulsgym.envs.darksouls3 import REHEARSE
from soulsgym.envs.darksouls3.iudex import IudexEnv, IudexEnvDemo, IudexImgEnv
from soulsgym.envs.darksouls3.vordt import VordtEnv
from soulsgym.envs.simulated import FightEnv
from soulsgym.envs.soulsenv import SoulsEnv, SoulsEnvDemo
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.game.engine import GameEngine
from soulsgym.state import OBSERVATION_KEYS

sys.path.insert(0, str(Path(__file__).parents[1] / "game"))

from fake_game import FakeTime, fake_game

SIM, DEMO = "SoulsGymIudexSim-v0", "SoulsGymIudexSimDemo-v0"
LIGHT = 16


@pytest.fixture(autouse=True)
def _rewards_as_they_were():
    """Tests put functions into our classes."""
    kinds = (IudexEnv, IudexEnvDemo, IudexImgEnv, VordtEnv, FightEnv, SoulsEnv)
    before = {kind: kind.__dict__.get("compute_reward") for kind in kinds}
    yield
    for kind, function in before.items():
        if function is not None:
            kind.compute_reward = function
        elif "compute_reward" in kind.__dict__:
            del kind.compute_reward


@pytest.fixture
def game(monkeypatch):
    """Environments of the running game are made on a fake one."""
    monkeypatch.delenv(REHEARSE, raising=False)
    asked = []

    def open_fake(plan, options, *, phase=1, changes=False):
        asked.append((plan.boss, options, phase, changes))
        source = FakeTime()
        return GameEngine(
            plan,
            [fake_game(plan.boss, source=source)],
            phase=phase,
            changes=changes,
            game_speed=math.inf,
            source=source,
        )

    monkeypatch.setattr("soulsgym.game.engine.open_engine", open_fake)
    return asked


def lost_health(game_state, next_game_state):
    """A reward that nobody else pays."""
    return 10.0 * (game_state.boss_hp - next_game_state.boss_hp) + next_game_state.phase


class Mine(FightEnv):
    """As its users write it: without staticmethod, with the standard reward and something on top."""

    def compute_reward(self, game_state, next_game_state):
        return IudexEnv.compute_reward(game_state, next_game_state) + 100.0


# ---- names


def test_a_fight_has_their_names():
    env = gymnasium.make(DEMO, phase=2).unwrapped
    assert (env.ENV_ID, env.game_id, env.step_size, env.phase) == ("iudex", "DarkSoulsIII", 0.1, 2)
    observation, info = env.reset(seed=3)
    assert env.phase == observation["phase"] == 2
    assert str(env.obs) == str(observation)
    assert set(env.info) == set(info)
    state = env.game_state()
    assert (state.player_hp, state.boss_hp, state.lock_on) == (454, 1037, True)
    assert (state.player_animation, state.boss_animation) == ("Idle", "IdleBattle")
    assert state.player_pose.tolist() == observation["player_pose"].tolist()


def test_what_is_read_is_of_the_moment_and_stays_as_it_was():
    env = gymnasium.make(SIM).unwrapped
    env.reset(seed=3)
    observation, state = env.obs, env.game_state()
    before = json.dumps(state.as_json())
    for _ in range(20):
        env.step(0)
    assert env.obs["player_pose"].tolist() != observation["player_pose"].tolist()
    assert json.dumps(state.as_json()) == before
    assert env.info["time_s"] == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("name", ["obs", "info"])
def test_before_a_reset_there_is_nothing_to_read(name):
    env = gymnasium.make(SIM).unwrapped
    with pytest.raises(ResetNeeded, match=r"has not begun; call reset\(\)"):
        getattr(env, name)
    with pytest.raises(ResetNeeded):
        env.game_state()
    assert env.phase == 1
    env.compute_reward = lost_health
    with pytest.raises(ResetNeeded):
        env.step(NOTHING)


@pytest.mark.parametrize(("name", "lock_on"), [(SIM, 1), ("SoulsGymIudex-v0", True)])
def test_an_observation_is_json_once_its_arrays_are_lists(game, name, lock_on):
    env = gymnasium.make(name)
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    for key, value in observation.items():
        assert type(value) in (type(lock_on) if key == "lock_on" else int, np.ndarray), key
    read = json.loads(json.dumps(observation, default=np.ndarray.tolist))
    assert read["lock_on"] is lock_on
    assert set(read) == set(OBSERVATION_KEYS)


def test_numbers_that_count_from_0_are_no_bools(game):
    observation, _ = gymnasium.make("SoulsGymIudex-v0", zero_based=True).reset()
    assert {type(value) for value in observation.values()} == {int, np.ndarray}


def test_a_state_of_an_animation_without_a_number():
    env = gymnasium.make(SIM).unwrapped
    env.reset(seed=1)
    env.batch.engine.fights["boss_animation"] = -1
    assert env.game_state().boss_animation == GameState().boss_animation == "NoAnimation"


def test_nobody_who_lives_has_no_health():
    env = gymnasium.make(SIM).unwrapped
    env.reset(seed=1)
    env.batch.engine.fights["boss_hp"] = 0.25
    assert env.game_state().boss_hp == 1


# ---- the standard reward


@pytest.mark.parametrize(("name", "kind"), [(SIM, IudexEnv), ("SoulsGymVordtSim-v0", VordtEnv)])
def test_the_standard_reward_is_the_one_of_the_environment(name, kind):
    env = gymnasium.make(name).unwrapped
    generator, worst, ends = np.random.default_rng(1), 0.0, 0
    _, info = env.reset(seed=1)
    for _ in range(3000):
        before = env.game_state()
        action = int(generator.choice(np.flatnonzero(info["action_mask"])))
        _, reward, terminated, _, info = env.step(action)
        worst = max(worst, abs(reward - kind.compute_reward(before, env.game_state())))
        if terminated:
            ends += 1
            _, info = env.reset()
    assert ends > 3
    assert worst < 1e-6


def test_the_standard_reward_at_the_end_and_around_the_middle():
    far = GameState(player_hp=10, player_max_hp=10, boss_hp=10, boss_max_hp=10)
    far.player_pose[:2] = 139.0, 576.0
    near, won, both, dead = far.copy(), far.copy(), far.copy(), far.copy()
    near.player_pose[1] = 577.0
    won.boss_hp = 0
    both.boss_hp, both.player_hp = 0, 0
    dead.player_hp = 0
    reward = IudexEnv.compute_reward
    assert reward(far, near) == pytest.approx(0.01)
    assert VordtEnv.compute_reward(far, near) == 0.0
    assert (reward(far, won), reward(far, both), reward(far, dead)) == pytest.approx((1.1, 0.1, -1.1))
    inside = far.copy()
    inside.player_pose[:2] = 139.0, 593.0
    assert reward(far, inside) == 0.0


# ---- rewards of the user's own


def _play_on(env):
    for _ in range(3000):
        env.step(NOTHING)


def paid(env, action=NOTHING):
    _, reward, _, _, info = env.step(action)
    return reward, info["reward_terms"]


@pytest.mark.parametrize("where", ["class", "game's class", "environment"])
def test_a_function_that_is_put_in_later_pays_from_then_on(where):
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    assert paid(env)[1].keys() == {"dealt", "taken", "end", "centre"}
    if where == "class":
        FightEnv.compute_reward = staticmethod(lost_health)
    elif where == "game's class":
        IudexEnv.compute_reward = staticmethod(lost_health)
    else:
        env.unwrapped.compute_reward = lost_health
    assert paid(env) == (1.0, {"compute_reward": 1.0})
    assert env.reset(seed=1)[1]["reward_terms"] == {"compute_reward": 0.0}
    other = gymnasium.make(SIM)
    other.reset(seed=1)
    assert paid(other)[0] == (1.0 if where != "environment" else pytest.approx(0.0, abs=0.05))


def test_each_boss_has_a_class_of_his_own():
    VordtEnv.compute_reward = staticmethod(lost_health)
    for name, names in ((SIM, {"dealt", "taken", "end", "centre"}), ("SoulsGymVordtSim-v0", {"compute_reward"})):
        env = gymnasium.make(name)
        env.reset(seed=1)
        assert paid(env)[1].keys() == names


def test_a_function_that_is_taken_out_again_pays_no_more():
    standard = IudexEnv.compute_reward
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    IudexEnv.compute_reward = staticmethod(staticmethod(lost_health))  # twice, as some of them do
    env.unwrapped.compute_reward = lambda game_state, next_game_state: 5
    assert paid(env)[0] == 5.0
    del env.unwrapped.compute_reward
    assert paid(env)[0] == 1.0
    IudexEnv.compute_reward = staticmethod(standard)
    assert "centre" in paid(env)[1]


def test_a_wrapper_of_the_standard_reward_is_the_users_own():
    standard = IudexEnv.compute_reward

    @functools.wraps(standard)
    def doubled(game_state, next_game_state):
        return 2.0 * standard(game_state, next_game_state) + 1000.0

    IudexEnv.compute_reward = staticmethod(doubled)
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    assert paid(env)[0] > 900.0


def test_a_class_of_ones_own_may_use_the_standard_reward():
    env = Mine("iudex")
    env.reset(seed=1)
    assert paid(env)[0] == pytest.approx(100.0, abs=1.0)
    IudexEnv.compute_reward = staticmethod(lambda game_state, next_game_state: 1.0)
    assert paid(env)[0] == 101.0


def test_it_is_given_the_states_before_and_after_and_may_spoil_them():
    seen = []

    def spoil(game_state, next_game_state):
        seen.append((game_state.copy(), next_game_state.copy()))
        next_game_state.player_pose[:] = 0.0
        next_game_state.boss_hp = 0
        return 0

    env = gymnasium.make(SIM).unwrapped
    env.reset(seed=1)
    first = env.game_state()
    env.compute_reward = spoil
    for _ in range(3):
        env.step(0)
    assert seen[0][0].player_pose.tolist() == first.player_pose.tolist()
    for (_, after), (before, _) in itertools.pairwise(seen):
        assert json.dumps(after.as_json()) == json.dumps(before.as_json())
    assert env.game_state().boss_hp == 1037


def test_with_steps_that_are_merged_the_states_are_those_at_their_ends():
    seen = []
    env = gymnasium.make(SIM, skip_steps=True).unwrapped
    env.reset(seed=1)
    env.compute_reward = lambda game_state, next_game_state: seen.append((game_state, next_game_state)) or 0.0
    before = int(env.fight["step"][0])
    env.step(LIGHT)
    assert env.fight["step"][0] - before > 1
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("value", "reward"), [(3, 3.0), (True, 1.0), (np.float32(0.5), 0.5), (np.array([2.0]), 2.0), (np.array(4), 4.0)]
)
def test_whatever_is_a_number_is_a_reward(value, reward):
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    env.unwrapped.compute_reward = lambda game_state, next_game_state: value
    got = paid(env)[0]
    assert (got, type(got)) == (reward, float)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (math.nan, "compute_reward gave nan; give a finite number"),
        (np.float32(np.inf), "compute_reward gave inf; give a finite number"),
        (None, "compute_reward gave None; give a number"),
        ("much", "compute_reward gave 'much'; give a number"),
        (np.zeros(2), r"compute_reward gave array\(\[0\., 0\.\]\); give a number"),
    ],
)
@pytest.mark.parametrize("where", ["class", "environment"])
def test_what_is_no_number_is_refused_by_name_and_the_fight_goes_on(value, sentence, where):
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    target = FightEnv if where == "class" else env.unwrapped

    def sick(game_state, next_game_state):
        return value

    target.compute_reward = staticmethod(sick) if where == "class" else sick
    with pytest.raises(MisuseError, match=sentence):
        env.step(NOTHING)
    assert env.unwrapped.fight["step"][0] == 1
    del target.compute_reward
    assert env.unwrapped.fight["step"][0] == 1
    env.step(NOTHING)
    assert env.unwrapped.fight["step"][0] == 2


@pytest.mark.parametrize("where", ["class", "environment"])
def test_an_error_in_it_is_the_users_and_the_fight_goes_on(where):
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    target = IudexEnv if where == "class" else env.unwrapped

    def sick(game_state, next_game_state):
        return game_state.poise

    target.compute_reward = staticmethod(sick) if where == "class" else sick
    with pytest.raises(AttributeError, match="poise"):
        env.step(NOTHING)
    target.compute_reward = staticmethod(lost_health) if where == "class" else lost_health
    assert paid(env)[0] == 1.0
    assert env.unwrapped.fight["step"][0] == 2
    env.reset()
    assert paid(env)[0] == 1.0


def test_an_error_in_the_last_step_leaves_a_fight_that_is_over():
    env = gymnasium.make(SIM).unwrapped
    env.reset(seed=1, options={"start": {"player_hp": 1}})
    env.compute_reward = lambda game_state, next_game_state: 1 / next_game_state.player_hp
    with pytest.raises(ZeroDivisionError):
        _play_on(env)
    with pytest.raises(ResetNeeded):
        env.step(NOTHING)
    env.reset(seed=1)
    assert paid(env)[0] == pytest.approx(1 / 454)


def test_a_function_without_staticmethod_in_a_class_fails_as_it_does_there():
    FightEnv.compute_reward = lost_health
    env = gymnasium.make(SIM)
    env.reset(seed=1)
    with pytest.raises(TypeError, match="positional argument"):
        env.step(NOTHING)


# ---- beside what others do


def test_wrappers_see_it_in_their_order():
    env = gymnasium.make(SIM)
    env.unwrapped.compute_reward = lambda game_state, next_game_state: 2.0
    outer = TransformReward(RecordEpisodeStatistics(env), lambda reward: reward + 1.0)
    inner = RecordEpisodeStatistics(TransformReward(env, lambda reward: reward + 1.0))
    for wrapped, counted in ((outer, 2.0), (inner, 3.0)):
        wrapped.reset(seed=1, options={"start": {"player_hp": 1}})
        steps = 0
        while True:
            _, reward, terminated, truncated, info = wrapped.step(NOTHING)
            steps += 1
            assert reward == 3.0
            if terminated or truncated:
                break
        assert info["episode"]["r"] == pytest.approx(counted * steps)
    normal = NormalizeReward(env)
    normal.reset(seed=1)
    assert math.isfinite(normal.step(NOTHING)[1])


def test_it_wins_over_the_part():
    env = gymnasium.make(SIM, reward="duel", encoder="player")
    env.unwrapped.compute_reward = lost_health
    env.reset(seed=1)
    assert paid(env) == (1.0, {"compute_reward": 1.0})


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_takes_it_along(again):
    env = gymnasium.make(SIM).unwrapped
    env.compute_reward = lost_health
    env.reset(seed=1)
    assert paid(again(env))[0] == 1.0
    mine = Mine("iudex")
    mine.reset(seed=1)
    assert paid(again(mine))[0] == pytest.approx(100.0, abs=1.0)


def test_the_others_checker_passes_with_it():
    env = gymnasium.make(SIM, disable_env_checker=True).unwrapped
    env.compute_reward = lost_health
    check_env(env, skip_render_check=True)


def test_stable_baselines_takes_a_fight_for_no_environment_with_goals():
    assert not hasattr(gymnasium.make(SIM).unwrapped, "compute_reward")


def test_a_fight_of_another_boss_knows_nothing_of_iudex(tmp_path):
    file = tmp_path / "gundyr.toml"
    file.write_text((Path(soulsgym.__file__).parent / "data/darksouls3/bosses/iudex.toml").read_text(encoding="utf-8"))
    IudexEnv.compute_reward = staticmethod(lost_health)
    env = gymnasium.make("SoulsGymSim-v0", boss=str(file)).unwrapped
    assert env.ENV_ID == "gundyr"
    env.reset(seed=1)
    assert "compute_reward" not in paid(env)[1]


# ---- the classes of the running game


def test_classes_make_the_fights_of_their_ids(game):
    training, demo, vordt = IudexEnv(2.0, 2, True), IudexEnvDemo(1.5, True), VordtEnv(3.0, 2, True)
    assert [(boss, phase, changes) for boss, _, phase, changes in game] == [
        ("iudex", 2, False),
        ("iudex", 1, True),
        ("vordt", 2, False),
    ]
    assert [options.speed for _, options, _, _ in game] == [2.0, 1.5, 3.0]
    assert (training.ENV_ID, demo.ENV_ID, vordt.ENV_ID) == ("iudex", "iudex", "vordt")
    assert isinstance(demo, SoulsEnvDemo)
    assert not isinstance(training, SoulsEnvDemo)
    assert (draws_poses(training), draws_poses(demo), draws_poses(vordt)) == (True, True, False)
    assert vordt.batch.decisions
    assert "centre" not in vordt.batch.term_names


def test_the_screen_is_seen_by_the_same_class(game):
    env = IudexImgEnv(1.0, 1, False, False, (45, 80))
    assert isinstance(env, IudexEnv)
    assert env.observation_space.shape == (45, 80, 3)
    assert type(gymnasium.make("SoulsGymIudexImg-v0", disable_env_checker=True).unwrapped) is IudexImgEnv


def draws_poses(env):
    """Is the place of the player drawn?"""
    return bool(env.batch.parts.starts.draw(np.ones(1, np.bool_), np.random.default_rng(1))["random_pose"][0])


def test_the_older_name_of_random_poses(game):
    for given in (True, False):
        env = IudexEnv(game_speed=2, phase=1, init_pose_randomization=given)
        assert draws_poses(env) is given
    for name in ("SoulsGymIudexDemo-v0", SIM):
        assert draws_poses(gymnasium.make(name, init_pose_randomization=True).unwrapped)


def test_a_reward_in_the_class_holds_for_the_classes_derived_from_it(game):
    IudexEnv.compute_reward = staticmethod(lost_health)
    for name, reward in (("SoulsGymIudex-v0", 1.0), ("SoulsGymIudexDemo-v0", 1.0)):
        env = gymnasium.make(name, disable_env_checker=True)
        env.reset(seed=1)
        assert paid(env) == (reward, {"compute_reward": reward})
        env.close()
    vordt = VordtEnv()
    vordt.reset()
    assert "compute_reward" not in paid(vordt)[1]


def test_a_class_derived_from_theirs(game):
    class Careful(IudexEnv):
        """Pays for being alive."""

        def __init__(self, bonus, **keywords):
            super().__init__(**keywords)
            self.bonus = bonus

        def compute_reward(self, game_state, next_game_state):
            return super().compute_reward(game_state, next_game_state) + self.bonus

    env = Careful(7.0, game_speed=3.0)
    env.reset()
    assert paid(env)[0] == pytest.approx(7.0, abs=0.5)
    assert env.game.data.actions[19] == []
    assert env.game_state().boss_max_hp == 1037


@pytest.mark.parametrize("name", ["SoulsGymIudex-v0", "SoulsGymIudexDemo-v0", "SoulsGymVordt-v0"])
def test_without_a_reward_of_ones_own_the_game_pays_the_standard_one(game, name):
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    _, info = env.reset(seed=1)
    generator = np.random.default_rng(1)
    for _ in range(60):
        before = env.game_state()
        _, reward, terminated, _, info = env.step(int(generator.choice(np.flatnonzero(info["action_mask"]))))
        assert reward == pytest.approx(env.compute_reward(before, env.game_state()), abs=1e-6)
        if terminated:
            _, info = env.reset()


def test_a_simulator_stands_in_for_scripts_that_shall_not_change(game, monkeypatch, caplog):
    made = []
    monkeypatch.setenv(REHEARSE, "standard")
    monkeypatch.setattr("soulsgym.envs.game.RehearsalOptions", lambda file, pace: made.append(file) or "options")
    monkeypatch.setattr("soulsgym.envs.game.fields_not_told", lambda spec, options: ())

    def stop(spec, options, **rest):
        raise KeyboardInterrupt

    monkeypatch.setattr("soulsgym.envs.game.open_target", stop)
    for keywords in ({}, {"rehearse": "hard"}):
        with pytest.raises(KeyboardInterrupt):
            IudexEnvDemo(3.0, **keywords)
    for keywords in ({"pid": 7}, {"launch": "steam"}, {"rehearse": ""}):
        with pytest.raises(KeyboardInterrupt):
            IudexEnv(**keywords)
    assert made == ["standard", "hard"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "SOULSGYM_REHEARSE=standard" in caplog.text


@pytest.mark.slow
def test_a_rehearsal_by_the_name_of_a_variant_has_their_rewards_too(monkeypatch):
    monkeypatch.setenv(REHEARSE, "standard")
    IudexEnv.compute_reward = staticmethod(lost_health)
    env = gymnasium.make("SoulsGymIudex-v0", game_speed=3.0)
    try:
        env.reset()
        assert paid(env) == (1.0, {"compute_reward": 1.0})
    finally:
        env.close()
    monkeypatch.setenv(REHEARSE, "harder")
    with pytest.raises(MisuseError, match="variant 'harder' of iudex is not known, did you mean 'hard'"):
        gymnasium.make("SoulsGymIudex-v0")
