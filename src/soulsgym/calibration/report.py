"""The report of a calibration: a page with what was seen of every attack, and what each number was and is."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from soulsgym.calibration.advice import advice
from soulsgym.calibration.blows import Sample, occurrences, sample_of
from soulsgym.calibration.calibrate import Calibration, calibrate
from soulsgym.calibration.estimate import Estimate, listed, number_at
from soulsgym.errors import RecordingError
from soulsgym.recordings.fidelity import measure_fidelity
from soulsgym.recordings.metrics import Goal
from soulsgym.recordings.recording import Recording
from soulsgym.render.areas import Pose, area_of_hit
from soulsgym.render.names import move_name
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import load_fight
from soulsgym.spec.boss import ALL_ROUND_DEG, ANYWHERE_M, EVERY_GAP_M, TURN, BossMove, Hit, Rule

AREA_PX, METRES = 250, 8.0
"""Side of a picture, and how far from the boss its edge is."""
LINE_PX, LINE_HEIGHT_PX = 520, 70
DECISIONS = ("weights", "chains", "after_odds", "cooldown_s", "approach_m", "near_s", "far_s", "changes_at_hp_share")
HELD_OUT = 5
"""One fight in so many is kept out of the fit, to measure it on."""
FEWEST_FIGHTS = 10
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .7rem; text-align: right; }
td:first-child, th:first-child { text-align: left; }
tr.moved { font-weight: 600; }
tbody tr:nth-child(odd) { background: #f5f5f3; }
.attack { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; border-top: 1px solid #ddd;
  padding: .6em 0; }
.attack h3 { width: 100%; margin: 0; }
figure { margin: 0; }
svg { background: #fafaf8; }
"""


def held_out_fidelity(recordings: Sequence[Recording], calibration: Calibration) -> list[tuple[str, Any, Any]]:
    """Metrics on fights that were kept out of a fit, on the boss of the file and on the fitted one."""
    fights = [
        Recording(one.fights[low:high], one.actions[low:high], one.episodes[low:high], one.source)
        for one in recordings
        for low, high in one.bounds()
        if high - low > 2
    ]
    if len(fights) < FEWEST_FIGHTS:
        return []
    held = fights[HELD_OUT - 1 :: HELD_OUT]
    fitting = [one for number, one in enumerate(fights, start=1) if number % HELD_OUT]
    try:
        fitted = calibrate(fitting, calibration.files).spec
    except RecordingError:
        return []
    joined = _joined(held)
    own = load_fight(calibration.files.boss_name)
    before, after = (measure_fidelity(joined, spec).metrics for spec in (own, fitted))
    return [(old.goal.id + " " + old.goal.name, old, new) for old, new in zip(before, after, strict=True)]


def _joined(fights: Sequence[Recording]) -> Recording:
    episodes = [np.full(len(one), number) for number, one in enumerate(fights)]
    return Recording(
        np.concatenate([one.fights for one in fights]),
        np.concatenate([one.actions for one in fights]),
        np.concatenate(episodes),
        "held out",
    )


def report(calibration: Calibration, recordings: Sequence[Recording]) -> str:
    """The page."""
    moved = [one for one in calibration.estimates if one.moves]
    steps = sum(len(bout.fights) for bout in calibration.bouts)
    sorted_estimates = sorted(calibration.estimates, key=lambda one: not one.moves)
    parts = [
        f"<h1>{html.escape(calibration.spec.boss.name)}, as he was seen</h1>",
        f"<p>{len(calibration.bouts)} fights, {steps:,} steps ({steps / 600:.0f} minutes of play): "
        f"{len(calibration.estimates)} numbers were seen, {len(moved)} of them are not what the file said. Those are "
        "in bold. Intervals hold the number in nine cases of ten.</p>",
        _fidelity(held_out_fidelity(recordings, calibration)),
        _next(calibration),
        "<h2>Attacks</h2>",
        "<p>Dots: where players were when a blow landed (full), or came and did not hurt them (hollow). "
        "Those who rolled through it are left out. The boss looks up, and a ring is a metre. Dashed: the area of the "
        "file; solid: the new one. Bars: when its blows come, by the file (grey) and now (red); red lines below them: "
        "when they landed. Black marks: from when another attack may follow, until when the game shows this one, and "
        "when it is over. Attacks with the most corrections come first.</p>",
        *_attacks(calibration),
        "<h2>Decisions</h2>",
        "<p>Attacks are chosen by weights, which depend on where the player is: how far away, and how many degrees "
        "from where the boss looks (to his right above 0).</p>",
        _table(("choice", "seen", "was", "is", "interval"), _decisions(calibration)),
        "<h2>The character</h2>",
        "<p>What was seen of the player himself. A variant changes the boss alone: a number in bold is for you to "
        "correct in the character's file. Metres are those of a step of walking, and of six steps of a roll.</p>",
        _table(("number", "seen", "file says", "measured", "interval"), _character(calibration)),
        "<h2>All numbers</h2>",
        "<p>Under their names in the boss's file, which end in their unit: m metres, s seconds, deg degrees. Corrected "
        "numbers come first.</p>",
        _table(("number", "seen", "was", "is", "interval"), map(_row, sorted_estimates)),
    ]
    title = html.escape(f"{calibration.spec.boss.name}: calibration")
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>{STYLE}</style>\n"
        + "\n".join(parts)
        + "\n</html>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> str:
    head = "".join(f"<th>{one}</th>" for one in heads)
    body = "".join(
        f"<tr{' class=moved' if moved else ''}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for moved, cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        if len(value) > 6:
            return f"{len(value)} numbers, {sum(value):.2f} in all"
        return ", ".join(f"{one:.3g}" for one in value)
    return f"{value:.4g}"


def _row(one: Estimate) -> tuple[bool, tuple[str, ...]]:
    ends = [(low, high) for low, high in zip(listed(one.low), listed(one.high), strict=True)]
    between = "" if len(ends) > 6 else ", ".join(f"{_number(low)} to {_number(high)}" for low, high in ends)
    return one.moves, (one.key, str(one.n), _number(one.before), _number(one.result), between)


def _decisions(calibration: Calibration) -> list[tuple[bool, tuple[str, ...]]]:
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for one in calibration.estimates:
        if one.path[-1] not in DECISIONS:
            continue
        names = _choices(one, calibration)
        if not names:
            rows.append(_row(one))
            continue
        before = one.before or [None] * len(names)
        for name, *numbers in zip(names, before, one.result, one.low, one.high, strict=True):
            was, now, low, high = map(_number, numbers)
            rows.append((one.moves, (name, str(one.n), was, now, f"{low} to {high}")))
    return rows


def _choices(one: Estimate, calibration: Calibration) -> list[str]:
    """In words, what each number of a list of weights is about; nothing for other numbers."""
    boss, key = calibration.files.boss_name, one.path[-1]
    if key == "weights":
        rule = calibration.spec.boss.phases[int(one.path[1]) - 1].rules[int(one.path[3])]
        where = f"phase {one.path[1]}, {_place(rule)}"
        return [
            f"{where}: {move_name(boss, name)}"
            for name, weight in number_at(calibration.files.content, one.path).items()
            if weight > 0.0 and name != TURN
        ]
    if key == "chains":
        first = f"phase {one.path[1]}: {move_name(boss, str(one.path[3]))}"
        links = ([move_name(boss, link["move"]) for link in chain.get("links", ())] for chain in one.written)
        return [", then ".join([first, *names]) if names else f"{first} alone" for names in links]
    return []


def _place(rule: Rule) -> str:
    """Where the player is when a rule counts."""
    parts = []
    if rule.gap_m != EVERY_GAP_M:
        near, far = rule.gap_m
        parts.append(f"{near:g} to {far:g} m" if far < ANYWHERE_M else f"beyond {near:g} m")
    if rule.bearing_deg != ALL_ROUND_DEG:
        parts.append(f"{rule.bearing_deg[0]:g} to {rule.bearing_deg[1]:g} degrees")
    if rule.beyond_deg:
        parts.append(f"more than {rule.beyond_deg:g} degrees aside")
    return ", ".join(parts) or "anywhere"


def _character(calibration: Calibration) -> list[tuple[bool, tuple[str, ...]]]:
    return [
        (one.moves, (one.key, str(one.n), _number(one.before), _number(one.value), f"{one.low:.4g} to {one.high:.4g}"))
        for one in calibration.character
    ]


def _fidelity(rows: Sequence[tuple[str, Any, Any]]) -> str:
    if not rows:
        return "<p>There are too few fights to keep some out of the fit and measure it on them.</p>"
    cells = (
        (False, (name, str(new.n), _rounded(old.value), _rounded(new.value), _goal(new.goal), new.goal.unit))
        for name, old, new in rows
    )
    return (
        "<h2>How close the simulator is</h2><p>Measured on one fight in five, with the numbers of the file (before) "
        "and with a calibration by the other four (after). M1 to M7 are about the player, whom calibration leaves "
        "alone.</p>" + _table(("metric", "samples", "before", "after", "target", "unit"), cells)
    )


def _rounded(value: float | None) -> str:
    return _number(None if value is None else round(value, 4))


def _goal(goal: Goal) -> str:
    return "-" if goal.target is None else f"{'at least' if goal.higher_is_better else 'at most'} {goal.target:g}"


def _next(calibration: Calibration) -> str:
    items = "".join(f"<li>{html.escape(str(one))}</li>" for one in advice(calibration)[:10])
    return f"<h2>What to record next</h2><ul>{items}</ul>" if items else "<p>All attacks were seen often enough.</p>"


def _attacks(calibration: Calibration) -> list[str]:
    spec, own = calibration.spec, {move.name: move for move in load_fight(calibration.files.boss_name).boss.moves}
    tick_s, pictures = spec.player.label_s_per_step / TICKS_PER_STEP, []
    corrected = Counter(one.path[1] for one in calibration.estimates if one.moves and one.path[0] == "move")

    def rank(item: tuple[int, Any]) -> tuple[int, int]:
        return -corrected[spec.boss.moves[item[0]].name], item[0]

    for index, seen in sorted(occurrences(calibration.bouts).items(), key=rank):
        # Occurrences know moves by their place in the file; new moves come behind them.
        move = spec.boss.moves[index]
        if not move.hits:
            continue
        landed = [blow.tick - one.span.start for one in seen for blow in one.landed if blow.reaction]
        areas = []
        for hit in move.hits:
            samples = [found for one in seen if (found := sample_of(hit, move, one, spec, tick_s)) is not None]
            before = next((one for one in own[move.name].hits if one.name == hit.name), None)
            areas.append(_area(hit, before, samples))
        line = _timeline(move, own[move.name], [tick * tick_s for tick in landed])
        name, key = html.escape(move_name(calibration.files.boss_name, move.name)), html.escape(move.name)
        about = f"{key}: {len(seen)} seen, {corrected[move.name]} of its numbers corrected"
        pictures.append(f"<div class=attack><h3>{name} <small>{about}</small></h3>{''.join(areas)}{line}</div>")
    return pictures


def _area(hit: Hit, before: Hit | None, samples: Sequence[Sample]) -> str:
    scale, middle = AREA_PX / (2.0 * METRES), AREA_PX / 2.0

    def outline(one: Hit, style: str) -> str:
        points = " ".join(
            f"{middle - x * scale:.1f},{middle + y * scale:.1f}" for x, y in area_of_hit(one, Pose(0.0, 0.0, 0.0))
        )
        return f"<polygon points='{points}' {style}/>"

    rings = "".join(
        f"<circle cx='{middle}' cy='{middle}' r='{radius * scale:.1f}' fill='none' stroke='#e4e4e0'/>"
        for radius in range(1, int(METRES) + 1)
    )
    shapes = outline(before, "fill='none' stroke='#888' stroke-dasharray='4 3'") if before else ""
    shapes += outline(hit, "fill='#d9482b22' stroke='#d9482b'")
    dots = []
    for sample in samples:
        at = sample.struck if sample.struck >= 0 else len(sample.along) // 2
        if sample.struck < 0 and not sample.vulnerable.any():
            continue
        x, y = middle + sample.across[at] * scale, middle - sample.along[at] * scale
        look = "fill='#d9482b'" if sample.struck >= 0 else "fill='none' stroke='#555'"
        dots.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.6' {look}/>")
    name = html.escape(hit.name)
    boss = f"<path d='M{middle} {middle - 7}l5 12h-10z' fill='#222'/>"
    return (
        f"<figure><svg width='{AREA_PX}' height='{AREA_PX}' role='img' aria-label='{name}'>{rings}{shapes}"
        f"{''.join(dots)}{boss}</svg><figcaption>{name}</figcaption></figure>"
    )


def _timeline(move: BossMove, before: BossMove, landed: Sequence[float]) -> str:
    longest_s = max(move.end_s, before.end_s, 0.1)
    scale = (LINE_PX - 20) / longest_s

    def bars(one: BossMove, y: float, colour: str) -> str:
        windows = "".join(
            f"<rect x='{10 + hit.from_s * scale:.1f}' y='{y}' width='{max(2.0, (hit.to_s - hit.from_s) * scale):.1f}' "
            f"height='10' fill='{colour}'/>"
            for hit in one.hits
        )
        marks = "".join(
            f"<path d='M{10 + time_s * scale:.1f} {y - 2}v14' stroke='#222'/>"
            for time_s in (one.link_s, one.label_end_s, one.end_s)
            if time_s >= 0.0
        )
        return f"<path d='M10 {y + 5}h{one.end_s * scale:.1f}' stroke='#ccc'/>{windows}{marks}"

    hits = "".join(f"<path d='M{10 + time_s * scale:.1f} 40v8' stroke='#d9482b'/>" for time_s in landed)
    axis = "".join(
        f"<path d='M{10 + time_s * scale:.1f} 50v4' stroke='#888'/><text x='{10 + time_s * scale:.1f}' y='65' "
        f"text-anchor='middle' font-size='11' fill='#555'>{time_s:g} s</text>"
        for time_s in np.arange(0.0, longest_s - 0.1, 0.5)
    )
    return (
        f"<svg width='{LINE_PX}' height='{LINE_HEIGHT_PX}' role='img' aria-label='when its blows come'>"
        f"{bars(before, 6, '#aaa')}{bars(move, 22, '#d9482b')}{hits}{axis}</svg>"
    )
