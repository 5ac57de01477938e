"""Whatever the schema does not know, or a key may not have, is refused in one sentence."""

import pytest

from soulsai.config import Config, config_from_toml
from soulsai.errors import ConfigError


def refused(text):
    with pytest.raises(ConfigError) as caught:
        config_from_toml(text, "mine.toml")
    return str(caught.value)


def test_what_is_left_out_has_its_default():
    config = config_from_toml("[ppo]\ngamma = 0.5\n", "mine.toml")
    assert config.ppo.gamma == 0.5
    assert config.ppo.lam == 0.9
    assert config.run == Config().run


def test_nothing_is_changed_in_place():
    before = Config()
    config_from_toml("[reward.weights]\nroll = 1.0\n", "mine.toml")
    assert before == Config()
    assert Config().reward.weights == {}


def test_lists_become_tuples_and_whole_numbers_floats():
    config = config_from_toml("[starts]\nboss_hp_share = [1, 1]\n[ppo]\nclip = 1\n", "mine.toml")
    assert config.starts.boss_hp_share == (1.0, 1.0)
    assert [type(share) for share in config.starts.boss_hp_share] == [float, float]
    assert type(config.ppo.clip) is float


def test_keywords_of_an_environment_keep_their_types():
    config = config_from_toml('[gym.kwargs]\na = 1\nb = 1.0\nc = true\nd = "x"\n', "mine.toml")
    assert [type(value) for value in config.gym.kwargs.values()] == [int, float, bool, str]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[pppo]\n", "there is no section [pppo]; did you mean [ppo]?"),
        ("[ppo]\ngama = 0.9\n", "there is no key ppo.gama; did you mean ppo.gamma?"),
        ("number = 9\n", "there is no key number; did you mean fight.number or gym.number or fleet.number?"),
        ("[run]\nminibatch = 9\n", "there is no key run.minibatch; did you mean ppo.minibatch?"),
        ("[actions]\nxyz = 9\n", "there is no key actions.xyz; the keys there are preset, names, masks"),
        ("ppo = 3\n", "ppo is a section, not a key: give one of its keys, such as ppo.rollout"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(text, sentence):
    assert refused(text) == f"mine.toml: {sentence}"


def test_an_unknown_section_like_no_other_is_refused_with_all_there_are():
    assert refused("[xyz]\n").startswith("mine.toml: there is no section [xyz]; the sections are run, fight, encoder")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[run]\nsteps = true\n", "run.steps must be a whole number of at least 1, not true"),
        ("[run]\nsteps = 1e6\n", "run.steps must be a whole number of at least 1, not 1000000.0"),
        (
            "[fight]\nstep_limit = 9223372036854775808\n",
            "fight.step_limit must be at most 9223372036854775807, not 9223372036854775808",
        ),
        ("[run]\nthreads = 257\n", "run.threads must be a whole number from 0 to 256, not 257"),
        ("[run]\nthreads = -1\n", "run.threads must be a whole number from 0 to 256, not -1"),
        ("[run]\nstop_at = nan\n", "run.stop_at must be a number, not nan"),
        ("[run]\nstop_at = -inf\n", "run.stop_at must be a number, not -inf"),
        ("[run]\nstop_at = true\n", "run.stop_at must be a number, not true"),
        ("[ppo]\ngamma = 1.0000001\n", "ppo.gamma must be a number from 0 to 1, not 1.0000001"),
        ("[q]\nupdate_every = 0\n", "q.update_every must be a number of at least 0.001, not 0"),
        ('[ppo]\ngamma = "high"\n', 'ppo.gamma must be a number from 0 to 1, not "high"'),
        ("[fight]\nfull = 1\n", "fight.full must be true or false, not 1"),
        ("[fight]\nboss = 1979-05-27\n", "fight.boss must be a string, not 1979-05-27"),
        ('world = "sea"\n', 'world must be one of fight, gym, not "sea"'),
        ('[q]\nloss = "hubert"\n', 'q.loss must be one of huber, mse, not "hubert"; did you mean huber?'),
        ("[network]\nhidden = 64\n", "network.hidden must be a list of whole numbers from 1 to 65536, not 64"),
        (
            "[network]\nhidden = [64, 0]\n",
            "network.hidden must be a list of whole numbers from 1 to 65536, not [64, 0]",
        ),
        ("[q]\nvalue_range = [1]\n", "q.value_range must be a list of 2 numbers, not [1]"),
        ("[q]\nvalue_range = [1, 2, 3]\n", "q.value_range must be a list of 2 numbers, not [1, 2, 3]"),
        ("[q]\nvalue_range = [1, inf]\n", "q.value_range must be a list of 2 numbers, not [1, inf]"),
        ("[fight]\nvariants = [1]\n", "fight.variants must be a list of strings, not [1]"),
        ("[reward]\nweights = 1\n", "reward.weights must be a table of numbers, not 1"),
        ("[reward.weights]\nroll = true\n", "reward.weights must be a table of numbers, not {roll = true}"),
        ("[reward.weights]\nroll = nan\n", "reward.weights must be a table of numbers, not {roll = nan}"),
        ("[gym.kwargs]\na = []\n", "gym.kwargs must be a table of strings, numbers, true or false, not {a = []}"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_does(text, sentence):
    assert refused(text) == f"mine.toml: {sentence}"


def test_limits_may_be_reached():
    config = config_from_toml("[run]\nthreads = 256\nseed = 0\n[ppo]\ngamma = 1\nlam = 0.0\n", "mine.toml")
    assert (config.run.threads, config.ppo.gamma, config.ppo.lam) == (256, 1.0, 0.0)


def test_long_values_are_shortened():
    assert len(refused(f'[ppo]\ngamma = "{"x" * 1000}"\n')) < 200
    assert refused(f"[run]\nseed = 0x{'f' * 9000}\n").endswith("not a number of thousands of digits")
