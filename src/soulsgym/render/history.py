"""What the last second leaves in the picture: trails, rising numbers, and the yellow rest of a bar that just shrank."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from soulsgym.geometry import wrap_angle
from soulsgym.render.areas import Point, Pose
from soulsgym.spec import FightSpec
from soulsgym.state import Outcome

TRAIL_STEPS = 9
POPUP_STEPS = 10
LOSS_SHARE_PER_STEP = 0.25
LOSS_WAITS_STEPS = 6
ROLL_MOVE, FALL_MOVE = -2, -3
"""What a record shows as the player's move while he rolls or falls."""


@dataclass(frozen=True)
class Trace:
    """Where both fighters were at a step."""

    step: int
    player: Point
    boss: Point
    rolling: bool
    invulnerable: bool


@dataclass(frozen=True)
class Popup:
    """A number or a word that rises from a place and fades."""

    step: int
    text: str
    kind: str
    at: Point
    side: float
    """To which side it rises, -1 or 1, so that those of the two fighters keep apart."""


@dataclass
class Loss:
    """The part of a bar that was lost just now, and slowly shrinks to what is left."""

    shown: float = 0.0
    hurt_step: int = -LOSS_WAITS_STEPS

    def notice(self, value: float, step: int, hurt: bool) -> None:
        """Follow the bar down, a moment after the last damage."""
        if hurt:
            self.hurt_step = step
        if value >= self.shown:
            self.shown = value
        elif step - self.hurt_step >= LOSS_WAITS_STEPS:
            self.shown += LOSS_SHARE_PER_STEP * (value - self.shown)


@dataclass(frozen=True)
class MoveSpan:
    """The part of a boss move that ran within the last step."""

    move: int
    from_s: float
    to_s: float

    def meets(self, from_s: float, to_s: float) -> bool:
        """Was a window of the move open meanwhile? Windows are shorter than a step: asking for now would miss them."""
        return from_s <= self.to_s and self.from_s < to_s


class History:
    """Remembers what a picture shows beside the record of the moment."""

    def __init__(self, spec: FightSpec) -> None:
        self._spec = spec
        self._last = b""
        self._clear()

    def _clear(self) -> None:
        self.step = -1
        self.traces: list[Trace] = []
        self.popups: list[Popup] = []
        self.spans: list[MoveSpan] = []
        """What the boss did in the last step: the end of one move, and the beginning of the next."""
        self.player_loss, self.boss_loss = Loss(), Loss()
        self.record: np.void | None = None
        self.before: np.void | None = None
        """The last record, and the one before it if it is that of the step before."""

    def notice(self, fight: np.void) -> tuple[bool, bool]:
        """Take in a record; tells whether it is another one than last time, and whether it begins a new fight."""
        content = fight.tobytes()
        if content == self._last:
            return False, False
        self._last = content
        step = int(fight["step"])
        begins = step <= self.step or self.step < 0 or step > self.step + TRAIL_STEPS
        if begins:
            self._clear()
        follows = step == self.step + 1
        self.spans = self.spans_of(fight, self.spans[-1] if self.spans and follows else None)
        self.before, self.record = self.record if follows else None, fight.copy()
        self.step = step
        player, boss = Pose.of(fight["player_pose"]).at, Pose.of(fight["boss_pose"]).at
        trace = Trace(step, player, boss, self._rolls(fight), bool(fight["invulnerable"]))
        self.traces = [*(old for old in self.traces if step - old.step < TRAIL_STEPS), trace]
        self.popups = [popup for popup in self.popups if step - popup.step < POPUP_STEPS]
        for text, kind in self._events(fight):
            at, other = (boss, player) if kind == "dealt" else (player, boss)
            self.popups.append(Popup(step, text, kind, at, 1.0 if at[0] > other[0] else -1.0))
        self.player_loss.notice(float(fight["player_hp"][0]), step, fight["damage_taken"] > 0.0)
        self.boss_loss.notice(float(fight["boss_hp"][0]), step, fight["damage_dealt"] > 0.0)
        return True, begins

    def at(self, share: float) -> np.void:
        """The last record as it was at a share of the step that led to it: poses and times lie in between."""
        assert self.record is not None
        if self.before is None or share >= 1.0:
            return self.record
        made, left_s = self.record.copy(), (1.0 - share) * self._spec.player.label_s_per_step
        for key in ("player_pose", "boss_pose", "camera_pose", "time_s"):
            way = self.record[key] - self.before[key]
            if key in ("player_pose", "boss_pose"):
                way[3] = wrap_angle(float(way[3]))
            made[key] = self.before[key] + share * way
        for key in ("player_move_s", "boss_move_s", "player_animation_duration", "boss_animation_duration"):
            made[key] = np.maximum(self.record[key] - left_s, 0.0)
        return made

    def traces_at(self, share: float) -> list[Trace]:
        """The traces with the last one where both fighters were at a share of the step."""
        fight = self.at(share)
        here = replace(self.traces[-1], player=Pose.of(fight["player_pose"]).at, boss=Pose.of(fight["boss_pose"]).at)
        return [*self.traces[:-1], here]

    def spans_of(self, fight: np.void, before: MoveSpan | None = None) -> list[MoveSpan]:
        """What the boss did in the step before a record; `before` is what he did until then."""
        move, move_s, step_s = int(fight["boss_move"]), float(fight["boss_move_s"]), self._spec.player.label_s_per_step
        spans = [MoveSpan(move, max(move_s - step_s, 0.0), move_s)] if move >= 0 else []
        if before is not None and (before.move != move or before.to_s > move_s):
            spans.insert(0, MoveSpan(before.move, before.to_s, before.to_s + max(step_s - move_s, 0.0)))
        return spans

    def _rolls(self, fight: np.void) -> bool:
        move = int(fight["player_move"])
        return move == ROLL_MOVE or (move >= 0 and self._spec.player.moves[move].kind == "roll")

    def _events(self, fight: np.void) -> list[tuple[str, str]]:
        """What happened in the step, in words, and of which kind it is: only `dealt` happens to the boss."""
        events = []
        if fight["damage_taken"] > 0.0 and fight["outcome"] != Outcome.FELL:
            events.append((f"-{fight['damage_taken']:.0f}", "hurt"))
        elif fight["hit_by"] >= 0:
            events.append(("GRABBED", "hurt"))
        if fight["dodged"] >= 0:
            events.append(("DODGED", "dodged"))
        if fight["damage_dealt"] > 0.0:
            events.append((f"-{fight['damage_dealt']:.0f}", "dealt"))
        move = int(fight["boss_move"])
        if move >= 0 and fight["boss_move_s"] < self._spec.player.label_s_per_step:
            word = {"parried": "PARRIED", "open": "STAGGERED"}.get(self._spec.boss.moves[move].kind)
            events += [(word, "dealt")] if word else []
        return events
