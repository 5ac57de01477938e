"""Is the simulated Margit like the recorded one? Plays the recorded policy and compares what can be counted.

.venv/bin/python benchmarks/margit.py [--repeat N] [--fit ROUNDS] [--write]

Positions and angles were not recorded: how fast he turns in a move, how wide his blows are, how far he moves sideways.
`--fit` moves these numbers, a guess each, until the counts agree: in every round each of them goes a little along the
one count that it decides, then single ones are tried on the sum of all distances. It prints what it moved; `--write`
puts it into his file. The counts of the recordings are in margit.json. The exit status is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from soulsgym.recordings.counts import Counts, Policy, compare, play_policy, read_counts, total_variation
from soulsgym.spec.fight import FightFiles, lay_over, read_files

RECORDED = Path(__file__).with_name("margit.json")
BEHIND = ("Attack3024", "Step6002", "Step6003")
"""What he does when the player is not in front of him."""
SOON_FOLLOWED = ("Attack3000", "Attack3006", "Attack3001", "Attack3007", "Attack3005")
"""Moves whose follow-ups come so soon after the blow that turning after it decides nothing."""
SIDE_SPREAD_S = 0.5, 0.2
"""Sideways motion lies so long before the first blow of a move and after it."""
KINDS = ("turn", "late", "arc", "side", "ahead", "reach")
LIMITS = {
    "turn": (5.0, 500.0), "late": (1.0, 400.0), "arc": (1.5, 180.0), "side": (-2.5, 2.5), "ahead": (0.1, 5.0),
    "reach": (1.3, 9.0),
}  # fmt: skip
AHEAD_S = 0.35
"""Forward motion this near to the first blow is fitted, too: the player was in the way there when it was recorded."""


@dataclass
class Knobs:
    """The numbers that are fitted, by move.

    Turning before a blow and after it [deg/s], half width of blows [deg], sideways motion [m], a factor on the forward
    motion around the first blow, reach [m].
    """

    turn: dict[str, float]
    late: dict[str, float]
    arc: dict[str, float]
    side: dict[str, float]
    ahead: dict[str, float]
    reach: dict[str, float]

    def copy(self) -> Knobs:
        """The same numbers, to be changed."""
        return Knobs(*(dict(getattr(self, kind)) for kind in KINDS))


def main() -> None:
    """Compare, or fit and compare."""
    arguments = _arguments()
    recording = read_counts(RECORDED)
    policy, recorded, files = recording.policy, recording.counts, read_files(recording.boss)
    knobs = read_knobs(files.content)
    if arguments.fit:
        before = knobs.copy()
        knobs = fit(files, policy, recorded, knobs, arguments.fit, arguments.search, arguments.repeat)
        print_moved(before, knobs)
        if arguments.write:
            write_numbers(files.boss.path, changes_of(files.content, knobs))
    missed = print_comparison(recorded, played(files, policy, knobs, arguments.repeat, seed=99))
    sys.exit(missed > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=4, help="how often the recorded time is played")
    parser.add_argument("--fit", type=int, default=0, help="rounds in which all numbers move")
    parser.add_argument("--search", type=int, default=0, help="single numbers that are tried after that")
    parser.add_argument("--write", action="store_true", help="put the fitted numbers into the boss's file")
    return parser.parse_args()


# ---------------------------------------------------------------- the numbers in the file


def _first_blow_s(move: Mapping[str, Any]) -> float:
    return min((hit["from_s"] for hit in move.get("hit", {}).values()), default=0.5 * float(move["end_s"]))


def _sectors(move: Mapping[str, Any]) -> dict[str, Any]:
    return {name: hit for name, hit in move.get("hit", {}).items() if hit["shape"] == "sector" and not hit.get("sweep")}


def fitted_moves(content: Mapping[str, Any]) -> dict[str, Any]:
    """The attacks of the first phase that turn."""
    phase = content["phase"]["1"]
    named = {*phase["act"], *(row["move"] for row in phase["interrupt"] if "move" in row)}
    return {
        name: move
        for name, move in content["move"].items()
        if name in named and move.get("kind", "attack") == "attack" and "aim" in move.get("track", {})
    }


def read_knobs(content: Mapping[str, Any]) -> Knobs:
    """What the file says now."""
    moves = fitted_moves(content)
    arcs = {name: next(iter(_sectors(move).values()))["arc_deg"] for name, move in moves.items() if _sectors(move)}
    return Knobs(
        turn={name: float(move["track"]["aim"]["deg_per_s"]) for name, move in moves.items()},
        late={
            name: float(move["track"]["after"]["deg_per_s"]) for name, move in moves.items() if "after" in move["track"]
        },
        arc={name: 0.5 * (high - low) for name, (low, high) in arcs.items()},
        side={name: float(sum(move.get("motion", {}).get("right_m", [0.0]))) for name, move in moves.items()},
        ahead={name: 1.0 for name, move in moves.items() if any(_around(move)) and _sectors(move)},
        reach={
            name: next(iter(move["hit"].values()))["reach_m"]
            for name, move in moves.items()
            if len(move.get("hit", {})) == 1
        },
    )


def _around(move: Mapping[str, Any]) -> list[float]:
    """The forward motion around the first blow, 0 elsewhere."""
    blow_s = _first_blow_s(move)
    return [
        metres if abs(0.1 * (number + 0.5) - blow_s) < AHEAD_S else 0.0
        for number, metres in enumerate(move.get("motion", {}).get("forward_m", []))
    ]


def _ahead(move: Mapping[str, Any], factor: float) -> list[float]:
    return [
        round(metres + (factor - 1.0) * fitted, 4)
        for metres, fitted in zip(move["motion"]["forward_m"], _around(move), strict=True)
    ]


def sideways(move: Mapping[str, Any], total_m: float) -> list[float]:
    """Metres to the right in each stretch of 0.1 s, spread evenly around the first blow."""
    blow_s = _first_blow_s(move)
    low_s, high_s = max(0.0, blow_s - SIDE_SPREAD_S[0]), blow_s + SIDE_SPREAD_S[1]
    ends = np.arange(1, math.ceil(high_s / 0.1 - 1e-9) + 1) * 0.1
    shares = np.clip((ends - low_s) / (high_s - low_s), 0.0, 1.0)
    return [round(float(metres), 4) for metres in np.diff([0.0, *(total_m * shares)])]


def changes_of(content: Mapping[str, Any], knobs: Knobs) -> dict[str, Any]:
    """What to lay over the file for these numbers."""
    moves: dict[str, Any] = {}
    for name, move in fitted_moves(content).items():
        changes: dict[str, Any] = {"track": {"aim": {"deg_per_s": round(knobs.turn[name], 1)}}}
        changes["motion"] = {"right_m": sideways(move, knobs.side[name])}
        if name in knobs.late:
            changes["track"]["after"] = {"deg_per_s": round(knobs.late[name], 1)}
        if name in knobs.ahead:
            changes["motion"]["forward_m"] = _ahead(move, knobs.ahead[name])
        if name in knobs.arc:
            half = round(knobs.arc[name], 1)
            changes["hit"] = {blow: {"arc_deg": [-half, half]} for blow in _sectors(move)}
        if name in knobs.reach:
            for blow in move["hit"]:
                changes.setdefault("hit", {}).setdefault(blow, {})["reach_m"] = round(knobs.reach[name], 2)
        moves[name] = changes
    return {"move": moves}


def write_numbers(file: Path, changes: Mapping[str, Any]) -> None:
    """Put numbers into a boss's file in place; everything else in it stays as it is."""
    flat: dict[str, dict[str, Any]] = {}

    def collect(path: str, table: Mapping[str, Any]) -> None:
        for key, value in table.items():
            if isinstance(value, Mapping):
                collect(f"{path}.{key}" if path else key, value)
            else:
                flat.setdefault(path, {})[key] = value

    collect("", changes)
    lines, table = [], ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        key = line.split(" = ")[0]
        if key in flat.get(table, {}):
            line = f"{key} = {json.dumps(flat[table][key])}"
        lines.append(line)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- playing and fitting


def played(files: FightFiles, policy: Policy, knobs: Knobs, repeat: int, seed: int) -> Counts:
    """What the recorded policy counts against him with these numbers."""
    spec = lay_over(files, changes_of(files.content, knobs), files.boss.path, "fitted")
    return play_policy(spec, policy, repeat=repeat, seed=seed)


def loss(recorded: Counts, counts: Counts) -> float:
    """The sum of all distances, each in units of its limit, those beyond it counted twice."""
    shares = [row.value / row.limit for row in compare(recorded, counts)]
    return sum(share + max(share - 0.8, 0.0) * 3.0 for share in shares)


def _rate(counts: Counts, move: str, followers: tuple[str, ...]) -> float:
    ends = sum(number for (first, _), number in counts.transitions.items() if first == move)
    return sum(counts.transitions.get((move, name), 0.0) for name in followers) / max(ends, 1.0)


def _hit_rate(counts: Counts, label: str) -> float:
    return counts.hits.get(label, 0.0) / max(counts.starts.get(label, 0.0), 1.0)


def _side_share(counts: Counts, label: str) -> tuple[float, float]:
    right, left = (counts.transitions.get((label, name), 0.0) for name in ("Step6003", "Step6002"))
    return (right - left) / max(right + left, 1.0), right + left


def nudge(recorded: Counts, counts: Counts, content: Mapping[str, Any], knobs: Knobs, gain: float) -> None:
    """Move every number along the count it decides."""
    for name, move in fitted_moves(content).items():
        label = move["animation"]
        if recorded.starts.get(label, 0.0) < 20:
            continue
        behind = _rate(counts, label, BEHIND) - _rate(recorded, label, BEHIND)
        if label in recorded.follow_ups:
            followers, rate = recorded.follow_ups[label]
            wanted = rate - _rate(counts, label, followers)
            if name in knobs.ahead and not LIMITS["turn"][0] < knobs.turn[name] < LIMITS["turn"][1]:
                knobs.ahead[name] = _within("ahead", knobs.ahead[name] * math.exp(-gain * wanted))
            knobs.turn[name] = _within("turn", knobs.turn[name] * math.exp(2.0 * gain * wanted))
        elif name not in knobs.late:
            knobs.turn[name] = _within("turn", knobs.turn[name] * math.exp(2.0 * gain * behind))
        if name in knobs.late and label not in SOON_FOLLOWED:
            knobs.late[name] = _within("late", knobs.late[name] * math.exp(2.0 * gain * behind))
        error = _hit_rate(recorded, label) - _hit_rate(counts, label)
        if name in knobs.arc:
            knobs.arc[name] = _within("arc", knobs.arc[name] * math.exp(2.0 * gain * error))
        elif name in knobs.reach:
            knobs.reach[name] = _within("reach", knobs.reach[name] * math.exp(gain * error))
        (target, n), (now, _) = _side_share(recorded, label), _side_share(counts, label)
        if n >= 15:
            knobs.side[name] = _within("side", knobs.side[name] + 0.5 * gain * (target - now))


def _within(kind: str, value: float) -> float:
    low, high = LIMITS[kind]
    return min(max(value, low), high)


def fit(
    files: FightFiles, policy: Policy, recorded: Counts, knobs: Knobs, rounds: int, tries: int, repeat: int
) -> Knobs:
    """The best numbers found: `rounds` in which all move, then `tries` of single ones."""
    counts = played(files, policy, knobs, repeat, seed=1)
    best, best_loss = knobs.copy(), loss(recorded, counts)
    for number in range(rounds):
        nudge(recorded, counts, files.content, knobs, gain=0.5 / (1.0 + number / 10.0))
        counts = played(files, policy, knobs, repeat, seed=2 + number)
        now = loss(recorded, counts)
        if now < best_loss:
            best, best_loss = knobs.copy(), now
        print(f"round {number + 1}: loss {now:.2f}, best {best_loss:.2f}", _short(recorded, counts), flush=True)
    generator = np.random.default_rng(7)
    best_loss = loss(recorded, played(files, policy, best, repeat, seed=5))
    for number in range(tries):
        trial = best.copy()
        for _ in range(int(generator.integers(1, 4))):
            _shift_one(trial, generator)
        now = loss(recorded, played(files, policy, trial, repeat, seed=5))
        if now < best_loss:
            best, best_loss = trial, now
            print(f"try {number + 1}: loss {now:.2f}", flush=True)
    return best


def _shift_one(knobs: Knobs, generator: np.random.Generator) -> None:
    kind = str(generator.choice(KINDS))
    values = getattr(knobs, kind)
    name = str(generator.choice(sorted(values)))
    step = generator.normal()
    values[name] = _within(kind, values[name] + 0.3 * step if kind == "side" else values[name] * math.exp(0.3 * step))


# ---------------------------------------------------------------- printing


def _short(recorded: Counts, counts: Counts) -> str:
    parts = {"starts": recorded.starts, "hits": recorded.hits, "transitions": recorded.transitions}
    distances = (f"{name} {total_variation(mine, getattr(counts, name)):.3f}" for name, mine in parts.items())
    return f"{', '.join(distances)}, {counts.hits_per_file:.1f} hits, {counts.damage_per_file:.0f} HP"


def print_moved(before: Knobs, after: Knobs) -> None:
    """What the fit moved."""
    for kind in KINDS:
        for name, value in getattr(after, kind).items():
            old = getattr(before, kind)[name]
            if abs(value - old) > 1e-9:
                print(f"{kind:5} {name:18} {old:8.2f} -> {value:8.2f}")


def print_comparison(recorded: Counts, counts: Counts) -> int:
    """Every distance beside its limit; returns how many miss it."""
    rows = compare(recorded, counts)
    for row in rows:
        verdict = "ok" if row.ok else "missed"
        print(f"{row.name:34} {row.text:>28}   distance {row.value:7.3f}   limit {row.limit:5.2f}   {verdict}")
    return sum(not row.ok for row in rows)


if __name__ == "__main__":
    main()
