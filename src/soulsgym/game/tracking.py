"""Tracker: from what is seen of the running game to FIGHT, the record of a fight."""

from __future__ import annotations

import logging
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import NOTHING, Button
from soulsgym.errors import ReadFailed
from soulsgym.game.pacing import TICKS_PER_S
from soulsgym.game.titles.values import wrap_angle
from soulsgym.spec.game import FALL_MOVE, NO_MOVE, WatchSetup
from soulsgym.state import MAX_DURATION_S, Outcome

if TYPE_CHECKING:
    from soulsgym.game.titles import Glance, Sight, WatchTitle

log = logging.getLogger(__name__)

TICKS_PER_STEP = 6
ROUNDING_S = 1e-6
"""Sixty ticks add up to a little less than they are."""
RESTART_SLACK_S = 0.02
ROLLS, BUTTONS = slice(8, 16), slice(16, 19)

Record = Any
"""One row of FIGHT."""


class Label:
    """The name of an animation that a fighter shows, and for how long on the label clock."""

    def __init__(self, tick_s: float, shown: str = "") -> None:
        self._tick_s = tick_s
        self.name, self.seconds, self._animation_s = shown, 0.0, 0.0
        self._seen, self._changed = shown, -1

    def see(self, tick: int, name: str) -> None:
        """What is shown after a tick of this step."""
        if name != self._seen:
            self._seen, self._changed = name, tick

    def finish(self, ticks: int, name: str, animation_s: float, *, may_restart: bool) -> None:
        """A step of so many ticks is over."""
        self.see(ticks, name)
        restarted_s = ticks / TICKS_PER_S + RESTART_SLACK_S
        if self._changed >= 0:
            # In the tick that shows it first it has played that long.
            self.seconds = max(1, ticks - self._changed + 1) * self._tick_s
        elif may_restart and animation_s < self._animation_s and animation_s <= restarted_s:
            # The same animation from its beginning: its name alone does not tell.
            self.seconds = min(ticks, round(animation_s * TICKS_PER_S)) * self._tick_s
        else:
            self.seconds += ticks * self._tick_s
        self.name, self._animation_s, self._changed = name, animation_s, -1


class Tracker:
    """Keeps the record of one fight. In training health is counted here, since the game's is restored every step."""

    def __init__(
        self, plan: WatchSetup, title: type[WatchTitle], record: Record, status: Record, *, training: bool
    ) -> None:
        self._plan, self._title, self._record, self._status = plan, title, record, status
        self._training = training
        self._tick_s = plan.label_s_per_step / TICKS_PER_STEP
        self._player_ids = {animation.name: i for i, animation in enumerate(plan.player_animations)}
        self._boss_ids = {name: i for i, name in enumerate(plan.boss_animations)}
        self._timings = {one.name: (one.attack_s, one.roll_s, one.move_s) for one in plan.player_animations}
        self._locking = frozenset(name for name, times in self._timings.items() if any(times))
        low = np.array([*plan.low_m, -np.pi], np.float32)
        high = np.array([*plan.high_m, np.pi], np.float32)
        self._pose_bounds = low, high
        self._camera_bounds = (
            np.concatenate([low[:3], -np.ones(3, np.float32)]),
            np.concatenate([high[:3], np.ones(3, np.float32)]),
        )
        self.unknown: Counter[str] = Counter()
        self.player, self.boss = Label(self._tick_s), Label(self._tick_s)
        self.phase, self._game_s = 1, 0.0
        self._hp: tuple[int, int] = (plan.player_hp, plan.boss_hp)
        self._boss_attack = self._player_attack = self._hurt_by = self._hurt_with = ""
        self._can_walk = self._can_roll = self._can_attack = False

    def begin(self, sight: Sight, *, phase: int, player_hp: float = math.nan, boss_hp: float = math.nan) -> None:
        """A fight begins with what is seen now; health that is not given is full, or the game's own in a real fight."""
        plan, g = self._plan, self._record
        self.phase, self._game_s = phase, 0.0
        self.player = Label(self._tick_s, sight.player_animation)
        self.boss = Label(self._tick_s, sight.boss_animation)
        self._forget_blows(sight.player_hp, sight.boss_hp)
        full = (plan.player_hp, plan.boss_hp) if self._training else (sight.player_hp, sight.boss_hp)
        g["player_hp"][0] = min(full[0] if math.isnan(player_hp) else player_hp, plan.player_hp)
        g["boss_hp"][0] = min(full[1] if math.isnan(boss_hp) else boss_hp, plan.boss_hp)
        g["player_max_hp"], g["player_max_sp"], g["boss_max_hp"] = plan.player_hp, plan.player_sp, plan.boss_hp
        g["damage_dealt"], g["damage_taken"], g["dealt_total"], g["taken_total"] = 0.0, 0.0, 0.0, 0.0
        g["hit_by"], g["landed"], g["dodged"], g["killed_by"] = -1, -1, -1, -1
        g["step"], g["time_s"], g["outcome"] = 0, 0.0, Outcome.RUNNING
        self._show(sight)

    def see(self, tick: int, glance: Glance) -> None:
        """What is seen after a tick of the step."""
        self.player.see(tick, glance.player_animation)
        self.boss.see(tick, glance.boss_animation)
        attacks = self._title.attack_animations
        if glance.boss_animation.startswith(attacks):
            self._boss_attack = glance.boss_animation
        if glance.player_animation.startswith(attacks):
            self._player_attack = glance.player_animation
        if self._hp[0] > glance.player_hp:
            self._hurt_by = self._boss_attack
        if self._hp[1] > glance.boss_hp:
            self._hurt_with = self._player_attack
        self._hp = glance.player_hp, glance.boss_hp
        if not self._training:
            self._watch_phase(glance.boss_animation, glance.boss_hp)

    def finish(self, sight: Sight, ticks: int, game_s: float) -> None:
        """The step is over: fill the record from what is seen, and say how the fight stands."""
        _check_numbers(sight)
        g = self._record
        self.see(ticks, sight)
        self.player.finish(
            ticks,
            sight.player_animation,
            sight.player_animation_s,
            may_restart=sight.player_animation in self._locking,
        )
        self.boss.finish(
            ticks,
            sight.boss_animation,
            sight.boss_animation_s,
            may_restart=sight.boss_animation.startswith(self._title.attack_animations),
        )
        taken, dealt = self._damage(sight)
        g["damage_taken"], g["damage_dealt"] = taken, dealt
        g["player_hp"][0] -= taken
        g["boss_hp"][0] -= dealt
        g["hit_by"] = self._plan.boss_move(self._hurt_by, self.phase) if self._hurt_by and taken > 0 else NO_MOVE
        g["landed"] = self._plan.player_move(self._hurt_with) if self._hurt_with and dealt > 0 else NO_MOVE
        g["dodged"] = NO_MOVE
        g["taken_total"] += taken
        g["dealt_total"] += dealt
        g["step"] += 1
        self._game_s += game_s
        g["time_s"] = self._game_s
        g["outcome"] = self._outcome(sight)
        if g["outcome"] == Outcome.DIED:
            g["killed_by"] = g["hit_by"]
        self._hurt_by = self._hurt_with = ""
        self._show(sight)

    def set_game_hp(self, player_hp: int, boss_hp: int) -> None:
        """The game's health was set to this, which is no blow."""
        self._hp = player_hp, boss_hp

    def has_fallen(self, sight: Sight) -> bool:
        """Is the player below the arena?"""
        return sight.player_pose[2] < self._plan.low_m[2]

    def is_outside(self, sight: Sight) -> bool:
        """Is the player beside the arena?"""
        at = zip(self._plan.low_m[:2], sight.player_pose[:2], self._plan.high_m[:2], strict=True)
        return not all(low <= where <= high for low, where, high in at)

    def close(self, outcome: Outcome) -> None:
        """The fight is over for another reason than the game's."""
        g = self._record
        g["damage_dealt"], g["damage_taken"] = 0.0, 0.0
        g["hit_by"], g["landed"], g["dodged"] = -1, -1, -1
        g["outcome"] = outcome
        g["action_mask"][:NOTHING] = 0

    def _forget_blows(self, player_hp: int, boss_hp: int) -> None:
        self._hp = player_hp, boss_hp
        self._boss_attack = self._player_attack = self._hurt_by = self._hurt_with = ""

    def _watch_phase(self, boss_animation: str, boss_hp: int) -> None:
        if self.phase == self._plan.phases:
            return
        later = self._plan.changes[self.phase - 1]
        # Where no name tells it, health does.
        if boss_animation == later.animation if later.animation else 0 < boss_hp <= later.boss_hp:
            self.phase += 1

    def _damage(self, sight: Sight) -> tuple[float, float]:
        """What the player took and dealt in the step, no more than either had left."""
        g = self._record
        player_hp, boss_hp = float(g["player_hp"][0]), float(g["boss_hp"][0])
        if self._training:
            taken = float(max(0, sight.player_max_hp - sight.player_hp))
            dealt = float(max(0, sight.boss_max_hp - sight.boss_hp))
        else:
            taken, dealt = max(0.0, player_hp - sight.player_hp), max(0.0, boss_hp - sight.boss_hp)
        if self.has_fallen(sight) or self._really_dead(sight):
            taken = player_hp
        return min(taken, player_hp), min(dealt, boss_hp)

    def _really_dead(self, sight: Sight) -> bool:
        return sight.player_hp <= 0 or sight.player_animation.startswith(self._title.death_animations)

    def _outcome(self, sight: Sight) -> Outcome:
        g = self._record
        if g["boss_hp"][0] <= 0.0:
            return Outcome.WON
        if g["player_hp"][0] > 0.0:
            return Outcome.RUNNING
        return Outcome.FELL if self.has_fallen(sight) else Outcome.DIED

    def _show(self, sight: Sight) -> None:
        g, plan = self._record, self._plan
        g["phase"] = self.phase
        g["player_sp"][0] = min(max(sight.player_sp, plan.player_sp_floor), plan.player_sp)
        _fill(g["player_pose"], _wrapped(sight.player_pose), self._pose_bounds)
        _fill(g["boss_pose"], _wrapped(sight.boss_pose), self._pose_bounds)
        _fill(g["camera_pose"], sight.camera_pose, self._camera_bounds)
        g["player_animation"] = self._id(self._player_ids, self.player.name)
        g["player_animation_duration"][0] = min(self.player.seconds, MAX_DURATION_S)
        g["boss_animation"] = self._id(self._boss_ids, self.boss.name)
        g["boss_animation_duration"][0] = min(self.boss.seconds, MAX_DURATION_S)
        g["lock_on"] = sight.lock_on
        g["boss_move"], g["boss_move_s"] = plan.boss_move(self.boss.name, self.phase), sight.boss_animation_s
        g["player_move"], g["player_move_s"] = plan.player_move(self.player.name), sight.player_animation_s
        g["invulnerable"] = 0
        g["action_mask"][:] = self._open(sight.player_sp)
        for name, share in zip(self._title.statuses, sight.statuses, strict=True):
            self._status[name][0] = min(max(share, 0.0), 1.0)

    def allows(self, direction: int, button: int) -> bool:
        """Would the game take this control now?"""
        if button == Button.NONE:
            return direction < 0 or self._can_walk
        return self._can_roll if button == Button.ROLL else self._can_attack

    def _open(self, stamina: float) -> npt.NDArray[np.int8]:
        """The actions that the game would take now: pressed too early they would be queued up and come late."""
        g = self._record
        attack, roll, walk = (
            self.player.seconds >= after_s - ROUNDING_S
            for after_s in self._timings.get(self.player.name, (0.0, 0.0, 0.0))
        )
        free = g["outcome"] == Outcome.RUNNING and g["player_move"] != FALL_MOVE
        rested = free and math.floor(stamina) > 0
        self._can_walk, self._can_roll, self._can_attack = walk and free, roll and rested, attack and rested
        mask = np.ones(NOTHING + 1, np.int8)
        mask[: ROLLS.start], mask[ROLLS], mask[BUTTONS] = self._can_walk, self._can_roll, self._can_attack
        return mask

    def _id(self, ids: dict[str, int], name: str) -> int:
        number = ids.get(name, -1)
        expected = name in ("", *(change.animation for change in self._plan.changes)) or name.startswith(
            self._title.death_animations
        )
        if number < 0 and not expected:
            if name not in self.unknown:
                log.warning("animation %r is not in the table of %s; it is shown as -1", name, self._plan.name)
            self.unknown[name] += 1
        return number


def _wrapped(pose: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    return (*pose[:3], wrap_angle(pose[3]))


def _fill(
    into: npt.NDArray[np.float32],
    values: tuple[float, ...],
    bounds: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
) -> None:
    """Values within the declared bounds: the camera stands behind the player, and may stand outside."""
    np.clip(np.array(values, np.float32), *bounds, out=into)


def _check_numbers(sight: Sight) -> None:
    for value in (*sight.player_pose, *sight.boss_pose, *sight.camera_pose):
        if not math.isfinite(value):
            raise ReadFailed(0, f"a pose reads {value}; the game is loading, or its version is another")
