"""`souls join`: what it refuses and in which words, and how it counts."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from soulsai.cli import train as verb
from soulsai.cli.main import app
from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.errors import ConfigError, OtherVersion, TransportError, WorkerError
from soulsai.learning.loading import sizes_of
from soulsai.learning.wiring import environment_version
from soulsai.processes.supervisor import Supervisor
from soulsai.runs.fight_files import files_of, needed_parts, with_short_names
from soulsai.runtime import remote
from soulsai.runtime.remote import JoinProgress
from soulsai.transport.redis.connection import Refused
from soulsai.transport.welcome import Welcome, pack_welcome
from soulsgym.errors import GameNotFound, MisuseError, SoulsError
from soulsgym.packages import VERSION
from soulsgym.spec import load_fight

PACKAGE = VERSION
CONFIG = load_preset("cartpole-dqn")


def join(*arguments, **environment):
    return CliRunner().invoke(app, ["join", *map(str, arguments)], env=environment)


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def welcome(monkeypatch):
    """A function that says what the learner says; nobody is asked."""

    def say(**changes):
        values = {"run": "mine", "config_toml": config_to_toml(CONFIG), "package": PACKAGE}
        values["environment"] = environment_version(CONFIG)
        frame = pack_welcome(Welcome(**values | changes))
        monkeypatch.setattr("soulsai.runtime.remote.fetch_welcome", lambda *_, **__: (frame, 0.0))

    monkeypatch.setattr(remote, "_play", lambda *_: (JoinProgress(), [], []))
    return say


URL = "redis://alice:hush@127.0.0.1:1/mine"


def test_without_an_address():
    result = join(SOULS_URL="")
    assert result.exit_code == 2
    assert "SOULS_URL" in result.output


def test_a_game_must_be_running(monkeypatch):
    monkeypatch.setattr("soulsgym.game.attach.find_processes", lambda executable: [])
    error = join(URL, "--env-backend", "game").exception
    assert isinstance(error, GameNotFound)
    assert "DarkSoulsIII.exe is not running" in str(error)


def test_one_worker_plays_one_game():
    error = join(URL, "--env-backend", "game", "--workers", "2").exception
    assert isinstance(error, ConfigError)
    assert "run souls join once for every game" in str(error)


def test_options_of_the_game_need_the_game():
    error = join(URL, "--game-speed", "2").exception
    assert isinstance(error, MisuseError)
    assert str(error) == "--game-speed needs the running game; add --env-backend game, or leave it out"


@pytest.mark.parametrize("arguments", [["--workers", "0"], ["--workers", "x"], ["--pace", "-1"], ["--patience", "-1"],
                                       ["--env-backend", "wii"]])  # fmt: skip
def test_options_that_cannot_be(arguments):
    assert join(URL, *arguments).exit_code == 2


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("alice:hush@127.0.0.1/mine", "this is not the address of a Redis"),
        ("redis://127.0.0.1:1/mine", "names no user and password"),
        ("redis://alice:hush@127.0.0.1:1", "names no run"),
        ("redis://alice:hush@127.0.0.1:1/a b", "cannot be the id of a run"),
    ],
)
def test_addresses_that_cannot_be(url, message):
    error = join(url).exception
    assert isinstance(error, TransportError)
    assert message in str(error)
    assert "hush" not in str(error)
    assert "\n" not in str(error)


def test_a_certificate_that_is_not_there(tmp_path):
    error = join("rediss://alice:hush@127.0.0.1:1/mine", "--ca", tmp_path / "ca.crt").exception
    assert "there is no such certificate" in str(error)


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_patience_ends_with_a_sentence(closed_port, by):
    url = f"redis://alice:hush@127.0.0.1:{closed_port}/mine"
    began_s = time.monotonic()
    result = join("--patience", 0.002, SOULS_URL=url) if by == "environment" else join(url, "--patience", 0.002)
    assert time.monotonic() - began_s < 300.0  # half of a single try
    assert isinstance(result.exception, TransportError)
    assert f"127.0.0.1:{closed_port} does not answer" in str(result.exception)
    assert "hush" not in str(result.exception) + result.output


def test_the_user_need_not_wait_for_ever(closed_port, monkeypatch):
    def say(text):
        said(text)
        if text.endswith("trying again"):
            os.kill(os.getpid(), signal.SIGINT)

    said = verb._say
    monkeypatch.setattr(verb, "_say", say)
    result = join(f"redis://alice:hush@127.0.0.1:{closed_port}/mine")
    assert result.exit_code == 130
    assert "trying again" in result.output


def test_who_is_refused_does_not_try_again(monkeypatch):
    tries = []

    def refuse(*_, **__):
        tries.append(1)
        raise Refused("revoked or wrong credentials: ask for a new invitation") if len(tries) < 2 else SystemExit(9)

    monkeypatch.setattr("soulsai.runtime.remote.fetch_welcome", refuse)
    result = join(URL)
    assert isinstance(result.exception, Refused)
    assert len(tries) == 1


def test_another_package_is_refused(welcome):
    welcome(package="99.0.0", config_toml="[settings]\nof = 'later'", environment="x")
    error = join(URL).exception
    assert isinstance(error, TransportError)
    assert str(error).endswith("install the learner's on this machine: pip install souls-arena==99.0.0")
    welcome(package="0.0.1")
    assert str(join(URL).exception).endswith("pip install souls-arena==0.0.1")


def test_other_fights_are_refused(welcome):
    welcome(environment="0123456789abcdef")
    assert "0123456789abcdef at the learner" in str(join(URL).exception)


def test_an_environment_that_names_a_module_is_refused(welcome):
    odd = with_settings(CONFIG, ['gym.id="os:CartPole-v1"'])
    welcome(config_toml=config_to_toml(odd))
    assert "names an environment of another package (os:CartPole-v1): refused" in str(join(URL).exception)


def test_a_config_that_cannot_be_is_a_sentence(welcome):
    welcome(config_toml="[run]\nsteps = -5\n")
    error = join(URL).exception
    assert isinstance(error, ConfigError)
    assert "the learner's config" in str(error)


def own_boss(sentinel):
    """What a learner says whose boss is a file of its own."""
    settings = [f"fight.boss={sentinel}", "fight.variants=['hard', 'standard']", "fight.number=2", "ppo.minibatch=16"]
    config = with_settings(load_preset("smoke"), settings)
    return {"config_toml": config_to_toml(with_short_names(config)), "environment": environment_version(config),
            "files": files_of(config)}  # fmt: skip


def keep(configs):
    """Instead of playing, keep the config that is to be played."""

    def play(address, welcome, joined_s, config, *_):
        configs.append(config)
        return JoinProgress(), [], []

    return play


def test_a_boss_of_the_learners_comes_with_the_welcome(welcome, sentinel, monkeypatch):
    welcome(**own_boss(sentinel))
    shutil.rmtree(sentinel.parent)
    configs = []
    monkeypatch.setattr(remote, "_play", keep(configs))
    result = join(URL)
    assert result.exit_code == 0, result.exception
    assert load_fight(configs[0].fight.boss, "hard").boss.hp == 800.0


def test_a_boss_that_did_not_come_is_a_sentence(welcome, sentinel):
    welcome(**own_boss(sentinel) | {"files": {}})
    assert "the file sentinel.toml that it names is not included; serve or export" in str(join(URL).exception)


def test_a_bad_boss_of_the_learners_is_a_sentence(welcome, sentinel):
    told = own_boss(sentinel)
    told["files"]["boss/sentinel.toml"] = told["files"]["boss/sentinel.toml"].replace("hp = 600", "hp = -600")
    welcome(**told)
    result = join(URL)
    assert isinstance(result.exception, SoulsError)
    assert "body.hp = -600" in str(result.exception)


def own(own_parts, *settings):
    """What a learner says that has a Python file of its own."""
    small = ["fight.variants=['standard']", "fight.number=2", "ppo.minibatch=16"]
    settings = [f"fight.parts=['{own_parts}']", "encoder.name=shares", *small, *settings]
    config = with_settings(load_preset("smoke"), settings)
    return {"config_toml": config_to_toml(with_short_names(config)), "environment": environment_version(config),
            "parts": needed_parts(config)}  # fmt: skip


def test_a_worker_plays_with_its_own_copy_of_the_learners_file(welcome, own_parts, tmp_path, monkeypatch):
    welcome(**own(own_parts))
    here = own_parts.rename(tmp_path / "another_name.py")
    here.write_bytes(here.read_bytes().replace(b"\n", b"\r\n"))
    configs = []
    monkeypatch.setattr(remote, "_play", keep(configs))
    result = join(URL, "--parts", here)
    assert result.exit_code == 0, result.exception
    here.unlink()
    assert sizes_of(configs[0])[0] == 2


def test_a_worker_without_the_learners_file_is_told_which(welcome, own_parts):
    told = own(own_parts)
    digest = told["parts"][0][1]
    welcome(**told)
    error = join(URL).exception
    assert isinstance(error, MisuseError)
    assert str(error) == (
        f"the learner's run needs its file my_parts.py (sha256 {digest[:12]}...) on every machine, and code is never "
        "sent: get a copy from the person who started the run, read it, and join with --parts my_parts.py"
    )


def test_a_worker_with_another_content_is_told(welcome, own_parts):
    welcome(**own(own_parts))
    own_parts.write_text(own_parts.read_text() + "# more\n")
    error = join(URL, "--parts", own_parts).exception
    assert isinstance(error, MisuseError)
    assert f"{own_parts} differs from the learner's my_parts.py" in str(error)


def test_a_file_that_the_learner_does_not_use_is_left_out(welcome, own_parts, tmp_path):
    welcome(**own(own_parts))
    other = tmp_path / "other.py"
    other.write_text("# nothing\n")
    assert "other.py: the learner's run does not use this file; leave it out" in (
        str(join(URL, "--parts", own_parts, "--parts", other).exception)
    )
    assert "there is no such file" in str(join(URL, "--parts", tmp_path / "none.py").exception)


def test_no_file_is_run_because_a_learner_names_it(welcome, tmp_path):
    """Neither one that happens to be here, nor one that it sends as if it were a boss's."""
    trap, mark = tmp_path / "trap.py", tmp_path / "mark"
    trap.write_text(f"open({str(mark)!r}, 'w').close()\n")
    config = with_settings(load_preset("smoke"), ["encoder.name=shares", f"fight.parts=['{trap}']"])
    told = {"config_toml": config_to_toml(config), "environment": "x"}
    welcome(**told)
    assert 'the learner\'s config: encoder.name: encoder "shares" is not known' in str(join(URL).exception)
    welcome(**told, files={"parts-1/trap.py": trap.read_text()})
    assert "a file cannot lie at 'parts-1/trap.py'" in str(join(URL).exception)
    assert not mark.exists()


def test_a_reward_that_a_game_cannot_give_is_refused_before_playing(welcome, own_parts, monkeypatch):
    monkeypatch.setattr("soulsgym.game.attach.find_game", lambda *_, **__: None)
    own_parts.write_text(own_parts.read_text().replace('@term("brave", ', '@term("brave", needs=["dodged"], meaning='))
    welcome(**own(own_parts, "reward.weights.brave=1"))
    assert join(URL, "--parts", own_parts).exit_code == 0
    error = join(URL, "--parts", own_parts, "--env-backend", "game").exception
    assert "reward term 'brave' needs 'dodged', which this engine cannot tell" in str(error)


def test_only_those_who_play_in_the_simulator_are_told_that_it_is_compiled(welcome, sentinel, monkeypatch):
    monkeypatch.setattr("soulsgym.game.attach.find_game", lambda *_, **__: None)
    welcome(**own_boss(sentinel))
    line = "compiling the simulator"
    assert [line in join(URL, *words).output for words in ((), ("--env-backend", "game"))] == [True, False]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_the_process_that_supervises_workers_does_not_load_what_they_need():
    code = (
        "import sys, soulsai.cli.train, soulsai.runtime.remote; print([name in sys.modules for name in sys.argv[1:]])"
    )
    words = ["numba", "soulsgym.parts", "soulsgym.batch", "gymnasium", "torch"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == str([False] * len(words))


def test_a_fight_that_is_not_prepared_in_time_is_told(welcome, monkeypatch):
    welcome()
    monkeypatch.setattr(remote, "PREPARE_S", 0.0)
    monkeypatch.setattr(Supervisor, "ended", lambda self: 0)
    assert "has not prepared the fight within 0 s" in str(join(URL).exception)


def test_who_stops_while_it_is_prepared_has_played_nothing(welcome, monkeypatch):
    welcome()
    monkeypatch.setattr(Supervisor, "ended", lambda self: 0)
    asked = iter([False, True, True, True])
    assert remote.join(URL, stop=lambda: next(asked)) is None


def test_another_boss_than_the_learners_is_refused(welcome, sentinel):
    told = own_boss(sentinel)
    told["files"]["boss/sentinel.toml"] = told["files"]["boss/sentinel.toml"].replace("hp = 600", "hp = 601")
    welcome(**told)
    assert "the files of the fight data differ" in str(join(URL).exception)


@pytest.mark.parametrize("words", [[], ["stopped by the operator"] * 2])
def test_told_to_stop(welcome, monkeypatch, words):
    welcome()
    monkeypatch.setattr(remote, "_play", lambda *_: (JoinProgress(), words, []))
    result = join(URL)
    assert result.exit_code == 0, result.exception
    assert "joined mine at 127.0.0.1:1 as alice" in result.output
    assert "asked this worker to stop" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["stopped by the operator", "revoked"],
            "alice is no longer invited to mine: ask for a new invitation",
        ),
        (
            ["locked out"],
            "alice is locked out of mine for a minute, for sending too much: try again later, with fewer workers",
        ),
        (["cannot send: it was tried for 60 s"], "cannot send: it was tried for 60 s"),
    ],
)
def test_why_it_ended(welcome, monkeypatch, words, message):
    welcome()
    monkeypatch.setattr(remote, "_play", lambda *_: (JoinProgress(), words, []))
    assert str(join(URL).exception) == message


def test_workers_that_cannot_play(welcome, monkeypatch):
    welcome()
    problem = "its environment cannot be played (GameNotFound: DarkSoulsIII.exe is not running)"
    monkeypatch.setattr(remote, "_play", lambda *_: (JoinProgress(), [], [problem]))
    error = join(URL).exception
    assert isinstance(error, WorkerError)
    assert str(error) == f"this machine cannot play: {problem}"
    assert error.exit_code != 0


def test_the_line():
    progress = JoinProgress(17, 1500, 75.0, 15, 4, 16, sent=1000, restarts={"died": 0, "hung": 0})
    assert verb.progress_line(progress) == "1,500 steps, 75/s | 15 episodes | 25.0% won | policy 17 | sent 1,000 rows"
    assert verb.progress_line(replace(progress, unsent=64, dropped=32, restarts={"died": 2, "hung": 1})).endswith(
        "sent 1,000 rows | 64 not sent yet | 32 dropped | 2 died and replaced | 1 hung and replaced"
    )


@pytest.fixture
def pip(monkeypatch):
    """What would be run: pip first, then the program anew."""
    from types import SimpleNamespace

    ran = SimpleNamespace(commands=[], again=[], code=0)

    def run(command, check):
        ran.commands.append(command[1:])
        return SimpleNamespace(returncode=ran.code)

    monkeypatch.setattr(verb.subprocess, "run", run)
    monkeypatch.setattr(verb.os, "execv", lambda program, words: ran.again.append(words[1:3]))
    monkeypatch.setenv(verb.UPDATED, "")
    return ran


def update(*arguments, answer="y\n"):
    return CliRunner().invoke(app, ["join", URL, *arguments], input=answer)


def test_the_learners_version_is_installed_after_asking(welcome, pip):
    welcome(package="9.8.7")
    refused = update()
    assert isinstance(refused.exception, OtherVersion)
    assert pip.commands == []
    assert isinstance(update("--update", answer="n\n").exception, OtherVersion)
    assert pip.commands == []
    done = update("--update")
    assert done.exit_code == 0
    assert pip.commands == [["-m", "pip", "install", "souls-arena[worker]==9.8.7"]]
    assert pip.again == [["-m", "soulsai"]]
    assert "the learner has soulsgym 9.8.7" in done.output
    again = update("--update")  # the program that was started again, which pip has not changed
    assert "still not the learner's version" in str(again.exception)
    assert len(pip.commands) == 1


def test_an_update_that_fails_says_so_and_none_is_tried_where_none_is_needed(welcome, pip):
    pip.code = 1
    welcome(package="9.8.7")
    assert "pip could not install souls-arena[worker]==9.8.7" in str(update("--update").exception)
    assert pip.again == []
    welcome()
    assert update("--update").exit_code == 0
    assert len(pip.commands) == 1
