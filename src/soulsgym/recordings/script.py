"""What the boss really did, read from the labels it showed.

The game shows the attack it has decided on. Chosen while the attack before is still recovering, its label leads the
real beginning by up to 0.96 s; in a chain, and out of standing, walking or turning, the label tells the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.labels import boss_moves_by_label, label_begins
from soulsgym.sim.replay import SCRIPT
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import Boss
from soulsgym.state import Fights

NEARLY_OVER_S = 0.05
"""An attack with no more than this left counts as over."""


@dataclass(frozen=True)
class LabelSpan:
    """A label from where it appears to where the next one does.

    `lasted_s` is counted from where the move really began; it is NaN for the last label of an episode.
    """

    move: int
    first: int
    last: int
    lasted_s: float
    lead_s: float
    linked: bool
    known: bool


@dataclass(frozen=True)
class Script:
    """The moves of an episode, for the kernel and one by one."""

    entries: npt.NDArray[Any]
    spans: tuple[LabelSpan, ...]
    moves_by_label: dict[int, int]

    def move_at(self, tick: float) -> int:
        """The move under way at a moment, in ticks since the episode's start."""
        begun = np.flatnonzero(self.entries["tick"] <= tick)
        return int(self.entries["move"][begun[-1] if len(begun) else 0])


def follow_ups(boss: Boss) -> dict[tuple[int, int], tuple[int, float]]:
    """By (move, next move): the row of that link in the packed table, and how near the player must be."""
    names = [move.name for move in boss.moves]
    found: dict[tuple[int, int], tuple[int, float]] = {}
    row = 0
    for phase in boss.phases:
        for act in phase.acts:
            for chain in act.chains:
                before = act.first_move
                for link in chain.links:
                    found.setdefault((names.index(before), names.index(link.move)), (row, link.within_m))
                    before, row = link.move, row + 1
    return found


def boss_script(fights: Fights, spec: FightSpec, tick_s: float) -> Script:
    """Read one episode."""
    reader = _Reader(spec, tick_s)
    label, shown_s = fights["boss_animation"], fights["boss_animation_duration"][:, 0].astype(float)
    firsts = np.flatnonzero(label_begins(label, shown_s)).tolist()
    spans = []
    for first, end in zip(firsts, [*firsts[1:], len(fights)], strict=True):
        known = boss_moves_by_label(spec, int(fights["phase"][first]))
        move = known.get(int(label[first]), reader.idle)
        lead_s, linked = reader.begin(move, TICKS_PER_STEP * first - shown_s[first] / tick_s)
        lasted_s = math.nan
        if end < len(fights):
            lasted_s = shown_s[end - 1] + TICKS_PER_STEP * tick_s - shown_s[end] - lead_s
        # Where a recording begins in the middle of a move, nobody knows by how much its label led.
        whole = first > 0 or shown_s[0] <= TICKS_PER_STEP * tick_s
        spans.append(LabelSpan(move, first, end - 1, lasted_s, lead_s, linked, whole and int(label[first]) in known))
    return Script(_packed(reader.starts, tick_s), tuple(spans), boss_moves_by_label(spec, int(fights["phase"][0])))


class _Reader:
    """Follows the labels and keeps the moves that really began, with their moments in ticks."""

    def __init__(self, spec: FightSpec, tick_s: float) -> None:
        self.idle = spec.boss.move_index("idle")
        self.starts: list[tuple[float, int]] = []
        self._moves, self._links, self._tick_s = spec.boss.moves, follow_ups(spec.boss), tick_s

    def begin(self, move: int, shown_at: float) -> tuple[float, bool]:
        """A label appears: by how much it leads its move, and whether it is the next of a chain."""
        at, linked = shown_at, False
        if self.starts:
            began_at, running = self.starts[-1]
            before = self._moves[running]
            over_at = began_at + before.end_s / self._tick_s
            recovering = before.kind == "attack" and (over_at - shown_at) * self._tick_s > NEARLY_OVER_S
            linked = recovering and (running, move) in self._links
            waits = self._moves[move].kind in ("attack", "idle") and before.grab_move != self._moves[move].name
            if recovering and waits and not linked:
                at = over_at
        if self.starts and self.starts[-1][0] >= at:
            self.starts.pop()
        self.starts.append((at, move))
        return (at - shown_at) * self._tick_s, linked


def _packed(starts: list[tuple[float, int]], tick_s: float) -> npt.NDArray[Any]:
    rows = np.zeros(len(starts), SCRIPT)
    for row, (at, move) in zip(rows, starts, strict=True):
        row["tick"] = max(0, math.ceil(at - 1e-6))
        row["offset_s"], row["move"] = (row["tick"] - at) * tick_s, move
    return rows
