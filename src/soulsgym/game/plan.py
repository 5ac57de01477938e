"""FightPlan: what a data file says about a fight in the running game."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from soulsgym.errors import MisuseError
from soulsgym.spec import FightSpec, load_fight
from soulsgym.spec.fight import DATA
from soulsgym.spec.player import Player, PlayerAnimation, parse_animations, parse_player
from soulsgym.spec.reader import Table, read_toml, suggestion

Point = tuple[float, float, float]
Pose = tuple[float, float, float, float]
"""x, y, z [m] and heading [rad]."""

ATTRIBUTES = (
    "soul_level", "vigor", "attunement", "endurance", "vitality",
    "strength", "dexterity", "intelligence", "faith", "luck",
)  # fmt: skip
"""In the order in which the titles take them."""
NO_MOVE, ROLL_MOVE, FALL_MOVE = -1, -2, -3
"""What FIGHT shows as the player's move when it is none of the moveset's."""


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
class SecondPhase:
    """How the second phase is brought about; without an animation it is over after `begins_within_s`."""

    boss_hp: int
    animation: str
    begins_within_s: float
    lasts_at_most_s: float


@dataclass(frozen=True)
class LockOn:
    """How the game's lock-on is widened for the fight."""

    bonus_range_m: float
    unseen_s: float


@dataclass(frozen=True)
class FightPlan:
    """One fight in the running game."""

    boss: str
    name: str
    title: str
    bonfire: str
    attributes: tuple[int, ...]
    spec: str  # "": there is none
    frost: bool  # does the boss's frost build up in the player?
    player_hp: int
    player_sp: int
    player_sp_floor: float
    boss_hp: int
    phases: int
    resting: tuple[str, ...]
    low_m: Point
    high_m: Point
    centre_m: tuple[float, float]
    bonfire_m: Point
    fog_wall: Pose
    fog_view: Point
    behind_fog_m: Point
    player_start: Pose
    player_starts: tuple[Pose, ...]
    boss_start: Pose
    near: Near
    second_phase: SecondPhase
    lock_on: LockOn
    player_animations: tuple[PlayerAnimation, ...]
    boss_animations: tuple[str, ...]
    move_names: tuple[str, ...]  # of the boss, by index; empty without a moveset
    boss_moves: tuple[Mapping[str, int], ...]  # by phase: name of an animation -> index of the move
    player_moves: Mapping[str, int]
    label_s_per_step: float

    def is_resting(self, boss_animation: str) -> bool:
        """Does the boss stand or walk, by the name of his animation?"""
        return boss_animation == "" or boss_animation.startswith(self.resting)

    def boss_move(self, animation: str, phase: int) -> int:
        """The move of the moveset that an animation of the boss is in this phase; -1 for none."""
        if not self.boss_moves:
            return NO_MOVE
        return self.boss_moves[phase - 1].get(animation, NO_MOVE)

    def player_move(self, animation: str) -> int:
        """The move of the moveset that an animation of the player is; -1 for none."""
        return self.player_moves.get(animation, NO_MOVE)


def known_fights(data: Path = DATA) -> tuple[str, ...]:
    """The bosses that can be fought in the running game."""
    return tuple(sorted(file.stem for file in (data / "fights").glob("*.toml")))


def load_plan(boss: str, data: Path = DATA) -> FightPlan:
    """Read and check the file of a fight."""
    known = known_fights(data)
    if boss not in known:
        raise MisuseError(f"boss {boss!r} is not known for the running game{suggestion(boss, known)}")
    return _load(boss, data)


@cache
def _load(boss: str, data: Path) -> FightPlan:
    file = data / "fights" / f"{boss}.toml"
    table = Table(file, "", read_toml(file))
    name, title, group = table.text("name"), table.text("title"), table.text("animations")
    spec_name, frost = table.text("moveset", default=""), table.flag("frost")
    player, body = table.table("player"), table.table("boss")
    arena, places = table.table("arena"), table.table("places")
    attributes = _attributes(player)
    near, second, lock = _near(table.table("near")), _second_phase(table.table("second_phase")), table.table("lock_on")
    label_file, player_file = data / "animations.toml", data / "player.toml"
    labels, boss_labels = parse_animations(label_file, read_toml(label_file), group)
    knight = parse_player(player_file, read_toml(player_file), tuple(label.name for label in labels))
    spec = load_fight(spec_name, data=data) if spec_name else None
    phases = int(body.number("phases", low=1, high=2))
    plan = FightPlan(
        boss=boss, name=name, title=title, bonfire=places.text("bonfire_name"), attributes=attributes,
        spec=spec_name, frost=frost, player_hp=int(player.number("hp", low=1)),
        player_sp=int(player.number("sp", low=1)), player_sp_floor=knight.sp_floor,
        boss_hp=int(body.number("hp", low=1)), phases=phases, resting=body.texts("resting"),
        low_m=_point(arena, "low_m"), high_m=_point(arena, "high_m"), centre_m=_centre(arena),
        bonfire_m=_point(places, "bonfire_m"), fog_wall=_pose(places, "fog_wall"), fog_view=_point(places, "fog_view"),
        behind_fog_m=_point(places, "behind_fog_m"), player_start=_pose(places, "player_start"),
        player_starts=tuple(_as_pose(places, "player_starts", row) for row in places.lists("player_starts")),
        boss_start=_pose(places, "boss_start"), near=near, second_phase=second,
        lock_on=LockOn(lock.number("bonus_range_m", low=0.0), lock.number("unseen_s", low=0.0)),
        player_animations=labels, boss_animations=boss_labels,
        move_names=tuple(move.name for move in spec.boss.moves) if spec else (),
        boss_moves=_boss_moves(spec) if spec else (), player_moves=_player_moves(knight),
        label_s_per_step=knight.label_s_per_step,
    )  # fmt: skip
    for inner in (player, body, arena, places, lock):
        inner.close()
    table.close(inherited_source=True)
    _check(places, plan)
    return plan


def _attributes(player: Table) -> tuple[int, ...]:
    inner = player.table("attributes")
    values = tuple(int(inner.number(name, low=1, high=802)) for name in ATTRIBUTES)
    inner.close(inherited_source=True)
    player.cover("attributes")
    return values


def _near(table: Table) -> Near:
    names = ("bonfire_m", "fog_wall_m", "behind_fog_m", "player_m", "boss_m", "heading_rad")
    near = Near(*(table.number(name, low=0.01) for name in names))
    table.close()
    return near


def _second_phase(table: Table) -> SecondPhase:
    second = SecondPhase(
        int(table.number("boss_hp", low=1)),
        table.text("animation"),
        table.number("begins_within_s", low=0.1, high=300.0),
        table.number("lasts_at_most_s", low=0.1, high=300.0),
    )
    table.close()
    return second


def _point(table: Table, key: str) -> Point:
    x, y, z = table.numbers(key, count=3)
    return x, y, z


def _pose(table: Table, key: str) -> Pose:
    return _as_pose(table, key, table.numbers(key, count=4))


def _as_pose(table: Table, key: str, values: tuple[float, ...]) -> Pose:
    if len(values) != 4:
        raise table.error(key, list(values), "must be x, y, z and a heading")
    if abs(values[3]) > math.pi:
        raise table.error(key, list(values), "must have a heading from -pi to pi")
    return values[0], values[1], values[2], values[3]


def _centre(arena: Table) -> tuple[float, float]:
    x, y = arena.numbers("centre_m", count=2)
    return x, y


def _check(places: Table, plan: FightPlan) -> None:
    inside = (
        ("player_start", (plan.player_start,)),
        ("player_starts", plan.player_starts),
        ("boss_start", (plan.boss_start,)),
    )
    for key, poses in inside:
        for pose in poses:
            if not all(low < at < high for low, at, high in zip(plan.low_m, pose[:3], plan.high_m, strict=True)):
                raise places.error(key, list(pose), f"must lie between {list(plan.low_m)} and {list(plan.high_m)}")
    length = math.hypot(*plan.fog_view)
    if abs(length - 1.0) > 0.01:
        raise places.error("fog_view", list(plan.fog_view), f"must be a unit vector; its length is {length:.3f}")


def _player_moves(player: Player) -> dict[str, int]:
    moves = {move.animation: index for index, move in reversed(list(enumerate(player.moves)))}
    moves |= dict.fromkeys(player.roll.animations, ROLL_MOVE)
    return moves | dict.fromkeys(player.fall_animations, FALL_MOVE)


def _boss_moves(spec: FightSpec) -> tuple[dict[str, int], ...]:
    """A name may be another move in another phase: the phase's own come first, then those of no phase."""
    boss = spec.boss
    own = [_moves_of_phase(spec, phase) for phase in range(len(boss.phases))]
    anywhere = set(range(len(boss.moves))) - set().union(*own)
    by_phase = []
    for moves in own:
        ordered = [*sorted(moves), *sorted(anywhere)]
        by_phase.append({boss.moves[index].animation: index for index in reversed(ordered)})
    return tuple(by_phase)


def _moves_of_phase(spec: FightSpec, phase: int) -> set[int]:
    boss = spec.boss
    names = {act.name for act in boss.phases[phase].acts} - {"turn"}
    names |= {link.move for act in boss.phases[phase].acts for chain in act.chains for link in chain.links}
    names |= {move.grab_move for move in boss.moves if move.name in names and move.grab_move}
    known = {move.name: index for index, move in enumerate(boss.moves)}
    return {known[name] for name in names if name in known}
