"""Keys and gamepads as controls."""

import numpy as np
import pygame
import pytest

from soulsgym.actions import DIRECTIONS, NO_DIRECTION, Button
from soulsgym.game.keyboard import load_bindings
from soulsgym.play.hand import KEPT_TICKS, Hand
from soulsgym.state import FIGHT

OPEN = np.ones(1, FIGHT)[0]
CLOSED = np.zeros(1, FIGHT)[0]


@pytest.fixture
def hand(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()  # which knows the layout of the keyboard
    yield Hand(load_bindings("darksouls3"))
    pygame.display.quit()


def key(name, down=True):
    return pygame.event.Event(pygame.KEYDOWN if down else pygame.KEYUP, key=pygame.key.key_code(name))


def pad(kind, **values):
    return pygame.event.Event(getattr(pygame, f"CONTROLLER{kind}"), **values)


def told(hand, fight=OPEN):
    control = hand.control(fight)[0]
    return int(control["direction"]), Button(int(control["button"]))


@pytest.mark.parametrize(
    ("keys", "direction"),
    [("w", "F"), ("wd", "FR"), ("d", "R"), ("sd", "RB"), ("s", "B"), ("sa", "BL"), ("a", "L"), ("wa", "LF")],
)
def test_eight_directions(hand, keys, direction):
    for name in keys:
        hand.take(key(name))
    assert told(hand) == (DIRECTIONS.index(direction), Button.NONE)
    for name in keys:
        hand.take(key(name, False))
    assert told(hand) == (NO_DIRECTION, Button.NONE)


def test_opposite_keys_cancel_each_other_out(hand):
    hand.take(key("w"))
    hand.take(key("s"))
    assert told(hand) == (NO_DIRECTION, Button.NONE)


@pytest.mark.parametrize(
    ("name", "button"), [("space", Button.ROLL), ("l", Button.LIGHT), ("h", Button.HEAVY), ("m", Button.PARRY)]
)
def test_a_press_counts_once(hand, name, button):
    hand.take(key(name))
    assert told(hand) == (NO_DIRECTION, button)
    assert told(hand) == (NO_DIRECTION, Button.NONE)


def test_bindings_are_those_of_the_game(hand):
    hand = Hand(load_bindings("eldenring"))
    hand.take(key("y"))
    assert told(hand)[1] is Button.HEAVY


def test_an_early_press_waits_for_its_moment(hand):
    hand.take(key("space"))
    assert told(hand, CLOSED)[1] is Button.NONE
    assert told(hand, OPEN)[1] is Button.ROLL


def test_a_press_that_is_much_too_early_is_forgotten(hand):
    hand.take(key("space"))
    for _ in range(KEPT_TICKS + 1):
        assert told(hand, CLOSED)[1] is Button.NONE
    assert told(hand, OPEN)[1] is Button.NONE


def test_gamepad(hand):
    hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_LEFTX, value=20000))
    hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_LEFTY, value=-20000))
    hand.take(pad("BUTTONDOWN", button=pygame.CONTROLLER_BUTTON_B))
    assert told(hand) == (DIRECTIONS.index("FR"), Button.ROLL)
    hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_LEFTX, value=3000))
    hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_LEFTY, value=3000))
    assert told(hand) == (NO_DIRECTION, Button.NONE)


def test_a_trigger_that_is_held_attacks_once(hand):
    for value in (9000, 20000, 30000):
        hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_TRIGGERRIGHT, value=value))
    assert [told(hand)[1] for _ in range(2)] == [Button.HEAVY, Button.NONE]
    hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_TRIGGERRIGHT, value=0))
    hand.take(pad("AXISMOTION", axis=pygame.CONTROLLER_AXIS_TRIGGERRIGHT, value=32767))
    assert told(hand)[1] is Button.HEAVY


def test_a_cross_walks_too(hand):
    hand.take(pad("BUTTONDOWN", button=pygame.CONTROLLER_BUTTON_DPAD_LEFT))
    assert told(hand) == (DIRECTIONS.index("L"), Button.NONE)
    hand.clear()
    assert told(hand) == (NO_DIRECTION, Button.NONE)
