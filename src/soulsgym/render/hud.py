"""Everything that is written over the picture: bars, labels, time lines, numbers and the banner at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pygame

from soulsgym.render import palette
from soulsgym.render.areas import Point, Pose
from soulsgym.render.arena import box_of, ring_of
from soulsgym.render.canvas import FINE, View
from soulsgym.render.history import FALL_MOVE, POPUP_STEPS, ROLL_MOVE, History, Loss
from soulsgym.render.names import UNKNOWN, boss_label_names, control_name, killer_name, player_label_names
from soulsgym.render.palette import Colour
from soulsgym.render.shapes import OPEN_KINDS
from soulsgym.spec import FightSpec
from soulsgym.spec.arena import Arena
from soulsgym.state import Outcome

SMALL, MEDIUM, LARGE, HUGE = 19, 23, 30, 84
EDGE_PX, OVERVIEW_EDGE_PX = 20, 8
TOP_PX, BOTTOM_PX = 64, 92
"""Room that the bars take at the top and the bottom of the picture."""
CLOSE_PX, CLOSE_ASIDE_PX = 150.0, 62.0
POPUP_COLOURS = {"hurt": (255, 92, 70), "dealt": (255, 226, 140), "dodged": palette.INVULNERABLE}
MAX_KEPT_TEXTS = 1000

Spans = Sequence[tuple[float, float, Colour]]


@dataclass(frozen=True)
class Clip:
    """A move under way: the time in it, and what happens when; nothing is shown of one without an end."""

    move_s: float = 0.0
    end_s: float = 0.0
    spans: Spans = ()


class Hud:
    """Writes over a finished picture."""

    def __init__(self, spec: FightSpec, picture: pygame.Surface, view: View) -> None:
        pygame.font.init()
        self._fonts = {height: pygame.font.Font(None, 2 * height) for height in (SMALL, MEDIUM, LARGE, HUGE)}
        self._texts: dict[tuple[str, int, Colour], pygame.Surface] = {}
        self._spec, self._picture, self._view = spec, picture, view
        self._size = picture.get_size()
        self._overview = Overview(spec.arena, 104)
        self._player_names = player_label_names(spec)
        self._labels: dict[int, list[str]] = {}  # of the boss, by phase
        self._plates: dict[tuple[int, int, int], pygame.Surface] = {}

    def draw(self, fight: np.void, control: np.void | None, history: History, now: float) -> None:
        """All of it, the banner below the rest; `now` is counted in steps."""
        if fight["outcome"] != Outcome.RUNNING:
            self._draw_banner(fight)
        self._draw_distance(fight)
        self._draw_popups(history, now)
        self._draw_player(fight, history.player_loss)
        self._draw_boss(fight, history.boss_loss)
        self._draw_overview(fight)
        self._draw_step(fight, control)
        self._draw_scale()

    # ------------------------------------------------------------ in the arena

    def _draw_distance(self, fight: np.void) -> None:
        """The distance, on the line between the two, or beside it when they are close."""
        player, boss = (self._view.to_px(Pose.of(fight[key]).at) for key in ("player_pose", "boss_pose"))
        text = self._text(f"{math.dist(fight['player_pose'][:2], fight['boss_pose'][:2]):.1f} m", SMALL, palette.TEXT)
        dx, dy = boss[0] - player[0], boss[1] - player[1]
        length = max(math.hypot(dx, dy), 1.0)
        aside = CLOSE_ASIDE_PX / length if length < CLOSE_PX else 0.0
        middle = (player[0] + boss[0]) / 2.0 - dy * aside, (player[1] + boss[1]) / 2.0 + dx * aside
        rect = text.get_rect(center=middle)
        self.plate(rect.inflate(10, 4), 130)
        self._picture.blit(text, rect)

    def _draw_popups(self, history: History, now: float) -> None:
        for popup in history.popups:
            age = (now - popup.step) / POPUP_STEPS
            text = self._text(popup.text, LARGE, POPUP_COLOURS[popup.kind], shadow=True)
            text.set_alpha(round(255 * min(1.0, 2.0 * (1.0 - age))))
            x, y = self._view.to_px(popup.at)
            x, y = x + 26.0 * popup.side, y - 22.0 - 44.0 * age
            self._picture.blit(text, text.get_rect(**{"midleft" if popup.side > 0.0 else "midright": (x, y)}))

    # ------------------------------------------------------------ bars

    def _draw_player(self, fight: np.void, loss: Loss) -> None:
        width = min(320, self._size[0] // 3)
        hp, most = float(fight["player_hp"][0]), float(fight["player_max_hp"])
        sp, most_sp = float(fight["player_sp"][0]), float(fight["player_max_sp"])
        self.plate(pygame.Rect(EDGE_PX - 8, EDGE_PX - 8, width + 76, 82), 120)
        bar = pygame.Rect(EDGE_PX, EDGE_PX, width, 13)
        self._bar(bar, hp / most, palette.HP, loss.shown / most)
        self.write(f"{hp:.0f}", SMALL, palette.TEXT, midleft=(bar.right + 8, bar.centery))
        bar = pygame.Rect(EDGE_PX, EDGE_PX + 19, width, 10)
        # Below zero the bar fills again, in a warning colour: that much must come back before anything is possible.
        colour = palette.STAMINA if sp > 0.0 else palette.EXHAUSTED
        self._bar(bar, abs(sp) / most_sp, colour)
        self.write(f"{sp:.0f}", SMALL, palette.TEXT if sp > 0.0 else colour, midleft=(bar.right + 8, bar.centery))
        name = self._player_names[int(fight["player_animation"])]
        x = self.write(name, SMALL, palette.TEXT, topleft=(EDGE_PX, bar.bottom + 8)).right
        label_s = f"{fight['player_animation_duration'][0]:.2f} s"
        x = self.write(label_s, SMALL, palette.FAINT, topleft=(x + 8, bar.bottom + 8)).right
        for word, colour in self._player_states(fight):
            x = self.write(word, SMALL, colour, topleft=(x + 12, bar.bottom + 8)).right
        self._timeline(pygame.Rect(EDGE_PX, bar.bottom + 25, width, 4), self._player_clip(fight))

    def _draw_boss(self, fight: np.void, loss: Loss) -> None:
        boss = self._spec.boss
        width = min(620, self._size[0] - 2 * EDGE_PX)
        bar = pygame.Rect((self._size[0] - width) // 2, self._size[1] - 38, width, 14)
        self.plate(pygame.Rect(bar.left - 12, bar.top - 44, width + 24, 76), 120)
        hp, most = float(fight["boss_hp"][0]), float(fight["boss_max_hp"])
        self._bar(bar, hp / most, palette.HP, loss.shown / most)
        name = self.write(boss.name, MEDIUM, palette.TEXT, bottomleft=(bar.left, bar.top - 15))
        phase = f"phase {int(fight['phase'])} of {len(boss.phases)}"
        self.write(phase, SMALL, palette.FAINT, bottomleft=(name.right + 10, bar.top - 16))
        # The label and its clock are what the observation shows; the move is what the boss really does.
        move, label = self._boss_names(fight)
        label = f"{label}  {fight['boss_animation_duration'][0]:.2f} s".strip()
        shown = self.write(label, SMALL, palette.FAINT, bottomright=(bar.right, bar.top - 16))
        self.write(move, SMALL, palette.TEXT, bottomright=(shown.left - 12, bar.top - 16))
        self._timeline(pygame.Rect(bar.left, bar.top - 10, width, 5), self._boss_clip(fight))
        self.write(f"{hp:.0f} / {most:.0f}", SMALL, palette.FAINT, midtop=(bar.centerx, bar.bottom + 3))

    def _bar(self, bar: pygame.Rect, share: float, colour: Colour, before: float = 0.0) -> None:
        pygame.draw.rect(self._picture, palette.BLACK, bar.inflate(4, 4), border_radius=3)
        pygame.draw.rect(self._picture, palette.TRACK, bar)
        for part, shade in ((before, palette.HP_REST), (share, colour)):
            width = round(bar.width * min(max(part, 0.0), 1.0))
            # Somebody alive has a visible rest of his bar.
            width = max(width, 2) if part > 0.0 else width
            pygame.draw.rect(self._picture, shade, (bar.left, bar.top, width, bar.height))
            lit = palette.mix(shade, palette.WHITE, 0.22)
            pygame.draw.rect(self._picture, lit, (bar.left, bar.top, width, max(2, bar.height // 4)))

    # ------------------------------------------------------------ animations

    def _timeline(self, strip: pygame.Rect, clip: Clip) -> None:
        """The way through a move, with its windows; the mark is now."""
        if clip.end_s <= 0.0:
            return
        pygame.draw.rect(self._picture, palette.TRACK, strip)
        done = round(strip.width * min(clip.move_s / clip.end_s, 1.0))
        pygame.draw.rect(
            self._picture, palette.mix(palette.TRACK, palette.FAINT, 0.35), (strip.left, strip.top, done, strip.height)
        )
        for start_s, end_s, colour in clip.spans:
            left, right = (round(strip.width * min(time_s / clip.end_s, 1.0)) for time_s in (start_s, end_s))
            pygame.draw.rect(self._picture, colour, (strip.left + left, strip.top, max(right - left, 2), strip.height))
        pygame.draw.rect(self._picture, palette.WHITE, (strip.left + done - 1, strip.top - 2, 3, strip.height + 4))

    def _player_clip(self, fight: np.void) -> Clip:
        player, move_s, move = self._spec.player, float(fight["player_move_s"]), int(fight["player_move"])
        if move == ROLL_MOVE:
            return Clip(move_s, player.roll.end_s, [(*player.roll.invulnerable_s, palette.INVULNERABLE)])
        if move < 0:
            return Clip()
        row = player.moves[move]
        spans = [
            (*span, colour)
            for span, colour in ((row.invulnerable_s, palette.INVULNERABLE), (row.parry_s, palette.PARRY))
            if span[1] > 0.0
        ]
        spans.extend((strike.from_s, strike.to_s, palette.PLAYER_STRIKE) for strike in row.strikes)
        return Clip(move_s, row.end_s, spans)

    def _boss_clip(self, fight: np.void) -> Clip:
        row = self._spec.boss.moves[int(fight["boss_move"])]
        if fight["boss_move"] < 0 or row.kind not in ("attack", "transform", *OPEN_KINDS):
            return Clip()
        spans = [(hit.from_s, hit.to_s, palette.DANGER) for hit in row.hits]
        return Clip(float(fight["boss_move_s"]), row.end_s, spans)

    def _boss_names(self, fight: np.void) -> tuple[str, str]:
        """The move, and the label that is shown where that is another one."""
        phase, move = int(fight["phase"]), int(fight["boss_move"])
        if phase not in self._labels:
            self._labels[phase] = boss_label_names(self._spec, phase)
        label = self._labels[phase][int(fight["boss_animation"])]
        if move < 0:
            return label, ""
        name = killer_name(self._spec, move)
        return name, "" if label in (name, UNKNOWN) else label

    def _player_states(self, fight: np.void) -> list[tuple[str, Colour]]:
        if fight["player_move"] == FALL_MOVE:
            return [("falling", palette.CLIFF)]
        states: list[tuple[str, Colour]] = []
        if fight["invulnerable"]:
            states.append(("invulnerable", palette.INVULNERABLE))
        if fight["player_sp"][0] <= 0.0:
            states.append(("exhausted", palette.EXHAUSTED))
        return states

    # ------------------------------------------------------------ corners

    def _draw_overview(self, fight: np.void) -> None:
        width, height = self._overview.size
        left, top = self._size[0] - EDGE_PX - width + 6, EDGE_PX - 8
        self.plate(pygame.Rect(left, top, width, height), 120)
        self._picture.blit(self._overview.picture, (left, top))
        for key, colour, radius in (("boss_pose", palette.BOSS_EDGE, 4.5), ("player_pose", palette.PLAYER, 3.5)):
            x, y = self._overview.px(Pose.of(fight[key]).at)
            pygame.draw.aacircle(self._picture, colour, (left + x, top + y), radius)

    def _draw_step(self, fight: np.void, control: np.void | None) -> None:
        right, top = self._size[0] - EDGE_PX + 6, EDGE_PX + self._overview.size[1]
        lines = [(f"step {int(fight['step'])}   {fight['time_s']:.1f} s", palette.FAINT)]
        if control is not None:
            lines.append((control_name(control), palette.TEXT))
        for text, colour in lines:
            top = self.write(text, SMALL, colour, shadow=True, topright=(right, top)).bottom + 3

    def _draw_scale(self) -> None:
        metres = 5
        x, y, length = EDGE_PX, self._size[1] - EDGE_PX, round(metres * self._view.px_per_m)
        if x + length > (self._size[0] - 620) // 2 - 20:
            metres, length = 2, round(2 * self._view.px_per_m)
        pygame.draw.line(self._picture, palette.FAINT, (x, y), (x + length, y), 2)
        for end in (x, x + length):
            pygame.draw.line(self._picture, palette.FAINT, (end, y - 4), (end, y + 4), 2)
        self.write(f"{metres} m", SMALL, palette.FAINT, shadow=True, midbottom=(x + length / 2.0, y - 4))

    def _draw_banner(self, fight: np.void) -> None:
        title, colour, below = self._ending(fight)
        width, height = self._size
        band = pygame.Rect(0, round(height * 0.18), width, 120)
        self.plate(band, 190)
        self.write(title, HUGE, colour, center=(band.centerx, band.centery - 14))
        self.write(below, MEDIUM, palette.FAINT, center=(band.centerx, band.bottom - 24))

    def _ending(self, fight: np.void) -> tuple[str, Colour, str]:
        time = f"after {fight['time_s']:.1f} s"
        if fight["outcome"] == Outcome.WON:
            return "VICTORY", palette.VICTORY, f"{self._spec.boss.name} falls {time}"
        if fight["outcome"] == Outcome.FELL:
            return "YOU DIED", palette.DEATH, f"fell off the cliff {time}"
        killer = int(fight["killed_by"])
        if killer < 0:
            return "YOU DIED", palette.DEATH, time
        return "YOU DIED", palette.DEATH, f"killed by {killer_name(self._spec, killer)} {time}"

    # ------------------------------------------------------------ writing

    def write(self, text: str, height: int, colour: Colour, *, shadow: bool = False, **place: Point) -> pygame.Rect:
        """Write at a place named as in pygame's rectangles (topleft, midbottom ...)."""
        surface = self._text(text, height, colour, shadow=shadow)
        rect = surface.get_rect(**place)
        self._picture.blit(surface, rect)
        return rect

    def _text(self, text: str, height: int, colour: Colour, *, shadow: bool = False) -> pygame.Surface:
        key = (text, height if not shadow else -height, colour)
        if key not in self._texts:
            if len(self._texts) >= MAX_KEPT_TEXTS:
                self._texts.clear()
            self._texts[key] = self._rendered(text, height, colour, shadow)
        return self._texts[key]

    def _rendered(self, text: str, height: int, colour: Colour, shadow: bool) -> pygame.Surface:
        front = self._smooth(text, height, colour)
        if not shadow:
            return front
        both = pygame.Surface((front.get_width() + 2, front.get_height() + 2), pygame.SRCALPHA, 32)
        dark = self._smooth(text, height, palette.BLACK)
        for x, y in ((0, 1), (2, 1), (1, 0), (1, 2), (2, 2)):
            both.blit(dark, (x, y))
        both.blit(front, (1, 1))
        return both

    def _smooth(self, text: str, height: int, colour: Colour) -> pygame.Surface:
        """Letters at even distances: twice as large, then scaled down, because the font places whole pixels only."""
        large = self._fonts[height].render(text, True, colour)
        return pygame.transform.smoothscale(large, (large.get_width() // 2, large.get_height() // 2))

    def plate(self, rect: pygame.Rect, alpha: int) -> None:
        """A dark, half transparent plate that text is legible on."""
        key = (rect.width, rect.height, alpha)
        if key not in self._plates:
            plate = pygame.Surface(rect.size, pygame.SRCALPHA, 32)
            pygame.draw.rect(plate, (*palette.PLATE, alpha), plate.get_rect(), border_radius=6)
            self._plates[key] = plate
        self._picture.blit(self._plates[key], rect)


class Overview:
    """The small plan of the whole arena."""

    def __init__(self, arena: Arena, height_px: int) -> None:
        low, high = box_of(arena)
        self._scale = height_px / (high[1] - low[1])
        self._left, self._top = low[0], high[1]
        self.size = round((high[0] - low[0]) * self._scale) + 2 * OVERVIEW_EDGE_PX, height_px + 2 * OVERVIEW_EDGE_PX
        fine = pygame.Surface((self.size[0] * FINE, self.size[1] * FINE), pygame.SRCALPHA, 32)
        ring = [(x * FINE, y * FINE) for x, y in map(self.px, ring_of(arena))]
        pygame.draw.polygon(fine, palette.GROUND_LOW, ring)
        for corner, start, end in zip(arena.corners, ring, ring[1:] + ring[:1], strict=True):
            pygame.draw.line(fine, palette.CLIFF if corner.to_next == "cliff" else palette.WALL, start, end, 2 * FINE)
        self.picture = pygame.transform.smoothscale(fine, self.size)

    def px(self, point: Point) -> Point:
        """A place of the arena in this plan."""
        return (
            OVERVIEW_EDGE_PX + (point[0] - self._left) * self._scale,
            OVERVIEW_EDGE_PX + (self._top - point[1]) * self._scale,
        )
