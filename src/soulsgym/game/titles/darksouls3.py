"""Dark Souls III: the values of the running game by name, and looks at a fight in few batches of memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from soulsgym.actions import Button
from soulsgym.errors import MisuseError, ReadFailed
from soulsgym.game.addresses import load_bonfires
from soulsgym.game.titles import values as of
from soulsgym.game.titles.boss import Boss
from soulsgym.game.titles.title import FightTitle, Title
from soulsgym.game.titles.values import Glance, Numbers, Property, Sight, array, pose_of, vector, wrap_angle

SIGHT_OF_PLAYER = (
    "PlayerHP", "PlayerMaxHP", "PlayerSP", "PlayerMaxSP", "PlayerA", "PlayerX", "CamQx", "PlayerAnimation",
    "PlayerAnimationTime", "LockOn", "PlayerFrostResistance", "PlayerFrostResistanceMax", "PlayerFrostEffect",
)  # fmt: skip


def _frost() -> Property[Title, float]:
    left, most = "PlayerFrostResistance", "PlayerFrostResistanceMax"

    def put(game: Title, share: float) -> None:
        if not 0.0 <= share <= 1.0:
            raise MisuseError(f"player_frost_resistance cannot be set to {share!r}: give a share from 0 to 1")
        game.pointers.write(left, round(share * game.pointers.integer(most)))

    return Property(
        lambda game: _share(*game.pointers.values(left, most).values()),
        put,
        doc="Share of the frost resistance that is left: 1 without any build-up.",
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole > 0 else 1.0


def _of_boss(boss: str, value: Any) -> Property[FightTitle, Any]:
    """SoulsGym's name for a value of one boss, for its users' scripts: `iudex_hp` is `boss("iudex").hp`."""

    def put(game: FightTitle, new: Any) -> None:
        value.fset(game.boss(boss), new)

    return Property(lambda game: value.fget(game.boss(boss)), put if value.fset else None, doc=value.__doc__)


class DarkSoulsIII(FightTitle):
    """One running Dark Souls III."""

    game_id = "DarkSoulsIII"
    process_name = "DarkSoulsIII.exe"
    folder = "darksouls3"
    bonfire_field = "LastBonfire"
    kept = (
        "PlayerNoDeath", "AllNoDeath", "AllNoHit", "AllNoAttack", "AllNoMove", "AllNoDurabilityLoss",
        "LockOnBonusRange", "LoSLockOnTime", "noGravity",
    )  # fmt: skip

    offline_advice = "choose System > Network > Play Offline"
    statuses = {"frost_resistance": 1.0, "frost_effect": 0.0}  # noqa: RUF012 (declared as a ClassVar)
    attack_animations = ("Attack", "Throw")
    death_animations = ("Death",)
    throw_animations = ("ThrowAtk", "ThrowDef")
    weapon_animations = ("AttackRight",)
    buttons = {  # noqa: RUF012 (declared as a ClassVar)
        "AttackRightLight": Button.LIGHT,
        "AttackRightHeavy": Button.HEAVY,
        "ParryLeft": Button.PARRY,
    }
    walk_animations = ("Idle", "Move", "Walk", "Run", "Dash")
    weapon_advice = "equip the sword in the right hand, the shield in the left"

    player_animation_time = of.real("PlayerAnimationTime", "Seconds since it began.")
    player_animation_max_time = of.real("PlayerAnimationMaxTime", "Seconds that it takes.")
    player_frost_resistance = _frost()
    player_frost_effect = of.real("PlayerFrostEffect", "What is left of frostbite, 1 to 0.")
    gravity = of.permission("noGravity", "off", "Does the player fall?")

    allow_player_death = of.permission("PlayerNoDeath", "forbidden", "May the player die?")
    allow_deaths = of.permission("AllNoDeath", "forbidden", "May anybody die?")
    allow_hits = of.permission("AllNoHit", "forbidden", "May anybody be hit?")
    allow_attacks = of.permission("AllNoAttack", "forbidden", "May anybody but the player attack?")
    allow_moves = of.permission("AllNoMove", "forbidden", "May anybody but the player move?")
    allow_weapon_durability_dmg = of.permission("AllNoDurabilityLoss", "forbidden", "Do weapons wear out?")

    lock_on_bonus_range = of.real("LockOnBonusRange", "Metres on top of the usual range of lock-on.", writable=True)
    los_lock_on_deactivate_time = of.real(
        "LoSLockOnTime", "Seconds without a line of sight after which lock-on ends.", writable=True
    )
    screen_mode = of.word("ScreenMode", "window or fullscreen.")

    iudex_hp, vordt_hp = _of_boss("iudex", Boss.hp), _of_boss("vordt", Boss.hp)
    iudex_max_hp, vordt_max_hp = _of_boss("iudex", Boss.max_hp), _of_boss("vordt", Boss.max_hp)
    iudex_pose, vordt_pose = _of_boss("iudex", Boss.pose), _of_boss("vordt", Boss.pose)
    iudex_animation, vordt_animation = _of_boss("iudex", Boss.animation), _of_boss("vordt", Boss.animation)
    iudex_animation_time = _of_boss("iudex", Boss.animation_time)
    iudex_animation_max_time = _of_boss("iudex", Boss.animation_max_time)
    vordt_animation_time = _of_boss("vordt", Boss.animation_time)
    vordt_animation_max_time = _of_boss("vordt", Boss.animation_max_time)
    iudex_attacks, vordt_attacks = _of_boss("iudex", Boss.attacks), _of_boss("vordt", Boss.attacks)
    iudex_flags, vordt_flags = _of_boss("iudex", Boss.flags), _of_boss("vordt", Boss.flags)

    # ---- looks

    def look(self, boss: str) -> Sight:
        """A fight at one moment; ReadFailed while not in game."""
        one = self.boss(boss)
        seen: dict[str, Any] = self.pointers.look(*SIGHT_OF_PLAYER, *one.fields.seen).read()
        camera, fields = seen["CamQx"], one.fields
        sight = Sight(
            time_ms=seen["time"],
            player_hp=seen["PlayerHP"],
            player_max_hp=seen["PlayerMaxHP"],
            player_sp=seen["PlayerSP"],
            player_max_sp=seen["PlayerMaxSP"],
            boss_hp=seen[fields.hp],
            boss_max_hp=fields.max_in(seen),
            player_pose=pose_of(seen["PlayerA"], seen["PlayerX"]),
            boss_pose=pose_of(seen[fields.heading], seen[fields.position]),
            camera_pose=(camera[4], camera[6], camera[5], camera[0], camera[2], camera[1]),
            player_animation=seen["PlayerAnimation"],
            boss_animation=one.animation_in(seen),
            player_animation_s=seen["PlayerAnimationTime"],
            boss_animation_s=seen[fields.animation_time],
            lock_on=seen["LockOn"] != 0,
            statuses=(
                _share(seen["PlayerFrostResistance"], seen["PlayerFrostResistanceMax"]),
                seen["PlayerFrostEffect"],
            ),
        )
        self._check(sight)
        return sight

    def glance(self, boss: str) -> Glance:
        """The few values that are worth polling, in one batch."""
        one = self.boss(boss)
        seen = self.pointers.values("Time", "PlayerHP", "PlayerAnimation", *one.fields.glanced)
        return Glance(
            time_ms=seen["Time"],
            player_hp=seen["PlayerHP"],
            boss_hp=seen[one.fields.hp],
            player_animation=seen["PlayerAnimation"],
            boss_animation=one.animation_in(seen),
        )

    def _check(self, sight: Sight) -> None:
        """Whether it can be true: memory that was given to something else looks like anything."""
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

    # ---- poses

    @property
    def player_pose(self) -> Numbers:
        """x, y, z and heading of the player."""
        seen = self.pointers.values("PlayerA", "PlayerX")
        return array(*pose_of(seen["PlayerA"], seen["PlayerX"]))

    @player_pose.setter
    def player_pose(self, pose: Sequence[float] | Numbers) -> None:
        self.move_player(pose)

    def move_player(self, pose: Sequence[float] | Numbers, *, heal: bool = False) -> None:
        """Put the player somewhere without a fall or a death on the way; `heal` fills his HP too, as SoulsGym does."""
        x, y, z, heading = vector(pose, 4, "player_pose")
        with self._kept_alive(), self._without_gravity():
            self.pointers.write("PlayerX", (x, z, y))
            self.pointers.write("PlayerA", wrap_angle(heading))
        if heal:
            self.reset_player_hp()

    @contextmanager
    def _kept_alive(self) -> Iterator[None]:
        allowed = self.allow_player_death
        self.allow_player_death = False
        try:
            yield
        finally:
            self.allow_player_death = allowed

    @contextmanager
    def _without_gravity(self) -> Iterator[None]:
        gravity = self.gravity
        self.gravity = False
        try:
            yield
        finally:
            # If the player object is gone, so is its flag: a new one falls.
            with suppress(ReadFailed):
                self.gravity = gravity

    @property
    def camera_pose(self) -> Numbers:
        """Where the camera is and the direction in which it looks. Set the direction alone: (nx, ny, nz)."""
        nx, nz, ny, _, x, z, y = self.pointers.numbers("CamQx")
        return array(x, y, z, nx, ny, nz)

    @camera_pose.setter
    def camera_pose(self, direction: Sequence[float] | Numbers) -> None:
        self.turn_camera(direction)

    # ---- boss, statuses, bonfire

    def reset_boss_hp(self, boss: str) -> None:
        """Fill a boss's HP."""
        self.boss(boss).reset_hp()

    def clear_statuses(self) -> None:
        """Take away the frost that has built up in the player."""
        self.player_frost_resistance = 1.0

    def _set_bonfire(self, name: str) -> None:
        super()._set_bonfire(name)
        # A warp would load the right variant of the map by itself; a respawn loads the one that this byte says.
        variant = "untended" if name in load_bonfires(self.folder).untended else "ash"
        self.pointers.write("UntendedGravesFlag", self.pointers.meaning("UntendedGravesFlag", variant))

    # ---- window

    @property
    def window_resolution(self) -> tuple[int, int]:
        """Width and height that the game has in its settings."""
        return self.pointers.integer("WindowScreenWidth"), self.pointers.integer("WindowScreenHeight")

    @window_resolution.setter
    def window_resolution(self, size: tuple[int, int]) -> None:
        width, height = vector(size, 2, "window_resolution")
        if width < 1 or height < 1 or not (width.is_integer() and height.is_integer()):
            raise MisuseError(f"window_resolution cannot be set to {size!r}: give width and height in pixels")
        self.pointers.write("WindowScreenWidth", int(width))
        self.pointers.write("WindowScreenHeight", int(height))
