"""A fight in the terminal: the picture in half blocks, bars and names; or in plain letters; or a line a second."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from soulsai.cli.terminal import INK, Cells, Colour, Terminal
from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.render import FightRenderer, palette
from soulsgym.render.names import boss_label_names, control_name, plain_name, player_label_names
from soulsgym.state import Outcome

if TYPE_CHECKING:
    from soulsgym.recordings.recording import Recording
    from soulsgym.spec import FightSpec

LEAST_COLUMNS, LEAST_ROWS = 40, 14
FINE = 4
"""Pixels of the drawn picture per pixel of the screen, to each side."""
BARS = 2
"""Lines above the picture, and below it."""
STEP_S = 0.1
LAST_S = 2.0
"""How long the end of the fight stays."""
TICK_S = 0.5
"""How often a picture that stands still looks whether the terminal has another size."""
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
FAINT: Colour = (150, 146, 138)
WORDS_S, PRESSED_S = 1.0, 0.6
ENDINGS = {Outcome.WON: ("VICTORY", palette.VICTORY), Outcome.RUNNING: ("TIME OUT", FAINT)}
DEATH = ("YOU DIED", palette.DEATH)
RED, BRIGHT, DIM = 60, 150, 26
"""How red and how bright a pixel is that plain letters show as a blow, or as a wall."""

Picture = npt.NDArray[np.uint8]


def draws_colours() -> bool:
    """Whether the user wants colours (https://no-color.org) and the terminal has any."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"


def show_fight(recording: Recording, spec: FightSpec) -> None:
    """Play the one fight of a recording on standard output: in a terminal as a picture, elsewhere a line a second."""
    if not sys.stdout.isatty():
        for line in fight_lines(recording, spec):
            sys.stdout.write(f"{line}\n")
        return
    colour = draws_colours()
    with Terminal(colour=colour) as terminal:
        _play(terminal, FightScreen(recording, spec, plain=not colour), len(recording))


def _play(terminal: Terminal, screen: FightScreen, count: int) -> None:
    """At the speed of the fight; q ends it, space pauses, [ and ] change the speed."""
    i, paused, speed = 0, False, 1.0
    shown: Any = None
    due_s = time.monotonic() + STEP_S
    while True:
        size = terminal.size()
        if shown != (i, size, paused, speed):
            terminal.show(screen.cells(i, *size, paused=paused, speed=speed))
            shown = (i, size, paused, speed)
        look_s = time.monotonic() + TICK_S
        key = terminal.key(look_s if paused else min(due_s, look_s))
        now_s = time.monotonic()
        if key.lower() in ("q", "\x03", "\x1b"):
            return
        if key == " ":
            paused, due_s = not paused, now_s + STEP_S / speed
        elif key in ("[", "]"):
            place = SPEEDS.index(speed) + (1 if key == "]" else -1)
            speed = SPEEDS[min(max(place, 0), len(SPEEDS) - 1)]
        if paused or now_s < due_s:
            continue
        if i == count - 1:
            return
        i += 1
        due_s = max(due_s + (LAST_S if i == count - 1 else STEP_S / speed), now_s)


class FightScreen:
    """Draws records of one fight as cells of any size."""

    def __init__(self, recording: Recording, spec: FightSpec, *, plain: bool) -> None:
        self._fights, self._actions, self._spec, self._plain = recording.fights, recording.actions, spec, plain
        self._renderer: FightRenderer | None = None
        self._size = (0, 0)
        self._last = -1

    def cells(self, i: int, columns: int, rows: int, *, paused: bool = False, speed: float = 1.0) -> Cells:
        """The screen of a record."""
        cells = Cells(columns, rows)
        if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
            _say_too_small(cells)
            return cells
        fight = self._fights[i]
        picture = self._picture(i, columns, rows - 2 * BARS)
        if self._plain:
            self._put_letters(cells, picture, fight)
        else:
            cells.letters[BARS:-BARS] = "▀"
            cells.ink[BARS:-BARS], cells.paper[BARS:-BARS] = picture[::2], picture[1::2]
        self._put_player(cells, i, paused=paused, speed=speed)
        self._put_boss(cells, fight)
        self._put_words(cells, i)
        return cells

    def _picture(self, i: int, columns: int, rows: int) -> Picture:
        """The arena in two pixels a cell. The renderer is led up to the record for its trails, and view."""
        if self._renderer is None or self._size != (columns, rows):
            size = columns * FINE, 2 * rows * FINE
            self._renderer, self._size = FightRenderer(self._spec, size, words=False), (columns, rows)
            self._last = max(-1, i - 10)
        for j in range(self._last + 1, i):
            self._renderer.draw(self._fights[j], self._control(j))
        self._last = i
        fine = self._renderer.draw(self._fights[i], self._control(i))
        blocks = fine.reshape(2 * rows, FINE, columns, FINE, 3)
        return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float32), np.uint8)

    def _control(self, i: int) -> Any:
        return ACTION_CONTROLS[int(self._actions[i])] if i else None

    def _place(self, pose: Any) -> tuple[int, int]:
        assert self._renderer is not None
        x, y = self._renderer.to_px(float(pose[0]), float(pose[1]))
        return int(y // (2 * FINE)) + BARS, int(x // FINE)

    def _put_letters(self, cells: Cells, picture: Picture, fight: np.void) -> None:
        """Blows as * and +, walls as #, and the two fighters with an arrow where they look."""
        halves = picture.reshape(-1, 2, picture.shape[1], 3).astype(np.int64).mean(axis=1)
        red = halves[..., 0] - halves[..., 1:].max(axis=2)
        bright = halves.max(axis=2)
        area = cells.letters[BARS:-BARS]
        area[bright > DIM] = "."
        area[(bright > BRIGHT - 40) & (red < RED)] = "#"
        area[red > RED] = "+"
        area[(red > RED) & (bright > BRIGHT)] = "*"
        for key, letter in (("boss_pose", "B"), ("player_pose", "@")):
            row, column = self._place(fight[key])
            heading = float(fight[key][3])
            dx, dy = -math.sin(heading), -math.cos(heading)
            arrow = (">" if dx > 0 else "<") if abs(dx) > abs(dy) else ("^" if dy > 0 else "v")
            for r, c, sign in ((row - round(dy), column + round(2 * dx), arrow), (row, column, letter)):
                if BARS <= r < cells.size[1] - BARS and 0 <= c < cells.size[0]:
                    cells.letters[r, c] = sign

    def _put_player(self, cells: Cells, i: int, *, paused: bool, speed: float) -> None:
        fight, columns = self._fights[i], cells.size[0]
        wide = max(8, min(30, columns // 4))
        hp, sp = float(fight["player_hp"][0]), float(fight["player_sp"][0])
        at = cells.write(0, 1, "HP ", FAINT)
        at = cells.bar(0, at, wide, hp / fight["player_max_hp"], palette.HP, plain=self._plain)
        at = cells.write(0, at + 1, f"{math.ceil(hp)}".ljust(5))
        at = cells.write(0, at, "SP ", FAINT)
        green = palette.STAMINA if sp > 0.0 else palette.EXHAUSTED
        at = cells.bar(0, at, wide // 2, abs(sp) / fight["player_max_sp"], green, plain=self._plain)
        at = cells.write(0, at + 1, f"{sp:.0f}".ljust(5))
        clock = f"{'paused  ' if paused else f'{speed:g}x  ' if speed != 1.0 else ''}{fight['time_s']:.1f} s "
        if at + len(clock) < columns:
            cells.write_right(0, columns, clock, FAINT)
        at = cells.write(1, 1, _label_name(player_label_names(self._spec), fight["player_animation"]))
        at = cells.write(1, at + 1, f"{fight['player_animation_duration'][0]:.1f} s", FAINT)
        if fight["invulnerable"]:
            at = cells.write(1, at + 2, "invulnerable", palette.INVULNERABLE)
        at = cells.write(1, at + 2, f"> {self._pressed(i)}", palette.PLAYER)
        if at + 24 < columns:
            cells.write_right(1, columns - 1, "q quit  space pause", FAINT)

    def _pressed(self, i: int) -> str:
        """The last action; what was pressed lasts a moment, as most moves do."""
        recent = self._actions[max(1, i - round(PRESSED_S / STEP_S) + 1) : i + 1]
        pressed = recent[recent != NOTHING]
        return control_name(ACTION_CONTROLS[int(pressed[-1]) if len(pressed) else NOTHING])

    def _put_boss(self, cells: Cells, fight: np.void) -> None:
        columns, rows = cells.size
        boss, move = self._spec.boss, int(fight["boss_move"])
        at = cells.write(rows - 2, 1, boss.name)
        at = cells.write(rows - 2, at + 2, f"phase {int(fight['phase'])} of {len(boss.phases)}", FAINT)
        if 0 <= move < len(boss.moves):
            at = cells.write(rows - 2, at + 2, plain_name(boss.moves[move].name), palette.WARNING)
        shown = _label_name(boss_label_names(self._spec, int(fight["phase"])), fight["boss_animation"])
        shown = f"{shown} {fight['boss_animation_duration'][0]:.1f} s"
        if at + len(shown) + 3 < columns:
            cells.write_right(rows - 2, columns - 1, shown, FAINT)
        hp = float(fight["boss_hp"][0])
        at = cells.bar(rows - 1, 1, columns - 10, hp / fight["boss_max_hp"], palette.HP, plain=self._plain)
        cells.write(rows - 1, at + 1, f"{math.ceil(hp)}")

    def _put_words(self, cells: Cells, i: int) -> None:
        """Numbers beside those they happened to, for a second; and how it ended."""
        fight = self._fights[i]
        seen: set[str] = set()
        for j in range(i, max(-1, i - round(WORDS_S / STEP_S)), -1):
            for text, kind, key in _events(self._fights[j]):
                if kind in seen:
                    continue
                seen.add(kind)
                row, column = self._place(fight[key])
                row = min(max(row - 2, BARS), cells.size[1] - BARS - 1)
                start = min(max(column + 3, 0), max(0, cells.size[0] - len(text) - 2))
                ink = {"hurt": (255, 92, 70), "dealt": (255, 226, 140)}.get(kind, palette.INVULNERABLE)
                cells.write(row, start, f" {text} ", ink, (0, 0, 0))
        if i == len(self._fights) - 1:
            title, colour = ENDINGS.get(Outcome(int(fight["outcome"])), DEATH)
            shown = f"   {title}   "
            row, column = cells.size[1] // 3, max(0, (cells.size[0] - len(shown)) // 2)
            for r in (row - 1, row, row + 1):
                cells.write(r, column, shown if r == row else " " * len(shown), colour, (0, 0, 0))


def _events(fight: np.void) -> Iterator[tuple[str, str, str]]:
    if fight["damage_taken"] > 0.0:
        yield f"-{fight['damage_taken']:.0f}", "hurt", "player_pose"
    if fight["dodged"] >= 0:
        yield "dodged", "dodged", "player_pose"
    if fight["damage_dealt"] > 0.0:
        yield f"-{fight['damage_dealt']:.0f}", "dealt", "boss_pose"


def _label_name(names: list[str], label: int) -> str:
    """The name of a label; somebody's file may hold any number."""
    return names[label if 0 <= label < len(names) else -1]


def _say_too_small(cells: Cells) -> None:
    columns, rows = cells.size
    words = f"this terminal has {columns} x {rows} cells; make it {LEAST_COLUMNS} x {LEAST_ROWS} or larger".split()
    lines, line = [], ""
    for word in words:
        if line and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    for row, text in enumerate([*lines, line][:rows]):
        cells.write(row, 0, text, INK)


def fight_lines(recording: Recording, spec: FightSpec) -> Iterator[str]:
    """The fight in words: a line for every second, and one for whatever happens."""
    names, labels = spec.boss.moves, player_label_names(spec)
    second = -1
    for i, fight in enumerate(recording.fights):
        at = f"{fight['time_s']:6.1f} s"
        move = int(fight["boss_move"])
        told = {"hurt": "the player is hit", "dealt": "the boss is hit", "dodged": "the player dodges"}
        for text, kind, _ in _events(fight):
            yield f"{at}  {told[kind]}{f' ({text})' if kind != 'dodged' else ''}"
        if int(fight["time_s"]) > second or i == len(recording.fights) - 1:
            second = int(fight["time_s"])
            away = math.dist(fight["player_pose"][:2], fight["boss_pose"][:2])
            yield (
                f"{at}  player {math.ceil(fight['player_hp'][0])}/{fight['player_max_hp']} "
                f"stamina {fight['player_sp'][0]:.0f} {_label_name(labels, fight['player_animation'])}, "
                f"boss {math.ceil(fight['boss_hp'][0])}/{fight['boss_max_hp']} phase {int(fight['phase'])} "
                f"{plain_name(names[move].name) if 0 <= move < len(names) else 'unknown'}, {away:.1f} m apart"
            )
