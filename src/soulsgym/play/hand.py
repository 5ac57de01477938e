"""Hand: what a person holds and presses, on a keyboard or a gamepad."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pygame

from soulsgym.actions import CONTROL, NO_DIRECTION, Button, Controls

KEPT_TICKS = 18
"""A press that comes too early waits so long for its moment, as the games do."""
WAYS = {"forward": (0.0, 1.0), "backward": (0.0, -1.0), "left": (-1.0, 0.0), "right": (1.0, 0.0)}
BUTTONS = {
    "roll": Button.ROLL,
    "lightattack": Button.LIGHT,
    "heavyattack": Button.HEAVY,
    "parry": Button.PARRY,
}
PAD_BUTTONS = {pygame.CONTROLLER_BUTTON_B: Button.ROLL, pygame.CONTROLLER_BUTTON_RIGHTSHOULDER: Button.LIGHT}
PAD_TRIGGERS = {
    pygame.CONTROLLER_AXIS_TRIGGERRIGHT: Button.HEAVY,
    pygame.CONTROLLER_AXIS_TRIGGERLEFT: Button.PARRY,
}
PAD_WAYS = {
    pygame.CONTROLLER_BUTTON_DPAD_UP: "forward",
    pygame.CONTROLLER_BUTTON_DPAD_DOWN: "backward",
    pygame.CONTROLLER_BUTTON_DPAD_LEFT: "left",
    pygame.CONTROLLER_BUTTON_DPAD_RIGHT: "right",
}
STICKS = {pygame.CONTROLLER_AXIS_LEFTX: 0, pygame.CONTROLLER_AXIS_LEFTY: 1}
AXIS_END = 32767.0
DEAD_ZONE, PULLED = 0.4, 0.5
FIRST_ROLL, FIRST_ATTACK = 8, 16
"""In the mask of the twenty actions."""


class Hand:
    """Turns events into the control of each tick; `bindings` are the names of the keys by action."""

    def __init__(self, bindings: Mapping[str, str]) -> None:
        self._actions = {pygame.key.key_code(key.lower()): action for action, key in bindings.items()}
        self.clear()

    def clear(self) -> None:
        """Hold and press nothing."""
        self._held: set[str] = set()
        self._stick = [0.0, 0.0]
        self._pulled: set[int] = set()
        self._button, self._left = Button.NONE, 0

    def take(self, event: pygame.event.Event) -> None:
        """Notice a key, button or stick; all else is ignored."""
        if event.type in (pygame.KEYDOWN, pygame.KEYUP):
            self._switch(self._actions.get(event.key, ""), event.type == pygame.KEYDOWN)
        elif event.type in (pygame.CONTROLLERBUTTONDOWN, pygame.CONTROLLERBUTTONUP):
            down = event.type == pygame.CONTROLLERBUTTONDOWN
            self._switch(PAD_WAYS.get(event.button, ""), down)
            if down and event.button in PAD_BUTTONS:
                self._press(PAD_BUTTONS[event.button])
        elif event.type == pygame.CONTROLLERAXISMOTION:
            self._move_axis(event.axis, event.value / AXIS_END)

    def control(self, fight: np.void) -> Controls:
        """The control of the next tick, one of CONTROL; a press waits until the fight allows it."""
        control = np.array([(self._direction(), Button.NONE)], CONTROL)
        if self._button is not Button.NONE:
            first = FIRST_ROLL if self._button is Button.ROLL else FIRST_ATTACK
            if fight["action_mask"][first]:
                control["button"] = self._button
                self._button = Button.NONE
            elif self._left == 0:
                self._button = Button.NONE
            self._left -= 1
        return control

    def _switch(self, action: str, down: bool) -> None:
        if action in WAYS:
            (self._held.add if down else self._held.discard)(action)
        elif down and action in BUTTONS:
            self._press(BUTTONS[action])

    def _press(self, button: Button) -> None:
        self._button, self._left = button, KEPT_TICKS

    def _move_axis(self, axis: int, value: float) -> None:
        if axis in STICKS:
            self._stick[STICKS[axis]] = value
        elif axis in PAD_TRIGGERS:
            if value >= PULLED and axis not in self._pulled:
                self._press(PAD_TRIGGERS[axis])
            (self._pulled.add if value >= PULLED else self._pulled.discard)(axis)

    def _direction(self) -> int:
        """The one of eight that is held; opposite keys cancel each other out."""
        right, forward = (sum(WAYS[action][axis] for action in self._held) for axis in (0, 1))
        if right == forward == 0.0:
            right, forward = self._stick[0], -self._stick[1]
            if math.hypot(right, forward) < DEAD_ZONE:
                return NO_DIRECTION
        return round(math.atan2(right, forward) / (math.pi / 4.0)) % 8
