"""Measuring policies while they train."""

import numpy as np
import pytest

from soulsai.config import load_preset, with_settings
from soulsai.evaluation import evaluate
from soulsai.learning import judging
from soulsai.learning.judging import JUDGING_SEED, Judgement, evaluate_policy, gym_returns, judge
from soulsai.learning.session import FINAL_SEED
from soulsai.learning.wiring import build_fighter


class Waits:
    """Always takes the last open action: nothing, of the twenty."""

    def choose(self, observations, masks):
        return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


class Balances:
    """Pushes the cart to where the pole falls."""

    def choose(self, observations, masks):
        return (observations[:, 2] + 0.5 * observations[:, 3] > 0).astype(np.int64)


CARTPOLE = with_settings(load_preset("cartpole-ppo"), ["gym.kwargs.max_episode_steps=30"])


def test_episodes_of_a_gymnasium_environment():
    assert gym_returns(CARTPOLE, Balances(), 20, 1).tolist() == [30.0] * 20
    assert len(gym_returns(CARTPOLE, Waits(), 7, 1)) == 7
    short = gym_returns(CARTPOLE, Waits(), 40, 1)
    assert (short < 30.0).all()
    assert np.array_equal(short, gym_returns(CARTPOLE, Waits(), 40, 1))
    assert not np.array_equal(short, gym_returns(CARTPOLE, Waits(), 40, 2))


def test_long_episodes_count_as_much_as_short_ones(monkeypatch):
    """Of copies with short and long episodes as many are taken of each, whichever end first."""
    from soulsgym.batch import Step

    class World:
        number, closed = 2, False
        observations, masks = np.zeros((2, 1), np.float32), np.ones((2, 1), np.bool_)

        def __init__(self, *_):
            self.played, self._step = np.zeros(2, int), Step.of_size(2, 1, 1, 1)

        def reset(self, seed): ...

        def step(self, actions):
            self.played += 1
            self._step.rewards[:] = 1.0
            self._step.ended[:] = self.played == [1, 10]
            self.played[self._step.ended] = 0
            return self._step

        def close(self): ...

    monkeypatch.setattr(judging, "GymWorld", World)
    assert sorted(gym_returns(CARTPOLE, Waits(), 6, 0)) == [1.0, 1.0, 1.0, 10.0, 10.0, 10.0]


def test_judgement_of_returns(monkeypatch):
    monkeypatch.setattr(judging, "gym_returns", lambda *_: np.array([1.0, 3.0, 5.0, 7.0]))
    found = judge(CARTPOLE, Waits(), 4)
    half = 1.96 * np.sqrt(20 / 3) / 2
    assert (found.score, found.episodes, found.wins) == (4.0, 4, False)
    assert (found.low, found.high) == pytest.approx((4.0 - half, 4.0 + half))
    assert found.metrics() == {"return/evaluation": 4.0}


def test_judgement_of_one_episode_knows_nothing(monkeypatch):
    monkeypatch.setattr(judging, "gym_returns", lambda *_: np.array([1.0]))
    found = judge(CARTPOLE, Waits(), 1)
    assert (found.low, found.high) == (-np.inf, np.inf)


def test_judgement_of_fights():
    config = with_settings(load_preset("smoke"), ["fight.step_limit=150"])
    found = judge(config, Waits(), 6)
    by_hand = evaluate(build_fighter(config, Waits()), 6, seed=JUDGING_SEED, step_limit=150)
    assert (found.score, found.low, found.high) == (by_hand.win_rate, *by_hand.interval)
    assert (found.episodes, found.time_outs, found.wins) == (6, by_hand.time_outs, True)
    assert found.metrics()["time_out_rate/evaluation"] == by_hand.time_outs / 6


def test_saved_form():
    found = Judgement(0.5, 0.4, 0.6, 100, 3, True)
    assert Judgement.of(found.__dict__) == found
    assert Judgement.of(None) is None


def test_the_policy_to_keep_is_not_chosen_by_the_fights_it_is_reported_on():
    assert JUDGING_SEED != FINAL_SEED


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["starts.random_pose=true", "fight.randomize=0.7"], {"full": True, "random_pose": False, "randomize": 0.0}),
        (["starts.random_pose=true", "fight.full=false", "fight.phase=2"], {"random_pose": True, "phase": 2}),
        (["fight.no_hit=true", "fight.step_limit=77"], {"no_hit": True, "step_limit": 77}),
        (["fight.variants=['hard', 'standard']"], {"variant": "hard"}),
    ],
)
def test_fights_are_plain_but_otherwise_as_in_training(settings, expected):
    config = with_settings(load_preset("smoke"), settings)
    found = evaluate_policy(config, Waits(), 2, seed=5, step_limit=expected.get("step_limit", 3))
    assert {name: getattr(found.settings, name) for name in expected} == expected
    assert found.settings.seed == 5


def test_other_fights_can_be_asked_for():
    found = evaluate_policy(load_preset("smoke"), Waits(), 1, seed=0, randomize=1.0, step_limit=3)
    assert found.settings.randomize == 1.0
