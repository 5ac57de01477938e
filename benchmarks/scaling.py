"""Time to solve LunarLander over Redis with 1, 2, ... workers: python benchmarks/scaling.py OUT_FOLDER [WORKERS ...]

Solved: a mean return of 200 over the last 200 training episodes, exploration included. Afterwards the policy plays 100
greedy episodes. The clock starts with the learner's first iteration.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SOLVED = 200.0
LIMIT_S = 900.0
PRESET = "lunarlander-ppo"
ENVIRONMENTS = 16
"""All workers together play so many."""
SETTINGS = (
    "run.steps=3000000",  # more than it needs
    "run.threads=1",
    "run.evaluate_every_steps=0",
    "run.final_fights=0",
    "run.log_every_s=0.5",
)
SOULS = [str(Path(sys.executable).parent / "souls")]


def rows_of(file: Path) -> list[dict[str, float]]:
    """The complete rows of metrics written so far."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def wait_for(what: str, ready: object, limit_s: float = 60.0) -> None:
    """Until `ready()` is true."""
    began_s = time.monotonic()
    while not ready():  # type: ignore[operator]
        if time.monotonic() - began_s > limit_s:
            sys.exit(f"{what} did not happen within {limit_s:.0f} s")
        time.sleep(0.2)


def solve(folder: Path, workers: int) -> dict[str, float]:
    """One run until it is solved, or the time is up."""
    chosen = (*SETTINGS, f"fleet.number={ENVIRONMENTS // workers}")
    settings = [part for setting in chosen for part in ("--set", setting)]
    command = [*SOULS, "serve", PRESET, "--run", str(folder), "--plain", *settings]
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        learner = subprocess.Popen(command, stdout=log, stderr=log)
        fleet = folder / "fleet.json"
        wait_for("the invitation", fleet.exists)
        wait_for("the password", lambda: json.loads(fleet.read_text())["passwords"])
        told = json.loads(fleet.read_text())
        (name, password), *_ = told["passwords"].items()
        scheme, place = told["advertised"].split("://")
        url = f"{scheme}://{name}:{password}@{place.rstrip(chr(47))}/{told['run']}"
        joined = subprocess.Popen(
            [*SOULS, "join", "--workers", str(workers)], stdout=log, stderr=log, env=os.environ | {"SOULS_URL": url}
        )
        try:
            found = watch(folder / "metrics.jsonl")
        finally:
            joined.terminate()
            learner.terminate()
            joined.wait(60)
            learner.wait(60)
    evaluated = subprocess.run(
        [*SOULS, "eval", str(folder), "--fights", "100", "--json", "--latest"],
        capture_output=True,
        text=True,
        check=False,
    )
    mean = json.loads(evaluated.stdout)["mean"] if evaluated.returncode == 0 else float("nan")
    return found | {"workers": workers, "greedy": mean}


def is_over(metrics: Path) -> bool:
    """Whether the run has made all its steps."""
    status = metrics.parent / "status.json"
    return status.exists() and json.loads(status.read_text())["state"] == "finished"


def watch(metrics: Path) -> dict[str, float]:
    """Follow the metrics until it is solved."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < LIMIT_S and not is_over(metrics):
        for row in rows_of(metrics):
            if row.get("return/training", -1e9) >= SOLVED and row["episodes"] >= 100:
                return {"solved_s": row["elapsed_s"], "steps": row["step"], "return": row["return/training"]}
        time.sleep(0.5)
    rows = rows_of(metrics)
    return {
        "solved_s": float("nan"),
        "steps": rows[-1]["step"],
        "return": rows[-1].get("return/training", float("nan")),
    }


def main() -> None:
    """One run for each number of workers."""
    out, *numbers = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    for number in map(int, numbers or ["1", "2"]):
        print(solve(Path(out) / f"workers-{number}-{time.strftime('%H%M%S')}", number), flush=True)


if __name__ == "__main__":
    main()
