"""A clock, a time and a camera for titles in fake memory."""

from __future__ import annotations

import math

from soulsgym.game.keyboard import Keyboard, load_bindings


class FakeClock:
    """Speed control that remembers what it was told."""

    def __init__(self) -> None:
        self.speed = 1.0
        self.speeds: list[float] = []

    def set_speed(self, factor: float) -> None:
        self.speed = factor
        self.speeds.append(factor)


class FakeTime:
    """Time that passes only in sleeps; `each` is called with every sleep's length."""

    def __init__(self, each=lambda seconds: None) -> None:
        self.seconds, self.each, self.sleeps = 0.0, each, 0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += max(seconds, 1e-4)
        self.sleeps += 1
        self.each(max(seconds, 1e-4))


class CameraKeys:
    """Keys that turn the camera of a game in fake memory, as long as they are down and time passes."""

    RATE = 2.0

    def __init__(self, souls, title: str = "darksouls3", reversed_axes=(1.0, 1.0)) -> None:
        self.down: set[str] = set()
        self.presses = 0
        self.stuck = False
        self._souls, self._signs = souls, reversed_axes
        self._key = load_bindings(title)

    def keyboard(self) -> Keyboard:
        return Keyboard(self, self._key)

    def send(self, changes) -> None:
        for key, down in changes:
            self.presses += down
            (self.down.add if down else self.down.discard)(key)

    def close(self) -> None:
        pass

    def pass_time(self, seconds: float) -> None:
        if self.stuck:
            return
        nx, nz, ny, skipped, *place = self._souls.get("CamQx")
        turn = (self._key["cameraright"] in self.down) - (self._key["cameraleft"] in self.down)
        lift = (self._key["cameraup"] in self.down) - (self._key["cameradown"] in self.down)
        bearing = math.atan2(nx, ny) + turn * self._signs[0] * self.RATE * seconds
        pitch = math.atan2(nz, math.hypot(nx, ny)) + lift * self._signs[1] * self.RATE * seconds
        pitch = max(-1.2, min(1.2, pitch))
        flat = math.cos(pitch)
        self._souls.set(CamQx=(math.sin(bearing) * flat, math.sin(pitch), math.cos(bearing) * flat, skipped, *place))
