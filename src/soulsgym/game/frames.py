"""Pictures of the game that show the very tick at which its clock stands."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from soulsgym.game.attach import Game
from soulsgym.game.capture import Camera

QUESTIONS = 3
"""Questions for the time, one in a turn of the game's loop, after which its last tick is on the screen: the turn under
way may have drawn already, the next one draws, and when the one after has begun that is shown."""
DRAWN_LIMIT_S = 0.25
LOOK_EVERY_S = 0.0005


class Frames:
    """Pictures of one game's window, `size` being height and width.

    A game whose clock stands still goes on asking for the time in every turn of its loop, and draws the
    same moment again and again. So we count its questions: after enough of them what it drew is what its memory says.
    """

    def __init__(self, game: Game, size: tuple[int, int]) -> None:
        self._game, self._camera = game, Camera(game.window, size)

    def frame(self) -> npt.NDArray[np.uint8]:
        """The picture of the tick at which the clock stands."""
        clock = self._game.clock
        enough = clock.queries + QUESTIONS
        deadline = time.monotonic() + DRAWN_LIMIT_S
        while clock.queries < enough and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        return self._camera.picture()
