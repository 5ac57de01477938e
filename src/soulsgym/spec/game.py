"""How a fight is set up in the running game: a boss's [game] table, and what the rest of the fight says about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from soulsgym.spec.reader import Table
from soulsgym.spec.title import LockOn

if TYPE_CHECKING:
    from soulsgym.spec.boss import Boss
    from soulsgym.spec.fight import FightSpec
    from soulsgym.spec.player import Player, PlayerAnimation

Point = tuple[float, float, float]
Pose = tuple[float, float, float, float]
"""x, y, z [m] and heading [rad]."""

NO_MOVE, ROLL_MOVE, FALL_MOVE = -1, -2, -3
"""What FIGHT shows as the player's move when it is none of the character's."""
LONGEST_WAIT_S = 300.0


@dataclass(frozen=True)
class Near:
    """How far off a place still counts as there."""

    bonfire_m: float
    fog_wall_m: float
    behind_fog_m: float
    player_m: float
    boss_m: float
    heading_rad: float


@dataclass(frozen=True)
class PhaseChange:
    """How the next phase is brought about; without an animation it is over after `begins_within_s`."""

    boss_hp: int
    animation: str
    begins_within_s: float
    lasts_at_most_s: float


@dataclass(frozen=True)
class GameTable:
    """The [game] table of a boss's file."""

    resting: tuple[str, ...]
    statuses: tuple[str, ...]
    bonfire: str
    bonfire_m: Point
    fog_wall: Pose
    fog_view: Point
    behind_fog_m: Point
    near: Near
    changes: tuple[PhaseChange, ...]


@dataclass(frozen=True)
class GameSetup:
    """A fight as the running game needs it."""

    boss: str
    name: str
    title: str
    attributes: tuple[int, ...]
    player_hp: int
    player_sp: int
    player_sp_floor: float
    boss_hp: int
    phases: int
    resting: tuple[str, ...]
    statuses: tuple[str, ...]  # status effects that the boss builds up in the player
    low_m: Point
    high_m: Point
    centre_m: tuple[float, float]
    bonfire: str
    bonfire_m: Point
    fog_wall: Pose
    fog_view: Point
    behind_fog_m: Point
    player_start: Pose
    player_starts: tuple[Pose, ...]
    boss_start: Pose
    near: Near
    changes: tuple[PhaseChange, ...]  # one for each phase but the first
    lock_on: LockOn
    player_animations: tuple[PlayerAnimation, ...]
    boss_animations: tuple[str, ...]
    move_names: tuple[str, ...]  # of the boss, by index; empty if nobody has described his moves
    boss_moves: tuple[Mapping[str, int], ...]  # by phase: name of an animation -> index of the move
    player_moves: Mapping[str, int]
    label_s_per_step: float

    def is_resting(self, boss_animation: str) -> bool:
        """Does the boss stand or walk, by the name of his animation?"""
        return boss_animation == "" or boss_animation.startswith(self.resting)

    def boss_move(self, animation: str, phase: int) -> int:
        """The move that an animation of the boss is in this phase; -1 for none."""
        if not self.boss_moves:
            return NO_MOVE
        return self.boss_moves[phase - 1].get(animation, NO_MOVE)

    def player_move(self, animation: str) -> int:
        """The move that an animation of the player is; -1 for none."""
        return self.player_moves.get(animation, NO_MOVE)


def parse_game(table: Table, phases: int, sources: dict[str, str]) -> GameTable:
    """The [game] table of a boss with so many phases; 0 if nobody has described them."""
    near, changes = table.table("near"), tuple(table.rows("change"))
    read = GameTable(
        resting=table.texts("resting"),
        statuses=table.texts("statuses") if table.has("statuses") else (),
        bonfire=table.text("bonfire"),
        bonfire_m=_point(table, "bonfire_m"),
        fog_wall=_pose(table, "fog_wall"),
        fog_view=_point(table, "fog_view"),
        behind_fog_m=_point(table, "behind_fog_m"),
        near=Near(**{name: near.number(name, low=0.01) for name in Near.__dataclass_fields__}),
        changes=tuple(_change(row) for row in changes),
    )
    length = math.hypot(*read.fog_view)
    if abs(length - 1.0) > 0.01:
        raise table.error("fog_view", list(read.fog_view), f"must be a unit vector; its length is {length:.3f}")
    if phases and len(changes) != phases - 1:
        raise table.error("change", len(changes), f"must be {phases - 1} in number, one for each phase but the first")
    for inner in (table, near, *changes):
        sources |= {f"{inner.path}.{key}": source for key, source in inner.close().items()}
    return read


def _change(table: Table) -> PhaseChange:
    return PhaseChange(
        table.whole("boss_hp", low=1, high=1_000_000),
        table.text("animation", default=""),
        table.number("begins_within_s", low=0.1, high=LONGEST_WAIT_S),
        table.number("lasts_at_most_s", low=0.1, high=LONGEST_WAIT_S),
    )


def _point(table: Table, key: str) -> Point:
    x, y, z = table.numbers(key, count=3)
    return x, y, z


def _pose(table: Table, key: str) -> Pose:
    x, y, z, heading = table.numbers(key, count=4)
    if abs(heading) > math.pi:
        raise table.error(key, [x, y, z, heading], "must have a heading from -pi to pi")
    return x, y, z, heading


def game_setup(spec: FightSpec, table: GameTable, lock_on: LockOn) -> GameSetup:
    """What the running game needs of a fight."""
    boss, player, arena = spec.boss, spec.player, spec.arena
    heights = zip(arena.player_starts, arena.player_starts_z_m, strict=True)
    return GameSetup(
        boss=Path(spec.boss_name).stem,
        name=boss.name,
        title=spec.title.id,
        attributes=tuple(player.attributes[attribute.key] for attribute in spec.title.attributes),
        player_hp=int(player.hp),
        player_sp=int(player.sp),
        player_sp_floor=player.sp_floor,
        boss_hp=int(boss.hp),
        phases=len(table.changes) + 1,
        resting=table.resting,
        statuses=table.statuses,
        low_m=arena.low_m,
        high_m=arena.high_m,
        centre_m=arena.centre_m,
        bonfire=table.bonfire,
        bonfire_m=table.bonfire_m,
        fog_wall=table.fog_wall,
        fog_view=table.fog_view,
        behind_fog_m=table.behind_fog_m,
        player_start=_with_height(arena.player_start, arena.player_start_z_m),
        player_starts=tuple(_with_height(start, z_m) for start, z_m in heights),
        boss_start=_with_height(arena.boss_start, arena.boss_start_z_m),
        near=table.near,
        changes=tuple(_named(boss, phase, change) for phase, change in enumerate(table.changes)),
        lock_on=lock_on,
        player_animations=spec.player_animations,
        boss_animations=spec.boss_animations,
        move_names=tuple(move.name for move in boss.moves),
        boss_moves=_boss_moves(boss),
        player_moves=_player_moves(player),
        label_s_per_step=player.label_s_per_step,
    )


def _with_height(pose: tuple[float, float, float], z_m: float) -> Pose:
    return pose[0], pose[1], z_m, pose[2]


def _named(boss: Boss, phase: int, change: PhaseChange) -> PhaseChange:
    """The change with the animation of the boss's own move for it, unless it names another."""
    if change.animation or not boss.phases:
        return change
    animation = boss.moves[boss.move_index(boss.phases[phase].change_move)].animation
    return PhaseChange(change.boss_hp, animation, change.begins_within_s, change.lasts_at_most_s)


def _player_moves(player: Player) -> dict[str, int]:
    moves = {move.animation: index for index, move in reversed(list(enumerate(player.moves)))}
    moves |= dict.fromkeys(player.roll.animations, ROLL_MOVE)
    return moves | dict.fromkeys(player.fall_animations, FALL_MOVE)


def _boss_moves(boss: Boss) -> tuple[dict[str, int], ...]:
    """A name may be another move in another phase: the phase's own come first, then those of no phase."""
    own = [_moves_of_phase(boss, phase) for phase in range(len(boss.phases))]
    anywhere = set(range(len(boss.moves))) - set().union(*own)
    by_phase = []
    for moves in own:
        ordered = [*sorted(moves), *sorted(anywhere)]
        by_phase.append({boss.moves[index].animation: index for index in reversed(ordered)})
    return tuple(by_phase)


def _moves_of_phase(boss: Boss, phase: int) -> set[int]:
    names = {act.name for act in boss.phases[phase].acts} - {"turn"}
    names |= {link.move for act in boss.phases[phase].acts for chain in act.chains for link in chain.links}
    names |= {move.grab_move for move in boss.moves if move.name in names and move.grab_move}
    known = {move.name: index for index, move in enumerate(boss.moves)}
    return {known[name] for name in names if name in known}
