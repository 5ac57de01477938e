"""How much of the way from the simulator to an unknown fight an agent is taken by half an hour of play there.

Draws files that nothing but the rehearsal reads, and for each of them and each agent: the win rate before
`souls adapt`, after its first round and at its end, and that of an oracle that trains on the true file for as long; at
last, what a learner reaches that knows nothing and plays in the first file of each strength alone. Everything is kept
in a folder and goes on where it was stopped. What a calibration finds of the numbers: benchmarks/recovery.py.

    python benchmarks/transfer.py OUT --agents runs/a runs/b runs/c
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soulsai.adapting.adapt import STATE, Adaptation
from soulsai.config import config_to_toml
from soulsai.evaluation.evaluate import evaluate
from soulsai.learning.loading import load_trained
from soulsai.runs.run import Run
from soulsai.runtime import Fleet
from soulsgym.rehearsal.engine import RehearsalOptions

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.recovery import BOSS, hidden_files

FIRST_SEED = 70_000
"""Of the hidden files: training and evaluations draw from other streams."""
FROM_NOTHING = "rainbow"
IN_TARGET = ("fight.engine=game", "fight.number=1", "run.evaluate_every_steps=0", "run.final_fights=0")


def win_rate(agent: Path, hidden: Path, fights: int) -> float:
    """Of an agent against the true boss. Many fights at once, which a rehearsal cannot play."""
    return evaluate(load_trained(str(agent)).fighter(BOSS), fights, boss=BOSS, variant=str(hidden)).win_rate


def _is_finished(folder: Path) -> bool:
    return (folder / "config.toml").exists() and Run.open(folder).status().state == "finished"


def train_oracle(agent: Path, hidden: Path, folder: Path, steps: int, settings: Sequence[str]) -> Path:
    """The agent trained on the true file for as long as an adaptation trains."""
    if _is_finished(folder):
        return folder
    if (folder / "config.toml").exists():
        fleet = Fleet.resumed(folder, check=False)
    else:
        config = load_trained(str(agent)).config
        assert config is not None
        start = folder.with_suffix(".toml")
        start.write_text(config_to_toml(config))
        own = [f"fight.variants=[{json.dumps(str(hidden.absolute()))}]", f"run.steps={steps}", "run.final_fights=0"]
        own += [f"run.start_from={json.dumps(str(agent.absolute()))}", f"run.evaluate_every_steps={steps // 4}"]
        fleet = Fleet.begin(str(start), folder, [*own, *settings], check=False)
    fleet.train()
    return folder


def from_nothing(hidden: Path, folder: Path, options: argparse.Namespace) -> float:
    """The win rate of a learner that plays in the target alone."""
    if not _is_finished(folder):
        if (folder / "config.toml").exists():
            fleet = Fleet.resumed(folder, check=False)
        else:
            own = [f"run.steps={options.peer_steps}", *options.settings]
            fleet = Fleet.begin(FROM_NOTHING, folder, [*IN_TARGET, *own], check=False)
        fleet.train(game=RehearsalOptions(str(hidden)))
    return win_rate(folder, hidden, options.fights)


def one_trial(name: str, agent: Path, hidden: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Everything about one agent and one file; kept when it is done."""
    file = folder / f"{name}.json"
    if file.exists():
        known: dict[str, Any] = json.loads(file.read_text())
        return known
    target = RehearsalOptions(str(hidden))
    adaptation = Adaptation(
        agent, target, folder / name, options.minutes, options.train_steps, 0, options.settings, say=print
    )
    result = adaptation.run()
    if result is None:
        raise SystemExit("stopped; run the same command again")
    rounds = int(result.run.name)
    oracle = train_oracle(agent, hidden, folder / f"{name}-oracle", rounds * options.train_steps, options.settings)
    found = {
        "trial": name,
        "minutes": result.minutes,
        "before": win_rate(agent, hidden, options.fights),
        "first_minutes": json.loads((folder / name / STATE).read_text())["rounds"][0]["minutes"],
        "first": win_rate(folder / name / "runs" / "1", hidden, options.fights),
        "after": win_rate(result.run, hidden, options.fights),
        "oracle": win_rate(oracle, hidden, options.fights),
    }
    file.write_text(json.dumps(found, indent=1))
    return found


def main() -> None:
    """Run all trials and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for everything")
    parser.add_argument("--agents", type=Path, nargs="+", required=True, help="runs to adapt")
    parser.add_argument("--files", type=int, default=5, help="hidden files of each strength")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--train-steps", type=int, default=10_000_000)
    parser.add_argument("--peer-steps", type=int, default=300_000, help=f"of {FROM_NOTHING} in the target; 0: none")
    parser.add_argument("--fights", type=int, default=1000)
    parser.add_argument("--set", dest="settings", action="append", default=[], help="settings of the training")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, hidden in hidden_files(options.out, options.files, FIRST_SEED):
        for number, agent in enumerate(options.agents):
            row = one_trial(f"{name}-agent-{number}", agent, hidden, options.out, options)
            rows.append(row)
            rates = [f"{row['before']:.1%} before", f"{row['first']:.1%} after {row['first_minutes']:.0f} minutes"]
            rates += [f"{row['after']:.1%} after {row['minutes']:.0f}", f"oracle {row['oracle']:.1%}"]
            print(f"{row['trial']}: {', '.join(rates)}", flush=True)
    before, first, after, oracle = (
        np.array([row[key] for row in rows]) for key in ("before", "first", "after", "oracle")
    )
    gap = max(float(np.maximum(oracle - before, 0.0).sum()), 1e-9)
    print(f"before {before.mean():.1%} (worst {before.min():.1%}), after {after.mean():.1%} (worst {after.min():.1%}), "
          f"oracle {oracle.mean():.1%}; {(first - before).sum() / gap:.0%} of the gap closed by the first round, "
          f"{(after - before).sum() / gap:.0%} in the end")  # fmt: skip
    for name, hidden in hidden_files(options.out, 1 if options.peer_steps else 0, FIRST_SEED):
        rate = from_nothing(hidden, options.out / f"{name}-{FROM_NOTHING}", options)
        print(f"{name}: {FROM_NOTHING} from nothing {rate:.1%} after {options.peer_steps:,} steps in the target")


if __name__ == "__main__":
    main()
