"""FightRenderer: a fight as an array of pixels, or in a window."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.packages import require
from soulsgym.spec import FightSpec

if TYPE_CHECKING:
    from soulsgym.render.scene import Window

Picture = npt.NDArray[np.uint8]
MIN_SIZE = (480, 360)
"""Below this the bars and labels would lie on top of each other."""
MIN_WORDLESS = (16, 16)


def check_size(size: tuple[int, int], least: tuple[int, int] = MIN_SIZE) -> None:
    """Refuse a picture that is too small for what is drawn in it."""
    if size[0] < least[0] or size[1] < least[1]:
        raise MisuseError(f"picture size {size} is too small; give at least {least}")


class FightRenderer:
    """Draws one fight; remembers the last second of it for trails and numbers, so use one renderer per fight.

    A record of another fight, or an earlier step, begins again. `draw` needs no screen; only `show` does.
    Without `words` there are no bars and labels, and the picture may be small.
    """

    def __init__(
        self, spec: FightSpec, size: tuple[int, int] = (960, 720), *, fps: float = 10.0, words: bool = True
    ) -> None:
        require("pygame")
        check_size(size, MIN_SIZE if words else MIN_WORDLESS)
        # pygame greets on standard output, which belongs to the user's program.
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        from soulsgym.render.scene import Scene

        self._scene = Scene(spec, size, words=words)
        self._title = spec.boss.name
        self._fps = fps
        self._window: Window | None = None
        self._window_closed = False

    def draw(self, fight: np.void, control: np.void | None = None, share: float = 1.0) -> Picture:
        """The picture of a FIGHT record, height x width x RGB; `control` is what the player pressed last.

        For more pictures than steps, draw a record several times: a `share` of 0.5 is half a step before it.
        """
        return self._scene.pixels(self._scene.paint(fight, control, share))

    def show(self, fight: np.void, control: np.void | None = None, share: float = 1.0) -> None:
        """Show the picture in a window, at most `fps` times a second; does nothing once the user has closed it."""
        from soulsgym.render.scene import Window

        if self._window_closed:
            return
        if self._window is None:
            self._window = Window(self._scene.size, self._title, self._fps)
        self._window_closed = not self._window.show(self._scene.paint(fight, control, share))
        if self._window_closed:
            self.close()

    def to_px(self, x_m: float, y_m: float) -> tuple[float, float]:
        """Where a place of the arena lies in the last picture: pixels to the right and down."""
        return self._scene.to_px((x_m, y_m))

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
