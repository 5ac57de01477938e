"""Configs written as TOML come back as they were."""

import math
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soulsai.config import Config, FightConfig, GymConfig, RewardConfig, config_from_toml, config_to_toml
from soulsai.config.toml import toml_value
from soulsgym.actions import ACTION_NAMES

TEXTS = st.text(st.characters(codec="utf-8"))
SHARES = st.lists(st.floats(0.0, 1.0, exclude_min=True), min_size=2, max_size=2).map(lambda pair: tuple(sorted(pair)))
RANGES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2, unique=True)
BY_KEY = {
    "boss_hp_share": SHARES,
    "player_hp_share": SHARES,
    "value_range": RANGES.map(lambda pair: tuple(sorted(pair))),
    "names": st.lists(st.sampled_from(ACTION_NAMES), unique=True).map(tuple),
    "variants": st.lists(TEXTS, min_size=1).map(tuple),
}
"""Where one value must fit another."""


def values(kind, about):
    """All values of a key."""
    if get_origin(kind) is UnionType:
        return st.one_of([values(one, about) for one in get_args(kind)])
    if get_origin(kind) is tuple:
        return st.lists(values(get_args(kind)[0], about), max_size=4).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(TEXTS, values(get_args(kind)[1], about), max_size=4)
    if about.choices:
        return st.sampled_from(about.choices)
    if kind is int:
        low = -(2**63) + 1 if about.low is None else about.low
        return st.integers(low, 2**63 - 1 if about.high is None else about.high)
    if kind is float:
        return st.floats(about.low, about.high, allow_nan=False, allow_infinity=False)
    return {bool: st.booleans(), str: TEXTS}[kind]


def sections(kind):
    """All values of a section, as far as its keys stand alone."""
    hints, keys = get_type_hints(kind), fields(kind)
    by_key = {
        key.name: sections(hints[key.name])
        if is_dataclass(hints[key.name])
        else BY_KEY.get(key.name, values(hints[key.name], key.metadata["setting"]))
        for key in keys
    }
    return st.builds(kind, **by_key)


def fitting(config):
    """The config with names that there are, and the numbers made smaller or larger that must fit one another."""
    variants = tuple(f"x{name}.toml" for name in config.fight.variants)
    number = max(config.fight.number, len(variants))
    config = replace(
        config, fight=replace(config.fight, boss=f"{config.fight.boss}.toml", variants=variants, number=number)
    )
    if config.fight.engine == "game":
        fight = replace(config.fight, number=1, variants=config.fight.variants[:1], randomize=0.0)
        config = replace(config, fight=fight, run=replace(config.run, evaluate_every_steps=0, final_fights=0))
    smallest = min(config.fight.number, config.gym.number)
    largest = max(config.fight.number, config.gym.number) * config.q.n_step
    minibatch = min(config.ppo.minibatch, config.ppo.rollout * smallest)
    capacity = max(config.replay.capacity, config.q.batch, largest)
    ppo, replay = replace(config.ppo, minibatch=minibatch), replace(config.replay, capacity=capacity)
    q = replace(config.q, clipped=config.q.clipped and not config.q.twin)
    return replace(config, ppo=ppo, q=q, replay=replay)


def same(a, b):
    """Equal, and of equal types: to Python, true is 1 and 1.0, and 0.0 is -0.0."""
    if is_dataclass(a):
        return all(same(getattr(a, key.name), getattr(b, key.name)) for key in fields(a))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b and (a != 0 or math.copysign(1, a) == math.copysign(1, b))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # 96 keys each
@given(sections(Config).map(fitting))
def test_every_config_comes_back_exactly(config):
    text = config_to_toml(config)
    again = config_from_toml(text, "text")
    assert same(config, again)
    assert config_to_toml(again) == text


def test_the_comparison_above_sees_what_equality_does_not():
    assert not same(GymConfig(kwargs={"a": 1}), GymConfig(kwargs={"a": True}))
    assert not same((0.0,), (-0.0,))
    assert same(Config(), Config())


def test_every_key_is_written_in_the_order_of_the_schema():
    text = config_to_toml(Config())
    assert text.startswith('world = "fight"\nalgorithm = "ppo"\n\n[run]\nseed = 0\nsteps = 20000000\ndevice = "auto"\n')
    assert '[gym]\nid = "CartPole-v1"\nkwargs = {}\nnumber = 8\n\n[network]\nhidden = [128, 128]\n' in text
    assert text.endswith("silent_after_s = 10.0\nhang_s = 60.0\n")


def test_tables_are_written_by_alphabet_so_that_equal_configs_give_equal_texts():
    one = replace(Config(), reward=RewardConfig(weights={"roll": -0.5, "hit": 1.0}))
    other = replace(Config(), reward=RewardConfig(weights={"hit": 1.0, "roll": -0.5}))
    assert config_to_toml(one) == config_to_toml(other)
    assert "weights = {hit = 1.0, roll = -0.5}\n" in config_to_toml(one)


def test_floats_keep_all_bits():
    config = replace(Config(), fight=FightConfig(randomize=0.1 + 0.2))
    assert "randomize = 0.30000000000000004\n" in config_to_toml(config)
    assert config_from_toml(config_to_toml(config), "text").fight.randomize.hex() == (0.1 + 0.2).hex()


def test_texts_and_keys_are_quoted_where_toml_needs_it():
    assert toml_value('a "b" \\ \n \x7f é') == '"a \\"b\\" \\\\ \\n \\u007f é"'
    assert toml_value({"a b": True, "c-d": (1, 2.5)}) == '{"a b" = true, c-d = [1, 2.5]}'
