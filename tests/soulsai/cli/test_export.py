"""`souls export`: a new file, and nothing overwritten."""

import pytest
from typer.testing import CliRunner

from soulsai.acting.exported import load_exported
from soulsai.cli.main import app
from soulsai.config import config_from_toml
from soulsai.errors import RunError
from soulsgym.errors import MisuseError


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
def test_file_loads_again(run, tmp_path, suffix):
    file = tmp_path / f"policy{suffix}"
    result = souls("export", run.folder, file)
    assert result.exit_code == 0, result.exception
    assert result.stdout == f"{file}: 147 numbers in, 20 actions out; try `souls eval {file}`\n"
    config, policy = load_exported(file)
    assert config == config_from_toml(run.config_toml, "")
    assert (len(policy.notes.observation_names), len(policy.notes.action_names)) == (147, 20)
    assert (policy.notes.boss, policy.notes.encoder) == ("iudex", {"name": "player", "history": 1})


def test_existing_file(run, tmp_path):
    file = tmp_path / "policy.pt"
    file.write_text("precious")
    with pytest.raises(RunError, match="exists; give another name"):
        raise souls("export", run.folder, file).exception
    assert file.read_text() == "precious"


def test_wrong_suffix_and_wrong_run(run, tmp_path):
    with pytest.raises(MisuseError, match=r"ends in '\.zip'"):
        raise souls("export", run.folder, tmp_path / "policy.zip").exception
    with pytest.raises(RunError, match="there is no such run"):
        raise souls("export", tmp_path / "none", tmp_path / "policy.pt").exception
    assert not (tmp_path / "policy.pt").exists()


def test_the_newest_run_is_exported(run, monkeypatch):
    monkeypatch.chdir(run.folder.parent)
    run.folder.parent.joinpath("runs").mkdir()
    run.folder.rename("runs/mine")
    result = souls("export", "policy.pt")
    assert (result.exit_code, result.stderr) == (0, "the newest run: runs/mine\n"), result.exception
    assert result.stdout.startswith("policy.pt: 147 numbers in")
    assert souls("export", "a", "b", "c.pt").exit_code == 2


def test_help_warns_of_code_in_torchscript():
    assert "runs the code inside" in " ".join(souls("export", "--help").stdout.split())
