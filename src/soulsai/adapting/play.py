"""Plays in the target, the running game or a rehearsal of it, and records every step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.fighter import Fighter
from soulsgym.actions import NOTHING, controls_of
from soulsgym.engine import Engine, standard_starts
from soulsgym.errors import GameError
from soulsgym.recordings.recording import Recording
from soulsgym.state import Fights, Outcome, copied

MOST_STEPS = 3000
"""Of a fight; one that takes longer is lost."""
BROKEN_AT_MOST = 3
"""Fights in a row that the target may break off."""
KEEP_EVERY_S = 60.0

Step = tuple[Fights, int, int]
"""The record, the action that led to it, and the number of the fight."""


def play(
    engine: Engine,
    fighter: Fighter,
    *,
    keep: Callable[[Recording], None],
    steps: float = math.inf,
    fights: float = math.inf,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Fight after fight until so many steps or whole fights were played, or `stop` says so.

    `keep` gets what was recorded so far, now and then and at the end, however it ends; nothing if that is nothing.
    """
    records: list[Step] = []
    everyone, kept_s = np.ones(1, np.bool_), time.monotonic()
    number = played = over = broken = 0
    try:
        while played < steps and over < fights and not stop():
            if time.monotonic() - kept_s > KEEP_EVERY_S and len(records) > 1:
                keep(_recording(records))
                kept_s = time.monotonic()
            engine.reset(everyone, standard_starts(1), None)
            fighter.begin(engine.fights, everyone)
            first, action = len(records), NOTHING
            while True:
                records.append((copied(engine.fights), action, number))
                outcome, length = Outcome(int(engine.fights["outcome"][0])), len(records) - first - 1
                if outcome is not Outcome.RUNNING or length == MOST_STEPS or played >= steps or stop():
                    break
                chosen: npt.NDArray[np.int64] = fighter.act(engine.fights)
                action = int(chosen[0])
                engine.step(controls_of(chosen))
                played += 1
            broken = broken + 1 if outcome is Outcome.BROKEN else 0
            if broken:  # what was seen until then is true
                del records[-1:]
            over += _is_over(outcome, length)
            number += len(records) > first
            if broken > BROKEN_AT_MOST:
                raise GameError(f"the game broke off a fight {broken} times in a row; run souls doctor")
    finally:
        if len(records) > 1:
            keep(_recording(records))


def steps_of(recordings: Sequence[Recording]) -> int:
    """Steps that were played: the first record of a fight is none."""
    return sum(len(each) - len(each.bounds()) for each in recordings)


def wins(recordings: Sequence[Recording]) -> tuple[int, int]:
    """Fights that were won, and those that were fought to their end."""
    ends = [
        Outcome(int(each.fights["outcome"][high - 1]))
        for each in recordings
        for low, high in each.bounds()
        if _is_over(Outcome(int(each.fights["outcome"][high - 1])), high - low - 1)
    ]
    return ends.count(Outcome.WON), len(ends)


def _is_over(outcome: Outcome, length: int) -> bool:
    return length >= MOST_STEPS or outcome not in (Outcome.RUNNING, Outcome.BROKEN)


def _recording(records: Sequence[Step]) -> Recording:
    fights, actions, episodes = zip(*records, strict=True)
    return Recording(np.concatenate(fights), np.array(actions, np.int64), np.array(episodes, np.int64))
