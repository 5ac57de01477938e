"""Checks that look at play: inputs, masks, encoders, and what silly players earn."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from soulsai.config import Config, with_settings
from soulsai.learning.preflight import encoders, exploits, verdict
from soulsai.learning.preflight.encoders import encoder_findings
from soulsai.learning.preflight.exploits import STEP_LIMIT, Leaper, Victim, exploit_findings, mean_returns
from soulsai.learning.preflight.sample import Sample, play_sample
from soulsai.learning.preflight.verdict import sight_findings
from soulsgym.actions import controls_of
from soulsgym.engine import standard_starts
from soulsgym.parts.encoders import PlayerEncoder
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

IUDEX = load_fight("iudex")


class Loud(gymnasium.Env):
    """One input of health points beside a quiet one; four steps to the end, the last of three actions is closed."""

    observation_space = gymnasium.spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self) -> None:
        self._step = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._seen()

    def step(self, action):
        assert action != 2
        self._step += 1
        observation, info = self._seen()
        return observation, 1.0, self._step == 4, False, info

    def _seen(self):
        return np.array([0.5, 400.0 * self._step], np.float32), {"action_mask": np.array([1, 1, 0], np.int8)}


gymnasium.register("Loud-v0", Loud)
LOUD = ["world=gym", "gym.id=Loud-v0", "ppo.minibatch=256", "ppo.gamma=0.5"]


def config(*settings: str) -> Config:
    return with_settings(Config(), list(settings))


def sight_names(*settings: str) -> list[str]:
    return [finding.name for finding in sight_findings(config(*settings), play_sample(config(*settings)))]


def test_sample_of_a_world_known_by_heart():
    sample = play_sample(config(*LOUD))
    assert sample.names == ("number 0", "number 1")
    assert sample.low.tolist() == [0.5, 0.0]
    assert sample.high.tolist() == [0.5, 1200.0]
    assert sample.deviation[1] == pytest.approx(400.0 * np.std([0, 1, 2, 3]))
    assert sample.closed_share == pytest.approx(1 / 3)
    assert (sample.num_actions, sample.steps_per_decision) == (3, 1.0)
    # From the last step of an episode 1; from the first 1 + 0.5 + 0.25 + 0.125.
    assert (sample.lowest_return, sample.highest_return) == (1.0, 1.875)


def test_sample_of_fights_has_the_names_of_the_encoder_and_merged_steps():
    sample = play_sample(config("encoder.history=2", 'fight.variants=["standard", "hard"]'))
    assert sample.names[:2] == ("player_hp", "player_sp")
    assert len(sample.names) == len(sample.low) == 2 * PlayerEncoder(1, IUDEX).size
    assert sample.steps_per_decision > 1.5
    assert play_sample(config("fight.decisions=false")).steps_per_decision == 1.0


def test_large_inputs_are_named_with_their_range():
    (finding,) = sight_findings(config(*LOUD), play_sample(config(*LOUD)))
    assert finding.name == "inputs-not-normalised"
    assert "number 1 (0 to 1200);" in finding.text
    assert "number 0" not in finding.text


@pytest.mark.parametrize(
    ("low", "high", "deviation", "is_large"),
    [(-10.0, 10.0, 5.0, False), (-10.1, 0.0, 1.0, True), (0.0, 10.1, 1.0, True), (-9.0, 9.0, 5.1, True),
     (np.nan, np.nan, np.nan, True)],
)  # fmt: skip
def test_how_large_is_too_large(low, high, deviation, is_large):
    sample = Sample(("x",), np.array([low]), np.array([high]), np.array([deviation]), 2, 0.0, 1.0, *[0.0] * 4)
    assert [finding.name for finding in sight_findings(Config(), sample)] == ["inputs-not-normalised"] * is_large


def test_inputs_that_the_network_normalises_may_be_large():
    assert sight_names(*LOUD, "network.normalize=true") == []


@pytest.mark.parametrize("encoder", ["player", "soulsai74"])
def test_inputs_of_the_encoders_are_normalised(encoder):
    assert sight_names(f"encoder.name={encoder}", "encoder.history=2") == []


def test_masks_that_close_actions_must_be_used():
    assert sight_names("actions.masks=false") == ["mask-unused"]
    assert sight_names(*LOUD, "network.normalize=true", "actions.masks=false") == ["mask-unused"]
    assert sight_names("world=gym", "ppo.minibatch=256", "actions.masks=false") == []  # CartPole closes nothing


class Remembering(PlayerEncoder):
    """Does not forget: what the boss did in the last fight is shown in the next one."""

    def begin(self, fights, mask):
        pass


class HalfRemembering(PlayerEncoder):
    """Forgets all fights but the last of them."""

    def begin(self, fights, mask):
        super().begin(fights, mask & (np.arange(len(mask)) < len(mask) - 1))


@pytest.mark.parametrize("broken", [Remembering, HalfRemembering])
def test_an_encoder_that_does_not_forget_is_found(broken, monkeypatch):
    monkeypatch.setattr(encoders, "build_encoder", lambda config, spec, n: broken(n, spec))
    (finding,) = encoder_findings(Config())
    assert finding.name == "encoder-not-reset"
    assert "boss_" in finding.text
    assert "begin()" in finding.text


@pytest.mark.parametrize("settings", [(), ("encoder.history=3",), ("encoder.name=soulsai74", "fight.phase=2")])
def test_encoders_forget(settings):
    assert list(encoder_findings(config(*settings))) == []


def test_no_fights_no_encoder_and_no_exploit():
    assert list(encoder_findings(config(*LOUD))) == []
    assert list(exploit_findings(config(*LOUD))) == []


def ended(fighter, steps: int) -> tuple[np.ndarray, np.ndarray]:
    engine, everyone = SimEngine(IUDEX, 4), np.ones(4, np.bool_)
    engine.reset(everyone, standard_starts(4), np.arange(4, dtype=np.uint64))
    fighter.begin(engine.fights, everyone)
    for _ in range(steps):
        engine.step(controls_of(fighter.act(engine.fights)))
    engine.close()
    return engine.fights["outcome"], engine.fights["dealt_total"]


def test_silly_fighters_die_as_they_mean_to():
    outcome, dealt = ended(Victim(), 400)
    assert (outcome == Outcome.DIED).all()
    assert (dealt == 0.0).all()
    outcome, dealt = ended(Leaper(IUDEX.arena), 200)
    assert (outcome == Outcome.FELL).any()
    assert (outcome != Outcome.WON).all()


def test_returns_of_a_known_reward():
    only_steps = ["reward.weights={dealt=0, taken=0, win=0, far=0, step=1}"]
    # Cut off after 50 steps, which nobody is killed in: -50, and -(1 - 0.5^50) / (1 - 0.5).
    returns = mean_returns(config(*only_steps, "fight.step_limit=50", "ppo.gamma=0.5"), IUDEX, Victim())
    assert returns.tolist() == pytest.approx([-50.0, -2.0])
    # Whoever falls dies once, and the engine is not asked again.
    dying = ["reward.weights={dealt=0, taken=0, win=0, far=0, death=1}"]
    assert mean_returns(config(*dying), IUDEX, Leaper(IUDEX.arena))[0] == -1.0
    assert STEP_LIMIT == 1000


@pytest.mark.parametrize(
    ("settings", "doing", "discount"),
    [
        (["reward.weights.far=-0.1"], "running away", "1"),
        (["reward.weights.step=0.1"], "jumping off the cliff", "1"),
    ],
)
def test_rewards_that_pay_for_something_silly(settings, doing, discount):
    (finding,) = exploit_findings(config(*settings))
    assert finding.name == "reward-exploit"
    assert finding.text.startswith(f"{doing} scores ")
    assert f"(discount {discount}): " in finding.text


def test_the_worst_trick_decides_and_a_tie_counts(monkeypatch):
    earned = iter([[1.0, 0.5], [0.0, 0.0], [0.9, 0.4], [1.1, 0.1], [1.0, 0.9], [0.0, 0.0]])
    monkeypatch.setattr(exploits, "mean_returns", lambda *given: np.array(next(earned)))
    (finding,) = exploit_findings(Config())
    assert finding.text.startswith("walking into the blows scores 0.90, the duellist 0.50 (discount 0.98)")
    earned = iter([[1.0, 0.5], *[[0.0, 0.5]] * 5])
    assert len(list(exploit_findings(Config()))) == 1
    earned = iter([[1.0, 0.5], *[[0.9, 0.4]] * 5])
    assert list(exploit_findings(Config())) == []


def test_findings_hold_those_of_play(monkeypatch):
    monkeypatch.setattr(verdict, "exploit_findings", lambda config: iter(()))
    names = [finding.name for finding in verdict.findings(config(*LOUD, "actions.masks=false"))]
    assert names == ["inputs-not-normalised", "mask-unused"]
