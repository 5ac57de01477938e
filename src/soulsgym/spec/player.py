"""The player's file: body, walking, camera, rolls, attacks and what being hit does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soulsgym.errors import suggestion
from soulsgym.spec.boss import LARGEST_BODY_M, LONGEST_S, Motion, parse_motion
from soulsgym.spec.damage import ATTACK_TYPES, Defence, Power, parse_defence
from soulsgym.spec.reader import Table

PLAYER_KINDS = ("attack", "parry", "riposte", "roll", "reaction", "grabbed")
NO_SPAN = (-1.0, -1.0)
NEVER_S = 1e9
NEEDED_MOVES = {
    "light_1": "attack", "heavy": "attack", "parry": "parry", "riposte": "riposte", "backstep": "roll",
    "get_up_roll": "roll", "ThrowDef": "grabbed", "GuardBreakWall": "reaction",
}  # fmt: skip
"""Moves, and their kinds, that the rules of the fight start by name."""
NEEDED_LABELS = ("Idle", "Move", "RunStopFront", "RunStopBack", "RunStopLeft", "RunStopRight")
"""Labels that the rules of walking show by name; the four of stopping follow each other."""
SPANS = ("turn_s", "invulnerable_s", "parry_s", "guard_s")
LINKS = ("on_light", "on_heavy", "on_roll", "on_end")
MOTION_LISTS = ("forward_m", "right_m", "backward_m")
FASTEST_TURN_RAD_PER_S = 60.0
"""One radian a tick, about as far as the simulator's turning is exact."""

LARGEST_ATTRIBUTE = 999
MAX_PAYMENTS = 2
"""Times within a move at which stamina may be due."""

Span = tuple[float, float]


@dataclass(frozen=True)
class PlayerAnimation:
    """A label of the player, and when it lets him act again."""

    name: str
    attack_s: float
    roll_s: float
    move_s: float


@dataclass(frozen=True)
class Strike:
    """When and where a blow of the player lands; those of a riposte land wherever the boss is."""

    name: str
    from_s: float
    to_s: float
    reach_m: float
    arc_deg: float
    power: Power
    poise: float


@dataclass(frozen=True)
class PlayerMove:
    """One animation of the player with its effects."""

    name: str
    animation: str
    kind: str
    end_s: float
    sp_cost: float
    sp_s: tuple[float, ...]
    regen_from_s: float
    turn_s: Span
    invulnerable_s: Span
    parry_s: Span
    guard_s: Span
    guarded_damage_factor: float
    held_m: float
    lock_s: float
    knocked_down: bool
    on_light: str
    on_heavy: str
    on_roll: str
    on_end: str
    strikes: tuple[Strike, ...]
    motion: Motion | None


@dataclass(frozen=True)
class Walk:
    """Walking: metres per step forward, right, backward, left; shares of it at the start; the slide at the end."""

    full_m: tuple[float, ...]
    first_share: float
    first_share_back: float
    after_roll_shares: tuple[float, ...]
    carry_roll: float
    carry_into_attack: float
    turn_rad_per_s: float
    stops_after_steps: float
    stop_m: tuple[float, ...]
    stop_tail_m: float
    stop_s: float
    linger_s: float


@dataclass(frozen=True)
class Camera:
    """How the camera follows."""

    pivot_share_per_step: float
    yaw_share_per_step: float
    press_share: float
    distance_m: float
    height_m: float
    view_z: float


@dataclass(frozen=True)
class Roll:
    """The roll in eight directions."""

    animations: tuple[str, str]
    sp_cost: float
    regen_from_s: float
    end_s: float
    invulnerable_s: Span
    settle_s: float
    turn_s: Span
    turn_rad_per_s: float
    again_within_s: float
    carry: float
    carry_roll: float
    carry_direction_m: float
    first_forward_m: float
    first_backward_m: float
    first_sideways_m: float
    first_s: float
    step_s: float
    forward_m: tuple[float, ...]
    right_m: tuple[float, ...]
    left_m: tuple[float, ...]
    backward_right_m: tuple[float, ...]
    backward_left_m: tuple[float, ...]
    on_light: str
    on_heavy: str


@dataclass(frozen=True)
class Player:
    """Everything the player's file says."""

    name: str
    label_s_per_step: float
    hp: float
    sp: float
    sp_floor: float
    sp_per_s: float
    sp_delay_ticks: float
    input_delay_ticks: float
    radius_m: float
    attributes: Mapping[str, int]
    attack: float
    defence: Defence
    walk: Walk
    camera: Camera
    roll: Roll
    moves: tuple[PlayerMove, ...]
    flinch_animations: tuple[str, ...]
    flinch_s: float
    flinch_after_animation: str
    flinch_after_s: float
    fall_animations: tuple[str, ...]
    fall_loop_from_s: float
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)


def parse_animations(
    file: Path, content: dict[str, object], boss: str, sources: dict[str, str] | None = None
) -> tuple[tuple[PlayerAnimation, ...], tuple[str, ...]]:
    """The player's animation table and the labels of one boss, in the order of their ids; fills `sources` if given."""
    table = Table(file, "", content)
    inner = table.table("player")
    player = []
    for row in inner.rows("animations"):
        times = (row.number(key, low=0.0) for key in ("attack_s", "roll_s", "move_s"))
        player.append(PlayerAnimation(row.text("name"), *times))
        row.close(inherited_source=True)
    inner.close(inherited_source=True)
    table.cover("player")
    groups = dict(table.tables("boss"))
    if boss not in groups:
        raise table.error(f"boss.{boss}", None, f"is missing{suggestion(boss, tuple(groups))}")
    labels = groups[boss].texts("animations")
    groups[boss].close(inherited_source=True)
    found = table.close()
    if sources is not None:
        sources |= found
    names = tuple(label.name for label in player)
    _check_labels(inner, names)
    _check_once(groups[boss], labels)
    return tuple(player), labels


def _check_labels(table: Table, names: tuple[str, ...]) -> None:
    _check_once(table, names)
    for needed in NEEDED_LABELS:
        if needed not in names:
            raise table.error("animations", None, f"lacks {needed!r}, which the rules of walking show")
    stops = NEEDED_LABELS[2:]
    first = names.index(stops[0])
    if names[first : first + len(stops)] != stops:
        raise table.error("animations", list(names[first : first + len(stops)]), f"must be {', '.join(stops)} in a row")


def _check_once(table: Table, names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise table.error("animations", name, "is there twice; the position of a label is its id")


def parse_player(file: Path, content: dict[str, object], animations: tuple[str, ...]) -> Player:
    """Check the content of the player's file; `animations` are the player's known labels."""
    sources: dict[str, str] = {}
    table = Table(file, "", content)
    name = table.text("name")
    clock, body = table.table("clock"), table.table("body")
    values = {
        "label_s_per_step": clock.number("label_s_per_step", low=0.01, high=1.0),
        "hp": body.number("hp", low=1.0),
        "sp": body.number("sp", low=1.0),
        "sp_floor": body.number("sp_floor", high=0.0),
        "sp_per_s": body.number("sp_per_s", low=0.0),
        "sp_delay_ticks": body.number("sp_delay_ticks", low=0.0),
        "input_delay_ticks": body.number("input_delay_ticks", low=0.0, high=5.0),
        "radius_m": body.number("radius_m", low=0.0, high=LARGEST_BODY_M),
    }
    attributes = _attributes(table.table("attributes"), sources) if table.has("attributes") else {}
    weapon, defended = table.table("weapon"), table.table("defence")
    attack, defence = weapon.number("attack", low=1.0), parse_defence(defended)
    walk, camera = _walk(table.table("walk"), sources), _camera(table.table("camera"), sources)
    roll = _roll(table.table("roll"), animations, sources)
    moves = tuple(_move(key, inner, animations, attack, sources) for key, inner in table.tables("move"))
    flinch, fall = table.table("flinch"), table.table("fall")
    flinch_labels, fall_labels = (
        flinch.texts("animations", among=animations, count=4),
        fall.texts("animations", among=animations, count=2),
    )
    flinch_s, loop_s = flinch.number("label_s", low=0.0), fall.number("loop_from_s", low=0.0)
    after_label, after_s = flinch.text("after_animation", among=animations), flinch.number("after_s", low=0.0)
    for inner in (clock, body, weapon, defended, flinch, fall):
        sources |= {f"{inner.path}.{key}": source for key, source in inner.close().items()}
    table.close(inherited_source=True)
    _check_names(table, moves, roll)
    return Player(
        name, **values, attributes=attributes, attack=attack, defence=defence,
        walk=walk, camera=camera, roll=roll, moves=moves,
        flinch_animations=flinch_labels, flinch_s=flinch_s, flinch_after_animation=after_label, flinch_after_s=after_s,
        fall_animations=fall_labels, fall_loop_from_s=loop_s, sources=sources,
    )  # fmt: skip


def _closed(table: Table, sources: dict[str, str]) -> None:
    sources |= {f"{table.path}.{key}": source for key, source in table.close().items()}


def _attributes(table: Table, sources: dict[str, str]) -> dict[str, int]:
    attributes = {name: table.whole(name, low=1, high=LARGEST_ATTRIBUTE) for name in table.names()}
    _closed(table, sources)
    return attributes


def _walk(table: Table, sources: dict[str, str]) -> Walk:
    shares = ("first_share", "first_share_back", "carry_roll", "carry_into_attack")
    rest = ("stops_after_steps", "stop_tail_m", "stop_s", "linger_s")
    walk = Walk(
        full_m=table.numbers("full_m", low=0.0, count=4),
        stop_m=table.numbers("stop_m", low=0.0, count=4),
        after_roll_shares=table.numbers("after_roll_shares", low=0.0, high=1.0, count=2),
        turn_rad_per_s=table.number("turn_rad_per_s", low=0.0, high=FASTEST_TURN_RAD_PER_S),
        **{key: table.number(key, low=0.0, high=1.0) for key in shares},
        **{key: table.number(key, low=0.0) for key in rest},
    )
    _closed(table, sources)
    return walk


def _camera(table: Table, sources: dict[str, str]) -> Camera:
    shares = ("pivot_share_per_step", "yaw_share_per_step", "press_share")
    camera = Camera(
        **{key: table.number(key, low=0.0, high=1.0) for key in shares},
        distance_m=table.number("distance_m", low=0.0),
        height_m=table.number("height_m"),
        view_z=table.number("view_z", low=-1.0, high=1.0),
    )
    _closed(table, sources)
    return camera


def _roll(table: Table, animations: tuple[str, ...], sources: dict[str, str]) -> Roll:
    first, second = table.texts("animations", among=animations, count=2)
    spans: dict[str, Any] = {key: table.span(key, low=0.0) for key in ("invulnerable_s", "turn_s")}
    numbers: dict[str, Any] = {
        key: table.number(key, low=0.0)
        for key in (
            "sp_cost", "regen_from_s", "settle_s", "again_within_s", "carry", "carry_roll", "carry_direction_m",
            "first_forward_m", "first_backward_m", "first_sideways_m",
        )
    }  # fmt: skip
    numbers["end_s"] = table.number("end_s", low=0.0, high=LONGEST_S)
    numbers["turn_rad_per_s"] = table.number("turn_rad_per_s", low=0.0, high=FASTEST_TURN_RAD_PER_S)
    numbers["first_s"] = table.number("first_s", low=0.001, high=LONGEST_S)
    step_s = table.number("step_s", low=0.01, high=LONGEST_S)
    names = ("forward_m", "right_m", "left_m", "backward_right_m", "backward_left_m")
    profiles: dict[str, Any] = {key: table.numbers(key) for key in names}
    if len({len(profile) for profile in profiles.values()}) > 1:
        raise table.error(
            "forward_m", list(profiles["forward_m"]), "must be as long as the other directions of the roll"
        )
    roll = Roll(
        (first, second), **numbers, **spans, step_s=step_s, **profiles,
        on_light=table.text("on_light"), on_heavy=table.text("on_heavy"),
    )  # fmt: skip
    _closed(table, sources)
    return roll


def _span(table: Table, key: str, end_s: float) -> Span:
    if not table.has(key):
        return NO_SPAN
    span = table.span(key, low=0.0)
    if span[1] > end_s:
        raise table.error(key, list(span), f"lies past the end of the move at {end_s:g}")
    return span


def _move(name: str, table: Table, animations: tuple[str, ...], attack: float, sources: dict[str, str]) -> PlayerMove:
    kind = table.text("kind", among=PLAYER_KINDS)
    animation = table.text("animation", among=animations)
    end_s = table.number("end_s", low=0.0, high=LONGEST_S)
    spans: dict[str, Any] = {key: _span(table, key, end_s) for key in SPANS}
    numbers: dict[str, Any] = {
        key: table.number(key, low=0.0, default=default)
        for key, default in (
            ("sp_cost", 0.0), ("regen_from_s", NEVER_S), ("guarded_damage_factor", 1.0),
            ("held_m", 0.0), ("lock_s", NEVER_S),
        )
    }  # fmt: skip
    sp_s = _due_s(table, end_s)
    links: dict[str, Any] = {key: table.text(key, default="") for key in LINKS}
    strikes = tuple(_strike(key, inner, kind, end_s, attack, sources) for key, inner in table.tables("strike"))
    motion = parse_motion(table.table("motion"), sources, MOTION_LISTS) if table.has("motion") else None
    knocked_down = table.flag("knocked_down")
    _closed(table, sources)
    return PlayerMove(
        name, animation, kind, end_s, sp_s=sp_s, **numbers, **spans, **links, knocked_down=knocked_down,
        strikes=strikes, motion=motion,
    )  # fmt: skip


def _due_s(table: Table, end_s: float) -> tuple[float, ...]:
    """When stamina is due: one time, or several at which an equal part of it is."""
    if not table.has("sp_s"):
        return (0.0,)
    if not table.is_list("sp_s"):
        return (table.number("sp_s", low=0.0, high=end_s),)
    times = table.numbers("sp_s", low=0.0, high=end_s)
    if list(times) != sorted(times) or len(times) > MAX_PAYMENTS:
        raise table.error("sp_s", list(times), f"must be at most {MAX_PAYMENTS} times in order")
    return times


def _strike(name: str, table: Table, kind: str, end_s: float, attack: float, sources: dict[str, str]) -> Strike:
    from_s = table.number("from_s", low=0.0)
    to_s = table.number("to_s")
    if not from_s < to_s <= end_s:
        raise table.error("to_s", to_s, f"must come after from_s = {from_s:g} and not past the move's end at {end_s:g}")
    aimed = kind != "riposte"
    strike = Strike(
        name,
        from_s,
        to_s,
        reach_m=table.number("reach_m", low=0.0) if aimed else 0.0,
        arc_deg=table.number("arc_deg", low=0.0, high=180.0) if aimed else 0.0,
        power=_strike_power(table, attack),
        poise=table.number("poise", low=0.0, default=0.0),
    )
    _closed(table, sources)
    return strike


def _strike_power(table: Table, attack: float) -> Power:
    if table.has("damage"):
        if table.has("motion_value"):
            raise table.error("motion_value", table.number("motion_value"), "stands beside damage; give one of them")
        return Power(damage=table.number("damage", low=0.0))
    if not table.has("motion_value"):
        raise table.error("motion_value", None, "is missing; give motion_value and attack_type, or damage")
    share = table.number("motion_value", low=0.01, high=100.0)
    return Power(attack * share, table.text("attack_type", among=ATTACK_TYPES))


def _check_names(table: Table, moves: tuple[PlayerMove, ...], roll: Roll) -> None:
    names = tuple(move.name for move in moves)
    kinds = {move.name: move.kind for move in moves}
    for needed, kind in NEEDED_MOVES.items():
        if needed not in kinds:
            raise table.error(f"move.{needed}", None, "is missing; the rules of the fight start it")
        if kinds[needed] != kind:
            raise table.error(f"move.{needed}.kind", kinds[needed], f"must be {kind!r} for this move")
    links = {f"move.{move.name}.{key}": getattr(move, key) for move in moves for key in LINKS if getattr(move, key)}
    links |= {"roll.on_light": roll.on_light, "roll.on_heavy": roll.on_heavy}
    for where, target in links.items():
        if target not in names:
            raise table.error(where, target, f"is a follow-up that is no move{suggestion(target, names)}")
