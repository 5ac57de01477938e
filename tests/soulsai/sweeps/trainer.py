"""A stand-in for `souls train` and `souls eval`: a process with the files and manners of the real one, in a second.

Its win rate grows with the steps to what the learning rate decides, so that it is known which settings are good. It
imports nothing of ours, which would take longer than what it does.
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


def parent_is_gone():
    """Standard input was closed: asked to stop, or the parent has died."""
    return bool(select.select([0], [], [], 0)[0]) and os.read(0, 1) == b""


def tell(folder, state, step, steps):
    status = dict.fromkeys(("win_rate", "win_rate_low", "win_rate_high")) | {"updated": ""}
    temporary = folder / "status.tmp"
    temporary.write_text(json.dumps(status | {"state": state, "step": step, "steps": steps}))
    temporary.replace(folder / "status.json")


def train(arguments):
    found, settings = options(arguments)
    folder, step = Path(found["--run"]), 0
    resumed = "--resume" in arguments
    if resumed:
        settings = json.loads((folder / "settings.json").read_text())
        step = int((folder / "checkpoints" / "1").read_text())
    else:
        for part in ("checkpoints", "evaluations", "replay"):
            (folder / part).mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "versions.json").write_text("{}")
        (folder / "config.toml").write_text("")
    steps, every, rate = (settings[f"{key}"] for key in ("run.steps", "run.evaluate_every_steps", "ppo.learning_rate"))
    with (folder.parent / "begun.txt").open("a") as log:
        log.write(f"{folder.name} {'resumed' if resumed else 'begun'} {step} {rate}\n")
    if settings.get("ppo.epochs") == 99:
        sys.exit("souls: the trainer was told to fail")
    with (folder / "lock").open("a") as lock, (folder / "metrics.jsonl").open("a") as metrics:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        while step < steps:
            step += every
            time.sleep(float(os.environ["TRAINER_S"]))
            row = {"step": step + 7, "win_rate/evaluation": quality(rate) * step / steps}
            metrics.write(json.dumps(row) + "\n")
            metrics.flush()
            tell(folder, "running", step, steps)
            if parent_is_gone():
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
