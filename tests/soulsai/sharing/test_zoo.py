"""The agents that come with the package: what is told of them is true, and they play wherever a run does."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.cli import main as cli
from soulsai.config import load_preset, with_settings
from soulsai.errors import RunError
from soulsai.experience import Sizes
from soulsai.learning.loading import load_networks, sizes_of, start_from
from soulsai.runs.fight_files import with_absolute_paths
from soulsai.runs.run import Run
from soulsai.runs.summary import ZOO_FOLDER, open_trained, zoo_names
from soulsai.sharing.agent import fight_digest, read_notes, shared_config
from soulsai.sharing.verify import verify
from soulsgym.recordings.recording import read_recording
from soulsgym.spec.fight import known_bosses

SIMULATED = [boss for boss in known_bosses() if boss in ("iudex", "vordt", "margit")]
NAMES = zoo_names()
SMALL = 1_000_000


def souls(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def shown(*arguments):
    result = souls(*arguments)
    assert result.exit_code == 0, result.exception or result.output
    return result.stdout


@pytest.fixture
def untouched(tmp_path, monkeypatch):
    """Nothing is written into the package."""
    monkeypatch.chdir(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in ZOO_FOLDER.rglob("*")}
    yield
    assert {file: file.stat().st_mtime_ns for file in ZOO_FOLDER.rglob("*")} == before


def test_there_is_one_for_each_boss():
    assert set(NAMES) >= set(SIMULATED)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_holds_nothing_that_runs(name):
    files = [file for file in (ZOO_FOLDER / name).rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < SMALL
    assert {file.suffix for file in files} == {".json", ".toml", ".safetensors"}


@pytest.mark.parametrize("name", NAMES)
def test_its_numbers_are_of_the_boss_as_he_is(name):
    run = open_trained(f"zoo:{name}")
    config, notes = shared_config(run), read_notes(run)
    stale = [variant for variant, digest in notes.data.items() if fight_digest(config, variant) != digest]
    assert not stale, f"the file of {name} has changed ({', '.join(stale)}): run python tools/renew_zoo.py {name}"


@pytest.mark.parametrize("name", NAMES)
def test_it_wins_as_it_says(name):
    verdicts = list(verify(open_trained(f"zoo:{name}"), fights=32))
    assert [verdict.claim.name for verdict in verdicts] == ["standard", "hard", "standard, randomize 1"]
    for verdict in verdicts:
        assert verdict.holds, f"{verdict}: run python tools/renew_zoo.py {name}"
        assert verdict.claim.fights == 1000
    assert verdicts[0].claim.rate > 0.9


def test_the_list():
    text = shown("zoo")
    for name in NAMES:
        notes = read_notes(open_trained(f"zoo:{name}"))
        assert f"zoo:{name}: {notes.command}" in text
        assert notes.data["standard"] in text
        assert f"{100 * notes.measured[0].rate:.1f} %" in text
    assert max(len(line) for line in text.splitlines() if line.startswith(" zoo:")) <= 80
    told = json.loads(shown("zoo", "--json"))["agents"]
    assert [each["name"] for each in told] == [f"zoo:{name}" for name in NAMES]
    assert all(each["boss_is_same"] for each in told)


def test_a_stale_one_is_told_in_the_list(tmp_path, monkeypatch):
    shutil.copytree(ZOO_FOLDER / "iudex", tmp_path / "iudex")
    file = tmp_path / "iudex" / "agent.json"
    file.write_text(file.read_text().replace(read_notes(Run(tmp_path / "iudex")).data["hard"], "0" * 16))
    monkeypatch.setattr("soulsai.runs.summary.ZOO_FOLDER", tmp_path)
    assert "update the agent with tools/renew_zoo.py iudex" in shown("zoo")


@pytest.mark.usefixtures("untouched")
def test_it_plays_wherever_a_run_does():
    assert "zoo:iudex wins" in shown("eval", "zoo:iudex", "--fights", 2)
    assert not Path("runs").exists()
    assert "zoo:iudex" in shown("compare", "zoo:iudex", "player:idle", "--fights", 2)
    shown("record", "zoo:iudex", "--out", "fight.npz")
    assert len(read_recording("fight.npz").bounds()) == 1
    assert "won" in shown("watch", "zoo:iudex", "--html", "fight.html")
    shown("export", "zoo:iudex", "policy.pt")
    assert "policy.pt wins" in shown("eval", "policy.pt", "--fights", 2)


def test_training_begins_with_it():
    config = with_absolute_paths(with_settings(load_preset("iudex"), ["run.start_from=zoo:iudex"]))
    assert config.run.start_from == "zoo:iudex"
    learner = algorithm_of(config).learner(config, Sizes(*sizes_of(config), 1, 1), torch.device("cpu"))
    start_from(learner, config, config.run.start_from)
    kept = load_networks(open_trained("zoo:iudex"))[1]["network"].state_dict()
    assert all((learner.networks["network"].state_dict()[key] == value).all() for key, value in kept.items())


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "command",
    [
        ("runs", "rm", "zoo:iudex", "--yes"),
        ("train", "--resume", "zoo:iudex"),
        ("save", "zoo:iudex"),
        ("stop", "zoo:iudex"),
    ],
    ids=" ".join,
)
def test_it_cannot_be_changed(command):
    error = souls(*command).exception
    assert isinstance(error, RunError)
    assert "zoo:iudex comes with the package" in str(error)


def test_a_name_that_is_none():
    with pytest.raises(RunError, match="there is no agent zoo:gundir"):
        open_trained("zoo:gundir")
    with pytest.raises(RunError, match="did you mean 'iudex'"):
        open_trained("zoo:iudx")
