"""The last word on the best trials: measured once more, in fights that had no say in choosing them.

The best of many noisy figures is too good: it was chosen for its luck as well. So the best few, and the preset's own
settings, fight again with seeds that nobody used before. Their intervals are made so wide that all of them together
hold with 95 %: choosing among them once more does no harm then.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from soulsai.errors import RunError
from soulsai.evaluation.statistics import normal_quantile, wilson
from soulsai.sweeps import trial as one_trial
from soulsai.sweeps.space import WIN_RATE
from soulsai.sweeps.study import CONFIRMED, SweepStudy
from soulsai.sweeps.trial import close_quietly, popen

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

FRESH_SEED = 0x7377_6565
"""Used for nothing else, neither while training nor by `souls eval` unless asked for."""
LIMIT_S = 3600.0
POLL_S = 0.1


def to_confirm(trials: Sequence[FrozenTrial], best: int) -> list[FrozenTrial]:
    """The best trials, best first, and that of the preset's own settings."""
    from optuna.trial import TrialState

    done = [each for each in trials if each.state == TrialState.COMPLETE and each.value is not None]
    ordered = sorted(done, key=lambda each: (-float(each.value or 0.0), each.number))
    own = [each for each in ordered[best:] if each.user_attrs.get("preset")]
    return ordered[:best] + own


def confirm(study: SweepStudy, say: Callable[[str], None], stop: Callable[[], bool]) -> bool:
    """Measure the best trials again, those that are not yet; false if it was stopped."""
    plan = study.about.space.plan
    what = "fights" if study.about.metric == WIN_RATE else "episodes"
    chosen = to_confirm(study.study.get_trials(deepcopy=False), plan.best)
    for trial in chosen:
        kept = study.study.user_attrs.get(f"{CONFIRMED}/{trial.number}")
        if kept and kept["fights"] >= plan.fights:
            continue
        folder = study.folder / str(trial.user_attrs.get("folder", ""))
        if not (folder / "config.toml").exists():
            say(f"trial {trial.number}: its run is not on this machine and cannot be measured again here")
            continue
        say(f"trial {trial.number}: measuring again in {plan.fights:,} fresh {what}")
        try:
            found = _measured(folder, plan.fights, stop)
        except RunError as error:
            say(str(error))  # The others still can be.
            continue
        if found is None:
            return False
        study.keep_confirmed(trial.number, found)
    return True


def _measured(folder: Path, fights: int, stop: Callable[[], bool]) -> dict[str, Any] | None:
    words = ["eval", str(folder), "--fights", str(fights), "--seed", str(FRESH_SEED), "--json"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = popen([*one_trial.CHILD, *words], out, errors)
        try:
            code = _code(process, folder, stop)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            close_quietly(process.stdin)
        if code is None:
            return None
        out.seek(0)
        errors.seek(0)
        if code != 0:
            said = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise RunError(f"{folder}: could not be measured again: {said.removeprefix('souls: ') or code}")
        return counted_wins(json.loads(out.read().decode().strip().rpartition("\n")[2]))


def _code(process: subprocess.Popen[bytes], folder: Path, stop: Callable[[], bool]) -> int | None:
    deadline_s = time.monotonic() + LIMIT_S
    while (code := process.poll()) is None:
        if stop():
            return None
        if time.monotonic() > deadline_s:
            raise RunError(f"{folder}: measuring it again took more than {LIMIT_S / 60:.0f} minutes; use fewer fights")
        time.sleep(POLL_S)
    return code


def counted_wins(found: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an evaluation: every fight won or lost, or every return."""
    if "returns" in found:
        return {"fights": len(found["returns"]), "returns": found["returns"]}
    from soulsai.evaluation.evaluation import Evaluation

    won = Evaluation.from_json(json.dumps(found)).won
    # One letter a fight: the same fights were fought by all, so that pairs can be compared.
    return {"fights": len(won), "won": "".join("1" if each else "0" for each in won)}


def rate_and_interval(kept: dict[str, Any], together: int) -> tuple[float, float, float]:
    """The figure, and its interval, where `together` of them are to hold with 95 %."""
    confidence = 1.0 - 0.05 / max(1, together)
    if "won" in kept:
        wins, fights = kept["won"].count("1"), len(kept["won"])
        return wins / fights, *wilson(wins, fights, confidence)
    returns = kept["returns"]
    mean = fmean(returns)
    half = normal_quantile(confidence) * stdev(returns) / math.sqrt(len(returns)) if len(returns) > 1 else math.inf
    return mean, mean - half, mean + half


def better_by(best: dict[str, Any], other: dict[str, Any], together: int) -> tuple[float, float, float]:
    """How much the first is better, with an interval; both fought the same fights."""
    import numpy as np

    from soulsai.evaluation.statistics import paired_difference

    confidence = 1.0 - 0.05 / max(1, together)
    if "won" in best:
        a, b = (np.array([letter == "1" for letter in kept["won"]]) for kept in (best, other))
        shared = min(len(a), len(b))
        a, b = a[:shared], b[:shared]
        return float(a.mean() - b.mean()), *paired_difference(a, b, confidence)
    a, b = np.array(best["returns"]), np.array(other["returns"])
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    half = normal_quantile(confidence) * error
    middle = float(a.mean() - b.mean())
    return middle, middle - half, middle + half
