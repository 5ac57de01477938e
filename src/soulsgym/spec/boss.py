"""A boss file: moves with their motion, turning and blows, and the decisions between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from soulsgym.errors import suggestion
from soulsgym.spec.damage import Defence, Power, check_defence, check_power
from soulsgym.spec.game import GameTable, check_game
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

MoveKind = Literal[
    "attack", "hop", "idle", "walk", "retreat", "strafe", "turn", "transform", "open", "parried", "executed"
]
MOVE_KINDS: tuple[str, ...] = get_args(MoveKind)
HitShape = Literal["sector", "thrust", "disc", "shot"]
HIT_SHAPES: tuple[str, ...] = get_args(HitShape)
SIMULATED_TABLES = frozenset({"opened", "defence", "randomize", "draw", "known", "move", "phase"})
"""Tables of a boss's file that only the simulator reads."""
TURN = "turn"
"""The act that turns on the spot; every other act is the move it begins with."""
HALF_TURN_DEG, FULL_CIRCLE_DEG = 180.0, 360.0
LONGEST_S = 60.0
"""The longest move; each is sampled tick by tick."""
LARGEST_BODY_M = 10.0
WIDEST_SHARE = 0.45
"""At twice this a number is still drawn above 0."""
FASTEST_TURN_DEG_PER_S = 3600.0
"""One radian a tick, about as far as the simulator's turning is exact."""
NEVER_S = 1e6
"""A time that never comes."""
ANYWHERE_M = 1e6
"""A distance that sets no limit."""
ALL_ROUND_DEG = (-HALF_TURN_DEG, HALF_TURN_DEG)
EVERY_GAP_M = (0.0, ANYWHERE_M)

FromOne = Annotated[float, Meta(ge=1.0, le=LARGEST)]
FromTenth = Annotated[float, Meta(ge=0.1, le=LARGEST)]
MoveTime = Annotated[float, Meta(ge=0.0, le=LONGEST_S)]
Body = Annotated[float, Meta(ge=0.0, le=LARGEST_BODY_M)]
Angle = Annotated[float, Meta(ge=0.0, le=HALF_TURN_DEG)]
TurnSpeed = Annotated[float, Meta(ge=0.0, le=FASTEST_TURN_DEG_PER_S)]
Side = Annotated[float, Meta(ge=-HALF_TURN_DEG, le=HALF_TURN_DEG)]
Bearing = Annotated[tuple[Side, Side], Mark.IN_ORDER]
WideSide = Annotated[float, Meta(ge=-FULL_CIRCLE_DEG, le=FULL_CIRCLE_DEG)]
DrawnShare = Annotated[float, Meta(ge=0.0, le=WIDEST_SHARE)]
RandomShare = Annotated[float, Meta(ge=0.0, le=0.9)]


@dataclass(frozen=True)
class Motion:
    """Root motion in the body's own frame: metres moved within each stretch of `step_s`.

    `backward_m` takes the place of `forward_m` in a roll of the player that leads backwards.
    """

    first_s: Annotated[float, Meta(ge=0.001, le=LONGEST_S)]
    step_s: Annotated[float, Meta(ge=0.01, le=LONGEST_S)]
    forward_m: Numbers = ()
    right_m: Numbers = ()
    chase_share: Annotated[tuple[Annotated[float, Meta(ge=0.0, lt=1.0)], ...], Meta(min_length=1)] = ()
    backward_m: Numbers = ()
    loop_from_s: Number | None = None


@dataclass(frozen=True)
class Track:
    """A stretch of a move in which the boss turns towards the player."""

    from_s: NotNegative
    to_s: Number
    deg_per_s: TurnSpeed


@dataclass(frozen=True)
class Stretch:
    """A part of a move whose forward motion depends on how far away the player is when it begins.

    The motion of the file is multiplied by the distance to a point `arrive_m` before the player, kept within `range_m`
    and divided by `reference_m`.
    """

    from_s: NotNegative
    to_s: Number
    arrive_m: NotNegative
    range_m: Span
    reference_m: FromTenth


@dataclass(frozen=True)
class Throw:
    """Damage to a player who is held."""

    at_s: NotNegative
    power: Annotated[Power, Mark.SAME_TABLE]


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One blow: when it is dangerous, where, and what it does."""

    name: str
    from_s: NotNegative
    to_s: Number
    shape: HitShape
    reach_m: NotNegative
    inner_m: NotNegative = 0.0
    half_width_m: NotNegative = 0.0
    arc_deg: tuple[WideSide, WideSide] = (0.0, 0.0)
    sweep: bool = False
    blade_deg: Angle = 0.0
    offset_m: Number = 0.0
    speed_m_per_s: FromTenth = 0.0
    radius_m: Body = 0.0
    homing_deg: Angle = 0.0
    power: Annotated[Power, Mark.SAME_TABLE]
    guard_stamina: NotNegative
    status: Mapping[str, NotNegative] = field(default_factory=dict)  # points that it builds up, by status
    reaction: str
    push_m: NotNegative = 0.0
    parriable: bool = False


@dataclass(frozen=True, kw_only=True)
class BossMove:
    """One animation of the boss."""

    name: str
    animation: str
    kind: MoveKind = "attack"
    link_s: NotNegative = -1.0
    label_end_s: NotNegative
    end_s: MoveTime
    blend_s: NotNegative = 0.0
    hop_s: NotNegative = NEVER_S
    count: NotNegative = 0.0
    motion: Motion | None = None
    tracks: Annotated[tuple[Track, ...], Key("track"), Mark.NAMED] = ()
    stretches: Annotated[tuple[Stretch, ...], Key("stretch"), Mark.NAMED] = ()
    hits: Annotated[tuple[Hit, ...], Key("hit"), Mark.NAMED] = ()
    grab_move: str = ""
    throws: Annotated[tuple[Throw, ...], Key("throw"), Mark.NAMED] = ()


@dataclass(frozen=True)
class Link:
    """The next move of a chain, and where the player must be for it."""

    move: str
    within_m: NotNegative
    bearing_deg: Bearing = ALL_ROUND_DEG


@dataclass(frozen=True)
class Chain:
    """What may follow the first move of an act."""

    weight: NotNegative
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Run:
    """When an approach is run: from `from_m` on with a chance, from `always_from_m` on always, up to `approach_m`."""

    from_m: NotNegative
    chance: Share
    always_from_m: NotNegative = ANYWHERE_M
    approach_m: NotNegative


@dataclass(frozen=True, kw_only=True)
class Act:
    """A choice of the decision table: walk or run up, then a chain of moves that begins with that of its name.

    After a hop one of the acts in `then` may follow at once, unless the player is more than `then_within_deg` round.
    An act that begins with walking or circling goes on for a time drawn from `lasts_s`, or until within `until_m`.
    """

    name: str
    move: str = ""  # that it begins with, if it is called otherwise
    approach_m: NotNegative = ANYWHERE_M
    approach_s: NotNegative = 0.0
    gives_up: bool = False
    run: Annotated[Run | None, Mark.COVERED] = None
    cooldown_s: NotNegative
    cooling_weight: NotNegative = 1.0
    lasts_s: Span = (0.0, 0.0)
    until_m: NotNegative = 0.0
    after_odds: Share
    room_m: NotNegative = 0.0
    chains: Annotated[tuple[Chain, ...], Mark.COVERED] = (Chain(1.0),)
    then: Mapping[str, NotNegative] = field(default_factory=dict)
    then_within_deg: Angle = HALF_TURN_DEG

    @property
    def first_move(self) -> str:
        """The move that it begins with."""
        return self.move or self.name


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Weights of the acts for a region around the boss; with `every_s` it fits again only after that time.

    It may ask for one of the moves in `after` to have been the last, for a count, and for an act that has cooled down.
    Rules of one `timer` wait together: when one of them has decided, none fits before its time.
    """

    bearing_deg: Bearing = ALL_ROUND_DEG
    beyond_deg: Angle = 0.0
    gap_m: Span = EVERY_GAP_M
    every_s: FromTenth = 0.0
    after: Words = ()
    count_over: NotNegative = -1.0
    ready: str = ""
    timer: str = ""
    weights: Mapping[str, NotNegative]


@dataclass(frozen=True)
class Retreat:
    """The chance, at a gap, that the boss only backs off after an attack, and for how long."""

    gap_m: Span
    chance: Share
    lasts_s: Span


@dataclass(frozen=True, kw_only=True)
class After:
    """What the boss does after an attack: back off a little, then go sideways, or only retreat."""

    front_deg: Angle = HALF_TURN_DEG
    within_gap_m: NotNegative = ANYWHERE_M
    back_off_m: NotNegative = 0.0
    back_off_s: NotNegative = 0.0
    near_gap_m: NotNegative
    near_s: Span
    far_s: Span
    retreats: Annotated[tuple[Retreat, ...], Mark.COVERED] = ()


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """A moment of some moves in which the boss may drop what he does for an act or a move.

    It asks for the player to be in the region. With `to_s` the moment lasts until then: he waits for him to come there.
    """

    moves: Words
    at_s: NotNegative
    to_s: NotNegative = -1.0
    bearing_deg: Bearing = ALL_ROUND_DEG
    gap_m: Span = EVERY_GAP_M
    chance: Share = 1.0
    standing: bool = False
    cooled: bool = False
    act: str = ""
    move: str = ""


@dataclass(frozen=True, kw_only=True)
class Aura:
    """A status that builds up in a player who is near."""

    status: str
    within_m: NotNegative
    points_per_s: NotNegative


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase's decisions."""

    changes_at_hp_share: Share = 0.0
    change_move: str = ""
    first_approach_m: NotNegative
    first_approach_s: Span
    down_approach_weight: NotNegative
    after: After
    aura: Aura | None = None
    rules: Annotated[tuple[Rule, ...], Key("rule")] = ()
    acts: Annotated[tuple[Act, ...], Key("act"), Mark.NAMED] = ()
    interrupts: Annotated[tuple[Interrupt, ...], Key("interrupt")] = ()


@dataclass(frozen=True)
class Randomize:
    """Bounds of the domain randomisation at strength 1."""

    timing: RandomShare
    hit_shift_s: Share
    reach: RandomShare
    damage: RandomShare
    speed: RandomShare
    input_delay_ticks: Annotated[float, Meta(ge=0.0, le=30.0)]
    dropped_inputs: Share
    position_noise_m: Share
    heading_noise_rad: Share
    duration_noise_s: Share


@dataclass(frozen=True)
class DrawBounds:
    """How far a drawn variant may be from the boss's guesses at strength 1: shares, but for what says otherwise."""

    hit_shift_s: Share
    reach: DrawnShare
    arc: DrawnShare
    damage: DrawnShare
    motion: DrawnShare
    tracking: DrawnShare
    weight: Annotated[float, Meta(ge=1.0, le=10.0)]  # a factor, up or down
    approach: DrawnShare
    after: DrawnShare
    recovery: DrawnShare


@dataclass(frozen=True, kw_only=True)
class Health:
    """What of a boss's body the running game needs, too."""

    hp: FromOne


@dataclass(frozen=True, kw_only=True)
class Frame(Health):
    """A boss's body."""

    poise: FromOne
    poise_recovery_s: FromTenth
    radius_m: Body
    least_distance_m: Body
    turn_deg_per_s: TurnSpeed
    turn_animation_beyond_deg: Angle
    turn_around_beyond_deg: Angle
    contact_drag: Share
    contact_push: Share = 0.0
    bulk_m: Body = 0.0


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A boss whose poise is broken, or who was parried."""

    damage_taken_factor: FromOne
    riposte_within_m: NotNegative
    riposte_facing_deg: Angle
    parries: Annotated[int, Meta(ge=1, le=100)] = 1  # that it takes


@dataclass(frozen=True, kw_only=True)
class Head:
    """What a boss's file begins with."""

    name: str
    title: str
    character: str
    animations: str
    arena: str


@dataclass(frozen=True, kw_only=True)
class BossFile(Head):
    """A boss's file but for his moves and phases, which are read one by one."""

    body: Frame
    opened: Opened
    defence: Defence
    randomize: Randomize
    draw: DrawBounds | None = None
    known: Any = None
    game: GameTable | None = None
    move: Any = None
    phase: Any = None


@dataclass(frozen=True, kw_only=True)
class GameBossFile(Head):
    """The file of a boss whose moves nobody has described."""

    body: Health
    game: GameTable


@dataclass(frozen=True, kw_only=True)
class Boss(Head, Frame, Opened):
    """Everything a boss file says; of one whose moves nobody has described only the head, health and `game` count."""

    defence: Defence
    randomize: Randomize
    draw: DrawBounds | None = None
    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By key, the interval in which a measured number lies; a drawn variant moves it within."""
    game: GameTable | None = None
    moves: tuple[BossMove, ...] = ()
    phases: tuple[Phase, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def move_index(self, name: str) -> int:
        """The position of a move in `moves`."""
        return [move.name for move in self.moves].index(name)


def has_moves(content: Mapping[str, object]) -> bool:
    """Does a boss's file describe more of him than how he is fought in the running game?"""
    return "game" not in content or not SIMULATED_TABLES.isdisjoint(content)


def parse_boss(file: Path, content: dict[str, Any], animations: tuple[str, ...], reactions: tuple[str, ...]) -> Boss:
    """Check the content of a boss file; `animations` are the boss's known labels, `reactions` the player's."""
    sources: dict[str, str] = {}
    table = Table(file, "", content)
    if not has_moves(content):
        return _game_boss(table, sources)
    read = table.read(BossFile, sources)
    check_defence(table.table("defence"), read.defence)
    moves = tuple(inner.read(BossMove, sources, name=name) for name, inner in table.tables("move"))
    for move, (_, inner) in zip(moves, table.tables("move"), strict=True):
        _check_move(inner, move, animations, reactions)
    _check_moves(table, moves)
    phases = _phases(table, moves, sources)
    if read.game is not None:
        check_game(table.table("game"), read.game, len(phases))
    values = {
        key: value for key, value in vars(read).items() if key not in ("body", "opened", "known", "move", "phase")
    }
    return Boss(**values, **vars(read.body), **vars(read.opened), moves=moves, phases=phases,
                known=_known(table, content), sources=sources)  # fmt: skip


def _known(table: Table, content: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """The intervals of measured numbers, each beside how often it was seen: `key = [n, low, high]`."""
    if "known" not in content:
        return {}
    inner, found = table.table("known"), {}
    for key, row in inner.content.items():
        number: Any = content
        for part in key.split("."):
            number = number.get(part) if isinstance(number, Mapping) else None
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise inner.error(key, row, "names no number of this file")
        is_row = isinstance(row, list) and len(row) == 3
        if not is_row or not all(isinstance(one, (int, float)) and math.isfinite(one) for one in row):
            raise inner.error(
                key, row, "must be a list of 3 numbers: how often it was seen, its lowest and its highest"
            )
        if not row[1] <= number <= row[2]:
            raise inner.error(key, row, f"does not hold {number:g}, which the file says")
        found[key] = (float(row[1]), float(row[2]))
    return found


def _game_boss(table: Table, sources: dict[str, str]) -> Boss:
    read = table.read(GameBossFile, sources)
    check_game(table.table("game"), read.game, 0)
    values = {key: value for key, value in vars(read).items() if key != "body"}
    unknown = dict.fromkeys((one.name for one in (*fields(Frame), *fields(Opened))), 0.0)
    nothing = Randomize(**dict.fromkeys((one.name for one in fields(Randomize)), 0.0))
    return Boss(**values, **unknown | vars(read.body), defence=Defence(1.0, {}), randomize=nothing, sources=sources)


def check_motion(table: Table, motion: Motion, keys: tuple[str, ...]) -> None:
    """Refuse a motion of a boss's or a player's move that cannot be; `keys` are what it may hold beside its times."""
    for key in table.content:
        if key not in ("first_s", "step_s", "source", *keys):
            raise table.unknown(key, ("first_s", "step_s", *keys))
    lists = {key: getattr(motion, key) for key in keys if key != "loop_from_s"}
    if not any(lists.values()):
        raise table.missing("forward_m", f"one or more of {', '.join(lists)}")
    loop_from_s = motion.loop_from_s
    if loop_from_s is None:
        return
    if motion.chase_share:
        raise table.error("loop_from_s", loop_from_s, "does not go with chase_share; a chase ends")
    lengths = {len(values) for values in lists.values() if values}
    if len(lengths) > 1:
        raise table.error("loop_from_s", loop_from_s, "needs lists of the same length")
    first_s, end_s = motion.first_s, motion.first_s + motion.step_s * (max(lengths) - 1)
    if not first_s <= loop_from_s <= end_s - motion.step_s / 2.0:
        raise table.error(
            "loop_from_s", loop_from_s, f"must lie from first_s = {first_s:g} to before the motion's end at {end_s:g}"
        )


MOTION_KEYS = ("forward_m", "right_m", "chase_share", "loop_from_s")


def _check_move(table: Table, move: BossMove, animations: tuple[str, ...], reactions: tuple[str, ...]) -> None:
    if move.kind != "transform":  # the change of phase plays an animation that the observation shows as unknown
        table.check_known("animation", move.animation, animations)
    table.check_at_most("label_end_s", move.label_end_s, move.end_s)
    table.check_at_most("link_s", move.link_s, move.label_end_s)
    if "hop_s" in table.content:
        table.check_at_most("hop_s", move.hop_s, move.label_end_s)
    if move.motion is not None:
        check_motion(table.table("motion"), move.motion, MOTION_KEYS)
    windows: tuple[Track | Stretch | Hit, ...] = (*move.tracks, *move.stretches, *move.hits)
    tables = (inner for key in ("track", "stretch", "hit") for _, inner in table.tables(key))
    for window, inner in zip(windows, tables, strict=True):
        _check_window(inner, window.from_s, window.to_s, move.end_s)
    for throw, (_, inner) in zip(move.throws, table.tables("throw"), strict=True):
        inner.check_at_most("at_s", throw.at_s, move.end_s)
        check_power(inner, "attack")
    for hit, (_, inner) in zip(move.hits, table.tables("hit"), strict=True):
        _check_hit(inner, hit, reactions)
    if move.stretches and (move.motion is None or not move.motion.forward_m):
        raise table.error("stretch", len(move.stretches), "has no forward_m to scale; give the move a motion")
    for before, after in pairwise(move.stretches):
        if after.from_s < before.to_s:
            raise table.error(
                "stretch", after.from_s, f"must not begin before the one before it ends at {before.to_s:g}"
            )
    if move.kind == "hop" and (move.hits or move.throws or move.motion is None):
        raise table.error("kind", move.kind, "is for moves with a motion and without blows; make it an 'attack'")


def _check_window(table: Table, from_s: float, to_s: float, end_s: float) -> None:
    if to_s > end_s:
        raise table.error("to_s", to_s, f"lies past the end of the move at {end_s:g}")
    if to_s <= from_s:
        raise table.error("to_s", to_s, f"must come after from_s = {from_s:g}")


SHAPE_KEYS = {
    "inner_m": ("sector", "thrust"), "half_width_m": ("thrust",), "offset_m": ("disc",),
    "arc_deg": ("sector",), "sweep": ("sector",), "blade_deg": ("sector",),
    "speed_m_per_s": ("shot",), "radius_m": ("shot",), "homing_deg": ("shot",),
}  # fmt: skip
"""Keys of a blow that only some shapes have."""


def _check_hit(table: Table, hit: Hit, reactions: tuple[str, ...]) -> None:
    given = table.content
    for key, shapes in SHAPE_KEYS.items():
        if hit.shape not in shapes and key in given:
            raise table.error(key, given[key], f"means nothing for a {hit.shape}; only for {' and '.join(shapes)}")
    if hit.shape == "thrust" and "half_width_m" not in given:
        raise table.missing("half_width_m", "a number")
    if hit.shape == "sector" and "arc_deg" not in given:
        raise table.missing("arc_deg", "a list of numbers")
    for key in ("speed_m_per_s", "radius_m"):
        if hit.shape == "shot" and key not in given:
            raise table.missing(key, "a number")
    if hit.shape == "shot" and hit.parriable:
        raise table.error("parriable", hit.parriable, "has no effect on a projectile, which cannot be parried")
    if hit.sweep and "blade_deg" not in given:
        raise table.missing("blade_deg", "a number")
    if "blade_deg" in given and not hit.sweep:
        raise table.error("blade_deg", hit.blade_deg, "means nothing for a blow that does not sweep")
    table.check_at_most("inner_m", hit.inner_m, hit.reach_m)
    if not hit.sweep:
        for side in hit.arc_deg:
            table.check_at_most("arc_deg", side, HALF_TURN_DEG)
            if side < -HALF_TURN_DEG:
                raise table.error("arc_deg", side, f"must be at least {-HALF_TURN_DEG:g}")
        if hit.arc_deg[0] > hit.arc_deg[1]:
            raise table.error("arc_deg", hit.arc_deg, "must not begin above its end unless it sweeps")
    check_power(table, "attack")
    table.check_known("reaction", hit.reaction, reactions)


NEEDED_MOVES = {
    "idle": "idle", "walk": "walk", "strafe_left": "strafe", "strafe_right": "strafe",
    "turn_left": "turn", "turn_right": "turn", "turn_left_around": "turn", "turn_right_around": "turn",
    "stagger": "open", "parried": "parried", "executed": "executed",
}  # fmt: skip
"""Moves every boss has, by name and kind, because the rules of the fight start them."""
OPTIONAL_MOVES = {"walk_back": "retreat", "run": "walk"}
"""Moves that are started by name where a phase asks for them."""


def _check_moves(table: Table, moves: tuple[BossMove, ...]) -> None:
    kinds = {move.name: move.kind for move in moves}
    for needed in NEEDED_MOVES:
        if needed not in kinds:
            raise table.error(f"move.{needed}", None, "is missing; every boss needs it")
    for name, kind in (NEEDED_MOVES | OPTIONAL_MOVES).items():
        if kinds.get(name, kind) != kind:
            raise table.error(f"move.{name}.kind", kinds[name], f"must be {kind!r} for this move")
    for move in moves:
        if move.grab_move and kinds.get(move.grab_move) != "attack":
            near = suggestion(move.grab_move, _attacks(moves))
            raise table.error(f"move.{move.name}.grab_move", move.grab_move, f"is not a move of kind 'attack'{near}")


BEGINNING_KINDS = ("attack", "hop", "walk", "strafe")
"""Kinds of moves that an act may begin with."""
LASTING_KINDS = ("walk", "strafe")
"""Those of them that go on for as long as the act says."""


def _attacks(moves: tuple[BossMove, ...]) -> tuple[str, ...]:
    return tuple(move.name for move in moves if move.kind == "attack")


def _phases(table: Table, moves: tuple[BossMove, ...], sources: dict[str, str]) -> tuple[Phase, ...]:
    phases: list[Phase] = []
    beginnings = tuple(move.name for move in moves if move.kind in BEGINNING_KINDS and move.name != TURN)
    for number, (name, inner) in enumerate(table.tables("phase"), start=1):
        if name != str(number):
            raise table.error(f"phase.{name}", name, f"must be phase {number}")
        for act, row in inner.tables("act"):
            key, move = ("move", row.text("move")) if "move" in row.content else ("", act)
            if move not in beginnings or act == TURN:
                kinds = " or ".join(repr(kind) for kind in BEGINNING_KINDS)
                raise row.error(key, move, f"is not a move of kind {kinds}{suggestion(move, beginnings)}")
        phases.append(inner.read(Phase, sources))
        _check_phase(inner, phases[-1], moves)
    if not phases:
        raise table.error("phase", None, "is missing; a boss needs at least phase 1")
    last = phases[-1].change_move
    if last:
        raise table.error(f"phase.{len(phases)}.change_move", last, "leads to a phase that is not there")
    return tuple(phases)


def _check_phase(table: Table, phase: Phase, moves: tuple[BossMove, ...]) -> None:
    _check_change(table, phase, moves)
    _check_after(table.table("after"), phase.after, tuple(move.name for move in moves))
    acts = tuple(act.name for act in phase.acts)
    for act, (_, inner) in zip(phase.acts, table.tables("act"), strict=True):
        _check_act(inner, act, moves, acts)
    if not phase.rules:
        raise table.error("rule", None, "is missing; give at least one")
    waits: dict[str, float] = {}
    for rule, inner in zip(phase.rules, table.rows("rule"), strict=True):
        if rule.timer and rule.every_s != waits.setdefault(rule.timer, rule.every_s or -1.0):
            raise inner.error("timer", rule.timer, "needs every_s, and the same for all rules that share it")
        _check_weights(inner, "weights", rule.weights, (*acts, TURN))
        if rule.ready:
            inner.check_known("ready", rule.ready, acts)
        for name in rule.after:
            inner.check_known("after", name, tuple(move.name for move in moves))
    for interrupt, inner in zip(phase.interrupts, table.rows("interrupt"), strict=True):
        _check_interrupt(inner, interrupt, acts, moves)
        for name in interrupt.moves:
            inner.check_known("moves", name, _attacks(moves))
        for move in moves:
            for key in ("at_s", "to_s"):
                if move.name in interrupt.moves and getattr(interrupt, key) > move.end_s:
                    past = f"lies past the end of {move.name!r} at {move.end_s:g}"
                    raise inner.error(key, getattr(interrupt, key), past)


def _check_interrupt(table: Table, interrupt: Interrupt, acts: tuple[str, ...], moves: tuple[BossMove, ...]) -> None:
    if "act" in table.content and "move" in table.content:
        raise table.error("move", interrupt.move, "stands beside act; give one of them")
    if "move" in table.content:
        table.check_known("move", interrupt.move, _attacks(moves))
    else:
        table.check_known("act", table.text("act"), acts)
        kind = next(move.kind for move in moves if move.name == interrupt.act)
        if kind in LASTING_KINDS:
            raise table.error("act", interrupt.act, f"begins with a {kind}, which no attack is dropped for")
    if interrupt.cooled and not interrupt.act:
        raise table.error("cooled", interrupt.cooled, "is for an act; a move has no cooldown")
    if "to_s" in table.content and interrupt.to_s <= interrupt.at_s:
        raise table.error("to_s", interrupt.to_s, f"must come after at_s = {interrupt.at_s:g}")
    if "to_s" in table.content and "chance" in table.content:
        raise table.error("chance", interrupt.chance, "is for a moment; one that lasts until to_s is always taken")


def _check_change(table: Table, phase: Phase, moves: tuple[BossMove, ...]) -> None:
    if phase.changes_at_hp_share == 0.0 and "change_move" not in table.content:
        return
    name = table.text("change_move")
    kinds = {move.name: move.kind for move in moves}
    table.check_known("change_move", name, tuple(kinds))
    if kinds[name] != "transform":
        raise table.error("change_move", name, f"is of kind {kinds[name]!r}; it must be a 'transform'")
    if phase.changes_at_hp_share == 0.0:
        raise table.error("change_move", name, "never happens; give changes_at_hp_share above 0")


def _check_after(table: Table, after: After, moves: tuple[str, ...]) -> None:
    for key, other in (("back_off_m", "back_off_s"), ("back_off_s", "back_off_m")):
        if getattr(after, key) > 0.0 and getattr(after, other) == 0.0:
            raise table.error(key, getattr(after, key), f"has no effect alone; give {other} above 0 too")
    if "walk_back" not in moves:
        for key, value in (("back_off_s", after.back_off_s), ("retreats", len(after.retreats))):
            if value:
                raise table.error(key, value, "needs a move called 'walk_back' of kind 'retreat'")


def _check_act(table: Table, act: Act, moves: tuple[BossMove, ...], acts: tuple[str, ...]) -> None:
    kinds = {move.name: move.kind for move in moves}
    for index, chain in enumerate(act.chains):
        before = act.first_move
        for number, link in enumerate(chain.links):
            where = f"chains[{index}].links[{number}].move"
            if kinds.get(link.move) != "attack":
                near = suggestion(link.move, _attacks(moves))
                raise table.error(where, link.move, f"is a follow-up but not an attack{near}")
            if next(move.link_s for move in moves if move.name == before) < 0.0:
                raise table.error(where, link.move, f"cannot follow {before!r}, which has no link_s")
            before = link.move
    if not any(chain.weight for chain in act.chains):
        weights = [chain.weight for chain in act.chains]
        raise table.error("chains", weights, "must hold at least one weight above 0")
    for key in ("lasts_s", "until_m"):
        if key in table.content and kinds[act.first_move] not in LASTING_KINDS:
            wrong = f"is for acts that walk or circle; {act.name!r} is of kind {kinds[act.first_move]!r}"
            raise table.error(key, table.content[key], wrong)
    if kinds[act.first_move] in LASTING_KINDS and "lasts_s" not in table.content:
        raise table.missing("lasts_s", "two numbers to draw from")
    for key, value in (("then", list(act.then)), ("room_m", act.room_m)):
        if value and kinds[act.first_move] != "hop":
            kind = kinds[act.first_move]
            raise table.error(key, value, f"is for hops; {act.first_move!r} is of kind {kind!r}")
    if "then" in table.content:
        _check_weights(table, "then", act.then, acts)
    if act.run is not None:
        if act.run.always_from_m < act.run.from_m:
            raise table.error("run.always_from_m", act.run.always_from_m, f"must be at least {act.run.from_m:g}")
        if "run" not in kinds:
            raise table.error("run", act.run.approach_m, "needs a move called 'run' of kind 'walk'")


def _check_weights(table: Table, key: str, weights: Mapping[str, float], acts: tuple[str, ...]) -> None:
    for name in weights:
        if name not in acts:
            raise table.error(f"{key}.{name}", name, f"is not an act of this phase{suggestion(name, acts)}")
    if not any(weights.values()):
        raise table.error(key, dict(weights), "must hold at least one weight above 0")
