"""A window on an X display: found, focused, seen; and the same calls in Windows."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
import pytest
from fake_desktop import FakeWindows
from x_display import Client, wait_until, x_server

from soulsgym.errors import FocusLost, GameError, GameNotFound
from soulsgym.game.linux.window import process_numbers
from soulsgym.game.process import ProcessInfo
from soulsgym.game.window import open_window

TITLE = "DARK SOULS III"
PID = 4242


@pytest.fixture(scope="module")
def display():
    with x_server() as name:
        yield name


@pytest.fixture
def found(display):
    return ProcessInfo(PID, r"Z:\games\DarkSoulsIII.exe", {"DISPLAY": display})


@pytest.fixture
def make_client(display):
    clients = []

    def make(title=TITLE, **about):
        clients.append(Client(display, title, **about))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def game(make_client):
    return make_client(pid=PID)


@pytest.fixture
def window(found, game):
    window = open_window(found, TITLE, 1.0)
    yield window
    window.close()


def size_of(found, limit_s=0.0):
    window = open_window(found, TITLE, limit_s)
    try:
        return window.client_size()
    finally:
        window.close()


def test_window_of_the_process_is_found_among_others(found, make_client):
    make_client(pid=PID + 1, size=(600, 400))
    make_client("Steam", size=(700, 500))
    make_client(pid=PID, size=(321, 201))
    assert size_of(found) == (321, 201)


def test_title_decides_among_windows_of_the_process(found, make_client):
    make_client("splash", pid=PID, size=(900, 700))
    make_client(pid=PID, size=(300, 200))
    assert size_of(found) == (300, 200)


def test_largest_window_of_the_process_is_taken_when_none_has_the_title(found, make_client):
    make_client("a", pid=PID, size=(100, 100))
    make_client("b", pid=PID, size=(400, 300))
    make_client("c", pid=PID, size=(50, 50))
    assert size_of(found) == (400, 300)


def test_window_without_a_process_number_is_taken_by_title(found, make_client):
    make_client("Something", size=(600, 400))
    make_client(TITLE, size=(310, 210))
    assert size_of(found) == (310, 210)


def test_unmapped_window_is_not_taken(found, make_client):
    hidden = make_client(pid=PID)
    hidden.window.unmap()
    hidden.display.sync()
    with pytest.raises(GameNotFound, match=rf"no window 'DARK SOULS III' of process {PID}.*within 0 s"):
        open_window(found, TITLE, 0.0)


def test_window_that_comes_late_is_waited_for(found, make_client):
    timer = threading.Timer(0.3, lambda: make_client(pid=PID, size=(333, 222)))
    timer.start()
    assert size_of(found, 60.0) == (333, 222)
    timer.join()


def test_inner_process_number_of_a_container_counts(found, make_client, tmp_path):
    (tmp_path / str(PID)).mkdir()
    (tmp_path / str(PID) / "status").write_text(f"Name:\tx\nNSpid:\t{PID}\t56\nThreads:\t1\n")
    assert process_numbers(PID, tmp_path) == {PID, 56}
    assert process_numbers(os.getpid()) >= {os.getpid()}
    assert process_numbers(PID + 1, tmp_path) == {PID + 1}


def test_focus_is_told_and_given_back(window, game, make_client):
    other = make_client("a mail program")
    other.focus()
    assert not window.has_focus()
    window.activate()
    assert window.has_focus()
    assert game.display.get_input_focus().focus.id == game.window.id


def test_focus_inside_the_window_is_its_focus(window, game, make_client):
    inner = make_client("inner", inside=game, size=(50, 40), at=(0, 0))
    inner.focus()
    assert window.has_focus()


def test_pointer_focus_is_no_focus(window, game):
    from Xlib import X

    game.display.set_input_focus(X.PointerRoot, X.RevertToNone, X.CurrentTime)
    game.display.sync()
    assert not window.has_focus()
    window.activate()
    assert window.has_focus()


def test_window_behind_another_one_of_wine_has_no_focus(found, make_client):
    game = make_client(pid=PID, program="darksoulsiii.exe")
    window = open_window(found, TITLE, 1.0)
    window.activate()
    make_client("a terminal")
    assert window.has_focus()
    box = make_client("A message", program="darksoulsiii.exe", size=(100, 50))
    assert game.display.get_input_focus().focus.id == game.window.id
    assert not window.has_focus()
    window.activate()
    assert window.has_focus()
    box.window.configure(stack_mode=0)
    box.display.sync()
    assert not window.has_focus()
    box.window.unmap()
    box.display.sync()
    assert window.has_focus()
    window.close()


def test_wine_is_told_to_take_the_focus(window, game):
    window.activate()
    protocols, take = (game.display.intern_atom(name) for name in ("WM_PROTOCOLS", "WM_TAKE_FOCUS"))
    messages = []

    def told():
        while game.display.pending_events():
            event = game.display.next_event()
            if event.type == 33:
                messages.append((event.client_type, event.data[1][0]))
        return messages

    wait_until(told)
    assert messages[0] == (protocols, take)


def test_focus_that_does_not_come_names_who_has_it(window, game, make_client, monkeypatch):
    make_client("a thief").focus()
    asked = []
    monkeypatch.setattr(window, "_request_focus", lambda: asked.append(time.monotonic()))
    before = time.monotonic()
    with pytest.raises(FocusLost, match=r"did not get the focus within 0\.6 s: the window 'a thief' has it"):
        window.activate(0.6)
    assert 0.6 <= time.monotonic() - before < 60.0
    assert 2 <= len(asked) <= 3


def test_holder_of_the_focus_is_described(window, game):
    from Xlib import X

    game.display.set_input_focus(X.PointerRoot, X.RevertToNone, X.CurrentTime)
    game.display.sync()
    assert window._holder() == "the window below the mouse pointer"
    game.display.set_input_focus(X.NONE, X.RevertToNone, X.CurrentTime)
    game.display.sync()
    assert window._holder() == "no window"


def test_window_manager_is_asked_when_there_is_one(window, game, make_client):
    """A manager as the specification says: a window that both it and the root name."""
    from Xlib import X, Xatom

    manager = make_client("manager", size=(5, 5))
    root = manager.display.screen().root
    check = manager.display.intern_atom("_NET_SUPPORTING_WM_CHECK")
    active = manager.display.intern_atom("_NET_ACTIVE_WINDOW")
    for marked in (root, manager.window):
        marked.change_property(check, Xatom.WINDOW, 32, [manager.window.id])
    root.change_attributes(event_mask=X.SubstructureNotifyMask)
    manager.focus()
    asked = []

    def manage():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not asked:
            while manager.display.pending_events():
                event = manager.display.next_event()
                if event.type == X.ClientMessage and event.client_type == active:
                    asked.append((event.window.id, event.data[1][0]))
                    event.window.set_input_focus(X.RevertToParent, X.CurrentTime)
                    manager.display.sync()
            time.sleep(0.005)

    thread = threading.Thread(target=manage)
    thread.start()
    try:
        window.activate(60.0)
        thread.join(60)
        assert asked == [(game.window.id, 2)]
        assert window.has_focus()
        # The manager ends and leaves its mark: the window is focused without it.
        manager.window.destroy()
        manager.display.sync()
        assert not window._is_managed()
        window.activate(60.0)
    finally:
        root.delete_property(check)
        manager.display.sync()


def test_wine_desktop_gets_the_focus_for_what_is_in_it(found, make_client):
    desktop = make_client("a - Wine desktop", size=(500, 400), at=(10, 20))
    make_client(pid=PID, size=(200, 100), at=(5, 7), inside=desktop)
    window = open_window(found, TITLE, 1.0)
    window.activate()
    assert desktop.display.get_input_focus().focus.id == desktop.window.id
    assert window.has_focus()
    assert window.client_size() == (200, 100)
    window.close()


def paint(client, colour, area):
    context = client.window.create_gc(foreground=colour)
    client.window.fill_rectangle(context, *area)
    client.display.sync()


def test_grab_is_the_client_area_in_rgb(window, game):
    paint(game, 0xFF8001, (0, 0, 1, 1))
    paint(game, 0x0102FF, (319, 199, 1, 1))
    image = window.grab()
    assert (image.shape, image.dtype) == ((200, 320, 3), np.uint8)
    assert image[0, 0].tolist() == [0xFF, 0x80, 0x01]
    assert image[199, 319].tolist() == [0x01, 0x02, 0xFF]
    assert image[100, 100].tolist() == [0x20, 0x40, 0x60]
    assert image.flags.c_contiguous
    assert image.flags.writeable


def test_grab_follows_the_window(window, game):
    game.window.configure(x=300, y=200, width=64, height=48)
    game.display.sync()
    paint(game, 0x00FF00, (0, 0, 64, 48))
    image = window.grab()
    assert image.shape == (48, 64, 3)
    assert (image == (0, 255, 0)).all()


def test_grab_takes_the_inner_window_that_3d_is_drawn_into(window, game, make_client):
    inner = make_client("inner", inside=game, size=(300, 170), at=(10, 25))
    assert window.client_size() == (300, 170)
    paint(inner, 0x112233, (0, 0, 300, 170))
    image = window.grab()
    assert image.shape == (170, 300, 3)
    assert (image == (0x11, 0x22, 0x33)).all()


@pytest.mark.parametrize("at", [(-1, 0), (0, -1), (705, 0), (0, 569)])
def test_window_partly_outside_of_the_screen_is_named(window, game, at):
    game.window.configure(x=at[0], y=at[1])
    game.display.sync()
    with pytest.raises(GameError, match=rf"320 x 200 at \({at[0]}, {at[1]}\), is partly outside .* 1024 x 768"):
        window.grab()


def test_window_that_touches_the_edge_is_seen(window, game):
    game.window.configure(x=704, y=568)
    game.display.sync()
    assert window.grab().shape == (200, 320, 3)


def test_minimised_window_is_named(window, game):
    game.window.unmap()
    game.display.sync()
    with pytest.raises(GameError, match="minimised"):
        window.grab()


def test_window_that_is_gone_is_named_and_quiet(window, game, capfd):
    game.window.destroy()
    game.display.sync()
    for call in (window.client_size, window.grab, lambda: window.activate(0.2)):
        with pytest.raises(GameNotFound, match="is gone"):
            call()
    assert capfd.readouterr() == ("", "")


def test_display_that_ends_is_named_and_quiet(capfd):
    with x_server() as name:
        client = Client(name, TITLE, pid=PID)
        found = ProcessInfo(PID, "DarkSoulsIII.exe", {"DISPLAY": name})
        window = open_window(found, TITLE, 1.0)
        assert window.grab().shape == (200, 320, 3)
    for call in (window.has_focus, window.client_size, window.grab, window.activate):
        with pytest.raises(GameError, match=name):
            call()
    window.close()
    del client
    assert capfd.readouterr() == ("", "")


# In Windows


@pytest.fixture
def windows():
    return FakeWindows()


def opened(windows, limit_s=0.0):
    from soulsgym.game.windows.window import open_windows_window

    return open_windows_window(7, TITLE, limit_s, windows)


def test_windows_window_is_found_by_process_and_title(windows):
    windows.add(1, pid=8)
    windows.add(2, name="splash", size=(900, 900))
    windows.add(3, size=(80, 45))
    windows.add(4, size=(90, 45), visible=False)
    assert opened(windows).client_size() == (80, 45)


def test_windows_window_that_is_not_there_is_named(windows):
    windows.add(1, pid=8)
    with pytest.raises(GameNotFound, match="no window 'DARK SOULS III' of process 7"):
        opened(windows)


def test_windows_window_in_front_is_left_alone(windows):
    windows.add(1)
    windows.front = 1
    opened(windows).activate()
    assert windows.asked == 0


def test_windows_window_comes_to_the_front_at_the_first_asking(windows):
    windows.add(1)
    opened(windows).activate()
    assert (windows.front, windows.asked, windows.attached, windows.alts) == (1, 1, [], 0)


def test_windows_window_is_asked_for_in_stronger_ways_only_when_needed(windows):
    windows.add(1)
    windows.add(2, pid=8, name="a browser")
    windows.front = 2
    windows.obeys = lambda windows: windows.asked >= 2
    opened(windows).activate()
    assert windows.attached == [(5, 1002, 1), (5, 1002, 0)]
    assert windows.alts == 0
    windows.front, windows.asked = 2, 0
    windows.obeys = lambda windows: windows.alts > 0
    opened(windows).activate()
    assert (windows.front, windows.alts) == (1, 1)


def test_windows_window_that_does_not_come_names_who_is_in_front(windows):
    windows.add(1)
    windows.add(2, pid=8, name="a browser")
    windows.front = 2
    windows.obeys = lambda windows: False
    with pytest.raises(FocusLost, match=r"did not come to the front within 0\.1 s: the window 'a browser' is there"):
        opened(windows).activate(0.1)


def test_minimised_windows_window_is_restored_for_focus_and_named_for_pictures(windows):
    windows.add(1, minimised=True)
    window = opened(windows)
    with pytest.raises(GameError, match="minimised"):
        window.grab()
    window.activate()
    assert windows.shown == [9]


def test_windows_window_is_seen_in_rgb_and_real_pixels(windows):
    windows.add(1, size=(4, 3), at=(100, 50))
    image = opened(windows).grab()
    assert image.shape == (3, 4, 3)
    assert image[0, 0].tolist() == [7, 50, 100]
    assert image[2, 3].tolist() == [7, 52, 103]
    assert windows.dpi.count("on") == windows.dpi.count("off") > 0


def test_windows_picture_follows_the_size(windows):
    windows.add(1, size=(4, 3))
    window = opened(windows)
    window.grab()
    windows.windows[1].size = (6, 2)
    assert window.grab().shape == (2, 6, 3)


@pytest.mark.parametrize("at", [(-1, 0), (0, -1), (1917, 0), (0, 1078)])
def test_windows_window_partly_outside_of_the_screen_is_named(windows, at):
    windows.add(1, size=(4, 3), at=at)
    with pytest.raises(GameError, match="partly outside"):
        opened(windows).grab()


def test_windows_window_on_a_monitor_to_the_left_is_seen(windows):
    windows.screen = (-200, 0, 2120, 1080)
    windows.add(1, size=(4, 3), at=(-200, 0))
    assert opened(windows).grab()[0, 0].tolist() == [7, 0, 56]


def test_windows_screen_that_cannot_be_seen_is_named_and_tried_anew(windows):
    windows.add(1)
    windows.locked = True
    window = opened(windows)
    with pytest.raises(GameError, match="cannot be seen: BitBlt failed; is the screen locked"):
        window.grab()
    windows.locked = False
    assert window.grab().shape == (3, 4, 3)
    window.close()
    window.close()
    assert (windows.opened, windows.closed) == (2, 1)


def test_windows_window_without_pixels_is_named(windows):
    windows.add(1, size=(0, 3))
    with pytest.raises(GameError, match="0 x 3 pixels large"):
        opened(windows).grab()


def test_without_mss_the_way_to_it_is_named(windows, monkeypatch):
    monkeypatch.setitem(sys.modules, "mss.exception", None)
    windows.add(1)
    with pytest.raises(GameError, match=r"pip install 'souls-arena\[game\]'"):
        opened(windows).grab()


def test_windows_window_that_is_gone_is_named(windows):
    windows.add(1)
    window = opened(windows)
    del windows.windows[1]
    for call in (window.has_focus, window.client_size, window.grab, window.activate):
        with pytest.raises(GameNotFound, match="is gone"):
            call()
