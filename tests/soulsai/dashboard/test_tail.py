"""The last known values, from the end of a file alone."""

import pytest

from soulsai.dashboard import tail as tail_module
from soulsai.dashboard.tail import Tail


@pytest.fixture
def file(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_the_last_known_value_of_every_metric(file, kit):
    file.write_bytes(kit.lines([kit.row(0, wins=3.0, q=None), kit.row(1, q=2.0), kit.row(2, q=None)]))
    tail = Tail(file)
    tail.look()
    assert tail.values == {"wins": 3.0, "q": 2.0, "loss/policy": 0.25}
    assert (tail.rows, tail.elapsed_s, tail.updated_s) == (3, 2.0, kit.began_s + 2.5)


def test_shares_of_an_older_row_do_not_stay(file, kit):
    file.write_bytes(kit.lines([kit.row(0, **{"time/save": 0.5, "time/act": 0.5}), kit.row(1, **{"time/act": 1.0})]))
    tail = Tail(file)
    tail.look()
    assert tail.values == {"loss/policy": 0.125, "time/act": 1.0}


def test_it_follows(file, kit):
    tail = Tail(file)
    tail.look()
    assert (tail.rows, tail.values) == (0, {})
    whole = kit.lines(kit.row(number) for number in range(10))
    for end in range(0, len(whole) + 1, 61):
        file.write_bytes(whole[:end])
        tail.look()
        assert tail.rows == whole[:end].count(b"\n")
    file.write_bytes(whole[: len(whole) // 2])
    tail.look()
    assert tail.rows == whole[: len(whole) // 2].count(b"\n")
    file.unlink()
    tail.look()
    assert (tail.rows, tail.values, tail.elapsed_s) == (0, {}, None)


def test_of_a_long_file_only_the_end_is_read(file, kit, monkeypatch):
    monkeypatch.setattr(tail_module, "COUNT_BYTES", 20_000)
    monkeypatch.setattr(tail_module, "END_BYTES", 10_000)
    monkeypatch.setattr(tail_module, "DEEP_BYTES", 100_000)
    file.write_bytes(
        kit.lines(kit.row(number, **({"wins": 1.0} if number in (0, 4_500) else {})) for number in range(5_000))
    )
    tail = Tail(file)
    tail.look()
    assert tail.values == {"loss/policy": 4_999 / 8}
    assert tail.rows == pytest.approx(5_000, rel=0.05)
    tail.deepen()
    assert tail.values == {"loss/policy": 4_999 / 8, "wins": 1.0}
    with file.open("ab") as out:
        out.write(kit.lines([kit.row(5_000, wins=7.0)]))
    tail.look()
    assert tail.values == {"loss/policy": 625.0, "wins": 7.0}
