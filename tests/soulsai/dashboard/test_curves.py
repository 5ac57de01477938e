"""Curves: what the page gets of a run's metrics, in whatever state their files are."""

import math

import numpy as np
import pytest

from soulsai.dashboard.curves import Curves, shorten
from soulsai.errors import RunError
from soulsai.runs.metrics import MetricsWriter

ALL = ("step", -math.inf, math.inf, 100)


@pytest.fixture
def folder(tmp_path, kit):
    kit.metrics(tmp_path, kit.lines(kit.row(number) for number in range(50)))
    return tmp_path


def test_rows_that_come_are_seen(tmp_path):
    curves = Curves(tmp_path)
    assert curves.series(["loss/q"], *ALL)["rows"] == 0
    writer = MetricsWriter(tmp_path)
    for step in range(3):
        writer.write(step, 0.0, {"loss/q": 1.0})
        assert (curves.extent().rows, curves.extent().step) == (step + 1, step)
        assert curves.latest() == {"loss/q": (step, 1.0)}
    writer.close()


def test_damage_is_told_and_breaks_only_the_curves(folder):
    (folder / "metrics.sqlite").write_bytes(b"ruins" * 1000)
    curves = Curves(folder)
    assert (curves.names(), curves.latest(), curves.extent().rows) == ([], {}, 0)
    assert "is damaged" in curves.problem
    with pytest.raises(RunError, match="is damaged"):
        curves.series(["loss/policy"], *ALL)
    (folder / "metrics.sqlite").unlink()  # the way out that the message tells
    assert curves.series(["loss/policy"], *ALL)["rows"] == 50
    assert (curves.extent().rows, curves.problem) == (50, "")


def test_files_that_lead_elsewhere_are_not_read(folder):
    curves = Curves(folder, lambda: False)
    assert (curves.names(), curves.extent().rows, curves.series(["loss/policy"], *ALL)["rows"]) == ([], 0, 0)
    assert list(curves.csv(["loss/policy"], "step", -math.inf, math.inf)) == [b"step,loss/policy\n"]
    assert not (folder / "metrics.sqlite").exists()


def test_as_many_digits_as_matter():
    values = np.array([1 / 3, 123456789.0, 1.23456789e-12, 0.0, np.nan, np.inf, -2.5e300])
    assert shorten(values)[:4] == [0.3333333, 123456789.0, 1.234568e-12, 0.0]
    assert math.isnan(shorten(values)[4])
    assert shorten(values)[5:] == [math.inf, -2.5e300]
