"""`souls gateway` and `souls invitations`: what they print, and what they refuse."""

import json
import re
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import ConfigError, TransportError
from soulsai.runs.fleet_file import FleetFile, read_fleet, write_fleet
from soulsai.runtime.invitation import how_to_join
from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.worker import Refused, fetch_welcome

LIMIT_S = 120.0


def souls(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["http://a"], TransportError, "not the address of a Redis"),
        (["wss://a:b@c/d"], TransportError, "c is a gateway, for workers"),
        (["redis://a", "--key", "k"], ConfigError, "--certificate needs --key and TLS"),
        (["redis://a", "--no-tls", "--key", "k", "--certificate", "c"], ConfigError, "give both, or neither"),
        (["redis://a", "--key", "k", "--certificate", "c"], TransportError, "not a certificate and its key"),
        (["redis://a", "--at", "a b"], ConfigError, "--at 'a b': give a host name"),
        (["redis://a", "--host", "203.0.113.7", "--no-tls"], TransportError, "cannot listen on 203.0.113.7"),
    ],
)
def test_mistakes(arguments, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = souls("gateway", *arguments).exception
    assert isinstance(found, error)
    assert message in str(found)
    assert found.exit_code == 2


def test_a_gateway_prints_its_line_and_ends_with_ctrl_c(tmp_path):
    with OwnServer.start(tmp_path / "redis") as server:
        url = f"redis://{server.address.place}"
        command = [sys.executable, "-m", "soulsai", "gateway", url, "--at", "localhost:0", "--host", "127.0.0.1"]
        for option in ([], ["--no-tls"]):
            process = subprocess.Popen(
                [*command, *option], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
            )
            try:
                line = process.stdout.readline()
                address = re.search(r"souls join (wss?://\S+)", line)[1]
                assert address.startswith("ws://" if option else "wss://")
                assert ("#" in address) != bool(option)
                with pytest.raises(Refused, match="wrong credentials"):
                    fetch_welcome(Address.parse(address), LIMIT_S, print)
            finally:
                process.send_signal(signal.SIGINT)
                rest = process.communicate(timeout=LIMIT_S)[0]
            assert "Traceback" not in rest
            assert process.returncode == 0, rest


def test_invitations_are_listed_and_ended_together(tmp_path):
    with OwnServer.start(tmp_path / "redis") as server:
        folder = tmp_path / "mine"
        folder.mkdir()
        fleet = FleetFile("mine-1", server.address.url(), "redis://127.0.0.1:1", passwords={"guest-1": "x"})
        write_fleet(folder, fleet)
        for name, *options in (("guest-1", "--expires", "7d", "--machines", 2), ("guest-2",), ("alice",)):
            assert souls("invite", name, folder, *options).exit_code == 0
        listed = souls("invitations", folder)
        assert re.search(r"guest-1\s+20\d\d-\d\d-\d\d \d\d:\d\d\s+20\d\d-\d\d-\d\d \d\d:\d\d\s+2", listed.output)
        assert re.search(r"alice\s+20\S+ \S+\s+-\s+any", listed.output)
        assert isinstance(souls("invitations", folder, "--revoke", "bob*").exception, TransportError)
        ended = json.loads(souls("invitations", folder, "--revoke", "guest-*", "--json").output)
        assert ended["ended"] == ["guest-1", "guest-2"]
        assert list(ended["invited"]) == ["alice"]
        assert read_fleet(folder).passwords == {}
        assert isinstance(souls("invite", "bob", folder, "--expires", "soon").exception, TransportError)
        assert list(json.loads(souls("invitations", folder, "--json").output)["invited"]) == ["alice"]


def test_the_line_of_a_run_with_a_gateway_is_all_that_is_needed(tmp_path):
    fleet = FleetFile("mine-1", "redis://a", "redis://127.0.0.1:1", gateway="[2001:db8::1]:8443", fingerprint="F" * 43)
    text = "\n".join(how_to_join(tmp_path, fleet, "alice", "hush/?#"))
    line = re.search(r"souls join (\S+)", text)[1]
    found = Address.parse(line)
    assert (found.host, found.port, found.user, found.password) == ("2001:db8::1", 8443, "alice", "hush/?#")
    assert (found.run, found.tls, found.fingerprint) == ("mine-1", True, "F" * 43)
    assert "send the file" not in text
