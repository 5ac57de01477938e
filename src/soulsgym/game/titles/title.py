"""Title: what all games have in common, over the memory of one process."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from soulsgym.errors import GameHung, MisuseError, ReadFailed, SpeedControlError
from soulsgym.game.addresses import Value, load_addresses, load_attributes, load_bonfires
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.pointers import Pointers
from soulsgym.game.titles.properties import vector
from soulsgym.game.titles.turning import Turner
from soulsgym.game.waiting import REAL_TIME, TimeSource, Waits

if TYPE_CHECKING:
    from soulsgym.game.capture import Camera
    from soulsgym.game.clock import Clock
    from soulsgym.game.keyboard import Keyboard
    from soulsgym.game.window import Window

POLL_S = 0.002
SLEEP_GRACE_S = 5.0
"""A game may take this much longer than asked for, and SLOWEST times as long, before it counts as hung."""
SLOWEST = 4.0
DEATH_LIMIT_S = 20.0
RESPAWN_LIMIT_S = 90.0
RISE_LIMIT_S = 30.0


@dataclass(frozen=True)
class Remembered:
    """Values of the game before we changed them."""

    values: Mapping[str, Value]


class Title(ABC):
    """A game that runs: its values by the names that SoulsGym's users know."""

    game_id: ClassVar[str]
    process_name: ClassVar[str]
    data: ClassVar[str]
    """Its folder of data files."""
    kept: ClassVar[tuple[str, ...]] = ()
    """Fields that are put back when we let go of the game."""
    bonfire_field: ClassVar[str]

    def __init__(
        self,
        memory: ProcessMemory,
        *,
        keyboard: Keyboard | None = None,
        window: Window | None = None,
        clock: Clock | None = None,
        time_source: TimeSource = REAL_TIME,
    ) -> None:
        self.memory, self.keyboard, self.window, self.clock = memory, keyboard, window, clock
        self.pointers = Pointers(memory, load_addresses(self.data))
        self._time = time_source
        self._camera: Camera | None = None
        self._turner: Turner | None = None

    # ---- what is seen

    @property
    def img(self) -> npt.NDArray[np.uint8]:
        """The window now: (height, width, 3), RGB, in `img_resolution`."""
        return self._seen().picture()

    @property
    def img_resolution(self) -> tuple[int, int]:
        """Height and width of `img`."""
        return self._seen().size

    @img_resolution.setter
    def img_resolution(self, size: tuple[int, int]) -> None:
        self._seen().size = size

    def _seen(self) -> Camera:
        if self._camera is None:
            from soulsgym.game.capture import Camera

            self._camera = Camera(self._needed(self.window, "window"))
        return self._camera

    def _needed(self, part: Any, what: str) -> Any:
        if part is None:
            raise MisuseError(f"this {self.game_id} has no {what}; give it one when you make it")
        return part

    # ---- time

    @property
    def time(self) -> int:
        """Play time in milliseconds."""
        return self.pointers.integer(self.pointers.table.time)

    @time.setter
    def time(self, milliseconds: int) -> None:
        self.pointers.write(self.pointers.table.time, milliseconds)

    @staticmethod
    def timed(end: int, start: int) -> float:
        """Seconds from one play time to another; if it was set back in between, those since."""
        return (end - start if end >= start else end) / 1000

    def sleep(self, seconds: float) -> None:
        """Let so much play time pass; GameHung if the game does not go on."""
        speed = self.game_speed
        if speed <= 0.0:
            raise MisuseError(f"{seconds} s of play time never pass while the game is paused: resume it first")
        limit_s = SLOWEST * seconds / speed + SLEEP_GRACE_S
        start, deadline = self.time, self._time.now() + limit_s
        while (left := seconds - self.timed(self.time, start)) > 0.0:
            if self._time.now() > deadline:
                raise GameHung(f"{seconds} s of play time did not pass within {limit_s:.0f} s: does the game run?")
            self._time.sleep(max(POLL_S, left / speed / 2))

    @property
    def game_speed(self) -> float:
        """How fast the game runs: 1 as it is, 0 paused."""
        return self.clock.speed if self.clock is not None else 1.0

    @game_speed.setter
    def game_speed(self, factor: float) -> None:
        if not (math.isfinite(factor) and factor >= 0.0):
            raise MisuseError(f"the game speed cannot be {factor!r}: give a number that is not negative")
        if self.clock is None:
            raise SpeedControlError("the speed of this game cannot be set: it has no speed control")
        self.clock.set_speed(factor)

    def pause(self) -> None:
        """Stop the game's time."""
        self.game_speed = 0.0

    def resume(self) -> None:
        """Let the game's time run as it does by itself."""
        self.game_speed = 1.0

    # ---- camera

    @property
    @abstractmethod
    def camera_pose(self) -> npt.NDArray[np.float64]:
        """Where the camera is and the direction in which it looks: x, y, z, nx, ny, nz."""

    def turn_camera(self, direction: Sequence[float] | npt.NDArray[Any]) -> None:
        """Turn the camera by its keys until it looks along (nx, ny, nz); StageFailed if it does not."""
        x, y, z = vector(direction, 3, "camera_pose")
        if self._turner is None:
            self._turner = Turner(self._needed(self.keyboard, "keyboard"), self._time, self._view)
        self._turner.turn((x, y, z), self.game_speed)

    def _view(self) -> tuple[float, float, float]:
        x, y, z = self.camera_pose[3:]
        return float(x), float(y), float(z)

    # ---- the character

    @property
    def player_stats(self) -> tuple[int, ...]:
        """The attributes, in the order of title.toml."""
        block = self.pointers.read("PlayerStats")
        assert isinstance(block, bytes)
        return tuple(struct.unpack_from("<i", block, one.offset)[0] for one in load_attributes(self.data))

    @player_stats.setter
    def player_stats(self, values: Sequence[int]) -> None:
        attributes = load_attributes(self.data)
        if len(values) != len(attributes):
            names = ", ".join(one.name for one in attributes)
            raise MisuseError(f"player_stats cannot be set to {values!r}: give {len(attributes)} numbers, for {names}")
        for one, value in zip(attributes, values, strict=True):
            if int(value) != value or not one.low <= value <= one.high:
                raise MisuseError(f"{one.name} cannot be {value!r}: give a whole number from {one.low} to {one.high}")
        start = self.pointers.address("PlayerStats")
        for one, value in zip(attributes, values, strict=True):
            self.memory.write(start + one.offset, struct.pack("<i", int(value)))

    @property
    def last_bonfire(self) -> str:
        """The place at which the player comes back after death."""
        number = self.pointers.integer(self.bonfire_field)
        name = load_bonfires(self.data).names.get(number)
        if name is None:
            raise ReadFailed(
                self.pointers.address(self.bonfire_field), f"{number} is the id of no place that we know of to rest at"
            )
        return name

    @last_bonfire.setter
    def last_bonfire(self, name: str) -> None:
        self._set_bonfire(name)

    def _set_bonfire(self, name: str) -> None:
        self.pointers.write(self.bonfire_field, load_bonfires(self.data).id_of(name))

    @property
    def is_ingame(self) -> bool:
        """Is a character loaded? False in menus and while loading."""
        try:
            hp, most = self.pointers.values("PlayerHP", "PlayerMaxHP").values()
        except ReadFailed:
            return False
        return bool(most > 0 and -1 <= hp <= most)

    def die(self) -> None:
        """Kill the player, whatever forbids it; the way to a reload."""
        self._allow_death()
        self.pointers.write("PlayerHP", 0)

    @abstractmethod
    def _allow_death(self) -> None:
        """Clear whatever keeps the player from dying."""

    @abstractmethod
    def _has_risen(self) -> bool:
        """Does the player stand after a respawn, ready to act?"""

    def _is_rising(self) -> bool:
        """Is the player in what only follows a respawn?"""
        return False

    def reload(self) -> None:
        """Let the player die and come back at the last bonfire; flags are as before. StageFailed if he does not."""
        before, player = self.remember(), self.pointers.address("PlayerHP")
        limit_s = DEATH_LIMIT_S + RESPAWN_LIMIT_S + RISE_LIMIT_S
        waits = Waits("reload", limit_s, self._time, self.memory.process.is_running)
        try:
            if self.game_speed <= 0.0:
                self.resume()
            self.die()
            # The player is dead once the game has thrown him away; until then HP may rise again without a death.
            waits.until(lambda: self._is_gone(player), "the player did not die", limit_s=DEATH_LIMIT_S)
            alive = "the player did not come back"
            waits.until(self._is_back, alive, limit_s=RESPAWN_LIMIT_S, every_s=0.05, unreadable=True)
            risen = "the player came back and does not stand"
            waits.until(self._has_risen, risen, limit_s=RISE_LIMIT_S, every_s=0.02, unreadable=True)
        finally:
            # Not in game, most goes back by itself; the error that is under way says more than one from here.
            with suppress(ReadFailed):
                self.put_back(before)

    def _is_gone(self, player: int) -> bool:
        try:
            return self.pointers.address("PlayerHP") != player or self._is_rising()
        except ReadFailed:
            return True

    def _is_back(self) -> bool:
        return self.pointers.integer("PlayerHP") > 0

    # ---- keeping and putting back

    def remember(self) -> Remembered:
        """What must be put back when we let go of the game."""
        return Remembered(self.pointers.values(*self.kept))

    def untouched(self) -> Remembered:
        """The same as it is in a game that nobody has touched."""
        fields = (self.pointers.table.field(name) for name in self.kept)
        normal = {one.name: one.normal for one in fields if one.normal is not None}
        return Remembered({name: value if self.pointers.table.field(name).type.kind == "f32" else int(value)
                           for name, value in normal.items()})  # fmt: skip

    def put_back(self, saved: Remembered) -> None:
        """Put it back; one value that cannot be written does not keep the others from it."""
        failed: ReadFailed | None = None
        for name, value in saved.values.items():
            try:
                self._put_one(name, value)
            except ReadFailed as error:
                failed = error
        if failed is not None:
            raise failed

    def _put_one(self, name: str, value: Value) -> None:
        bits = self.pointers.table.field(name).bits
        if not bits:
            self.pointers.write(name, value)
            return
        # The other bits of the byte are not ours, and the game may have changed them since.
        assert isinstance(value, int)
        for bit, mask in bits.items():
            self.pointers.set_bit(name, bit, bool(value & mask))

    def clear_cache(self) -> None:
        """Forget all addresses. Not needed: they are checked at every use."""
        self.pointers.forget()
