import numpy as np
import pytest

from soulsai.errors import RunError
from soulsai.experience import Schema
from soulsai.replay import NStepAccumulator, ReplayStore
from soulsai.replay.n_step import TRANSITION
from soulsgym.errors import MisuseError

SCHEMA = Schema(TRANSITION, 2, 3, 1)


def flags(*values):
    return np.array(values, np.bool_)


class Walk:
    """One environment whose observations are 0, 1, 2, ...; actions are ten times as much."""

    def __init__(self, **settings):
        self.accumulator = NStepAccumulator(1, schema=Schema(TRANSITION, 1, 2, 1), **settings)
        self.now = 0

    def push(self, reward, steps=1, *, terminated=False, truncated=False):
        """Rows as (observation, action, reward, discount, next observation)."""
        seen = self.now
        self.now += 1
        rows = self.accumulator.push(
            np.array([[seen]], np.float32),
            np.array([10 * seen]),
            np.array([reward], np.float32),
            np.array([steps], np.int32),
            flags(terminated),
            flags(truncated),
            np.array([[self.now]], np.float32),
            np.array([[True, self.now % 2 == 0]]),
        )
        assert rows["next_masks"].tolist() == [[True, self.now % 2 == 0]] * len(rows["actions"])
        return list(
            zip(
                rows["observations"][:, 0].tolist(),
                rows["actions"].tolist(),
                rows["rewards"].tolist(),
                rows["discounts"].tolist(),
                rows["next_observations"][:, 0].tolist(),
                strict=True,
            )
        )


def test_rows_span_three_decisions():
    walk = Walk(n_step=3, gamma=0.5)
    assert walk.push(1.0) == []
    assert walk.push(2.0) == []
    assert walk.push(4.0) == [(0, 0, 1 + 2 / 2 + 4 / 4, 1 / 8, 3)]
    assert walk.push(8.0) == [(1, 10, 2 + 4 / 2 + 8 / 4, 1 / 8, 4)]


def test_merged_steps_discount_as_often_as_they_were():
    walk = Walk(n_step=3, gamma=0.5)
    walk.push(1.0, steps=2)
    walk.push(4.0, steps=1)
    # 1 + 4 / 2^2 + 16 / 2^3, then 3 more steps: 2^-(2 + 1 + 3)
    assert walk.push(16.0, steps=3) == [(0, 0, 4.0, 1 / 64, 3)]
    # 4 + 16 / 2 + 32 / 2^4, 2^-(1 + 3 + 1)
    assert walk.push(32.0) == [(1, 10, 14.0, 1 / 32, 4)]


def test_termination_flushes_all_without_a_bootstrap():
    walk = Walk(n_step=3, gamma=0.5)
    for reward in (1.0, 2.0, 4.0):
        walk.push(reward)
    ended = walk.push(8.0, steps=2, terminated=True)
    assert ended == [(1, 10, 6.0, 0, 4), (2, 20, 8.0, 0, 4), (3, 30, 8.0, 0, 4)]
    assert walk.push(1.0) == []
    assert walk.push(1.0) == []
    assert walk.push(1.0) == [(4, 40, 1.75, 1 / 8, 7)]


def test_truncation_flushes_all_and_bootstraps_over_the_steps_that_were():
    walk = Walk(n_step=3, gamma=0.5)
    walk.push(1.0)
    assert walk.push(2.0, steps=2, truncated=True) == [(0, 0, 2.0, 1 / 8, 2), (1, 10, 2.0, 1 / 4, 2)]
    assert walk.push(5.0, truncated=True) == [(2, 20, 5.0, 1 / 2, 3)]


def test_an_end_of_both_kinds_is_a_termination():
    walk = Walk(n_step=3, gamma=0.5)
    assert walk.push(1.0, terminated=True, truncated=True) == [(0, 0, 1.0, 0, 1)]


@pytest.mark.parametrize("n_step", [1, 3])
def test_episodes_of_one_decision(n_step):
    walk = Walk(n_step=n_step, gamma=0.5)
    assert walk.push(1.0, terminated=True) == [(0, 0, 1, 0, 1)]
    assert walk.push(2.0, steps=3, truncated=True) == [(1, 10, 2, 1 / 8, 2)]


def test_single_steps_are_passed_on():
    walk = Walk(n_step=1, gamma=0.5)
    assert walk.push(1.0) == [(0, 0, 1, 0.5, 1)]
    assert walk.push(2.0, steps=2) == [(1, 10, 2, 0.25, 2)]
    given = np.zeros((1, 1), np.float32)
    one = np.ones(1)
    rows = walk.accumulator.push(
        given, one.astype(np.int64), one, one.astype(np.int32), flags(0), flags(0), given, flags(1, 1)[None]
    )
    assert rows["observations"] is given


def random_steps(generator, n_envs, count):
    """Steps of environments that end at random, each observation with a number of its own."""
    numbers = iter(range(1, 10**9))

    def fresh():
        return np.array([[next(numbers)] * 2 for _ in range(n_envs)], np.float32)

    observations = fresh()
    for _ in range(count):
        terminated, truncated = generator.random(n_envs) < 0.15, generator.random(n_envs) < 0.15
        following, masks = fresh(), generator.random((n_envs, 3)) < 0.5
        rewards = generator.normal(size=n_envs).astype(np.float32)
        steps = generator.integers(1, 6, n_envs).astype(np.int32)
        actions = generator.integers(0, 3, n_envs)
        yield observations, actions, rewards, steps, terminated, truncated, following, masks
        observations = np.where((terminated | truncated)[:, None], fresh(), following)


def brute_force(history, n_step, gamma):
    """Rows of each push, by looking ahead from every decision: for each push a list, environments in order."""
    count, n_envs = len(history), len(history[0][1])
    ready = [[] for _ in range(count)]
    for env in range(n_envs):
        for begin in range(count):
            reward, passed = 0.0, 0
            for at in range(begin, min(begin + n_step, count)):
                _, _, rewards, steps, terminated, truncated, following, masks = history[at]
                reward += gamma**passed * float(rewards[env])
                passed += int(steps[env])
                ended = terminated[env] or truncated[env]
                if ended or at == begin + n_step - 1:
                    discount = 0.0 if terminated[env] else gamma**passed
                    seen, actions = history[begin][0][env], history[begin][1][env]
                    ready[at].append((seen, actions, reward, discount, following[env], masks[env]))
                    break
    return ready


@pytest.mark.parametrize(("n_envs", "n_step"), [(1, 3), (5, 1), (4, 2), (7, 5)])
def test_many_environments_agree_with_looking_ahead(n_envs, n_step):
    generator = np.random.default_rng(n_step)
    history = list(random_steps(generator, n_envs, 120))
    accumulator = NStepAccumulator(n_envs, n_step, 0.9, SCHEMA)
    for step, expected in zip(history, brute_force(history, n_step, 0.9), strict=True):
        rows = accumulator.push(*step)
        assert len(rows["actions"]) == len(expected)
        for column, wanted in zip(rows.values(), zip(*expected, strict=True), strict=bool(expected)):
            np.testing.assert_allclose(column, np.array(wanted), rtol=1e-5, atol=1e-6)


def test_rows_go_straight_into_a_store():
    accumulator, store = NStepAccumulator(4, 3, 0.9, SCHEMA), ReplayStore(1000, SCHEMA)
    for step in random_steps(np.random.default_rng(0), 4, 30):
        store.add(accumulator.push(*step))
    waiting = int(accumulator.state()["counts"].sum())
    assert store.added == 4 * 30 - waiting


def test_what_comes_in_is_not_kept_by_reference():
    walk = Walk(n_step=2, gamma=0.5)
    observations = np.array([[3.0]], np.float32)
    rest = (np.array([1]), np.ones(1, np.float32), np.ones(1, np.int32), flags(0), flags(0))
    walk.accumulator.push(observations, *rest, observations, flags(1, 1)[None])
    observations[:] = 9.0
    rows = walk.accumulator.push(observations, *rest, observations, flags(1, 1)[None])
    assert rows["observations"].tolist() == [[3.0]]


@pytest.mark.parametrize("n_step", [1, 4])
def test_a_restored_accumulator_goes_on_bit_for_bit(n_step):
    history = list(random_steps(np.random.default_rng(2), 6, 60))
    straight, stopped = NStepAccumulator(6, n_step, 0.97, SCHEMA), NStepAccumulator(6, n_step, 0.97, SCHEMA)
    for step in history[:31]:
        straight.push(*step)
    stopped.restore(straight.state())
    for step in history[31:]:
        for one, other in zip(straight.push(*step).values(), stopped.push(*step).values(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_state_that_does_not_fit_is_refused():
    accumulator = NStepAccumulator(6, 3, 0.97, SCHEMA)
    with pytest.raises(RunError, match="'observations' are"):
        accumulator.restore(NStepAccumulator(6, 4, 0.97, SCHEMA).state())
    with pytest.raises(RunError, match="damaged"):
        accumulator.restore(accumulator.state() | {"counts": np.full(6, 3)})


def test_arrays_of_another_shape_are_refused():
    (step,) = random_steps(np.random.default_rng(0), 3, 1)
    with pytest.raises(MisuseError, match=r"observations have the shape \(3, 2\); give an array of shape \(4, 2\)"):
        NStepAccumulator(4, 3, 0.9, SCHEMA).push(*step)


def test_impossible_settings_are_refused():
    with pytest.raises(MisuseError, match="n_step=0"):
        NStepAccumulator(4, 0, 0.9, SCHEMA)
