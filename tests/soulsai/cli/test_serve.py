"""`souls serve`, alone and with everything around it: workers, invitations, and commands while it runs."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest
from redis.exceptions import AuthenticationError, ConnectionError
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.cli.train import hide_secrets, open_run
from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.errors import ConfigError, PreflightError, RunError, TransportError
from soulsai.runs.fleet_file import FILE, LOCK, FleetFile, is_served, read_fleet, write_fleet
from soulsai.runs.lock import hold_lock
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.runtime import RedisOptions
from soulsai.runtime.invitation import host_and_port, how_to_join
from soulsai.runtime.redis_server import OwnServer
from soulsai.runtime.serve import FRIEND, open_redis
from soulsai.transport.redis.access import invite, revoke
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import stop_workers

SMALL = ["run.threads=1", "run.evaluate_every_steps=0", "run.final_fights=5", "network.hidden=[8]"]
LIMIT_S = 240
"""For anything that takes a few seconds on a machine that has nothing else to do."""
NOTHING = RedisOptions()


def serve(*arguments):
    return CliRunner().invoke(app, ["serve", *map(str, arguments)], env={"SOULS_REDIS": ""})


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "name the run once: cartpole-dqn or --run"),
        (["--port", "70000"], "65535"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, arguments, message):
    result = serve("cartpole-dqn", "--run", tmp_path / "run", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["iudx"], ConfigError, "iudex"),
        (["smoke", "--redis", "http://a:hush@b"], TransportError, "this is not the address of a Redis"),
        (["smoke", "--redis", "redis://a:hush@127.0.0.1:1/a b"], TransportError, "cannot be the id of a run"),
        (["smoke", "--redis", "rediss://a:hush@127.0.0.1:1", "--ca", "no.crt"], TransportError, "no such certificate"),
        (["smoke", "--redis", "redis://a:b@c:1", "--host", "0.0.0.0"], ConfigError, "leave them out with --redis"),
        (["smoke", "--redis", "redis://a:b@c:1", "--port", "5"], ConfigError, "leave them out with --redis"),
        (["smoke", "--redis", "redis://a:b@c:1", "--no-tls"], ConfigError, "leave them out with --redis"),
        (["smoke", "--advertise", "http://x/y"], ConfigError, "give a host name or address"),
        (["smoke", "--advertise", "x:y"], ConfigError, "give a host name or address"),
        (["smoke", "--host", "8.8.8.8"], TransportError, "cannot listen on 8.8.8.8"),
        (["smoke", "--host", "elsewhere"], TransportError, "'elsewhere' is not an address to listen on"),
    ],
)
def test_mistakes_are_a_sentence_and_leave_no_folder(tmp_path, arguments, error, message):
    result = serve(*arguments, "--run", tmp_path / "run")
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
    assert "hush" not in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_no_server_is_installed(tmp_path, monkeypatch):
    def none():
        raise TransportError("no redis-server or valkey-server was found: install one")

    monkeypatch.setattr("soulsai.runtime.redis_server.find_server", none)
    assert "install one" in str(serve("smoke", "--run", tmp_path / "run").exception)
    assert not (tmp_path / "run").exists()


def test_a_redis_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("soulsai.runtime.serve.REACH_S", 0.2)
    error = serve("smoke", "--run", tmp_path / "run", "--redis", "redis://admin:hush@127.0.0.1:1").exception
    assert isinstance(error, TransportError)
    assert "127.0.0.1:1 does not answer" in str(error)


def test_only_one_may_serve_a_run(tmp_path):
    new_run(tmp_path)
    with hold_lock(tmp_path / "run" / LOCK):
        error = serve("--resume", "--run", tmp_path / "run").exception
    assert isinstance(error, RunError)
    assert f"process {os.getpid()} is training in this folder" in str(error)
    assert (tmp_path / "run").exists()


@pytest.mark.parametrize("error", [PreflightError("would lead nowhere"), KeyboardInterrupt()])
def test_what_ends_before_it_has_learned_leaves_nothing(tmp_path, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("soulsai.learning.session.preflight", refuse)
    resource_tracker.ensure_running()  # which stays
    before = set(psutil.Process().children(recursive=True))
    result = serve("cartpole-dqn", "--run", tmp_path / "run")
    assert result.exit_code != 0
    assert not (tmp_path / "run").exists()
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("redis://admin:hu:sh@host:1/run", "redis://***@host:1/run"),
        ("--redis=rediss://admin:hush@host:1", "--redis=rediss://***@host:1"),
        ("redis://host:1/run", "redis://host:1/run"),
        ("--notify=https://hooks.example/services/T0/secret", "--notify=https://hooks.example/***"),
        ("http://127.0.0.1:9?token=secret", "http://127.0.0.1:9/***"),
        ("run.seed=3", "run.seed=3"),
    ],
)
def test_command_lines_are_kept_without_secrets(text, kept):
    assert hide_secrets(text) == kept


def test_the_folder_of_a_run_holds_no_password(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["souls", "serve", "smoke", "--redis", "redis://admin:hush@host:1"])
    run, _ = open_run("smoke", [], tmp_path / "run", resume=False)
    assert run.versions["command"][-1] == "redis://***@host:1"
    assert not any(b"hush" in file.read_bytes() for file in run.folder.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("text", "place"),
    [("pc", ("pc", 0)), ("pc:7000", ("pc", 7000)), ("fe80::1", ("fe80::1", 0)), ("[fe80::1]:7000", ("fe80::1", 7000))],
)
def test_places(text, place):
    assert host_and_port(text) == place


# Opening a Redis


def new_run(tmp_path, preset="cartpole-dqn"):
    config = with_settings(load_preset(preset), SMALL)
    return Run.create(tmp_path / "run", config_to_toml(config), preset=preset, command=[]), config


def opened(run, config, options=NOTHING, say=lambda text: None, then=lambda fleet, address: None):
    with ExitStack() as held:
        fleet, address = open_redis(run, config, options, held, say)
        then(fleet, address)
    return fleet, address


def test_a_run_served_again_has_the_same_line(tmp_path):
    run, config = new_run(tmp_path)
    first, address = opened(run, config)
    assert (first.generation, first.own, first.host) == (1, True, "127.0.0.1")
    assert re.fullmatch(r"run-[0-9a-f]{6}", first.run)
    assert list(first.passwords) == [FRIEND]
    assert read_fleet(run.folder) == first
    assert (run.folder / FILE).stat().st_mode & 0o777 == 0o600

    def join(fleet, address):
        friend = replace(address, user=FRIEND, password=fleet.passwords[FRIEND])
        with connect(friend) as client:
            assert client.ping()

    second, _ = opened(run, config, then=join)
    assert second == replace(first, generation=2)
    assert how_to_join(run.folder, second, *next(iter(second.passwords.items())))[2] == (
        f"  souls join redis://friend:{first.passwords[FRIEND]}@127.0.0.1:{address.port}/{first.run}"
    )


def test_a_revoked_friend_stays_out(tmp_path):
    run, config = new_run(tmp_path)

    def put_out(fleet, address):
        with connect(address) as admin:
            revoke(admin, Keys(fleet.run), FRIEND)
        write_fleet(run.folder, replace(fleet, passwords={}))

    opened(run, config, then=put_out)
    again, _ = opened(run, config)
    assert (again.generation, again.passwords) == (2, {})


@pytest.mark.faults
@pytest.mark.parametrize("state", ["full", "hung"])
def test_revoke_works_whatever_redis_does(tmp_path, state):
    """And leaves nothing of the name: no user, no connection, no key."""
    run, config = new_run(tmp_path)
    with ExitStack() as held:
        held.enter_context(hold_lock(run.folder / LOCK))
        fleet, address = open_redis(run, config, NOTHING, held, lambda text: None)
        keys, file = Keys(fleet.run), run.folder / "redis" / "redis.pid"
        with connect(address) as admin:
            password = invite(admin, keys, "eve")
            eve = held.enter_context(connect(replace(address, user="eve", password=password)))
            eve.rpush(keys.experience("eve"), *[bytes(1000)] * 100)
            eve.hset(keys.beats("eve"), "eve.1.eeeeee", b"beat")
            if state == "full":
                admin.config_set("maxmemory", 1)
        if state == "hung":
            os.kill(int(file.read_text()), signal.SIGSTOP)
        result = CliRunner().invoke(app, ["revoke", "eve", str(run.folder)])
        assert result.exit_code == 0, result.output
        assert "eve: access to" in result.output
        with connect(address) as admin:
            assert list(admin.scan_iter(match=f"{keys.prefix}*eve*")) == []
            assert "eve" not in admin.acl_users()
            assert not [client for client in admin.client_list() if client["user"] == "eve"]
            assert "friend" in admin.acl_users()
        with pytest.raises((AuthenticationError, ConnectionError)):
            eve.ping()


def test_a_finished_run_that_goes_on_keeps_nobody_out(tmp_path):
    run, config = new_run(tmp_path)

    def say_goodbye(fleet, address):
        with connect(address) as admin:
            stop_workers(admin, Keys(fleet.run), "*", [FRIEND])

    def is_told_to_stop(fleet, address):
        with connect(address) as admin:
            told.append(admin.exists(Keys(fleet.run).to(FRIEND)))

    told = []
    opened(run, config, then=say_goodbye)
    opened(run, config, then=is_told_to_stop)
    run.write_status(Status("finished", 1, 1))
    opened(run, config, then=is_told_to_stop)
    assert told == [1, 0]


def test_what_was_said_once_holds(tmp_path):
    run, config = new_run(tmp_path)
    first, _ = opened(run, config, RedisOptions("", "0.0.0.0", 0, True, None, "pc-of-mine:7000"))
    assert first.advertised == "rediss://pc-of-mine:7000"
    assert first.ca == str(run.folder / "redis" / "tls" / "ca.crt")
    second, _ = opened(run, config)
    assert second == replace(first, generation=2)
    third, address = opened(run, config, RedisOptions("", "127.0.0.1", 0, False, None, "other"))
    assert (third.host, third.ca, third.advertised) == ("127.0.0.1", "", f"redis://other:{address.port}")


def test_a_redis_that_is_running(tmp_path):
    """Two runs in one Redis: each has an id and a friend of its own."""
    first_run, config = new_run(tmp_path / "a")
    second_run, _ = new_run(tmp_path / "b")

    def share(first, address):
        url = replace(address, run="").url()
        second, _ = opened(second_run, config, RedisOptions(url, "", 0, None, None, ""))
        assert (second.own, second.generation, second.advertised) == (False, 1, f"redis://127.0.0.1:{address.port}")
        assert second.run != first.run
        (name,) = second.passwords
        assert re.fullmatch(r"friend-[0-9a-f]{4}", name)
        again, _ = opened(second_run, config)  # the address was kept
        assert again == replace(second, generation=2)

    opened(first_run, config, then=share)


@pytest.mark.parametrize("options", [{"host": "0.0.0.0"}, {"tls": True}, {"tls": False}, {"port": 7}])
def test_options_of_its_own_redis_are_refused_by_a_run_that_uses_another(tmp_path, options):
    run, config = new_run(tmp_path)
    write_fleet(run.folder, FleetFile("mine", "redis://admin:hush@pc:7000/mine", "redis://pc:7000", generation=1))
    with pytest.raises(ConfigError, match=r"this one uses that at pc:7000: leave them out.*--redis$") as caught:
        opened(run, config, RedisOptions(**options))
    assert "hush" not in str(caught.value)
    assert read_fleet(run.folder).generation == 1


def test_a_certificate_for_its_own_redis_is_refused(tmp_path):
    run, config = new_run(tmp_path)
    with pytest.raises(ConfigError, match=r"--ca x\.crt is for the Redis of --redis"):
        opened(run, config, RedisOptions(ca=Path("x.crt")))


def test_the_run_in_the_address_is_its_id(tmp_path):
    first_run, config = new_run(tmp_path / "a")
    second_run, _ = new_run(tmp_path / "b")

    def share(first, address):
        url = replace(address, run="my.run").url()
        assert opened(second_run, config, RedisOptions(url, "", 0, None, None, "x.org"))[0].run == "my.run"

    opened(first_run, config, then=share)


@pytest.mark.parametrize(
    ("advertised", "ca", "told", "untold"),
    [
        ("redis://127.0.0.1:7", "", "only this machine can join", "encrypted"),
        ("rediss://localhost:7", "/x/ca.crt", "only this machine can join", "encrypted"),
        ("redis://192.168.1.5:7", "", "nothing is encrypted", "only this machine"),
        ("rediss://pc.org:7", "/x/ca.crt", "send the file /x/ca.crt along", "nothing is encrypted"),
    ],
)
def test_what_is_told_with_the_line(tmp_path, advertised, ca, told, untold):
    lines = "\n".join(how_to_join(tmp_path, FleetFile("mine", "", advertised, ca), "alice", "a/b"))
    scheme, _, place = advertised.partition("://")
    line = f"souls join {scheme}://alice:a%2Fb@{place}/mine" + (" --ca ca.crt" if ca else "")
    assert f"  {line}\n" in lines
    assert told in lines
    assert untold not in lines


# Everything together


class Souls:
    """`souls` processes of a test, none of which outlives it."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}

    def start(self, name, *arguments, **environment):
        output = (self.folder / f"{name}.txt").open("w")
        command = [sys.executable, "-c", "from soulsai.cli.main import main; main()", *map(str, arguments)]
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=self.environment | environment, cwd=self.folder
        )
        self.processes.append(process)
        return process

    def run(self, *arguments, limit_s=LIMIT_S):
        command = [sys.executable, "-c", "from soulsai.cli.main import main; main()", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, env=self.environment, cwd=self.folder
        )

    def said(self, name):
        return (self.folder / f"{name}.txt").read_text()

    def wait_for(self, name, pattern, limit_s=LIMIT_S):
        deadline_s = time.monotonic() + limit_s
        while not (found := re.search(pattern, self.said(name))):
            assert time.monotonic() < deadline_s, f"{name} did not say {pattern} in {limit_s} s:\n{self.said(name)}"
            time.sleep(0.1)
        return found

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def souls(tmp_path):
    souls = Souls(tmp_path)
    before = {process.pid for process in psutil.process_iter()}
    yield souls
    souls.end()
    deadline_s = time.monotonic() + LIMIT_S
    while left := [found for found in psutil.process_iter() if found.pid not in before and _is_of(found, tmp_path)]:
        assert time.monotonic() < deadline_s, f"still running: {left}"
        time.sleep(0.1)


def _is_of(process, folder):
    try:
        return Path(process.cwd()).is_relative_to(folder) and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


def sets(*settings):
    return [part for setting in settings for part in ("--set", setting)]


def fleet_of(souls, *arguments):
    result = CliRunner().invoke(app, ["fleet", "--json", str(souls.folder / "runs" / "mine"), *arguments])
    return json.loads(result.stdout), result.exit_code


def wait_for_players(souls, name, workers=1, limit_s=LIMIT_S):
    """Until so many workers of a name have sent something and play."""
    deadline_s = time.monotonic() + limit_s
    while True:
        report, _ = fleet_of(souls)
        theirs = [worker for worker in report["workers"] if worker["name"] == name and worker["sent"] > 0]
        assert "starting" not in {worker["state"] for worker in theirs}, "one that has sent rows has started"
        if sum(worker["state"] in ("playing", "waiting") for worker in theirs) >= workers:
            return report
        assert time.monotonic() < deadline_s, report
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.faults
def test_a_fleet_from_start_to_end(souls):
    folder = souls.folder / "runs" / "mine"
    settings = sets(
        "run.steps=100000000", *SMALL, "fleet.beat_s=0.3", "fleet.hang_s=600", "gym.number=4", "fleet.chunk_rows=64",
    )  # fmt: skip
    server = souls.start("serve", "serve", "cartpole-dqn", "--accept-all", "--plain", "--run", "runs/mine", *settings)
    url = souls.wait_for("serve", r"souls join (redis://friend:\S+)")[1]
    friend = souls.start("friend", "join", "--workers", 2, SOULS_URL=url)
    souls.wait_for("friend", "joined mine-")
    wait_for_players(souls, "friend", workers=2)
    assert is_served(folder)

    # Who is there sees that the password is in no list of processes.
    password = re.search(r"friend:(\S+)@", url)[1]
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended meanwhile
            assert not _is_of(process, souls.folder) or password not in " ".join(process.cmdline())

    # One more friend; the books close while everyone plays.
    invitation = souls.run("invite", "alice")
    alice_url = re.search(r"souls join (redis://alice:\S+)", invitation.stdout)[1]
    alice = souls.start("alice", "join", alice_url)
    wait_for_players(souls, "alice")
    for _ in range(5):
        report, code = fleet_of(souls, "--check")
        assert (code, report["open"]) == (0, {})
    table = souls.run("fleet").stdout
    assert "sent" in table
    assert "alice.0." in table

    saved = souls.run("save")
    assert saved.returncode == 0, saved.stderr
    assert re.match(rf"saved {re.escape('runs/mine/checkpoints')}/\d+", saved.stdout)
    assert (souls.folder / saved.stdout.split()[1]).exists()

    # One worker of two stops; then everyone of a name is out.
    (one, other) = sorted(worker["worker"] for worker in report["workers"] if worker["name"] == "friend")
    stopped = souls.run("stop", "--worker", one)
    assert stopped.stdout == f"{one}: stopped\n", stopped.stderr
    states = {worker["worker"]: worker["state"] for worker in fleet_of(souls)[0]["workers"]}
    assert states[one] == "left"
    assert states[other] != "left"
    revoked = souls.run("revoke", "alice")
    assert revoked.returncode == 0, revoked.stderr
    assert alice.wait(LIMIT_S) == 2
    assert "alice is no longer invited to mine-" in souls.said("alice")
    assert "Traceback" not in souls.said("alice")
    report, code = fleet_of(souls, "--check")
    assert (code, report["open"]) == (0, {})
    assert souls.run("stop", "--worker", "bob").returncode == 2

    # The learner stops, and workers wait for its return; another life of it ends the run.
    assert souls.run("stop").returncode == 0
    assert server.wait(LIMIT_S) == 0, souls.said("serve")
    assert "stopped and saved; continue with: souls serve --resume runs/mine" in souls.said("serve")
    assert not is_served(folder)
    assert friend.poll() is None
    step = json.loads((folder / "status.json").read_text())["step"]
    result = souls.run("fleet")
    assert "is not being served; its last state" in result.stdout

    again = souls.start(
        "again", "serve", "--resume", "--plain", "--run", "runs/mine", *sets(f"run.steps={step + 5000}")
    )
    assert souls.wait_for("again", r"souls join (redis://friend:\S+)")[1] == url
    assert again.wait(LIMIT_S) == 0, souls.said("again")
    assert f"resuming from step {step:,}" in souls.said("again")
    assert friend.wait(LIMIT_S) == 0, souls.said("friend")
    assert "asked this worker to stop" in souls.said("friend")
    assert "Traceback" not in souls.said("again") + souls.said("serve") + souls.said("friend")
    assert Run.open(folder).status().state == "finished"
    last = json.loads((folder / "fleet_last.json").read_text())
    assert last["open"] == {}
    assert last["total"]["in_flight"] == 0
    assert last["total"]["stored"] > 0
    assert read_fleet(folder).generation == 2


@pytest.mark.slow
@pytest.mark.faults
def test_interrupting_a_learner_and_a_worker(souls):
    settings = sets("run.steps=100000000", *SMALL, "fleet.beat_s=0.3", "fleet.hang_s=600")
    arguments = ["serve", "cartpole-dqn", "--accept-all", "--plain", "--tls", "--run", "runs/mine", *settings]
    server = souls.start("serve", *arguments)
    url, ca = souls.wait_for("serve", r"souls join (rediss://friend:\S+) --ca (\S+)").groups()
    (certificate,) = souls.folder.rglob(ca)
    friend = souls.start("friend", "join", url, "--ca", certificate)
    wait_for_players(souls, "friend")
    friend.send_signal(signal.SIGINT)
    assert friend.wait(LIMIT_S) == 130, souls.said("friend")
    assert [worker["state"] for worker in fleet_of(souls)[0]["workers"]] == ["left"]
    server.send_signal(signal.SIGINT)
    assert server.wait(LIMIT_S) == 130, souls.said("serve")
    assert "Traceback" not in souls.said("serve") + souls.said("friend")
    assert Run.open(souls.folder / "runs" / "mine").status().state == "stopped"


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize(
    ("whose", "harm", "sign"),
    [
        ("own", signal.SIGSTOP, signal.SIGINT),
        ("own", signal.SIGKILL, signal.SIGTERM),
        ("external", signal.SIGKILL, signal.SIGTERM),
        ("external", signal.SIGSTOP, signal.SIGINT),
    ],
)
def test_the_first_signal_ends_a_learner_whatever_redis_does(souls, whose, harm, sign):
    settings = sets("run.steps=100000000", *SMALL, "fleet.beat_s=0.3", "fleet.hang_s=600")
    arguments = ["serve", "cartpole-dqn", "--accept-all", "--plain", "--no-dashboard", "--run", "runs/mine", *settings]
    with ExitStack() as held:
        if whose == "external":
            other = held.enter_context(OwnServer.start(souls.folder / "other"))
            arguments += ["--redis", other.address.url()]
        server = souls.start("serve", *arguments)
        url = souls.wait_for("serve", r"souls join (redis://friend\S*:\S+)")[1]
        souls.start("friend", "join", url)
        wait_for_players(souls, "friend")
        folder = souls.folder / "runs" / "mine"
        redis = int((folder / "redis" / "redis.pid").read_text()) if whose == "own" else other.pid
        if (whose, harm) == ("own", signal.SIGKILL):
            for file in (folder / "redis").glob("*.conf"):
                file.write_text("nonsense yes\n")  # so that it cannot be started again
        os.kill(redis, harm)
        souls.wait_for("serve", "does not answer")
        began_s = time.monotonic()
        server.send_signal(sign)
        assert server.wait(LIMIT_S) == 130, souls.said("serve")
        took_s = time.monotonic() - began_s
        if whose == "external" and harm == signal.SIGSTOP:
            os.kill(redis, signal.SIGCONT)
        souls.end()
    assert "Traceback" not in souls.said("serve")
    assert "stopped and saved; continue with: souls serve --resume" in souls.said("serve")
    run = Run.open(folder)
    assert run.status().state == "stopped"
    assert run.status().step > 0
    assert list(run.checkpoints.glob("[!.]*"))
    assert took_s < 120.0, f"{took_s:.1f} s:\n{souls.said('serve')}"


@pytest.mark.slow
@pytest.mark.faults
def test_two_signals_together_are_one_wish_to_stop(souls):
    train = souls.start("train", "train", "cartpole-dqn", "--accept-all", "--plain", "--run", "runs/mine",
                        *sets("run.steps=100000000", *SMALL))  # fmt: skip
    souls.wait_for("train", r"steps \(")
    train.send_signal(signal.SIGTERM)
    time.sleep(0.02)
    train.send_signal(signal.SIGTERM)
    assert train.wait(LIMIT_S) != 0, souls.said("train")
    assert Run.open(souls.folder / "runs" / "mine").status().state == "stopped"


@pytest.mark.slow
@pytest.mark.faults
def test_a_fleet_with_a_python_file_of_its_own(souls, own_parts):
    """A worker without the file ends with a sentence; one with it plays until the run is over."""
    settings = sets("run.steps=1500", "run.threads=1", "run.evaluate_every_steps=0", "run.final_fights=2",
                    "fight.number=8", "fight.step_limit=100", "ppo.minibatch=64", "network.hidden=[8]",
                    "encoder.name=shares", "reward.weights.brave=0.1", "fleet.beat_s=0.3")  # fmt: skip
    arguments = ["serve", "smoke", "--accept-all", "--plain", "--no-dashboard", "--run", "runs/mine", *settings]
    server = souls.start("serve", *arguments, "--parts", own_parts.name)
    url = souls.wait_for("serve", r"souls join (redis://friend:\S+)")[1]
    souls.wait_for("serve", r"others need a copy of \S+data/parts-1/my_parts.py and add: --parts my_parts.py")
    without = souls.run("join", url)
    assert without.returncode == 2, without.stdout + without.stderr
    assert "needs its file my_parts.py" in " ".join(without.stderr.split())
    friend = souls.start("friend", "join", url, "--workers", 2, "--parts", own_parts)
    souls.wait_for("friend", "joined mine-")
    own_parts.unlink()
    assert server.wait(LIMIT_S) == 0, souls.said("serve")
    assert friend.wait(LIMIT_S) == 0, souls.said("friend")
    assert "Traceback" not in souls.said("serve") + souls.said("friend")
    assert "a new one starts" not in souls.said("friend")
    assert souls.run("eval", "runs/mine", "--fights", 2).returncode == 0


@pytest.mark.slow
def test_workers_without_redis(souls):
    """`souls train --workers`, stopped and resumed."""
    arguments = ["train", "cartpole-dqn", "--accept-all", "--plain", "--workers", 2, "--run", "runs/mine"]
    train = souls.start("train", *arguments, *sets("run.steps=100000000", *SMALL, "run.log_every_s=0.2"))
    metrics = souls.folder / "runs" / "mine" / "metrics.jsonl"
    deadline_s = time.monotonic() + LIMIT_S
    while not (metrics.exists() and '"fleet/workers":2' in metrics.read_text()):
        assert train.poll() is None, souls.said("train")
        assert time.monotonic() < deadline_s, souls.said("train")
        time.sleep(0.1)
    train.send_signal(signal.SIGINT)
    assert train.wait(LIMIT_S) == 130, souls.said("train")
    assert "continue with: souls train --workers 2 --resume runs/mine" in souls.said("train")
    run = Run.open(souls.folder / "runs" / "mine")
    step = run.status().step
    more = sets(f"run.steps={step + 3000}")
    again = souls.run("train", "--resume", "--plain", "--workers", 2, "--run", "runs/mine", *more, limit_s=LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"resuming from step {step:,}" in again.stdout
    assert run.status().state == "finished"
    assert "Traceback" not in souls.said("train") + again.stdout + again.stderr
