"""Sinks: rows on disk, going on after a stop, and failures that do not disturb."""

import errno
import json
import re

import pytest

from soulsai.errors import RunError
from soulsai.runs.metrics import MetricsReader
from soulsai.telemetry.sinks import MOST_UNDECLARED, JsonlSink, Sinks, TensorBoardSink, open_sinks, resume_sinks


def rows(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def without_time(file):
    return [{name: value for name, value in row.items() if name != "time"} for row in rows(file)]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_a_row(file):
    sink = JsonlSink(file)
    sink.write(10, 1.23456, {"loss/q": 0.1, "updates": 3})
    row = rows(file)[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row.pop("time"))
    assert row == {"step": 10, "elapsed_s": 1.235, "loss/q": 0.1, "updates": 3.0}
    assert sink.position() == file.stat().st_size
    sink.close()


def test_what_is_no_number_is_null(file):
    JsonlSink(file).write(1, 0.0, {"loss/q": float("nan"), "q/mean": float("inf")})
    assert (rows(file)[0]["loss/q"], rows(file)[0]["q/mean"]) == (None, None)
    assert "NaN" not in file.read_text()


def test_numbers_of_other_libraries(file):
    torch, np = pytest.importorskip("torch"), pytest.importorskip("numpy")
    JsonlSink(file).write(np.int64(1), 0.0, {"loss/q": torch.tensor(0.5), "q/mean": np.float32(0.25)})
    assert rows(file)[0]["step"] == 1
    assert (rows(file)[0]["loss/q"], rows(file)[0]["q/mean"]) == (0.5, 0.25)


def test_resumed_file_is_as_if_never_stopped(file, tmp_path):
    whole = tmp_path / "whole.jsonl"
    sink = JsonlSink(whole)
    for step in range(4):
        sink.write(step, step / 2, {"loss/q": step})

    sink = JsonlSink(file)
    for step in range(2):
        sink.write(step, step / 2, {"loss/q": step})
    position = sink.position()
    sink.write(2, 1.0, {"loss/q": 99})
    with file.open("ab") as stream:
        stream.write(b'{"step": 3, "lo')  # killed here
    sink = JsonlSink.resume(file, position)
    assert sink.position() == position
    for step in range(2, 4):
        sink.write(step, step / 2, {"loss/q": step})
    assert without_time(file) == without_time(whole)
    assert sink.position() == file.stat().st_size


def test_resuming_a_file_shorter_than_the_position_keeps_whole_rows(file):
    sink = JsonlSink(file)
    for step in range(3):
        sink.write(step, 0.0, {})
    position = sink.position()
    file.write_bytes(file.read_bytes()[:-5])
    assert JsonlSink.resume(file, position).position() == file.stat().st_size
    assert [row["step"] for row in rows(file)] == [0, 1]


def test_resuming_without_a_file(file):
    assert JsonlSink.resume(file, 100).position() == 0


def test_file_that_cannot_be_made(tmp_path):
    with pytest.raises(RunError, match=r"metrics\.jsonl: cannot be written"):
        JsonlSink(tmp_path / "none" / "metrics.jsonl")


def scalars(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_reads_what_was_written(tmp_path):
    sink = TensorBoardSink(tmp_path / "tb")
    for step in range(3):
        sink.write(step, 0.0, {"loss/q": step / 2, "q/mean": 1.0})
    sink.close()
    assert sink.position() is None
    assert scalars(tmp_path / "tb") == {
        "loss/q": [(0, 0.0), (1, 0.5), (2, 1.0)],
        "q/mean": [(0, 1.0), (1, 1.0), (2, 1.0)],
    }


def test_tensorboard_hides_rows_after_the_checkpoint(tmp_path):
    first = TensorBoardSink(tmp_path)
    for step in range(4):
        first.write(step, 0.0, {"loss/q": 1.0})
    second = TensorBoardSink(tmp_path, purge_step=2)  # the first was killed: never closed
    second.write(2, 0.0, {"loss/q": 2.0})
    assert scalars(tmp_path)["loss/q"] == [(0, 1.0), (1, 1.0), (2, 2.0)]


def test_tensorboard_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(RunError, match="cannot be written"):
        TensorBoardSink(tmp_path / "x")


class Broken:
    name = "broken"

    def __init__(self, fails_in="write"):
        self.calls = []
        self.fails_in = fails_in

    def _called(self, what):
        self.calls.append(what)
        if what == self.fails_in:
            raise OSError(errno.ENOSPC, "No space left on device")

    def write(self, step, time_s, values):
        self._called("write")

    def close(self):
        self._called("close")

    def position(self):
        return 7


@pytest.mark.parametrize("call", ["write", "close"])
def test_a_failing_sink_is_reported_once_and_switched_off(file, call):
    warnings, broken = [], Broken(call)
    sinks = Sinks([broken, JsonlSink(file)], warnings.append)
    for step in range(3):
        sinks.write(step, 0.0, {"loss/q": 1.0})
    sinks.close()
    assert len(warnings) == 1
    assert "metrics no longer go to broken: " in warnings[0]
    assert "No space left" in warnings[0]
    assert broken.calls.count(call) == 1
    assert [row["step"] for row in rows(file)] == [0, 1, 2]


def test_positions_of_all(file):
    sinks = Sinks([Broken(), JsonlSink(file)], lambda _: None)
    sinks.write(1, 0.0, {})
    assert sinks.position() == {"broken": 7, "jsonl": file.stat().st_size}
    json.dumps(sinks.position())


def test_a_metric_without_a_declaration_is_told_of_once_and_written(file):
    warnings = []
    sinks = Sinks([JsonlSink(file)], warnings.append)
    for step in range(3):
        sinks.write(step, 0.0, {"loss/qq": 1.0, "loss/q": 2.0})
    assert warnings == ["metric 'loss/qq' is not declared; did you mean loss/q?"]
    assert [row["loss/qq"] for row in rows(file)] == [1.0] * 3
    for number in range(100):
        sinks.write(9, 0.0, {f"mine/{number}": 1.0})
    assert len(warnings) == MOST_UNDECLARED


def test_both_files_go_on_from_the_same_row(tmp_path):
    sinks = Sinks(open_sinks(tmp_path), pytest.fail)
    sinks.write(1, 0.5, {"loss/q": 1.0})
    position = json.loads(json.dumps(sinks.position()))
    sinks.write(2, 1.0, {"loss/q": 9.0})
    sinks.close()
    sinks = Sinks(resume_sinks(tmp_path, position), pytest.fail)
    sinks.write(2, 1.0, {"loss/q": 2.0})
    sinks.close()
    exported = rows(tmp_path / "metrics.jsonl")
    found = list(MetricsReader(tmp_path).rows())
    assert [row["loss/q"] for row in exported] == [row["loss/q"] for row in found] == [1.0, 2.0]
    assert [row["step"] for row in found] == [1, 2]


def test_a_checkpoint_of_an_older_version_has_no_position_in_the_database(tmp_path):
    sink = JsonlSink(tmp_path / "metrics.jsonl")
    sink.write(1, 0.5, {"loss/q": 1.0})
    position = {"jsonl": sink.position()}
    sink.write(2, 1.0, {"loss/q": 9.0})
    sink.close()
    assert MetricsReader(tmp_path).extent().rows == 2  # imported by whoever looked at it
    Sinks(resume_sinks(tmp_path, position), pytest.fail).close()
    assert [row["step"] for row in MetricsReader(tmp_path).rows()] == [1]


@pytest.mark.faults
def test_a_full_disk(tmp_path):
    full = tmp_path / "full"
    try:
        full.symlink_to("/dev/full")
        full.open("ab").close()
    except OSError:
        pytest.skip("there is no /dev/full")
    warnings = []
    sinks = Sinks([JsonlSink(full)], warnings.append)
    for step in range(2):
        sinks.write(step, 0.0, {"loss/q": 1.0})
    assert len(warnings) == 1
    assert "No space left on device" in warnings[0]
    assert sinks.position() == {"jsonl": 0}
