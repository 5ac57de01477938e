"""Parts by keyword: encoders, rewards, actions, endings and starts in every Gymnasium environment."""

import shutil
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.envs.registry import ENCODED
from soulsgym.errors import MisuseError
from soulsgym.parts.actions import make_actions
from soulsgym.spec import load_fight
from soulsgym.spec.fight import DATA

IUDEX, DEMO, ANY_BOSS = "SoulsGymIudexSim-v0", "SoulsGymIudexSimDemo-v0", "SoulsGymSim-v0"
NOTHING = 19


class Health:
    """An encoder of the user's own: the shares of health, and how many encodings there were."""

    size, names = 3, ("player", "boss", "count")

    def __init__(self, n, spec):
        self.count, self.boss_hp = np.zeros(n), spec.boss.hp

    def begin(self, fights, mask):
        self.count[mask] = 0

    def encode(self, fights, actions, mask, out):
        self.count[mask] += 1
        out[mask, 0] = fights["player_hp"][mask, 0] / fights["player_max_hp"][mask]
        out[mask, 1] = fights["boss_hp"][mask, 0] / self.boss_hp
        out[mask, 2] = self.count[mask]

    def state(self):
        return {"count": self.count.copy()}

    def restore(self, state):
        self.count[:] = state["count"]


class Bounded(Health):
    low, high = (0.0, 0.0, 0.0), (1.0, 1.0, 5000.0)


class Alive:
    """A reward of the user's own."""

    names = ("alive",)

    def __init__(self, n, spec):
        self.begun = np.zeros(n, bool)

    def begin(self, fights, mask):
        self.begun[mask] = True

    def of(self, fights):
        assert self.begun.all()
        rewards = (fights["player_hp"][:, 0] > 0).astype(float)
        return rewards, rewards[:, None].copy()


class Apart:
    """An ending of the user's own: cut off where the fighters are more than 22 m apart."""

    def of(self, fights):
        away = np.hypot(*(fights["player_pose"] - fights["boss_pose"])[:, :2].T)
        return np.zeros(len(fights), bool), away > 22.0

    def won(self, fights):
        return np.ones(len(fights), bool)


CHOICES = {
    "player": {"encoder": "player", "reward": "duel"},
    "soulsai74": {"encoder": {"name": "soulsai74"}, "reward": "rl-souls", "actions": "reduced"},
    "history": {"encoder": {"name": "player", "history": 4}, "reward": "soulsgym", "decisions": True},
    "weights": {"reward": {"preset": "duel", "weights": {"combo": 0.5}}},
    "actions": {"actions": ["walk F", "roll B", "light attack", "nothing"], "ending": "no_hit"},
    "ending": {"ending": {"step_limit": 40}, "actions": "no-parry", "zero_based": True},
    "starts": {"starts": {"mid_fight": 1.0, "random_pose": True}, "encoder": "player"},
    "own": {"encoder": Health, "reward": Alive, "ending": Apart()},
    "bounded": {"encoder": Bounded, "actions": make_actions("reduced")},
}  # fmt: skip
EVERY = [pytest.param(name, id=name) for name in CHOICES]
ALONE = [one for one in EVERY if one.id != "starts"]
"""Starts anywhere in a fight are drawn for all fights of a batch together."""


def single(choice, name=DEMO, **more):
    return gymnasium.make(name, disable_env_checker=True, **CHOICES[choice], **more)


def vector(choice, n=4, name=DEMO, **more):
    return gymnasium.make_vec(name, num_envs=n, **CHOICES[choice], **more)


# ---------------------------------------------------------------- what every choice keeps to


@pytest.mark.parametrize("choice", EVERY)
def test_gymnasiums_checker_has_nothing_to_say(choice):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(single(choice).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("choice", EVERY)
def test_two_copies_roll_out_alike(choice):
    one, other = single(choice), single(choice)
    assert data_equivalence(one.reset(seed=3), other.reset(seed=3))
    one.action_space.seed(3)
    for _ in range(120):
        action = one.action_space.sample()
        mine, its = one.step(action), other.step(action)
        assert data_equivalence(mine, its)
        assert one.observation_space.contains(mine[0])
        if mine[2] or mine[3]:
            assert data_equivalence(one.reset(), other.reset())


@pytest.mark.slow
@pytest.mark.parametrize("choice", ALONE)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_batch_is_the_fights_alone(choice, mode):
    native = vector(choice, autoreset_mode=mode, max_episode_steps=50)
    sync = SyncVectorEnv([lambda: single(choice, max_episode_steps=50)] * 4, autoreset_mode=mode)
    assert native.single_observation_space == sync.single_observation_space
    assert native.single_action_space == sync.single_action_space
    mine, its = native.reset(seed=5), sync.reset(seed=5)
    assert data_equivalence(mine[0], its[0])
    generator, ends = np.random.default_rng(0), 0
    for _ in range(110):
        actions = generator.integers(0, native.single_action_space.n, 4)
        mine, its = native.step(actions), sync.step(actions)
        assert data_equivalence(mine[0], its[0])
        assert mine[1] == pytest.approx(its[1], abs=1e-9)
        assert (mine[2].tolist(), mine[3].tolist()) == (its[2].tolist(), its[3].tolist())
        assert np.array_equal(mine[4]["action_mask"], its[4]["action_mask"])
        ended = mine[2] | mine[3]
        ends += int(ended.sum())
        if mode is AutoresetMode.SAME_STEP and ended.any():
            for index in np.flatnonzero(ended):
                assert data_equivalence(mine[4]["final_obs"][index], its[4]["final_obs"][index])
                assert mine[4]["final_info"]["won"][index] == its[4]["final_info"]["won"][index]
                mask = mine[4]["final_info"]["action_mask"][index]
                assert np.array_equal(mask, its[4]["final_info"]["action_mask"][index])
    assert ends


@pytest.mark.parametrize("choice", EVERY)
def test_a_snapshot_goes_on_as_the_fight_did(choice):
    env = single(choice)
    env.reset(seed=4)
    plan = np.random.default_rng(1).integers(0, env.action_space.n, 30)
    for action in plan[:10]:
        if any(env.step(action)[2:4]):
            env.reset()
    kept = env.unwrapped.snapshot()

    def rest():
        steps = []
        for action in plan[10:]:
            steps.append(env.unwrapped.step(action))
            if steps[-1][2] or steps[-1][3]:
                break
        return steps

    first = rest()
    env.reset(options={"start": kept})
    assert data_equivalence(rest(), first)


def test_a_snapshot_of_other_parts_begins_with_an_empty_memory():
    raw, encoded = single("weights"), single("own")
    raw.reset(seed=1)
    encoded.reset(seed=1)
    for _ in range(5):
        raw.step(0)
        encoded.step(0)
    observation, _ = encoded.reset(options={"start": raw.unwrapped.snapshot()})
    assert observation[2] == 1.0


# ---------------------------------------------------------------- spaces


@pytest.mark.parametrize("name", ENCODED)
def test_encoded_ids_show_finite_numbers(name):
    env = gymnasium.make(name, boss="iudex", disable_env_checker=True)
    space = env.observation_space
    assert isinstance(space, spaces.Box)
    assert space.dtype == np.float32
    assert np.isfinite(space.low).all()
    assert np.isfinite(space.high).all()
    assert env.action_space == spaces.Discrete(20)
    batch = gymnasium.make_vec(name, num_envs=3, boss="iudex")
    assert batch.single_observation_space == space
    observations, _ = batch.reset(seed=0)
    assert observations.shape == (3, *space.shape)
    assert observations.dtype == np.float32


def test_bounds_are_those_that_the_encoder_declares():
    assert single("bounded").observation_space.high.tolist() == [1.0, 1.0, 5000.0]
    assert single("own").observation_space.high.tolist() == [1e6] * 3


def test_observations_and_masks_are_not_changed_by_later_steps():
    env = vector("player")
    observations, infos = env.reset(seed=1)
    kept, mask, masks = observations.copy(), infos["action_mask"].copy(), env.unwrapped.action_masks()
    for _ in range(5):
        env.step(np.full(4, 8))
    assert np.array_equal(kept, observations)
    assert np.array_equal(mask, infos["action_mask"])
    assert np.array_equal(mask, masks)


def test_the_record_counts_from_zero_if_asked():
    plain, zero = single("weights"), single("weights", zero_based=True)
    assert all(one.start == 0 for one in zero.observation_space.values() if isinstance(one, spaces.Discrete))
    (mine, _), (its, _) = zero.reset(seed=1), plain.reset(seed=1)
    assert (mine["phase"], mine["player_max_hp"], mine["boss_max_hp"]) == (0, 0, 0)
    assert mine["player_animation"] == its["player_animation"] + 1
    assert mine["lock_on"] == its["lock_on"]
    assert np.array_equal(mine["player_pose"], its["player_pose"])
    assert zero.observation_space.contains(mine)


# ---------------------------------------------------------------- what the parts do


def test_actions_are_positions_in_the_set():
    env = single("actions")
    assert env.action_space == spaces.Discrete(4)
    _, info = env.reset(seed=1)
    assert info["action_mask"].shape == (4,)
    env.step(1)
    # A roll backwards leaves nothing to choose but nothing itself, the last of the four.
    assert env.unwrapped.action_masks().tolist() == [False, False, False, True]
    assert env.unwrapped.current_valid_actions() == [3]
    with pytest.raises(MisuseError, match="action 4 is out of range; give 0 to 3"):
        env.step(4)
    batch = vector("actions")
    batch.reset(seed=1)
    with pytest.raises(MisuseError, match="action 4 is out of range; give 0 to 3"):
        batch.step(np.full(4, 4))


def test_masks_of_a_batch_are_those_of_its_info():
    env = vector("actions")
    env.reset(seed=1)
    infos = env.step(np.ones(4, int))[4]
    assert np.array_equal(env.unwrapped.action_masks(), infos["action_mask"])


def test_the_first_hit_ends_a_no_hit_fight_as_lost():
    env = single("actions")
    start = {"player_hp": 454, "player_pose": (140.0, 586.0, 0.0), "boss_pose": (140.0, 590.0, 0.0)}
    env.reset(seed=3, options={"start": start})
    terminated = False
    while not terminated:
        _, _, terminated, _, info = env.step(3)
    assert info["damage_taken"] > 0
    assert env.unwrapped.fight["player_hp"][0, 0] > 0
    assert (info["won"], info["killed_by"]) == (False, "")


def test_a_step_limit_counts_environment_steps():
    env = gymnasium.make(DEMO, ending={"step_limit": 20}, decisions=True, disable_env_checker=True)
    env.reset(seed=1)
    calls, truncated = 0, False
    while not truncated:
        _, _, terminated, truncated, info = env.step(12)
        calls += 1
        assert not terminated
    assert calls < 20 <= env.unwrapped.fight["step"][0]
    assert info["time_s"] >= 2.0


def test_own_parts_are_used_and_fights_still_end():
    env = single("own")
    observation, info = env.reset(seed=1, options={"start": {"player_hp": 1, "player_pose": (140, 586, 0),
                                                             "boss_pose": (140, 590, 0)}})  # fmt: skip
    assert observation.tolist() == pytest.approx([1 / 454, 1.0, 1.0])
    assert info["reward_terms"] == {"alive": 0.0}
    terminated = False
    while not terminated:
        observation, reward, terminated, _, info = env.step(NOTHING)
        assert info["reward_terms"] == {"alive": reward}
    assert reward == 0.0
    assert info["won"] is False
    assert info["killed_by"]


def test_own_rules_cut_fights_off():
    env = single("own")
    env.reset(seed=1, options={"start": {"player_pose": (132.2, 575.1, 0), "boss_pose": (140, 600, 0)}})
    _, _, terminated, truncated, _ = env.step(NOTHING)
    assert (terminated, truncated) == (False, True)


def test_an_object_given_to_many_is_copied_for_each():
    given = Health(1, load_fight("iudex"))
    one, other = (gymnasium.make(IUDEX, encoder=given, disable_env_checker=True) for _ in range(2))
    one.reset(seed=1)
    one.step(0)
    assert other.reset(seed=1)[0][2] == 1.0
    assert given.count.tolist() == [0.0]


def test_mid_fight_starts_are_drawn_and_follow_the_seed():
    def healths(seed):
        observations, _ = vector("starts", n=16).reset(seed=seed)
        return observations[:, 2].tolist()

    assert healths(1) == healths(1) != healths(2)
    assert len(set(healths(1))) == 16


def test_decisions_are_skipped_steps():
    one, other = (gymnasium.make(IUDEX, disable_env_checker=True, **{key: True}) for key in ("decisions", "skip_steps"))
    one.reset(seed=1)
    other.reset(seed=1)
    assert data_equivalence(one.step(12), other.step(12))
    assert one.unwrapped.fight["step"][0] == 8


# ---------------------------------------------------------------- a boss of the user's own


@pytest.mark.parametrize("name", [ANY_BOSS, IUDEX, "SoulsGymSimEncoded-v0"])
def test_a_boss_may_be_a_file(tmp_path, name):
    file = tmp_path / "mine.toml"
    shutil.copy(DATA / "darksouls3" / "bosses" / "iudex.toml", file)
    env = gymnasium.make(name, boss=str(file), disable_env_checker=True)
    env.reset(seed=1)
    env.step(0)
    assert env.unwrapped.fight_spec.boss_name == str(file)
    batch = gymnasium.make_vec(name, num_envs=2, boss=str(file))
    batch.reset(seed=1)
    batch.step(np.zeros(2, int))


def test_the_id_of_any_boss_needs_one():
    with pytest.raises(MisuseError, match="boss is missing; give the name of one, or the path of its file"):
        gymnasium.make(ANY_BOSS)


# ---------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"encoder": "playr"}, "encoder 'playr' is not known, did you mean 'player'?"),
        ({"encoder": {"nam": "player"}}, "'nam'.* did you mean 'name'?"),
        ({"encoder": {"history": 0}}, "history 0 is not possible"),
        ({"encoder": 5}, "encoder 5 cannot be used; give a name"),
        ({"reward": "dual"}, "'dual' is not known, did you mean 'duel'?"),
        ({"reward": {"preset": "duel", "weights": {"takn": 1.0}}}, "reward term 'takn' is not known"),
        ({"reward": {"preset": "duel", "weights": {"taken": float("nan")}}}, "give a finite number"),
        ({"actions": "fewer"}, "'fewer' is not known"),
        ({"actions": ["walk F", "walk F"]}, "action 'walk F' is there 2 times"),
        ({"ending": "never"}, "ending 'never' is not known"),
        ({"ending": {"step_limit": 0}}, "step limit 0 is not possible"),
        ({"starts": {"mid_fight": 2.0}}, "mid_fight 2.0 is out of range"),
        ({"starts": "anywhere"}, "starts 'anywhere' is not known"),
        ({"reward": Apart}, "Apart"),
    ],
)
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_impossible_parts_are_refused_in_one_sentence(make, choice, message):
    with pytest.raises((MisuseError, TypeError), match=message) as caught:
        make(IUDEX, **choice)
    assert "\n" not in str(caught.value)


def test_unknown_keywords_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'encodr', did you mean 'encoder'"):
        gymnasium.make_vec(IUDEX, num_envs=2, encodr="player")


def test_what_the_running_game_does_not_tell_is_refused_before_it_is_looked_for():
    class Dodging(Alive):
        needs = ("dodged",)

    with pytest.raises(MisuseError, match="reward Dodging needs 'dodged', which this engine cannot tell"):
        gymnasium.make("SoulsGymIudex-v0", reward=Dodging)
