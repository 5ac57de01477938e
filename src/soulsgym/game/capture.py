"""Pictures of a game in the size that an agent wants, and of the very tick at which its clock stands."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from soulsgym.errors import GameError, GameGone, GameHung, GameNotFound, MisuseError
from soulsgym.game.pacing import await_queries
from soulsgym.game.waits import REAL_TIME, TimeSource
from soulsgym.packages import install_command

if TYPE_CHECKING:
    from soulsgym.game.attach import Game

log = logging.getLogger(__name__)

SIZE = (90, 160)
"""Height and width of a picture, unless told otherwise."""
QUESTIONS = 3
"""Questions for the time, one in a turn of the game's loop, after which its last tick is on the screen: the turn under
way may have drawn already, the next one draws, and when the one after has begun that is shown."""
DRAWN_LIMIT_S = 5.0
"""A game that does not get there hangs; beside busy programs three turns have taken a quarter of a second."""


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    """Height and width of a picture; a MisuseError if it has no pixels."""
    height, width = size
    if height < 1 or width < 1:
        raise MisuseError(f"a picture of {height} x {width} pixels has no pixels; give a height and a width")
    return int(height), int(width)


def resize(image: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """An image of (height, width, 3) in another size: means of whole blocks, or else Pillow's bilinear filter."""
    height, width = size
    if image.shape[:2] == (height, width):
        return image
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        install = install_command("game")
        raise GameError(f"pillow, which resizes pictures, is not installed; run: {install}") from error
    whole_blocks = image.shape[0] % height == 0 and image.shape[1] % width == 0
    how = Image.Resampling.BOX if whole_blocks else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(image).resize((width, height), how)).copy()


class Frames:
    """Pictures of one game's window, `size` being height and width.

    A game whose clock stands still goes on asking for the time in every turn of its loop, and draws the
    same moment again and again. So we count its questions: after enough of them what it drew is what its memory says.
    """

    def __init__(self, game: Game, size: tuple[int, int], *, source: TimeSource = REAL_TIME) -> None:
        self._game, self._size, self._time = game, check_size(size), source
        self._last: npt.NDArray[np.uint8] | None = None

    def frame(self) -> npt.NDArray[np.uint8]:
        """The picture of the tick at which the clock stands; of a game that has ended or hangs, the last one."""
        try:
            await_queries(self._game.clock, self._time, QUESTIONS, limit_s=DRAWN_LIMIT_S)
            picture = resize(self._game.window.grab(), self._size)
        except (GameGone, GameHung, GameNotFound) as error:
            if self._last is None:
                raise
            log.warning("the picture is the last one that the game has drawn: %s", error)
            return self._last.copy()
        self._last = picture
        return picture.copy()
