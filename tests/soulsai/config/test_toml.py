"""Configs written as TOML come back as they were."""

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct, inspect, structs
from msgspec.structs import replace

from soulsai.config import Config, config_from_toml, config_to_toml, differences, with_settings
from soulsai.config.schema import FightConfig, GymConfig, RewardConfig
from soulsai.config.toml import toml_value
from soulsai.config.values import LARGEST
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


def values(kind):
    """All values of a key, by its type as msgspec describes it."""
    match kind:
        case inspect.Metadata():
            return values(kind.type)
        case inspect.UnionType():
            return st.one_of([values(one) for one in kind.types])
        case inspect.VarTupleType():
            return st.lists(values(kind.item_type), max_size=4).map(tuple)
        case inspect.DictType():
            return st.dictionaries(TEXTS, values(kind.value_type), max_size=4)
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.IntType():
            return st.integers(-LARGEST if kind.ge is None else kind.ge, LARGEST if kind.le is None else kind.le)
        case inspect.FloatType():
            return st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False)
    return {inspect.BoolType: st.booleans(), inspect.StrType: TEXTS}[type(kind)]


def sections(kind):
    """All values of a section, as far as its keys stand alone."""
    by_key = {
        key.name: sections(key.type)
        if isinstance(key.type, type)
        else BY_KEY[key.name]
        if key.name in BY_KEY
        else values(inspect.type_info(key.type))
        for key in structs.fields(kind)
    }
    return st.builds(kind, **by_key)


def fitting(config):
    """The config with names that there are, and the numbers made smaller or larger that must fit one another."""
    variants = tuple(f"x{name}.toml" for name in config.fight.variants)
    fight = replace(config.fight, boss=f"{config.fight.boss}.toml", bosses=(), variants=variants)
    if config.fight.bosses and config.fight.engine == "sim":  # those by name alone, with the variants that all have
        fight = replace(fight, boss="vordt", bosses=("vordt", "margit"), variants=("standard", "hard"))
    number = max(fight.number, len(fight.variants) * len(fight.all_bosses))
    config = replace(config, fight=replace(fight, number=number))
    if config.fight.engine == "game":
        fight = replace(config.fight, number=1, variants=config.fight.variants[:1], randomize=0.0)
        config = replace(config, fight=fight, run=replace(config.run, evaluate_every_steps=0, final_fights=0))
    if config.fight.bosses:  # one of them may be the main one, and none is a file
        config = replace(config, fight=replace(config.fight, bosses=()))
    smallest = min(config.fight.number, config.gym.number)
    largest = max(config.fight.number, config.gym.number) * config.q.n_step
    minibatch = min(config.ppo.minibatch, config.ppo.rollout * smallest)
    capacity = max(config.replay.capacity, config.q.batch, largest)
    ppo, replay = replace(config.ppo, minibatch=minibatch), replace(config.replay, capacity=capacity)
    q = replace(config.q, clipped=config.q.clipped and not config.q.twin)
    return replace(config, ppo=ppo, q=q, replay=replay)


def same(a, b):
    """Equal, and of equal types: to Python, true is 1 and 1.0, and 0.0 is -0.0."""
    if isinstance(a, Struct):
        return all(same(getattr(a, key), getattr(b, key)) for key in a.__struct_fields__)
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
    assert text.startswith(
        'world = "fight"\nalgorithm = "ppo"\n\n[run]\nseed = 0\nsteps = 20000000\nschedule_steps = 0\ndevice = "auto"\n'
    )
    assert (
        '[gym]\nid = "CartPole-v1"\nnumber = 8\n\n[gym.kwargs]\n\n[network]\nhidden = [\n    128,\n    128,\n]\n'
        in text
    )
    assert "silent_after_s = 10.0\nhang_s = 60.0\n\n[ppo]\n" in text


def test_tables_are_written_by_alphabet_so_that_equal_configs_give_equal_texts():
    one = replace(Config(), reward=RewardConfig(weights={"roll": -0.5, "hit": 1.0}))
    other = replace(Config(), reward=RewardConfig(weights={"hit": 1.0, "roll": -0.5}))
    assert config_to_toml(one) == config_to_toml(other)
    assert "[reward.weights]\nhit = 1.0\nroll = -0.5\n" in config_to_toml(one)


def test_configs_of_older_runs_are_read():
    """Tables and lists in one line, and sections in another order."""
    text = (
        "[gym]\nkwargs = {}\n[network]\nhidden = [8, 8]\n[q]\ntau = 1\n[reward]\nweights = {hit = 1.0, roll = -0.5}\n"
    )
    config = config_from_toml(text, "text")
    assert (config.network.hidden, config.q.tau, config.gym.kwargs) == ((8, 8), 1.0, {})
    assert config.reward.weights == {"hit": 1.0, "roll": -0.5}


def test_floats_keep_all_bits():
    config = replace(Config(), fight=FightConfig(randomize=0.1 + 0.2))
    assert "randomize = 0.30000000000000004\n" in config_to_toml(config)
    assert config_from_toml(config_to_toml(config), "text").fight.randomize.hex() == (0.1 + 0.2).hex()


def test_texts_and_keys_are_quoted_where_toml_needs_it():
    assert toml_value('a "b" \\ \n \x7f é') == '"a \\"b\\" \\\\ \\n \\u007f é"'
    assert toml_value({"a b": True, "c-d": (1, 2.5)}) == '{"a b" = true, c-d = [1, 2.5]}'


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
