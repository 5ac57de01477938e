"""How the episodes of training went: returns by term, lengths, wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.experience import Ended
from soulsgym.batch import State, Step

WINDOW = 200
"""Episodes the averages are taken over."""
GAME_S_PER_STEP = 0.1


class Recent:
    """The last values of a series."""

    def __init__(self, width: int = 1) -> None:
        self.values = np.zeros((WINDOW, width))
        self.count = np.zeros(1, np.int64)

    def add(self, rows: npt.NDArray[np.float64]) -> None:
        """Append rows, forgetting the oldest."""
        slots = (self.count[0] + np.arange(len(rows))) % WINDOW
        self.values[slots] = rows
        self.count[0] += len(rows)

    def mean(self) -> npt.NDArray[np.float64]:
        """Mean of each column over what is remembered."""
        kept = self.values[: min(int(self.count[0]), WINDOW)]
        return np.asarray(kept.mean(axis=0)) if len(kept) else np.full(self.values.shape[1], np.nan)

    def __len__(self) -> int:
        return min(int(self.count[0]), WINDOW)


class Running:
    """Sums up `n` running episodes."""

    def __init__(self, n: int, terms: int) -> None:
        self.terms = np.zeros((n, terms))
        self.lengths = np.zeros(n, np.int64)
        self._ended: list[Ended] = []

    def add(self, step: Step) -> None:
        """Take in a step."""
        self.terms += step.terms
        self.lengths += step.steps
        if not step.ended.any():
            return
        which = np.flatnonzero(step.ended)
        self._ended.append(
            Ended(self.terms[which], self.lengths[which], step.standard[which], step.won[which], step.truncated[which])
        )
        self.terms[which] = 0.0
        self.lengths[which] = 0

    def take(self) -> Ended:
        """Those that ended since the last time."""
        ended, self._ended = Ended.join(self._ended, self.terms.shape[1]), []
        return ended

    def state(self) -> State:
        """The sums of the episodes that run; what ended is taken before."""
        return {"terms": self.terms.copy(), "lengths": self.lengths.copy()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on counting from a state."""
        self.terms[:], self.lengths[:] = state["terms"], state["lengths"]


class Episodes:
    """Episodes that ended. Wins are counted among fights that began in the standard way."""

    def __init__(self, term_names: tuple[str, ...], *, fights: bool) -> None:
        self.term_names, self.fights = term_names, fights
        self._recent = {"terms": Recent(len(term_names)), "length": Recent(), "won": Recent(), "timed_out": Recent()}
        self._totals = np.zeros(3, np.int64)  # episodes, wins, time-outs

    @property
    def episodes(self) -> int:
        """Episodes that ended."""
        return int(self._totals[0])

    @property
    def recent_wins(self) -> tuple[int, int]:
        """Wins among the last standard fights, and how many fights those are."""
        won = self._recent["won"]
        return (round(float(won.mean()[0]) * len(won)), len(won)) if len(won) else (0, 0)

    def record(self, ended: Ended) -> None:
        """Take in episodes that ended."""
        self._recent["terms"].add(ended.terms[-WINDOW:])
        self._recent["length"].add(ended.lengths[-WINDOW:, None].astype(np.float64))
        self._totals[0] += len(ended.lengths)
        if self.fights:
            won, timed_out = ended.won[ended.standard], ended.timed_out[ended.standard]
            self._recent["won"].add(won[-WINDOW:, None].astype(np.float64))
            self._recent["timed_out"].add(timed_out[-WINDOW:, None].astype(np.float64))
            self._totals[1] += int(won.sum())
            self._totals[2] += int(timed_out.sum())

    def metrics(self) -> dict[str, float]:
        """Averages over the last episodes, by metric name; nothing before the first has ended."""
        if not self.episodes:
            return {}
        terms, length = self._recent["terms"].mean(), float(self._recent["length"].mean()[0])
        values = {"return/training": float(terms.sum()), "episode/length": length, "episodes": float(self.episodes)}
        if self.fights:
            values |= {f"reward/{name}": float(value) for name, value in zip(self.term_names, terms, strict=True)}
            values |= {"episode/time_s": length * GAME_S_PER_STEP}
            values |= {"wins": float(self._totals[1]), "time_outs": float(self._totals[2])}
            if len(self._recent["won"]):
                values["win_rate/training"] = float(self._recent["won"].mean()[0])
        return values

    def state(self) -> State:
        """Everything counted so far."""
        state: State = {"totals": self._totals.copy()}
        for name, recent in self._recent.items():
            state |= {f"{name}.values": recent.values.copy(), f"{name}.count": recent.count.copy()}
        return state

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on counting from a state."""
        self._totals[:] = state["totals"]
        for name, recent in self._recent.items():
            recent.values[:], recent.count[:] = state[f"{name}.values"], state[f"{name}.count"]
