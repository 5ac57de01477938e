"""Agents become measurably better, in seconds."""

import pytest

from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.learning.scoring import evaluate_policy, gym_returns
from soulsai.learning.training import Training
from soulsai.runs.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.learning]

CARTPOLE = ["run.steps=60000", "run.evaluate_every_steps=4000", "run.evaluation_fights=10", "run.stop_at=400",
            "run.threads=1", "ppo.epochs=8", "ppo.learning_rate=2e-3", "ppo.minibatch=128"]  # fmt: skip
FIGHT = ["run.steps=300000", "run.evaluate_every_steps=0", "run.threads=1", "fight.number=64", "ppo.minibatch=512",
         "fight.variants=['standard']", "network.hidden=[64]"]  # fmt: skip
Q_FIGHT = ["run.steps=15000", "run.evaluate_every_steps=0", "run.threads=1", "fight.variants=['standard']",
           "network.hidden=[64]", "q.batch=64", "q.epsilon_steps=7500", "replay.capacity=30000"]  # fmt: skip


class Silent:
    def say(self, text): ...

    def show(self, progress): ...


def begun(folder, preset, settings):
    config = with_settings(load_preset(preset), settings)
    run = Run.create(folder, config_to_toml(config), preset=preset, command=[])
    training = Training(run, config, view=Silent(), stop=lambda: False)
    training.begin()
    return training


def test_ppo_balances_the_pole(tmp_path):
    """Chance lasts about 20 steps; the longest episode is 500."""
    training = begun(tmp_path / "run", "cartpole-ppo", CARTPOLE)
    assert training.go()
    assert gym_returns(training.config, training.loop.policy(), 20, 5).mean() > 300.0


@pytest.mark.parametrize(("preset", "settings"), [("iudex", FIGHT), ("dddqn", Q_FIGHT)])
def test_an_agent_learns_to_hurt_the_boss(tmp_path, preset, settings):
    training = begun(tmp_path / "run", preset, settings)

    def boss_hp_left():
        found = evaluate_policy(training.config, training.loop.policy(), 40, seed=3, step_limit=600)
        return float(found.boss_hp_share.mean())

    before = boss_hp_left()
    assert training.go()
    assert boss_hp_left() < before - 0.1
