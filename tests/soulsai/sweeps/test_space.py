"""The space file: what it may say, and how it is refused."""

import re
from pathlib import Path

import pytest

from soulsai.config import load_preset, with_settings
from soulsai.errors import ConfigError
from soulsai.sweeps.space import (
    Choices,
    Plan,
    Range,
    Space,
    as_arguments,
    check_fit,
    metric_of,
    read_space,
    space_of,
    value_of,
)

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "sweep.md"


def test_ranges_choices_and_values():
    space = space_of(
        """
        algorithm = {choices = ["ppo", "q"]}
        "ppo.gamma" = {low = 0.9, high = 0.99, step = 0.01}
        [ppo]
        learning_rate = {low = 1e-4, high = 1e-2, log = true}
        epochs = {low = 1, high = 9}
        minibatch = {values = [64, 256]}
        [network]
        hidden = {choices = [[16], [32, 32]]}
        [reward]
        weights.far = {low = 0, high = 1}
        """,
        "x",
    )
    assert sorted(map(repr, space.dimensions)) == sorted(
        map(
            repr,
            (
                Choices("algorithm", ("ppo", "q")),
                Range("ppo.gamma", 0.9, 0.99, whole=False, step=0.01),
                Range("ppo.learning_rate", 1e-4, 1e-2, whole=False, log=True),
                Range("ppo.epochs", 1, 9, whole=True),
                Choices("ppo.minibatch", (64, 256), ordered=True),
                Choices("network.hidden", ([16], [32, 32])),
                Range("reward.weights.far", 0, 1, whole=False),
            ),
        )
    )


def test_the_sweep_table():
    space = space_of(
        "ppo.epochs = {low = 1, high = 2}\n[sweep]\ntrials = 5\nwarmup = 1\nfixed = {run = {steps = 10}}", "x"
    )
    assert (space.plan.trials, space.plan.warmup, space.plan.pruner) == (5, 1.0, "median")
    assert space.fixed == ("run.steps=10",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "x: there is nothing to try; give a key a range"),
        ("[ppo", "x: this is not TOML"),
        ("ppo.gama = {low = 0.1, high = 0.2}", "x: there is no key ppo.gama; did you mean ppo.gamma?"),
        ("pppo.gamma = {low = 0.1, high = 0.2}", "x: there is no section [pppo]; did you mean [ppo]?"),
        ("masks = {low = 0.1, high = 0.2}", "x: there is no key masks; did you mean actions.masks?"),
        ("ppo = {low = 0.1, high = 0.2}", "x: ppo is a section, not a key: give one of its keys, such as ppo.rollout"),
        ("ppo.gamma = 0.9", "x: ppo.gamma = 0.9 leaves nothing to try"),
        ("ppo.gamma = {low = 0.9, high = 1.5}", "x: ppo.gamma must be a number from 0 to 1, not 1.5"),
        ("ppo.gamma = {low = 0.9}", "x: ppo.gamma has no high; give"),
        ("ppo.gamma = {lo = 0.9, high = 1}", "x: ppo.gamma has the unknown word lo; did you mean low?"),
        ("ppo.gamma = {low = 0.9, high = 0.5}", "x: ppo.gamma: low = 0.9 must be below high = 0.5"),
        ("ppo.gamma = {low = 0, high = 1, log = true}", "x: ppo.gamma: a logarithmic range must begin above 0"),
        ("ppo.gamma = {low = 0.1, high = 1, log = 1}", "x: ppo.gamma: log must be true or false, not 1"),
        ("ppo.epochs = {low = 1, high = 9, step = 0.5}", "x: ppo.epochs: step must be a whole number above 0"),
        ("ppo.epochs = {low = 1, high = 9, step = 2, log = true}", "x: ppo.epochs has step and log"),
        ("ppo.epochs = {low = 1.5, high = 9}", "x: ppo.epochs must be a whole number from 1 to 100, not 1.5"),
        ("network.hidden = {low = 1, high = 9}", "x: network.hidden must be a list of whole numbers"),
        ("network.activation = {choices = ['relu', 'tanhh']}", "not \"tanhh\"; did you mean tanh?"),
        ("network.activation = {choices = ['relu']}", "choices must be a list of two values or more"),
        ("ppo.epochs = {choices = [1, 1]}", "x: ppo.epochs: choices has 1 twice"),
        ("ppo.epochs = {values = [2, 1]}", "x: ppo.epochs: values must go up"),
        ("network.activation = {values = ['relu', 'tanh']}", "values are numbers in a row; write choices"),
        ("ppo.epochs = {values = [1, 2], low = 1}", "x: ppo.epochs has values beside other words"),
        ("run.steps = {low = 1, high = 9}", "x: run.steps cannot be tried: trials are compared after the same number"),
        ("fight.boss = {choices = ['iudex', 'x']}", "x: fight.boss cannot be tried: trials would be judged"),
        ("sweep = 3", "x: sweep must be a table, not 3"),
        ("[sweep]\ntrails = 3\n[ppo]\nepochs = {low=1, high=2}", "no key sweep.trails; did you mean sweep.trials?"),
        ("[sweep]\ntrials = 0\n[ppo]\nepochs = {low=1, high=2}", "sweep.trials must be a whole number from 1 to"),
        ("[sweep]\npruner = 'x'\n[ppo]\nepochs = {low=1, high=2}", "sweep.pruner must be one of halving, median, none"),
        ("[sweep.fixed]\nrun.stepz = 1\n[ppo]\nepochs = {low=1, high=2}", "no key run.stepz; did you mean run.steps?"),
        ("[sweep.fixed]\nppo.epochs = 1\n[ppo]\nepochs = {low=1, high=2}", "ppo.epochs is both tried and fixed"),
        ("'ppo.epochs' = {low = 1, high = 2}\n[ppo]\nepochs = {low=1, high=2}", "x: ppo.epochs is given twice"),
        ("[sweep]\nfixd = {}\n[ppo]\nepochs = {low=1, high=2}", "no key sweep.fixd; did you mean sweep.fixed?"),
        ("[sweep]\nfixed = 3\n[ppo]\nepochs = {low=1, high=2}", "sweep.fixed must be a table of settings, not 3"),
        ("reward.weigths.far = {low = 0, high = 1}", "no key reward.weigths; did you mean reward.weights?"),
        ("world = {lo = 1, high = 2}", "x: world cannot be tried"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        space_of(text, "x")
    assert "\n" not in str(caught.value).replace("(at line", "")


@pytest.mark.parametrize(
    ("text", "preset", "settings", "sentence"),
    [
        ("q.gamma = {low = 0.9, high = 0.99}", "iudex", [], 'q.gamma changes nothing with algorithm = "ppo"'),
        ("replay.alpha = {low = 0.1, high = 0.9}", "iudex", [], 'replay.alpha changes nothing with algorithm = "ppo"'),
        ("ppo.gamma = {low = 0.9, high = 0.99}", "clipped-dqn", [], 'ppo.gamma changes nothing with algorithm = "q"'),
        ("starts.mid_fight = {low = 0, high = 1}", "cartpole-ppo", [], 'changes nothing with world = "gym"'),
        ("fleet.max_lag = {low = 1, high = 3}", "iudex", [], "fleet.max_lag changes nothing with trials"),
        ("reward.weights.farr = {low = 0, high = 1}", "iudex", [], 'did you mean "far"?'),
        ("ppo.gamma = {low = 0.9, high = 0.99}", "iudex", ["ppo.gamma=0.95"], "ppo.gamma is tried by this space"),
        ("ppo.gamma = {low = 0.9, high = 0.99}", "iudex", ["run.evaluate_every_steps=0"], "nothing to compare"),
        ("ppo.gamma = {low = 0.9, high = 0.99}", "iudex", ["run.steps=1000"], "is more than run.steps = 1000"),
        ("q.gamma = {low = 0.9, high = 0.99}", "iudex-game", [], "too slow for a sweep"),
        ("[sweep]\nmetric = 'return/evaluation'\n[ppo]\ngamma = {low = 0.9, high = 0.99}", "iudex", [], "is never"),
        ("starts.random_pose = {choices = [true, false]}", "iudex", ["fight.full=false"], "part of the task"),
    ],
)  # fmt: skip
def test_a_space_that_makes_no_sense_for_a_preset_is_refused(text, preset, settings, sentence):
    space = space_of(text, "x")
    config = with_settings(load_preset(preset), settings)
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        check_fit(space, config, settings, "x")


def test_what_optuna_draws_becomes_settings_and_back():
    dimensions = (
        Range("ppo.learning_rate", 1e-4, 1e-2, whole=False, log=True),
        Range("ppo.epochs", 1, 9, whole=True, step=2),
        Choices("ppo.minibatch", (64, 256), ordered=True),
        Choices("network.hidden", ([16], [32, 32])),
        Choices("q.double", (True, False)),
    )
    drawn = {
        "ppo.learning_rate": 0.00123456789, "ppo.epochs": 3, "ppo.minibatch": 1, "network.hidden": "[32, 32]",
        "q.double": "false",
    }  # fmt: skip
    settings = Space(dimensions, (), Plan(), "").settings(drawn)
    assert as_arguments(settings) == [
        "ppo.learning_rate=0.001235", "ppo.epochs=3", "ppo.minibatch=256", "network.hidden=[32, 32]", "q.double=false",
    ]  # fmt: skip
    config = with_settings(load_preset("iudex"), as_arguments(settings))
    assert {one.key: one.to_optuna(value_of(config, one.key)) for one in dimensions} == drawn | {
        "ppo.learning_rate": 0.001235
    }


def test_values_that_are_never_drawn_have_no_place():
    assert Range("a", 1, 9, whole=True, step=2).to_optuna(4) is None
    assert Range("a", 1, 9, whole=True).to_optuna(10) is None
    assert Choices("a", (True, False)).to_optuna(1) is None
    assert Choices("a", (1, 2)).to_optuna(1.0) is not None
    assert Choices("gym.kwargs.a", (1, 2)).to_optuna(None) is None  # a keyword that the preset leaves out
    assert Range("gym.kwargs.a", 1, 2, whole=True).to_optuna(None) is None


def test_a_rounded_value_stays_in_its_range():
    assert Range("a", 0.1, 0.123456, whole=False).value(0.123456) == 0.123456
    assert Range("a", 0.123456, 0.2, whole=False).value(0.123456) == 0.1235
    assert Range("a", 0.12344, 0.2, whole=False).value(0.12344) == 0.12344


def test_a_weight_that_the_config_leaves_out_is_that_of_the_reward():
    config = load_preset("iudex")
    assert value_of(config, "reward.weights.dealt") == 6.0
    assert value_of(config, "reward.weights.combo") == 0.0


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match="this space file cannot be read"):
        read_space(tmp_path / "none.toml")


def spaces_of_the_page():
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {re.match(r"# (\S+)\.toml", block)[1]: block for block in blocks}


@pytest.mark.parametrize("name", ["iudex", "clipped-dqn"])
def test_the_spaces_of_the_documentation_work(name):
    space = space_of(spaces_of_the_page()[f"{name}-space"], "page")
    config = with_settings(load_preset(name), space.fixed)
    check_fit(space, config, [], "page")
    assert metric_of(space, config) == "win_rate/evaluation"
    own = {one.key: one.to_optuna(value_of(config, one.key)) for one in space.dimensions}
    assert None not in own.values(), own  # so that the preset itself is tried
    for one in space.dimensions:
        ends = (one.low, one.high) if isinstance(one, Range) else one.options
        for value in ends:
            with_settings(config, as_arguments({one.key: value}))
