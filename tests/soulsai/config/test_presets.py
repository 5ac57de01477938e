"""Presets, and files that build on them."""

import subprocess
import sys

import pytest

from soulsai.algorithms.q.config import QConfig
from soulsai.config import (
    Config,
    config_from_toml,
    config_to_toml,
    load_preset,
    preset_description,
    preset_names,
    presets,
)
from soulsai.errors import ConfigError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of presets."""
    monkeypatch.setattr(presets, "FOLDER", tmp_path)
    return tmp_path


def test_all_presets_are_there():
    expected = {"iudex", "smoke", "smoke-q", "dqn", "ddqn", "dddqn", "clipped-dqn", "rainbow", "sac", "impala",
                "recipe-rl-souls", "recipe-soulsai", "all-bosses"}  # fmt: skip
    expected |= {f"{game}-{algorithm}" for game in ("cartpole", "lunarlander") for algorithm in ("ppo", "dqn")}
    assert expected <= set(preset_names())
    assert list(preset_names()) == sorted(preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_comes_back_and_says_what_it_is_for(name):
    config = load_preset(name)
    assert config_from_toml(config_to_toml(config), name) == config
    assert 10 < len(preset_description(name)) < 120
    assert (presets.FOLDER / f"{name}.toml").read_text(encoding="utf-8").startswith("# ")


def test_each_of_the_dqn_family_adds_one_idea():
    names = ("dqn", "ddqn", "dddqn", "clipped-dqn")
    assert [(q.double, q.dueling, q.clipped) for q in (load_preset(name).section(QConfig) for name in names)] == [
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (False, True, True),
    ]
    assert [load_preset(name).replay.prioritized for name in names] == [False, False, False, True]


def test_rainbow_is_what_the_word_means():
    rainbow = load_preset("rainbow")
    q = rainbow.section(QConfig)
    assert (q.double, q.dueling, q.noisy, q.distribution, q.n_step) == (True, True, True, "c51", 3)
    assert rainbow.replay.prioritized
    assert (q.epsilon, q.final_epsilon) == (0.0, 0.0)  # the noise explores


def test_rl_souls_does_thirty_updates_of_two_hundred_every_thousand_steps():
    recipe = load_preset("recipe-rl-souls")
    assert recipe.q.update_every * recipe.q.burst == pytest.approx(1000.0, rel=1e-15)
    assert recipe.q.batch * recipe.q.burst == 6 * 1000
    assert (recipe.q.target_period, recipe.q.burst, recipe.q.tau) == (30, 30, 0.005)
    assert (recipe.network.hidden, recipe.q.double, recipe.q.dueling) == ((256, 256, 256), True, False)
    assert (recipe.replay.alpha, recipe.replay.beta, recipe.replay.final_beta) == (0.8, 1.1, 1.1)
    assert (recipe.fight.full, recipe.actions.masks, recipe.starts.random_pose) == (False, False, True)


def test_soulsai_does_one_update_of_sixty_four_for_every_sample():
    recipe = load_preset("recipe-soulsai")
    assert (recipe.q.update_every, recipe.q.burst, recipe.q.batch, recipe.q.n_step) == (1.0, 25, 64, 4)
    assert (recipe.q.twin, recipe.q.value_clip, recipe.q.gradient_norm) == (True, 2.0, 1.0)
    assert recipe.q.epsilon == recipe.q.final_epsilon == 0.1
    assert (recipe.fight.full, recipe.actions.masks, recipe.network.normalize) == (True, True, True)
    assert (recipe.network.hidden, recipe.replay.capacity) == ((128, 128, 128), 100_000)


def test_the_recipes_have_the_encoding_they_were_published_with():
    for name in ("recipe-rl-souls", "recipe-soulsai"):
        recipe = load_preset(name)
        assert (recipe.encoder.name, recipe.encoder.history) == ("soulsai74", 1)
        assert (recipe.fight.decisions, recipe.fight.randomize, recipe.starts.mid_fight) == (False, 0.0, 0.0)


def test_a_preset_builds_on_another(folder):
    (folder / "a.toml").write_text("# A\n[run]\nseed = 1\nsteps = 10\n[reward.weights]\nroll = 1.0\n")
    (folder / "b.toml").write_text('# B\nextends = "a"\n[run]\nsteps = 20\n[reward.weights]\nhit = 2.0\n')
    config = load_preset("b")
    assert (config.run.seed, config.run.steps) == (1, 20)
    assert config.reward.weights == {"roll": 1.0, "hit": 2.0}


def test_so_may_a_file_of_the_user(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "smoke"\n[run]\nseed = 7\n')
    config = load_preset(str(tmp_path / "mine.toml"))
    assert (config.run.seed, config.fight.number) == (7, load_preset("smoke").fight.number)


def test_a_file_may_build_on_another_file_beside_it(tmp_path, monkeypatch):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "slow.toml").write_text('extends = "smoke"\n[run]\nsteps = 30\nseed = 1\n')
    (tmp_path / "mine.toml").write_text('extends = "base/slow.toml"\n[run]\nseed = 2\n')
    monkeypatch.chdir("/")
    config = load_preset(str(tmp_path / "mine.toml"))
    assert (config.run.steps, config.run.seed) == (30, 2)
    assert config.fight.number == load_preset("smoke").fight.number


def test_a_file_that_extends_itself_or_a_missing_one_is_refused(tmp_path):
    (tmp_path / "me.toml").write_text('extends = "../' + tmp_path.name + '/me.toml"\n')
    with pytest.raises(ConfigError, match=r"me\.toml: files extend one another in a circle: me\.toml -> me\.toml$"):
        load_preset(str(tmp_path / "me.toml"))
    (tmp_path / "lost.toml").write_text('extends = "none.toml"\n')
    with pytest.raises(ConfigError, match=r"none\.toml: this config cannot be read: No such file"):
        load_preset(str(tmp_path / "lost.toml"))


def test_a_text_without_a_file_names_no_file():
    with pytest.raises(ConfigError, match=r'^sent: extends = "x\.toml" names a file, which only a file can; name a'):
        config_from_toml('extends = "x.toml"', "sent")


def test_presets_that_extend_one_another_in_a_circle_are_refused(folder):
    for name, other in ("ab", "bc", "ca"):
        (folder / f"{name}.toml").write_text(f'# X\nextends = "{other}"\n')
    with pytest.raises(
        ConfigError, match=r"^c\.toml: files extend one another in a circle: a\S+ -> b\S+ -> c\S+ -> a\.toml$"
    ):
        load_preset("a")


def test_errors_name_the_preset_that_holds_the_mistake(folder):
    (folder / "a.toml").write_text("# A\n[run]\nsteps = 0\n")
    (folder / "b.toml").write_text('# B\nextends = "a"\n')
    with pytest.raises(ConfigError, match=r"^a\.toml: run\.steps must be"):
        load_preset("b")


@pytest.mark.parametrize(
    ("name", "way_out"),
    [("iudx", "did you mean iudex?"), ("../config/x", "there are all-bosses")],
)
def test_an_unknown_preset_is_refused_with_the_nearest(name, way_out):
    for look_up in (load_preset, preset_description):
        with pytest.raises(ConfigError) as caught:
            look_up(name)
        assert str(caught.value).startswith(f'presets: there is no preset "{name}"; {way_out}')


def test_what_a_file_extends_must_be_the_name_of_a_preset():
    with pytest.raises(ConfigError, match=r'^mine: there is no preset "iudx"; did you mean iudex\?$'):
        config_from_toml('extends = "iudx"', "mine")
    with pytest.raises(ConfigError, match=r"^mine: extends must be the name of a preset or the path of a \.toml"):
        config_from_toml("extends = 3", "mine")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    for file in (tmp_path / "none.toml", tmp_path / "folder.toml"):
        with pytest.raises(ConfigError, match="this config cannot be read") as caught:
            load_preset(str(file))
        assert str(caught.value).startswith(f"{file}: ")


@pytest.mark.parametrize("text", ["a = ", "[run]\n[run]\n", f"a = {'9' * 5000}", f"a = {'[' * 100_000}"])
def test_what_is_not_toml_is_refused(text):
    with pytest.raises(ConfigError, match=r"^mine\.toml: this is not TOML: "):
        config_from_toml(text, "mine.toml")


def test_what_is_not_utf_8_is_refused(tmp_path):
    (tmp_path / "mine.toml").write_bytes(b'# \xe9\nworld = "fight"\n')
    with pytest.raises(ConfigError, match=r"mine\.toml: byte 2 is not UTF-8; save the file as UTF-8$"):
        load_preset(str(tmp_path / "mine.toml"))


def test_files_of_windows_are_read(tmp_path):
    (tmp_path / "mine.toml").write_bytes(b"\xef\xbb\xbf[run]\r\nseed = 4\r\n")
    assert load_preset(str(tmp_path / "mine.toml")).run.seed == 4


def test_an_empty_file_is_all_defaults():
    assert config_from_toml("", "mine.toml") == Config()


def test_nothing_heavy_is_loaded():
    code = (
        "import sys; from soulsai import config\n"
        "config.with_settings(config.load_preset('rainbow'), ['run.seed=1']); config.reference()\n"
        "loaded = {'gymnasium', 'numba', 'soulsgym.sim', 'torch'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
