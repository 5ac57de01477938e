"""Videos of a fight."""

import pytest

from soulsai.errors import RunError
from soulsai.evaluation import ScriptedFighter, evaluate, video
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsgym.errors import MisuseError
from soulsgym.render.names import move_name
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

pytest.importorskip("pygame")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

SMALL = {"size": (480, 360), "step_limit": 4, "seed": 7}
PICTURES = 1 + 4 + 15
"""The start, the steps, and the end for a second and a half."""


def record_video(file, *, size=(480, 360), fps=10, **settings):
    """The first fight of an evaluation of somebody who does nothing."""
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("idle"), 1, recorder=recorder, **settings)
    return video.write_video(file, recorder.fight(0), 0, load_fight("iudex"), size=size, fps=fps)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_every_step_at_the_speed_of_the_game(tmp_path, suffix):
    file = tmp_path / f"fight{suffix}"
    assert record_video(file, **SMALL) == PICTURES
    about = next(imageio_ffmpeg.read_frames(str(file)))
    assert about["source_size"] == (480, 360)
    assert about["fps"] == pytest.approx(10.0)
    assert about["duration"] == pytest.approx(PICTURES / 10, abs=0.11)
    assert about["pix_fmt"].startswith("yuv420p" if suffix == ".mp4" else "bgra")
    assert list(tmp_path.iterdir()) == [file]


def test_pictures_between_the_steps(tmp_path):
    file = tmp_path / "fight.mp4"
    pictures = record_video(file, fps=60, **SMALL)
    assert pictures == (1 + 4) * 6 + 90
    about = next(imageio_ffmpeg.read_frames(str(file)))
    assert about["fps"] == pytest.approx(60.0)
    assert about["duration"] == pytest.approx(pictures / 60, abs=0.05)


@pytest.mark.parametrize("fps", [0, -10, 5, 25, 130])
def test_pictures_a_second_that_are_not_possible(tmp_path, fps):
    with pytest.raises(MisuseError, match=rf"^{fps} pictures a second are not possible; give 10"):
        record_video(tmp_path / "a.mp4", fps=fps, **SMALL)
    assert not list(tmp_path.iterdir())


def test_the_ending_in_a_sentence():
    recorder = FightRecorder(2)
    found = evaluate(ScriptedFighter("idle"), 2, seed=7, no_hit=True, recorder=recorder)
    last, spec = recorder.fight(1).fights[-1].copy(), load_fight("iudex")
    by = move_name("iudex", found.killed_by[1])
    assert by
    ending = video.ending_of(last, spec)
    assert ending.startswith(f"died by {by} after {found.time_s[1]:.1f} s, player ")
    assert ending.endswith("boss 100 % of their health left.")
    last["outcome"], last["killed_by"] = Outcome.FELL, -1
    assert video.ending_of(last, spec).startswith("fell after ")


def test_an_existing_file_stays(tmp_path):
    file = tmp_path / "fight.mp4"
    file.write_text("mine")
    with pytest.raises(RunError, match="exists; give another name"):
        record_video(file, **SMALL)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [("a.avi", (480, 360), "ends in '.avi'"), ("a", (480, 360), "ends in ''"), ("a.mp4", (481, 360), "odd")],
)
def test_what_cannot_be_written(tmp_path, name, size, message):
    with pytest.raises(MisuseError, match=message):
        record_video(tmp_path / name, size=size)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder(tmp_path):
    with pytest.raises(RunError, match="is not there"):
        record_video(tmp_path / "no" / "a.mp4")


def test_what_cannot_be_converted_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("ffmpeg failed\nFFMPEG COMMAND: ...")

    monkeypatch.setattr(video, "_ffmpeg", fail)
    with pytest.raises(RunError, match="cannot be written: ffmpeg failed; free some space or choose another place"):
        record_video(tmp_path / "a.gif", **SMALL)
    assert not list(tmp_path.iterdir())
