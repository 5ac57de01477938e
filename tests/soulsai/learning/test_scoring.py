"""Measuring policies while they train."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from soulsai.config import load_preset, with_settings
from soulsai.evaluation import evaluate
from soulsai.learning import scoring
from soulsai.learning.scoring import SCORING_SEED, PolicyScore, evaluate_policy, gym_returns, score_policy
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

    monkeypatch.setattr(scoring, "GymWorld", World)
    assert sorted(gym_returns(CARTPOLE, Waits(), 6, 0)) == [1.0, 1.0, 1.0, 10.0, 10.0, 10.0]


@pytest.mark.parametrize(("masks", "best"), [("true", 2), ("false", 1)])
def test_masks_count_in_an_evaluation_as_they_do_in_training(monkeypatch, masks, best):
    """A policy that learned without masks is measured without them: the action it likes may be one they close."""
    from soulsgym.batch import Step

    class World:
        number, observations = 1, np.zeros((1, 1), np.float32)

        def __init__(self, *_):
            self.masks, self._step = np.array([[True, False, True]]), Step.of_size(1, 1, 3, 1)
            self._step.ended[:] = True

        def reset(self, seed): ...

        def step(self, actions):
            self._step.rewards[:] = actions
            return self._step

        def close(self): ...

    class LikesTheSecond:
        def choose(self, observations, masks):
            return np.where(masks[:, 1], 1, 2)

    monkeypatch.setattr(scoring, "GymWorld", World)
    config = with_settings(CARTPOLE, [f"actions.masks={masks}"])
    assert gym_returns(config, LikesTheSecond(), 2, 0).tolist() == [best] * 2


def test_score_of_returns(monkeypatch):
    monkeypatch.setattr(scoring, "gym_returns", lambda *_: np.array([1.0, 3.0, 5.0, 7.0]))
    found = score_policy(CARTPOLE, Waits(), 4)
    half = 1.96 * np.sqrt(20 / 3) / 2
    assert (found.value, found.episodes, found.is_win_rate) == (4.0, 4, False)
    assert (found.low, found.high) == pytest.approx((4.0 - half, 4.0 + half))
    assert found.metrics() == {"return/evaluation": 4.0}


def test_score_of_one_episode_knows_nothing(monkeypatch):
    monkeypatch.setattr(scoring, "gym_returns", lambda *_: np.array([1.0]))
    found = score_policy(CARTPOLE, Waits(), 1)
    assert (found.low, found.high) == (-np.inf, np.inf)


def test_score_of_fights():
    config = with_settings(load_preset("smoke"), ["fight.step_limit=150"])
    found = score_policy(config, Waits(), 6)
    by_hand = evaluate(build_fighter(config, Waits()), 6, seed=SCORING_SEED, step_limit=150)
    assert (found.value, found.low, found.high) == (by_hand.win_rate, *by_hand.interval)
    assert (found.episodes, found.time_outs, found.is_win_rate) == (6, by_hand.time_outs, True)
    metrics = found.metrics()
    assert metrics["time_out_rate/evaluation"] == by_hand.time_outs / 6
    assert metrics["episode/length_evaluation"] == by_hand.steps.mean()
    assert metrics["boss_health_left/all"] == by_hand.boss_hp_share.mean()
    assert metrics["boss_health_left/phase_1"] == by_hand.boss_hp_share[by_hand.phase == 1].mean()
    assert PolicyScore.of(json.loads(json.dumps(asdict(found)))) == found  # as it is saved


def test_saved_form():
    found = PolicyScore(0.5, 0.4, 0.6, 100, 3, True)
    assert PolicyScore.of(found.__dict__) == found
    assert PolicyScore.of(None) is None


def test_the_policy_to_keep_is_not_chosen_by_the_fights_it_is_reported_on():
    assert SCORING_SEED != FINAL_SEED


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


def test_of_several_bosses_the_worst_is_the_score(monkeypatch):
    config = with_settings(load_preset("smoke"), ["fight.bosses=['iudex', 'vordt', 'margit']", "fight.step_limit=30"])
    wins = {"iudex": 3, "vordt": 1, "margit": 2}
    shown = []

    def played(config, policy, fights, *, seed, recorder, progress):
        found = evaluate(build_fighter(config, policy), fights, boss=config.fight.main_boss, step_limit=30, seed=seed)
        found.outcome[:] = np.arange(fights) < wins[config.fight.main_boss]
        return found

    class Files:
        def recorder(self): ...

        def show(self, found, policy, recorder, step):
            shown.append(found.settings.boss)

    monkeypatch.setattr(scoring, "evaluate_policy", played)
    score = score_policy(config, Waits(), 4, evaluation_files=Files())
    assert (score.value, score.episodes, shown) == (0.25, 4, ["vordt"])
    assert score.by_boss == {"iudex": 0.75, "vordt": 0.25, "margit": 0.5}
    assert score.metrics()["win_rate/against/margit"] == 0.5
    assert PolicyScore.of(json.loads(json.dumps(asdict(score)))) == score
