"""`souls push` and `souls pull`, against a hub on this machine that speaks the API of the real one."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soulsai.cli import main as cli
from soulsai.errors import ConfigError, RunError, TransportError
from soulsai.evaluation.thoughts import read_fight_file
from soulsai.runs.run import Run
from soulsai.runs.summary import open_run
from soulsai.sharing.agent import pack_agent, read_notes, shared_config
from soulsai.sharing.verify import refuse_changed, verify
from soulsgym.errors import MisuseError

needs_hub = pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None,
    reason="huggingface_hub is not installed; run: pip install 'souls-arena[hub]'",
)


def souls(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """An empty hub, to which huggingface_hub talks in this process."""
    from tests.soulsai.sharing.fake_hub import TOKEN, FakeHub

    fake = FakeHub()
    for name, value in {"HF_ENDPOINT": fake.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    yield fake
    fake.close()


@pytest.fixture(scope="module")
def files(trained):
    """What a push has uploaded: content by place."""
    from tests.soulsai.sharing.fake_hub import TOKEN, FakeHub

    fake = FakeHub()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"HF_ENDPOINT": fake.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}.items():
            patch.setenv(name, value)
        result = souls("push", trained, "alice/tiny", "--fights", 3)
    fake.close()
    assert result.exit_code == 0, result.exception or result.output
    assert len(fake.objects) == 2  # weights and the fight went the way of large files
    return fake.repos["alice/tiny"]


@pytest.fixture
def pushed(hub, files):
    return hub.repos.setdefault("alice/tiny", dict(files))


@needs_hub
def test_there_and_back(hub, pushed):
    names = set(pushed)
    assert {"README.md", "agent.json", "config.toml", "report.html", "recordings/fight.npz"} <= names
    assert not [name for name in names if name.endswith((".py", ".pkl", ".pt"))]
    card = pushed["README.md"].decode()
    assert "souls pull alice/tiny" in card
    assert card.startswith("---\nlibrary_name: soulsai\n")
    result = souls("pull", "alice/tiny")
    assert result.exit_code == 0, result.exception or result.output
    assert "souls verify runs/tiny" in result.output
    got = open_run("tiny")
    assert [verdict.is_exact for verdict in verify(got)] == [True] * 3
    assert read_fight_file(got.recordings / "fight.npz").thoughts is not None
    assert got.report_file.exists()
    assert [name for name in hub.requests if "report.html" in name] == []  # a stranger's page is not fetched
    assert not list(Path("runs").glob(".*"))
    shown = souls("eval", "tiny", "--fights", 2)
    assert shown.exit_code == 0, shown.exception


@needs_hub
def test_a_second_push_leaves_one_policy(hub, pushed, run):
    before = {name for name in pushed if name.startswith("checkpoints/")}
    pushed["checkpoints/000000000001/best.safetensors"] = b"old"
    pushed["notes.txt"] = b"mine"
    assert souls("push", run.folder, "alice/tiny", "--fights", 3).exit_code == 0
    assert {name for name in pushed if name.startswith("checkpoints/")} == before
    assert pushed["notes.txt"] == b"mine"


@needs_hub
def test_what_was_changed_on_the_hub_is_refused_and_nothing_is_left(pushed):
    name = next(name for name in pushed if name.endswith(".safetensors"))
    pushed[name] = pushed[name][:-4] + b"\0\0\0\1"
    result = souls("pull", "alice/tiny")
    assert isinstance(result.exception, RunError)
    assert "was changed since the agent was measured" in str(result.exception)
    assert not list(Path("runs").iterdir())


def change_config(files, key, value):
    """Change a setting of a fight, and the checksum with it."""
    text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", files["config.toml"].decode())
    assert count == 1
    files["config.toml"] = text.encode()
    notes = json.loads(files["agent.json"])
    notes["files"]["config.toml"] = hashlib.sha256(files["config.toml"]).hexdigest()
    files["agent.json"] = json.dumps(notes).encode()


@needs_hub
def test_python_files_are_neither_fetched_nor_run(pushed, tmp_path):
    pushed["data/parts-1/my_parts.py"] = b"raise SystemExit('it ran')"
    assert souls("pull", "alice/tiny").exit_code == 0
    assert not list(Path("runs").rglob("*.py"))
    # One that lies on this machine already is not run, either.
    (tmp_path / "here.py").write_text("raise SystemExit('it ran')")
    change_config(pushed, "parts", f'["{tmp_path}/here.py"]')
    error = souls("pull", "alice/tiny", "--run", "other").exception
    assert isinstance(error, ConfigError)
    assert "no Python file belongs to a shared agent" in str(error)
    assert not Path("other").exists()


@needs_hub
def test_boss_files_outside_of_the_folder_are_refused(pushed, sentinel):
    change_config(pushed, "boss", f'"{sentinel}"')
    assert isinstance(souls("pull", "alice/tiny").exception, ConfigError)
    assert not list(Path("runs").iterdir())


@needs_hub
@pytest.mark.parametrize(
    ("break_it", "sentence"),
    [
        (lambda hub: hub.repos.clear(), "no such repository"),
        (lambda hub: setattr(hub, "fail_with", 500), "answers with an error (500)"),
        (lambda hub: hub.repos["alice/tiny"].pop("agent.json"), "holds no agent"),
        (lambda hub: os.environ.update(HF_ENDPOINT="http://127.0.0.1:9"), "cannot be reached"),
    ],
    ids=["gone", "broken", "other", "unreachable"],
)
def test_a_hub_that_cannot_give_it(hub, monkeypatch, break_it, sentence):
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    hub.repos["alice/tiny"] = {"agent.json": b"{}"}
    break_it(hub)
    error = souls("pull", "alice/tiny").exception
    assert isinstance(error, (RunError, TransportError))
    assert sentence in str(error)
    assert "\n" not in str(error)


@needs_hub
def test_a_token_that_may_not_write(hub, run, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    error = souls("push", run.folder, "alice/tiny", "--fights", 1).exception
    assert isinstance(error, TransportError)
    assert "refuses you" in str(error)


@needs_hub
def test_nobody_is_logged_in(hub, run, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    error = souls("push", run.folder, "alice/tiny").exception  # at once, before a thousand fights
    assert isinstance(error, TransportError)
    assert "not logged in" in str(error)


@needs_hub
def test_a_folder_that_is_there_stays(pushed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    error = souls("pull", "alice/tiny", "--run", "mine").exception
    assert isinstance(error, RunError)
    assert (tmp_path / "mine" / "file").read_text() == "precious"


@needs_hub
def test_a_folder_that_cannot_be_made_is_not_the_fault_of_the_hub(pushed, tmp_path):
    (tmp_path / "file").write_text("")
    error = souls("pull", "alice/tiny", "--run", "file/mine").exception
    assert isinstance(error, RunError)
    assert "cannot be written" in str(error)


@needs_hub
@pytest.mark.parametrize(
    "name",
    ["tiny", "a/b/c", "../x/y", "alice/", "alice/ti ny", "alice/t\u00efny", "alice/a..b", "alice/a--b", "alice/a.git"],
)
def test_names_that_are_none(name, hub):
    assert isinstance(souls("pull", name).exception, MisuseError)
    assert isinstance(souls("push", "zoo:iudex", name, "--fights", 1).exception, MisuseError)
    assert hub.requests == []


def test_without_the_extra_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = souls("push", run.folder, "alice/tiny").exception
    assert "pip install 'souls-arena[hub]'" in str(error)


@pytest.fixture(scope="module")
def packed(trained, tmp_path_factory):
    return pack_agent(Run.open(trained), tmp_path_factory.mktemp("packed") / "agent", fights=4).folder


@pytest.fixture
def agent(packed, tmp_path):
    return Run.open(shutil.copytree(packed, tmp_path / "agent"))


def test_a_claim_that_does_not_hold_is_told_with_exit_code_1(agent):
    file = agent.folder / "agent.json"
    notes = json.loads(file.read_text())
    notes["measured"][0]["wins"] = 4
    file.write_text(json.dumps(notes))
    result = souls("verify", agent.folder)
    assert result.exit_code == 1
    assert "standard: does not hold, claimed 100.0 %, 0 of 4 fights won" in result.output
    assert "hard: holds exactly" in result.output
    told = json.loads(souls("verify", agent.folder, "--json").stdout)
    assert [claim["holds"] for claim in told["claims"]] == [False, True, True]
    assert told["holds"] is False


@pytest.mark.parametrize("pattern", ["config.toml", "checkpoints/*/best.safetensors"])
def test_a_changed_file_is_refused(agent, pattern):
    (file,) = agent.folder.glob(pattern)
    file.write_bytes(file.read_bytes() + b" ")
    error = souls("verify", agent.folder).exception
    assert isinstance(error, RunError)
    assert str(error) == f"{file}: was changed since the agent was measured: pull it again"


def test_a_file_that_was_added_or_is_gone_is_refused(agent):
    (folder,) = agent.checkpoints.iterdir()
    newer = folder.with_name("999999999999")
    newer.mkdir()
    (newer / "best.safetensors").write_bytes(b"")
    with pytest.raises(RunError, match="was not there when the agent was measured"):
        refuse_changed(agent, read_notes(agent))
    (newer / "best.safetensors").unlink()
    (folder / "state.json").unlink()
    with pytest.raises(RunError, match="is missing"):
        refuse_changed(agent, read_notes(agent))


@pytest.mark.parametrize("pattern", ["config.toml", "agent.json", "checkpoints/*/best.safetensors"])
def test_a_file_larger_than_memory_is_refused(agent, pattern):
    (file,) = agent.folder.glob(pattern)
    os.truncate(file, 1 << 40)  # sparse
    error = souls("verify", agent.folder).exception
    assert isinstance(error, RunError)
    assert str(error).startswith(str(file))


def test_more_wins_than_fights_are_refused(agent):
    file = agent.folder / "agent.json"
    notes = json.loads(file.read_text())
    notes["measured"][1]["wins"] = 5
    file.write_text(json.dumps(notes))
    with pytest.raises(RunError, match="5 wins of 4 fights"):
        read_notes(agent)


def test_an_agent_that_is_shared_again_keeps_its_command(agent, tmp_path):
    again = pack_agent(agent, tmp_path / "again", fights=1, only_policy=True)
    assert read_notes(again).command == read_notes(agent).command != "souls"


def test_another_boss_than_the_one_that_was_measured_is_refused(agent):
    file = agent.folder / "agent.json"
    notes = json.loads(file.read_text())
    notes["data"]["hard"] = "0" * 16
    file.write_text(json.dumps(notes))
    with pytest.raises(RunError, match=r"was measured on another iudex \(hard\)"):
        list(verify(agent))


def test_an_own_boss_travels_with_its_agent(make_run, sentinel, tmp_path):
    made = make_run("smoke", f"fight.boss={sentinel}", 'fight.variants=["standard"]', "fight.step_limit=50")
    agent = pack_agent(made, tmp_path / "agent", fights=2)
    text = (agent.folder / "agent.json").read_text() + (agent.folder / "config.toml").read_text()
    assert str(tmp_path) not in text
    assert shared_config(agent).fight.boss == str(agent.data.absolute() / "boss" / "sentinel.toml")
    sentinel.unlink()
    assert all(verdict.is_exact for verdict in verify(agent))
    copy = agent.data / "boss" / "sentinel.toml"
    copy.write_text(copy.read_text().replace("hp = ", "hp = 1", 1))
    with pytest.raises(RunError, match="was changed since"):
        list(verify(agent))


def test_a_run_is_no_shared_agent(run):
    error = souls("verify", run.folder).exception
    assert isinstance(error, RunError)
    assert "is not a shared agent" in str(error)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', '{"format": 1, "boss": 3}', None])
def test_damaged_notes_are_one_sentence(agent, content):
    file = agent.folder / "agent.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"measured": []}) if content is None else content)
    with pytest.raises(RunError, match="is damaged"):
        read_notes(agent)


def test_a_gymnasium_run_is_not_shared(make_run, tmp_path):
    with pytest.raises(MisuseError, match="plays CartPole"):
        pack_agent(make_run("cartpole-ppo"), tmp_path / "agent")


def test_a_shared_agent_is_begun_with(make_run, tmp_path):
    from soulsai.runtime import Fleet

    made = make_run("smoke-q", "fight.step_limit=50", "q.clipped=true")
    agent = pack_agent(made, tmp_path / "agent", fights=1, only_policy=True)
    settings = [
        "network.hidden=[8]",
        "q.clipped=true",
        "run.steps=1",
        "run.final_fights=0",
        f"run.start_from={agent.folder}",
    ]
    Fleet.begin("smoke-q", tmp_path / "next", settings, check=False).train()
    assert Run.open(tmp_path / "next").status().state == "finished"
