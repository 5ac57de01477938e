"""PlayWindow: the window in which a person fights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

import pygame

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.play.hand import Hand
from soulsgym.play.session import PlaySession
from soulsgym.render import palette
from soulsgym.render.hud import LARGE, MEDIUM, SMALL, Hud
from soulsgym.render.names import plain_name
from soulsgym.render.renderer import check_size
from soulsgym.render.scene import Scene, Window

FPS = 60
LONGEST_S = 0.1
"""After a pause of the machine the fight goes on from where it was, and does not leap."""
SPEEDS = (1.0, 0.5, 0.25)
Row = Sequence[str]


class Page(Enum):
    """What lies over the fight, which stands still meanwhile."""

    NONE = auto()
    KEYS = auto()
    PAUSE = auto()
    BOARD = auto()


class PlayWindow:
    """Shows a session at 60 pictures a second and hands what is pressed to it: a press shows in the next picture.

    `board` gives the rows of the duel board, the first one its head; `ended` is called after every fight and may return
    a sentence about it.
    """

    def __init__(
        self,
        session: PlaySession,
        bindings: Mapping[str, str],
        *,
        speed: float = 1.0,
        size: tuple[int, int] = (960, 720),
        board: Callable[[], Sequence[Row]] = lambda: (),
        ended: Callable[[], str] = lambda: "",
    ) -> None:
        check_size(size)
        self.session, self._bindings, self._board, self._ended = session, dict(bindings), board, ended
        self._window = Window(size, session.spec.boss.name, FPS)
        self._scene = Scene(session.spec, size, turns=True)
        assert self._scene.hud is not None
        self._hud: Hud = self._scene.hud
        self._hand = Hand(bindings)
        self._menu_key = pygame.key.key_code(bindings.get("menu", "escape").lower())
        self._pads = _open_pads()
        self.speed, self.areas, self.page = speed, True, Page.KEYS
        self._rows: Sequence[Row] | None = None
        self._due, self._told, self._quit, self._note = 0.0, False, False, ""
        self._waits = False
        self._control = ACTION_CONTROLS[NOTHING : NOTHING + 1]
        self.size = size

    def run(self) -> None:
        """Play until the user closes the window or quits."""
        elapsed_s = 0.0
        while self.frame(elapsed_s):
            elapsed_s = self._window.put(self.picture)

    def frame(self, elapsed_s: float) -> bool:
        """Take what was pressed, play the ticks that are due and paint the picture; false when the user quits."""
        for event in pygame.event.get():
            self._take(event)
        if self.page is Page.NONE:
            self._play(elapsed_s)
        elif self.page is Page.BOARD and self._rows is None and self._waits:
            self._rows = self._board()  # may take a while, so the picture before has said so
        self._waits = self.page is Page.BOARD
        self.picture = self._scene.paint_tick(self.session.fight, self._control[0], areas=self.areas)
        self._write_over()
        return not self._quit

    def close(self) -> None:
        """Close the window and let go of the gamepads."""
        for pad in self._pads:
            pad.quit()
        self._window.close()

    def _play(self, elapsed_s: float) -> None:
        self._due += self.speed * FPS * min(elapsed_s, LONGEST_S)
        ticks = int(self._due + 0.5)
        self._due -= ticks
        for _ in range(ticks):
            self._control = self._hand.control(self.session.fight)
            self.session.tick(self._control)
        if self.session.is_over and not self._told:
            self._told = True
            self.session.keep()
            self._note = self._ended()

    # ------------------------------------------------------------ what was pressed

    def _take(self, event: pygame.event.Event) -> None:
        if event.type == pygame.QUIT:
            self._quit = True
        elif event.type == pygame.WINDOWFOCUSLOST:
            self._open(Page.PAUSE if self.page is Page.NONE and not self.session.is_over else self.page)
        elif event.type == pygame.CONTROLLERDEVICEADDED:
            self._pads = _open_pads()
        elif not self._take_command(event):
            self._hand.take(event)

    def _take_command(self, event: pygame.event.Event) -> bool:
        """Keys and buttons beside the game's own; true if it was one."""
        if event.type == pygame.KEYDOWN:
            return self._take_key(event.key)
        return event.type == pygame.CONTROLLERBUTTONDOWN and self._take_pad(event.button)

    def _take_key(self, key: int) -> bool:
        fights = self.page is Page.NONE and not self.session.is_over
        if key == self._menu_key:
            self._open(Page.PAUSE if fights else Page.NONE)
        elif key == pygame.K_F1:
            self._open(Page.NONE if self.page is Page.KEYS else Page.KEYS)
        elif key == pygame.K_F2:
            self.areas = not self.areas
        elif key == pygame.K_F3:
            self.speed = next((speed for speed in SPEEDS if speed < self.speed), SPEEDS[0])
        elif key == pygame.K_TAB:
            self._open(Page.NONE if self.page is Page.BOARD else Page.BOARD)
        elif key in (pygame.K_RETURN, pygame.K_KP_ENTER) and not fights:
            self._go_on()
        elif key == pygame.K_q and not fights:
            self._quit = True
        else:
            return False
        return True

    def _take_pad(self, button: int) -> bool:
        fights = self.page is Page.NONE and not self.session.is_over
        if button == pygame.CONTROLLER_BUTTON_START:
            self._open(Page.PAUSE if fights else Page.NONE)
        elif button == pygame.CONTROLLER_BUTTON_BACK:
            self._open(Page.NONE if self.page is Page.BOARD else Page.BOARD)
        elif button == pygame.CONTROLLER_BUTTON_A and not fights:
            self._go_on()
        else:
            return False
        return True

    def _open(self, page: Page) -> None:
        self.page, self._rows = page, None
        self._hand.clear()

    def _go_on(self) -> None:
        """Close a page, or begin the next fight."""
        if self.page is Page.NONE:
            self.session.begin()
            self._told = False
        self._open(Page.NONE)

    # ------------------------------------------------------------ what is written

    def _write_over(self) -> None:
        if self.page is Page.KEYS:
            self._table("Keys", self._keys(), "Enter, or A, to fight")
        elif self.page is Page.PAUSE:
            self._table("Paused", [], "Enter to continue     F1 keys     Tab duel board     Q quit")
        elif self.page is Page.BOARD:
            below = "the others fight the same fights ..." if self._rows is None else "Enter to continue"
            self._table("Duel board", self._rows or (), below)
        elif self.session.is_over:
            self._line("Enter to fight again     Tab duel board     Q quit", 0.18 * self.size[1] + 130)
            self._line(self._note, 0.18 * self.size[1] + 160)
        notes = [f"speed {self.speed:g}"] if self.speed != 1.0 else []
        if self.session.settings.only:
            only, session = plain_name(self.session.settings.only), self.session
            notes.append(f"practice: {only}     dodged {session.dodged}     hit {session.hits}")
        notes += ["hit areas off"] if not self.areas else []
        if notes:
            self._line("     ".join(notes), self.size[1] - 100)

    def _keys(self) -> list[Row]:
        name = self._bindings.get
        ways = " ".join(name(action, "?") for action in ("forward", "left", "backward", "right"))
        return [
            ("", "keyboard", "gamepad"),
            ("walk: towards him, left, back, right", ways, "left stick"),
            ("roll; without a direction a backstep", name("roll", "?"), "B, circle"),
            ("light attack", name("lightattack", "?"), "right shoulder"),
            ("heavy attack", name("heavyattack", "?"), "right trigger"),
            ("parry", name("parry", "?"), "left trigger"),
            ("pause", name("menu", "Escape"), "start"),
            ("show these keys", "F1", ""),
            ("hit areas on and off", "F2", ""),
            ("slow motion", "F3", ""),
            ("duel board", "Tab", "back"),
        ]

    def _table(self, title: str, rows: Sequence[Row], below: str) -> None:
        """A page over the fight: a title, a table with a head, and what to press."""
        width, height = min(self.size[0] - 60, 760), 110 + 30 * len(rows)
        box = pygame.Rect(0, 0, width, height)
        box.center = self.size[0] // 2, self.size[1] // 2 + 20
        self._hud.plate(box, 225)
        self._hud.write(title, LARGE, palette.TEXT, midtop=(box.centerx, box.top + 16))
        for number, row in enumerate(rows):
            columns = len(row) - 1
            for column, text in enumerate(row):
                share = column / columns * 0.9 if columns > 2 else (0.0, 0.52, 0.76)[column]
                colour = palette.FAINT if number == 0 else palette.TEXT
                place = box.left + 30 + share * (width - 60), box.top + 64 + 30 * number
                self._hud.write(text, SMALL, colour, topleft=place)
        self._hud.write(below, MEDIUM, palette.VICTORY, midbottom=(box.centerx, box.bottom - 12))

    def _line(self, text: str, y: float) -> None:
        self._hud.write(text, MEDIUM, palette.TEXT, shadow=True, midtop=(self.size[0] / 2.0, y))


def _open_pads() -> list[pygame._sdl2.controller.Controller]:
    """The gamepads that are plugged in; without being opened they tell nothing."""
    from pygame._sdl2 import controller

    controller.init()
    return [controller.Controller(i) for i in range(controller.get_count()) if controller.is_controller(i)]
