"""What differs between two configs, for people."""

from soulsai.config import Config, config_from_toml, differences, with_settings


def test_equal_configs_do_not_differ():
    assert differences(Config(), config_from_toml("", "text")) == []


def test_every_key_that_differs_has_a_line_in_the_order_of_the_schema():
    settings = ["q.tau=1", "reward.weights.roll=-0.5", "world=gym", "gym.number=512", "network.hidden=[8]"]
    assert differences(Config(), with_settings(Config(), settings)) == [
        'world: "fight" -> "gym"',
        "reward.weights.roll: not set -> -0.5",
        "gym.number: 8 -> 512",
        "network.hidden: [128, 128] -> [8]",
        "q.tau: 0.005 -> 1.0",
    ]


def test_an_entry_that_went_is_told_apart_from_one_that_changed():
    old = with_settings(Config(), ["reward.weights.roll=1", "reward.weights.hit=1"])
    new = with_settings(Config(), ["reward.weights.hit=2"])
    assert differences(old, new) == ["reward.weights.hit: 1.0 -> 2.0", "reward.weights.roll: 1.0 -> not set"]


def test_true_is_not_one():
    old, new = (with_settings(Config(), [f"gym.kwargs.a={value}"]) for value in ("true", "1"))
    assert differences(old, new) == ["gym.kwargs.a: true -> 1"]
