"""Scene: paints the whole picture of a fight, from the ground up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pygame

from soulsgym.render import palette
from soulsgym.render.blows import draw_boss_blows, draw_player_blow
from soulsgym.render.bodies import draw_boss, draw_camera, draw_intent, draw_player, draw_trails
from soulsgym.render.canvas import Canvas
from soulsgym.render.ground import Ground
from soulsgym.render.hud import BOTTOM_PX, TOP_PX, Hud
from soulsgym.render.plan import Point, Stand
from soulsgym.render.story import Story
from soulsgym.render.view import View
from soulsgym.spec import FightSpec

CLOSE_M, CLOSE_AROUND_M = 9.5, 3.6
"""Pictures without words are small ones: they go nearer."""


class Scene:
    """Paints pictures of one fight after another."""

    def __init__(self, spec: FightSpec, size: tuple[int, int], *, words: bool = True) -> None:
        self.size = size
        self._spec = spec
        self._view = (
            View(spec.arena, size, top_px=TOP_PX, bottom_px=BOTTOM_PX)
            if words
            else View(spec.arena, size, top_px=0.0, bottom_px=0.0, nearest_m=CLOSE_M, around_m=CLOSE_AROUND_M)
        )
        self._canvas = Canvas(size, self._view)
        self._ground = Ground(spec.arena)
        self._story = Story(spec)
        self._hud = Hud(spec, size) if words else None
        self._picture = pygame.Surface(size, depth=32)

    def paint(self, fight: np.void, control: np.void | None) -> pygame.Surface:
        """The picture of a record; the same surface every time."""
        player, boss = _stand(fight["player_pose"]), _stand(fight["boss_pose"])
        self._follow(fight, player, boss)
        self._paint_arena(fight, control, player, boss)
        pygame.transform.smoothscale(self._canvas.surface, self.size, self._picture)
        if self._hud is not None:
            self._hud.draw(self._picture, self._view, fight, control, self._story)
        return self._picture

    def pixels(self, picture: pygame.Surface) -> npt.NDArray[np.uint8]:
        """A surface as an array of its own."""
        # Six times faster than pygame.surfarray, which walks over the pixels column by column.
        flat = np.frombuffer(pygame.image.tobytes(picture, "RGB"), np.uint8)
        return flat.reshape(self.size[1], self.size[0], 3).copy()

    def to_px(self, point: Point) -> Point:
        """Where a place of the arena lies in the last picture."""
        return self._view.to_px(point)

    def _follow(self, fight: np.void, player: Stand, boss: Stand) -> None:
        changed, begins = self._story.notice(fight)
        if begins:
            self._view.jump(player.at, boss.at)
        elif changed:
            self._view.follow(player.at, boss.at)

    def _paint_arena(self, fight: np.void, control: np.void | None, player: Stand, boss: Stand) -> None:
        canvas, spec = self._canvas, self._spec
        self._ground.draw(canvas)
        draw_camera(canvas, fight["camera_pose"])
        draw_boss_blows(canvas, fight, boss, player, spec, self._story.stretches)
        draw_player_blow(canvas, fight, player, spec)
        canvas.dashes(player.at, boss.at, palette.WHITE, 1.0, 6.0, 0.35)
        draw_trails(canvas, self._story.traces, self._story.step, spec)
        draw_boss(canvas, boss, fight, spec)
        if control is not None:
            draw_intent(canvas, player, fight, control)
        draw_player(canvas, player, fight, spec)


def _stand(pose: npt.NDArray[np.float32]) -> Stand:
    return Stand(float(pose[0]), float(pose[1]), float(pose[3]))
