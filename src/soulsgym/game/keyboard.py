"""The keys that a game's actions are bound to, and which of them are held."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from soulsgym.errors import DataError, GameError, MisuseError, suggestion
from soulsgym.spec.reader import read_toml

if TYPE_CHECKING:
    from soulsgym.game.process import ProcessInfo

DATA = Path(__file__).parent.parent / "data"


def load_bindings(title: str, data: Path = DATA) -> dict[str, str]:
    """The name of the key of every action of a title, as `data/<title>/keys.toml` says."""
    file = data / title / "keys.toml"
    if not file.is_file():
        known = tuple(sorted(found.parent.name for found in data.glob("*/keys.toml")))
        raise MisuseError(f"there are no keys for the title {title!r}{suggestion(title, known)}")
    content = read_toml(file)
    for name in content.keys() - {"action"}:
        raise DataError(file, name, content[name], f"is not a known key{suggestion(name, ('action',))}")
    bindings = content.get("action")
    if not isinstance(bindings, dict) or not bindings:
        raise DataError(file, "action", bindings, "must be a table of keys by action")
    for action, key in bindings.items():
        if not isinstance(key, str) or not key:
            raise DataError(file, f"action.{action}", key, "must be the name of a key")
    return bindings


class Keys(Protocol):
    """What presses keys: the lowest seam of input."""

    def send(self, changes: Sequence[tuple[str, bool]]) -> None:
        """Press (True) and let go of (False) keys by name, in this order; done when it returns."""
        ...

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those keys that the keyboard layout of now lacks."""
        ...

    def layouts(self) -> list[str]:
        """The names of the keyboard layouts that one can switch between, the present one among them."""
        ...

    def close(self) -> None:
        """Let go of the system's resources; presses nothing."""
        ...


def open_keys(found: ProcessInfo) -> Keys:
    """The keys of the desktop on which a game shows itself."""
    if sys.platform == "win32":
        from soulsgym.game.windows.keys import WindowsKeys

        return WindowsKeys(found.pid)
    if sys.platform == "linux":
        from soulsgym.game.linux.keys import LinuxKeys

        return LinuxKeys(found.environment, found.pid, found.display)
    raise GameError(f"keys cannot be pressed on {sys.platform}; a game is played on Windows or Linux")


class Keyboard:
    """Which actions are held, and the fewest key changes to get from one set to another."""

    def __init__(self, keys: Keys, bindings: Mapping[str, str]) -> None:
        self._keys = keys
        self._bindings = dict(bindings)
        self._held: tuple[str, ...] = ()
        self._open = True

    @property
    def held(self) -> frozenset[str]:
        """The actions held now."""
        return frozenset(self._held)

    def hold(self, actions: Iterable[str]) -> bool:
        """Hold exactly these actions, pressed in this order, and let go of all others; was anything sent?"""
        wanted = tuple(dict.fromkeys(actions))
        now, then = self._keys_of(self._held), self._keys_of(wanted)
        changes = [(key, False) for key in now if key not in then] + [(key, True) for key in then if key not in now]
        if not changes:
            self._held = wanted
            return False
        # Until all is sent, what was held and what shall be both count: an interruption must not lose a key.
        self._held = tuple(dict.fromkeys((*self._held, *wanted)))
        self._keys.send(changes)
        self._held = wanted
        return True

    def press(self, action: str) -> None:
        """Hold one more action."""
        self.hold((*self._held, action))

    def release(self, action: str) -> None:
        """Hold one action less."""
        self._key(action)
        self.hold(held for held in self._held if held != action)

    def release_all(self) -> None:
        """Let go of every bound key, also of those that an earlier, killed process left down."""
        if not self._open:
            return  # closing has done so
        self._keys.send([(key, False) for key in dict.fromkeys(self._bindings.values())])
        self._held = ()

    def close(self) -> None:
        """Let go of every key, and of the system's resources."""
        try:
            self.release_all()
        finally:
            self._open = False
            self._keys.close()

    def _keys_of(self, actions: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self._key, actions)))

    def _key(self, action: str) -> str:
        key = self._bindings.get(action)
        if key is None:
            raise MisuseError(f"the action {action!r} is not bound to a key{suggestion(action, tuple(self._bindings))}")
        return key
