"""The server as its user starts it: addresses, ports, Ctrl-C, packages that are missing."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.dashboard import app as app_module
from soulsai.dashboard import connections
from soulsai.dashboard import server as server_module
from soulsai.dashboard.server import PORT, ServeOptions, ServerError, address, listen, serve
from soulsgym.errors import MissingPackage

SOULS = Path(sys.executable).parent / "souls"
LIMIT_S = 120.0


def taken(port=0, host="127.0.0.1"):
    line = socket.socket()
    line.bind((host, port))
    line.listen()
    return line


def test_the_usual_port_or_the_next(monkeypatch):
    with taken() as line:
        monkeypatch.setattr(server_module, "PORT", line.getsockname()[1])
        with listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] not in (0, line.getsockname()[1])


def test_if_none_of_the_next_is_free_any_port_will_do(monkeypatch):
    with taken() as line:
        monkeypatch.setattr(server_module, "PORT", line.getsockname()[1])
        monkeypatch.setattr(server_module, "MORE_PORTS", 1)
        with listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] != line.getsockname()[1]


def test_a_port_that_was_asked_for_and_is_taken():
    with taken() as line:
        port = line.getsockname()[1]
        with pytest.raises(ServerError, match=rf"port {port} on 127\.0\.0\.1 cannot be used .*--port"):
            listen("127.0.0.1", port)


def test_hosts_that_are_not_here():
    with pytest.raises(ServerError, match="no such address"):
        listen("no.such.host.invalid", None)
    with pytest.raises(ServerError, match="cannot be used"):
        listen("203.0.113.7", 8716)


def test_addresses():
    assert address("127.0.0.1", 8716) == "http://127.0.0.1:8716/"
    assert address("::1", 1) == "http://[::1]:1/"
    everywhere = address("0.0.0.0", 1, "abc")
    assert everywhere.endswith(":1/?token=abc")
    assert "0.0.0.0" not in everywhere


def test_over_ipv6(serve_folder, root):
    try:
        taken6 = socket.socket(socket.AF_INET6)
        taken6.bind(("::1", 0))
        taken6.close()
    except OSError:
        pytest.skip("no IPv6 here")
    assert serve_folder(root, host="::1").get("/healthz") == b"ok"


def test_served_to_others_it_has_a_token(serve_folder, root):
    served = serve_folder(root, host="0.0.0.0")
    told = urllib.parse.urlsplit(served._urls[0])
    url = told._replace(netloc=f"127.0.0.1:{told.port}").geturl()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url.partition("?")[0] + "api/runs", timeout=LIMIT_S)
    assert refused.value.code == 401
    token = url.partition("token=")[2]
    request = urllib.request.Request(url.partition("?")[0] + "api/runs", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
        assert answer.status == 200


def test_idle_connections_do_not_keep_others_out(serve_folder, root):
    served = serve_folder(root)
    place = urllib.parse.urlsplit(served.url)
    with contextlib.ExitStack() as held:
        lines = []
        for number in range(200):
            lines.append(held.enter_context(socket.create_connection((place.hostname, place.port), LIMIT_S)))
            if number % 2:
                lines[-1].sendall(b"GET / HTTP/1.1\r\n")  # begun, and never ended
        assert served.get("/healthz") == b"ok"
        assert lines[0].recv(1) == b""  # the oldest made room


def test_a_request_that_takes_too_long_is_given_up(serve_folder, root, monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_S", 0.2)
    monkeypatch.setattr(app_module, "BODY_S", 0.2)
    served = serve_folder(root)
    place = urllib.parse.urlsplit(served.url)
    head = f"POST /api/runs/one/control HTTP/1.1\r\nHost: {place.netloc}\r\nX-Souls: page\r\nContent-Length: 50\r\n\r\n"
    for sent, answer in ((b"GET / HTTP/1.1\r\nHost:", b""), (head.encode(), b"HTTP/1.1 408")):
        with socket.create_connection((place.hostname, place.port), LIMIT_S) as line:
            line.sendall(sent)
            assert line.recv(12) == answer


def test_a_folder_that_is_not_there(tmp_path):
    result = CliRunner().invoke(app, ["dashboard", str(tmp_path / "nothing")])
    assert isinstance(result.exception, ServerError)
    assert "there is no such folder" in str(result.exception)


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingPackage, match=r"uvicorn is not installed; run: pip install '[\w-]+\[dashboard\]'"):
        serve(ServeOptions(tmp_path), lambda url: None)


def test_the_command_has_an_example():
    text = CliRunner().invoke(app, ["dashboard", "--help"], env={"COLUMNS": "160"}).output
    assert "Example: souls dashboard --open" in text
    assert "SOULS_DASHBOARD_TOKEN" in text


def started(*words, **environment):
    process = subprocess.Popen(
        [SOULS, "dashboard", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    return process, process.stdout.readline()


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_the_command_from_start_to_end(root, sign):
    process, line = started(root, SOULS_DASHBOARD_TOKEN="a-token-of-some-length")
    try:
        assert line.startswith(f"the page of {root} is at http://127.0.0.1:")
        url = line.split(" is at ")[1].split(" ")[0]
        assert url.endswith("/?token=a-token-of-some-length")
        with urllib.request.urlopen(url.partition("?")[0] + "healthz", timeout=LIMIT_S) as answer:
            assert answer.read() == b"ok"
        request = urllib.request.Request(
            url.partition("?")[0] + "api/events", headers={"authorization": "Bearer a-token-of-some-length"}
        )
        with urllib.request.urlopen(request, timeout=LIMIT_S) as stream:  # Somebody looks at it.
            stream.readline()
            process.send_signal(sign)
            out, err = process.communicate(timeout=LIMIT_S)
        assert "Traceback" not in err
        assert "a-token" not in err
        assert out == ""
        assert process.returncode in (0, -signal.SIGTERM)
    finally:
        process.kill()


def test_a_taken_port_is_one_sentence(root):
    with taken() as line:
        port = line.getsockname()[1]
        done = subprocess.run(
            [SOULS, "dashboard", str(root), "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"souls: port {port} on 127.0.0.1 cannot be used")


def test_the_browser_is_opened_if_told_so(root, monkeypatch):
    import webbrowser

    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(server_module, "serve", lambda options, say: say("http://127.0.0.1:1/"))
    assert CliRunner().invoke(app, ["dashboard", str(root), "--open"]).exit_code == 0
    deadline_s = time.monotonic() + LIMIT_S
    while not opened:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert opened == ["http://127.0.0.1:1/"]


def test_the_usual_port_is_the_documented_one():
    assert PORT == 8716
