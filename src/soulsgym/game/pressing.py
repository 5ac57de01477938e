"""Which keys a control means."""

from __future__ import annotations

from soulsgym.actions import Button

KEYS_OF_DIRECTION = (
    ("forward",),
    ("forward", "right"),
    ("right",),
    ("right", "backward"),
    ("backward",),
    ("backward", "left"),
    ("left",),
    ("left", "forward"),
)
KEY_OF_BUTTON = {
    Button.ROLL: "roll",
    Button.LIGHT: "lightattack",
    Button.HEAVY: "heavyattack",
    Button.PARRY: "parry",
}
FIRST_ROLL, FIRST_BUTTON = 8, 16


def action_of(direction: int, button: int) -> int | None:
    """The number in the action mask that stands for a control; None if it presses nothing."""
    if button == Button.NONE:
        return direction if direction >= 0 else None
    if button == Button.ROLL:
        return FIRST_ROLL + max(direction, 0)
    return FIRST_BUTTON + button - Button.LIGHT


def keys_of(direction: int, button: int) -> tuple[tuple[str, ...], str]:
    """The keys to hold, and the one to tap after them; empty for none."""
    held = KEYS_OF_DIRECTION[direction] if direction >= 0 else ()
    return held, KEY_OF_BUTTON[Button(button)] if button != Button.NONE else ""
