"""A character's file: body, walking, camera, rolls, attacks and what being hit does; and the table of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from soulsgym.errors import suggestion
from soulsgym.spec.boss import Angle, Body, FromOne, Motion, MoveTime, check_motion
from soulsgym.spec.damage import Defence, Power, check_defence, check_power
from soulsgym.spec.reader import (
    LARGEST,
    Key,
    Mark,
    NotNegative,
    Number,
    Numbers,
    Share,
    Span,
    Table,
    Words,
)

PlayerKind = Literal["attack", "parry", "riposte", "roll", "reaction", "grabbed"]
PLAYER_KINDS: tuple[str, ...] = get_args(PlayerKind)
NO_SPAN = (-1.0, -1.0)
NO_POWER = Power()
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
MOTION_KEYS = ("forward_m", "right_m", "backward_m")
MAX_PAYMENTS = 2
"""Times within a move at which stamina may be due."""

TurnSpeed = Annotated[float, Meta(ge=0.0, le=60.0)]
"""[rad/s]; at most one radian a tick, about as far as the simulator's turning is exact."""
FourWays = tuple[NotNegative, NotNegative, NotNegative, NotNegative]


@dataclass(frozen=True)
class PlayerAnimation:
    """A label of the player, and when it lets him act again; labels of one group mean the same to an agent."""

    name: str
    attack_s: NotNegative
    roll_s: NotNegative
    move_s: NotNegative
    group: str = ""  # empty: one of its own


@dataclass(frozen=True)
class Strike:
    """When and where a blow of the player lands; those of a riposte land wherever the boss is."""

    name: str
    from_s: NotNegative
    to_s: Number
    reach_m: NotNegative = 0.0
    arc_deg: Angle = 0.0
    power: Annotated[Power, Mark.SAME_TABLE] = NO_POWER
    poise: NotNegative = 0.0
    motion_value: Annotated[float, Meta(ge=0.01, le=100.0)] = 0.0  # share of the weapon's attack


@dataclass(frozen=True, kw_only=True)
class PlayerMove:
    """One animation of the player with its effects."""

    name: str
    animation: str
    kind: PlayerKind
    end_s: MoveTime
    sp_cost: NotNegative = 0.0
    sp_s: Annotated[tuple[NotNegative, ...], Meta(min_length=1), Mark.ONE_OR_MORE] = (0.0,)
    regen_from_s: NotNegative = NEVER_S
    turn_s: Span = NO_SPAN
    invulnerable_s: Span = NO_SPAN
    parry_s: Span = NO_SPAN
    guard_s: Span = NO_SPAN
    guarded_damage_factor: NotNegative = 1.0
    held_m: NotNegative = 0.0
    lock_s: NotNegative = NEVER_S
    knocked_down: bool = False
    on_light: str = ""
    on_heavy: str = ""
    on_roll: str = ""
    on_end: str = ""
    strikes: Annotated[tuple[Strike, ...], Key("strike"), Mark.NAMED] = ()
    motion: Motion | None = None


@dataclass(frozen=True)
class Walk:
    """Walking: metres per step forward, right, backward, left; shares of it at the start; the slide at the end."""

    full_m: FourWays
    first_share: Share
    first_share_back: Share
    after_roll_shares: tuple[Share, Share]
    carry_roll: Share
    carry_into_attack: Share
    turn_rad_per_s: TurnSpeed
    stops_after_steps: NotNegative
    stop_m: FourWays
    stop_tail_m: NotNegative
    stop_s: NotNegative
    linger_s: NotNegative


@dataclass(frozen=True)
class Camera:
    """How the camera follows."""

    pivot_share_per_step: Share
    yaw_share_per_step: Share
    press_share: Share
    distance_m: NotNegative
    height_m: Number
    view_z: Annotated[float, Meta(ge=-1.0, le=1.0)]


@dataclass(frozen=True)
class Roll:
    """The roll in eight directions."""

    animations: tuple[str, str]
    sp_cost: NotNegative
    regen_from_s: NotNegative
    end_s: MoveTime
    invulnerable_s: Span
    settle_s: NotNegative
    turn_s: Span
    turn_rad_per_s: TurnSpeed
    again_within_s: NotNegative
    carry: NotNegative
    carry_roll: NotNegative
    carry_direction_m: NotNegative
    first_forward_m: NotNegative
    first_backward_m: NotNegative
    first_sideways_m: NotNegative
    first_s: Annotated[float, Meta(ge=0.001, le=60.0)]
    step_s: Annotated[float, Meta(ge=0.01, le=60.0)]
    forward_m: Numbers
    right_m: Numbers
    left_m: Numbers
    backward_right_m: Numbers
    backward_left_m: Numbers
    on_light: str
    on_heavy: str
    flinches: bool = True  # a blow is only shown and the roll goes on, instead of ending it


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The clock that labels are counted by."""

    label_s_per_step: Annotated[float, Meta(ge=0.01, le=1.0)]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The player's body."""

    hp: FromOne
    sp: FromOne
    sp_floor: Annotated[float, Meta(ge=-LARGEST, le=0.0)]
    sp_per_s: NotNegative
    sp_delay_ticks: NotNegative
    input_delay_ticks: Annotated[float, Meta(ge=0.0, le=5.0)]
    radius_m: Body
    attributes: Mapping[str, Annotated[int, Meta(ge=1, le=999)]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Weapon:
    """What the player hits with."""

    attack: FromOne


@dataclass(frozen=True, kw_only=True)
class Status:
    """What builds up in the player, and what it does to him once it is as much as he resists."""

    name: str
    resistance: FromOne
    points_per_s: NotNegative  # that it goes down by itself
    lasts_s: NotNegative
    hp_share: Share  # of full health, lost at once
    damage_taken_factor: FromOne
    sp_per_s_lost: NotNegative  # of the recovery of stamina


@dataclass(frozen=True, kw_only=True)
class Flinch:
    """Labels of a blow that does not throw the player off balance."""

    flinch_animations: Annotated[tuple[str, str, str, str], Key("animations")]
    flinch_s: Annotated[NotNegative, Key("label_s")]
    flinch_after_animation: Annotated[str, Key("after_animation")]
    flinch_after_s: Annotated[NotNegative, Key("after_s")]


@dataclass(frozen=True, kw_only=True)
class Fall:
    """Labels of a fall."""

    fall_animations: Annotated[tuple[str, str], Key("animations")]
    fall_loop_from_s: Annotated[NotNegative, Key("loop_from_s")]


@dataclass(frozen=True, kw_only=True)
class CharacterFile:
    """A character as the file has it."""

    name: str
    clock: Clock
    body: Frame
    weapon: Weapon
    defence: Defence
    walk: Walk
    camera: Camera
    roll: Roll
    flinch: Flinch
    fall: Fall
    statuses: Annotated[tuple[Status, ...], Key("status"), Mark.NAMED] = ()
    moves: Annotated[tuple[PlayerMove, ...], Key("move"), Mark.NAMED] = ()


@dataclass(frozen=True, kw_only=True)
class Player(Clock, Frame, Weapon, Flinch, Fall):
    """Everything a character's file says."""

    name: str
    defence: Defence
    walk: Walk
    camera: Camera
    roll: Roll
    moves: tuple[PlayerMove, ...]
    statuses: tuple[Status, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class PlayerLabels:
    """The player's part of the table of labels."""

    animations: tuple[PlayerAnimation, ...]


@dataclass(frozen=True)
class BossLabels:
    """A boss's part of the table of labels."""

    animations: Words


@dataclass(frozen=True)
class LabelFile:
    """The table of labels, but for the groups of the bosses."""

    player: Annotated[PlayerLabels, Mark.COVERED]
    boss: Any = None


def parse_animations(
    file: Path, content: dict[str, Any], boss: str, sources: dict[str, str] | None = None
) -> tuple[tuple[PlayerAnimation, ...], tuple[str, ...]]:
    """The player's animation table and the labels of one boss, in the order of their ids; fills `sources` if given."""
    table = Table(file, "", content)
    player = table.read(LabelFile, sources).player.animations
    groups = dict(table.tables("boss"))
    if boss not in groups:
        raise table.error(f"boss.{boss}", None, f"is missing{suggestion(boss, groups)}")
    labels = groups[boss].read(BossLabels).animations
    _check_labels(table.table("player"), tuple(label.name for label in player))
    _check_once(groups[boss], labels)
    return player, labels


def _check_labels(table: Table, names: tuple[str, ...]) -> None:
    _check_once(table, names)
    for needed in NEEDED_LABELS:
        if needed not in names:
            raise table.error("animations", None, f"lacks {needed!r}, which the rules of walking show")
    stops = NEEDED_LABELS[2:]
    first = names.index(stops[0])
    if names[first : first + len(stops)] != stops:
        raise table.error("animations", names[first : first + len(stops)], f"must be {', '.join(stops)} in a row")


def _check_once(table: Table, names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise table.error("animations", name, "is there twice; the position of a label is its id")


def parse_player(file: Path, content: dict[str, Any], animations: tuple[str, ...]) -> Player:
    """Check the content of a character's file; `animations` are the player's known labels."""
    sources: dict[str, str] = {}
    table = Table(file, "", content)
    read = table.read(CharacterFile, sources)
    check_defence(table.table("defence"), read.defence)
    _check_roll(table.table("roll"), read.roll, animations)
    for key, labels in (("flinch", read.flinch.flinch_animations), ("fall", read.fall.fall_animations)):
        for label in labels:
            table.table(key).check_known("animations", label, animations)
    table.table("flinch").check_known("after_animation", read.flinch.flinch_after_animation, animations)
    for move, (_, inner) in zip(read.moves, table.tables("move"), strict=True):
        _check_move(inner, move, animations)
    _check_names(table, read.moves, read.roll)
    return Player(
        name=read.name, defence=read.defence, walk=read.walk, camera=read.camera, roll=read.roll,
        moves=tuple(_armed(move, read.weapon.attack) for move in read.moves), statuses=read.statuses, sources=sources,
        **vars(read.clock), **vars(read.body), **vars(read.weapon), **vars(read.flinch), **vars(read.fall),
    )  # fmt: skip


def _armed(move: PlayerMove, attack: float) -> PlayerMove:
    """The move with the power that the weapon gives to its blows."""
    strikes = (
        replace(strike, power=Power(attack * strike.motion_value, strike.power.attack_type))
        if strike.motion_value
        else strike
        for strike in move.strikes
    )
    return replace(move, strikes=tuple(strikes))


def _check_roll(table: Table, roll: Roll, animations: tuple[str, ...]) -> None:
    for label in roll.animations:
        table.check_known("animations", label, animations)
    profiles = (roll.forward_m, roll.right_m, roll.left_m, roll.backward_right_m, roll.backward_left_m)
    if len({len(profile) for profile in profiles}) > 1:
        raise table.error("forward_m", roll.forward_m, "must be as long as the other directions of the roll")


def _check_move(table: Table, move: PlayerMove, animations: tuple[str, ...]) -> None:
    table.check_known("animation", move.animation, animations)
    for key in SPANS:
        span = getattr(move, key)
        if span[1] > move.end_s:
            raise table.error(key, span, f"lies past the end of the move at {move.end_s:g}")
    for time_s in move.sp_s:
        table.check_at_most("sp_s", time_s, move.end_s)
    if list(move.sp_s) != sorted(move.sp_s) or len(move.sp_s) > MAX_PAYMENTS:
        raise table.error("sp_s", move.sp_s, f"must be at most {MAX_PAYMENTS} times in order")
    if move.motion is not None:
        check_motion(table.table("motion"), move.motion, MOTION_KEYS)
    for strike, (_, inner) in zip(move.strikes, table.tables("strike"), strict=True):
        _check_strike(inner, strike, move)


def _check_strike(table: Table, strike: Strike, move: PlayerMove) -> None:
    from_s, to_s, end_s = strike.from_s, strike.to_s, move.end_s
    if not from_s < to_s <= end_s:
        raise table.error("to_s", to_s, f"must come after from_s = {from_s:g} and not past the move's end at {end_s:g}")
    for key in ("reach_m", "arc_deg"):
        if move.kind == "riposte" and key in table.content:
            raise table.error(key, table.content[key], "means nothing for a riposte, which lands wherever the boss is")
        if move.kind != "riposte" and key not in table.content:
            raise table.missing(key, "a number")
    check_power(table, "motion_value")


def _check_names(table: Table, moves: tuple[PlayerMove, ...], roll: Roll) -> None:
    kinds = {move.name: move.kind for move in moves}
    for needed, kind in NEEDED_MOVES.items():
        if needed not in kinds:
            raise table.error(f"move.{needed}", None, "is missing; the rules of the fight start it")
        if kinds[needed] != kind:
            raise table.error(f"move.{needed}.kind", kinds[needed], f"must be {kind!r} for this move")
    links = {f"move.{move.name}.{key}": getattr(move, key) for move in moves for key in LINKS if getattr(move, key)}
    links |= {"roll.on_light": roll.on_light, "roll.on_heavy": roll.on_heavy}
    for where, target in links.items():
        if target not in kinds:
            raise table.error(where, target, f"is a follow-up but not a move{suggestion(target, kinds)}")
