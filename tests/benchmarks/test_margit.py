"""The comparison of Margit with his recordings: what the fit reads and writes."""

import tomllib

import pytest

from benchmarks.margit import changes_of, fitted_moves, loss, nudge, read_knobs, sideways, write_numbers
from soulsgym.recordings.counts import Counts
from soulsgym.spec.fight import lay_over, read_files


@pytest.fixture(scope="module")
def files():
    return read_files("margit")


def test_the_numbers_of_the_file_are_what_is_fitted(files):
    knobs = read_knobs(files.content)
    assert "cane_swing" in knobs.turn
    assert "step_left" not in knobs.turn
    assert not {"hammer_leap", "flurry"} & set(knobs.turn)
    assert set(knobs.arc) <= set(fitted_moves(files.content))


def test_what_is_read_and_written_unchanged_is_the_same_fight(files):
    same = lay_over(files, changes_of(files.content, read_knobs(files.content)), files.boss.path, "same").boss
    own = lay_over(files, {}, files.boss.path, "own").boss
    assert [move.hits for move in same.moves] == [move.hits for move in own.moves]
    assert [move.tracks for move in same.moves] == [move.tracks for move in own.moves]


def test_sideways_motion_adds_up():
    metres = sideways({"end_s": 2.0, "hit": {"cane": {"from_s": 1.0}}}, 0.7)
    assert sum(metres) == pytest.approx(0.7, abs=1e-3)
    assert metres[:4] == [0.0] * 4


def test_only_the_given_numbers_of_a_file_are_written(tmp_path, files):
    file = tmp_path / "margit.toml"
    file.write_bytes(files.boss.path.read_bytes())
    write_numbers(file, {"move": {"cane_swing": {"track": {"aim": {"deg_per_s": 12.5}}}}})
    before, after = (path.read_text().splitlines() for path in (files.boss.path, file))
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert [new for _, new in changed] in ([], ["deg_per_s = 12.5"])
    assert tomllib.loads(file.read_text())["move"]["cane_swing"]["track"]["aim"]["deg_per_s"] == 12.5


def test_a_blow_that_hits_too_often_gets_narrower(files):
    knobs = read_knobs(files.content)
    before = knobs.arc["cane_swing"]

    def counted(hits):
        return Counts({"Attack3000": 100}, {}, {"Attack3000": hits}, 1.0, 1.0, {0.5: 1.0})

    nudge(counted(50), counted(90), files.content, knobs, gain=1.0)
    assert knobs.arc["cane_swing"] < before


def test_the_loss_of_a_recording_with_itself_is_nothing():
    counts = Counts({"a": 1}, {("a", "b"): 1}, {"a": 1}, 1.0, 1.0, {0.5: 1.0})
    assert loss(counts, counts) == 0.0
