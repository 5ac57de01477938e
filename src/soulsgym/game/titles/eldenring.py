"""Elden Ring: the values of the running game by name. Nobody has written fights for it yet."""

from __future__ import annotations

from collections.abc import Sequence

from soulsgym.errors import MisuseError
from soulsgym.game.titles import values as of
from soulsgym.game.titles.title import Title
from soulsgym.game.titles.values import Numbers, Property, array, vector, wrap_angle


def _refuse_wear(game: Title, allowed: bool) -> None:
    if allowed:
        raise MisuseError("allow_weapon_durability_dmg cannot be set to True: weapons do not wear out here")


class EldenRing(Title):
    """One running Elden Ring, without its anti-cheat program."""

    game_id = "EldenRing"
    process_name = "eldenring.exe"
    folder = "eldenring"
    bonfire_field = "LastGrace"
    kept = ("AllowPlayerDeath", "PlayerGravity")
    offline_advice = "choose System > Network > Play Offline, start the game without Easy Anti-Cheat"
    lacks = ("the fields of a boss", "switches for hits, attacks and moves", "how long an animation has played")

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

    def reset_player_mp(self) -> None:
        """Fill the player's focus points."""
        self.player_mp = self.player_max_mp

    def _allow_death(self) -> None:
        self.allow_player_death = True

    def _has_risen(self) -> bool:
        # Which number stands for standing is not known; the game fills HP when it lets the player come back.
        return self.player_hp == self.player_max_hp
