"""Many fights as one vector environment, beside Gymnasium's own."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from soulsgym.actions import NOTHING
from soulsgym.errors import MisuseError, ResetNeeded, StartError
from soulsgym.spec.population import evaluation_seed
from soulsgym.state import OBSERVATION_KEYS

IUDEX, DEMO = "SoulsGymIudexSim-v0", "SoulsGymIudexSimDemo-v0"
N = 5
TERMS = ("dealt", "taken", "end", "centre")
ENDINGS = ("won", "killed_by", "time_s", "damage_dealt", "damage_taken")


def batch(name=IUDEX, n=N, **kwargs):
    return gymnasium.make_vec(name, num_envs=n, **kwargs)


def reference(name=IUDEX, n=N, *, mode=AutoresetMode.NEXT_STEP, max_episode_steps=None, **kwargs):
    """The same from single environments by Gymnasium's own means."""

    def make():
        return gymnasium.make(name, max_episode_steps=max_episode_steps, disable_env_checker=True, **kwargs)

    return SyncVectorEnv([make] * n, autoreset_mode=mode)


WEAK = {"start": {"player_hp": 60.0, "boss_hp": 60.0, "player_pose": (140.0, 590.0, 0.0)}}
"""Players and bosses with little health, so that fights end soon, in one way or the other."""


def assert_equal_observations(one, other):
    assert set(one) == set(other)
    for key in one:
        assert np.array_equal(one[key], other[key]), key


def assert_equal_steps(mine, its):
    assert_equal_observations(mine[0], its[0])
    assert mine[1] == pytest.approx(its[1], abs=1e-12)
    assert mine[2].tolist() == its[2].tolist()
    assert mine[3].tolist() == its[3].tolist()
    assert np.array_equal(mine[4]["action_mask"], its[4]["action_mask"])


# ---------------------------------------------------------------- spaces


def test_the_spaces_are_those_of_the_single_environment_in_a_batch():
    vector, single = batch(n=3), gymnasium.make(IUDEX)
    assert vector.num_envs == 3
    assert vector.single_observation_space == single.observation_space
    assert vector.single_action_space == single.action_space == spaces.Discrete(20)
    assert vector.action_space == spaces.MultiDiscrete([20] * 3)
    observations, infos = vector.reset(seed=1)
    assert vector.observation_space.contains(observations)
    assert set(observations) == set(OBSERVATION_KEYS)
    assert observations["player_pose"].shape == (3, 4)
    assert infos["action_mask"].shape == (3, 20)
    assert infos["action_mask"].dtype == np.bool_


@pytest.mark.parametrize("name", [IUDEX, DEMO])
@pytest.mark.parametrize("kwargs", [{}, {"randomize": 1.0, "random_player_pose": True, "variant": "hard"}])
def test_observations_stay_inside_their_space(name, kwargs):
    vector = batch(name, 16, **kwargs)
    vector.reset(seed=3)
    vector.action_space.seed(3)
    for _ in range(150):
        observations, *_ = vector.step(vector.action_space.sample())
        assert vector.observation_space.contains(observations)


def test_observations_are_not_changed_by_later_steps():
    vector = batch()
    observations, infos = vector.reset(seed=1)
    kept = {key: value.copy() for key, value in observations.items()}
    mask = infos["action_mask"].copy()
    for _ in range(4):
        vector.step(np.full(N, 8))
    assert_equal_observations(kept, observations)
    assert np.array_equal(mask, infos["action_mask"])


# ---------------------------------------------------------------- beside Gymnasium's own


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        (IUDEX, {"max_episode_steps": 45}),
        (IUDEX, {"phase": 2, "random_player_pose": True}),
        (IUDEX, {"skip_steps": True, "max_episode_steps": 30}),
        (DEMO, {"randomize": 1.0, "variant": "hard"}),
    ],
)
def test_next_step_autoreset_is_gymnasiums(name, kwargs):
    vector, sync = batch(name, **kwargs), reference(name, **kwargs)
    mine, its = vector.reset(seed=11), sync.reset(seed=11)
    assert_equal_observations(mine[0], its[0])
    assert np.array_equal(mine[1]["action_mask"], its[1]["action_mask"])
    generator = np.random.default_rng(1)
    ends = np.zeros(N, int)
    for _ in range(600):
        actions = generator.integers(0, 20, N)
        mine, its = vector.step(actions), sync.step(actions)
        assert_equal_steps(mine, its)
        ends += mine[2] | mine[3]
    assert ends.sum() >= N


@pytest.mark.parametrize("max_episode_steps", [None, 20])
def test_same_step_autoreset_is_gymnasiums(max_episode_steps):
    kwargs = {"phase": 2, "random_player_pose": True, "max_episode_steps": max_episode_steps}
    vector = batch(autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    sync = reference(mode=AutoresetMode.SAME_STEP, **kwargs)
    assert_equal_observations(vector.reset(seed=4)[0], sync.reset(seed=4)[0])
    generator = np.random.default_rng(1)
    ends = 0
    for _ in range(600):
        actions = generator.integers(0, 20, N)
        mine, its = vector.step(actions), sync.step(actions)
        assert_equal_steps(mine, its)
        ended = mine[2] | mine[3]
        assert ("final_obs" in mine[4]) == ended.any() == ("final_obs" in its[4])
        if not ended.any():
            continue
        ends += int(ended.sum())
        for key in ("final_obs", "final_info"):
            assert mine[4][f"_{key}"].tolist() == its[4][f"_{key}"].tolist() == ended.tolist()
        for fight in range(N):
            if ended[fight]:
                assert_equal_observations(mine[4]["final_obs"][fight], its[4]["final_obs"][fight])
            else:
                assert mine[4]["final_obs"][fight] is None
        final, reference_final = mine[4]["final_info"], its[4]["final_info"]
        assert np.array_equal(final["action_mask"][ended], reference_final["action_mask"][ended])
        over = mine[2]
        for key in ENDINGS:
            if over.any():
                assert final[key][over].tolist() == reference_final[key][over].tolist()
    assert ends > 5


def test_fight_i_of_a_batch_is_the_single_fight_of_seed_plus_i():
    vector = batch(n=7, randomize=1.0)
    observations, _ = vector.reset(seed=40)
    generator = np.random.default_rng(2)
    plan = generator.integers(0, 20, (80, 7))
    seen = [observations] + [vector.step(actions)[0] for actions in plan]
    for fight in (0, 3, 6):
        env = gymnasium.make(IUDEX, randomize=1.0, disable_env_checker=True)
        env.reset(seed=40 + fight)
        for step, actions in enumerate(plan, start=1):
            observation, _, over, *_ = env.step(actions[fight])
            assert_equal_observations(observation, {key: values[fight] for key, values in seen[step].items()})
            if over:
                break


def test_threads_change_nothing():
    results = []
    for threads in (1, 2, 3):
        vector = batch(n=8, threads=threads, randomize=0.5)
        vector.reset(seed=5)
        generator = np.random.default_rng(3)
        for _ in range(150):
            result = vector.step(generator.integers(0, 20, 8))
        results.append(result)
        vector.close()
    assert_equal_steps(results[1], results[0])
    assert_equal_steps(results[2], results[0])


# ---------------------------------------------------------------- endings


def finished(**kwargs):
    """Step weak fights until one ends; the vector environment and that step."""
    vector = batch(**kwargs)
    vector.reset(seed=2, options=WEAK)
    generator = np.random.default_rng(0)
    for _ in range(200):
        result = vector.step(generator.integers(0, 20, N))
        if result[2].any():
            return vector, result
    raise AssertionError("no fight ended")


def test_endings_are_told_for_those_that_ended():
    _, (_, rewards, terminated, _, infos) = finished()
    for key in ENDINGS:
        assert infos[f"_{key}"].tolist() == terminated.tolist()
        assert infos[key].shape == (N,)
    for fight in np.flatnonzero(terminated):
        assert infos["won"][fight] == (infos["damage_dealt"][fight] == 60.0)
        assert (infos["killed_by"][fight] == "") == infos["won"][fight]
        assert infos["time_s"][fight] > 0.0
        assert abs(rewards[fight]) > 0.09
    assert infos["reward_terms"]["end"][terminated].tolist() == [
        0.1 if won else -0.1 for won in infos["won"][terminated]
    ]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_infos_have_the_same_keys_in_every_step(mode):
    vector = batch(autoreset_mode=mode, max_episode_steps=20)
    _, first = vector.reset(seed=2, options=WEAK)
    keys = {*ENDINGS, "action_mask", "reward_terms"}
    assert set(first) == keys | {f"_{key}" for key in keys}
    assert not any(first[f"_{key}"].any() for key in ENDINGS)
    assert first["killed_by"].tolist() == [None] * N
    generator = np.random.default_rng(0)
    for _ in range(30):
        _, _, terminated, truncated, infos = vector.step(generator.integers(0, 20, N))
        ended = terminated | truncated
        final = {"final_obs", "_final_obs", "final_info", "_final_info"} if "final_obs" in infos else set()
        assert set(infos) == set(first) | final
        told = infos["final_info"] if final else infos
        for key in ENDINGS:
            assert told[f"_{key}"].tolist() == ended.tolist()
            assert told[key].dtype == first[key].dtype
        assert [one is None for one in told["killed_by"]] == (~ended).tolist()
        if mode is AutoresetMode.DISABLED and ended.any():
            vector.reset(options={"reset_mask": ended})


def test_reward_terms_are_as_gymnasium_gathers_them():
    vector, sync = batch(), reference()
    vector.reset(seed=1)
    sync.reset(seed=1)
    mine, its = (each.step(np.arange(N))[4]["reward_terms"] for each in (vector, sync))
    assert set(mine) == set(its)
    for key in its:
        assert mine[key].dtype == its[key].dtype
        assert mine[key].tolist() == pytest.approx(its[key].tolist(), abs=1e-12)


def test_what_is_told_of_nobody_cannot_be_changed_by_mistake():
    _, infos = batch().reset(seed=1)
    with pytest.raises(ValueError, match="read-only"):
        infos["won"][0] = True


def test_the_terms_add_up_to_the_rewards():
    vector = batch(random_player_pose=True)
    vector.reset(seed=1)
    generator = np.random.default_rng(4)
    for _ in range(100):
        _, rewards, _, _, infos = vector.step(generator.integers(0, 20, N))
        terms = infos["reward_terms"]
        assert set(terms) == {*TERMS, *(f"_{name}" for name in TERMS)}
        assert sum(terms[name] for name in TERMS) == pytest.approx(rewards, abs=1e-12)


def test_the_step_after_an_ending_resets_and_pays_nothing():
    vector, (_, _, terminated, _, _) = finished()
    observations, rewards, again, truncated, infos = vector.step(np.full(N, 8))
    assert (rewards[terminated] == 0.0).all()
    assert not again[terminated].any()
    assert not truncated[terminated].any()
    assert (observations["boss_hp"][terminated] == 1037.0).all()  # the start was for the first fight
    assert (observations["player_animation"][terminated] == 17).all()  # and the action was ignored
    assert infos["action_mask"][terminated].all()
    assert all((infos["reward_terms"][name][terminated] == 0.0).all() for name in TERMS)


def test_disabled_autoreset_leaves_fights_as_they_ended():
    vector, (observations, _, terminated, _, _) = finished(autoreset_mode=AutoresetMode.DISABLED)
    later, rewards, again, truncated, _ = vector.step(np.full(N, 0))
    assert again[terminated].all()
    assert not truncated.any()
    assert (rewards[terminated] == 0.0).all()
    for key in OBSERVATION_KEYS:
        assert np.array_equal(later[key][terminated], observations[key][terminated])


def test_a_mask_resets_only_its_fights():
    vector, (observations, _, terminated, _, infos) = finished(autoreset_mode="Disabled")
    told = infos["_won"].copy()
    fresh, _ = vector.reset(options={"reset_mask": terminated.copy()})
    assert (fresh["boss_hp"][terminated] == 1037.0).all()
    for key in OBSERVATION_KEYS:
        assert np.array_equal(fresh[key][~terminated], observations[key][~terminated])
    assert infos["_won"].tolist() == told.tolist()  # what was returned before is not touched
    _, _, again, *_ = vector.step(np.full(N, 19))
    assert not again[terminated].any()


def test_a_limit_truncates_each_fight_by_its_own_count():
    vector = batch(n=2, max_episode_steps=10, autoreset_mode="Disabled")
    vector.reset(seed=1)
    for _ in range(4):
        vector.step(np.array([19, 19]))
    vector.reset(options={"reset_mask": np.array([False, True])})
    flags = [vector.step(np.array([19, 19]))[3].tolist() for _ in range(10)]
    assert flags[5] == [True, False]
    assert flags[9][1] is True
    assert [flag[1] for flag in flags[:9]] == [False] * 9


def test_an_end_in_the_last_step_has_both_flags_as_gymnasiums_has():
    """The first blow kills a player with one HP left, and the limit is that very step."""
    start = {"player_hp": 1.0, "player_pose": (140.0, 586.0, 0.0), "boss_pose": (140.0, 590.0, 0.0)}
    free = batch(n=1)
    free.reset(seed=3, options={"start": start})
    steps = 1
    while not free.step(np.array([19]))[2][0]:
        steps += 1
    flags = []
    for vector in (batch(n=1, max_episode_steps=steps), reference(n=1, max_episode_steps=steps)):
        vector.reset(seed=3, options={"start": start})
        for _ in range(steps):
            _, rewards, terminated, truncated, _ = vector.step(np.array([19]))
        flags.append((terminated.tolist(), truncated.tolist()))
        assert rewards[0] < -0.1
    assert flags == [([True], [True])] * 2


def test_a_truncated_fight_is_no_death():
    vector = batch(n=2, max_episode_steps=3)
    vector.reset(seed=1)
    for _ in range(3):
        _, _, terminated, truncated, infos = vector.step(np.array([19, 19]))
    assert truncated.all()
    assert not terminated.any()
    assert infos["won"].tolist() == [False, False]
    assert infos["killed_by"].tolist() == ["", ""]
    assert infos["reward_terms"]["end"].tolist() == [0.0, 0.0]


# ---------------------------------------------------------------- seeds, starts, snapshots


def test_seeds_may_be_a_list():
    vector = batch(n=3, randomize=1.0)
    one, _ = vector.reset(seed=[5, 6, 7])
    other, _ = vector.reset(seed=5)
    assert_equal_observations(one, other)


def test_fights_without_a_seed_go_on_with_their_own_randomness():
    """A list of None is no seed at all; a list with some leaves the others as they are."""

    def keys(*seeds):
        vector = batch(n=3)
        for seed in seeds:
            vector.reset(seed=seed)
        return vector.unwrapped.engine.hidden["key"].tolist()

    assert keys(5, [None] * 3) == keys(5, None)
    mixed = keys(5, [None, 9, None])
    assert mixed[0::2] == keys(5, None)[0::2]
    assert mixed[1] == keys(8)[1]
    assert keys([None, 9, None])[1] == mixed[1]
    assert keys([None] * 3) != keys([None] * 3)


def test_options_of_others_are_left_alone():
    options = {"mask": 1, "reset_mask": np.ones(2, bool)}
    batch(n=2).reset(options=options)
    assert set(options) == {"mask", "reset_mask"}


@pytest.mark.parametrize("seed", [np.int64(5), 2**64 - 2, 2**70])
def test_any_natural_number_is_a_seed(seed):
    vector = batch(n=4)
    vector.reset(seed=seed)
    vector.step(np.zeros(4, int))


def test_starts_may_differ_between_fights():
    vector = batch(n=3)
    observations, _ = vector.reset(seed=1, options={"start": {"boss_hp": [100, 200, 300], "phase": 2}})
    assert observations["boss_hp"][:, 0].tolist() == [100.0, 200.0, 300.0]
    assert observations["phase"].tolist() == [2, 2, 2]


def test_a_snapshot_goes_on_as_the_fights_did():
    vector = batch(randomize=1.0, random_player_pose=True)
    vector.reset(seed=6)
    plan = np.random.default_rng(5).integers(0, 20, (120, N))
    for actions in plan[:60]:
        vector.step(actions)
    kept = vector.unwrapped.snapshot()
    first = [vector.step(actions) for actions in plan[60:]]
    fresh = batch(randomize=1.0, random_player_pose=True)
    for each in (vector, fresh):
        each.reset(options={"start": kept})
        for actions, before in zip(plan[60:], first, strict=True):
            assert_equal_steps(each.step(actions), before)


def test_a_snapshot_with_ended_fights_begins_those_anew():
    vector, (_, _, terminated, _, _) = finished()
    kept = vector.unwrapped.snapshot()
    after = vector.step(np.full(N, 19))
    vector.reset(options={"start": kept})
    again = vector.step(np.full(N, 19))
    assert_equal_observations(again[0], after[0])
    assert (again[1][terminated] == 0.0).all()


# ---------------------------------------------------------------- misuse


def test_a_step_needs_a_reset():
    with pytest.raises(ResetNeeded, match="the fights have not begun; call reset"):
        batch().step(np.zeros(N, int))


def test_the_first_reset_is_for_all():
    with pytest.raises(ResetNeeded, match="reset all of them first"):
        batch(n=2).reset(options={"reset_mask": np.array([True, False])})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1, 20], "action 20 is out of range; give 0 to 19"),
        ([0, -1, 3], "action -1 is out of range"),
        ([0, 1], r"actions are int64 of shape \(2,\); give 3 integers"),
        (5, r"actions are int64 of shape \(\); give 3 integers"),
        ([0.0, 1.0, 2.0], r"actions are float64 of shape \(3,\)"),
        (["a", "b", "c"], "actions are <U1 of shape"),
        (None, "actions are object of shape"),
    ],
)
def test_actions_that_are_none(actions, message):
    vector = batch(n=3)
    vector.reset(seed=1)
    with pytest.raises(MisuseError, match=message) as caught:
        vector.step(actions)
    assert "\n" not in str(caught.value)
    assert vector.unwrapped.fights["step"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"seed": [1, 2]}, "seed is a list of 2; give one number or None for each of 3 fights"),
        ({"options": {"reset_mask": np.ones(2, bool)}}, r"reset_mask is bool of shape \(2,\); give 3 booleans"),
        ({"options": {"reset_mask": [1, 0, 1]}}, r"reset_mask is int64 of shape \(3,\); give 3 booleans"),
        ({"options": 4}, "options is a int; give a dict"),
        ({"options": {"start": {"boss_hp": [1, 2]}}}, r"start boss_hp = \[1, 2\] does not fit"),
        ({"options": {"start": {"boss_hp": [1, 2, 0]}}}, "start has boss_hp = 0; give 1 to 1037"),
    ],
)
def test_impossible_resets_are_refused(call, message):
    vector = batch(n=3)
    vector.reset(seed=1)
    with pytest.raises(MisuseError, match=message):
        vector.reset(**call)
    vector.step(np.zeros(3, int))


def test_a_snapshot_is_for_all_fights():
    vector = batch(n=2)
    vector.reset(seed=1)
    options = {"start": vector.unwrapped.snapshot(), "reset_mask": np.array([True, False])}
    with pytest.raises(StartError, match="only some fights are reset; reset all of them"):
        vector.reset(options=options)


def test_closing_twice_is_harmless():
    vector = batch(threads=2)
    vector.reset(seed=1)
    vector.close()
    vector.close()


# ---------------------------------------------------------------- drawn files


def test_drawn_files_are_dealt_out_among_the_fights():
    """Four fights of the same seed on two files: the same within a file, not between them."""
    env = gymnasium.make_vec(IUDEX, num_envs=4, variant="drawn:2", phase=2)
    env.reset(seed=[5, 5, 5, 5])
    poses = [env.step(np.full(4, NOTHING))[0]["boss_pose"] for _ in range(150)]
    first, again, other, last = np.stack(poses, axis=1).tolist()
    assert first == again != other == last
    specs = [env.unwrapped.engine.spec_of(fight) for fight in range(4)]
    assert [spec.variant for spec in specs[1:3]] == [
        f"drawn from seed {evaluation_seed(index)} at strength 1" for index in range(2)
    ]
    assert specs[0] is specs[1]


@pytest.mark.parametrize(("make", "n"), [(gymnasium.make, {}), (gymnasium.make_vec, {"num_envs": 2})])
def test_more_drawn_files_than_fights_are_refused(make, n):
    with pytest.raises(
        MisuseError, match=r"'drawn:3' is 3 files and needs as many fights, not \d; .*souls variant draw"
    ):
        make(IUDEX, variant="drawn:3", **n)


def test_a_drawn_variant_without_a_number_is_refused():
    with pytest.raises(MisuseError, match="'drawn:many' is not a number of drawn files; give drawn:1 to drawn:1000"):
        gymnasium.make_vec(IUDEX, num_envs=2, variant="drawn:many")
