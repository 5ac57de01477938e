"""Compile what fights and trainings run, and keep it beside the sources: `make test` does this while it checks types.

Every process of the tests would else compile the same functions, for about a minute each.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from soulsai.adapting.play import play
from soulsai.evaluation.fighter import ScriptedFighter
from soulsai.runtime import Fleet
from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.recordings.fidelity import measure_fidelity
from soulsgym.recordings.recording import Recording
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

SHORT = ("run.steps=600", "run.threads=1", "run.evaluate_every_steps=0", "run.final_fights=1")
Q = ("q.warmup_steps=64", "run.steps=1500")
LEARNERS: dict[str, tuple[str, ...]] = {"smoke": (), "smoke-q": Q, "rainbow": Q}


def watch_and_play() -> None:
    """What recordings are compared with, and a fight of a person, who acts between two steps."""
    spec, recordings = load_fight("iudex"), list[Recording]()
    play(SimEngine(spec, 1), ScriptedFighter("duellist"), keep=recordings.append, steps=300)
    measure_fidelity(recordings[-1], spec)
    engine = SimEngine(spec, 1)
    engine.reset(np.ones(1, np.bool_), standard_starts(1))
    engine.tick(ACTION_CONTROLS[[NOTHING]], 0)


def main() -> None:
    """Train a little with each of the learners, and look at fights."""
    with tempfile.TemporaryDirectory() as place:
        for preset, settings in LEARNERS.items():
            Fleet.begin(preset, Path(place) / preset, [*SHORT, *settings], check=False).train()
    watch_and_play()


if __name__ == "__main__":
    sys.exit(main())
