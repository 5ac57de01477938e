"""Histories: files that grow, shrink, vanish, are damaged, or are very long."""

import json
import threading
import time
from functools import partial

import numpy as np
import pytest

from soulsai.dashboard import history as history_module
from soulsai.dashboard.cache import ColumnCache
from soulsai.dashboard.follower import LONGEST_LINE, Follower
from soulsai.dashboard.history import Histories, History
from soulsai.dashboard.sketch import sketch

ALL = (-np.inf, np.inf)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "metrics.jsonl"


def series(history, name="loss/policy", axis="step", low=-np.inf, high=np.inf, points=5_000):
    return history.series([name], axis, low, high, points).series[name]


def wait_until(condition, limit_s=120.0):
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.01)


def complete(history):
    def is_whole():
        return history.series([], "step", *ALL, 2).complete

    wait_until(is_whole)
    return history


def test_a_file_that_grows(file, kit):
    history = History(file)
    assert history.series(["loss/policy"], "step", *ALL, 10).rows == 0
    file.write_bytes(kit.lines(kit.row(number) for number in range(3)))
    assert series(history) == {"x": [0, 10, 20], "y": [0.0, 0.125, 0.25]}
    with file.open("ab") as out:
        out.write(kit.lines([kit.row(3)]))
    assert series(history)["x"] == [0, 10, 20, 30]


def test_half_a_line_waits_for_its_other_half(file, kit):
    whole = kit.lines(kit.row(number) for number in range(3))
    history = History(file)
    for end in range(len(whole) - 150, len(whole) + 1, 7):
        file.write_bytes(whole[:end])
        assert len(series(history)["x"]) == whole[:end].count(b"\n")
    file.write_bytes(whole)
    assert series(history)["x"] == [0, 10, 20]
    assert history.progress() == (3, 1.0, 0)


@pytest.mark.parametrize(
    "bad",
    [
        b"{\n",
        b"not json\n",
        b"\n",
        b"[]\n",
        b'{"step": 5}\n',
        b'{"step": null, "time": "2026-01-01T00:00:00Z"}\n',
        b'{"step": "a", "time": "2026-01-01T00:00:00Z"}\n',
        b'{"step": 1, "time": "2026-01-01T00:00:00Z", "loss/policy": {"a": 1}}\n',
        b"\xff\xfe\x00\n",
        b"[" * 5_000 + b"\n",
        b"\r\r\r\n",
    ],
)
def test_damaged_lines_are_skipped_and_counted(file, kit, bad):
    file.write_bytes(kit.lines([kit.row(0)]) + bad + kit.lines([kit.row(2), kit.row(3)]))
    history = History(file)
    assert series(history)["x"] == [0, 20, 30]
    assert history.progress() == (3, 1.0, 1)
    with file.open("ab") as out:
        out.write(kit.lines([kit.row(4)]))
    assert series(history)["x"] == [0, 20, 30, 40]


def test_a_line_without_end_does_not_fill_the_memory(file, kit):
    file.write_bytes(kit.lines([kit.row(0)]) + b"x" * (3 * LONGEST_LINE))
    follower = Follower(file)
    follower.read_on()
    assert len(follower._half) <= LONGEST_LINE
    with file.open("ab") as out:
        out.write(b"yyy\n" + kit.lines([kit.row(5)]))
    follower.read_on()
    assert follower.damaged == 1
    assert follower.table.mark(1)[0] == 50


def test_values_that_are_no_numbers(file, kit):
    rows = [kit.row(0, q=None), kit.row(1, q="text"), kit.row(2, q=2.0), kit.row(3)]
    file.write_bytes(kit.lines(rows))
    found = series(History(file), "q")
    assert found["x"] == [0, 10, 20]
    np.testing.assert_array_equal(found["y"], [np.nan, np.nan, 2.0])


def test_a_resumed_run_cuts_its_file(file, kit):
    rows = [kit.row(number) for number in range(50)]
    file.write_bytes(kit.lines(rows))
    history = History(file)
    assert len(series(history)["x"]) == 50
    file.write_bytes(kit.lines(rows[:20]))
    assert series(history)["x"][-1] == 190
    with file.open("ab") as out:
        out.write(kit.lines([kit.row(20, **{"loss/policy": 7.0})]))
    assert series(history)["y"][-1] == 7.0


@pytest.mark.parametrize("kept", [0, 1, 17, 49])
@pytest.mark.parametrize("more", [1, 200])
def test_a_cut_is_noticed_even_if_the_file_has_grown_past_it_since(file, kit, kept, more):
    rows = [kit.row(number) for number in range(50)]
    file.write_bytes(kit.lines(rows))
    history = History(file)
    series(history)
    # Of the same length, so that every line begins where another began: a second later only.
    others = [kit.row(number, time=kit.row(number + 1)["time"], **{"loss/policy": 1000 + number / 8}) for number in
              range(kept, kept + more)]  # fmt: skip
    file.write_bytes(kit.lines(rows[:kept] + others))
    found = series(history)
    assert found["x"] == [10 * number for number in range(kept + more)]
    assert found["y"] == [number / 8 for number in range(kept)] + [1000 + n / 8 for n in range(kept, kept + more)]


def test_a_file_that_vanishes_and_comes_back(file, kit):
    file.write_bytes(kit.lines(kit.row(number) for number in range(5)))
    history = History(file)
    assert len(series(history)["x"]) == 5
    file.unlink()
    assert history.series(["loss/policy"], "step", *ALL, 10).series == {"loss/policy": {"x": [], "y": []}}
    assert history.names() == []
    file.write_bytes(kit.lines(kit.row(number) for number in range(2)))
    assert series(history)["x"] == [0, 10]


def test_another_file_in_its_place(file, tmp_path, kit):
    file.write_bytes(kit.lines(kit.row(number) for number in range(30)))
    history = History(file)
    series(history)
    other = tmp_path / "other"
    other.write_bytes(kit.lines(kit.row(number + 1_000) for number in range(90)))
    other.replace(file)
    assert series(history)["x"] == [10 * (number + 1_000) for number in range(90)]


def test_axes(file, kit):
    rows = [kit.row(number, game_hours=number / 4) if number % 2 else kit.row(number) for number in range(6)]
    file.write_bytes(kit.lines(rows))
    history = History(file)
    assert series(history, axis="elapsed_s")["x"] == [0, 1, 2, 3, 4, 5]
    assert series(history, axis="time")["x"] == [kit.began_s + number + 0.5 for number in range(6)]
    assert series(history, axis="game_hours")["x"] == [0.0, 0.25, 0.25, 0.75, 0.75, 1.25]
    assert series(history, axis="elapsed_s", low=2, high=4)["x"] == [2, 3, 4]
    assert series(history, axis="step", low=11, high=29)["x"] == [20]
    assert series(history, low=1e9)["x"] == []


def test_an_axis_that_nobody_wrote(file, kit):
    file.write_bytes(kit.lines([kit.row(0)]))
    assert series(History(file), axis="game_hours") == {"x": [], "y": []}
    assert series(History(file), "nobody/wrote") == {"x": [], "y": []}


def test_a_clock_that_was_set_back(file, kit):
    times = [0, 1, 2, 1, 2, 3]
    file.write_bytes(kit.lines(kit.row(n, time=kit.row(t)["time"]) for n, t in enumerate(times)))
    history = History(file)
    assert series(history, axis="time", low=kit.began_s + 2)["y"] == [n / 8 for n in (2, 3, 4, 5)]


def big_lines(count, first=0):
    out = []
    for number in range(first, first + count):
        about = f'{{"step":{number},"time":"2026-11-{1 + number // 86400:02d}T{number // 3600 % 24:02d}:'
        out.append(
            f'{about}{number // 60 % 60:02d}:{number % 60:02d}.000Z","elapsed_s":{number}.0,'
            f'"loss/policy":{number / 1000},"loss/value":{(number % 97) / 7},"wins":{number}.0}}\n'
        )
    return "".join(out).encode()


def test_200_000_rows_are_answered_at_once_and_read_soon(file, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(History, "_may_go_on", lambda self: gate.wait(20.0))
    monkeypatch.setattr(history_module, "sketch", partial(sketch, limit_s=60.0))
    file.write_bytes(big_lines(200_000))
    history = History(file)
    began_s = time.thread_time()
    first = history.series(["loss/policy", "wins"], "step", *ALL, 800)
    took_s = time.thread_time() - began_s
    assert not first.complete
    assert took_s < 2.0
    assert abs(first.rows - 200_000) < 10_000
    x, y = (np.array(first.series["loss/policy"][axis]) for axis in "xy")
    assert len(x) > 300
    assert x[-1] == pytest.approx(199_999, abs=2_000)
    np.testing.assert_allclose(y, x / 1000, atol=3.0)
    assert 0.0 <= history.progress()[1] < 1.0
    gate.set()
    complete(history)
    whole = history.series(["loss/policy"], "step", *ALL, 800)
    assert (whole.rows, whole.complete, history.progress()) == (200_000, True, (200_000, 1.0, 0))
    assert whole.series["loss/policy"]["high"][-1] == 199.999
    began_s = time.thread_time()
    for _ in range(10):
        history.series(["loss/policy", "loss/value", "wins"], "step", *ALL, 800)
    assert (time.thread_time() - began_s) / 10 < 0.1
    zoomed = series(history, low=100_000, high=100_300)
    assert zoomed["x"] == list(range(100_000, 100_301))


def test_rows_that_come_while_a_long_file_is_read(file, monkeypatch):
    monkeypatch.setattr(history_module, "AT_ONCE_BYTES", 100_000)
    file.write_bytes(big_lines(20_000))
    gate = threading.Event()
    monkeypatch.setattr(History, "_may_go_on", lambda self: gate.wait(20.0))
    history = History(file)
    assert not history.series([], "step", *ALL, 2).complete
    with file.open("ab") as out:
        out.write(big_lines(10, 20_000))
    assert series(history)["x"][-10:] == list(range(20_000, 20_010))
    gate.set()
    complete(history)
    assert series(history, low=19_000)["x"] == list(range(19_000, 20_010))


def test_a_cut_while_a_long_file_is_read(file, monkeypatch):
    monkeypatch.setattr(history_module, "AT_ONCE_BYTES", 100_000)
    whole = big_lines(20_000)
    file.write_bytes(whole)
    gate = threading.Event()
    monkeypatch.setattr(History, "_may_go_on", lambda self: gate.wait(20.0))
    history = History(file)
    series(history)
    kept = whole[: whole.index(b'{"step":12000,')]
    file.write_bytes(kept + big_lines(5, 900_000))
    x = series(history)["x"]
    assert x[-5:] == list(range(900_000, 900_005))
    assert x[-6] < 12_000
    gate.set()
    complete(history)
    assert history.series([], "step", *ALL, 2).rows == 12_005
    assert series(history, low=11_990)["x"] == [*range(11_990, 12_000), *range(900_000, 900_005)]


def test_after_a_cut_far_back_nobody_waits_for_all_that_came_since(file, monkeypatch):
    monkeypatch.setattr(history_module, "AT_ONCE_BYTES", 300_000)
    history = History(file)
    for first in range(0, 30_000, 2_000):
        with file.open("ab") as out:
            out.write(big_lines(2_000, first))
        assert history.series([], "step", *ALL, 2).complete
    whole = file.read_bytes()
    kept = whole[: whole.index(b'{"step":1000,')]
    file.write_bytes(kept + big_lines(29_100, 100_000))
    gate = threading.Event()
    monkeypatch.setattr(History, "_may_go_on", lambda self: gate.wait(20.0))
    assert not history.series([], "step", *ALL, 2).complete
    gate.set()
    complete(history)
    assert history.series([], "step", *ALL, 2).rows == 30_100
    assert series(history, low=998, high=100_002)["x"] == [998, 999, 100_000, 100_001, 100_002]


def test_a_history_too_long_for_the_memory_is_answered_from_some_rows(file, monkeypatch):
    monkeypatch.setattr(history_module, "AT_ONCE_BYTES", 100_000)
    file.write_bytes(big_lines(60_000))
    history = History(file, most_bytes=1 << 20)
    series(history)
    wait_until(lambda: history._too_long and history._thread is None)
    answer = history.series(["wins"], "step", *ALL, 800)
    assert not answer.complete
    assert len(answer.series["wins"]["x"]) > 300
    assert history.nbytes < 3 << 20
    with file.open("ab") as out:
        out.write(big_lines(3, 60_000))
    assert series(history, "wins")["x"][-3:] == [60_000, 60_001, 60_002]


def test_a_sketch_of_a_slow_disk_is_coarse_but_everywhere(file):
    file.write_bytes(big_lines(50_000))
    follower, length = sketch(file, limit_s=0.0)
    assert follower.table.rows > 100  # the end is always there
    follower, length = sketch(file, limit_s=60.0)
    steps = np.array([follower.table.mark(number)[0] for number in range(follower.table.rows)])
    assert (np.diff(steps) > 0).all()
    assert np.diff(steps).max() < 50_000 / 500
    assert length == pytest.approx(file.stat().st_size / 50_000, rel=0.05)


def test_a_kept_history_is_there_at_once(file, tmp_path, monkeypatch):
    monkeypatch.setattr(history_module, "AT_ONCE_BYTES", 100_000)
    cache = ColumnCache(tmp_path / "cache", least_bytes=0)
    file.write_bytes(big_lines(20_000) + json.dumps({"step": 20_000, "time": "2026-12-01T00:00:00Z"}).encode() + b"\n")
    complete(History(file, cache))
    wait_until(lambda: list((tmp_path / "cache").glob("*.columns")))
    with file.open("ab") as out:
        out.write(big_lines(10, 20_001))
    table, position = cache.find(file)
    assert table.rows == 20_001
    assert position < file.stat().st_size
    again = complete(History(file, cache))
    fresh = complete(History(file))
    for name in ("loss/policy", "wins"):
        assert series(again, name) == series(fresh, name)
    assert again.series([], "step", *ALL, 2).rows == 20_011


def test_a_kept_history_of_what_was_cut_since_is_corrected(file, tmp_path, monkeypatch):
    monkeypatch.setattr(history_module, "AT_ONCE_BYTES", 100_000)
    cache = ColumnCache(tmp_path / "cache", least_bytes=0)
    whole = big_lines(20_000)
    file.write_bytes(whole)
    complete(History(file, cache))
    wait_until(lambda: list((tmp_path / "cache").glob("*.columns")))
    file.write_bytes(whole[: whole.index(b'{"step":12000,')] + big_lines(9_000, 500_000))
    found = complete(History(file, cache))
    assert found.series([], "step", *ALL, 2).rows == 21_000
    assert series(found, low=11_998, high=500_001)["x"] == [11_998, 11_999, 500_000, 500_001]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8, b"\x05\0\0\0\0\0\0\0{}", None])
def test_a_damaged_cache_is_not_used(file, tmp_path, damage, kit):
    cache = ColumnCache(tmp_path / "cache", least_bytes=0)
    file.write_bytes(kit.lines(kit.row(number) for number in range(100)))
    history = History(file)
    series(history)
    cache.keep(file, history._whole.table, history._whole.position, threading.Lock())
    (kept,) = (tmp_path / "cache").iterdir()
    assert cache.find(file)[0].rows == 100
    kept.write_bytes(kept.read_bytes()[:-9] if damage is None else damage)
    assert cache.find(file) is None


def test_a_cache_that_cannot_be_written_is_not_used(file, tmp_path, kit):
    (tmp_path / "cache").write_text("a file where the folder should be")
    file.write_bytes(kit.lines([kit.row(0)]))
    cache = ColumnCache(tmp_path / "cache", least_bytes=0)
    history = History(file, cache)
    series(history)
    cache.keep(file, history._whole.table, history._whole.position, threading.Lock())
    assert cache.find(file) is None


def test_old_caches_are_removed(file, tmp_path, monkeypatch, kit):
    from soulsai.dashboard import cache as cache_module

    monkeypatch.setattr(cache_module, "MOST_BYTES", 1)
    cache = ColumnCache(tmp_path / "cache", least_bytes=0)
    for number in range(3):
        file.write_bytes(kit.lines([kit.row(number)]))
        history = History(file)
        series(history)
        cache.keep(file, history._whole.table, history._whole.position, threading.Lock())
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_histories_nobody_looks_at_are_dropped(tmp_path, kit):
    now_s = [time.monotonic()]
    histories = Histories(clock=lambda: now_s[0])
    files = [tmp_path / name for name in "ab"]
    for file in files:
        file.write_bytes(kit.lines([kit.row(0)]))
        series(histories.of(file))
    assert histories.of(files[0]) is histories.of(files[0])
    now_s[0] += history_module.FORGET_S - 1.0
    histories.tidy()
    assert histories.known(files[0]) is not None
    now_s[0] += 60.0
    histories.tidy()
    assert histories.known(files[0]) is None
    assert histories.known(files[1]) is None


def test_where_memory_is_short_the_oldest_go(tmp_path, monkeypatch, kit):
    monkeypatch.setattr(history_module, "MOST_BYTES", 1)
    histories = Histories()
    files = [tmp_path / name for name in "ab"]
    for file in files:
        file.write_bytes(kit.lines([kit.row(0)]))
        series(histories.of(file))
    histories.tidy()
    assert [histories.known(file) is not None for file in files] == [False, True]


def test_names_beyond_all_bounds_are_left_out(file, kit):
    from soulsai.dashboard.table import MOST_COLUMNS

    file.write_bytes(kit.lines(kit.row(n, **{f"x{n}": 1.0, "y" * 300: 2.0}) for n in range(MOST_COLUMNS + 100)))
    assert len(History(file).names()) == MOST_COLUMNS


def test_digits():
    from soulsai.dashboard.table import shortened

    found = shortened(np.array([123456789.0, 0.123456789, -1.23456789e-20, 0.0, np.nan, 1e300, 5e-324]))
    assert found[:4] == [123456789.0, 0.1234568, -1.234568e-20, 0.0]
    assert np.isnan(found[4])
    assert found[5] == 1e300
    assert np.isfinite(found[6])
