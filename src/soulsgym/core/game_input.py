"""SoulsGym's GameInput: keys of a game by the names of its actions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from soulsgym.core import FOLDERS
from soulsgym.errors import MisuseError, suggestion
from soulsgym.game.attach import find_game
from soulsgym.game.keyboard import Keyboard, open_keys
from soulsgym.games.game import StaticGameData


class GameInput:
    """Presses the keys of a running game, which is looked for at the first press. Whoever uses it has the focus."""

    press_and_release_actions = ("roll", "lightattack", "heavyattack", "parry")
    older_names: ClassVar = {"lockon": "lock_on"}
    DEFAULT_PRESS_TIME = 0.05

    def __init__(self, game_id: str, game_speed: float = 1.0) -> None:
        data = StaticGameData(game_id)
        if not game_speed > 0.0:
            raise MisuseError(f"game_speed {game_speed} is not possible; give a number above 0")
        self.keybindings, self.keymap = data.keybindings, data.keymap
        self.queued_actions: list[str] = []
        self.press_duration = self.DEFAULT_PRESS_TIME / game_speed
        self._folder = FOLDERS[game_id]
        self._keyboard: Keyboard | None = None

    @property
    def state(self) -> dict[str, bool]:
        """Which actions are held."""
        held = self._keyboard.held if self._keyboard else ()
        return {action: action in held for action in self.keybindings}

    def add_action(self, action: str) -> None:
        """Press one more action with the next update."""
        self.add_actions([action])

    def add_actions(self, actions: Sequence[str]) -> None:
        """Press these actions too with the next update."""
        self.queued_actions.extend(map(self._known, actions))

    def update_input(self) -> None:
        """Hold what was added and let go of the rest; rolls, attacks and parries are pressed for a moment, after it."""
        queued, self.queued_actions = self.queued_actions, []
        self._keys().hold(action for action in queued if action not in self.press_and_release_actions)
        for action in self.press_and_release_actions:
            if action in queued:
                self.single_action(action, self.press_duration)

    def single_action(self, action: str, press_time: float = 0.15) -> None:
        """Press one action for so many seconds."""
        keys, action = self._keys(), self._known(action)
        keys.press(action)
        try:
            time.sleep(press_time)
        finally:
            keys.release(action)

    def reset(self) -> None:
        """Let go of all keys and forget what was added."""
        self.queued_actions = []
        if self._keyboard:
            self._keyboard.release_all()

    def _known(self, action: str) -> str:
        action = self.older_names.get(action, action)
        if action not in self.keybindings:
            raise MisuseError(f"action {action!r} has no key{suggestion(action, self.keybindings)}")
        return action

    def _keys(self) -> Keyboard:
        if self._keyboard is None:
            self._keyboard = Keyboard(open_keys(find_game(self._folder)), self.keybindings)
        return self._keyboard
