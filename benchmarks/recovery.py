"""How well half an hour of play tells the numbers of a boss whose file nobody sees.

Draws files that nothing but the rehearsal reads, plays scripted players there, calibrates, and compares: by kind of
number the error and how often the interval holds the truth, and what a fresh recording scores on the calibrated file
beside the true one. Everything is kept in a folder and goes on where it was stopped.

    python benchmarks/recovery.py OUT
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.calibration.calibrate import Calibration, calibrate
from soulsgym.calibration.estimate import Estimate, number_at
from soulsgym.engine import standard_starts
from soulsgym.players.registry import make_player
from soulsgym.recordings.fidelity import measure_fidelity
from soulsgym.recordings.recording import Recording, read_recording, write_recording
from soulsgym.rehearsal.engine import RehearsalEngine, RehearsalOptions
from soulsgym.spec import load_fight
from soulsgym.spec.draw import write_overlay
from soulsgym.spec.fight import read_files
from soulsgym.spec.overlay import overlay
from soulsgym.spec.reader import read_toml
from soulsgym.state import action_mask_of, observation_of

BOSS = "iudex"
STRENGTHS = (1.0, 1.5)
FIRST_SEED = 80_000
"""Of the hidden files: training, evaluations and other benchmarks draw from other streams."""
PLAYERS = ("duellist", "prober", "random", "roll_spam")
OFTEN = 15
"""Times that an attack must be seen for its errors to count."""
BRACKETED_M = 0.5
"""A reach whose interval is no wider than this lies between hits and misses."""
WRONG = 1e-6
"""A number that is farther than this from the truth is wrong in the file."""
RESOLVED = {"M5": 0.1, "M6": 0.1, "M9": 0.0162, "M10": 0.0162, "M11": 0.1}
"""Errors below this are none: a tick of time, a tenth of a percent."""
KINDS = {
    "hit times [s]": ("from_s", "to_s"),
    "label ends, links, ends [s]": ("link_s", "label_end_s", "end_s"),
    "root motion [m a step]": ("forward_m", "right_m"),
    "shares of a chase": ("chase_share",),
    "turning [deg/s]": ("deg_per_s", "turn_deg_per_s"),
    "damage": ("attack", "damage"),
    "guard stamina": ("guard_stamina",),
    "reach [m]": ("reach_m", "inner_m", "half_width_m", "offset_m"),
    "reach, bracket_host [m]": ("reach_m",),
    "arcs [deg]": ("arc_deg", "blade_deg"),
    "weights and chains [share]": ("weights", "chains"),
    "odds [share]": ("after_odds",),
    "cooldowns [s]": ("cooldown_s",),
    "going sideways [s]": ("near_s", "far_s"),
}


def hidden_files(folder: Path, count: int, first_seed: int = FIRST_SEED) -> Iterator[tuple[str, Path]]:
    """Files of each strength, drawn once and kept."""
    for strength in STRENGTHS:
        for number in range(count):
            file = folder / f"hidden-{strength:g}-{number}.toml"
            if not file.exists():
                write_overlay(file, BOSS, first_seed + number + int(1000 * strength), strength)
            yield f"{strength:g}-{number}", file


def play(file: Path, hidden: Path, steps: int, seed: int) -> Recording:
    """So many steps of the scripted players in turn, in both phases; recorded once and kept."""
    if file.exists():
        return read_recording(file)
    spec, everyone = load_fight(BOSS), np.ones(1, np.bool_)
    engine = RehearsalEngine(spec, RehearsalOptions(str(hidden)), changes=True)
    records: list[Any] = []
    actions: list[int] = []
    episodes: list[int] = []
    while len(records) < steps:
        number = episodes[-1] + 1 if episodes else 0
        player, starts = make_player(PLAYERS[number % len(PLAYERS)], spec, 1, seed + number), standard_starts(1)
        starts["phase"] = 1 + number // len(PLAYERS) % 2
        engine.reset(everyone, starts)
        player.reset(everyone)
        action = NOTHING
        for _ in range(1200):
            records.append(engine.fights.copy())
            actions.append(action)
            episodes.append(number)
            if engine.fights["outcome"][0] or len(records) >= steps:
                break
            action = int(player.act(observation_of(engine.fights), action_mask_of(engine.fights))[0])
            engine.step(ACTION_CONTROLS[[action]])
    engine.close()
    recording = Recording(np.concatenate(records), np.array(actions), np.array(episodes), str(file))
    write_recording(file, recording)
    return recording


def numbers_of(value: Any) -> Any:
    """A number or a list of them; of weights and chains their shares."""
    if isinstance(value, dict):
        value = [weight for name, weight in value.items() if name not in ("turn", "source")]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        value = [chain["weight"] for chain in value]
    return np.atleast_1d(np.asarray(value, float))


def compare(one: Estimate, truth: dict[str, Any], step_s: float) -> tuple[float, float, float] | None:
    """Mean error of an estimate, of the file before, and the share of it that lies in its interval."""
    true = number_at(truth, one.path)
    if true is None or one.before is None or isinstance(true, str):
        return None
    value, before, low, high, right = map(numbers_of, (one.result, one.before, one.low, one.high, true))
    if len({len(numbers) for numbers in (value, before, low, right)}) > 1 or not len(right):
        return None
    scale = 1.0
    if one.path[-1] in ("weights", "chains"):
        scale = 1.0 / right.sum()
    elif one.path[-1] in ("forward_m", "right_m"):
        scale = step_s / number_at(truth, (*one.path[:-1], "step_s"))
    inside = (low - 1e-6 <= right) & (right <= high + 1e-6)
    return scale * float(np.abs(value - right).mean()), scale * float(np.abs(before - right).mean()), inside.mean()


def recovery(found: Calibration, truth: dict[str, Any]) -> dict[str, list[tuple[float, float, float, bool]]]:
    """By kind of number: errors, what they were before, what lies in its interval, and whether it counts."""
    spec, rows = found.spec, defaultdict(list)
    seen = Counter(span.move for bout in found.bouts for span in bout.spans)
    times = {move.name: seen[index] for index, move in enumerate(spec.boss.moves)}
    for one in found.estimates:
        compared = compare(one, truth, spec.player.label_s_per_step)
        if compared is None:
            continue
        often = times[str(one.path[1])] >= OFTEN if one.path[0] == "move" else one.n >= OFTEN
        for kind, keys in KINDS.items():
            if one.path[-1] in keys and ("bracket_host" not in kind or one.high - one.low <= BRACKETED_M):
                rows[kind].append((*compared, often))
    return dict(rows)


def fidelity(fresh: Recording, found: Calibration, hidden: Path) -> dict[str, tuple[float, ...]]:
    """By metric: the error of a fresh recording on the boss's file, on the calibrated and on the true one."""
    specs = load_fight(BOSS), found.spec, load_fight(BOSS, str(hidden))
    measured = [measure_fidelity(fresh, spec).metrics for spec in specs]
    return {
        metrics[0].goal.id: tuple(
            100.0 - (one.value or 0.0) if one.goal.higher_is_better else one.value or 0.0 for one in metrics
        )
        for metrics in zip(*measured, strict=True)
    }


def main() -> None:
    """Play, calibrate, compare, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for everything")
    parser.add_argument("--files", type=int, default=5, help="hidden files of each strength")
    parser.add_argument("--steps", type=int, default=18_000, help="of play in each, 600 a minute")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="of the hidden files")
    parser.add_argument("--fresh-steps", type=int, default=6_000, help="of the recording that fidelity is measured on")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[Any]] = defaultdict(list)
    scores: dict[str, list[Any]] = defaultdict(list)
    for name, hidden in hidden_files(options.out, options.files, options.first_seed):
        kept = options.out / f"{name}.json"
        if not kept.exists():
            recording = play(options.out / f"{name}.npz", hidden, options.steps, 0)
            found = calibrate([recording], read_files(BOSS))
            fresh = play(options.out / f"{name}-fresh.npz", hidden, options.fresh_steps, 1000)
            truth = overlay(found.files.content, read_toml(hidden))
            kept.write_text(json.dumps({"kinds": recovery(found, truth), "fidelity": fidelity(fresh, found, hidden)}))
        told = json.loads(kept.read_text())
        print(f"{name}: done", flush=True)
        for kind, compared in told["kinds"].items():
            rows[kind] += compared
        for metric, values in told["fidelity"].items():
            scores[metric].append(values)
    print("| kind | numbers | inside | wrong in the file | inside | of attacks seen 15+ | median error | the file's |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, compared in rows.items():
        table = np.array(compared, float)
        wrong = table[table[:, 1] > WRONG]
        often = wrong[wrong[:, 3] > 0.0]
        cells = [f"{len(table)}", f"{table[:, 2].mean():.0%}", f"{len(wrong)}"]
        cells += [f"{wrong[:, 2].mean():.0%}" if len(wrong) else "", f"{len(often)}"]
        cells += [f"{np.median(often[:, column]):.4f}" if len(often) else "" for column in (0, 1)]
        print(f"| {kind} | {' | '.join(cells)} |")
    print("| metric | file | calibrated | true file | calibrated / true: median, largest |")
    print("|---|---|---|---|---|")
    for metric, values in scores.items():
        table = np.maximum(np.array(values), RESOLVED.get(metric, 1e-3))
        ratio, mean = table[:, 1] / table[:, 2], np.array(values).mean(axis=0)
        print(
            f"| {metric} | {mean[0]:.4f} | {mean[1]:.4f} | {mean[2]:.4f} | {np.median(ratio):.2f}, {ratio.max():.2f} |"
        )


if __name__ == "__main__":
    main()
