"""A boss file: moves with their motion, turning and blows, and the decisions between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from soulsgym.errors import suggestion
from soulsgym.spec.damage import Defence, Power, parse_defence, parse_power
from soulsgym.spec.game import GameTable, parse_game
from soulsgym.spec.reader import Table

MOVE_KINDS = (
    "attack",
    "hop",
    "idle",
    "walk",
    "retreat",
    "strafe",
    "turn",
    "transform",
    "open",
    "parried",
    "executed",
)
SIMULATED_TABLES = frozenset({"opened", "defence", "randomize", "draw", "move", "phase"})
"""Tables of a boss's file that only the simulator reads."""
HIT_SHAPES = ("sector", "thrust", "disc")
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
ANYWHERE_M = 1e6
"""A distance that sets no limit."""
Span = tuple[float, float]
ALL_ROUND_DEG: Span = (-HALF_TURN_DEG, HALF_TURN_DEG)


@dataclass(frozen=True)
class Motion:
    """Root motion in the body's own frame: metres moved within each stretch of `step_s`.

    `backward_m` takes the place of `forward_m` in a roll of the player that leads backwards.
    """

    first_s: float
    step_s: float
    forward_m: tuple[float, ...]
    right_m: tuple[float, ...]
    chase_share: tuple[float, ...] = ()
    backward_m: tuple[float, ...] = ()
    loop_from_s: float | None = None


@dataclass(frozen=True)
class Track:
    """A stretch of a move in which the boss turns towards the player."""

    from_s: float
    to_s: float
    deg_per_s: float


@dataclass(frozen=True)
class Stretch:
    """A part of a move whose forward motion depends on how far away the player is when it begins.

    The motion of the file is multiplied by the distance to a point `arrive_m` before the player, kept within `range_m`
    and divided by `reference_m`.
    """

    from_s: float
    to_s: float
    arrive_m: float
    range_m: Span
    reference_m: float


@dataclass(frozen=True)
class Throw:
    """Damage to a player who is held."""

    at_s: float
    power: Power


@dataclass(frozen=True)
class Hit:
    """One blow: when it is dangerous, where, and what it does."""

    name: str
    from_s: float
    to_s: float
    shape: str
    reach_m: float
    inner_m: float
    half_width_m: float
    arc_deg: tuple[float, float]
    sweep: bool
    blade_deg: float
    offset_m: float
    power: Power
    guard_stamina: float
    reaction: str
    push_m: float
    parriable: bool


@dataclass(frozen=True)
class BossMove:
    """One animation of the boss."""

    name: str
    animation: str
    kind: str
    link_s: float
    label_end_s: float
    end_s: float
    blend_s: float
    motion: Motion | None
    tracks: tuple[Track, ...]
    stretches: tuple[Stretch, ...]
    hits: tuple[Hit, ...]
    grab_move: str
    throws: tuple[Throw, ...]


@dataclass(frozen=True)
class Link:
    """The next move of a chain, and where the player must be for it."""

    move: str
    within_m: float
    bearing_deg: Span


@dataclass(frozen=True)
class Chain:
    """What may follow the first move of an act."""

    weight: float
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Run:
    """When an approach is run: from `from_m` on with a chance, from `always_from_m` on always, up to `approach_m`."""

    from_m: float
    chance: float
    always_from_m: float
    approach_m: float


@dataclass(frozen=True)
class Act:
    """A choice of the decision table: walk or run up, then a chain of moves.

    After a hop one of the acts in `then` may follow at once, unless the player is more than `then_within_deg` round.
    """

    name: str
    approach_m: float
    approach_s: float
    run: Run | None
    cooldown_s: float
    after_odds: float
    room_m: float
    chains: tuple[Chain, ...]
    then: Mapping[str, float]
    then_within_deg: float


@dataclass(frozen=True)
class Rule:
    """Weights of the acts for a region around the boss; with `every_s` it fits again only after that time."""

    bearing_deg: Span
    beyond_deg: float
    gap_m: Span
    every_s: float
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Retreat:
    """The chance, at a gap, that the boss only backs off after an attack, and for how long."""

    gap_m: Span
    chance: float
    lasts_s: Span


@dataclass(frozen=True)
class After:
    """What the boss does after an attack: back off a little, then go sideways, or only retreat."""

    front_deg: float
    within_gap_m: float
    back_off_m: float
    back_off_s: float
    near_gap_m: float
    near_s: Span
    far_s: Span
    retreats: tuple[Retreat, ...]


@dataclass(frozen=True)
class Interrupt:
    """A moment of some moves in which the boss may drop what he does for an act, if the player is in the region."""

    moves: tuple[str, ...]
    at_s: float
    bearing_deg: Span
    gap_m: Span
    act: str


@dataclass(frozen=True)
class Phase:
    """One phase's decisions."""

    changes_at_hp_share: float
    change_move: str
    first_approach_m: float
    first_approach_s: Span
    down_approach_weight: float
    after: After
    rules: tuple[Rule, ...]
    acts: tuple[Act, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True)
class Randomize:
    """Bounds of the domain randomisation at strength 1."""

    timing: float
    hit_shift_s: float
    reach: float
    damage: float
    speed: float
    input_delay_ticks: float
    dropped_inputs: float
    position_noise_m: float
    heading_noise_rad: float
    duration_noise_s: float


@dataclass(frozen=True)
class DrawBounds:
    """How far a drawn variant may be from the boss's guesses at strength 1: shares, but for what says otherwise."""

    hit_shift_s: float
    reach: float
    arc: float
    damage: float
    motion: float
    tracking: float
    weight: float  # a factor, up or down
    approach: float
    after: float
    recovery: float


@dataclass(frozen=True, kw_only=True)
class Boss:
    """Everything a boss file says; one whose moves nobody has described has only a name and health."""

    name: str
    animations: str
    arena: str
    hp: float
    poise: float = 0.0
    poise_recovery_s: float = 0.0
    radius_m: float = 0.0
    least_distance_m: float = 0.0
    turn_deg_per_s: float = 0.0
    turn_animation_beyond_deg: float = 0.0
    turn_around_beyond_deg: float = 0.0
    contact_drag: float = 0.0
    damage_taken_factor: float = 1.0
    riposte_within_m: float = 0.0
    riposte_facing_deg: float = 0.0
    defence: Defence = field(default_factory=lambda: Defence(1.0, {}))
    randomize: Randomize = field(default_factory=lambda: Randomize(*[0.0] * 10))
    moves: tuple[BossMove, ...] = ()
    phases: tuple[Phase, ...] = ()
    draw: DrawBounds | None = None
    game: GameTable | None = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def move_index(self, name: str) -> int:
        """The position of a move in `moves`."""
        return [move.name for move in self.moves].index(name)


def has_moves(content: Mapping[str, object]) -> bool:
    """Does a boss's file describe more of him than how he is fought in the running game?"""
    return "game" not in content or not SIMULATED_TABLES.isdisjoint(content)


def parse_boss(file: Path, content: dict[str, object], animations: tuple[str, ...], reactions: tuple[str, ...]) -> Boss:
    """Check the content of a boss file; `animations` are the boss's known labels, `reactions` the player's."""
    sources: dict[str, str] = {}
    table = Table(file, "", content)
    names: dict[str, Any] = {key: table.text(key) for key in ("name", "title", "character", "animations", "arena")}
    body = table.table("body")
    values: dict[str, Any] = {"hp": body.number("hp", low=1.0)}
    if has_moves(content):
        values |= _simulated(table, body, animations, reactions, sources)
    _note(sources, body)
    game = parse_game(table.table("game"), len(values.get("phases", ())), sources) if table.has("game") else None
    table.close(inherited_source=True)
    del names["title"], names["character"]
    return Boss(**names, **values, game=game, sources=sources)


def _simulated(
    table: Table, body: Table, animations: tuple[str, ...], reactions: tuple[str, ...], sources: dict[str, str]
) -> dict[str, Any]:
    """What the simulator needs of a boss, beside his health."""
    opened, defended = table.table("opened"), table.table("defence")
    values: dict[str, Any] = {
        "poise": body.number("poise", low=1.0),
        "poise_recovery_s": body.number("poise_recovery_s", low=0.1),
        "radius_m": body.number("radius_m", low=0.0, high=LARGEST_BODY_M),
        "least_distance_m": body.number("least_distance_m", low=0.0, high=LARGEST_BODY_M),
        "turn_deg_per_s": body.number("turn_deg_per_s", low=0.0, high=FASTEST_TURN_DEG_PER_S),
        "turn_animation_beyond_deg": body.number("turn_animation_beyond_deg", low=0.0, high=180.0),
        "turn_around_beyond_deg": body.number("turn_around_beyond_deg", low=0.0, high=180.0),
        "contact_drag": body.number("contact_drag", low=0.0, high=1.0),
        "damage_taken_factor": opened.number("damage_taken_factor", low=1.0),
        "riposte_within_m": opened.number("riposte_within_m", low=0.0),
        "riposte_facing_deg": opened.number("riposte_facing_deg", low=0.0, high=180.0),
        "defence": parse_defence(defended),
    }
    _note(sources, opened, defended)
    values["randomize"] = _randomize(table.table("randomize"), sources)
    values["draw"] = _draw_bounds(table.table("draw"), sources) if table.has("draw") else None
    moves = tuple(_move(key, inner, animations, reactions, sources) for key, inner in table.tables("move"))
    _check_moves(table, moves)
    return values | {"moves": moves, "phases": _phases(table, moves, sources)}


def _note(sources: dict[str, str], *tables: Table) -> None:
    for table in tables:
        sources |= {f"{table.path}.{key}": source for key, source in table.close().items()}


def _randomize(table: Table, sources: dict[str, str]) -> Randomize:
    shares: dict[str, Any] = {
        key: table.number(key, low=0.0, high=0.9) for key in ("timing", "reach", "damage", "speed")
    }
    chance = table.number("dropped_inputs", low=0.0, high=1.0)
    delay = table.number("input_delay_ticks", low=0.0, high=30.0)
    noised = ("hit_shift_s", "position_noise_m", "heading_noise_rad", "duration_noise_s")
    noises = {key: table.number(key, low=0.0, high=1.0) for key in noised}
    _note(sources, table)
    return Randomize(**shares, dropped_inputs=chance, input_delay_ticks=delay, **noises)


def _draw_bounds(table: Table, sources: dict[str, str]) -> DrawBounds:
    shares = {
        key: table.number(key, low=0.0, high=WIDEST_SHARE)
        for key in ("reach", "arc", "damage", "motion", "tracking", "approach", "after", "recovery")
    }
    shift_s = table.number("hit_shift_s", low=0.0, high=1.0)
    weight = table.number("weight", low=1.0, high=10.0)
    _note(sources, table)
    return DrawBounds(hit_shift_s=shift_s, weight=weight, **shares)


def parse_motion(table: Table, sources: dict[str, str], keys: tuple[str, ...]) -> Motion:
    """A motion table of a boss or a player move; `keys` are the lists it may hold."""
    first_s = table.number("first_s", low=0.001, high=LONGEST_S)
    step_s = table.number("step_s", low=0.01, high=LONGEST_S)
    lists: dict[str, Any] = {"forward_m": (), "right_m": ()}
    lists |= {key: table.numbers(key) for key in keys if table.has(key)}
    if not any(lists.values()):
        raise table.error("forward_m", None, f"is missing; give one or more of {', '.join(keys)}")
    for share in lists.get("chase_share", ()):
        if not 0.0 <= share < 1.0:
            raise table.error("chase_share", share, "must be at least 0 and below 1")
    loop_from_s = _loop(table, first_s, step_s, lists) if "chase_share" in keys and table.has("loop_from_s") else None
    _note(sources, table)
    return Motion(first_s, step_s, **lists, loop_from_s=loop_from_s)


def _loop(table: Table, first_s: float, step_s: float, lists: Mapping[str, tuple[float, ...]]) -> float:
    loop_from_s = table.number("loop_from_s")
    if lists.get("chase_share"):
        raise table.error("loop_from_s", loop_from_s, "does not go with chase_share; a chase ends")
    lengths = {len(values) for values in lists.values() if values}
    if len(lengths) > 1:
        raise table.error("loop_from_s", loop_from_s, "needs lists of the same length")
    end_s = first_s + step_s * (max(lengths) - 1)
    if not first_s <= loop_from_s <= end_s - step_s / 2.0:
        raise table.error(
            "loop_from_s", loop_from_s, f"must lie from first_s = {first_s:g} to before the motion's end at {end_s:g}"
        )
    return loop_from_s


MOTION_LISTS = ("forward_m", "right_m", "chase_share")


def _move(
    name: str, table: Table, animations: tuple[str, ...], reactions: tuple[str, ...], sources: dict[str, str]
) -> BossMove:
    kind = table.text("kind", among=MOVE_KINDS, default="attack")
    # The change of phase plays an animation that the observation shows as unknown.
    animation = table.text("animation", among=None if kind == "transform" else animations)
    end_s = table.number("end_s", low=0.0, high=LONGEST_S)
    label_end_s = table.number("label_end_s", low=0.0, high=end_s)
    link_s = table.number("link_s", low=0.0, high=label_end_s) if table.has("link_s") else -1.0
    blend_s = table.number("blend_s", low=0.0, default=0.0)
    motion = parse_motion(table.table("motion"), sources, MOTION_LISTS) if table.has("motion") else None
    tracks = tuple(_track(inner, end_s, sources) for _, inner in table.tables("track"))
    stretches = tuple(_stretch(inner, end_s, sources) for _, inner in table.tables("stretch"))
    hits = tuple(_hit(key, inner, end_s, reactions, sources) for key, inner in table.tables("hit"))
    grab_move = table.text("grab_move", default="")
    throws = tuple(_throw(inner, end_s, sources) for _, inner in table.tables("throw"))
    _note(sources, table)
    _check_kind(table, kind, stretches, hits, throws, motion)
    return BossMove(
        name, animation, kind, link_s, label_end_s, end_s, blend_s, motion, tracks, stretches, hits, grab_move, throws,
    )  # fmt: skip


def _check_kind(
    table: Table, kind: str, stretches: tuple[Stretch, ...], hits: tuple[Hit, ...], throws: tuple[Throw, ...],
    motion: Motion | None,
) -> None:  # fmt: skip
    if stretches and (motion is None or not motion.forward_m):
        raise table.error("stretch", len(stretches), "has no forward_m to scale; give the move a motion")
    for before, after in pairwise(stretches):
        if after.from_s < before.to_s:
            raise table.error(
                "stretch", after.from_s, f"must not begin before the one before it ends at {before.to_s:g}"
            )
    if kind == "hop" and (hits or throws or motion is None):
        raise table.error("kind", kind, "is for moves with a motion and without blows; make it an 'attack'")


def _window(table: Table, end_s: float) -> tuple[float, float]:
    from_s = table.number("from_s", low=0.0)
    to_s = table.number("to_s")
    if to_s > end_s:
        raise table.error("to_s", to_s, f"lies past the end of the move at {end_s:g}")
    if to_s <= from_s:
        raise table.error("to_s", to_s, f"must come after from_s = {from_s:g}")
    return from_s, to_s


def _track(table: Table, end_s: float, sources: dict[str, str]) -> Track:
    track = Track(*_window(table, end_s), deg_per_s=table.number("deg_per_s", low=0.0, high=FASTEST_TURN_DEG_PER_S))
    _note(sources, table)
    return track


def _stretch(table: Table, end_s: float, sources: dict[str, str]) -> Stretch:
    from_s, to_s = _window(table, end_s)
    stretch = Stretch(
        from_s,
        to_s,
        arrive_m=table.number("arrive_m", low=0.0),
        range_m=table.span("range_m", low=0.0),
        reference_m=table.number("reference_m", low=0.1),
    )
    _note(sources, table)
    return stretch


def _throw(table: Table, end_s: float, sources: dict[str, str]) -> Throw:
    throw = Throw(table.number("at_s", low=0.0, high=end_s), parse_power(table))
    _note(sources, table)
    return throw


SHAPE_KEYS = {"inner_m": ("sector", "thrust"), "half_width_m": ("thrust",), "offset_m": ("disc",)}
"""Numbers of a blow that only some shapes have."""


def _hit(name: str, table: Table, end_s: float, reactions: tuple[str, ...], sources: dict[str, str]) -> Hit:
    from_s, to_s = _window(table, end_s)
    shape = table.text("shape", among=HIT_SHAPES)
    for key, shapes in SHAPE_KEYS.items():
        if shape not in shapes and table.has(key):
            raise table.error(key, table.number(key), f"means nothing for a {shape}; only for {' and '.join(shapes)}")
    reach_m = table.number("reach_m", low=0.0)
    inner_m = table.number("inner_m", low=0.0, high=reach_m, default=0.0)
    half_width_m = table.number("half_width_m", low=0.0) if shape == "thrust" else 0.0
    sweep = table.flag("sweep") if shape == "sector" else False
    widest = FULL_CIRCLE_DEG if sweep else HALF_TURN_DEG
    arc = table.numbers("arc_deg", low=-widest, high=widest, count=2) if shape == "sector" else (0.0, 0.0)
    hit = Hit(
        name, from_s, to_s, shape, reach_m, inner_m, half_width_m, (arc[0], arc[1]),
        sweep=sweep,
        blade_deg=table.number("blade_deg", low=0.0, high=HALF_TURN_DEG) if sweep else 0.0,
        offset_m=table.number("offset_m", default=0.0),
        power=parse_power(table),
        guard_stamina=table.number("guard_stamina", low=0.0),
        reaction=table.text("reaction", among=reactions),
        push_m=table.number("push_m", low=0.0, default=0.0),
        parriable=table.flag("parriable"),
    )  # fmt: skip
    if not sweep and arc[0] > arc[1]:
        raise table.error("arc_deg", list(arc), "must not begin above its end unless it sweeps")
    _note(sources, table)
    return hit


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
    for needed, kind in NEEDED_MOVES.items():
        if needed not in kinds:
            raise table.error(f"move.{needed}", None, "is missing; every boss needs it")
        if kinds[needed] != kind:
            raise table.error(f"move.{needed}.kind", kinds[needed], f"must be {kind!r} for this move")
    for name, kind in OPTIONAL_MOVES.items():
        if name in kinds and kinds[name] != kind:
            raise table.error(f"move.{name}.kind", kinds[name], f"must be {kind!r} for this move")
    for move in moves:
        if move.grab_move and kinds.get(move.grab_move) != "attack":
            raise table.error(
                f"move.{move.name}.grab_move", move.grab_move,
                f"is no move of kind 'attack'{suggestion(move.grab_move, _attacks(moves))}",
            )  # fmt: skip


def _attacks(moves: tuple[BossMove, ...]) -> tuple[str, ...]:
    return tuple(move.name for move in moves if move.kind == "attack")


def _phases(table: Table, moves: tuple[BossMove, ...], sources: dict[str, str]) -> tuple[Phase, ...]:
    phases = []
    for number, (name, inner) in enumerate(table.tables("phase"), start=1):
        if name != str(number):
            raise table.error(f"phase.{name}", name, f"must be phase {number}")
        phases.append(_phase(inner, moves, sources))
    if not phases:
        raise table.error("phase", None, "is missing; a boss needs at least phase 1")
    if phases[-1].change_move:
        raise table.error(
            f"phase.{len(phases)}.change_move", phases[-1].change_move, "leads to a phase that is not there"
        )
    return tuple(phases)


def _phase(table: Table, moves: tuple[BossMove, ...], sources: dict[str, str]) -> Phase:
    linkable = tuple(move.name for move in moves if move.link_s >= 0.0)
    changes_at = table.number("changes_at_hp_share", low=0.0, high=1.0, default=0.0)
    change_move = _change_move(table, moves, changes_at)
    first_m = table.number("first_approach_m", low=0.0)
    first_s = table.span("first_approach_s", low=0.0)
    down = table.number("down_approach_weight", low=0.0)
    known = tuple(move.name for move in moves)
    after = _after(table.table("after"), known, sources)
    acts = tuple(_act(name, inner, moves, linkable, sources) for name, inner in table.tables("act"))
    act_names = tuple(act.name for act in acts)
    for act in acts:
        _check_act(table, act, known, act_names)
    rules = tuple(_rule(inner, act_names, sources) for inner in table.rows("rule"))
    if not rules:
        raise table.error("rule", None, "is missing; give at least one")
    interrupts = tuple(_interrupt(inner, moves, act_names, sources) for inner in table.rows("interrupt"))
    _note(sources, table)
    return Phase(changes_at, change_move, first_m, first_s, down, after, rules, acts, interrupts)


def _after(table: Table, moves: tuple[str, ...], sources: dict[str, str]) -> After:
    retreats = []
    for row in table.rows("retreats"):
        retreats.append(
            Retreat(row.span("gap_m", low=0.0), row.number("chance", low=0.0, high=1.0), row.span("lasts_s", low=0.0))
        )
        row.close(inherited_source=True)
    if retreats:
        table.cover("retreats")
    after = After(
        front_deg=table.number("front_deg", low=0.0, high=HALF_TURN_DEG, default=HALF_TURN_DEG),
        within_gap_m=table.number("within_gap_m", low=0.0, default=ANYWHERE_M),
        back_off_m=table.number("back_off_m", low=0.0, default=0.0),
        back_off_s=table.number("back_off_s", low=0.0, default=0.0),
        near_gap_m=table.number("near_gap_m", low=0.0),
        near_s=table.span("near_s", low=0.0),
        far_s=table.span("far_s", low=0.0),
        retreats=tuple(retreats),
    )
    if (after.back_off_m > 0.0) != (after.back_off_s > 0.0):
        key, other = ("back_off_m", "back_off_s") if after.back_off_m > 0.0 else ("back_off_s", "back_off_m")
        raise table.error(key, getattr(after, key), f"has no effect alone; give {other} above 0 too")
    if "walk_back" not in moves:
        for key, value in (("back_off_s", after.back_off_s), ("retreats", len(retreats))):
            if value:
                raise table.error(key, value, "needs a move called 'walk_back' of kind 'retreat'")
    _note(sources, table)
    return after


def _interrupt(table: Table, moves: tuple[BossMove, ...], acts: tuple[str, ...], sources: dict[str, str]) -> Interrupt:
    during = table.texts("moves", among=_attacks(moves))
    at_s = table.number("at_s", low=0.0)
    for move in moves:
        if move.name in during and at_s > move.end_s:
            raise table.error("at_s", at_s, f"lies past the end of {move.name!r} at {move.end_s:g}")
    interrupt = Interrupt(
        during,
        at_s,
        bearing_deg=_bearing(table),
        gap_m=table.span("gap_m", low=0.0) if table.has("gap_m") else (0.0, ANYWHERE_M),
        act=table.text("act", among=acts),
    )
    _note(sources, table)
    return interrupt


def _bearing(table: Table) -> Span:
    if not table.has("bearing_deg"):
        return ALL_ROUND_DEG
    return table.span("bearing_deg", low=-HALF_TURN_DEG, high=HALF_TURN_DEG)


def _change_move(table: Table, moves: tuple[BossMove, ...], changes_at: float) -> str:
    given = changes_at > 0.0 or table.has("change_move")
    change_move = table.text("change_move", among=tuple(move.name for move in moves)) if given else ""
    kind = next((move.kind for move in moves if move.name == change_move), "")
    if given and kind != "transform":
        raise table.error("change_move", change_move, f"is of kind {kind!r}; it must be a 'transform'")
    if given and changes_at == 0.0:
        raise table.error("change_move", change_move, "never happens; give changes_at_hp_share above 0")
    return change_move


def _act(
    name: str, table: Table, moves: tuple[BossMove, ...], linkable: tuple[str, ...], sources: dict[str, str]
) -> Act:
    beginnings = tuple(move.name for move in moves if move.kind in ("attack", "hop"))
    if name not in beginnings or name == TURN:
        raise table.error("", name, f"is no move of kind 'attack' or 'hop'{suggestion(name, beginnings)}")
    chains = tuple(_chain(name, inner, _attacks(moves), linkable) for inner in table.rows("chains"))
    then = table.weights("then") if table.has("then") else {}
    act = Act(
        name,
        approach_m=table.number("approach_m", low=0.0, default=ANYWHERE_M),
        approach_s=table.number("approach_s", low=0.0, default=0.0),
        run=_run(table) if table.has("run") else None,
        cooldown_s=table.number("cooldown_s", low=0.0),
        after_odds=table.number("after_odds", low=0.0, high=1.0),
        room_m=table.number("room_m", low=0.0, default=0.0),
        chains=chains or (Chain(1.0, ()),),
        then=then,
        then_within_deg=table.number("then_within_deg", low=0.0, high=HALF_TURN_DEG, default=HALF_TURN_DEG),
    )
    if not any(chain.weight for chain in act.chains):
        raise table.error("chains", [chain.weight for chain in chains], "must hold at least one weight above 0")
    kind = next(move.kind for move in moves if move.name == name)
    for key, value in (("then", list(then)), ("room_m", act.room_m)):
        if value and kind != "hop":
            raise table.error(key, value, f"is for hops; {name!r} is of kind {kind!r}")
    if chains:
        table.cover("chains")
    _note(sources, table)
    return act


def _run(table: Table) -> Run:
    inner = table.table("run")
    from_m = inner.number("from_m", low=0.0)
    run = Run(
        from_m,
        inner.number("chance", low=0.0, high=1.0),
        inner.number("always_from_m", low=from_m, default=ANYWHERE_M),
        inner.number("approach_m", low=0.0),
    )
    inner.close(inherited_source=True)
    table.cover("run")
    return run


def _check_act(table: Table, act: Act, moves: tuple[str, ...], acts: tuple[str, ...]) -> None:
    where = f"act.{act.name}"
    if act.run is not None and "run" not in moves:
        raise table.error(f"{where}.run", act.run.approach_m, "needs a move called 'run' of kind 'walk'")
    for name in act.then:
        if name not in acts:
            raise table.error(f"{where}.then.{name}", name, f"is no act of this phase{suggestion(name, acts)}")


def _chain(first: str, table: Table, moves: tuple[str, ...], linkable: tuple[str, ...]) -> Chain:
    weight = table.number("weight", low=0.0)
    links, before = [], first
    for inner in table.rows("links"):
        move = inner.text("move")
        if move not in moves:
            raise inner.error("move", move, f"is a follow-up that is no attack{suggestion(move, moves)}")
        if before not in linkable:
            raise inner.error("move", move, f"cannot follow {before!r}, which has no link_s")
        links.append(Link(move, inner.number("within_m", low=0.0), _bearing(inner)))
        inner.close(inherited_source=True)
        before = move
    table.close(inherited_source=True)
    return Chain(weight, tuple(links))


def _rule(table: Table, acts: tuple[str, ...], sources: dict[str, str]) -> Rule:
    bearing = _bearing(table)
    beyond = table.number("beyond_deg", low=0.0, high=HALF_TURN_DEG, default=0.0)
    gap = table.span("gap_m", low=0.0) if table.has("gap_m") else (0.0, ANYWHERE_M)
    every_s = table.number("every_s", low=0.1, default=0.0)
    weights = table.weights("weights")
    for act in weights:
        if act != TURN and act not in acts:
            raise table.error(f"weights.{act}", act, f"is no act of this phase{suggestion(act, (*acts, TURN))}")
    _note(sources, table)
    return Rule(bearing, beyond, gap, every_s, weights)
