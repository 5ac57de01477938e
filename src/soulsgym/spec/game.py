"""How a fight is set up in the running game: a boss's [game] table, and what the rest of the fight says about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from soulsgym.spec.reader import Key, Number, Table, Words
from soulsgym.spec.title import LockOn

if TYPE_CHECKING:
    from soulsgym.spec.boss import Boss
    from soulsgym.spec.fight import FightSpec
    from soulsgym.spec.player import Player, PlayerAnimation

Point = tuple[Number, Number, Number]
Pose = tuple[Number, Number, Number, Number]
"""x, y, z [m] and heading [rad]."""
Distance = Annotated[float, Meta(ge=0.01, le=1e6)]

NO_MOVE, ROLL_MOVE, FALL_MOVE = -1, -2, -3
"""What FIGHT shows as the player's move when it is none of the character's."""
Wait = Annotated[float, Meta(ge=0.1, le=300.0)]


@dataclass(frozen=True)
class Tolerances:
    """How far off a place still counts as there."""

    bonfire_m: Distance
    fog_wall_m: Distance
    behind_fog_m: Distance
    player_m: Distance
    boss_m: Distance
    heading_rad: Distance


@dataclass(frozen=True, kw_only=True)
class PhaseChange:
    """How the next phase is brought about; without an animation it is over after `begins_within_s`."""

    boss_hp: Annotated[int, Meta(ge=1, le=1_000_000)]
    animation: str = ""
    begins_within_s: Wait
    lasts_at_most_s: Wait


@dataclass(frozen=True, kw_only=True)
class GameTable:
    """The [game] table of a boss's file."""

    resting: Words
    statuses: Words = ()  # status effects that the boss builds up in the player
    bonfire: str
    bonfire_m: Point
    fog_wall: Pose
    fog_view: Point
    behind_fog_m: Point
    near: Tolerances
    changes: Annotated[tuple[PhaseChange, ...], Key("change")] = ()  # one for each phase but the first


@dataclass(frozen=True, kw_only=True)
class WatchSetup:
    """A fight as whoever watches it in the running game needs it."""

    resting: Words
    statuses: Words = ()
    changes: tuple[PhaseChange, ...] = ()
    boss: str
    name: str
    title: str
    player_hp: int
    player_sp: int
    player_sp_floor: float
    boss_hp: int
    phases: int
    low_m: Point
    high_m: Point
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
        if phase > len(self.boss_moves):  # nobody has described it
            return NO_MOVE
        return self.boss_moves[phase - 1].get(animation, NO_MOVE)

    def player_move(self, animation: str) -> int:
        """The move that an animation of the player is; -1 for none."""
        return self.player_moves.get(animation, NO_MOVE)


@dataclass(frozen=True, kw_only=True)
class GameSetup(WatchSetup, GameTable):
    """A fight as it is set up and played in the running game."""

    attributes: tuple[int, ...]
    centre_m: tuple[float, float]
    player_start: Pose
    player_starts: tuple[Pose, ...]
    boss_start: Pose
    lock_on: LockOn


def check_game(table: Table, game: GameTable, phases: int) -> None:
    """Refuse a [game] table that cannot be, of a boss with so many phases; 0 if nobody has described them."""
    if abs(game.fog_wall[3]) > math.pi:
        raise table.error("fog_wall", game.fog_wall, "must have a heading from -pi to pi")
    length = math.hypot(*game.fog_view)
    if abs(length - 1.0) > 0.01:
        raise table.error("fog_view", game.fog_view, f"must be a unit vector; its length is {length:.3f}")
    number = len(game.changes)
    if phases and number != phases - 1:
        raise table.error("change", number, f"must be {phases - 1} in number, one for each phase but the first")


def game_setup(spec: FightSpec, table: GameTable, lock_on: LockOn) -> GameSetup:
    """What the running game needs of a fight."""
    player, arena = spec.player, spec.arena
    heights = zip(arena.player_starts, arena.player_starts_z_m, strict=True)
    changes = tuple(_named(spec.boss, phase, change) for phase, change in enumerate(table.changes))
    return GameSetup(
        **_seen(spec) | vars(table) | {"changes": changes, "phases": len(changes) + 1},
        attributes=tuple(player.attributes[attribute.key] for attribute in spec.title.attributes),
        centre_m=arena.centre_m,
        player_start=_with_height(arena.player_start, arena.player_start_z_m),
        player_starts=tuple(_with_height(start, z_m) for start, z_m in heights),
        boss_start=_with_height(arena.boss_start, arena.boss_start_z_m),
        lock_on=lock_on,
    )


RESTING = ("idle", "walk", "strafe", "turn")
"""Kinds of a boss's moves with which a fight has not begun."""


def watch_setup(spec: FightSpec) -> WatchSetup:
    """What it takes to watch a fight of which nobody knows how to set it up; who stands or walks rests."""
    boss = spec.boss
    resting = dict.fromkeys(move.animation for move in boss.moves if move.kind in RESTING)
    unseen = PhaseChange(boss_hp=1, begins_within_s=1.0, lasts_at_most_s=1.0)  # told by the animation alone
    changes = tuple(_named(boss, phase, unseen) for phase in range(len(boss.phases) - 1))
    return WatchSetup(**_seen(spec), resting=tuple(resting), changes=changes, phases=len(changes) + 1)


def _seen(spec: FightSpec) -> dict[str, Any]:
    boss, player, arena = spec.boss, spec.player, spec.arena
    return {
        "boss": Path(spec.boss_name).stem,
        "name": boss.name,
        "title": spec.title.id,
        "player_hp": int(player.hp),
        "player_sp": int(player.sp),
        "player_sp_floor": player.sp_floor,
        "boss_hp": int(boss.hp),
        "low_m": arena.low_m,
        "high_m": arena.high_m,
        "player_animations": spec.player_animations,
        "boss_animations": spec.boss_animations,
        "move_names": tuple(move.name for move in boss.moves),
        "boss_moves": boss_moves_by_animation(boss),
        "player_moves": player_moves_by_animation(player),
        "label_s_per_step": player.label_s_per_step,
    }


def _with_height(pose: tuple[float, float, float], z_m: float) -> Pose:
    return pose[0], pose[1], z_m, pose[2]


def _named(boss: Boss, phase: int, change: PhaseChange) -> PhaseChange:
    """The change with the animation of the boss's own move for it, unless it names another."""
    if change.animation or not boss.phases:
        return change
    animation = boss.moves[boss.move_index(boss.phases[phase].change_move)].animation
    return replace(change, animation=animation)


def player_moves_by_animation(player: Player) -> dict[str, int]:
    """The move that each animation of the player stands for."""
    moves = {move.animation: index for index, move in reversed(list(enumerate(player.moves)))}
    moves |= dict.fromkeys(player.roll.animations, ROLL_MOVE)
    return moves | dict.fromkeys(player.fall_animations, FALL_MOVE)


def boss_moves_by_animation(boss: Boss) -> tuple[dict[str, int], ...]:
    """By phase, the move that each animation stands for: the phase's own come first, then those of no phase."""
    own = [_moves_of_phase(boss, phase) for phase in range(len(boss.phases))]
    anywhere = set(range(len(boss.moves))) - set().union(*own)
    by_phase = []
    for moves in own:
        ordered = [*sorted(moves), *sorted(anywhere)]
        by_phase.append({boss.moves[index].animation: index for index in reversed(ordered)})
    return tuple(by_phase)


def _moves_of_phase(boss: Boss, phase: int) -> set[int]:
    names = {act.first_move for act in boss.phases[phase].acts}
    names |= {link.move for act in boss.phases[phase].acts for chain in act.chains for link in chain.links}
    names |= {move.grab_move for move in boss.moves if move.name in names and move.grab_move}
    known = {move.name: index for index, move in enumerate(boss.moves)}
    return {known[name] for name in names if name in known}
