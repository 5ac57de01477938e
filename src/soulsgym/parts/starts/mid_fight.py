"""Fights that begin somewhere in the middle: with health lost on both sides, perhaps in a later phase."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.parts.registry import make_part, register, resolve
from soulsgym.parts.starts.curriculum import Cells, Curriculum, make_cells
from soulsgym.parts.starts.starts import Flags, RandomPose, StandardStarts, Starts, State
from soulsgym.spec import FightSpec

WHOLE = -1
"""Cell of a fight that did not begin in the middle."""


class MidFight:
    """Turns a share of other starts into mid-fight ones; the curriculum says from which cells."""

    def __init__(
        self,
        inner: Starts,
        n: int,
        spec: FightSpec,
        *,
        share: float,
        cells: Cells,
        player_hp_share: tuple[float, float],
        curriculum: Curriculum,
    ) -> None:
        self._inner, self._share, self._cells, self._curriculum = inner, share, cells, curriculum
        self._player_hp_share, self._boss_hp, self._player_hp = player_hp_share, spec.boss.hp, spec.player.hp
        self._starts = standard_starts(n)
        self._cell_of = np.full(n, WHOLE, np.int64)

    @property
    def is_standard(self) -> Flags:
        """Fights that did not begin in the middle."""
        whole: Flags = self._cell_of == WHOLE
        return whole & self._inner.is_standard

    def draw(self, mask: Flags, generator: np.random.Generator) -> npt.NDArray[Any]:
        """Starts for the fights of `mask`; which are in the middle is drawn for each."""
        which = np.flatnonzero(mask)
        if len(which):
            self._starts[which] = self._inner.draw(mask, generator)[which]
            chances = generator.random((4, len(which)))
            middle = chances[0] < self._share
            self._cell_of[which] = WHOLE
            self._begin_in_middle(which[middle], chances[1:, middle])
        return self._starts

    def _begin_in_middle(self, which: npt.NDArray[np.intp], chances: npt.NDArray[np.float64]) -> None:
        cells, (player_low, player_high) = self._cells, self._player_hp_share
        bounds = np.cumsum(self._curriculum.weights())
        cell = np.searchsorted(bounds[:-1], chances[0], side="right")
        boss_share = cells.low[cell] + (cells.high[cell] - cells.low[cell]) * chances[1]
        player_share = player_low + (player_high - player_low) * chances[2]
        self._cell_of[which] = cell
        self._starts["phase"][which] = cells.phase[cell]
        # Whole points, rounded down so that a share below a threshold stays below it.
        self._starts["boss_hp"][which] = np.maximum(np.floor(boss_share * self._boss_hp), 1.0)
        self._starts["player_hp"][which] = np.maximum(np.floor(player_share * self._player_hp), 1.0)

    def report(self, ended: Flags, won: Flags) -> None:
        """Let the curriculum hear of the mid-fight starts among the fights that ended."""
        self._inner.report(ended, won)
        told = ended & (self._cell_of != WHOLE)
        if told.any():
            self._curriculum.learn(self._cell_of[told], won[told])

    def state(self) -> State:
        """Copies of everything remembered between calls."""
        return {**self._inner.state(), "cells": self._cell_of.copy(), "win_rates": self._curriculum.rates.copy()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""
        cells, rates = state["cells"], state["win_rates"]
        if cells.shape != self._cell_of.shape or rates.shape != self._curriculum.rates.shape:
            raise MisuseError(
                f"starts of {len(cells)} fights and {len(rates)} cells do not fit {len(self._cell_of)} and "
                f"{len(self._cells)}; restore them with the settings they were saved with"
            )
        self._inner.restore(state)
        self._cell_of[:] = cells
        self._curriculum.rates = rates.astype(np.float64)


def make_starts(given: Any, n: int, spec: FightSpec, *, full: bool = True, phase: int = 1) -> Starts:
    """The starts that are meant by `given`, for `n` fights that begin in `phase` and with `full` go through all others.

    That is a name; a table of `name` (left out: standard) and settings; an object that follows `Starts`; or a class or
    function that makes one of `n` and `spec`, and of `full` and `phase` if it takes them.
    """
    part, settings = resolve("starts", given, key="name", default="standard")
    if callable(part):
        taken = inspect.signature(part).parameters
        settings = {name: value for name, value in (("full", full), ("phase", phase)) if name in taken} | settings
    starts: Starts = make_part("starts", part, n, spec, keys=("name",), **settings)
    return starts


@register("starts", "standard")
def starts_of(
    n: int,
    spec: FightSpec,
    *,
    random_pose: bool = False,
    mid_fight: float = 0.0,
    boss_hp_share: tuple[float, float] = (0.05, 1.0),
    player_hp_share: tuple[float, float] = (0.3, 1.0),
    late_phase: float = 0.8,
    curriculum: float = 0.0,
    full: bool = True,
    phase: int = 1,
) -> Starts:
    """Whole fights, and a share of middles; if not `full` the boss stays in `phase` there too."""
    for name, share in (("mid_fight", mid_fight), ("late_phase", late_phase), ("curriculum", curriculum)):
        if not 0.0 <= share <= 1.0:
            raise MisuseError(f"{name} {share} is out of range; give 0.0 to 1.0")
    _check_between("boss_hp_share", boss_hp_share)
    _check_between("player_hp_share", player_hp_share)
    whole = RandomPose(n) if random_pose else StandardStarts(n)
    if mid_fight == 0.0:
        return whole
    cells = make_cells(spec, boss_hp_share, late_phase=late_phase, full=full, phase=phase)
    return MidFight(
        whole,
        n,
        spec,
        share=mid_fight,
        cells=cells,
        player_hp_share=player_hp_share,
        curriculum=Curriculum(cells.share, curriculum),
    )


def _check_between(name: str, shares: tuple[float, ...]) -> None:
    if len(shares) != 2 or not 0.0 <= shares[0] <= shares[1] <= 1.0:
        raise MisuseError(f"{name} {shares} is not possible; give the lowest and the highest share, within 0.0 to 1.0")
