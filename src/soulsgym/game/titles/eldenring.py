"""Elden Ring: the values of the running game by name, and looks at a fight that a person plays.

Nobody knows yet how to set a fight up in it, so none is played by us.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from soulsgym.errors import MisuseError, ReadFailed
from soulsgym.game.titles import values as of
from soulsgym.game.titles.boss import find_boss_fields
from soulsgym.game.titles.labels import load_labels, name_of, playing
from soulsgym.game.titles.title import Title, WatchTitle
from soulsgym.game.titles.values import Glance, Numbers, Property, Sight, array, vector, wrap_angle

if TYPE_CHECKING:
    from soulsgym.game.titles.values import Pose
    from soulsgym.spec.game import WatchSetup

SEEN = (
    "PlayerHP", "PlayerMaxHP", "PlayerSP", "PlayerMaxSP", "PlayerLocalXYZ", "PlayerQ", "PlayerAnimations", "LocalCam",
    "LockOn",
)  # fmt: skip
GLANCED = ("Time", "PlayerHP", "PlayerAnimations")
UNIT = 0.05
"""How far the length of a quaternion may be from 1."""


def _refuse_wear(game: Title, allowed: bool) -> None:
    if allowed:
        raise MisuseError("allow_weapon_durability_dmg cannot be set to True: weapons do not wear out here")


def in_arena(x: float, height: float, y: float) -> tuple[float, float, float]:
    """A place or direction of the game as the arenas have it: their x is the game's y, their y its x the other way."""
    return y, -x, height


def heading_of(quaternion: Sequence[float]) -> float:
    """A heading as the arenas have it, of somebody who is turned so; that the game's 0 faces its -y is a guess."""
    _, turn, _, rest = quaternion
    return wrap_angle(2.0 * math.atan2(turn, rest) + math.pi / 2)  # as in_arena() turns places


class EldenRing(WatchTitle):
    """One running Elden Ring, without its anti-cheat program."""

    game_id = "EldenRing"
    process_name = "eldenring.exe"
    folder = "eldenring"
    bonfire_field = "LastGrace"
    kept = ("AllowPlayerDeath", "PlayerGravity")
    offline_advice = "choose System > Network > Play Offline, start the game without Easy Anti-Cheat"
    lacks = (
        "the way to the boss from where the player comes back",
        "the flags of the story that make him wait again",
        "a way to turn the player",
    )
    attack_animations = ("Attack",)
    death_animations = ("Death",)
    walk_animations = ("Idle", "Move")

    player_animation = Property[Title, str](
        lambda game: str(playing(game.pointers.values("PlayerAnimations")["PlayerAnimations"])[0]),
        doc="Number of what the player does.",
    )
    player_mp = of.whole("PlayerMP", "Focus points of the player.", low=0)
    player_max_mp = of.whole("PlayerMaxMP", "Most focus points of the player.", writable=False)
    allow_player_death = of.permission("AllowPlayerDeath", "never", "May the player die?")
    allow_weapon_durability_dmg = Property(
        lambda game: False, _refuse_wear, doc="False: weapons do not wear out in this game."
    )
    gravity = of.permission("PlayerGravity", "off", "Does the player fall? Doubtful in the real game.")

    @property
    def player_pose(self) -> Numbers:
        """x, y, z in the world, and heading. Setting it leaves the heading as it is: no way to set it is known."""
        x, z, y, heading = self.pointers.numbers("PlayerXYZA")
        return array(x, y, z, wrap_angle(heading))

    @player_pose.setter
    def player_pose(self, pose: Sequence[float] | Numbers) -> None:
        x, y, z, _ = vector(pose, 4, "player_pose")
        # Only the place within the chunk of the map can be written; both move by the same distance.
        seen = self.pointers.values("PlayerXYZA", "PlayerLocalXYZ")
        ways = (wanted - now for wanted, now in zip((x, z, y), seen["PlayerXYZA"], strict=False))
        self.pointers.write(
            "PlayerLocalXYZ", tuple(at + way for at, way in zip(seen["PlayerLocalXYZ"], ways, strict=True))
        )

    @property
    def camera_pose(self) -> Numbers:
        """Where the camera is and the direction in which it looks. Set the direction alone: (nx, ny, nz)."""
        seen = self.pointers.values("LocalCam", "ChunkCamXYZ")
        nx, nz, ny, _, x, z, y = seen["LocalCam"]
        chunk_x, chunk_z, chunk_y = seen["ChunkCamXYZ"]
        return array(x - chunk_x, y - chunk_y, z - chunk_z, nx, ny, nz)

    @camera_pose.setter
    def camera_pose(self, direction: Sequence[float] | Numbers) -> None:
        self.turn_camera(direction)

    # ---- looks

    def look(self, boss: str) -> Sight:
        """A fight at one moment, in the coordinates of the arenas; ReadFailed while not in game."""
        fields = find_boss_fields(self.folder, boss)
        seen: dict[str, Any] = self.pointers.look(*SEEN, *dict.fromkeys(fields.seen)).read()
        player, player_s = playing(seen["PlayerAnimations"])
        number, boss_s = playing(seen[fields.animation])
        nx, nz, ny, _, x, z, y = seen["LocalCam"]
        labels = load_labels(self.folder)
        sight = Sight(
            time_ms=seen["time"],
            player_hp=seen["PlayerHP"],
            player_max_hp=seen["PlayerMaxHP"],
            player_sp=seen["PlayerSP"],
            player_max_sp=seen["PlayerMaxSP"],
            boss_hp=seen[fields.hp],
            boss_max_hp=seen[fields.max_hp],
            player_pose=_pose(seen["PlayerLocalXYZ"], seen["PlayerQ"]),
            boss_pose=_pose(seen[fields.position], seen[fields.heading]),
            camera_pose=(*in_arena(x, z, y), *in_arena(nx, nz, ny)),
            player_animation=name_of(labels.player, player),
            boss_animation=name_of(labels.boss, number),
            player_animation_s=player_s,
            boss_animation_s=boss_s,
            lock_on=seen["LockOn"] != 0,
            statuses=(),
        )
        self.check_sight(sight)
        return sight

    def glance(self, boss: str) -> Glance:
        """The few values that are worth polling, in one batch."""
        fields, labels = find_boss_fields(self.folder, boss), load_labels(self.folder)
        seen = self.pointers.values(*GLANCED, fields.hp, fields.animation)
        return Glance(
            time_ms=seen["Time"],
            player_hp=seen["PlayerHP"],
            boss_hp=seen[fields.hp],
            player_animation=name_of(labels.player, playing(seen["PlayerAnimations"])[0]),
            boss_animation=name_of(labels.boss, playing(seen[fields.animation])[0]),
        )

    def boss_faults(self, plan: WatchSetup) -> list[str] | None:
        """What of a boss cannot be true; None if he is not loaded."""
        try:
            sight = self.look(plan.boss)
        except ReadFailed:
            return None
        faults = []
        if not 0 <= sight.boss_hp <= sight.boss_max_hp:
            faults.append(f"{plan.name} has {sight.boss_hp} of {sight.boss_max_hp} HP")
        for who, fields in (("the player", "PlayerQ"), (plan.name, find_boss_fields(self.folder, plan.boss).heading)):
            length = math.hypot(*self.pointers.numbers(fields))
            if not abs(length - 1.0) <= UNIT:
                faults.append(f"the quaternion by which {who} is turned has length {length:.2f} and not 1")
        return faults

    def reset_player_mp(self) -> None:
        """Fill the player's focus points."""
        self.player_mp = self.player_max_mp

    def _allow_death(self) -> None:
        self.allow_player_death = True

    def _has_risen(self) -> bool:
        # Which number stands for standing is not known; the game fills HP when it lets the player come back.
        return self.player_hp == self.player_max_hp


def _pose(place: tuple[float, float, float], quaternion: tuple[float, ...]) -> Pose:
    return (*in_arena(*place), heading_of(quaternion))
