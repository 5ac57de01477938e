"""What the last second leaves in the picture: trails, rising numbers, and the yellow rest of a bar that just shrank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soulsgym.render.plan import Point
from soulsgym.spec import FightSpec
from soulsgym.state import Outcome

TRAIL_STEPS = 9
WORD_STEPS = 10
REST_SHARE_PER_STEP = 0.25
REST_WAITS_STEPS = 6
ROLL_MOVE = -2


@dataclass(frozen=True)
class Trace:
    """Where both fighters were at a step."""

    step: int
    player: Point
    boss: Point
    rolling: bool
    invulnerable: bool


@dataclass(frozen=True)
class Word:
    """A number or a word that rises from a place and fades."""

    step: int
    text: str
    kind: str
    at: Point
    away: float
    """To which side it rises, -1 or 1, so that those of the two fighters keep apart."""


@dataclass
class Rest:
    """The part of a bar that was lost just now and slowly follows the rest."""

    shown: float = 0.0
    hurt_step: int = -REST_WAITS_STEPS

    def notice(self, value: float, step: int, hurt: bool) -> None:
        """Follow the bar down, a moment after the last damage."""
        if hurt:
            self.hurt_step = step
        if value >= self.shown:
            self.shown = value
        elif step - self.hurt_step >= REST_WAITS_STEPS:
            self.shown += REST_SHARE_PER_STEP * (value - self.shown)


@dataclass(frozen=True)
class Stretch:
    """A stretch of a boss move that ran within the last step."""

    move: int
    from_s: float
    to_s: float

    def meets(self, from_s: float, to_s: float) -> bool:
        """Was a window of the move open meanwhile? Windows are shorter than a step: asking for now would miss them."""
        return from_s <= self.to_s and self.from_s < to_s


class Story:
    """Remembers what `Scene` shows beside the record of the moment."""

    def __init__(self, spec: FightSpec) -> None:
        self._spec = spec
        self._last = b""
        self._clear()

    def _clear(self) -> None:
        self.step = -1
        self.traces: list[Trace] = []
        self.words: list[Word] = []
        self.stretches: list[Stretch] = []
        """What the boss did in the last step: the end of one move, and the beginning of the next."""
        self.player_rest, self.boss_rest = Rest(), Rest()

    def notice(self, fight: np.void) -> tuple[bool, bool]:
        """Take in a record; tells whether it is another one than last time, and whether it begins a new story."""
        content = fight.tobytes()
        if content == self._last:
            return False, False
        self._last = content
        step = int(fight["step"])
        begins = step <= self.step or self.step < 0 or step > self.step + TRAIL_STEPS
        if begins:
            self._clear()
        self._add_stretches(fight, consecutive=step == self.step + 1)
        self.step = step
        self._add_trace(fight)
        self._add_words(fight)
        self.player_rest.notice(float(fight["player_hp"][0]), step, fight["damage_taken"] > 0.0)
        self.boss_rest.notice(float(fight["boss_hp"][0]), step, fight["damage_dealt"] > 0.0)
        return True, begins

    def _add_stretches(self, fight: np.void, *, consecutive: bool) -> None:
        move, move_s, step_s = (
            int(fight["boss_move"]),
            float(fight["boss_move_s"]),
            self._spec.player.label_s_per_step,
        )
        before = self.stretches[-1] if self.stretches and consecutive else None
        self.stretches = [Stretch(move, max(move_s - step_s, 0.0), move_s)] if move >= 0 else []
        if before is not None and (before.move != move or before.to_s > move_s):
            self.stretches.insert(0, Stretch(before.move, before.to_s, before.to_s + max(step_s - move_s, 0.0)))

    def _add_trace(self, fight: np.void) -> None:
        player, boss = _place(fight["player_pose"]), _place(fight["boss_pose"])
        self.traces = [trace for trace in self.traces if self.step - trace.step < TRAIL_STEPS]
        self.traces.append(Trace(self.step, player, boss, self._rolls(fight), bool(fight["invulnerable"])))

    def _rolls(self, fight: np.void) -> bool:
        move = int(fight["player_move"])
        return move == ROLL_MOVE or (move >= 0 and self._spec.player.moves[move].kind == "roll")

    def _add_words(self, fight: np.void) -> None:
        self.words = [word for word in self.words if self.step - word.step < WORD_STEPS]
        player, boss = _place(fight["player_pose"]), _place(fight["boss_pose"])
        for text, kind, place in self._events(fight, player, boss):
            other = boss if place is player else player
            self.words.append(Word(self.step, text, kind, place, 1.0 if place[0] > other[0] else -1.0))

    def _events(self, fight: np.void, player: Point, boss: Point) -> list[tuple[str, str, Point]]:
        events = []
        if fight["damage_taken"] > 0.0 and fight["outcome"] != Outcome.FELL:
            events.append((f"-{fight['damage_taken']:.0f}", "hurt", player))
        elif fight["hit_by"] >= 0:
            events.append(("GRABBED", "hurt", player))
        if fight["dodged"] >= 0:
            events.append(("DODGED", "dodged", player))
        if fight["damage_dealt"] > 0.0:
            events.append((f"-{fight['damage_dealt']:.0f}", "dealt", boss))
        move = int(fight["boss_move"])
        if move >= 0 and fight["boss_move_s"] < self._spec.player.label_s_per_step:
            word = {"parried": "PARRIED", "open": "STAGGERED"}.get(self._spec.boss.moves[move].kind)
            events += [(word, "dealt", boss)] if word else []
        return events


def _place(pose: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Point:
    return float(pose[0]), float(pose[1])
