"""`souls config` and `souls presets`."""

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.config import config_from_toml, load_preset, preset_description, preset_names, reference, with_settings
from soulsai.errors import ConfigError


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_presets():
    lines = souls("presets").stdout.splitlines()
    assert [tuple(line.split(maxsplit=1)) for line in lines] == [(n, preset_description(n)) for n in preset_names()]


def test_reference():
    assert souls("config", "reference").stdout == reference() + "\n"


def test_shown_config_can_be_read_back():
    text = souls("config", "show", "dddqn", "--set", "q.gamma=0.5", "--set", "run.seed=4").stdout
    assert config_from_toml(text, "") == with_settings(load_preset("dddqn"), ["q.gamma=0.5", "run.seed=4"])


def test_shown_config_of_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "smoke"\n[ppo]\ngamma = 0.9\n')
    text = souls("config", "show", file).stdout
    assert config_from_toml(text, "") == with_settings(load_preset("smoke"), ["ppo.gamma=0.9"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["iudx"], "did you mean iudex"),
        (["iudex", "--set", "ppo.gama=1"], "gama"),
        (["iudex", "--set", "ppo.gamma=2"], "from 0 to 1, not 2"),
        (["none.toml"], "cannot be read"),
    ],
)
def test_wrong_names_and_values(arguments, sentence):
    result = souls("config", "show", *arguments)
    assert isinstance(result.exception, ConfigError)
    assert sentence in str(result.exception)
    assert result.stdout == ""
