"""Settings that do not fit one another."""

import pytest

from soulsai.config import Config, checked, config_from_toml, with_settings
from soulsai.errors import ConfigError

MINIBATCH = (
    "ppo.minibatch = 65 is more than the 64 decisions between updates (ppo.rollout 32 times fight.number 2); "
    "make it smaller"
)
CAPACITY = (
    "replay.capacity = 255 is too small: it must hold q.batch (256) and fight.number times q.n_step (512) transitions"
)
SHARES = "must be the lowest and then the highest share, both above 0 and at most 1"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["q.value_range=[2, 2]"], "q.value_range = [2.0, 2.0] must be the lowest return and then a higher one"),
        (["starts.boss_hp_share=[0, 1]"], f"starts.boss_hp_share = [0.0, 1.0] {SHARES}"),
        (["starts.boss_hp_share=[0.5, 0.4]"], f"starts.boss_hp_share = [0.5, 0.4] {SHARES}"),
        (["starts.player_hp_share=[0.5, 1.1]"], f"starts.player_hp_share = [0.5, 1.1] {SHARES}"),
        (["fight.variants=[]"], 'fight.variants is empty; name at least one, such as ["standard"]'),
        (['actions.names=["rol F"]'], 'actions.names has the unknown action "rol F"; did you mean "roll F"?'),
        (['actions.names=["parry", "parry"]'], 'actions.names has "parry" twice; leave one out'),
        (["fight.number=2", "ppo.minibatch=65"], MINIBATCH),
        (["algorithm=q", "replay.capacity=255"], CAPACITY),
    ],
)
def test_what_cannot_work_is_refused(settings, sentence):
    with pytest.raises(ConfigError) as caught:
        with_settings(Config(), settings)
    assert str(caught.value).endswith(f": {sentence}")


def test_an_action_like_no_other_is_refused_with_all_there_are():
    with pytest.raises(ConfigError, match=r'unknown action ""; there are walk F, .*, nothing$'):
        with_settings(Config(), ['actions.names=[""]'])


@pytest.mark.parametrize(
    "settings",
    [
        ["starts.boss_hp_share=[1, 1]"],
        ["fight.number=2", "ppo.minibatch=64"],
        ["algorithm=q", "fight.number=2", "ppo.minibatch=65"],
        ["world=gym", "gym.number=64", "fight.number=2", "ppo.minibatch=2048"],
        ["algorithm=q", "replay.capacity=512"],
        ["algorithm=ppo", "replay.capacity=1"],
        ['actions.names=["nothing", "roll B"]'],
        ["network.hidden=[]"],
        ["replay.beta=2", "replay.final_beta=0"],
    ],
)
def test_what_works_is_let_through_however_unwise(settings):
    with_settings(Config(), settings)


def test_the_environments_of_gymnasium_have_their_own_number():
    with pytest.raises(ConfigError, match=r"ppo\.rollout 32 times gym\.number 8\)"):
        with_settings(Config(), ["world=gym"])


def test_files_are_checked_too():
    with pytest.raises(ConfigError, match=r"^mine\.toml: q\.value_range"):
        config_from_toml("[q]\nvalue_range = [1, 0]\n", "mine.toml")


def test_a_good_config_is_handed_back():
    config = Config()
    assert checked(config) is config
