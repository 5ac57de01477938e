"""A fight in the terminal: the picture in half blocks, bars and names; or a line a second."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.render import FightRenderer, palette
from soulsgym.render.names import boss_label_names, control_name, killer_name, player_label_names
from soulsgym.state import Outcome

if TYPE_CHECKING:
    from soulsgym.recordings.recording import Recording
    from soulsgym.spec import FightSpec

LEAST_COLUMNS, LEAST_ROWS = 40, 14
FINE = 4
"""Pixels of the drawn picture per pixel of the screen, to each side."""
LINES = 4
"""Of text, above the picture and below it."""
STEP_S = 0.1
LAST_S = 2.0
"""How long the end of the fight stays."""
NEWS_S, PRESSED_S = 1.0, 0.6
"""How long a blow and a pressed key are shown."""
COARSE = 0xF8
"""Colours are told apart in steps of 8, and nobody sees it."""
FAINT = (150, 146, 138)
ENDINGS = {Outcome.WON: ("VICTORY", palette.VICTORY), Outcome.RUNNING: ("TIME OUT", FAINT)}
DEATH = ("YOU DIED", palette.DEATH)

Pixels = npt.NDArray[np.uint8]


def show_fight(recording: Recording, spec: FightSpec) -> None:
    """Play the one fight of a recording on standard output: as a picture where that has colours, or a line a second."""
    # https://no-color.org; and a dumb terminal cannot place letters.
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        for line in fight_lines(recording, spec):
            sys.stdout.write(f"{line}\n")
        return
    console, screen = Console(color_system="truecolor", highlight=False), FightScreen(recording, spec)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the terminal is given back
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            begun_s = time.monotonic()
            for i in range(len(recording)):
                live.update(screen.picture(i, *console.size), refresh=True)
                time.sleep(max(0.0, begun_s + (i + 1) * STEP_S - time.monotonic()))
            time.sleep(LAST_S)
    finally:
        signal.signal(signal.SIGTERM, before)


class FightScreen:
    """Draws records of one fight for a screen of any size."""

    def __init__(self, recording: Recording, spec: FightSpec) -> None:
        self._fights, self._actions, self._spec = recording.fights, recording.actions, spec
        self._renderer: FightRenderer | None = None
        self._size = (0, 0)

    def picture(self, i: int, columns: int, rows: int) -> RenderableType:
        """The screen of a record."""
        if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
            return Text(f"this terminal has {columns} x {rows} cells; make it {LEAST_COLUMNS} x {LEAST_ROWS} or larger")
        above, below = self._player_lines(i, columns), self._boss_lines(self._fights[i], columns)
        return Group(*above, _half_blocks(self.pixels(i, columns, rows - LINES)), *below)

    def pixels(self, i: int, columns: int, rows: int) -> Pixels:
        """The arena in two pixels a cell."""
        if self._renderer is None or self._size != (columns, rows):
            size = columns * FINE, 2 * rows * FINE
            self._renderer, self._size = FightRenderer(self._spec, size, words=False), (columns, rows)
        control: Any = ACTION_CONTROLS[int(self._actions[i])] if i else None
        blocks = self._renderer.draw(self._fights[i], control).reshape(2 * rows, FINE, columns, FINE, 3)
        return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float32), np.uint8)

    def _player_lines(self, i: int, columns: int) -> Iterator[Text]:
        fight, wide = self._fights[i], max(8, min(30, columns // 4))
        hp, sp = float(fight["player_hp"][0]), float(fight["player_sp"][0])
        green = palette.STAMINA if sp > 0.0 else palette.EXHAUSTED
        yield _line(
            ("HP ", FAINT), _bar(hp / fight["player_max_hp"], wide, palette.HP), (f" {math.ceil(hp):<5}", ()),
            ("SP ", FAINT), _bar(abs(sp) / fight["player_max_sp"], wide // 2, green), (f" {sp:<5.0f}", ()),
            (f"{fight['time_s']:.1f} s", FAINT),
        )  # fmt: skip
        label = _label_name(player_label_names(self._spec), fight["player_animation"])
        yield _line(
            (label, ()),
            (f" {fight['player_animation_duration'][0]:.1f} s", FAINT),
            ("  invulnerable" if fight["invulnerable"] else "", palette.INVULNERABLE),
            (f"  > {self._last_action(i)}", palette.PLAYER),
            self._news(i),
        )

    def _last_action(self, i: int) -> str:
        """The last action; what was pressed lasts a moment, as most moves do."""
        recent = self._actions[max(1, i - round(PRESSED_S / STEP_S) + 1) : i + 1]
        pressed = recent[recent != NOTHING]
        return control_name(ACTION_CONTROLS[int(pressed[-1]) if len(pressed) else NOTHING])

    def _news(self, i: int) -> tuple[str, Any]:
        """How it ended, or the last blow."""
        if i == len(self._fights) - 1:
            title, colour = ENDINGS.get(Outcome(int(self._fights[i]["outcome"])), DEATH)
            return f"  {title}", colour
        recent = self._fights[max(0, i - round(NEWS_S / STEP_S) + 1) : i + 1]
        return "".join(
            f"  {text}" for text in [text for fight in recent for text in _events(fight)][-1:]
        ), palette.WARNING

    def _boss_lines(self, fight: np.void, columns: int) -> Iterator[Text]:
        boss, move, phase = self._spec.boss, int(fight["boss_move"]), int(fight["phase"])
        hp, label = (
            float(fight["boss_hp"][0]),
            _label_name(boss_label_names(self._spec, phase), fight["boss_animation"]),
        )
        yield _line(
            (boss.name, ()),
            (f"  phase {phase} of {len(boss.phases)}", FAINT),
            (f"  {killer_name(self._spec, move)}", palette.WARNING),
            (f"  {label} {fight['boss_animation_duration'][0]:.1f} s", FAINT),
        )
        yield _line(_bar(hp / fight["boss_max_hp"], columns - 8, palette.HP), (f" {math.ceil(hp)}", ()))


def _line(*parts: tuple[str, Any]) -> Text:
    """Words with their colours, in one line; somebody's file may hold any letter."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for words, colour in parts:
        plain = "".join(letter if letter.isprintable() else "?" for letter in words)
        line.append(plain, Style(color=Color.from_rgb(*colour)) if colour else None)
    return line


def _bar(share: float, width: int, colour: Any) -> tuple[str, Any]:
    return ("█" * round(min(max(share, 0.0), 1.0) * width)).ljust(width), colour


def _half_blocks(pixels: Pixels) -> Segments:
    coarse = (pixels & COARSE).tolist()
    segments = []
    for upper, lower in zip(coarse[::2], coarse[1::2], strict=True):
        segments += [Segment("▀", _style(tuple(ink), tuple(paper))) for ink, paper in zip(upper, lower, strict=True)]
        segments.append(Segment.line())
    return Segments(segments)


@lru_cache(maxsize=1 << 16)
def _style(ink: tuple[int, int, int], paper: tuple[int, int, int]) -> Style:
    return Style(color=Color.from_rgb(*ink), bgcolor=Color.from_rgb(*paper))


def _events(fight: np.void) -> Iterator[str]:
    if fight["damage_taken"] > 0.0:
        yield f"the player is hit (-{fight['damage_taken']:.0f})"
    if fight["dodged"] >= 0:
        yield "the player dodges"
    if fight["damage_dealt"] > 0.0:
        yield f"the boss is hit (-{fight['damage_dealt']:.0f})"


def _label_name(names: list[str], label: int) -> str:
    """The name of a label; somebody's file may hold any number."""
    return names[label if 0 <= label < len(names) else -1]


def fight_lines(recording: Recording, spec: FightSpec) -> Iterator[str]:
    """The fight in words: a line for every second, and one for whatever happens."""
    labels = player_label_names(spec)
    second = -1
    for i, fight in enumerate(recording.fights):
        at = f"{fight['time_s']:6.1f} s"
        move = int(fight["boss_move"])
        for text in _events(fight):
            yield f"{at}  {text}"
        if int(fight["time_s"]) > second or i == len(recording.fights) - 1:
            second = int(fight["time_s"])
            away = math.dist(fight["player_pose"][:2], fight["boss_pose"][:2])
            yield (
                f"{at}  player {math.ceil(fight['player_hp'][0])}/{fight['player_max_hp']} "
                f"stamina {fight['player_sp'][0]:.0f} {_label_name(labels, fight['player_animation'])}, "
                f"boss {math.ceil(fight['boss_hp'][0])}/{fight['boss_max_hp']} phase {int(fight['phase'])} "
                f"{killer_name(spec, move) or 'unknown'}, {away:.1f} m apart"
            )
