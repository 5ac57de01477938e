"""Parts of the user's own Python file, from the first command to the report."""

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.config import config_from_toml
from soulsai.errors import ConfigError, RunError
from soulsai.evaluation import Evaluation
from soulsai.learning.loading import load_trained, sizes_of
from soulsai.runs.fight_files import config_of
from soulsai.runs.run import Run
from soulsgym.errors import MisuseError, SoulsError

SMALL = ["run.steps=400", "run.threads=1", "run.evaluate_every_steps=0", "run.final_fights=2", "fight.number=4",
         "fight.step_limit=60", "ppo.minibatch=16", "ppo.rollout=16", "network.hidden=[8]"]  # fmt: skip
OWN = ["encoder.name=shares", "encoder.history=2", "reward.preset=bold", "reward.weights.brave=0.25"]
ALL = [*OWN, "actions.preset=two", "fight.ending=early", "starts.name=anywhere"]

CALM = """
from soulsgym.parts.rewards import term


@term("calm")
def calm(fights):
    return -1.0 * fights["step"]
"""


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def trained(*arguments, settings=OWN):
    result = souls("train", "smoke", "--accept-all", "--plain", *arguments, *sets(*SMALL, *settings))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_from_training_to_the_report(own_parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    trained("--parts", "my_parts.py", "--run", folder, settings=ALL)
    run = Run.open(folder)
    assert config_from_toml(run.config_toml, "").fight.parts == (str(own_parts),)
    assert (folder / "data" / "parts-1" / "my_parts.py").read_text() == own_parts.read_text()
    assert {"reward/dealt", "reward/brave"} <= set(run.metrics()[-1])
    own_parts.unlink()
    result = souls("train", "--resume", "--run", folder, "--set", "run.steps=800", "--plain")
    assert result.exit_code == 0, (result.output, result.exception)
    assert f"{own_parts} is gone or has changed since the run began; the run keeps to its copy in" in result.output
    assert Run.open(folder).metrics()[-1]["step"] >= 800
    result = souls("eval", folder, "--fights", 3, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    assert len(Evaluation.from_json(result.output).won) == 3
    for words in (
        ["watch", folder, "--html", tmp_path / "fight.html"],
        ["record", folder, "--out", tmp_path / "a.npz"],
    ):
        result = souls(*words)
        assert result.exit_code == 0, (result.output, result.exception)
    assert "brave" in (folder / "report.html").read_text()


def test_a_changed_file_does_not_change_a_run(own_parts, tmp_path):
    """Two runs with two versions of one file are compared by one process."""
    old, new = tmp_path / "old", tmp_path / "new"
    trained("--parts", own_parts, "--run", old)
    own_parts.write_text(own_parts.read_text().replace("axis=1)", "axis=1)[:, :1]"))
    trained("--parts", own_parts, "--run", new)
    sizes = [sizes_of(load_trained(str(folder)).config)[0] for folder in (old, new, old)]
    assert sizes == [4, 2, 4]
    result = souls("compare", old, new, "--fights", 4)
    assert result.exit_code == 0, (result.output, result.exception)
    result = souls("train", "--resume", "--run", old, "--set", "run.steps=2000", "--plain")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "is gone or has changed" in result.output
    result = souls("train", "--resume", "--run", new, "--set", "run.steps=2000", "--plain")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "is gone or has changed" not in result.output


def test_two_files_of_the_same_name(own_parts, tmp_path):
    other = tmp_path / "more" / "my_parts.py"
    other.parent.mkdir()
    other.write_text(CALM)
    folder = tmp_path / "run"
    trained("--parts", own_parts, "--parts", other, "--run", folder, settings=[*OWN, "reward.weights.calm=0.1"])
    assert [(folder / f"data/parts-{i}/my_parts.py").read_text() for i in (1, 2)] == [
        own_parts.read_text(), other.read_text()
    ]  # fmt: skip
    assert "reward/calm" in Run.open(folder).metrics()[-1]


def test_a_config_file_and_the_flag_name_the_same_thing(own_parts, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "smoke"\n[encoder]\nname = "shares"\n')
    trained_by_flag = souls("train", file, "--accept-all", "--parts", own_parts, "--run", tmp_path / "a", *sets(*SMALL))
    assert trained_by_flag.exit_code == 0, trained_by_flag.exception
    file.write_text(f'extends = "smoke"\n[encoder]\nname = "shares"\n[fight]\nparts = ["{own_parts}"]\n')
    by_file = souls("train", file, "--accept-all", "--run", tmp_path / "b", *sets(*SMALL))
    assert by_file.exit_code == 0, by_file.exception
    assert Run.open(tmp_path / "a").config_toml == Run.open(tmp_path / "b").config_toml
    shown = souls("config", "show", file)
    assert shown.exit_code == 0
    assert 'name = "shares"' in shown.output


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["encoder.name=shars"], 'encoder.name: encoder "shars" is not known; did you mean "shares"?'),
        (["reward.preset=bald"], 'reward.preset: reward "bald" is not known; did you mean "bold"?'),
        (["reward.weights.brav=1"], 'reward.weights: reward term "brav" is not known; did you mean "brave"?'),
        (["actions.preset=tow"], 'actions.preset: action set "tow" is not known; did you mean "two"?'),
        (["fight.ending=erly"], 'fight.ending: ending "erly" is not known; did you mean "early"?'),
        (["starts.name=x"], 'starts.name: starts "x" is not known; there are standard, anywhere, and your own'),
        (["encoder.name="], "give it as section.key=value"),
        (['encoder.name=""'], 'encoder.name: encoder "" is not known; there are player, soulsai74, shares, and'),
    ],
)  # fmt: skip
def test_unknown_names_are_refused_before_a_folder_is_made(own_parts, tmp_path, settings, message):
    result = souls("train", "smoke", "--parts", own_parts, "--run", tmp_path / "run", *sets(*settings))
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_without_the_file_its_names_are_not_known(tmp_path):
    result = souls("train", "smoke", "--run", tmp_path / "run", *sets("encoder.name=shares"))
    assert 'encoder "shares" is not known; there are player, soulsai74, and your own with --parts FILE' in (
        str(result.exception)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("def f(:\n", "line 1: SyntaxError: "),
        ("\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("from . import x\n", "a file of parts stands alone"),
        ("x = 1\n", "registers no part"),
    ],
)
def test_a_bad_file_leaves_no_folder(tmp_path, text, message):
    file = tmp_path / "bad.py"
    if text is not None:
        file.write_text(text)
    result = souls("train", "smoke", "--parts", file, "--run", tmp_path / "run")
    assert isinstance(result.exception, MisuseError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_takes_no_other_file(own_parts, tmp_path):
    result = souls("train", "--resume", "--run", tmp_path, "--parts", own_parts)
    assert result.exit_code == 2
    assert "own copy of its parts" in result.output


def test_a_run_whose_copy_is_lost_is_a_sentence(own_parts, tmp_path):
    trained("--parts", own_parts, "--run", tmp_path / "run")
    (tmp_path / "run" / "data" / "parts-1" / "my_parts.py").unlink()
    for words in (["train", "--set", "run.steps=2000", "--resume", "--run"], ["eval"]):
        error = souls(*words, tmp_path / "run").exception
        assert isinstance(error, SoulsError)
        assert "parts-1/my_parts.py: there is no such file" in str(error)


def test_a_folder_that_cannot_be_written(own_parts, tmp_path):
    """A file where the folder of the copies is to be made: not even root can write there."""
    (tmp_path / "runs").write_text("")
    error = souls("train", "smoke", "--parts", own_parts, "--run", tmp_path / "runs" / "mine").exception
    assert isinstance(error, RunError)
    assert "cannot be written" in str(error)


def test_an_exported_policy_does_not_hold_code(own_parts, tmp_path):
    trained("--parts", own_parts, "--run", tmp_path / "run")
    file = tmp_path / "policy.pt"
    assert souls("export", tmp_path / "run", file).exit_code == 0
    assert b"def shares" not in file.read_bytes()
    error = souls("eval", file, "--fights", 2).exception
    assert isinstance(error, ConfigError)
    assert "encoder.name = 'shares' is a part of my_parts.py, which an exported policy does not hold; play the run" in (
        str(error)
    )


def test_an_exported_policy_needs_no_reward(own_parts, tmp_path):
    trained("--parts", own_parts, "--run", tmp_path / "run", settings=["reward.weights.brave=1"])
    own_parts.unlink()
    file = tmp_path / "policy.pt"
    assert souls("export", tmp_path / "run", file).exit_code == 0
    result = souls("eval", file, "--fights", 2)
    assert result.exit_code == 0, (result.output, result.exception)


def test_workers_of_this_machine_read_the_copy(own_parts, tmp_path):
    folder = tmp_path / "run"
    text = trained("--parts", own_parts, "--run", folder, "--workers", 2)
    assert "a new one starts" not in text
    run = Run.open(folder)
    assert run.metrics()[-1]["step"] >= 400
    assert config_of(run).fight.parts == (str(folder / "data" / "parts-1" / "my_parts.py"),)
