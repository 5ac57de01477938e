"""Which keys are held: the portable part, the data, and both systems' way to press."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest
from fake_window import FakeKeys
from x_display import Client, x_server

from soulsgym.errors import DataError, GameError, MisuseError
from soulsgym.game.keyboard import Keyboard, load_bindings
from soulsgym.game.windows.keys import WindowsKeys, virtual_key

BINDINGS = {"forward": "W", "left": "A", "roll": "Space", "jump": "Space", "lightattack": "L"}


@pytest.fixture
def keys():
    return FakeKeys()


@pytest.fixture
def keyboard(keys):
    return Keyboard(keys, BINDINGS)


def test_hold_presses_in_order_and_says_so(keys, keyboard):
    assert keyboard.hold(["forward", "roll"]) is True
    assert keys.sent == [("W", True), ("Space", True)]
    assert keyboard.held == {"forward", "roll"}


def test_hold_again_sends_nothing(keys, keyboard):
    keyboard.hold(["forward"])
    assert keyboard.hold(["forward"]) is False
    assert keys.batches == 1


def test_hold_releases_before_it_presses(keys, keyboard):
    keyboard.hold(["forward", "left"])
    keys.sent.clear()
    keyboard.hold(["left", "lightattack"])
    assert keys.sent == [("W", False), ("L", True)]
    assert keys.down == {"A", "L"}


def test_hold_of_nothing_releases_what_was_held(keys, keyboard):
    keyboard.hold(["forward", "left"])
    keyboard.hold([])
    assert keys.down == set()
    assert keyboard.held == frozenset()


def test_two_actions_on_one_key_are_one_press(keys, keyboard):
    keyboard.hold(["roll"])
    assert keyboard.hold(["jump"]) is False
    assert keyboard.held == {"jump"}
    keyboard.press("roll")
    keyboard.release("jump")
    assert keys.down == {"Space"}
    keyboard.release("roll")
    assert keys.sent == [("Space", True), ("Space", False)]


def test_press_and_release_one_action(keys, keyboard):
    keyboard.press("forward")
    keyboard.press("left")
    keyboard.release("forward")
    assert keys.sent == [("W", True), ("A", True), ("W", False)]
    assert keyboard.held == {"left"}


def test_release_of_what_is_not_held_sends_nothing(keys, keyboard):
    keyboard.release("forward")
    assert keys.sent == []


def test_release_all_lets_go_of_every_bound_key_held_or_not(keys, keyboard):
    keyboard.hold(["forward"])
    keys.sent.clear()
    keyboard.release_all()
    assert sorted(keys.sent) == [("A", False), ("L", False), ("Space", False), ("W", False)]
    assert keyboard.held == frozenset()


def test_unknown_action_is_named_with_a_suggestion(keys, keyboard):
    for call in (lambda: keyboard.press("foward"), lambda: keyboard.release("foward")):
        with pytest.raises(MisuseError, match=r"'foward'.*did you mean 'forward'"):
            call()
    assert keys.sent == []


def test_interrupted_hold_forgets_no_key(keys, keyboard):
    keyboard.hold(["forward"])
    keys.broken = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        keyboard.hold(["left"])
    assert keyboard.held == {"forward", "left"}
    keys.broken = None
    keyboard.hold([])
    assert keys.sent[-2:] == [("W", False), ("A", False)]


def test_close_releases_and_closes_even_if_releasing_fails(keys, keyboard):
    keys.broken = GameError("no display")
    with pytest.raises(GameError, match="no display"):
        keyboard.close()
    assert keys.closed


@pytest.mark.parametrize("title", ["darksouls3", "eldenring"])
def test_bindings_of_both_titles_are_complete_and_known_to_windows(title):
    bound = load_bindings(title)
    assert {"forward", "roll", "lock_on", "interact", "cameraleft"} <= set(bound)
    assert len(set(map(virtual_key, bound.values()))) == len(bound)


def test_keys_of_dark_souls():
    bound = load_bindings("darksouls3")
    assert (bound["heavyattack"], bound["lock_on"], bound["roll"]) == ("H", "Q", "Space")


def test_unknown_title_is_named():
    with pytest.raises(MisuseError, match=r"'darksouls2'.*did you mean 'darksouls3'"):
        load_bindings("darksouls2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[action]\nroll = 3", "action.roll"),
        ('[action]\nroll = ""', "must be the name of a key"),
        ('[action]\nroll = { key = "W" }', "must be the name of a key"),
        ('[actions]\nroll = "W"', r"not a known key, did you mean 'action'"),
        ("action = 3", "must be a table"),
        ("[action]", "must be a table"),
        ("", "must be a table"),
        ("[action", "is not TOML"),
    ],
)
def test_wrong_key_file_is_refused_by_name(tmp_path, text, message):
    (tmp_path / "game").mkdir()
    (tmp_path / "game" / "keys.toml").write_text(text)
    with pytest.raises(DataError, match=message):
        load_bindings("game", tmp_path)


# On an X display


@pytest.fixture(scope="module")
def display():
    with x_server() as name:
        yield name


@pytest.fixture
def client(display):
    client = Client(display, "some game")
    client.focus()
    client.events()
    yield client
    client.close()


@pytest.fixture
def linux_keys(display):
    from soulsgym.game.linux.keys import LinuxKeys

    keys = LinuxKeys({"DISPLAY": display})
    yield keys
    keys.close()


def test_display_presses_by_name(client, linux_keys):
    linux_keys.send([("W", True), ("Space", True), ("Space", False), ("W", False)])
    assert client.keys() == ["w+", "space+", "space-", "w-"]


def test_every_bound_key_exists_in_the_plain_layout(client, linux_keys):
    for title in ("darksouls3", "eldenring"):
        codes = {linux_keys.code(key) for key in load_bindings(title).values()}
        assert len(codes) == 16


def test_no_press_of_many_is_lost(client, linux_keys):
    for _ in range(200):
        linux_keys.send([("L", True)])
        linux_keys.send([("L", False)])
    assert client.keys() == ["l+", "l-"] * 200


def test_release_all_frees_what_a_killed_process_left_down(display, client, linux_keys):
    from soulsgym.game.linux.keys import LinuxKeys

    killed = LinuxKeys({"DISPLAY": display})
    killed.send([("W", True)])
    killed.close()
    assert client.keys() == ["w+"]
    Keyboard(linux_keys, {"forward": "W", "left": "A"}).release_all()
    assert client.keys() == ["w-"]


def test_unknown_key_is_refused_and_nothing_is_pressed(client, linux_keys):
    with pytest.raises(GameError, match="'Whatever' is not known"):
        linux_keys.send([("W", True), ("Whatever", True)])
    assert client.keys() == []
    linux_keys.send([("W", True), ("W", False)])
    assert client.keys() == ["w+", "w-"]


def test_key_that_the_layout_lacks_is_named_and_found_when_it_is_back(client, linux_keys):
    code = linux_keys.code("Q")
    row = client.display.get_keyboard_mapping(code, 1)[0]
    client.display.change_keyboard_mapping(code, [[0x6CA, 0x6EA]])  # a Cyrillic letter
    client.display.sync()
    try:
        with pytest.raises(GameError, match=r"has no key 'Q'; choose an English layout"):
            linux_keys.send([("Q", True)])
        linux_keys.send([("Q", False)])  # cannot be down, so there is nothing to let go of
    finally:
        client.display.change_keyboard_mapping(code, [list(row)])
        client.display.sync()
    client.events()
    linux_keys.send([("Q", True), ("Q", False)])
    assert [down for _, down in client.events()] == [True, False]


def test_key_is_released_as_it_was_pressed_when_the_layout_changes(client, linux_keys):
    code = linux_keys.code("E")
    linux_keys.send([("E", True)])
    row = client.display.get_keyboard_mapping(code, 1)[0]
    client.display.change_keyboard_mapping(code, [[0x6CA, 0x6EA]])
    client.display.sync()
    linux_keys.send([("E", False)])
    client.display.change_keyboard_mapping(code, [list(row)])
    assert client.events() == [(code, True), (code, False)]


def test_interrupted_connection_is_replaced(client, linux_keys):
    old = linux_keys._screen
    # As Ctrl-C in the middle of a call leaves it: python-xlib's lock stays locked for ever.
    old.display.display.send_recv_lock.acquire()
    linux_keys._interrupted = True
    linux_keys.send([("W", True), ("W", False)])
    assert linux_keys._screen is not old
    assert client.keys() == ["w+", "w-"]


def test_interruption_in_the_middle_of_a_press_is_noticed_by_the_next(client, linux_keys, monkeypatch):
    old = linux_keys._screen

    def interrupted():
        old.display.display.send_recv_lock.acquire()
        raise KeyboardInterrupt

    monkeypatch.setattr(old.display, "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        linux_keys.send([("W", True)])
    linux_keys.send([("W", False), ("A", True), ("A", False)])
    assert linux_keys._screen is not old
    assert client.keys()[-2:] == ["a+", "a-"]


def test_signal_handler_can_send_while_its_thread_is_inside(client, linux_keys, monkeypatch):
    from soulsgym.game.linux import keys as module

    monkeypatch.setattr(module, "BUSY_S", 0.05)
    keyboard = Keyboard(linux_keys, {"forward": "W"})
    inside = type(linux_keys)._send
    calls = []

    def interrupted_once(self, changes):
        calls.append(changes)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGUSR1)
        inside(self, changes)

    monkeypatch.setattr(type(linux_keys), "_send", interrupted_once)

    def stop(*_):
        keyboard.release_all()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            keyboard.hold(["forward"])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [[("W", True)], [("W", False)]]
    keyboard.hold(["forward"])
    keyboard.hold([])
    assert client.keys()[-2:] == ["w+", "w-"]


def test_threads_do_not_mix_their_keys(client, linux_keys):
    def press(key):
        for _ in range(20):
            linux_keys.send([(key, True), (key, False)])

    threads = [threading.Thread(target=press, args=(key,)) for key in "WA"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    seen = client.keys()
    assert sorted(seen) == sorted(["w+", "w-", "a+", "a-"] * 20)
    assert all(seen[at][0] == seen[at + 1][0] for at in range(0, 80, 2))


def test_display_that_does_not_run_is_named():
    from soulsgym.game.linux.keys import LinuxKeys

    pytest.importorskip("Xlib")
    with pytest.raises(GameError, match="the display :987 cannot be reached"):
        LinuxKeys({"DISPLAY": ":987"})


def test_game_without_display_is_named(monkeypatch):
    from soulsgym.game.linux.keys import LinuxKeys

    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(GameError, match="no DISPLAY"):
        LinuxKeys({})


def test_display_without_xtest_is_named():
    from soulsgym.game.linux.keys import LinuxKeys

    with x_server("-extension", "XTEST") as display, pytest.raises(GameError, match="no XTEST"):
        LinuxKeys({"DISPLAY": display})


def test_display_that_ends_is_named_and_quiet(capfd):
    from soulsgym.game.linux.keys import LinuxKeys

    with x_server() as display:
        keys = LinuxKeys({"DISPLAY": display})
        keys.send([("W", True), ("W", False)])
    for _ in range(2):
        with pytest.raises(GameError, match=display):
            keys.send([("W", True)])
    keys.close()
    assert capfd.readouterr() == ("", "")


def test_own_right_to_the_display_is_shown(tmp_path, monkeypatch):
    from soulsgym.game.linux.keys import LinuxKeys

    cookie, host = bytes(range(16)), socket.gethostname().encode()
    blocks = [host, b"", b"MIT-MAGIC-COOKIE-1", cookie]
    entry = (256).to_bytes(2, "big") + b"".join(len(part).to_bytes(2, "big") + part for part in blocks)
    (tmp_path / "own").write_bytes(entry)
    monkeypatch.setenv("XAUTHORITY", str(tmp_path / "none"))
    with x_server("-auth", str(tmp_path / "own")) as display:
        with pytest.raises(GameError, match=display):
            LinuxKeys({"DISPLAY": display})
        LinuxKeys({"DISPLAY": display, "XAUTHORITY": str(tmp_path / "own")}).close()
    assert os.environ["XAUTHORITY"] == str(tmp_path / "none")


def authority_file(number=b"", family=256, host=None, cookie=bytes(range(16))):
    blocks = [socket.gethostname().encode() if host is None else host, number, b"MIT-MAGIC-COOKIE-1", cookie]
    return family.to_bytes(2, "big") + b"".join(len(part).to_bytes(2, "big") + part for part in blocks)


@contextlib.contextmanager
def in_a_container(folder, content):
    """A process that alone sees a file of this content in a folder, as in Proton's container; its pid."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    (folder / "content").write_bytes(content)
    (folder / "run").mkdir()
    script = 'mount -t tmpfs none "$0/run" && cp "$0/content" "$0/run/cookie" && echo ready && exec sleep 600'
    command = ["unshare", "--mount", "sh", "-c", script, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if process.stdout.readline() != b"ready\n":
            pytest.skip("mount namespaces may not be made here")
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"family": 65535, "host": b""},  # of any host, as containers write it
        {"number": b"99"},  # of the display's number inside
    ],
)
def test_right_to_the_display_is_read_inside_of_the_games_container(tmp_path, monkeypatch, capfd, entry):
    from soulsgym.game.linux.keys import LinuxKeys

    (tmp_path / "server").write_bytes(authority_file())
    monkeypatch.setenv("XAUTHORITY", str(tmp_path / "none"))
    monkeypatch.delenv("DISPLAY", raising=False)
    with (
        x_server("-auth", str(tmp_path / "server")) as display,
        in_a_container(tmp_path, authority_file(**entry)) as pid,
    ):
        environment = {"DISPLAY": f"{display}.0", "XAUTHORITY": str(tmp_path / "run" / "cookie")}
        assert not (tmp_path / "run" / "cookie").exists()
        LinuxKeys(environment, pid).close()
        with pytest.raises(GameError, match=f"the display {display}.0 cannot be reached.*--display"):
            LinuxKeys(environment)
    assert os.environ["XAUTHORITY"] == str(tmp_path / "none")
    assert capfd.readouterr() == ("", "")


def test_users_display_is_tried_when_the_games_cannot_be_reached(monkeypatch, capfd):
    from soulsgym.game.linux.keys import LinuxKeys

    with x_server() as display:
        monkeypatch.setenv("DISPLAY", display)
        LinuxKeys({"DISPLAY": ":4999", "XAUTHORITY": "/run/pressure-vessel/Xauthority"}).close()
        with pytest.raises(GameError, match=":4999 cannot be reached"):
            LinuxKeys({"DISPLAY": display}, display=":4999")
        monkeypatch.delenv("DISPLAY")
        LinuxKeys({"DISPLAY": ":4999"}, display=display).close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\x01\x00\x00\x40abc", authority_file()[:-1]])
def test_authority_file_that_is_cut_off_is_no_right(damage):
    from soulsgym.game.linux.display import as_local

    assert as_local(damage, ":1") == b""


# In Windows


class FakeUser32:
    """Notes what SendInput got; maps every key but those in `lacking`."""

    def __init__(self, lacking=(), takes=None):
        self.lacking, self.takes, self.sent = lacking, takes, []

    def GetForegroundWindow(self):  # noqa: N802
        return 77

    def GetWindowThreadProcessId(self, window, pid):  # noqa: N802
        assert window == 77
        return 5

    def GetKeyboardLayout(self, thread):  # noqa: N802
        assert thread == 5
        return 0x4070407

    def MapVirtualKeyExW(self, vk, kind, layout):  # noqa: N802
        assert (kind, layout) == (0, 0x4070407)
        return 0 if vk in self.lacking else vk - 0x10

    def SendInput(self, count, inputs, size):  # noqa: N802
        assert size == 40
        self.sent += [(i.kind, i.key.vk, i.key.scan, i.key.flags) for i in inputs._obj]
        return count if self.takes is None else self.takes


def test_windows_gets_virtual_key_and_scan_code_together():
    user32 = FakeUser32()
    WindowsKeys(1, user32).send([("W", True), ("Space", True), ("Left", True), ("W", False), ("Left", False)])
    assert user32.sent == [
        (1, 0x57, 0x47, 0),
        (1, 0x20, 0x10, 0),
        (1, 0x25, 0x15, 1),
        (1, 0x57, 0x47, 2),
        (1, 0x25, 0x15, 3),
    ]


def test_layout_in_windows_without_the_key_is_named():
    user32 = FakeUser32(lacking=(0x51,))
    with pytest.raises(GameError, match="no key 'Q'"):
        WindowsKeys(1, user32).send([("W", True), ("Q", True)])
    assert user32.sent == []
    WindowsKeys(1, user32).send([("Q", False)])
    assert WindowsKeys(1, user32).missing(["W", "Q"]) == ["Q"]


def test_presses_that_windows_refuses_are_reported():
    with pytest.raises(GameError, match="took 0 of 1 key presses"):
        WindowsKeys(1, FakeUser32(takes=0)).send([("W", True)])


def test_key_that_windows_does_not_know_is_named():
    with pytest.raises(GameError, match="'Hyper' is not known"):
        WindowsKeys(1, FakeUser32()).send([("Hyper", True)])
