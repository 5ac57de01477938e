"""FightRecorder: keeps the records of the first fights of an evaluation while it is played."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soulsai.evaluation.evaluation import EvaluationSettings, evaluation_seeds
from soulsai.evaluation.fighter import Int64s
from soulsgym.actions import NOTHING
from soulsgym.envs.simulated import FightSettings
from soulsgym.errors import MisuseError
from soulsgym.recordings.exact import simulation_of
from soulsgym.recordings.recording import Recording, Simulation
from soulsgym.spec import is_path
from soulsgym.state import FIGHT, Fights, Outcome, copied

FIGHTS = 64
"""Enough for a loss to be among them until an agent is very good; more would only cost memory."""


class FightRecorder:
    """Remembers the first `fights` of an evaluation: one small copy a step, and nothing once those are over.

    A record takes about 300 bytes, so 64 fights of 60 s take about 12 MB until the recorder is forgotten.
    """

    def __init__(self, fights: int = FIGHTS) -> None:
        if fights < 1:
            raise MisuseError(f"a recorder of {fights} fights is not possible; give 1 or more")
        self.most = fights
        self.settings: EvaluationSettings | None = None
        self._recordings: list[Recording] = []
        self._watched, self._settled = 0, False
        self._before: list[Fights] = []
        self._actions: list[Int64s] = []

    def begin(self, settings: EvaluationSettings, first: int, count: int) -> None:
        """The fights `first`, `first` + 1, ... begin; those of a try that was broken off are forgotten."""
        if first == 0:
            self._recordings = []
        self.settings = settings
        self._watched = max(0, min(count, self.most - first))
        self._before, self._actions, self._settled = [], [], False

    def add(self, before: Fights, actions: Int64s) -> None:
        """A step: the records before it, which nobody changes any more, and what was done."""
        number = self._watched
        if number == 0 or self._settled:
            return
        # Once more after the last has ended: later on the engine forgets what happened in its last step.
        self._settled = not (before["outcome"][:number] == Outcome.RUNNING).any()
        # A slice would keep the whole batch alive.
        self._before.append(before if len(before) == number else copied(before[:number]))
        self._actions.append(actions[:number].copy())

    def end(self, fights: Fights) -> None:
        """The round is over with these records."""
        if self._watched and self._before:
            steps = np.array([step.view(np.uint8) for step in (*self._before, copied(fights[: self._watched]))])
            records = steps.reshape(len(steps), self._watched, -1)  # as plain bytes, which NumPy copies much faster
            actions = np.array([np.full(self._watched, NOTHING), *self._actions])
            played = 1 + (steps.view(FIGHT)["outcome"][:-1] == Outcome.RUNNING).sum(axis=0)
            for row, count in enumerate(played.tolist()):
                own, done = records[:count, row].copy().view(FIGHT)[:, 0], actions[:count, row].copy()
                name = f"fight {len(self)} of an evaluation"
                self._recordings.append(Recording(own, done, np.zeros(count, np.int64), name))
        self._watched, self._before, self._actions = 0, [], []

    def __len__(self) -> int:
        return len(self._recordings)

    def fight(self, number: int, *, own_files: bool = False) -> Recording:
        """One of those that were seen, from its start to its end.

        With `own_files` fights with files of the user can be repeated too, as long as those lie where they are.
        """
        if not 0 <= number < len(self):
            raise MisuseError(f"fight {number} was not seen, only {len(self)} were; give 0 to {len(self) - 1}")
        return replace(self._recordings[number], simulation=self._simulation(number, own_files))

    def lost_fights(self) -> list[int]:
        """The numbers of those that were lost; RUNNING at the end is lost by the step limit."""
        return [i for i, each in enumerate(self._recordings) if each.fights["outcome"][-1] != Outcome.WON]

    def _simulation(self, number: int, own_files: bool) -> Simulation | None:
        """What repeats a fight to the last bit: none in the game, with a rule of our own, or with files of the user."""
        settings = self.settings
        if settings is None or settings.engine != "sim" or settings.no_hit:
            return None
        if settings.draw_seeds or (not own_files and (is_path(settings.boss) or is_path(settings.variant))):
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
