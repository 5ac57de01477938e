"""A new folder is a new algorithm: nothing else has to know of it."""

import subprocess
import sys
import textwrap

import pytest

TOY = '''
"""The settings of a toy."""

from typing import Annotated

from msgspec import Meta, Struct

USES = ("replay",)


class ToyConfig(Struct, frozen=True):
    """Learns nothing."""

    speed: Annotated[float, Meta(ge=0.0, le=1.0, description="how fast it learns nothing")] = 0.5
    gamma: float = 0.9


def problems(config):
    if config.section(ToyConfig).speed == 0.0:
        yield "toy.speed = 0.0 stands still; make it larger"
'''

START = """
import sys
import soulsai.algorithms
soulsai.algorithms.__path__.append(sys.argv[1])
from soulsai.config import *
from soulsai.errors import ConfigError

def refused(*settings):
    try:
        with_settings(load_preset("smoke"), settings)
    except ConfigError as error:
        return str(error).partition(": ")[2]

"""


def run(folder, code, config=TOY):
    """Run code in a Python that finds one more algorithm."""
    (folder / "toy").mkdir()
    (folder / "toy" / "__init__.py").touch()
    (folder / "toy" / "config.py").write_text(config)
    script = START + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, timeout=180)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            """
            from soulsai.algorithms.toy.config import ToyConfig
            config = with_settings(load_preset("smoke"), ["algorithm=toy", "toy.speed=0.25"])
            assert config.section(ToyConfig) == ToyConfig(speed=0.25)
            text = config_to_toml(config)
            assert "[toy]\\nspeed = 0.25\\ngamma = 0.9\\n" in text
            assert config_from_toml(text, "x") == config
            assert "toy.speed: 0.5 -> 0.25" in differences(load_preset("smoke"), config)
            assert not {"torch", "numba", "gymnasium"} & set(sys.modules)
            """,
            id="read and written",
        ),
        pytest.param(
            """
            assert refused("toy.sped=1") == "there is no key toy.sped; did you mean toy.speed?", refused("toy.sped=1")
            assert refused("toi.speed=1") == "there is no section [toi]; did you mean [toy]?"
            assert refused("toy.speed=2") == "toy.speed must be a number from 0 to 1, not 2"
            assert refused("gamma=1").endswith(" or toy.gamma?")
            assert refused("algorithm=x").endswith(', toy, not "x"')
            assert refused("algorithm=toy", "toy.speed=0").endswith("toy.speed = 0.0 stands still; make it larger")
            assert refused("toy.speed=0") is None  # not the algorithm of this run
            """,
            id="checked",
        ),
        pytest.param(
            """
            rows = reference().partition("## [toy]")[2]
            assert "\\n\\nLearns nothing.\\n\\n" in rows
            assert "| `speed` | `0.5` | a number from 0 to 1 | how fast it learns nothing |" in rows
            """,
            id="documented",
        ),
        pytest.param(
            """
            from soulsai.sweeps.space import check_fit, space_of
            def fit(key, algorithm):
                space = space_of(f"{key} = {{low = 0.1, high = 0.9}}", "x")
                config = with_settings(load_preset("iudex"), [f"algorithm={algorithm}"])
                try:
                    check_fit(space, config, [], "x")
                except ConfigError as error:
                    return str(error)
            assert fit("toy.speed", "toy") is None
            assert fit("replay.alpha", "toy") is None
            assert "toy.speed changes nothing with algorithm" in fit("toy.speed", "ppo")
            assert "q.gamma changes nothing with algorithm" in fit("q.gamma", "toy")
            """,
            id="swept",
        ),
    ],
)
def test_a_folder_is_an_algorithm(tmp_path, code):
    result = run(tmp_path, code)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("config", ["", TOY + "\n\nclass Other(Struct): ..."])
def test_a_folder_has_one_section(tmp_path, config):
    result = run(tmp_path, "", config)
    assert "config.py must have one msgspec.Struct, the section of its algorithm" in result.stderr


def test_a_folder_named_like_a_common_section_is_refused(tmp_path):
    (tmp_path / "replay").mkdir()
    (tmp_path / "replay" / "__init__.py").touch()
    (tmp_path / "replay" / "config.py").write_text(TOY)
    result = run(tmp_path, "")
    assert "the algorithm replay has the name of a common section; rename its folder" in result.stderr
