"""Scene: paints the whole picture of a fight, from the ground up; and a window to show it in."""

from __future__ import annotations

import math
import os

import numpy as np
import numpy.typing as npt
import pygame

from soulsgym.errors import MisuseError
from soulsgym.render import palette
from soulsgym.render.areas import Point, Pose
from soulsgym.render.arena import SURROUNDINGS_M, box_of, grid_lines, rim, ring_of, shades
from soulsgym.render.canvas import FINE, Canvas, View
from soulsgym.render.history import History, MoveSpan, Trace
from soulsgym.render.hud import BOTTOM_PX, TOP_PX, Hud
from soulsgym.render.shapes import (
    DASHES,
    Shape,
    boss_blows,
    boss_body,
    camera_view,
    player_blows,
    player_body,
    pressed_direction,
    trails,
)
from soulsgym.spec import FightSpec
from soulsgym.spec.arena import Arena

CLOSE_M, CLOSE_AROUND_M = 9.5, 3.6
"""Pictures without words are small ones: they go nearer."""
SHADE_PX_PER_M = 8
STEP_S, TICKS_PER_STEP = 0.1, 6
OFFSCREEN = "offscreen"
"""What SDL takes without a word when no display answers: nobody would see the window."""


class Scene:
    """Paints pictures of one fight after another; with `turns` the way to the boss is up, as for the player's keys."""

    def __init__(self, spec: FightSpec, size: tuple[int, int], *, words: bool = True, turns: bool = False) -> None:
        self.size = size
        self._spec = spec
        self._view = (
            View(spec.arena, size, top_px=TOP_PX, bottom_px=BOTTOM_PX, turns=turns)
            if words
            else View(spec.arena, size, nearest_m=CLOSE_M, around_m=CLOSE_AROUND_M)
        )
        self._canvas = Canvas(size, self._view)
        self._ground = Ground(spec.arena)
        self._history = History(spec)
        self._picture = pygame.Surface(size, depth=32)
        self.hud = Hud(spec, self._picture, self._view) if words else None

    def paint(self, fight: np.void, control: np.void | None, share: float = 1.0) -> pygame.Surface:
        """The picture of a record at a share of the step that led to it; the same surface every time."""
        self._follow(fight, *self._history.notice(fight))
        self._view.show(share)
        shown = self._history.at(share)
        now = self._history.step - 1.0 + share
        self._paint_arena(shown, control, self._history.traces_at(share), now, self._history.spans)
        return self._finish(shown, control, now)

    def paint_tick(self, fight: np.void, control: np.void, *, areas: bool = True) -> pygame.Surface:
        """The picture of a fight that is played tick by tick, as it is now; without `areas`, where no blow is drawn."""
        ticks = round(float(fight["time_s"]) / STEP_S * TICKS_PER_STEP) - TICKS_PER_STEP * int(fight["step"])
        way = float(fight["camera_pose"][3]), float(fight["camera_pose"][4])
        if ticks <= 0 or self._history.record is None:
            changed, begins = self._history.notice(fight)
            if begins:
                self._view.face(way, at_once=True)
            self._follow(fight, changed, begins)
        self._view.face(way)
        share = max(ticks, 0) / TICKS_PER_STEP
        self._view.show(share)
        now = self._history.step + share
        self._paint_arena(fight, control, self._history.traces, now, self._history.spans_of(fight), areas=areas)
        return self._finish(fight, control, now)

    def _follow(self, fight: np.void, changed: bool, begins: bool) -> None:
        player, boss = Pose.of(fight["player_pose"]), Pose.of(fight["boss_pose"])
        if begins:
            self._view.jump(player.at, boss.at)
        elif changed:
            self._view.follow(player.at, boss.at)

    def _finish(self, shown: np.void, control: np.void | None, now: float) -> pygame.Surface:
        pygame.transform.smoothscale(self._canvas.surface, self.size, self._picture)
        if self.hud is not None:
            self.hud.draw(shown, control, self._history, now)
        return self._picture

    def pixels(self, picture: pygame.Surface) -> npt.NDArray[np.uint8]:
        """A surface as an array of its own."""
        # Six times faster than pygame.surfarray, which walks over the pixels column by column.
        flat = np.frombuffer(pygame.image.tobytes(picture, "RGB"), np.uint8)
        return flat.reshape(self.size[1], self.size[0], 3).copy()

    def to_px(self, point: Point) -> Point:
        """Where a place of the arena lies in the last picture."""
        return self._view.to_px(point)

    def _paint_arena(
        self,
        fight: np.void,
        control: np.void | None,
        traces: list[Trace],
        now: float,
        spans: list[MoveSpan],
        *,
        areas: bool = True,
    ) -> None:
        draw, spec = self._canvas.draw, self._spec
        player, boss = Pose.of(fight["player_pose"]), Pose.of(fight["boss_pose"])
        self._ground.draw(self._canvas, turned=self._view.turns)
        draw(camera_view(fight))
        if areas:
            draw(boss_blows(fight, boss, player, spec, spans))
            draw(player_blows(fight, player, spec))
        draw([Shape(DASHES, [player.at, boss.at], palette.WHITE, 0.35, 1.0, dash_px=6.0)])
        draw(trails(traces, now, spec))
        draw(boss_body(boss, fight, spec, now))
        if control is not None:
            draw(pressed_direction(player, fight, control))
        draw(player_body(player, fight, spec))


class Ground:
    """Draws an arena; its heights are shaded once."""

    def __init__(self, arena: Arena) -> None:
        self._rim, self._grid, self._ring = rim(arena), list(grid_lines(arena)), ring_of(arena)
        self._low, self._high = box_of(arena, SURROUNDINGS_M)
        colours = shades(arena, SHADE_PX_PER_M)
        self._shade = pygame.Surface(colours.shape[:2], depth=32)
        pygame.surfarray.blit_array(self._shade, colours)

    def draw(self, canvas: Canvas, *, turned: bool = False) -> None:
        """Paint over the whole canvas; in a picture that turns all of the ground has one colour."""
        if turned:
            canvas.surface.fill(palette.ABYSS)
            colour = palette.mix(palette.GROUND_LOW, palette.GROUND_HIGH, 0.3)
            pygame.draw.polygon(canvas.surface, colour, [canvas.px(point) for point in self._ring])
        else:
            self._draw_shade(canvas)
        for start, end in self._grid:
            pygame.draw.line(canvas.surface, palette.GRID, canvas.px(start), canvas.px(end), FINE // 2)
        canvas.draw(self._rim)

    def _draw_shade(self, canvas: Canvas) -> None:
        """Scale the part of the shading that is in view."""
        (left, bottom), (right, top) = canvas.px(self._low), canvas.px(self._high)
        whole = pygame.Rect(round(left), round(top), round(right - left), round(bottom - top))
        seen = whole.clip(canvas.surface.get_rect())
        if seen.size != canvas.surface.get_size():
            canvas.surface.fill(palette.ABYSS)
        if seen.width < 1 or seen.height < 1:
            return
        width, height = self._shade.get_size()
        kx, ky = width / whole.width, height / whole.height
        x0, y0 = math.floor((seen.left - whole.left) * kx), math.floor((seen.top - whole.top) * ky)
        x1, y1 = math.ceil((seen.right - whole.left) * kx), math.ceil((seen.bottom - whole.top) * ky)
        part = self._shade.subsurface((x0, y0, min(x1, width) - x0, min(y1, height) - y0))
        # Neighbouring pixels differ by less than a shade, so scaling need not smooth them.
        pygame.transform.scale(part, seen.size, canvas.surface.subsurface(seen))


class Window:
    """A window that shows pictures at a steady pace."""

    def __init__(self, size: tuple[int, int], title: str, fps: float) -> None:
        try:
            pygame.display.init()
            if pygame.display.get_driver() == OFFSCREEN and os.environ.get("SDL_VIDEODRIVER") != OFFSCREEN:
                pygame.display.quit()
                raise pygame.error("no display answers")
            self._screen = pygame.display.set_mode(size)
        except pygame.error as error:
            raise MisuseError(
                f"no window can be opened here ({error}); use render_mode='rgb_array', or set SDL_VIDEODRIVER=dummy"
            ) from error
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()
        self._fps = fps

    def show(self, picture: pygame.Surface) -> bool:
        """Put the picture on the screen and wait for its turn; False once the user has closed the window."""
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            return False
        self.put(picture)
        return True

    def put(self, picture: pygame.Surface) -> float:
        """Put the picture on the screen and wait for its turn; the seconds since the one before."""
        self._screen.blit(picture, (0, 0))
        pygame.display.flip()
        return self._clock.tick(self._fps) / 1000.0

    def close(self) -> None:
        """Take the window off the screen."""
        pygame.display.quit()
