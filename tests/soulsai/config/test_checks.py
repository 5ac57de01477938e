"""Settings that do not fit one another."""

import pytest

from soulsai.config import Config, check_config, check_names, config_from_toml, with_settings
from soulsai.config.schema import FightConfig
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
        (
            ["algorithm=q", "q.value_range=[2, 2]"],
            "q.value_range = [2.0, 2.0] must be the lowest return and then a higher one",
        ),
        (["starts.boss_hp_share=[0, 1]"], f"starts.boss_hp_share = [0.0, 1.0] {SHARES}"),
        (["starts.boss_hp_share=[0.5, 0.4]"], f"starts.boss_hp_share = [0.5, 0.4] {SHARES}"),
        (["starts.player_hp_share=[0.5, 1.1]"], f"starts.player_hp_share = [0.5, 1.1] {SHARES}"),
        (["fight.variants=[]"], 'fight.variants is empty; name at least one, such as ["standard"]'),
        (
            ["fight.number=1", 'fight.variants=["standard", "hard"]', "ppo.minibatch=16"],
            "fight.number = 1 is less than the 2 entries of fight.variants; give more fights",
        ),
        (['fight.variants=["hrad"]'], 'fight.variants has the unknown variant "hrad"; did you mean "hard"?'),
        (['fight.variants=["drawn"]'], 'fight.variants has the unknown variant "drawn"; did you mean "drawn:32"?'),
        (
            ["fight.bosses=['iudex', 'vordt']", "fight.number=3", 'fight.variants=["standard", "hard"]'],
            "fight.number = 3 is less than the 2 entries of fight.variants for each boss; give more fights",
        ),
        (["fight.bosses=['iudex', 'iudex']"], 'fight.bosses has "iudex" twice; leave one out'),
        (
            ["fight.bosses=['iudex', '/my/own.toml']"],
            'fight.bosses has the file "/my/own.toml", but several bosses are known by name alone',
        ),
        (
            ["fight.bosses=['iudex', 'vordt']", "fight.engine=game", "fight.number=1", "ppo.minibatch=16"],
            'fight.bosses = ["iudex", "vordt"] but the game plays one fight at a time; use fight.boss',
        ),
        (
            ["fight.bosses=['iudex', 'vordt']", "fight.boss=margit"],
            'fight.boss = "margit" is none of fight.bosses; leave one of the two keys out',
        ),
        (
            ["fight.bosses=['iudex', 'vordt']", "fight.variants=['/my/overlay.toml']"],
            'fight.variants has the file "/my/overlay.toml", which is of one boss; use it with fight.boss alone',
        ),
        (
            ["fight.bosses=['iudex', 'vordt']", "fight.variants=['hrad']"],
            'fight.variants has the unknown variant "hrad" of iudex; did you mean "hard"?',
        ),
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


@pytest.mark.parametrize("entry", ["drawn:0", "drawn:-1", "drawn:x", "drawn:", "drawn:100000"])
def test_numbers_of_drawn_files_that_cannot_be(entry):
    with pytest.raises(ConfigError, match=rf"fight.variants: .*{entry}"):
        with_settings(Config(), [f'fight.variants=["standard", "{entry}"]'])


def test_an_unknown_boss_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"fight.boss: boss 'iudx' is not known, did you mean 'iudex'"):
        with_settings(Config(), ["fight.boss=iudx"])
    with pytest.raises(ConfigError, match=r"fight.bosses: boss 'vrodt' is not known, did you mean 'vordt'"):
        with_settings(Config(), ["fight.bosses=['iudex', 'vrodt']"])


def test_files_are_checked_where_they_are_read():
    with_settings(Config(), ["fight.boss=/nowhere/my.toml", 'fight.variants=["hard", "/nowhere/my.toml", "drawn:3"]'])


@pytest.mark.parametrize(
    ("variants", "main"),
    [(("hard", "drawn:3"), "hard"), (("drawn:3", "hard"), "hard"), (("drawn:3", "drawn:2"), "standard")],
)
def test_agents_are_measured_on_the_first_that_is_one_file(variants, main):
    assert FightConfig(variants=variants).main_variant == main


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
        ["q.value_range=[2, 2]", "q.twin=true", "q.clipped=true"],
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
        config_from_toml('algorithm = "q"\n[q]\nvalue_range = [1, 0]\n', "mine.toml")


def test_a_good_config_is_handed_back():
    config = Config()
    assert check_config(config) is config


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("encoder.name=plyer", 'settings: encoder.name: encoder "plyer" is not known; did you mean "player"?'),
        ("reward.preset=dual", 'settings: reward.preset: reward "dual" is not known; did you mean "duel"?'),
        ("reward.weights.wim=1", 'settings: reward.weights: reward term "wim" is not known; did you mean "win"?'),
        ("actions.preset=x", 'settings: actions.preset: action set "x" is not known; there are all, reduced, no-parry, '
                             "and your own with --parts FILE"),
        ("fight.ending=no_hitt", 'settings: fight.ending: ending "no_hitt" is not known; did you mean "no_hit"?'),
        ("starts.name=standart", 'settings: starts.name: starts "standart" is not known; did you mean "standard"?'),
    ],
)  # fmt: skip
def test_parts_that_nobody_knows_are_refused(setting, sentence):
    config = with_settings(Config(), [setting])
    with pytest.raises(ConfigError) as caught:
        check_names(config)
    assert str(caught.value) == sentence
    assert check_names(with_settings(config, ["world=gym", "ppo.minibatch=64"]))


def test_names_of_a_file_are_known(own_parts):
    config = with_settings(Config(), [f"fight.parts=['{own_parts}']", "encoder.name=shares", "reward.weights.brave=1"])
    assert check_names(config) is config
    with pytest.raises(ConfigError, match='encoder "shares" is not known'):
        check_names(with_settings(config, ["fight.parts=[]"]))


def test_reading_a_config_runs_no_file(tmp_path):
    (tmp_path / "trap.py").write_text("raise SystemExit('it was run')")
    assert config_from_toml(f'[fight]\nparts = ["{tmp_path}/trap.py"]', "x").fight.parts
