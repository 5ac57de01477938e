"""Pictures of the game that show the very tick at which its clock stands."""

from __future__ import annotations

import logging

import numpy as np
import numpy.typing as npt

from soulsgym.errors import GameGone, GameHung, GameNotFound
from soulsgym.game.attach import Game
from soulsgym.game.capture import Camera
from soulsgym.game.pacing import await_queries
from soulsgym.game.waiting import REAL_TIME, TimeSource

log = logging.getLogger(__name__)

QUESTIONS = 3
"""Questions for the time, one in a turn of the game's loop, after which its last tick is on the screen: the turn under
way may have drawn already, the next one draws, and when the one after has begun that is shown."""
DRAWN_LIMIT_S = 5.0
"""A game that does not get there hangs; beside busy programs three turns have taken a quarter of a second."""


class Frames:
    """Pictures of one game's window, `size` being height and width.

    A game whose clock stands still goes on asking for the time in every turn of its loop, and draws the
    same moment again and again. So we count its questions: after enough of them what it drew is what its memory says.
    """

    def __init__(self, game: Game, size: tuple[int, int], *, source: TimeSource = REAL_TIME) -> None:
        self._game, self._camera, self._time = game, Camera(game.window, size), source
        self._last: npt.NDArray[np.uint8] | None = None

    def frame(self) -> npt.NDArray[np.uint8]:
        """The picture of the tick at which the clock stands; of a game that has ended or hangs, the last one."""
        try:
            await_queries(self._game.clock, self._time, QUESTIONS, limit_s=DRAWN_LIMIT_S)
            picture = self._camera.picture()
        except (GameGone, GameHung, GameNotFound) as error:
            if self._last is None:
                raise
            log.warning("the picture is the last one that the game has drawn: %s", error)
            return self._last.copy()
        self._last = picture
        return picture.copy()
