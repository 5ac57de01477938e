"""Settings from the command line."""

import pytest

from soulsai.config import Config, differences, with_settings
from soulsai.errors import ConfigError


def changed(*settings):
    return with_settings(Config(), settings)


def refused(*settings):
    with pytest.raises(ConfigError) as caught:
        changed(*settings)
    return str(caught.value)


def test_values_are_toml():
    config = changed("ppo.gamma=0.5", "network.hidden=[64, 32]", "fight.full=false", "run.steps=1_000", 'gym.id="A b"')
    assert (config.ppo.gamma, config.network.hidden, config.fight.full) == (0.5, (64, 32), False)
    assert (config.run.steps, config.gym.id) == (1000, "A b")


def test_a_text_needs_no_quotes():
    config = changed("reward.preset=rl-souls", "gym.id=LunarLander-v3", "algorithm=q")
    assert (config.reward.preset, config.gym.id, config.algorithm) == ("rl-souls", "LunarLander-v3", "q")


def test_an_empty_text_does():
    assert changed('gym.id=""').gym.id == ""


def test_a_value_may_hold_an_equals_sign():
    assert changed("gym.id=a=b").gym.id == "a=b"


def test_a_value_cannot_smuggle_in_a_second_key():
    assert changed("gym.id='a'\nx = 1").gym.id == "'a'\nx = 1"


@pytest.mark.parametrize(("text", "value"), [(".5", 0.5), ("+.5e-1", 0.05), ("5e-1", 0.5), ("1", 1.0)])
def test_numbers_are_written_as_people_write_them(text, value):
    assert changed(f"ppo.gamma={text}").ppo.gamma == value


def test_spaces_around_key_and_value_do_not_matter():
    assert changed(" ppo.gamma = 0.5 ").ppo.gamma == 0.5


def test_an_entry_of_a_table_is_added_to_the_others():
    config = changed("reward.weights.roll=0.1", "reward.weights.hit=2", "reward.weights.roll=0.2")
    assert config.reward.weights == {"roll": 0.2, "hit": 2.0}


def test_the_last_of_a_key_counts():
    assert changed("run.seed=1", "run.seed=2").run.seed == 2


def test_settings_are_checked_together_after_all_are_set():
    config = changed("fight.number=1", "ppo.minibatch=8")
    assert (config.fight.number, config.ppo.minibatch) == (1, 8)
    assert refused("run.seed=1", "fight.number=1").startswith(
        "--set run.seed=1 --set fight.number=1: ppo.minibatch = 2048 is more than the 32 decisions"
    )


def test_the_config_given_stays_as_it_is():
    before = Config()
    with_settings(before, ["reward.weights.roll=1", "run.seed=3"])
    assert differences(before, Config()) == []


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("ppo.gama=1", "there is no key ppo.gama; did you mean ppo.gamma?"),
        ("pppo.gamma=1", "there is no section [pppo]; did you mean [ppo]?"),
        ("ppo.gamma=high", 'ppo.gamma must be a number from 0 to 1, not "high"'),
        ("ppo.gamma=nan", "ppo.gamma must be a number from 0 to 1, not nan"),
        ("ppo.gamma.x=1", "ppo.gamma must be a number from 0 to 1, not {x = 1}"),
        ("network.hidden=64", "network.hidden must be a list of whole numbers from 1 to 65536, not 64"),
        ("reward.weights.roll=much", 'reward.weights must be a table of numbers, not {roll = "much"}'),
        ("fight.variants=hard", 'fight.variants must be a list of strings, e.g. \'["hard"]\', not "hard"'),
        ("fight.variants=[a, b]", 'fight.variants must be a list of strings, e.g. \'["a", "b"]\', not "[a, b]"'),
        ("fight.step_limit=-1", "fight.step_limit must be a whole number of at least 1, not -1"),
        (f"fight.step_limit={10**30}", f"fight.step_limit must be at most 9223372036854775807, not {10**30}"),
        (f"run.steps={10**30}", f"run.steps must be at most {2**63 - 1}, not {10**30}"),
        ("ppo=1", "ppo is a section, not a key: give one of its keys, such as ppo.rollout"),
        ("extends=1", "there is no key extends; the keys there are world, algorithm"),
        ("fight.boss=\udcff", 'fight.boss must be a string, not "\udcff"'),
    ],
)
def test_a_bad_setting_is_refused_by_its_own_words(setting, sentence):
    assert refused(setting).startswith(f"--set {setting}: {sentence}")


@pytest.mark.parametrize("setting", ["", "=", "ppo.gamma", "ppo.gamma=", "=3", f"x={'[' * 100_000}"])
def test_what_is_no_setting_is_refused(setting):
    assert refused(setting).startswith(f"--set {setting}: ")
