"""A stand-in for `souls train` and `souls eval`: a process with the files and manners of the real one, in a second.

Its win rate grows with the steps to what the learning rate decides, so that it is known which settings are good.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import select
import sys
import time
import tomllib
from pathlib import Path

from soulsai.runs.metrics import MetricsWriter

LIMIT_S = 120.0


def quality(rate):
    """Best at a learning rate of 1e-3, worse by distance."""
    return max(0.0, 0.9 - 0.4 * abs(math.log10(rate) + 3.0))


def options(arguments):
    found, settings = {}, {}
    words = iter(arguments)
    for word in words:
        if word == "--set":
            key, _, value = next(words).partition("=")
            settings[key] = tomllib.loads(f"value = {value}")["value"]
        elif word in ("--run", "--fights", "--seed"):
            found[word] = next(words)
        elif not word.startswith("--"):
            found["first"] = word
    return found, settings


def parent_is_gone(pace_s):
    """Standard input was closed within this time: asked to stop, or the parent has died."""
    return bool(select.select([0], [], [], pace_s)[0]) and os.read(0, 1) == b""


def wait_until_noticed(journal, size):
    """The sweep has told the study of an evaluation, so that it had the time to prune after the one before."""
    deadline_s = time.monotonic() + LIMIT_S
    while journal.stat().st_size == size and time.monotonic() < deadline_s:
        time.sleep(0.01)


def tell(folder, state, step, steps):
    status = dict.fromkeys(("win_rate", "win_rate_low", "win_rate_high")) | {"updated": ""}
    temporary = folder / "status.tmp"
    temporary.write_text(json.dumps(status | {"state": state, "step": step, "steps": steps}))
    temporary.replace(folder / "status.json")


def train(arguments):
    found, settings = options(arguments)
    folder, step = Path(found["--run"]), 0
    journal = folder.parent / "study.journal"
    resumed = "--resume" in arguments
    if resumed:
        settings = json.loads((folder / "settings.json").read_text())
        step = int((folder / "checkpoints" / "1").read_text())
    else:
        for part in ("checkpoints", "evaluations", "replay"):
            (folder / part).mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "versions.json").write_text("{}")
        (folder / "config.toml").write_text("[run]")
    steps, every, rate = (settings[f"{key}"] for key in ("run.steps", "run.evaluate_every_steps", "ppo.learning_rate"))
    with (folder.parent / "begun.txt").open("a") as log:
        log.write(f"{folder.name} {'resumed' if resumed else 'begun'} {step} {rate}\n")
    if settings.get("ppo.epochs") == 99:
        sys.exit("souls: the trainer was told to fail")
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / "metrics.jsonl").touch()
        metrics = MetricsWriter(folder)
        while step < steps:
            step += every
            size = journal.stat().st_size if journal.exists() else 0
            metrics.write(step + 7, 0.0, {"win_rate/evaluation": quality(rate) * step / steps})
            tell(folder, "running", step, steps)
            if size and "TRAINER_NOTICED" in os.environ:
                wait_until_noticed(journal, size)
            if parent_is_gone(float(os.environ["TRAINER_S"])):
                (folder / "checkpoints" / "1").write_text(str(step))
                tell(folder, "stopped", step, steps)
                sys.exit(130)
        (folder / "checkpoints" / "1").write_text(str(step))
        tell(folder, "finished", step, steps)


def evaluate(arguments):
    found, _ = options(arguments)
    rate = json.loads((Path(found["first"]) / "settings.json").read_text())["ppo.learning_rate"]
    returns = [1000 * quality(rate) + i % 3 for i in range(int(found["--fights"]))]
    sys.stdout.write(json.dumps({"returns": returns}) + "\n")


if __name__ == "__main__":
    {"train": train, "eval": evaluate}[sys.argv[1]](sys.argv[2:])
