"""What recordings show, fight by fight: the boss's labels with their moments, and the blows that landed.

Moments are ticks since the fight's start, six of them a step. A label's begin is exact to the tick, since the
observation tells how long it has been shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import RecordingError
from soulsgym.labels import label_begins, without_unknown_labels
from soulsgym.recordings.recording import Recording
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.game import boss_moves_by_animation
from soulsgym.state import Fights

UNKNOWN = -1
"""No label, or no move of the file."""
ATTACK_KINDS = ("attack", "hop")
BROKEN_OFF = ("open", "parried", "executed")
"""Kinds of moves that end the one before, whatever it was."""

Array = npt.NDArray[Any]


@dataclass
class Span:
    """A label of the boss from where it appears to where the next one does.

    `start` is when its move really begins: what is chosen while the attack before recovers is shown early.
    """

    label: int
    phase: int
    move: int  # of the file, or UNKNOWN
    kind: str  # of the move; "attack" for a label that the file has no move for, "" for no label at all
    first: int  # record
    last: int
    begin: int  # tick
    end: int  # tick; -1 where the fight ends before the next label
    start: int = 0
    linked: bool = False
    is_sure: bool = True  # is the start seen, or guessed by the file?

    @property
    def key(self) -> tuple[int, int]:
        """A label is another move in another phase."""
        return self.phase, self.label

    @property
    def is_attack(self) -> bool:
        """Is it a blow, as far as we know?"""
        return self.kind in ATTACK_KINDS

    @property
    def shown(self) -> int:
        """Ticks that it was shown."""
        return self.end - self.begin


@dataclass(frozen=True)
class Blow:
    """Damage that the player took: when, how much, and the reaction it caused."""

    tick: int
    record: int
    damage: float
    reaction: str  # label of the player; empty where the moment is known to the step alone
    is_fatal: bool
    is_guarded: bool


@dataclass
class Bout:
    """One recorded fight."""

    fights: Fights
    actions: npt.NDArray[np.int64]
    ticks: npt.NDArray[np.int64]
    """The moment of every record."""
    spans: list[Span]
    blows: list[Blow] = field(default_factory=list)

    def at(self, ticks: Array, thrown: int | None = None) -> tuple[Array, Array]:
        """Poses (x, y, heading) of boss and player at moments between the records.

        Records from the tick `thrown` on do not tell where the player was before: a blow threw him about.
        """
        knots, player = self._player_until(thrown)
        return _between(self.ticks, self.fights["boss_pose"], ticks), _between(knots, player, ticks)

    def blur_m(self, ticks: Array, thrown: int | None = None) -> Array:
        """How far off the player's place, seen from the boss, may be at moments between the records."""
        knots, player = self._player_until(thrown)
        boss = self.fights["boss_pose"]
        away = np.hypot(*np.subtract(*(poses[:, :2] for poses in self.at(ticks, thrown))).T)
        turn = np.unwrap(boss[:, 3:].astype(np.float64), axis=0)
        blur: Array = (
            _blur(knots, player[:, :2], ticks)
            + _blur(self.ticks, boss[:, :2], ticks)
            + away * _blur(self.ticks, turn, ticks)
        )
        return blur

    def _player_until(self, thrown: int | None) -> tuple[Array, Array]:
        """Moments and poses of the player, from `thrown` on as he would have gone on."""
        player = self.fights["player_pose"]
        if thrown is None:
            return self.ticks, player
        count = max(int(np.searchsorted(self.ticks, thrown)), 2)
        ahead = 2.0 * player[count - 1] - player[count - 2]
        knots = np.append(self.ticks[:count], self.ticks[count - 1] + TICKS_PER_STEP)
        return knots, np.concatenate([player[:count], ahead[None]])


def _blur(knots: Array, values: Array, ticks: Array) -> Array:
    """A curve through records is off by up to an eighth of what the speed changes, most in the middle between them."""
    change = np.zeros(len(knots))
    change[1:-1] = np.sqrt((np.diff(values.astype(np.float64), 2, axis=0) ** 2).sum(axis=1))
    where = np.clip(np.searchsorted(knots, ticks, side="right") - 1, 0, len(knots) - 2)
    share = np.clip((ticks - knots[where]) / TICKS_PER_STEP, 0.0, 1.0)
    most = np.maximum(change[np.maximum(where - 1, 0)], np.maximum(change[where], change[where + 1]))
    return np.asarray(0.5 * share * (1.0 - share) * most)


def _between(knots: Array, poses: Array, ticks: Array) -> Array:
    """Poses between records: a curve through their places, and headings the short way round."""
    values = poses[:, [0, 1, 3]].astype(np.float64)
    values[:, 2] = np.unwrap(values[:, 2])
    slopes = np.gradient(values, knots, axis=0)
    where = np.clip(np.searchsorted(knots, ticks, side="right") - 1, 0, len(knots) - 2)
    lasts = (knots[where + 1] - knots[where])[:, None]
    share = np.clip((ticks - knots[where])[:, None] / lasts, 0.0, 1.0)
    square, cube = share**2, share**3
    curve: Array = (
        (2 * cube - 3 * square + 1) * values[where]
        + (cube - 2 * square + share) * lasts * slopes[where]
        + (3 * square - 2 * cube) * values[where + 1]
        + (cube - square) * lasts * slopes[where + 1]
    )
    return curve


def read_bouts(recordings: Sequence[Recording], spec: FightSpec) -> list[Bout]:
    """The fights of the recordings that hold a record of every step."""
    bouts = []
    for recording in recordings:
        for low, high in recording.bounds():
            fights = recording.fights[low:high]
            if high - low > 2 and np.diff(fights["step"]).max() <= 1:
                bouts.append(_read(without_unknown_labels(fights, spec), recording.actions[low:high], spec))
    if not bouts:
        raise RecordingError(
            f"{', '.join(recording.source for recording in recordings)}: no fight has a record of every step; "
            "record without skipping steps"
        )
    return bouts


def _read(fights: Fights, actions: npt.NDArray[np.int64], spec: FightSpec) -> Bout:
    tick_s = spec.player.label_s_per_step / TICKS_PER_STEP
    ticks = _ticks(fights, tick_s)
    moves_by_phase, moves, names = boss_moves_by_animation(spec.boss), spec.boss.moves, spec.boss_animations
    label, shown_s = fights["boss_animation"], fights["boss_animation_duration"][:, 0].astype(float)
    firsts = np.flatnonzero(label_begins(label, shown_s)).tolist()
    begins = [int(ticks[first]) - round(shown_s[first] / tick_s) for first in firsts]
    spans = []
    for number, (first, begin) in enumerate(zip(firsts, begins, strict=True)):
        is_last = number + 1 == len(firsts)
        phase = min(max(int(fights["phase"][first]), 1), len(moves_by_phase))
        name = names[label[first]] if 0 <= label[first] < len(names) else ""
        move = moves_by_phase[phase - 1].get(name, UNKNOWN) if name else UNKNOWN
        kind = moves[move].kind if move >= 0 else "attack" if name else ""
        last, end = (len(fights) - 1, -1) if is_last else (firsts[number + 1] - 1, begins[number + 1])
        spans.append(Span(int(label[first]), phase, move, kind, first, last, begin, end, start=begin))
    return Bout(fights, actions, ticks, spans, _blows(fights, ticks, spec, tick_s))


def _ticks(fights: Fights, tick_s: float) -> npt.NDArray[np.int64]:
    """The moment of every record: a fight ends within its last step, when the clock of the boss's label stops."""
    ticks = np.arange(len(fights)) * TICKS_PER_STEP
    label, shown_s = fights["boss_animation"][-2:], fights["boss_animation_duration"][-2:, 0].astype(float)
    passed = round((shown_s[1] - shown_s[0]) / tick_s)
    if label[0] == label[1] and 0 < passed < TICKS_PER_STEP:
        ticks[-1] = ticks[-2] + passed
    return ticks


def _blows(fights: Fights, ticks: npt.NDArray[np.int64], spec: FightSpec, tick_s: float) -> list[Blow]:
    label, shown_s = fights["player_animation"], fights["player_animation_duration"][:, 0].astype(float)
    names = [animation.name for animation in spec.player_animations]
    reactions = {move.animation for move in spec.player.moves if move.kind in ("reaction", "grabbed")}
    reactions |= set(spec.player.flinch_animations)
    parries = {move.animation for move in spec.player.moves if move.kind == "parry"}
    begins, hp = label_begins(label, shown_s), fights["player_hp"][:, 0]
    blows = []
    for i in range(1, len(fights)):
        damage = float(hp[i - 1] - hp[i])
        name = names[label[i]] if 0 <= label[i] < len(names) else ""
        reacts = bool(begins[i]) and name in reactions
        if damage <= 0.0 and not reacts:
            continue
        tick = int(ticks[i]) - (round(shown_s[i] / tick_s) if reacts else 0)
        guarded = not reacts and name in parries
        blows.append(Blow(tick, i, damage, name if reacts else "", bool(hp[i] <= 0.0), guarded))
    return blows
