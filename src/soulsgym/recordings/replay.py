"""Replays the episodes of a recording on the simulator's own kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_CONTROLS, NOTHING, Button
from soulsgym.engine import standard_starts
from soulsgym.labels import label_begins, player_labels, without_unknown_labels
from soulsgym.recordings.recording import Recording
from soulsgym.recordings.script import Script, boss_script
from soulsgym.sim.engine import SimEngine
from soulsgym.sim.hidden import FALL_MOVE, HIDDEN, NO_MOVE, ROLL_MOVE
from soulsgym.sim.kernels import follow_boss, follow_player
from soulsgym.sim.replay import (
    BLOW,
    BOSS_STEP,
    FLINCH_ROLE,
    GUARDED_BLOW,
    HIT_EVENT,
    NO_BLOW,
    PREDICTION,
)
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.state import FIGHT, Fights

HORIZON = 20
MAX_HITS = 4096

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Episode:
    """One recorded episode beside what the simulator does from its moments on.

    `predictions[i, h]` is the player h steps after the recorded moment i, `from_start[h]` the one who is never
    restarted.
    """

    number: int
    """Among the fights of its file, from 1."""
    fights: Fights
    pressed: npt.NDArray[np.int64]
    blows: Array
    predictions: Array
    from_start: Array
    script: Script
    boss_steps: Array
    boss_hits: Array


class Replay:
    """The simulator prepared to follow recordings of one fight."""

    def __init__(self, spec: FightSpec) -> None:
        self.spec = spec
        engine = SimEngine(spec, 1)
        engine.reset(np.ones(1, bool), standard_starts(1), np.zeros(1, np.uint64))
        self.tables, self.template = engine.tables, engine.hidden.copy()
        self.tick_s = float(self.tables["constants"]["tick_s"][0])
        self.roles = _roles(spec)
        self._guard_costs = _guard_costs(spec)

    def follow(self, recording: Recording) -> list[Episode]:
        """Replay every episode with at least two records, one for each step of the fight."""
        unbound = unbound_buttons(recording, self.spec)
        return [
            self._follow(number, recording.fights[low:high], _pressed(recording.actions[low:high], unbound))
            for number, (low, high) in enumerate(recording.bounds(), start=1)
            if high - low > 1 and np.diff(recording.fights["step"][low:high]).max() <= 1
        ]

    def _follow(self, number: int, fights: Fights, pressed: npt.NDArray[np.int64]) -> Episode:
        count, fights = len(fights), without_unknown_labels(fights, self.spec)
        predictions, from_start = np.zeros((count, HORIZON + 1), PREDICTION), np.zeros((1, count), PREDICTION)
        states, state, scratch = np.zeros(count, HIDDEN), np.zeros(2, HIDDEN), np.zeros(1, FIGHT)
        blows = self._blows(fights)
        script = boss_script(fights, self.spec, self.tick_s)
        shown = np.array([-1, *range(len(self.spec.boss_animations))])
        moves = np.array([script.moves_by_label.get(int(label), 0) for label in shown], np.int64)
        player = (
            fights, ACTION_CONTROLS[pressed], blows, self.roles, moves, self.template, state, states, scratch,
            self.tables,
        )  # fmt: skip
        follow_player(*player, from_start)
        follow_player(*player, predictions)
        steps, struck = np.zeros(count, BOSS_STEP), np.zeros(count, BOSS_STEP)
        hits = np.zeros(MAX_HITS, HIT_EVENT)
        boss = (fights, states, script.entries, self.template, state, scratch, self.tables)
        follow_boss(*boss, False, steps, hits)
        landed = follow_boss(*boss, True, struck, hits)
        return Episode(number, fights, pressed, blows, predictions, from_start[0], script, steps, hits[:landed].copy())

    def _blows(self, fights: Fights) -> Array:
        """What hits the player in every step, read from labels, health and stamina."""
        label, shown_s = fights["player_animation"], fights["player_animation_duration"][:, 0].astype(float)
        blows = np.zeros(len(fights), BLOW)
        blows["move"], blows["tick"] = NO_BLOW, -1
        kinds = [move.kind for move in self.spec.player.moves]
        labels = player_labels(self.spec)
        flinches = [labels.index(name) for name in self.spec.player.flinch_animations]
        begins = label_begins(label, shown_s)
        for i in range(1, len(fights)):
            role = self.roles[label[i] + 1]
            if begins[i] and (label[i] in flinches or (role >= 0 and kinds[role] in ("reaction", "grabbed"))):
                ago = round(shown_s[i] / self.tick_s)
                blows[i] = (role, max(0, TICKS_PER_STEP - ago), 0.0)
            elif fights["player_hp"][i, 0] < fights["player_hp"][i - 1, 0] and role >= 0 and kinds[role] == "parry":
                cost = self._guard_costs.get(int(fights["boss_animation"][i]), 0.0)
                blows[i] = (GUARDED_BLOW, TICKS_PER_STEP // 2, cost)
        return blows


def unbound_buttons(recording: Recording, spec: FightSpec) -> tuple[Button, ...]:
    """Buttons that were pressed while open and never began a move: keys the recorded game had not bound."""
    begun_by_press = _labels_of_presses(spec)
    label = recording.fights["player_animation"]
    begins = label_begins(label, recording.fights["player_animation_duration"][:, 0])
    hp = recording.fights["player_hp"][:, 0]
    tried: dict[Button, bool] = {}
    for low, high in recording.bounds():
        for i in range(low + 1, high):
            action = int(recording.actions[i])
            button = Button(int(ACTION_CONTROLS["button"][action]))
            # A blow in the same step takes the press away.
            if button is not Button.NONE and recording.fights["action_mask"][i - 1, action] and hp[i] >= hp[i - 1]:
                # Other labels change whatever is pressed: a walk comes to its stop, and then the player stands.
                began = begins[i] and label[i] in begun_by_press
                tried[button] = tried.get(button, False) or bool(began)
    return tuple(button for button, worked in tried.items() if not worked)


def _labels_of_presses(spec: FightSpec) -> set[int]:
    """The labels of everything the player does only because a button is pressed."""
    names = {move.animation for move in spec.player.moves if move.kind not in ("reaction", "grabbed")}
    names |= set(spec.player.roll.animations)
    return {i for i, label in enumerate(spec.player_animations) if label.name in names}


def _pressed(actions: npt.NDArray[np.int64], unbound: tuple[Button, ...]) -> npt.NDArray[np.int64]:
    idle = np.isin(ACTION_CONTROLS["button"][actions], [int(button) for button in unbound])
    return np.where(idle, NOTHING, actions)


def _roles(spec: FightSpec) -> Array:
    """By label + 1: the move it stands for, or what the player does that is no move."""
    player = spec.player
    labels = player_labels(spec)
    roles = np.full(len(labels) + 1, NO_MOVE, np.int64)
    for index in reversed(range(len(player.moves))):
        roles[labels.index(player.moves[index].animation) + 1] = index
    for names, role in (
        (player.roll.animations, ROLL_MOVE),
        (player.fall_animations, FALL_MOVE),
        ((*player.flinch_animations, player.flinch_after_animation), FLINCH_ROLE),
    ):
        for name in names:
            roles[labels.index(name) + 1] = role
    return roles


def _guard_costs(spec: FightSpec) -> dict[int, float]:
    """Stamina a blow behind the shield costs, by label of the boss."""
    costs: dict[int, float] = {}
    for move in spec.boss.moves:
        if move.hits and move.animation in spec.boss_animations:
            costs.setdefault(spec.boss_animations.index(move.animation), move.hits[0].guard_stamina)
    return costs
