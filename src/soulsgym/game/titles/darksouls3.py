"""Dark Souls III: the values of the running game by name, and looks at a fight in few batches of memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from soulsgym.errors import MisuseError, ReadFailed, suggestion
from soulsgym.game.addresses import AnimationNames, load_bonfires
from soulsgym.game.pointers import Pointers
from soulsgym.game.titles import properties as of
from soulsgym.game.titles.properties import Numbers, Property, array, vector, wrapped
from soulsgym.game.titles.sight import Glance, Pose, Sight
from soulsgym.game.titles.title import Title

if TYPE_CHECKING:
    pass

BOSSES = {"iudex": "Iudex", "vordt": "Vordt"}
"""How the fields of each boss begin."""
SIGHT_OF_PLAYER = (
    "PlayerHP", "PlayerMaxHP", "PlayerSP", "PlayerMaxSP", "PlayerA", "PlayerX", "CamQx", "PlayerAnimation",
    "PlayerAnimationTime", "PlayerAnimationMaxTime", "LockOn", "PlayerFrostResistance", "PlayerFrostResistanceMax",
    "PlayerFrostEffect",
)  # fmt: skip
SIGHT_OF_BOSS = (
    "HP", "MaxHP", "PoseA", "PoseX", "Animation", "AnimationTime", "AnimationMaxTime", "AttackID", "AttackID2",
)  # fmt: skip
GLANCE_AT_BOSS = ("HP", "Animation", "AttackID", "AttackID2")
SIGHT_FIELDS = {boss: (*SIGHT_OF_PLAYER, *(prefix + name for name in SIGHT_OF_BOSS)) for boss, prefix in BOSSES.items()}
GLANCE_FIELDS = {
    boss: ("Time", "PlayerHP", "PlayerAnimation", *(prefix + name for name in GLANCE_AT_BOSS))
    for boss, prefix in BOSSES.items()
}


def pose_of(heading: float, place: Sequence[float]) -> Pose:
    """A pose from what the game keeps of it: x, height, y."""
    return place[0], place[2], place[1], wrapped(heading)


def _frost() -> Property[float]:
    left, most = "PlayerFrostResistance", "PlayerFrostResistanceMax"

    def put(pointers: Pointers, share: float) -> None:
        if not 0.0 <= share <= 1.0:
            raise MisuseError(f"player_frost_resistance cannot be set to {share!r}: give a share from 0 to 1")
        pointers.write(left, round(share * pointers.integer(most)))

    return Property(
        lambda pointers: _share(*pointers.values(left, most).values()),
        put,
        doc="Share of the frost resistance that is left: 1 without any build-up.",
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole > 0 else 1.0


def _phase() -> Property[int]:
    reason = "the game keeps no number of it; fights tell the phase by HP and animation"

    def get(pointers: Pointers) -> int:
        raise MisuseError(f"the phase of a boss cannot be read: {reason}")

    return Property(get, doc="Not in the game's memory.", why_not=reason)


class DarkSoulsIII(Title):
    """One running Dark Souls III."""

    game_id = "DarkSoulsIII"
    process_name = "DarkSoulsIII.exe"
    data = "darksouls3"
    bonfire_field = "LastBonfire"
    kept = (
        "PlayerNoDeath", "AllNoDeath", "AllNoHit", "AllNoAttack", "AllNoMove", "AllNoDurabilityLoss",
        "LockOnBonusRange", "LoSLockOnTime", "noGravity",
    )  # fmt: skip

    player_hp = of.whole("PlayerHP", "HP of the player.", low=0)
    player_max_hp = of.whole("PlayerMaxHP", "Most HP of the player.", writable=False)
    player_sp = of.whole("PlayerSP", "Stamina of the player; may be below 0.")
    player_max_sp = of.whole("PlayerMaxSP", "Most stamina of the player.", writable=False)
    player_animation = of.text("PlayerAnimation", "Name of what the player does.")
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

    lock_on = of.nonzero("LockOn", "Is the camera locked on to an enemy?")
    lock_on_bonus_range = of.real("LockOnBonusRange", "Metres on top of the usual range of lock-on.", writable=True)
    los_lock_on_deactivate_time = of.real(
        "LoSLockOnTime", "Seconds without a line of sight after which lock-on ends.", writable=True
    )
    screen_mode = of.meant("ScreenMode", "window or fullscreen.")

    iudex_hp = of.whole("IudexHP", "HP of Iudex.", low=0)
    iudex_max_hp = of.whole("IudexMaxHP", "Most HP of Iudex; wrong unless his map is loaded.", writable=False)
    iudex_animation_time = of.real("IudexAnimationTime", "Seconds since his animation began.")
    iudex_animation_max_time = of.real("IudexAnimationMaxTime", "Seconds that it takes.")
    iudex_attacks = of.permission("IudexAttacks", "off", "May Iudex attack? Doubtful in the real game.")
    iudex_phase = _phase()
    vordt_hp = of.whole("VordtHP", "HP of Vordt.", low=0)
    vordt_max_hp = of.whole("VordtMaxHP", "Most HP of Vordt; wrong unless his map is loaded.", writable=False)
    vordt_animation_time = of.real("VordtAnimationTime", "Seconds since his animation began.")
    vordt_animation_max_time = of.real("VordtAnimationMaxTime", "Seconds that it takes.")
    vordt_attacks = of.permission("VordtAttacks", "off", "May Vordt attack? Doubtful in the real game.")
    vordt_phase = _phase()

    # ---- looks

    def look(self, boss: str) -> Sight:
        """A fight at one moment; ReadFailed while not in game."""
        prefix = self._prefix(boss)
        look = self.pointers.look(*SIGHT_FIELDS[boss])
        sight = self._sight(look.read(), prefix)
        self._check(sight)
        return sight

    def glance(self, boss: str) -> Glance:
        """The few values that are worth polling, in one batch."""
        prefix = self._prefix(boss)
        seen = self.pointers.values(*GLANCE_FIELDS[boss])
        return Glance(
            time_ms=seen["Time"],
            player_hp=seen["PlayerHP"],
            boss_hp=seen[prefix + "HP"],
            player_animation=seen["PlayerAnimation"],
            boss_animation=self._repaired(seen, prefix),
        )

    def _prefix(self, boss: str) -> str:
        if boss not in BOSSES:
            raise MisuseError(f"no boss is called {boss!r}{suggestion(boss, tuple(BOSSES))}")
        return BOSSES[boss]

    def _sight(self, seen: Mapping[str, Any], prefix: str) -> Sight:
        camera = seen["CamQx"]
        return Sight(
            time_ms=seen["time"],
            player_hp=seen["PlayerHP"],
            player_max_hp=seen["PlayerMaxHP"],
            player_sp=seen["PlayerSP"],
            player_max_sp=seen["PlayerMaxSP"],
            boss_hp=seen[prefix + "HP"],
            boss_max_hp=seen[prefix + "MaxHP"],
            player_pose=pose_of(seen["PlayerA"], seen["PlayerX"]),
            boss_pose=pose_of(seen[prefix + "PoseA"], seen[prefix + "PoseX"]),
            camera_pose=(camera[4], camera[6], camera[5], camera[0], camera[2], camera[1]),
            player_animation=seen["PlayerAnimation"],
            boss_animation=self._repaired(seen, prefix),
            player_animation_s=seen["PlayerAnimationTime"],
            player_animation_length_s=seen["PlayerAnimationMaxTime"],
            boss_animation_s=seen[prefix + "AnimationTime"],
            boss_animation_length_s=seen[prefix + "AnimationMaxTime"],
            lock_on=seen["LockOn"] != 0,
            frost_resistance=_share(seen["PlayerFrostResistance"], seen["PlayerFrostResistanceMax"]),
            frost_effect=seen["PlayerFrostEffect"],
        )

    def _check(self, sight: Sight) -> None:
        """Whether it can be true: memory that was given to something else looks like anything."""
        reason = ""
        if sight.player_max_hp <= 0 or not -1 <= sight.player_hp <= sight.player_max_hp:
            reason = f"the player has {sight.player_hp} of {sight.player_max_hp} HP"
        # What Iudex has at most is read from a doubtful place, so his HP is not compared with it.
        elif sight.boss_hp < -1:
            reason = f"the boss has {sight.boss_hp} HP"
        elif not all(map(math.isfinite, (*sight.player_pose, *sight.boss_pose, *sight.camera_pose))):
            reason = "somebody is nowhere"
        if reason:
            raise ReadFailed(self.pointers.address("PlayerHP"), f"{reason}: not in game")

    def _names(self) -> AnimationNames:
        names = self.pointers.table.animations
        assert names is not None
        return names

    def _repaired(self, seen: Mapping[str, Any], prefix: str) -> str:
        """What a boss really does: hits overwrite the name for some time, and that of a past attack lingers."""
        name, names = seen[prefix + "Animation"], self._names()
        if not any(mark in name for mark in names.unreliable):
            return str(name)
        for register in (prefix + "AttackID", prefix + "AttackID2"):
            if seen[register] != self.pointers.meaning(prefix + "AttackID", "none"):
                return f"{names.attack}{seen[register]}"
        return names.boss_idle

    def _boss_animation(self, prefix: str) -> str:
        fields = (prefix + name for name in ("Animation", "AttackID", "AttackID2"))
        return self._repaired(self.pointers.values(*fields), prefix)

    @property
    def iudex_animation(self) -> str:
        """What Iudex does."""
        return self._boss_animation("Iudex")

    @property
    def vordt_animation(self) -> str:
        """What Vordt does."""
        return self._boss_animation("Vordt")

    # ---- poses

    @property
    def player_pose(self) -> Numbers:
        """x, y, z and heading of the player."""
        return self._pose("PlayerA", "PlayerX")

    @player_pose.setter
    def player_pose(self, pose: Sequence[float] | Numbers) -> None:
        self.move_player(pose)

    def move_player(self, pose: Sequence[float] | Numbers, *, heal: bool = False) -> None:
        """Put the player somewhere without a fall or a death on the way; `heal` fills his HP too, as SoulsGym does."""
        x, y, z, heading = vector(pose, 4, "player_pose")
        with self._kept_alive(), self._without_gravity():
            self.pointers.write("PlayerX", (x, z, y))
            self.pointers.write("PlayerA", wrapped(heading))
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
    def iudex_pose(self) -> Numbers:
        """x, y, z and heading of Iudex."""
        return self._pose("IudexPoseA", "IudexPoseX")

    @iudex_pose.setter
    def iudex_pose(self, pose: Sequence[float] | Numbers) -> None:
        self._move_boss("Iudex", pose)

    @property
    def vordt_pose(self) -> Numbers:
        """x, y, z and heading of Vordt."""
        return self._pose("VordtPoseA", "VordtPoseX")

    @vordt_pose.setter
    def vordt_pose(self, pose: Sequence[float] | Numbers) -> None:
        self._move_boss("Vordt", pose)

    def _pose(self, heading: str, place: str) -> Numbers:
        seen = self.pointers.values(heading, place)
        return array(*pose_of(seen[heading], seen[place]))

    def _move_boss(self, prefix: str, pose: Sequence[float] | Numbers) -> None:
        """While the game stands still, if it can be made to: it writes the pose too."""
        x, y, z, heading = vector(pose, 4, f"{prefix.lower()}_pose")
        speed = self.game_speed
        pauses = self.clock is not None and speed > 0.0
        if pauses:
            self.pause()
        try:
            self.pointers.write(prefix + "PoseX", (x, z, y))
            self.pointers.write(prefix + "PoseA", wrapped(heading))
        finally:
            if pauses:
                self.game_speed = speed

    @property
    def camera_pose(self) -> Numbers:
        """Where the camera is and the direction in which it looks. Set the direction alone: (nx, ny, nz)."""
        nx, nz, ny, _, x, z, y = self.pointers.numbers("CamQx")
        return array(x, y, z, nx, ny, nz)

    @camera_pose.setter
    def camera_pose(self, direction: Sequence[float] | Numbers) -> None:
        self.turn_camera(direction)

    # ---- HP and stamina

    def reset_player_hp(self) -> None:
        """Fill the player's HP."""
        self.player_hp = self.player_max_hp

    def reset_player_sp(self) -> None:
        """Fill the player's stamina."""
        self.player_sp = self.player_max_sp

    def reset_boss_hp(self, boss: str) -> None:
        """Fill a boss's HP."""
        prefix = self._prefix(boss)
        self.pointers.write(prefix + "HP", self.pointers.integer(prefix + "MaxHP"))

    # ---- flags of the story

    @property
    def iudex_flags(self) -> bool:
        """Can Iudex be fought: met, sword pulled out, not defeated, gates shut, and the right variant of his map?"""
        untended = self.pointers.meaning("UntendedGravesFlag", "untended")
        return (
            self.pointers.integer("UntendedGravesFlag") != untended
            and not self.pointers.bit("FirelinkShrineGates", "open")
            and self.pointers.bit("IudexFlags", "encountered")
            and self.pointers.bit("IudexFlags", "sword_pulled")
            and not self.pointers.bit("IudexFlags", "defeated")
        )

    @iudex_flags.setter
    def iudex_flags(self, ready: bool) -> None:
        """True makes it so; False makes it as if he had never been met."""
        if ready:
            self.pointers.write("UntendedGravesFlag", self.pointers.meaning("UntendedGravesFlag", "ash"))
            self.pointers.set_bit("FirelinkShrineGates", "open", False)
        self.pointers.set_bit("IudexFlags", "defeated", False)
        self.pointers.set_bit("IudexFlags", "encountered", ready)
        self.pointers.set_bit("IudexFlags", "sword_pulled", ready)

    @property
    def vordt_flags(self) -> bool:
        """Can Vordt be fought: met and not defeated?"""
        return self.pointers.bit("VordtFlags", "encountered") and not self.pointers.bit("VordtFlags", "defeated")

    @vordt_flags.setter
    def vordt_flags(self, ready: bool) -> None:
        """True makes it so; False makes it as if he had never been met."""
        self.pointers.set_bit("VordtFlags", "defeated", False)
        self.pointers.set_bit("VordtFlags", "encountered", ready)

    def _set_bonfire(self, name: str) -> None:
        super()._set_bonfire(name)
        # A warp would load the right variant of the map by itself; a respawn loads the one that this byte says.
        variant = "untended" if name in load_bonfires(self.data).untended else "ash"
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

    # ---- death

    def _allow_death(self) -> None:
        self.allow_player_death = True
        self.allow_deaths = True

    def _is_rising(self) -> bool:
        return self.player_animation == self._names().rising

    def _has_risen(self) -> bool:
        return self.player_animation == self._names().idle
