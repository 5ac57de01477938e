"""Videos of a fight."""

import pytest

from soulsai.errors import RunError
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.video import record_video
from soulsgym.errors import MisuseError

pytest.importorskip("pygame")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

SMALL = {"size": (480, 360), "step_limit": 4, "seed": 7}
PICTURES = 1 + 4 + 15
"""The start, the steps, and the end for a second and a half."""


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_every_step_at_the_speed_of_the_game(tmp_path, suffix):
    file = tmp_path / f"fight{suffix}"
    summary = record_video(file, ScriptedFighter("idle"), **SMALL)
    assert (summary.outcome, summary.time_s, summary.pictures) == ("time-out", 0.4, PICTURES)
    about = next(imageio_ffmpeg.read_frames(str(file)))
    assert about["source_size"] == (480, 360)
    assert about["fps"] == pytest.approx(10.0)
    assert about["duration"] == pytest.approx(PICTURES / 10, abs=0.11)
    assert about["pix_fmt"].startswith("yuv420p" if suffix == ".mp4" else "bgra")
    assert list(tmp_path.iterdir()) == [file]


def test_pictures_between_the_steps(tmp_path):
    file = tmp_path / "fight.mp4"
    summary = record_video(file, ScriptedFighter("idle"), fps=60, **SMALL)
    assert summary.pictures == 1 + 4 * 6 + 90
    about = next(imageio_ffmpeg.read_frames(str(file)))
    assert about["fps"] == pytest.approx(60.0)
    assert about["duration"] == pytest.approx(summary.pictures / 60, abs=0.05)


@pytest.mark.parametrize("fps", [0, -10, 5, 25, 130])
def test_pictures_a_second_that_are_not_possible(tmp_path, fps):
    with pytest.raises(MisuseError, match=rf"^{fps} pictures a second are not possible; give 10"):
        record_video(tmp_path / "a.mp4", ScriptedFighter("idle"), fps=fps, **SMALL)
    assert not list(tmp_path.iterdir())


def test_it_is_the_first_fight_of_the_evaluation(tmp_path):
    fight = evaluate(ScriptedFighter("idle"), 3, seed=7, no_hit=True)
    summary = record_video(tmp_path / "a.mp4", ScriptedFighter("idle"), seed=7, no_hit=True, size=(480, 360))
    assert summary.time_s == pytest.approx(fight.time_s[0])
    assert summary.killed_by == fight.killed_by[0]
    assert summary.outcome == "died"
    assert summary.sentence.endswith("of their health left.")


def test_an_existing_file_stays(tmp_path):
    file = tmp_path / "fight.mp4"
    file.write_text("mine")
    with pytest.raises(RunError, match="exists; give another name"):
        record_video(file, ScriptedFighter("idle"), **SMALL)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [("a.avi", (480, 360), "ends in '.avi'"), ("a", (480, 360), "ends in ''"), ("a.mp4", (481, 360), "odd")],
)
def test_what_cannot_be_written(tmp_path, name, size, message):
    with pytest.raises(MisuseError, match=message):
        record_video(tmp_path / name, ScriptedFighter("idle"), size=size)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder(tmp_path):
    with pytest.raises(RunError, match="is not there"):
        record_video(tmp_path / "no" / "a.mp4", ScriptedFighter("idle"))


def test_a_fighter_that_fails_leaves_nothing(tmp_path):
    class Broken:
        def begin(self, fights, mask):
            pass

        def act(self, fights):
            raise KeyError("weights")

    with pytest.raises(KeyError):
        record_video(tmp_path / "a.mp4", Broken(), **SMALL)
    assert not list(tmp_path.iterdir())
