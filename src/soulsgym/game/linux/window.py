"""Finds a Wine window on an X display, gives it the focus and looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from soulsgym.errors import FocusLost, GameError, GameNotFound
from soulsgym.game.linux.display import Screen, authority
from soulsgym.game.window import ScreenGrabber

if TYPE_CHECKING:
    from soulsgym.game.process import ProcessInfo

Answer = TypeVar("Answer")

POLL_S = 0.01
ASK_AGAIN_S = 0.25
SETTLE_S = 0.05
"""What Wine may take to see that its window has the focus again; keys pressed earlier are lost to some of its ways."""
DEEPEST = 8
"""Levels of windows below the root that are searched: frame, desktop, window and some more."""
DESKTOP = "Wine desktop"
PAGER = 2
"""Who asks for the focus, in the words of window managers: not the window itself but somebody for the user."""


def open_linux_window(found: ProcessInfo, title: str, limit_s: float) -> LinuxWindow:
    """The window of a process, by its process number, its title or its class."""
    screen = Screen(found.environment, found.pid, found.display)
    try:
        pids = process_numbers(found.pid)
        deadline = time.monotonic() + limit_s
        while True:
            with screen.asking("looking for the window"):
                chain = find_window(screen, pids, Path(found.executable_path).name, title)
            if chain is not None:
                return LinuxWindow(screen, chain, title)
            if time.monotonic() > deadline:
                raise GameNotFound(
                    f"no window {title!r} of process {found.pid} appeared on display {screen.name} within "
                    f"{limit_s:g} s; is the game past its start, and not minimised?"
                )
            time.sleep(0.1)
    except BaseException:
        screen.close()
        raise


def process_numbers(pid: int, proc: Path = Path("/proc")) -> frozenset[int]:
    """The numbers of a process here and in its containers: inside one, a window is marked with the inner number."""
    try:
        for line in (proc / str(pid) / "status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return frozenset({pid, *map(int, line.split()[1:])})
    except OSError:
        pass
    return frozenset({pid})


def find_window(screen: Screen, pids: frozenset[int], executable: str, title: str) -> tuple[Any, ...] | None:
    """The best window and those above it, outermost first; None if there is none yet."""
    best, best_rank = None, (0, 0, 0)
    executable = executable.replace("\\", "/").rsplit("/", 1)[-1].lower()
    for chain in _chains(screen.root, ()):
        rank = _rank(screen, chain[-1], pids, executable, title)
        if rank > best_rank:
            best, best_rank = chain, rank
    return best


def _chains(window: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    from Xlib.error import XError

    if len(above) >= DEEPEST:
        return
    try:
        children = window.query_tree().children
    except XError:
        return
    for child in children:
        yield (*above, child)
        yield from _chains(child, (*above, child))


def _rank(screen: Screen, window: Any, pids: frozenset[int], executable: str, title: str) -> tuple[int, int, int]:
    """How surely a window is the one: by whom it is, whether it has the title, how large it is; zeros if it is not."""
    from Xlib import X
    from Xlib.error import XError

    try:
        owner = _number(screen, window, "_NET_WM_PID")
        has_title = window_name(screen, window) == title
        classes = tuple(name.lower() for name in window.get_wm_class() or ())
        # Without an owner on it, a window is taken by class and title together.
        mine = 2 if owner in pids else int(owner is None and has_title and (executable in classes or not classes))
        if not mine or window.get_attributes().map_state != X.IsViewable:
            return 0, 0, 0
        geometry = window.get_geometry()
        return mine, int(has_title), int(geometry.width * geometry.height)
    except XError:
        return 0, 0, 0


def _number(screen: Screen, window: Any, name: str) -> int | None:
    from Xlib import X

    atom = screen.atom(name)
    found = window.get_full_property(atom, X.AnyPropertyType) if atom else None
    return int(found.value[0]) if found is not None and len(found.value) else None


def window_name(screen: Screen, window: Any) -> str:
    """What a window calls itself."""
    from Xlib import X

    atom = screen.atom("_NET_WM_NAME")
    found = window.get_full_property(atom, X.AnyPropertyType) if atom else None
    name = found.value if found is not None else window.get_wm_name()
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name or "")
    return text.strip("\0 ")


class LinuxWindow:
    """One window on an X display; owns its connection."""

    def __init__(self, screen: Screen, chain: tuple[Any, ...], title: str) -> None:
        self.title = title
        self._screen = screen
        self._window = chain[-1]
        # Programs inside a Wine desktop get their keys from it, so the desktop is what must have the focus.
        desktops = [window for window in chain[:-1] if window_name(screen, window).endswith(DESKTOP)]
        self._focused = desktops[-1] if desktops else self._window
        self._grabber = ScreenGrabber(lambda: _open_mss(screen), title)

    def has_focus(self) -> bool:
        """Do key presses go to this window?"""
        return self._ask(self._is_focused)

    def _is_focused(self) -> bool:
        return self._gets_keys() and not self._is_behind()

    def _gets_keys(self) -> bool:
        window = self._screen.display.get_input_focus().focus
        for _ in range(DEEPEST):
            # Numbers stand for "nobody" and "where the pointer is"; the latter changes when somebody moves the mouse.
            if not hasattr(window, "id") or window.id == self._screen.root.id:
                return False
            if window.id == self._focused.id:
                return True
            window = window.query_tree().parent
        return False

    def _is_behind(self) -> bool:
        """Has Wine another window in front? Without a window manager the display's focus does not follow Wine's."""
        parent = self._window.query_tree().parent
        if parent.id == self._screen.root.id and self._is_managed():
            return False
        siblings = parent.query_tree().children
        place = next((at for at, window in enumerate(siblings) if window.id == self._window.id), len(siblings))
        return any(self._is_rival(window) for window in siblings[place + 1 :])

    def _is_rival(self, window: Any) -> bool:
        from Xlib import X
        from Xlib.error import XError

        try:
            about = window.get_attributes()
            if about.map_state != X.IsViewable or about.override_redirect or about.win_class != X.InputOutput:
                return False
            classes = window.get_wm_class() or ("",)
            return classes[-1].lower().endswith(".exe") or classes == self._window.get_wm_class()
        except XError:
            return False

    def activate(self, limit_s: float = 2.0) -> None:
        """Give the window the focus, by the window manager if there is one; FocusLost if it does not get it."""
        deadline, next_try = time.monotonic() + limit_s, 0.0
        settle_s = 0.0 if self.has_focus() else SETTLE_S
        while True:
            now = time.monotonic()
            if now >= next_try:
                self._ask(self._request_focus)
                next_try = now + ASK_AGAIN_S
            if self.has_focus():
                time.sleep(settle_s)
                if not settle_s or self.has_focus():
                    return
            if now > deadline:
                raise FocusLost(
                    f"the window {self.title!r} did not get the focus within {limit_s:g} s: "
                    f"{self._ask(self._holder)} has it; leave the game in front and do not use the keyboard"
                )
            time.sleep(POLL_S)

    def _request_focus(self) -> None:
        from Xlib import X
        from Xlib.protocol.event import ClientMessage

        display, root = self._screen.display, self._screen.root
        if self._is_managed():
            atom = display.intern_atom("_NET_ACTIVE_WINDOW")
            message = ClientMessage(window=self._focused, client_type=atom, data=(32, [PAGER, X.CurrentTime, 0, 0, 0]))
            root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        else:
            if self._focused.get_attributes().map_state == X.IsViewable:
                self._window.configure(stack_mode=X.Above)
                self._focused.set_input_focus(X.RevertToParent, X.CurrentTime)
            # The display's focus alone leaves Wine's own idea of the foreground as it was.
            protocols, take = display.intern_atom("WM_PROTOCOLS"), display.intern_atom("WM_TAKE_FOCUS")
            data = (32, [take, X.CurrentTime, 0, 0, 0])
            message = ClientMessage(window=self._focused, client_type=protocols, data=data)
            self._focused.send_event(message, event_mask=X.NoEventMask)
        display.sync()

    def _is_managed(self) -> bool:
        """Is there a window manager, alive, that gives the focus when asked?"""
        from Xlib.error import XError

        screen = self._screen
        manager = _number(screen, screen.root, "_NET_SUPPORTING_WM_CHECK")
        if manager is None:
            return False
        try:
            window = screen.display.create_resource_object("window", manager)
            # A window manager that has ended leaves its mark on the root; its own window is gone, though.
            return _number(screen, window, "_NET_SUPPORTING_WM_CHECK") == manager
        except XError:
            return False

    def _holder(self) -> str:
        if self._gets_keys():
            return "another window of Wine"
        window = self._screen.display.get_input_focus().focus
        if not hasattr(window, "id"):
            return "the window below the mouse pointer" if window else "no window"
        for _ in range(DEEPEST):
            if window.id == self._screen.root.id:
                break
            name = window_name(self._screen, window)
            if name:
                return f"the window {name!r}"
            window = window.query_tree().parent
        return "a window without a name"

    def client_size(self) -> tuple[int, int]:
        """Width and height of what the game draws."""
        return self._ask(self._place)[2:]

    def _place(self) -> tuple[int, int, int, int]:
        drawn = self._drawn()
        geometry = drawn.get_geometry()
        corner = drawn.translate_coords(self._screen.root, 0, 0)
        # Translated to the root's frame, the corner comes back with the sign turned.
        return -int(corner.x), -int(corner.y), int(geometry.width), int(geometry.height)

    def _drawn(self) -> Any:
        """Wine draws 3D into an inner window, of the client area's size, where it draws the title bar itself."""
        from Xlib import X

        outer = self._window.get_geometry()
        for child in self._window.query_tree().children:
            inner = child.get_geometry()
            if 2 * inner.width * inner.height > outer.width * outer.height:
                attributes = child.get_attributes()
                if attributes.map_state == X.IsViewable and attributes.win_class == X.InputOutput:
                    return child
        return self._window

    def grab(self) -> npt.NDArray[np.uint8]:
        """The client area now."""
        from Xlib import X

        left, top, width, height = self._ask(self._place)
        if self._ask(self._window.get_attributes).map_state != X.IsViewable:
            raise GameError(f"the window {self.title!r} is minimised, so nothing can be seen of it; restore it")
        screen = self._ask(self._screen.root.get_geometry)
        if left < 0 or top < 0 or left + width > screen.width or top + height > screen.height:
            raise GameError(
                f"the window {self.title!r}, {width} x {height} at ({left}, {top}), is partly outside of the screen of "
                f"{screen.width} x {screen.height}; move it so that all of it can be seen"
            )
        return self._grabber.grab(left, top, width, height)

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        from Xlib.error import XError

        try:
            with self._screen.asking(f"the window {self.title!r}"):
                return question()
        except XError as error:
            raise GameNotFound(f"the window {self.title!r} is gone; start the game, or wait until it shows") from error

    def close(self) -> None:
        """Hang up; the window stays."""
        self._grabber.close()
        self._screen.close()


def _open_mss(screen: Screen) -> Any:
    import mss

    with authority(screen.way):
        return mss.MSS(display=screen.name)
