"""Title: what all games have in common, over the memory of one process, and what a fight needs on top of it."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from soulsgym.actions import Button
from soulsgym.errors import GameHung, MisuseError, ReadFailed, SpeedControlError, StageFailed
from soulsgym.game.addresses import AnimationNames, Value, load_addresses, load_attributes, load_bonfires
from soulsgym.game.camera import CameraKeys
from soulsgym.game.capture import SIZE, check_size, resize
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.pointers import Pointers
from soulsgym.game.titles.boss import Boss, find_boss_fields
from soulsgym.game.titles.plausible import boss_faults, value_faults
from soulsgym.game.titles.values import Glance, Numbers, Property, Sight, name_of, nonzero, vector, whole
from soulsgym.game.waits import REAL_TIME, TimeSource, Waits

if TYPE_CHECKING:
    from soulsgym.game.clock import Clock
    from soulsgym.game.keyboard import Keyboard
    from soulsgym.game.window import Window
    from soulsgym.games.game import StaticGameData

T = TypeVar("T")

POLL_S = 0.002
SLEEP_GRACE_S = 5.0
"""A game may take this much longer than asked for, and SLOWEST times as long, before it counts as hung."""
SLOWEST = 4.0
DEATH_LIMIT_S = 30.0
RELOAD_LIMIT_S = 150.0


@dataclass(frozen=True)
class Remembered:
    """Values of the game before we changed them."""

    values: Mapping[str, Value]


class Title(ABC):
    """A game that runs: its values by the names that SoulsGym's users know."""

    game_id: ClassVar[str]
    process_name: ClassVar[str]
    folder: ClassVar[str]
    """Where its data files lie."""
    kept: ClassVar[tuple[str, ...]] = ()
    """Fields that are put back when we let go of the game."""
    bonfire_field: ClassVar[str]
    offline_advice: ClassVar[str]
    """How to keep other players out of it."""
    lacks: ClassVar[tuple[str, ...]] = ()
    """What is not known of it and a fight would need."""

    player_hp = whole("PlayerHP", "HP of the player.", low=0)
    player_max_hp = whole("PlayerMaxHP", "Most HP of the player.", writable=False)
    player_sp = whole("PlayerSP", "Stamina of the player; may be below 0.")
    player_max_sp = whole("PlayerMaxSP", "Most stamina of the player.", writable=False)
    player_animation = name_of("PlayerAnimation", "Name of what the player does.")
    lock_on = nonzero("LockOn", "Is the camera locked on to an enemy?")
    allow_player_death: Property[Title, bool]
    allow_weapon_durability_dmg: Property[Title, bool]
    gravity: Property[Title, bool]
    screen_mode = Property[Any, str](lambda game: "window", doc="window or fullscreen; window where it is not known.")

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
        self.pointers = Pointers(memory, load_addresses(self.folder))
        self._time = time_source
        self._img_size = SIZE
        self._camera_keys = CameraKeys()
        self._bosses: dict[str, Boss] = {}

    @property
    def data(self) -> StaticGameData:
        """What is known of the game without running it, in SoulsGym's tables."""
        from soulsgym.games.game import StaticGameData

        return StaticGameData(self.game_id)

    # ---- what is seen

    @property
    def img(self) -> npt.NDArray[np.uint8]:
        """The window now: (height, width, 3), RGB, in `img_resolution`."""
        return resize(self._needed(self.window, "window").grab(), self._img_size)

    @property
    def img_resolution(self) -> tuple[int, int]:
        """Height and width of `img`."""
        return self._img_size

    @img_resolution.setter
    def img_resolution(self, size: tuple[int, int]) -> None:
        self._img_size = check_size(size)

    def _needed(self, part: T | None, what: str) -> T:
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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The game stands still, if it has speed control; then it runs as before."""
        speed = self.game_speed
        pauses = self.clock is not None and speed > 0.0
        if pauses:
            self.pause()
        try:
            yield
        finally:
            if pauses:
                self.game_speed = speed

    # ---- places

    @property
    @abstractmethod
    def player_pose(self) -> Numbers:
        """x, y, z and heading of the player."""

    @player_pose.setter
    @abstractmethod
    def player_pose(self, pose: Sequence[float] | Numbers) -> None: ...

    @property
    @abstractmethod
    def camera_pose(self) -> Numbers:
        """Where the camera is and the direction in which it looks: x, y, z, nx, ny, nz."""

    def turn_camera(self, direction: Sequence[float] | npt.NDArray[Any]) -> None:
        """Turn the camera by its keys until it looks along (nx, ny, nz); StageFailed if it does not."""
        x, y, z = vector(direction, 3, "camera_pose")
        keyboard = self._needed(self.keyboard, "keyboard")
        if self.game_speed <= 0.0:
            raise MisuseError("the camera cannot be turned while the game is paused: resume it first")
        if not math.hypot(x, y, z) > 0.0:
            raise MisuseError(f"a camera cannot look along {direction!r}: give a direction that is not 0")
        if not self._camera_keys.turn(
            keyboard, lambda: self.camera_pose[3:], (x, y, z), self._time.sleep, self.game_speed
        ):
            raise StageFailed("camera", "it does not turn there; check the camera keys and that nothing is locked on")

    # ---- the character

    def reset_player_hp(self) -> None:
        """Fill the player's HP."""
        self.player_hp = self.player_max_hp

    def reset_player_sp(self) -> None:
        """Fill the player's stamina."""
        self.player_sp = self.player_max_sp

    @property
    def player_stats(self) -> tuple[int, ...]:
        """The attributes, in the order of title.toml."""
        block = self.pointers.read("PlayerStats")
        assert isinstance(block, bytes)
        return tuple(struct.unpack_from("<i", block, one.offset)[0] for one in load_attributes(self.folder))

    @player_stats.setter
    def player_stats(self, values: Sequence[int]) -> None:
        attributes = load_attributes(self.folder)
        if len(values) != len(attributes):
            names = ", ".join(one.name for one in attributes)
            raise MisuseError(f"player_stats cannot be set to {values!r}: give {len(attributes)} numbers, for {names}")
        for one, value in zip(attributes, values, strict=True):
            if int(value) != value or not one.low <= value <= one.high:
                raise MisuseError(f"{one.name} cannot be {value!r}: give a whole number from {one.low} to {one.high}")
        start = self.pointers.address("PlayerStats")
        self.pointers.written = True
        for one, value in zip(attributes, values, strict=True):
            self.memory.write(start + one.offset, struct.pack("<i", int(value)))

    @property
    def last_bonfire(self) -> str:
        """The place at which the player comes back after death."""
        number = self.pointers.integer(self.bonfire_field)
        name = load_bonfires(self.folder).names.get(number)
        if name is None:
            raise ReadFailed(
                self.pointers.address(self.bonfire_field), f"{number} is the id of no place that we know of to rest at"
            )
        return name

    @last_bonfire.setter
    def last_bonfire(self, name: str) -> None:
        self._set_bonfire(name)

    def _set_bonfire(self, name: str) -> None:
        self.pointers.write(self.bonfire_field, load_bonfires(self.folder).id_of(name))

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
        before = self.remember()
        try:
            if self.game_speed <= 0.0:
                self.resume()
            self.die_and_return(Waits("reload", RELOAD_LIMIT_S, self._time, self.memory.process.is_running))
        finally:
            # Not in game, most goes back by itself; the error that is under way says more than one from here.
            with suppress(ReadFailed):
                self.put_back(before)

    def die_and_return(self, waits: Waits) -> None:
        """Kill the player unless he is dead, and wait until he stands at the last bonfire.

        That the game has thrown him away, or what only follows that, must be seen first: a player not yet dead looks
        like one come back, and until then HP may rise again without a death.
        """

        def is_gone() -> bool:
            if self._player_object() != player or self._is_rising():
                return True
            if self.player_hp > 0:
                self.die()
            return False

        def stands() -> bool:
            return self.is_ingame and self.player_hp > 0 and self._has_risen()

        with suppress(ReadFailed):  # it loads already
            player = self._player_object()
            self._allow_death()  # one who has no HP may be kept alive
            waits.until(is_gone, "the player does not die", limit_s=DEATH_LIMIT_S, every_s=0.02)
        waits.until(stands, "the player does not come back after his death", every_s=0.05, unreadable=True)

    def _player_object(self) -> int:
        """A number that is another one after a load; ReadFailed while there is no player."""
        return self.pointers.address("PlayerHP")

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

    @property
    def was_written(self) -> bool:
        """Has anything been written into the game?"""
        return self.pointers.written

    # ---- can it be true?

    def faults(self, size: tuple[int, int] | None = None) -> list[str]:
        """What is read from memory and cannot be true, a sentence each; `size` is that of the window's client area."""
        return value_faults(self.pointers, self.folder, self.bonfire_field, size)

    def boss_faults(self, plan: Any) -> list[str] | None:
        """The same of a boss; None if he is not there. `plan` is what this title can do with him."""
        return boss_faults(self.pointers, plan)

    def clear_cache(self) -> None:
        """Forget all addresses. Not needed: they are checked at every use."""
        self.pointers.forget()


def watch_title(title: Title) -> WatchTitle:
    """The same title, or a MisuseError if nobody knows how to see a fight in it."""
    if not isinstance(title, WatchTitle):
        raise MisuseError(f"fights cannot be seen in {title.game_id}: its data lack the fields of a boss")
    return title


def fight_title(title: Title) -> FightTitle:
    """The same title, or a MisuseError that says what fights in it would need."""
    if not isinstance(title, FightTitle):
        raise MisuseError(f"{title.game_id} cannot be fought in yet: its data lack {', '.join(title.lacks)}")
    return title


class WatchTitle(Title):
    """A title of which enough is known to see how a fight goes that somebody else plays."""

    statuses: ClassVar[Mapping[str, float]] = {}
    """What builds up in the player, such as frost, and its value while nothing has."""
    attack_animations: ClassVar[tuple[str, ...]]
    """How the names of animations begin that can hurt somebody."""
    death_animations: ClassVar[tuple[str, ...]]
    """How the names of animations begin that the player does not come back from."""
    buttons: ClassVar[Mapping[str, Button]] = {}
    """How the names of animations begin that a button gives, where a person's presses are to be told."""
    walk_animations: ClassVar[tuple[str, ...]] = ()
    """How the names of animations begin in which the player walks or stands."""

    @abstractmethod
    def look(self, boss: str) -> Sight:
        """A fight at one moment; ReadFailed while not in game."""

    @abstractmethod
    def glance(self, boss: str) -> Glance:
        """The few values that are worth polling, in one batch."""

    def check_sight(self, sight: Sight) -> None:
        """ReadFailed if it cannot be true: memory that was given to something else looks like anything."""
        reason = ""
        if sight.player_max_hp <= 0 or not -1 <= sight.player_hp <= sight.player_max_hp:
            reason = f"the player has {sight.player_hp} of {sight.player_max_hp} HP"
        # What a boss has at most may be read from a doubtful place, so his HP is not compared with it.
        elif sight.boss_hp < -1:
            reason = f"the boss has {sight.boss_hp} HP"
        elif not all(map(math.isfinite, (*sight.player_pose, *sight.boss_pose, *sight.camera_pose))):
            reason = "a position is not a number"
        if reason:
            raise ReadFailed(self.pointers.address("PlayerHP"), f"{reason}: not in game")


class FightTitle(WatchTitle):
    """A title of which enough is known to set up fights, play them and see how they go."""

    throw_animations: ClassVar[tuple[str, ...]]
    """Names of animations in which the game allows no lock-on."""
    weapon_animations: ClassVar[tuple[str, ...]]
    """How the names of attacks begin that the right weapon gives."""
    weapon_advice: ClassVar[str]
    """What to tell somebody whose attacks have other names."""

    player_animation_time: Property[Title, float]
    allow_deaths: Property[Title, bool]
    allow_hits: Property[Title, bool]
    allow_attacks: Property[Title, bool]
    allow_moves: Property[Title, bool]
    lock_on_bonus_range: Property[Title, float]
    los_lock_on_deactivate_time: Property[Title, float]

    @property
    def names(self) -> AnimationNames:
        """What the names of animations say about a fighter."""
        names = self.pointers.table.animations
        if names is None:
            raise MisuseError(f"addresses.toml of {self.game_id} has no table [animations]; add it to fight there")
        return names

    def boss(self, name: str) -> Boss:
        """A boss by name; a MisuseError if there is none."""
        if name not in self._bosses:
            self._bosses[name] = Boss(self, name, find_boss_fields(self.folder, name))
        return self._bosses[name]

    def clear_statuses(self) -> None:
        """Take away what has built up in the player."""

    def _allow_death(self) -> None:
        self.allow_player_death = True
        self.allow_deaths = True

    def _is_rising(self) -> bool:
        return self.player_animation == self.names.rising

    def _has_risen(self) -> bool:
        return self.player_animation == self.names.idle
