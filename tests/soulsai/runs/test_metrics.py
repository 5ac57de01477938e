"""The metrics of a run: what is read is what was written, whatever happened to the files between."""

import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from soulsai.errors import RunError
from soulsai.runs import metric_store as store_module
from soulsai.runs import metrics as module
from soulsai.runs.lock import hold_lock
from soulsai.runs.metric_store import BLOCKS, MOST_METRICS, is_network
from soulsai.runs.metrics import MetricsReader, MetricsWriter

LIMIT_S = 240.0


def write(folder, steps, writer=None, **values):
    writer = writer or MetricsWriter(folder)
    for step in steps:
        writer.write(step, step / 10, {"a": float(step)} | values)
    return writer


def steps(folder):
    return [row["step"] for row in MetricsReader(folder).rows()]


def lines(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_nothing_is_there_yet(tmp_path):
    reader = MetricsReader(tmp_path)
    assert (reader.names(), list(reader.rows()), reader.latest(), reader.since("a", 0)) == ([], [], {}, [])
    assert (reader.extent().rows, reader.extent().updated_s) == (0, None)
    assert len(reader.series(["a"])["a"].x) == 0
    assert list(tmp_path.iterdir()) == []


def test_rows(tmp_path):
    writer = MetricsWriter(tmp_path)
    writer.write(np.int64(5), 1.23456, {"a": np.float32(0.5), "b": math.inf})
    writer.write(6, 2.0, {"b": 3})
    reader = MetricsReader(tmp_path)
    first, second = reader.rows()
    assert (first["step"], first["elapsed_s"], first["a"]) == (5, 1.235, 0.5)
    assert math.isnan(first["b"])
    assert first["time"].endswith("Z")
    assert second["b"] == 3.0
    assert "a" not in second
    assert reader.names() == ["a", "b"]
    assert reader.latest() == {"a": (0, 0.5), "b": (1, 3.0)}
    assert (reader.extent().rows, reader.extent().step, reader.extent().elapsed_s) == (2, 6, 2.0)
    assert reader.since("b", 0) == [(1, 6, 3.0)]
    writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.sqlite"]
    assert reader.latest() == {"a": (0, 0.5), "b": (1, 3.0)}


@pytest.mark.parametrize("number", [1, BLOCKS[-1] - 1, BLOCKS[-1], BLOCKS[0] + 3])
def test_all_values_are_there_wherever_they_are_kept(tmp_path, number):
    writer = write(tmp_path, range(number), b=1.0)
    assert [row["a"] for row in MetricsReader(tmp_path).rows()] == list(range(number))
    assert MetricsReader(tmp_path).latest() == {"a": (number - 1, number - 1.0), "b": (number - 1, 1.0)}
    assert MetricsReader(tmp_path).extent().rows == number
    writer.close()


@pytest.mark.parametrize("points", [2, 7, 10, 50, 100, 300, 999])
@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (333.0, 1777.0), (5.0, 140.0)])
def test_buckets_are_those_of_a_calculation_by_hand(tmp_path, points, low, high):
    values = np.random.default_rng(points).normal(size=2000)
    values[::7] = np.nan
    writer = MetricsWriter(tmp_path)
    writer._store.append([(row, 0.0, 0.0, {"v": None if math.isnan(v) else v}) for row, v in enumerate(values)])
    found = MetricsReader(tmp_path).series(["v", "none"], "step", low, high, points)
    assert len(found["none"].x) == 0
    curve = found["v"]
    rows = np.arange(max(0, low), min(1999, high) + 1, dtype=int)
    if len(rows) <= points:
        assert np.array_equal(curve.y, values[rows], equal_nan=True)
        return
    size = 2
    while rows[-1] // size - rows[0] // size + 1 > points:
        size *= 2
    parts = [rows[rows // size == bucket] for bucket in np.unique(rows // size)]
    assert len(curve.x) == len(parts) <= points
    mean = [np.nanmean(values[part]) if np.isfinite(values[part]).any() else np.nan for part in parts]
    assert np.allclose(curve.y, mean, equal_nan=True)
    assert np.allclose(curve.low, [np.fmin.reduce(values[part]) for part in parts], equal_nan=True)
    assert np.allclose(curve.high, [np.fmax.reduce(values[part]) for part in parts], equal_nan=True)
    assert curve.x.tolist() == [(part[0] + part[-1]) // 2 for part in parts]
    writer.close()


def test_metrics_that_are_rare_or_new_have_all_of_their_values(tmp_path):
    writer = MetricsWriter(tmp_path)
    entries = [(row, 0.0, 0.0, {"a": 1.0} | ({"rare": float(row)} if row % 400 == 3 else {})) for row in range(2000)]
    writer._store.append(entries)
    writer._store.append([(row, 0.0, 0.0, {"a": 1.0, "new": 2.0}) for row in range(2000, 2300)])
    found = MetricsReader(tmp_path).series(["rare", "new", "a"], points=100)
    assert found["rare"].x.tolist() == found["rare"].y.tolist() == [3, 403, 803, 1203, 1603]
    assert found["new"].x.min() >= 2000 - BLOCKS[-1]
    assert set(found["new"].y) == {2.0}
    writer.close()


def test_axes(tmp_path):
    writer = MetricsWriter(tmp_path)
    writer._store.append([(10 * row, 1e9 + row, row / 2, {"a": 1.0, "game_hours": row / 4}) for row in range(300)])
    reader = MetricsReader(tmp_path)
    for axis, place in (("step", 20), ("time", 1e9 + 2), ("elapsed_s", 1.0), ("game_hours", 0.5)):
        assert reader.series(["a"], axis, high=place)["a"].x[-1] == place
        assert len(reader.series(["a"], axis, points=50)["a"].x) == 38
    assert reader.series(["a"], "game_hours")["a"].x[3] == 0.75
    writer.close()


# ---------------------------------------------------------------- going on after a checkpoint


@pytest.mark.parametrize("kept", [0, 5, BLOCKS[-1], BLOCKS[-1] + 5, BLOCKS[0] + 40, 3 * BLOCKS[0] - 1])
def test_a_resumed_run_is_as_if_never_stopped(tmp_path, kept):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    write(whole, range(900)).close()
    writer = write(cut, range(kept))
    position = json.loads(json.dumps(writer.position()))
    write(cut, range(1000, 1000 + 2 * BLOCKS[0] + 9), writer, wrong=1.0).close()
    write(cut, range(kept, 900), MetricsWriter.resume(cut, position)).close()
    plain = [[{**row, "time": 0} for row in MetricsReader(folder).rows()] for folder in (whole, cut)]
    assert plain[0] == plain[1]
    assert MetricsReader(cut).names() == ["a"]
    assert MetricsReader(cut).extent().rows == 900
    curve = MetricsReader(cut).series(["a"], points=100)["a"]
    assert (curve.low.min(), curve.high.max()) == (0.0, 899.0)


def test_numbers_of_rows_are_not_used_again(tmp_path):
    writer = write(tmp_path, range(10))
    writer.cut(4)
    write(tmp_path, [99], writer)
    assert MetricsReader(tmp_path).since("a", 10) == [(10, 99, 99.0)]
    writer.close()
    assert MetricsWriter(tmp_path).position() == 11


def test_a_database_that_is_gone_or_damaged_is_made_again_from_the_export(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(lines({"step": step, "a": 1.0} for step in range(5)))
    for ruin in (None, b"", b"no database" * 1000):
        for file in tmp_path.glob("metrics.sqlite*"):
            file.unlink()
        if ruin is not None:
            (tmp_path / "metrics.sqlite").write_bytes(ruin)
        MetricsWriter.resume(tmp_path, 5 if ruin is None or ruin else None).close()
        assert steps(tmp_path) == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------- kills, copies, several at once

TRAINER = """
import sys
from pathlib import Path
from soulsai.runs.metrics import MetricsWriter
writer, step = MetricsWriter(Path(sys.argv[1])), 0
while True:
    step += 1
    writer.write(step, 0.0, {"a": step, "b": -step})
    if step % 50 == 0:
        print(step, flush=True)
"""


@pytest.mark.faults
def test_a_kill_loses_nothing_that_was_written_while_others_read(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", TRAINER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "50\n"
    problems, over = [], threading.Event()

    def read():
        try:
            while not over.is_set():
                rows = list(MetricsReader(tmp_path).rows())
                assert [row["a"] for row in rows] == list(range(1, len(rows) + 1))
        except Exception as error:
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    last = [int(process.stdout.readline()) for _ in range(10)][-1]
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT_S)
    process.stdout.close()
    over.set()
    for reader in readers:
        reader.join(LIMIT_S)
    assert problems == []
    rows = list(MetricsReader(tmp_path).rows())
    assert len(rows) >= last
    assert all(row["a"] == -row["b"] == row["step"] for row in rows)
    assert MetricsWriter(tmp_path).position() == len(rows)


@pytest.mark.parametrize("with_log", [True, False])
def test_a_copy_of_a_run_that_is_being_trained(tmp_path, with_log):
    there, copy = tmp_path / "there", tmp_path / "copy"
    there.mkdir()
    writer = write(there, range(50))
    writer.close()
    writer = write(there, range(50, 60), MetricsWriter(there))
    copy.mkdir()
    for file in there.glob("metrics.sqlite*"):
        if with_log or file.name == "metrics.sqlite":
            shutil.copy(file, copy)
    assert steps(copy) == list(range(60 if with_log else 50))
    writer.close()


def as_nobody(work):
    """What a function gives in a process without rights, as JSON."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            os.write(sending, json.dumps(work()).encode())
        except BaseException as error:
            os.write(sending, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as stream:
        found = json.loads(stream.read())
    os.waitpid(child, 0)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")
@pytest.mark.parametrize("state", ["closed", "being trained", "copied without its log"])
def test_a_folder_that_cannot_be_written(tmp_path, state):
    folder = tmp_path / "run"
    folder.mkdir()
    writer = write(folder, range(20))
    if state == "closed":
        writer.close()
    elif state != "being trained":
        writer.close()
        writer = write(folder, range(20, 25), MetricsWriter(folder))
        shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*-*"))
        folder = tmp_path / "copy"
    for path in (tmp_path, *tmp_path.parents):
        if path.is_relative_to(tempfile.gettempdir()) and path != Path(tempfile.gettempdir()):
            path.chmod(path.stat().st_mode | 0o055)
    before = sorted(folder.iterdir())
    folder.chmod(0o555)
    try:
        assert as_nobody(lambda: steps(folder)) == list(range(20))
    finally:
        folder.chmod(0o755)
    assert sorted(folder.iterdir()) == before


def test_somebody_holds_the_database(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "WRITE_S", 0.01)
    writer = write(tmp_path, range(3))
    other = sqlite3.connect(tmp_path / "metrics.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write(tmp_path, range(3, 6), writer)
    assert steps(tmp_path) == [0, 1, 2]
    assert writer.position() == 6
    other.execute("ROLLBACK")
    other.close()
    write(tmp_path, [6], writer)
    assert steps(tmp_path) == list(range(7))
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    other = sqlite3.connect(tmp_path / "metrics.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RunError, match="is held by another program: close it there"):
        write(tmp_path, [7, 8], writer)
    other.close()
    writer.close()
    assert steps(tmp_path) == list(range(9))


def test_a_full_disk_leaves_what_was_written(tmp_path):
    writer = write(tmp_path, range(100))
    (pages,) = writer._db.execute("PRAGMA page_count").fetchone()
    writer._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(RunError, match="the disk is full: free some space"):
        write(tmp_path, range(100, 5000), writer)
    found = steps(tmp_path)
    assert found == list(range(len(found)))
    assert len(found) >= 100


@pytest.mark.parametrize("is_new", [True, False])
def test_drives_of_other_machines_get_no_log_beside_the_database(tmp_path, monkeypatch, is_new):
    if not is_new:
        write(tmp_path, range(2)).close()
    monkeypatch.setattr(store_module, "is_network", lambda folder: True)
    writer = write(tmp_path, range(2 if not is_new else 0, 4))
    assert writer._db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert steps(tmp_path) == [0, 1, 2, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.sqlite"]
    writer.close()


def test_this_drive_is_known(tmp_path):
    assert is_network(tmp_path) in (True, False)


# ---------------------------------------------------------------- damage and other versions


def test_a_damaged_database_says_the_way_out(tmp_path):
    write(tmp_path, range(500)).close()
    file = tmp_path / "metrics.sqlite"
    whole = file.read_bytes()
    for ruin in (b"no database" * 1000, whole[:100] + b"\xff" * 8000, whole[:100] + os.urandom(len(whole) - 100)):
        file.write_bytes(ruin)
        with pytest.raises(RunError, match=r"metrics\.sqlite: is damaged .*: remove it, and it is made again from"):
            steps(tmp_path)


def test_a_database_of_a_newer_version(tmp_path):
    write(tmp_path, range(2)).close()
    with sqlite3.connect(tmp_path / "metrics.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for use in (steps, MetricsWriter):
        with pytest.raises(RunError, match="is of version 99, this program knows up to 2: update it"):
            use(tmp_path)


def test_an_endless_query_has_a_limit(tmp_path, monkeypatch):
    write(tmp_path, range(2)).close()
    with sqlite3.connect(tmp_path / "metrics.sqlite") as db:
        db.execute("DROP TABLE rows")
        db.execute(
            "CREATE VIEW rows AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, id AS step, 0.0 AS time, 0.0 AS elapsed_s FROM n"
        )
    db.close()
    monkeypatch.setattr(store_module, "QUERY_S", 0.1)
    with pytest.raises(RunError, match="took longer than"):
        MetricsReader(tmp_path).extent()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RunError, match="cannot be opened"):
        MetricsWriter(tmp_path / "none")


def test_too_many_names_and_too_long_ones_are_left_out(tmp_path):
    writer = MetricsWriter(tmp_path)
    writer.write(1, 0.0, {"x" * 1000: 1.0} | {f"m/{number}": 1.0 for number in range(2000)})
    assert len(MetricsReader(tmp_path).names()) == MOST_METRICS
    writer.close()


def test_a_database_of_an_older_version_is_made_again(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(lines({"step": step, "a": 1.0} for step in range(5)))
    write(tmp_path, range(2)).close()
    with sqlite3.connect(tmp_path / "metrics.sqlite") as db:
        db.execute("PRAGMA user_version = 1")
    db.close()
    with pytest.raises(RunError, match=r"of the old version 1\): remove it, and it is made again from metrics\.jsonl"):
        steps(tmp_path)
    MetricsWriter.resume(tmp_path, 2).close()
    assert steps(tmp_path) == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------- a database that is gone


def test_the_export_is_read_once(tmp_path):
    export = tmp_path / "metrics.jsonl"
    good = [{"step": step, "time": "2026-01-01T00:00:01.250Z", "elapsed_s": 0.5, "a": step / 2} for step in range(300)]
    bad = b'nonsense\n[]\n{"step": -1}\n{"step": "x"}\n{"a": 1}\n\xff\n' + b"x" * (1 << 21) + b"\n"
    export.write_bytes(lines(good[:10]) + bad + lines(good[10:]) + b'{"step": 300')
    assert list(MetricsReader(tmp_path).rows()) == good
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "metrics.sqlite"]
    export.unlink()
    assert list(MetricsReader(tmp_path).rows()) == good


def test_while_somebody_trains_nothing_is_made(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(lines([{"step": 7, "a": 1.0}]))
    with hold_lock(tmp_path / "lock"):
        assert steps(tmp_path) == []
        assert not (tmp_path / "metrics.sqlite").exists()
    assert steps(tmp_path) == [7]


def test_where_nothing_can_be_written_nothing_is_left_behind(tmp_path, monkeypatch):
    (tmp_path / "metrics.jsonl").write_bytes(lines([{"step": 7, "a": 1.0}]))
    monkeypatch.setattr(module.os, "link", lambda *paths: (_ for _ in ()).throw(OSError("no links here")))
    assert steps(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_two_who_make_it_at_once(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(lines({"step": step, "a": 1.0} for step in range(2000)))
    readers, found = [MetricsReader(tmp_path) for _ in range(4)], []
    threads = [threading.Thread(target=lambda r=reader: found.append(r.extent().rows)) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert found == [2000] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "metrics.sqlite"]
