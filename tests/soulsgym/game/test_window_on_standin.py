"""Keys, focus, pictures and the doctor on a Windows program that runs under Wine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import standin_kit
from standin_kit import SOURCES, WAIT_LIMIT_S, date_of, rate_of
from x_display import Client, wait_until

from soulsgym.errors import GameNotFound
from soulsgym.game.capture import resize
from soulsgym.game.keyboard import Keyboard, load_bindings, open_keys
from soulsgym.game.process import ProcessInfo, find_processes
from soulsgym.game.window import open_window
from soulsgym.game.windows.keys import virtual_key
from soulsgym.recordings.person import record_person
from soulsgym.recordings.recording import read_recording, write_recording
from soulsgym.spec import load_fight

pytestmark = [
    pytest.mark.wine,
    pytest.mark.skipif(sys.platform != "linux", reason="these look at an X display; the engine's tests run on Windows"),
]
TITLE = "DARK SOULS III"
VK = {action: virtual_key(key) for action, key in load_bindings("darksouls3").items()}


def found(standin) -> ProcessInfo:
    return next(game for game in find_processes("DarkSoulsIII.exe") if game.pid == standin.pid)


class Held:
    """Window and keyboard of a stand-in."""

    def __init__(self, standin) -> None:
        self.standin = standin
        self.window = open_window(found(standin), TITLE)
        self.keyboard = Keyboard(open_keys(found(standin)), load_bindings("darksouls3"))
        self.window.activate()
        self.keyboard.release_all()
        standin.wait_turns()

    def close(self) -> None:
        self.keyboard.close()
        self.window.close()

    def tap(self, action) -> None:
        """Press and let go, each until it is seen by every way to read keys."""
        self.keyboard.hold([action])
        self.sees({VK[action]})
        self.keyboard.hold([])
        self.sees(set())

    def sees(self, keys) -> None:
        """Wait until just these keys are down, by every way to read them."""
        self.standin.wait_for(lambda block: held_keys(block) == [keys] * len(SOURCES))


@pytest.fixture
def hold():
    held = []

    def take(standin):
        held.append(Held(standin))
        return held[-1]

    yield take
    for one in held:
        one.close()


@pytest.fixture
def game(standin, hold):
    return hold(standin)


def ups_and_downs(block, since):
    """Per API, the keys in the order in which it saw them, from the given event on."""
    seen = block.seen()[since - block.event_count :] if since < block.event_count else []
    return {source: [(vk, down) for name, vk, down, _ in seen if name == source] for source in SOURCES}


def test_every_bound_key_is_seen_by_all_four_ways_to_read_keys(game):
    before = game.standin.look().event_count
    actions = [action for action in VK if action != "menu"]
    for action in actions:
        game.tap(action)
    expected = [(VK[action], down) for action in actions for down in (True, False)]
    assert ups_and_downs(game.standin.look(), before) == dict.fromkeys(SOURCES, expected)


def test_none_of_200_presses_is_lost(game):
    before = game.standin.look()
    for _ in range(200):
        game.keyboard.hold(["lightattack"])
        game.keyboard.hold([])
    # Faster than the game ticks, so only those ways see them all that get an event for each.
    for source in (SOURCES.index("messages"), SOURCES.index("raw")):
        game.standin.wait_for(lambda block, source=source: block.ups[source] - before.ups[source] == 200)
        assert game.standin.look().downs[source] - before.downs[source] == 200


def test_each_of_60_presses_is_seen_once_by_every_way(game):
    before = game.standin.look()
    for _ in range(60):
        game.tap("lightattack")
    after = game.standin.look()
    assert [after.downs[source] - before.downs[source] for source in range(4)] == [60] * 4
    assert [after.ups[source] - before.ups[source] for source in range(4)] == [60] * 4


def held_keys(block):
    return [{vk for vk in range(256) if block.held[source][vk]} for source in range(4)]


def test_held_keys_stay_down_and_are_all_released(game):
    game.keyboard.hold(["forward", "left", "roll"])
    game.sees({VK["forward"], VK["left"], VK["roll"]})
    game.keyboard.hold(["forward"])
    game.sees({VK["forward"]})
    game.standin.wait_ticks(20)
    game.sees({VK["forward"]})
    game.keyboard.release_all()
    game.sees(set())


def test_key_that_a_killed_process_left_down_is_released(game):
    code = (
        "from soulsgym.game.keyboard import *; from soulsgym.game.process import ProcessInfo; import os, signal\n"
        f"keys = open_keys(ProcessInfo({game.standin.pid}, '', {{'DISPLAY': {game.standin.display!r}}}))\n"
        "keys.send([('W', True)]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code], timeout=WAIT_LIMIT_S)
    assert killed.returncode == -signal.SIGKILL
    game.standin.wait_for(lambda block: VK["forward"] in held_keys(block)[SOURCES.index("async")])
    game.keyboard.release_all()
    game.sees(set())


def lost_and_regained(game, thief):
    """Another program takes the focus, so keys do nothing; then the game has it again."""
    game.window.activate()
    assert game.window.has_focus()
    game.standin.wait_for(lambda block: block.has_focus)
    game.standin.wait_ticks(30)  # Wine takes what it was asked to take a moment later, and would take it from a thief
    thief()
    game.standin.wait_for(lambda block: not block.has_focus)
    wait_until(lambda: not game.window.has_focus())
    before = game.standin.look().event_count
    for pressed in (["lightattack"], []):
        game.keyboard.hold(pressed)
        game.standin.wait_turns()
        game.standin.wait_ticks(3)
    # RawInput sees the keys of every window of its program, as it does in Windows.
    seen = ups_and_downs(game.standin.look(), before)
    assert {source for source, keys in seen.items() if keys} <= {"raw"}
    game.window.activate()
    assert game.window.has_focus()
    game.standin.wait_for(lambda block: block.has_focus)
    game.standin.wait_ticks(3)
    before = game.standin.look().event_count
    game.tap("forward")
    seen = ups_and_downs(game.standin.look(), before)
    assert seen == {source: [(VK["forward"], True), (VK["forward"], False)] for source in SOURCES}


def test_focus_is_regained_from_another_program(game):
    other = Client(game.standin.display, "a mail program", at=(900, 500))
    try:
        lost_and_regained(game, other.focus)
    finally:
        other.close()


def test_focus_is_regained_from_another_window_of_the_game(game):
    lost_and_regained(game, lambda: game.standin.mail(lose_focus_ticks=-1))


@pytest.fixture
def managed(wine, start_standin):
    """A stand-in on a display that has a window manager."""
    if shutil.which("openbox") is None:
        pytest.skip("openbox, a window manager, is not installed")
    from Xlib.display import Display

    display = wine.display(1)
    manager = subprocess.Popen(
        ["openbox"], env={**os.environ, "DISPLAY": display}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with contextlib.closing(Display(display)) as asked:
        check = asked.intern_atom("_NET_SUPPORTING_WM_CHECK")
        wait_until(lambda: asked.screen().root.get_full_property(check, 0))  # the manager is there
    yield start_standin("--start", "arena", room=1)
    manager.terminate()
    manager.wait(WAIT_LIMIT_S)


def test_focus_and_picture_with_a_window_manager(managed, hold):
    game = hold(managed)
    assert game.window._is_managed()
    assert game.window.client_size() == (800, 450)
    assert date_of(game.window.grab()) is not None
    other = Client(managed.display, "a mail program")
    try:
        wait_until(lambda: other.window.get_attributes().map_state == 2)  # the manager has shown it
        time.sleep(0.3)
        lost_and_regained(game, other.focus)
    finally:
        other.close()


def test_picture_shows_the_tick_of_now(game):
    dates, fresh = [0], set()

    def twelve_are_fresh():
        early = game.standin.ticks
        picture = game.window.grab()
        assert picture.shape == (450, 800, 3)
        date = date_of(picture)
        if date is not None:  # None: torn, the game was just drawing
            assert dates[-1] <= date <= game.standin.ticks
            dates.append(date)
            fresh.update({date} if date >= early - 2 else ())
        return len(fresh) >= 12

    wait_until(twelve_are_fresh)


def test_camera_reduces_the_picture(game):
    assert resize(game.window.grab(), (90, 160)).shape == (90, 160, 3)
    assert resize(game.window.grab(), (45, 80)).shape == (45, 80, 3)


def test_other_window_sizes_are_seen_whole(start_standin, hold):
    game = hold(start_standin("--start", "arena", "--size", "640x360"))
    assert game.window.client_size() == (640, 360)
    assert date_of(game.window.grab()) is not None


def test_two_instances_do_not_mix_their_keys(two_standins, hold):
    one, two = map(hold, two_standins)
    for number in range(20):
        first, second = ("forward", "left") if number % 2 else ("backward", "roll")
        one.keyboard.hold([first])
        two.keyboard.hold([second])
        one.sees({VK[first]})
        two.sees({VK[second]})
    assert one.window.has_focus()
    assert two.window.has_focus()


def has_window(window) -> bool:
    try:
        return bool(window.client_size())
    except GameNotFound:
        return False


def test_window_of_a_game_that_crashed_is_gone(game):
    game.standin.stop()
    wait_until(lambda: not has_window(game.window))
    with pytest.raises(GameNotFound, match="is gone"):
        game.window.activate()


def test_hung_game_can_still_be_asked(game):
    """Its window is the display's, so nothing here waits for the game."""
    game.standin.mail(hang=1)
    try:
        assert game.window.has_focus()
        assert game.window.grab().shape == (450, 800, 3)
        game.keyboard.hold(["forward"])
        game.keyboard.release_all()
    finally:
        game.standin.mail(hang=0)


# The doctor, as its users run it


def souls_doctor(*arguments, **environment):
    code = "import typer; from soulsai.cli.game import doctor; typer.run(doctor)"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


def findings(standin, *arguments, **environment):
    doctor = souls_doctor("--pid", standin.pid, "--json", *arguments, **environment)
    output, errors = doctor.communicate(timeout=180)
    assert errors == ""
    told = json.loads(output)
    assert doctor.returncode == (0 if told["ready"] else 1)
    return {finding["name"]: finding for finding in told["findings"]}


@pytest.fixture
def saved(tmp_path):
    """The user has backed up his save."""
    from soulsgym.game import saves

    place = tmp_path / "DarkSoulsIII" / "01"
    place.mkdir(parents=True)
    (place / "DS30000.sl2").write_bytes(b"save")
    saves.backup(place, store=tmp_path / "data" / "soulsgym" / "saves" / "darksouls3")
    return {"XDG_DATA_HOME": str(tmp_path / "data")}


def runs_at_its_own_speed(standin):
    return rate_of(lambda: standin.ticks, 60.0, rel=0.3) == pytest.approx(60.0, rel=0.3)


def test_doctor_finds_all_fine_and_leaves_it_so(standin, saved):
    before = standin.look()
    found = findings(standin, **saved)
    assert {name: finding["text"] for name, finding in found.items() if finding["ok"] is not True} == {
        "offline": found["offline"]["text"]
    }
    assert "tick by tick" in found["steps"]["text"]
    standin.nothing_held()
    after = standin.look()
    assert sum((after.player[axis] - before.player[axis]) ** 2 for axis in (0, 1)) < 1.0
    assert runs_at_its_own_speed(standin)


def test_doctor_reports_what_it_has_seen_of_the_game(start_standin, tmp_path, saved):
    standin = start_standin("--start", "field")  # where no boss ends it
    doctor = souls_doctor("--pid", standin.pid, "--report", tmp_path / "game.json", **saved)
    doctor.communicate(timeout=180)
    report = json.loads((tmp_path / "game.json").read_text())
    assert len(report["program"]["sha256"]) == 64
    assert report["fields"]["PlayerMaxHP"]["value"] == standin.fields.get("PlayerMaxHP")
    assert report["clock"]["play_time_at_speed"]["0"] == 0.0
    assert report["clock"]["ticks_per_s_by_ticks_per_frame"]["1"] > 0.0
    assert report["taps_answered_at_speed"]["0"] == "2 of 2"
    assert report["clock"]["questions_per_s_by_thread"]["1"]
    assert str(tmp_path) not in json.dumps(report)
    assert runs_at_its_own_speed(standin)


def test_doctor_only_looks_when_asked_to(standin, saved):
    before = standin.look().event_count
    found = findings(standin, "--only-look", **saved)
    assert found["focus, keys, speed, steps, presses"]["ok"] is None
    assert standin.look().event_count == before
    assert "souls_speed" not in Path(f"/proc/{standin.pid}/maps").read_text()


def test_doctor_names_keys_that_the_game_ignores(standin, saved):
    standin.mail(ignore_keys=1)
    found = findings(standin, **saved)
    assert found["keys"]["ok"] is False
    assert "forward (W)" in found["keys"]["text"]
    assert "close all menus" in found["keys"]["advice"]


def test_doctor_names_a_game_without_a_character(start_standin, saved):
    standin = start_standin("--start", "title")
    found = findings(standin, **saved)
    assert found["in game"]["ok"] is False
    assert found["version"]["ok"] is True
    assert found["keys"]["ok"] is None


def test_doctor_names_another_version(start_standin, saved, tmp_path):
    standin = start_standin("--start", "arena", executable=standin_kit.other_version(tmp_path))
    found = findings(standin, **saved)
    assert found["version"]["ok"] is False
    assert found["patterns"]["ok"] is False
    assert found["keys"]["ok"] is None


def test_doctor_names_a_game_that_hangs(standin, saved):
    standin.mail(hang=1)
    found = findings(standin, **saved)
    assert found["speed"]["ok"] is False
    assert found["keys"]["ok"] is not True


def test_doctor_names_a_missing_backup(standin, tmp_path):
    place = {"XDG_DATA_HOME": str(tmp_path)}
    assert findings(standin, "--only-look", **place)["backup"]["ok"] is None
    users = Path(standin.environment["WINEPREFIX"]) / "drive_c" / "users"
    save = users / "steamuser" / "AppData" / "Roaming" / "DarkSoulsIII" / "01"
    save.mkdir(parents=True, exist_ok=True)
    (save / "DS30000.sl2").write_bytes(b"save")
    try:
        assert findings(standin, "--only-look", **place)["backup"]["ok"] is False
    finally:
        shutil.rmtree(users / "steamuser")


def test_interrupted_doctor_leaves_the_game_as_before(standin, saved):
    for sign, delay_s in ((signal.SIGINT, 0.0), (signal.SIGTERM, 0.6)):
        before = standin.look().event_count
        doctor = souls_doctor("--pid", standin.pid, **saved)
        standin.wait_for(lambda block, before=before: block.event_count > before)
        time.sleep(delay_s)
        doctor.send_signal(sign)
        _, errors = doctor.communicate(timeout=180)
        assert doctor.returncode == 130
        assert "Traceback" not in errors
        standin.nothing_held()
        assert runs_at_its_own_speed(standin)


# A person who plays


def test_a_person_at_the_stand_in_is_recorded_and_nothing_is_touched(start_standin, tmp_path):
    standin = start_standin("--start", "arena")
    keys = standin_kit.XKeys(standin.display, lambda: standin)
    standin.fields.set("AllNoHit", 1)
    standin.fields.set("PlayerX", 141.0, -69.3, 589.5)  # before him
    plan, done = load_fight("iudex", moves=False).game, threading.Event()

    def person():
        """Three attacks, one after the other, by the test's own keyboard, once the boss has begun."""
        try:
            standin.wait_for(lambda block: block.boss_attacks >= 1)
            for count in (1, 2, 3):
                standin.wait_ticks(12)
                keys.tap("l")
                standin.wait_for(lambda block, count=count: block.light_attacks >= count)
                standin.wait_ticks(80)
        finally:
            done.set()

    playing = threading.Thread(target=person)
    playing.start()
    try:
        recording = record_person(plan, 1, pid=standin.pid, stop=done.is_set)
    finally:
        playing.join()
        keys.close()
    assert recording is not None
    write_recording(tmp_path / "person.npz", recording)
    again = read_recording(tmp_path / "person.npz")
    assert np.array_equal(again.actions, recording.actions)
    assert 1 <= (again.actions == 16).sum() <= standin.look().light_attacks
    assert (np.diff(again.fights["time_s"]) > 0.0).all()
    with open(f"/proc/{standin.pid}/maps") as maps:
        assert "souls_speed" not in maps.read()
