"""One fight as an environment."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from soulsgym.batch import ENDING_KEYS
from soulsgym.engine import Snapshot
from soulsgym.envs.simulated import FightEnv
from soulsgym.errors import MisuseError, ResetNeeded, SoulsError, StartError

NOTHING = 19
EASTERN_EDGE = {"player_pose": (160.2, 593.0, math.pi / 2), "boss_pose": (148.0, 593.0, -math.pi / 2)}
"""The player with his back to the cliff."""


@pytest.fixture
def env():
    made = FightEnv("iudex")
    yield made
    made.close()


def formula(before, after):
    """The reward of SoulsGym from two observations."""
    reward = (before["boss_hp"][0] - after["boss_hp"][0]) / after["boss_max_hp"]
    reward += (after["player_hp"][0] - before["player_hp"][0]) / after["player_max_hp"]
    if after["boss_hp"][0] == 0:
        return reward + 0.1
    if after["player_hp"][0] == 0:
        return reward - 0.1
    away, was = (math.dist(each["player_pose"][:2], (139.0, 596.0)) for each in (after, before))
    return reward + (0.01 * (was - away) if away > 4 else 0.0)


# ---------------------------------------------------------------- rewards


@pytest.mark.parametrize("skip_steps", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_reward_is_the_formula(skip_steps, seed):
    env = FightEnv("iudex", random_player_pose=True, skip_steps=skip_steps)
    generator = np.random.default_rng(seed)
    before, info = env.reset(seed=seed)
    ends = 0
    for _ in range(900):
        action = generator.choice(np.flatnonzero(info["action_mask"]))
        after, reward, over, truncated, info = env.step(action)
        assert isinstance(reward, float)
        assert reward == pytest.approx(formula(before, after), abs=2e-6)
        assert sum(info["reward_terms"].values()) == pytest.approx(reward, abs=1e-9)
        assert not truncated
        before = after
        if over:
            ends += 1
            before, info = env.reset()
    assert ends > 0


def test_winning_pays_the_bonus(env):
    env.reset(seed=1, options={"start": {"boss_hp": 52, "player_pose": (140, 590, 0), "boss_pose": (140, 588.7, 3)}})
    for action in [16] + [NOTHING] * 6:
        _, reward, over, _, info = env.step(action)
        if over:
            break
    assert over
    assert reward == pytest.approx(52 / 1037 + 0.1)
    assert info["reward_terms"] == pytest.approx({"dealt": 52 / 1037, "taken": 0.0, "end": 0.1, "centre": 0.0})
    assert info["won"] is True
    assert info["killed_by"] == ""
    assert info["damage_dealt"] == 52.0
    assert info["damage_taken"] == 0.0
    assert 0.4 <= info["time_s"] <= 0.8
    assert not info["action_mask"][:NOTHING].any()


def fall(env):
    env.reset(seed=1, options={"start": EASTERN_EDGE})
    for _ in range(30):
        result = env.step(4)
        if result[2]:
            return result
    raise AssertionError("did not fall")


def test_falling_in_full_health_costs_1_1(env):
    observation, reward, over, truncated, info = fall(env)
    assert over
    assert not truncated
    assert reward == pytest.approx(-1.1)
    assert observation["player_hp"][0] == 0.0
    assert info["won"] is False
    assert info["killed_by"] == "fall"
    assert info["damage_taken"] == 454.0


def test_a_death_names_its_blow(env):
    env.reset(seed=3, options={"start": {"player_hp": 1, "player_pose": (140, 584, 3), "boss_pose": (140, 590, 0)}})
    for _ in range(300):
        _, reward, over, _, info = env.step(NOTHING)
        if over:
            break
        assert (info["won"], info["killed_by"], info["damage_taken"]) == (False, "", 0.0)
    assert over
    assert reward == pytest.approx(-1 / 454 - 0.1)
    assert info["killed_by"] in {move.name for move in env.fight_spec.boss.moves}
    assert info["damage_taken"] == 1.0
    assert info["won"] is False


# ---------------------------------------------------------------- what info tells


def shape_of(info):
    """Keys and types, as far down as they go."""
    return {key: shape_of(value) if isinstance(value, dict) else type(value) for key, value in info.items()}


def test_info_has_the_same_keys_and_types_in_every_step(env):
    _, first = env.reset(seed=1, options={"start": EASTERN_EDGE})
    assert set(first) == {"action_mask", "reward_terms", *ENDING_KEYS}
    assert set(first["reward_terms"].values()) == {0.0}
    over = False
    while not over:
        _, _, over, _, info = env.step(4)
        assert shape_of(info) == shape_of(first)
    assert shape_of(env.reset()[1]) == shape_of(first)


def test_a_fight_that_is_cut_off_tells_how_it_went():
    """By Gymnasium's own wrapper, of which the environment knows nothing."""
    env = gymnasium.make("SoulsGymIudexSim-v0", max_episode_steps=7)
    assert env.spec.max_episode_steps == 7
    env.reset(seed=1)
    truncated = False
    while not truncated:
        _, _, over, truncated, info = env.step(NOTHING)
    assert not over
    assert [info[key] for key in ENDING_KEYS] == [False, "", pytest.approx(0.7), 0.0, 0.0]


def test_options_of_others_are_left_alone(env):
    options = {"begin": {}, 5: "x", "start": {"boss_hp": 5}}
    observation, _ = env.reset(seed=1, options=options)
    assert observation["boss_hp"].tolist() == [5.0]
    assert set(options) == {"begin", 5, "start"}


# ---------------------------------------------------------------- what is seen


def test_phase_tells_the_truth():
    env = FightEnv("iudex", phase=2)
    observation, _ = env.reset(seed=1)
    assert observation["phase"] == 2
    assert {int(env.step(NOTHING)[0]["phase"]) for _ in range(20)} == {2}


def test_durations_stop_at_ten_seconds(env):
    longest = 0.0
    env.reset(seed=1)
    for _ in range(110):
        # The boss stays where he is, so that nobody disturbs the player.
        hidden = env.batch.engine.hidden[0]
        hidden["boss_move"], hidden["boss_move_s"] = env.fight_spec.boss.move_index("executed"), 0.0
        observation, *_ = env.step(NOTHING)
        longest = max(longest, float(observation["player_animation_duration"][0]))
        assert env.observation_space.contains(observation)
    assert longest == 10.0


def test_the_mask_says_what_is_open(env):
    _, info = env.reset(seed=1)
    assert info["action_mask"].all()
    *_, info = env.step(8)
    assert info["action_mask"].tolist() == [False] * 19 + [True]


def test_skipping_never_stops_at_nothing_but_nothing():
    env = FightEnv("iudex", skip_steps=True)
    _, info = env.reset(seed=5)
    steps = []
    for _ in range(150):
        before = env.fight["step"][0]
        *_, over, _, info = env.step(np.random.default_rng(0).choice(np.flatnonzero(info["action_mask"])))
        steps.append(int(env.fight["step"][0] - before))
        assert over or info["action_mask"].sum() > 1
        if over:
            _, info = env.reset()
    assert max(steps) > 5


def test_a_roll_is_skipped_in_one_step():
    env = FightEnv("iudex", skip_steps=True)
    env.reset(seed=5)
    env.step(12)
    assert env.fight["step"][0] == 8


# ---------------------------------------------------------------- seeds and starts


def test_a_seed_is_a_fight(env):
    def watched(seed):
        observation, _ = env.reset(seed=seed)
        return [observation, *(env.step(action % 20)[0] for action in range(60))]

    assert data_equivalence(watched(3), watched(3))
    assert not data_equivalence(watched(3), watched(4))


def test_without_a_seed_every_fight_is_another(env):
    def keys():
        env.reset()
        return int(env.batch.engine.hidden["key"][0])

    assert len({keys() for _ in range(5)}) == 5


def test_two_unseeded_environments_differ():
    made = [FightEnv("iudex") for _ in range(2)]
    for env in made:
        env.reset()
    assert len({int(env.batch.engine.hidden["key"][0]) for env in made}) == 2


@pytest.mark.parametrize("seed", [0, 2**32, 2**63, 2**70])
def test_any_natural_number_is_a_seed(env, seed):
    env.reset(seed=seed)
    env.step(0)


def test_a_fight_may_start_in_the_middle(env):
    start = {"phase": 2, "player_hp": 120, "player_sp": 0, "boss_hp": 700.0, "player_pose": [140, 580, 3.0]}
    observation, info = env.reset(options={"start": start})
    assert observation["phase"] == 2
    assert observation["player_hp"].tolist() == [120.0]
    assert observation["player_sp"].tolist() == [0.0]
    assert observation["boss_hp"].tolist() == [700.0]
    assert observation["player_pose"][[0, 1, 3]].tolist() == pytest.approx([140.0, 580.0, 3.0])
    assert info["action_mask"].tolist() == [True] * 8 + [False] * 11 + [True]


def test_the_next_fight_starts_as_usual_again(env, spec):
    env.reset(options={"start": {"boss_hp": 5, "player_pose": (140, 580, 3)}})
    observation, _ = env.reset()
    assert observation["boss_hp"].tolist() == [1037.0]
    assert observation["player_pose"][:2].tolist() == pytest.approx(spec.arena.player_start[:2], abs=1e-3)


@pytest.mark.parametrize("randomize", [0.0, 1.0])
def test_a_snapshot_goes_on_as_the_fight_did(randomize):
    env, other = (FightEnv("iudex", changes=True, randomize=randomize) for _ in range(2))
    env.reset(seed=9)
    plan = np.random.default_rng(0).integers(0, 20, 80)
    for action in plan[:30]:
        env.step(action)
    kept = env.snapshot()
    first = [env.step(action) for action in plan[30:70]]
    for each in (env, other):
        observation, info = each.reset(options={"start": kept})
        assert observation["player_pose"].tolist() == kept.fights["player_pose"][0].tolist()
        assert np.array_equal(info["action_mask"], kept.fights["action_mask"][0].astype(bool))
        assert data_equivalence([each.step(action) for action in plan[30:70]], first)


def test_a_snapshot_of_a_fight_that_is_over_cannot_be_stepped(env):
    fall(env)
    kept = env.snapshot()
    observation, info = env.reset(options={"start": kept})
    assert observation["player_hp"][0] == 0.0
    assert info["action_mask"].sum() == 1
    with pytest.raises(ResetNeeded):
        env.step(NOTHING)


# ---------------------------------------------------------------- misuse


def test_a_step_needs_a_reset(env):
    with pytest.raises(ResetNeeded, match="the fight is over or has not begun; call reset"):
        env.step(0)
    fall(env)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(0)
    env.reset()
    env.step(0)


@pytest.mark.parametrize("action", [20, -1, np.int64(99), 3.7, 3.0, "3", None, [3]])
def test_actions_that_are_none(env, action):
    env.reset(seed=1)
    with pytest.raises(MisuseError, match="give 0 to 19") as caught:
        env.step(action)
    assert repr(action) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert env.fight["step"][0] == 0


@pytest.mark.parametrize("action", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_actions_of_every_whole_kind(env, action):
    env.reset(seed=1)
    env.step(action)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (7, "options is a int; give a dict"),
        ({"start": 5}, "start is a int; give a dict or a snapshot"),
        ({"start": {"hp": 5}}, "start key 'hp' is not known"),
        ({"start": {5: 5}}, "start key 5 is not known"),
        ({"start": {"boss_hp": 2000}}, "start has boss_hp = 2000; give 1 to 1037"),
        ({"start": {"boss_hp": 0}}, "start has boss_hp = 0"),
        ({"start": {"player_hp": -3}}, "start has player_hp = -3; give 1 to 454"),
        ({"start": {"player_sp": 96}}, "start has player_sp = 96; give -60 to 95"),
        ({"start": {"phase": 3}}, "start has phase = 3; give 0 to 2"),
        ({"start": {"phase": "two"}}, "start phase = 'two'"),
        ({"start": {"player_pose": (0, 0, 0)}}, r"start has player_pose = \[0.0, 0.0, 0.0\]"),
        ({"start": {"player_pose": (140, 590)}}, r"start player_pose = \(140, 590\) does not fit"),
        ({"start": {"snapshot": 5}}, "start snapshot is a int; give what snapshot"),
        ({"start": {"snapshot": Snapshot("game-1", np.zeros(1), np.zeros(1))}}, "snapshot is of kind 'game-1'"),
    ],
)
def test_impossible_starts_are_refused_in_one_sentence(env, options, message):
    env.reset(seed=1)
    with pytest.raises(MisuseError, match=message) as caught:
        env.reset(options=options)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, (SoulsError, ValueError))
    env.step(0)  # what went on goes on


def test_a_refused_start_leaves_the_fight_alone(env, same_bits):
    env.reset(seed=1)
    env.step(0)
    kept = env.snapshot()
    for start in (
        {"boss_hp": 0},
        {"snapshot": 5},
        {"snapshot": kept, "boss_hp": 5},
        Snapshot("game-1", kept.fights, kept.hidden),
    ):
        with pytest.raises(StartError):
            env.reset(options={"start": start})
    assert same_bits(env.snapshot(), kept)


def test_a_snapshot_and_more_is_refused(env):
    env.reset(seed=1)
    with pytest.raises(StartError, match="start has a snapshot and also boss_hp; give one or the other"):
        env.reset(options={"start": {"snapshot": env.snapshot(), "boss_hp": 5}})


def test_a_snapshot_of_more_fights_is_refused(env):
    batch = gymnasium.make_vec("SoulsGymIudexSim-v0", num_envs=2)
    batch.reset(seed=1)
    with pytest.raises(StartError, match="snapshot holds 2 fights, this engine 1"):
        env.reset(options={"start": batch.unwrapped.snapshot()})


def test_closing_twice_is_harmless(env):
    env.reset(seed=1)
    env.close()
    env.close()


def test_open_actions_by_number():
    env = FightEnv("iudex")
    assert env.current_valid_actions() == []
    _, info = env.reset(seed=0)
    assert env.current_valid_actions() == np.flatnonzero(info["action_mask"]).tolist()
    _, _, _, _, info = env.step(16)
    assert env.current_valid_actions() == np.flatnonzero(info["action_mask"]).tolist() != list(range(20))
