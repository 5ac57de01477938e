"""Pages about bosses, made from the data: each attack's area and timeline, decisions, and where numbers come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from soulsgym.envs.registry import IN_THE_GAME, SIMULATED
from soulsgym.errors import DataError
from soulsgym.render.areas import Outline, Point, Pose, area_of_hit, travel
from soulsgym.render.names import plain_name
from soulsgym.spec import FightSpec, load_fight
from soulsgym.spec.boss import ANYWHERE_M, TURN, Act, BossMove, Hit, Phase, Rule
from soulsgym.spec.damage import damage_of
from soulsgym.spec.fight import DATA, known_bosses
from soulsgym.spec.provenance import boss_provenance
from soulsgym.spec.reader import SOURCES, read_toml

REACHED = "reached.toml"
"""Beside the pages: what was measured against each boss."""
ROW_PX, AREA_PX, NAME_PX, TIME_PX, MARGIN_PX = 132, 120, 190, 430, 12
WIDTH_PX = NAME_PX + AREA_PX + TIME_PX + 4 * MARGIN_PX
RULER_PX = 22
LEAST_M = 6.0
"""A picture of an attack shows at least so many metres to either side."""
LEGEND = (
    "The area is seen from above, with the boss looking up, and lies where he is when the blow begins. Red is the blow "
    "and on the timeline blue is when he turns with the player, green when a follow-up begins, and grey when the next "
    "attack is shown and when he is free."
)
INK, FAINT, BACK, BLOW, TURNS, BODY, ENDS = "#24292f", "#8c959f", "#ffffff", "#cf222e", "#0969da", "#57606a", "#1a7f37"


def boss_pages(folder: Path, data: Path = DATA) -> dict[Path, str]:
    """The files of a folder of pages: an index, a page for each boss of the data, and its pictures."""
    reached = read_toml(folder / REACHED) if (folder / REACHED).is_file() else {}
    names = sorted(known_bosses(data))
    for name in reached:
        if name not in names:
            raise DataError(folder / REACHED, name, None, f"is not a boss; known are {', '.join(names)}")
    files: dict[Path, str] = {}
    specs = {name: load_fight(name, data=data, moves=False) for name in names}
    files[folder / "README.md"] = _index(specs)
    for name, spec in specs.items():
        files[folder / f"{name}.md"] = boss_page(spec, reached.get(name, {}), data)
        for number, phase in enumerate(spec.boss.phases, start=1):
            files[folder / _picture(name, number)] = attack_picture(spec, phase)
    return files


def _picture(name: str, phase: int) -> str:
    return f"images/{name}-{phase}.svg"


def _index(specs: Mapping[str, FightSpec]) -> str:
    rows = [
        (f"[{spec.boss.name}]({name}.md)", spec.title.id, str(len(spec.boss.phases) or "not described"))
        for name, spec in specs.items()
    ]
    head = "# Bosses\n\nMade from the data files by `souls bosses --pages docs/bosses`; do not edit.\n\n"
    return head + _table(("boss", "title", "phases"), rows)


# ---------------------------------------------------------------- the page


def boss_page(spec: FightSpec, reached: Mapping[str, Any], data: Path = DATA) -> str:
    """The page in Markdown; `reached` has what was measured, a sentence by its name."""
    boss, name = spec.boss, spec.boss_name
    parts = [
        f"# {boss.name}",
        "Made from the data files by `souls bosses --pages docs/bosses`; do not edit.",
        _table(("", ""), _facts(spec)),
        "## Where the numbers come from",
        _table(("file", *SOURCES), _sources(name, data)),
    ]
    if reached:
        parts += [
            "## What an agent reaches",
            _table(("who", "result"), [(who, str(what)) for who, what in reached.items()]),
        ]
    for number, phase in enumerate(boss.phases, start=1):
        parts += [
            f"## Phase {number}",
            LEGEND,
            f"![attacks of phase {number}]({_picture(name, number)})",
            _table(("attack", "label", "blow [s]", "damage", "reaction"), _blows(spec, phase)),
            "Which of them he begins, by where the player is (the first row that fits):",
            _table(("where", "weights"), [(_where(rule), _weights(rule)) for rule in phase.rules]),
            _table(
                ("act", "comes as near as [m]", "cools down [s]", "may go on with"), [_act(act) for act in phase.acts]
            ),
        ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _facts(spec: FightSpec) -> list[tuple[str, str]]:
    boss, player = spec.boss, spec.player
    ids = [key for key, fixed in SIMULATED.items() if fixed.get("boss") == spec.boss_name]
    ids += [key for key, (_, fixed) in IN_THE_GAME.items() if fixed["boss"] == spec.boss_name]
    facts = [
        ("environments", ", ".join(f"`{key}`" for key in ids)),
        ("title", spec.title.id),
        ("health", f"{boss.hp:g}"),
        ("fought by", f"{player.name}: {player.hp:g} health, {player.sp:g} stamina"),
        ("in", spec.arena.name),
    ]
    if boss.phases:
        facts.insert(3, ("poise", f"{boss.poise:g}"))
        light = next(move for move in player.moves if move.name == "light_1")
        dealt = sum(round(damage_of(strike.power, boss.defence)) for strike in light.strikes)
        facts.append(("a light attack costs him", f"{dealt}, so {math.ceil(boss.hp / max(dealt, 1))} of them kill him"))
    return facts


def _sources(name: str, data: Path) -> list[tuple[str, ...]]:
    return [
        (f"`{one.file.name}`", *(f"{one.counts[source]:,}" for source in SOURCES))
        for one in boss_provenance(name, data)
    ]


def _attacks(spec: FightSpec, phase: Phase) -> list[BossMove]:
    """The moves of a phase with blows, or that hold the player, in the order of the file."""
    names = {act.first_move for act in phase.acts}
    names |= {link.move for act in phase.acts for chain in act.chains for link in chain.links}
    return [move for move in spec.boss.moves if move.name in names and move.hits]


def _blows(spec: FightSpec, phase: Phase) -> Iterable[tuple[str, ...]]:
    for move in _attacks(spec, phase):
        for hit in move.hits:
            yield (
                f"{plain_name(move.name)}: {plain_name(hit.name)}", move.animation,
                f"{hit.from_s:.2f} to {hit.to_s:.2f}", _damage(spec, move, hit),
                plain_name(hit.reaction.removeprefix("Damage")),
            )  # fmt: skip


def _damage(spec: FightSpec, move: BossMove, hit: Hit) -> str:
    defence = spec.player.defence
    if move.grab_move:
        held = next(one for one in spec.boss.moves if one.name == move.grab_move)
        return f"holds: {sum(round(damage_of(throw.power, defence)) for throw in held.throws)}"
    more = "".join(f", {name} {points:g}" for name, points in hit.status.items())
    return f"{round(damage_of(hit.power, defence))}{more}"


def _where(rule: Rule) -> str:
    low, high = rule.gap_m
    gap = (
        ""
        if (low, high) == (0.0, ANYWHERE_M)
        else f"gap {low:g} m and more"
        if high >= 999
        else f"gap {low:g} to {high:g} m"
    )
    side = f"bearing {rule.bearing_deg[0]:g} to {rule.bearing_deg[1]:g}°" if rule.bearing_deg != (-180.0, 180.0) else ""
    beyond = f"more than {rule.beyond_deg:g}° round" if rule.beyond_deg else ""
    every = f"every {rule.every_s:g} s" if rule.every_s else ""
    return ", ".join(part for part in (every, beyond, side, gap) if part) or "anywhere"


def _weights(rule: Rule) -> str:
    return ", ".join(
        f"{'turns' if name == TURN else plain_name(name)} {weight:g}" for name, weight in rule.weights.items()
    )


def _act(act: Act) -> tuple[str, ...]:
    near = "where he stands" if act.approach_m >= ANYWHERE_M else f"{act.approach_m:g}"
    if act.run is not None:
        near += f", running {act.run.approach_m:g}"
    total = sum(chain.weight for chain in act.chains)
    follows = [
        f"{' → '.join(plain_name(link.move) for link in chain.links) or 'nothing'} {chain.weight / total:.0%}"
        for chain in act.chains
    ]
    then = sum(act.then.values())
    follows = [f"{plain_name(name)} {weight / then:.0%}" for name, weight in act.then.items()] or follows
    return plain_name(act.name), near, f"{act.cooldown_s:g}", "; ".join(follows) if follows != ["nothing 100%"] else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


# ---------------------------------------------------------------- the picture


def attack_picture(spec: FightSpec, phase: Phase) -> str:
    """An SVG with a row for each attack of a phase: its name, its area from above, and its timeline."""
    moves = _attacks(spec, phase)
    last_s = math.ceil(max(move.end_s for move in moves))
    height = RULER_PX + ROW_PX * len(moves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX}" height="{height}" '
        f'viewBox="0 0 {WIDTH_PX} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH_PX}" height="{height}" fill="{BACK}"/>',
    ]
    time_x = NAME_PX + AREA_PX + 3 * MARGIN_PX
    for second in range(last_s + 1):
        x = time_x + TIME_PX * second / last_s
        parts.append(_line(x, RULER_PX, x, height, FAINT, 0.5))
        parts.append(_text(x - 3, 14, f"{second} s", FAINT))
    for row, move in enumerate(moves):
        top = RULER_PX + ROW_PX * row
        parts.append(_line(0, top, WIDTH_PX, top, FAINT, 0.5))
        parts += _names(spec, move, top)
        parts += _area(spec, phase, move, NAME_PX + MARGIN_PX, top + (ROW_PX - AREA_PX) / 2)
        parts += _timeline(move, time_x, top, TIME_PX / last_s)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _names(spec: FightSpec, move: BossMove, top: float) -> list[str]:
    found = [_text(MARGIN_PX, top + 24, plain_name(move.name), INK, bold=True)]
    found.append(_text(MARGIN_PX, top + 40, move.animation, FAINT))
    for line, hit in enumerate(move.hits):
        found.append(_text(MARGIN_PX, top + 58 + 15 * line, f"{plain_name(hit.name)}: {_damage(spec, move, hit)}", INK))
    return found


def _reach_of(spec: FightSpec, phase: Phase, move: BossMove) -> float:
    """How far away the player is when the move begins, at the most that its act or chain lets it begin from."""
    far = [act.approach_m for act in phase.acts if act.first_move == move.name and act.approach_m < ANYWHERE_M]
    links = (link for act in phase.acts for chain in act.chains for link in chain.links)
    far += [link.within_m for link in links if link.move == move.name and link.within_m < 99.0]
    reach_m = max(hit.reach_m + abs(hit.offset_m) for hit in move.hits)
    return min(far, default=max(reach_m, spec.boss.least_distance_m))


def _area(spec: FightSpec, phase: Phase, move: BossMove, left: float, top: float) -> list[str]:
    start, from_m = Pose(0.0, 0.0, math.pi), _reach_of(spec, phase, move)
    outlines: list[tuple[Outline, Pose]] = []
    for hit in move.hits:
        pose = start
        if move.motion is not None:
            pose = start.moved(*travel(move, move.motion, 0.0, hit.from_s, from_m))
        outlines.append((area_of_hit(hit, pose), pose))
    radius_m = spec.boss.radius_m
    points = [point for outline, _ in outlines for point in outline]
    points += [(pose.x_m + side * radius_m, pose.y_m + side * radius_m) for _, pose in outlines for side in (-1, 1)]
    points += [(side * radius_m, side * radius_m) for side in (-1, 1)]
    low = [min(point[axis] for point in points) for axis in (0, 1)]
    high = [max(point[axis] for point in points) for axis in (0, 1)]
    size_m = max(2.0 * LEAST_M, high[0] - low[0], high[1] - low[1]) * 1.04
    centre, scale = [(low[axis] + high[axis]) / 2 for axis in (0, 1)], AREA_PX / size_m

    def at(point: Point) -> tuple[float, float]:
        # He looks along +y, which is up; his right is then +x.
        return left + AREA_PX / 2 + (point[0] - centre[0]) * scale, top + AREA_PX / 2 - (point[1] - centre[1]) * scale

    found = [f'<rect x="{left}" y="{top:g}" width="{AREA_PX}" height="{AREA_PX}" fill="none" stroke="{FAINT}"/>']
    for outline, _ in outlines:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, outline))
        found.append(f'<polygon points="{path}" fill="{BLOW}" fill-opacity="0.22" stroke="{BLOW}" stroke-width="1"/>')
    end = at(outlines[-1][1].at)
    found.append(_line(*at(start.at), *end, BODY, 1.0, dashed=True))
    for (x, y), opacity in ((at(start.at), 0.25), (end, 0.75)):
        found.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius_m * scale:.1f}" fill="{BODY}" fill-opacity="{opacity}"/>'
        )
    found.append(_line(left + 5, top + AREA_PX - 5, left + 5 + 5 * scale, top + AREA_PX - 5, INK, 1.5))
    found.append(_text(left + 8, top + AREA_PX - 9, "5 m", INK))
    return found


def _timeline(move: BossMove, left: float, top: float, px_per_s: float) -> list[str]:
    middle = top + ROW_PX / 2

    def bar(from_s: float, to_s: float, y: float, height: float, colour: str) -> str:
        width = max((to_s - from_s) * px_per_s, 2.0)
        x = left + from_s * px_per_s
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"/>'

    found = [bar(0.0, move.end_s, middle - 8, 16, "#d0d7de")]
    found += [bar(track.from_s, track.to_s, middle + 10, 4, TURNS) for track in move.tracks if track.deg_per_s > 0.0]
    for line, hit in enumerate(move.hits):
        found.append(bar(hit.from_s, hit.to_s, middle - 8, 16, BLOW))
        x = left + hit.from_s * px_per_s
        found.append(_text(x, middle - 12 - 13 * (line % 3), f"{plain_name(hit.name)} {hit.from_s:.2f}", BLOW))
    marks = [(move.label_end_s, FAINT), (move.end_s, FAINT)] + ([(move.link_s, ENDS)] if move.link_s >= 0.0 else [])
    return found + [
        _line(left + s * px_per_s, middle - 12, left + s * px_per_s, middle + 18, colour, 2.0) for s, colour in marks
    ]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="3 3"' if dashed else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"{dash}/>'


def _text(x: float, y: float, text: str, colour: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{weight}>{escape(text)}</text>'
