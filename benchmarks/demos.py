"""Do demonstrations help? Half an hour of an imperfect script, and the wins of a Q-learner with it and without.

.venv/bin/python benchmarks/demos.py [--seeds 1 2 3] [--steps 100000] [--minutes 30] [--folder runs/demos] [--json]

The script is the duellist, whose timing has an error, so that he wins about half of his fights. His recordings are
made once, on seeds that nothing else uses; every learner gets the same. Wins are of 1,000 full fights on unseen seeds.
A run that is there already is not trained again. The exit status is 1 if learning with demonstrations does not win
twice as often as without, or not more often than the script.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium

import soulsgym  # noqa: F401 (registers the ids)
from soulsai.cli.watch import record_fights
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.statistics import wilson
from soulsai.evaluation.thoughts import about_boss, write_fight_file
from soulsai.learning.loading import load_trained
from soulsai.learning.scoring import evaluate_policy
from soulsai.runtime import Fleet
from soulsgym.envs.simulated import FightEnv
from soulsgym.recordings.recording import Recording, read_recording

BOSS, ENV = "iudex", "SoulsGymIudexSimDemo-v0"
FIRST_SEED, FIGHTS = 1000, 1000
STEPS_PER_MINUTE = 600


def record(file: Path, minutes: float) -> tuple[int, int]:
    """Record as many fights of the script as there is time for; fights and wins."""
    if not file.exists():
        env, most, count = gymnasium.make(ENV).unwrapped, round(minutes * STEPS_PER_MINUTE), 1
        assert isinstance(env, FightEnv)
        while len(recording := record_fights(env, ScriptedFighter("duellist"), count, FIRST_SEED)) <= most:
            count = max(count + 1, int(count * most / len(recording)))
        file.parent.mkdir(parents=True, exist_ok=True)
        about = {"engine": "sim", **about_boss(BOSS, "standard")}
        write_fight_file(file, first_fights(recording, most), about)
    recording = read_recording(file)
    ends = [recording.fights["boss_hp"][high - 1, 0] <= 0.0 for _, high in recording.bounds()]
    return len(ends), int(sum(ends))


def first_fights(recording: Recording, records: int) -> Recording:
    """The first fights, as many as have no more records than these together."""
    assert recording.simulation is not None
    ends = [high for _, high in recording.bounds() if high <= records]
    simulation = replace(recording.simulation, seeds=recording.simulation.seeds[: len(ends)])
    part = slice(ends[-1])
    return Recording(recording.fights[part], recording.actions[part], recording.episodes[part], simulation=simulation)


def train(folder: Path, seed: int, steps: int, preset: str, demos: Path | None) -> int:
    """Wins of a policy after training; with demonstrations, or without."""
    name = f"{preset}-{'with' if demos else 'without'}-{seed}"
    if not (folder / name / "report.html").exists():
        settings = [f"run.seed={seed}", f"run.steps={steps}", "run.threads=1", "run.evaluate_every_steps=20000"]
        settings += [f"demos.files={json.dumps([str(demos)])}"] if demos else []
        Fleet.begin(preset, folder / name, settings, check=False).train()
    trained = load_trained(str(folder / name))
    assert trained.config is not None
    assert trained.policy is not None
    return evaluate_policy(trained.config, trained.policy, FIGHTS, seed=0).wins


def main() -> None:
    """Print the wins, and whether they are what was promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--preset", default="clipped-dqn")
    parser.add_argument("--folder", type=Path, default=Path("runs/demos"))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    file = asked.folder.absolute() / f"duellist-{asked.minutes:g}.npz"
    fights, won = record(file, asked.minutes)
    script = evaluate(ScriptedFighter("duellist"), FIGHTS, seed=0).wins
    found: dict[str, dict[int, int]] = {"without": {}, "with": {}}
    for seed in asked.seeds:
        for name, demos in (("without", None), ("with", file)):
            found[name][seed] = train(asked.folder, seed, asked.steps, asked.preset, demos)
            print(f"seed {seed}, {name} demonstrations: {_rate(found[name][seed])}", file=sys.stderr, flush=True)
    total = {name: sum(wins.values()) for name, wins in found.items()}
    holds = total["with"] >= 2 * total["without"] and total["with"] > script * len(asked.seeds)
    if asked.json:
        print(json.dumps({"demonstrated": {"fights": fights, "wins": won}, "script": script, **found, "holds": holds}))
    else:
        print(f"demonstrated: {fights} fights, {won} won; the script wins {_rate(script)}")
        for name, wins in found.items():
            print(f"{name} demonstrations, {asked.steps:,} steps: " + ", ".join(map(_rate, wins.values())))
        print(
            "twice the wins, and more than the script" if holds else "not twice the wins, or not more than the script"
        )
    sys.exit(0 if holds else 1)


def _rate(wins: int) -> str:
    low, high = wilson(wins, FIGHTS)
    return f"{wins / FIGHTS:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
