"""Witness: keeps the records of the first fights of an evaluation while it is played."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.evaluation import EvaluationSettings
from soulsai.evaluation.seeds import evaluation_seeds
from soulsgym.actions import ACTION_CONTROLS, NOTHING, Controls
from soulsgym.envs.simulated import FightSettings
from soulsgym.errors import MisuseError
from soulsgym.recordings.exact import simulation_of
from soulsgym.recordings.recording import Recording, Simulation
from soulsgym.spec import is_path
from soulsgym.state import FIGHT, Fights, Outcome, copied

RUNNING = int(Outcome.RUNNING)
FIGHTS = 64
"""Enough for a loss to be among them until an agent is very good; more would only cost memory."""


@dataclass(frozen=True)
class SeenFight:
    """One fight of an evaluation, from its start to its end."""

    number: int  # among those of the evaluation, from 0
    recording: Recording

    @property
    def outcome(self) -> Outcome:
        """How it ended; RUNNING if the step limit ended it."""
        return Outcome(int(self.recording.fights["outcome"][-1]))

    @property
    def lost(self) -> bool:
        """Whether it counts as lost."""
        return self.outcome != Outcome.WON


@dataclass(frozen=True)
class _Round:
    """Fights played side by side: what stood before every step, what was pressed, and what stood at the end."""

    first: int
    before: list[Fights]
    pressed: list[Controls]
    last: Fights


class Witness:
    """Remembers the first `fights` of an evaluation: one small copy a step, and nothing once those are over.

    A record takes about 300 bytes, so 64 fights of 60 s take about 12 MB until the witness is forgotten.
    """

    def __init__(self, fights: int = FIGHTS) -> None:
        if fights < 1:
            raise MisuseError(f"a witness of {fights} fights is not possible; give 1 or more")
        self.most = fights
        self.settings: EvaluationSettings | None = None
        self._rounds: list[_Round] = []
        self._first, self._watched, self._settled = 0, 0, False
        self._before: list[Fights] = []
        self._pressed: list[Controls] = []

    def begin(self, settings: EvaluationSettings, first: int, count: int) -> None:
        """The fights `first`, `first` + 1, ... begin; those of a try that was broken off are forgotten."""
        if first == 0:
            self._rounds = []
        self.settings = settings
        self._first, self._watched = first, max(0, min(count, self.most - first))
        self._before, self._pressed, self._settled = [], [], False

    def add(self, before: Fights, controls: Controls) -> None:
        """A step: the records before it, which nobody changes any more, and what was pressed."""
        number = self._watched
        if number == 0 or self._settled:
            return
        # Once more after the last has ended: later on the engine forgets what happened in its last step.
        self._settled = not (before["outcome"][:number] == RUNNING).any()
        # A slice would keep the whole batch alive.
        self._before.append(before if len(before) == number else copied(before[:number]))
        self._pressed.append(controls if len(controls) == number else controls[:number].copy())

    def end(self, fights: Fights) -> None:
        """The round is over with these records."""
        if self._watched and self._before:
            last = copied(fights[: self._watched])
            self._rounds.append(_Round(self._first, self._before, self._pressed, last))
        self._watched, self._before, self._pressed = 0, [], []

    def __len__(self) -> int:
        return sum(len(each.last) for each in self._rounds)

    def fight(self, number: int) -> SeenFight:
        """One of those that were seen."""
        for each in self._rounds:
            if 0 <= number - each.first < len(each.last):
                recording = _recording(each, number - each.first)
                return SeenFight(number, replace(recording, simulation=self._simulation(number)))
        raise MisuseError(f"fight {number} was not seen, only {len(self)} were; give 0 to {len(self) - 1}")

    def _simulation(self, number: int) -> Simulation | None:
        """What repeats a fight to the last bit: none in the game, with a rule of our own, or with files of the user."""
        settings = self.settings
        if settings is None or settings.engine != "sim" or settings.no_hit:
            return None
        if settings.draw_seeds or is_path(settings.boss) or is_path(settings.variant):
            return None
        fight = FightSettings(
            boss=settings.boss,
            phase=settings.phase,
            changes=settings.full,
            random_player_pose=settings.random_pose,
            randomize=settings.randomize,
            variant=settings.variant,
        )
        return simulation_of(fight, evaluation_seeds(settings.seed, number, 1).tolist())

    def first(self) -> SeenFight | None:
        """The first fight; none before an evaluation has ended."""
        return self.fight(0) if len(self) else None

    def lost(self) -> list[int]:
        """The numbers of those that were lost."""
        return [
            each.first + int(i) for each in self._rounds for i in np.flatnonzero(each.last["outcome"] != Outcome.WON)
        ]


def _recording(played: _Round, row: int) -> Recording:
    """The records of one fight, with the action that led to each."""
    steps = bisect_left(played.before, True, key=lambda before: bool(before["outcome"][row] != RUNNING))
    records = [before[row] for before in [*played.before, played.last][: steps + 1]]
    # As plain bytes: NumPy joins records field by field, a hundred times slower.
    fights = np.frombuffer(bytearray().join(record.tobytes() for record in records), FIGHT)
    pressed = np.array([controls.view(np.uint16)[row] for controls in played.pressed[:steps]], np.uint16)
    actions = np.concatenate([[NOTHING], _numbers(pressed)]).astype(np.int64)
    return Recording(fights, actions, np.zeros(len(fights), np.int64), f"fight {played.first + row} of an evaluation")


def _numbers(pressed: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
    """The actions that press these controls."""
    pairs = ACTION_CONTROLS.view(np.uint16)
    order = np.argsort(pairs)
    found: npt.NDArray[np.int64] = order[np.searchsorted(pairs, pressed, sorter=order)]
    return found
