"""The window: what a person presses is in the next picture; what lies over the fight; keys of a real display."""

import os
import subprocess
import sys

import numpy as np
import pygame
import pytest

from soulsgym.actions import CONTROL, NO_DIRECTION, Button
from soulsgym.envs.simulated import FightSettings
from soulsgym.play.session import PlaySession
from soulsgym.play.window import FPS, Page
from soulsgym.render.history import ROLL_MOVE
from soulsgym.state import Outcome

TICK_S = 1.0 / FPS
IDLE = np.array([(NO_DIRECTION, Button.NONE)], CONTROL)


def press(*names, down=True):
    for name in names:
        code = pygame.key.key_code(name)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN if down else pygame.KEYUP, key=code))


def frames(window, number):
    for _ in range(number):
        window.frame(TICK_S)


def wait_for(session, condition):
    """Play on without pictures."""
    for _ in range(20_000):
        session.tick(IDLE)
        if condition():
            return
    raise AssertionError("it did not happen")


def pixels(window):
    return pygame.image.tobytes(window.picture, "RGB")


def fighting(make_window, *arguments, **options):
    window = make_window(*arguments, **options)
    press("return")
    frames(window, 30)
    assert window.page is Page.NONE
    return window


@pytest.mark.parametrize("waits", range(6))
def test_a_press_shows_within_two_ticks_at_every_moment_of_a_step(make_window, session, waits):
    window = fighting(make_window)
    frames(window, waits)
    before, at = float(session.fight["time_s"]), session.fight["player_move"]
    assert at != ROLL_MOVE
    press("w", "space")
    frames(window, 2)
    assert session.fight["player_move"] == ROLL_MOVE
    assert (float(session.fight["time_s"]) - before) * FPS == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("waits", range(6))
def test_a_direction_moves_him_in_the_next_tick(make_window, session, waits):
    window = fighting(make_window)
    frames(window, waits)
    before = session.fight["player_pose"].copy()
    press("d")
    frames(window, 1)
    first = session.fight["player_pose"].copy()
    assert np.hypot(*(first - before)[:2]) > 0.001
    press("d", down=False)
    frames(window, 12)
    stopped = session.fight["player_pose"].copy()
    frames(window, 12)
    assert np.hypot(*(session.fight["player_pose"] - stopped)[:2]) < 0.05


def test_the_way_to_the_boss_is_up(make_window, session):
    window = fighting(make_window)
    press("w")
    frames(window, 60)
    player, boss = (window._scene.to_px(tuple(session.fight[key][:2])) for key in ("player_pose", "boss_pose"))
    assert boss[1] < player[1]
    assert abs(boss[0] - player[0]) < 0.2 * (player[1] - boss[1])


def test_slow_motion(make_window, session):
    window = fighting(make_window, speed=0.5)
    begin = float(session.fight["time_s"])
    frames(window, 60)
    assert float(session.fight["time_s"]) - begin == pytest.approx(0.5, abs=0.02)
    press("f3")
    frames(window, 1)
    assert window.speed == 0.25
    press("f3")
    frames(window, 1)
    assert window.speed == 1.0


def test_a_slow_machine_plays_at_the_right_speed_and_never_leaps(make_window, session):
    window = fighting(make_window)
    begin = float(session.fight["time_s"])
    for _ in range(10):
        window.frame(0.05)
    assert float(session.fight["time_s"]) - begin == pytest.approx(0.5, abs=0.02)
    window.frame(30.0)
    assert float(session.fight["time_s"]) - begin == pytest.approx(0.6, abs=0.02)


def test_the_keys_are_shown_first_and_the_fight_waits(make_window, session):
    window = make_window()
    frames(window, 5)
    assert window.page is Page.KEYS
    assert session.fight["time_s"] == 0.0
    shown = pixels(window)
    press("return")
    frames(window, 1)
    assert pixels(window) != shown


def test_pause_stands_still_and_lets_go_of_all_keys(make_window, session):
    window = fighting(make_window)
    press("w")
    frames(window, 3)
    press("escape")
    frames(window, 10)
    assert window.page is Page.PAUSE
    stands = float(session.fight["time_s"])
    press("escape")
    frames(window, 6)
    assert float(session.fight["time_s"]) > stands
    frames(window, 30)
    here = session.fight["player_pose"].copy()
    frames(window, 5)
    assert np.hypot(*(session.fight["player_pose"] - here)[:2]) < 0.01


def test_a_window_without_focus_pauses(make_window):
    window = fighting(make_window)
    pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
    frames(window, 1)
    assert window.page is Page.PAUSE


def test_hit_areas_can_be_switched_off(make_window, session):
    window = fighting(make_window)
    while not any(0.0 < hit.from_s - session.fight["boss_move_s"] < 0.3 for hit in hits_of(session)):
        session.tick(IDLE)
        assert not session.is_over
    window.frame(0.0)
    shown = pixels(window)
    press("f2")
    window.frame(0.0)
    assert not window.areas
    assert pixels(window) != shown


def hits_of(session):
    return session.spec.boss.moves[max(int(session.fight["boss_move"]), 0)].hits


def test_death_note_and_the_next_fight(make_window, session):
    told = []
    window = fighting(make_window, ended=lambda: told.append(1) or "roll left 0.2 s earlier")
    wait_for(session, lambda: session.is_over)
    assert session.fight["outcome"] == Outcome.DIED
    frames(window, 3)
    assert told == [1]
    assert session.seeds == [5]
    press("return")
    frames(window, 2)
    assert not session.is_over
    assert session.seed == 6


def test_board_says_that_it_takes_a_moment(make_window):
    asked = []
    window = fighting(make_window, board=lambda: asked.append(1) or [("", "wins"), ("you", "1")])
    press("tab")
    frames(window, 1)
    assert window.page is Page.BOARD
    assert asked == []
    waiting = pixels(window)
    frames(window, 3)
    assert asked == [1]
    assert pixels(window) != waiting


def test_quitting(make_window):
    window = fighting(make_window)
    press("q")
    assert window.frame(TICK_S), "while he fights Q is a key of the game"
    press("escape")
    assert window.frame(TICK_S)
    press("q")
    assert not window.frame(TICK_S)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not make_window().frame(TICK_S)


@pytest.mark.parametrize("boss", ["vordt", "margit"])
def test_every_boss(make_window, boss):
    session = PlaySession(FightSettings(boss, changes=True), seed=1)
    window = fighting(make_window, session)
    press("w")
    frames(window, 60)
    assert session.fight["step"] > 8


def test_practice_counts(make_window):
    session = PlaySession(FightSettings("iudex", only="thrust"), seed=1)
    window = fighting(make_window, session)
    wait_for(session, lambda: session.hits)
    before = pixels(window)
    frames(window, 2)
    assert pixels(window) != before


GAMEPAD = {"BUTTON_START": Page.PAUSE, "BUTTON_BACK": Page.BOARD}


@pytest.mark.parametrize(("button", "page"), GAMEPAD.items())
def test_gamepad_commands(make_window, button, page):
    window = fighting(make_window)
    number = getattr(pygame, f"CONTROLLER_{button}")
    pygame.event.post(pygame.event.Event(pygame.CONTROLLERBUTTONDOWN, button=number))
    frames(window, 1)
    assert window.page is page
    pygame.event.post(pygame.event.Event(pygame.CONTROLLERBUTTONDOWN, button=pygame.CONTROLLER_BUTTON_A))
    frames(window, 1)
    assert window.page is Page.NONE


PROGRAM = """
import sys
from soulsgym.envs.simulated import FightSettings
from soulsgym.game.keyboard import load_bindings
from soulsgym.play.session import PlaySession
from soulsgym.play.window import Page, PlayWindow
session = PlaySession(FightSettings("iudex", changes=True), seed=5)
window = PlayWindow(session, load_bindings("darksouls3"), size=(640, 480))
print("open", flush=True)
told = set()
elapsed_s = 0.0
while window.frame(elapsed_s):
    elapsed_s = window._window.put(window.picture)
    now = {"fights": window.page is Page.NONE, "rolls": session.fight["player_move"] == -2,
           "walks": session.fight["player_pose"][1] != session._records[0]["player_pose"][0][1]}
    for word in [word for word, holds in now.items() if holds and word not in told]:
        told.add(word)
        print(word, flush=True)
window.close()
print("closed", flush=True)
"""


@pytest.mark.slow
def test_keys_of_a_real_display():
    pytest.importorskip("Xlib", reason="python-xlib is not installed")
    from x_display import wait_until, x_server
    from Xlib import XK, X
    from Xlib.display import Display
    from Xlib.ext import xtest

    with x_server() as name:
        environment = os.environ | {"DISPLAY": name, "SDL_VIDEODRIVER": "x11"}
        command = [sys.executable, "-c", PROGRAM]
        program = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            display = Display(name)

            def told():
                return program.stdout.readline().strip()

            def windows():
                return [one for one in display.screen().root.query_tree().children if one.get_geometry().width == 640]

            def tap(key, down=(X.KeyPress, X.KeyRelease)):
                code = display.keysym_to_keycode(XK.string_to_keysym(key))
                for kind in down:
                    xtest.fake_input(display, kind, code)
                display.sync()

            assert told() == "open"
            wait_until(windows)
            windows()[0].set_input_focus(X.RevertToParent, X.CurrentTime)
            tap("Return")
            assert told() == "fights"
            tap("w", (X.KeyPress,))
            assert told() == "walks"
            tap("space")
            assert told() == "rolls"
            tap("Escape")
            tap("q")
            assert told() == "closed"
            assert program.wait(60) == 0
        finally:
            program.kill()
            program.wait()
