"""Metrics for Weights & Biases, whose library sends them from a process of its own.

Without a key, or where its server does not answer, the run is kept on the disk, to be sent later.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from soulsai.runs.files import cannot_write, write_atomically
from soulsgym.packages import require

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.runs.run import Run

FOLDER, IDENTITY = "wandb", "identity.json"
"""In the run's folder: what W&B keeps itself, and what the run is called there."""
REACH_S, INIT_S = 5.0, 15.0
FINISH_S = 25.0
"""How long the end of a run may wait for W&B to send the rest."""
LONGEST_REASON = 200


def wandb_sink(project: str, run: Run, config: Config, say: Callable[[str], None]) -> WandbSink:
    """The sink of a run, new or resumed: a run is always the same run at W&B."""
    return WandbSink(project, run.name, msgspec.to_builtins(config), run.folder, say)


class WandbSink:
    """Gives rows to W&B. It waits for nothing but the beginning and the end, both with a limit."""

    name = "wandb"

    def __init__(
        self, project: str, run_name: str, config: Mapping[str, Any], folder: Path, say: Callable[[str], None]
    ) -> None:
        require("wandb")
        for name, value in (("WANDB_ERROR_REPORTING", "false"), ("WANDB_SILENT", "true")):
            os.environ.setdefault(name, value)
        import wandb

        settings = wandb.Settings(
            console="off", disable_code=True, disable_git=True, x_disable_stats=True, init_timeout=INIT_S,
            finish_timeout=FINISH_S, finish_timeout_raises=False,
        )  # fmt: skip
        about: dict[str, Any] = {
            "project": project, "name": run_name, "id": _identity(folder / FOLDER, project), "config": dict(config),
            "dir": str(folder), "reinit": "create_new", "settings": settings,
        }  # fmt: skip
        try:
            _reach(wandb.setup().settings)
            self._run = wandb.init(**about, resume="allow")
            told = f"wandb: {self._run.url}"
            if self._run.settings.mode != "online":
                told = f"wandb writes to the disk only ({self._run.settings.mode}); later: {_sync(self._run)}"
        except Exception as error:  # of many kinds, by what is missing
            reason = str(error).split("\n")[0][:LONGEST_REASON].strip().rstrip(".") or type(error).__name__
            self._run = wandb.init(**about, mode="offline")
            told = f"wandb continues offline ({reason}); later: {_sync(self._run)}"
        say(told)

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Put a row on its way."""
        plain = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        self._run.log({"elapsed_s": round(time_s, 3), **plain}, step=int(step))

    def close(self) -> None:
        """Wait some seconds for W&B to send the rest, then let go; what it keeps on the disk stays."""
        import wandb

        self._run.finish()
        wandb.teardown()  # ends its process, which has not written everything before

    def position(self) -> None:
        """Nothing: W&B remembers itself how far a run is, and takes no row of an earlier step."""
        return None


def _reach(settings: Any) -> None:
    """OSError unless its server answers soon, whatever it answers: W&B itself may take very long to find that out."""
    if settings.mode not in (None, "online"):
        return
    try:
        urllib.request.urlopen(str(settings.base_url), timeout=REACH_S).close()
    except urllib.error.HTTPError:
        return
    except OSError as error:
        raise OSError(f"{settings.base_url} does not answer: {getattr(error, 'reason', error)}") from error


def _sync(run: Any) -> str:
    return f"wandb sync {run.settings.sync_dir}"


def _identity(folder: Path, project: str) -> str:
    """What the run is called at W&B, in that project; made once and kept in the run's folder."""
    file = folder / IDENTITY
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        if known["project"] == project and isinstance(known["id"], str):
            return str(known["id"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the first time, or damaged: a new one is no loss but of the link to the old
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    new = f"{time.strftime('%Y%m%d')}-{secrets.token_hex(4)}"
    write_atomically(file, json.dumps({"project": project, "id": new}))
    return new
