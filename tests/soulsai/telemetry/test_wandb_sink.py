"""Rows for Weights & Biases: the real library, without its server."""

import json
import os
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec

import pytest

from soulsai.telemetry import wandb_sink as module
from soulsai.telemetry.wandb_sink import IDENTITY, WandbSink
from soulsgym.errors import MissingPackage

needs_wandb = pytest.mark.skipif(not find_spec("wandb"), reason="wandb is not installed")
KEY = "0123456789" * 4
LIMIT_S = 120.0
BLOCK = 32 * 1024


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """No key and no server of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_MODE", "offline")


def sink(folder, said, project="souls"):
    return WandbSink(project, "a run", {"ppo": {"clip": 0.2}}, folder, said.append)


def entries(file):
    """The entries of an offline file: blocks of 32 KiB as LevelDB's log has them, after a head of 7 bytes."""
    data, whole = file.read_bytes(), b""
    assert data[:4] == b":W&B"
    at = 7
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, or the last part
            yield whole
            whole = b""


def records(folder):
    """Everything in the offline files of a run, by kind."""
    from wandb.proto import wandb_internal_pb2

    found = {}
    for file in sorted((folder / "wandb").glob("offline-run-*/*.wandb")):
        for data in entries(file):
            record = wandb_internal_pb2.Record.FromString(data)
            kind = record.WhichOneof("record_type")
            found.setdefault(kind, []).append(getattr(record, kind))
    return found


def rows(found):
    return [
        {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in row.item}
        for row in found["history"]
    ]


def write_many(one, number, values):
    for step in range(1, number + 1):
        one.write(step, 0.0, values)


@needs_wandb
@pytest.mark.slow
def test_rows_arrive_and_a_resumed_run_keeps_its_identity(tmp_path, capfd):
    said = []
    first = sink(tmp_path, said)
    for step in (100, 200, 300):
        first.write(step, step / 10, {"loss/policy": step / 1000, "reward/dealt": float("nan"), "wins": 3.0})
    first.close()
    found = records(tmp_path)
    assert [row["_step"] for row in rows(found)] == [100, 200, 300]
    assert [row["loss/policy"] for row in rows(found)] == [0.1, 0.2, 0.3]
    assert rows(found)[0]["elapsed_s"] == 10.0
    assert not any("reward/dealt" in row for row in rows(found))
    assert found["run"][0].project == "souls"
    assert found["run"][0].display_name == "a run"
    config = {item.key: json.loads(item.value_json) for item in found["run"][0].config.update}
    assert config["ppo"] == {"clip": 0.2}
    assert found["exit"][0].exit_code == 0
    assert len(said) == 1
    assert "later: wandb sync" in said[0]

    again = sink(tmp_path, said)
    again.write(400, 40.0, {"loss/policy": 0.4})
    again.close()
    assert {run.run_id for run in records(tmp_path)["run"]} == {found["run"][0].run_id}
    assert capfd.readouterr() == ("", "")  # nothing on the screen


@needs_wandb
@pytest.mark.slow
def test_without_a_key_it_goes_on_on_the_disk_and_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("WANDB_MODE")
    said = []
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:  # answers: it can do nothing
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        one = sink(tmp_path, said)
        one.write(1, 1.0, {"wins": 1.0})
        one.close()
        server.shutdown()
    assert len(said) == 1
    assert "continues offline (No API key configured" in said[0]
    assert [row["wins"] for row in rows(records(tmp_path))] == [1.0]


@needs_wandb
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refuses", "hangs"])
def test_a_server_out_of_reach_delays_no_row_and_loses_none(kind, tmp_path, monkeypatch, capfd):
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if kind == "hangs":
            server.listen()  # and never accepts
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        said = []
        begun_s = time.monotonic()
        one = sink(tmp_path, said)
        write_many(one, 100, {"wins": 1.0})
        assert time.monotonic() - begun_s < LIMIT_S / 4  # none of them waits for an answer
        one.close()
    assert "continues offline" in said[0]
    assert len(rows(records(tmp_path))) == 100
    assert KEY not in capfd.readouterr().err


def test_a_run_has_an_identity_for_each_project(tmp_path):
    first = module._identity(tmp_path / "wandb", "a")
    assert module._identity(tmp_path / "wandb", "a") == first
    second = module._identity(tmp_path / "wandb", "b")
    assert second != first
    (tmp_path / "wandb" / IDENTITY).write_text("{")
    assert module._identity(tmp_path / "wandb", "b") != second


def test_not_installed_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match="wandb is not installed; run: pip install "):
        sink(tmp_path, [])
