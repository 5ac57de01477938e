"""Writes a recorded fight as a video file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from soulsai.errors import RunError
from soulsai.runs.files import check_new_file
from soulsgym.actions import ACTION_CONTROLS
from soulsgym.errors import MisuseError
from soulsgym.packages import require
from soulsgym.recordings.recording import Recording
from soulsgym.render import FightRenderer
from soulsgym.render.names import killer_name
from soulsgym.spec import FightSpec
from soulsgym.state import Outcome

SUFFIXES = (".mp4", ".gif")
STEPS_PER_S = 10
"""A step is 0.1 s of the game."""
MOST_FPS = 120
LAST_PICTURE_S = 1.5
"""How long the end of the fight stays."""
BLOCK_PX = 2
"""H.264 with colours at half resolution wants even sizes."""
CONVERSION_LIMIT_S = 600.0
OUTCOMES = {
    Outcome.RUNNING: "time-out",
    Outcome.WON: "won",
    Outcome.DIED: "died",
    Outcome.FELL: "fell",
    Outcome.BROKEN: "broken off",
}


def ending_of(fight: np.void, spec: FightSpec) -> str:
    """How a fight ended, by its last record, in a sentence."""
    outcome, killer = Outcome(int(fight["outcome"])), killer_name(spec, int(fight["killed_by"]))
    by = f" by {killer}" if outcome == Outcome.DIED and killer else ""
    player, boss = fight["player_hp"][0] / fight["player_max_hp"], fight["boss_hp"][0] / fight["boss_max_hp"]
    left = f"player {100 * player:.0f} %, boss {100 * boss:.0f} % of their health left"
    return f"{OUTCOMES[outcome]}{by} after {fight['time_s']:.1f} s, {left}."


def write_video(
    path: Path,
    recording: Recording,
    number: int,
    spec: FightSpec,
    *,
    size: tuple[int, int] = (960, 720),
    fps: int = STEPS_PER_S,
) -> int:
    """Write fight `number` of a recording, of the simulator or of the game, to an .mp4 or .gif, at the game's speed.

    `fps` is 10 or a multiple of it: pictures between the steps make it smooth. The number of pictures is returned.
    """
    check_video(path, size, fps)
    low, high = recording.bounds()[number]
    renderer = FightRenderer(spec, size, fps=fps)
    pictures = 0
    with _writer(path, size, fps) as write:
        for fight, action in zip(recording.fights[low:high], recording.actions[low:high], strict=True):
            for share in shares_of_a_step(fps):
                picture = renderer.draw(fight, ACTION_CONTROLS[action], share)
                write(picture)
                pictures += 1
        for _ in range(round(LAST_PICTURE_S * fps)):
            write(picture)
            pictures += 1
    return pictures


def shares_of_a_step(fps: int) -> list[float]:
    """The moments of a step, as shares of it, at which pictures are made."""
    if not STEPS_PER_S <= fps <= MOST_FPS or fps % STEPS_PER_S:
        raise MisuseError(f"{fps} pictures a second are not possible; give 10, 20, 30 ... or {MOST_FPS}")
    number = fps // STEPS_PER_S
    return [(i + 1) / number for i in range(number)]


def check_video(path: Path, size: tuple[int, int], fps: int) -> None:
    """Refuse a video that cannot be made; asked before a fight is played for it."""
    check_new_file(path, "video", *SUFFIXES)
    if any(side % BLOCK_PX for side in size):
        raise MisuseError(f"picture size {size} is odd, which videos cannot be; give even numbers")
    shares_of_a_step(fps)


@contextmanager
def _writer(path: Path, size: tuple[int, int], fps: float) -> Iterator[Any]:
    """A function that takes pictures; the file gets its name when it is complete."""
    try:
        with TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as folder:
            video = Path(folder) / "fight.mp4"
            with _mp4(video, size, fps) as write:
                yield write
            os.replace(video if path.suffix.lower() == ".mp4" else _gif_of(video), path)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]  # of many lines about ffmpeg
        raise RunError(f"video {path} cannot be written: {reason}; free some space or choose another place") from error


@contextmanager
def _mp4(file: Path, size: tuple[int, int], fps: float) -> Iterator[Any]:
    # Without macro blocks of 16 it would stretch the picture to a multiple of that.
    frames = _imageio_ffmpeg().write_frames(
        str(file), size, fps=fps, codec="libx264", pix_fmt_out="yuv420p", macro_block_size=BLOCK_PX, quality=7,
        ffmpeg_log_level="error", output_params=["-movflags", "+faststart"],
    )  # fmt: skip
    frames.send(None)
    try:
        yield lambda picture: frames.send(np.ascontiguousarray(picture))
    finally:
        frames.close()


def _gif_of(video: Path) -> Path:
    """The same as a GIF, by way of a palette for all of it: a tenth of the time of one palette per picture."""
    palette, gif = video.with_name("palette.png"), video.with_name("fight.gif")
    _ffmpeg("-i", str(video), "-vf", "palettegen=stats_mode=diff", str(palette))
    _ffmpeg("-i", str(video), "-i", str(palette), "-lavfi", "paletteuse=dither=none:diff_mode=rectangle", str(gif))
    return gif


def _ffmpeg(*arguments: str) -> None:
    command = [_imageio_ffmpeg().get_ffmpeg_exe(), "-hide_banner", "-loglevel", "error", "-nostdin", *arguments]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=CONVERSION_LIMIT_S)
    except subprocess.CalledProcessError as error:
        raise OSError(error.stderr.strip().splitlines()[-1] if error.stderr.strip() else "ffmpeg failed") from error
    except subprocess.TimeoutExpired as error:
        raise OSError(f"ffmpeg took more than {CONVERSION_LIMIT_S:.0f} s") from error


def _imageio_ffmpeg() -> Any:
    require("imageio_ffmpeg")
    import imageio_ffmpeg  # type: ignore[import-untyped]

    return imageio_ffmpeg
