"""GameFight: one fight in one running game, step by step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from soulsgym.actions import NO_DIRECTION, NOTHING, Button
from soulsgym.errors import FocusLost, GameError, GameGone, GameHung, ReadFailed, SpeedControlError, StageFailed
from soulsgym.game.attach import Game
from soulsgym.game.camera import Aim, LockKeeper
from soulsgym.game.pacing import PacedRun, Pacer, TickPacer
from soulsgym.game.reset import Setup, Start
from soulsgym.game.titles import Sight
from soulsgym.game.tracking import TICKS_PER_STEP, Record, Tracker
from soulsgym.spec.game import NO_MOVE
from soulsgym.state import Outcome

log = logging.getLogger(__name__)

RELEASE_TICK = 3
"""A tapped key is let go after this tick of the step: 0.05 s."""
INPUT_SETTLE_S = 0.003
"""Real time that a key takes to reach the game's loop."""
HANG_RETRIES, UNREADABLE_S, FOCUS_RETRIES, LAPSE_RETRIES = 1, 1.0, 3, 2
"""How often, and how long, a step is carried on that the game disturbs."""
RETRY_S = 0.005
LOOKS, LOOK_S = 5, 0.0002
"""A look is good when the next one, a moment later, shows the same."""
NO_EFFECT, NO_EFFECT_LIMIT = 3, 10
"""After so many actions in a row without any effect the focus is asked for again, and after so many the fight ends."""
ANSWER_STEPS, UNANSWERED_LIMIT = 3, 12
"""A press has had its effect after so many steps; after so many in a row without one the fight ends."""
MOST_SKIPPED = 300
"""Steps that can be merged into one: the longest animation takes 25 s."""
KEYS_OF_DIRECTION = (
    ("forward",),
    ("forward", "right"),
    ("right",),
    ("right", "backward"),
    ("backward",),
    ("backward", "left"),
    ("left",),
    ("left", "forward"),
)
KEY_OF_BUTTON = {
    Button.ROLL: "roll",
    Button.LIGHT: "lightattack",
    Button.HEAVY: "heavyattack",
    Button.PARRY: "parry",
}


def keys_of(direction: int, button: int) -> tuple[tuple[str, ...], str]:
    """The keys to hold, and the one to tap after them; empty for none."""
    held = KEYS_OF_DIRECTION[direction] if direction >= 0 else ()
    return held, KEY_OF_BUTTON[Button(button)] if button != Button.NONE else ""


@dataclass
class _Press:
    """A press whose effect is awaited."""

    before: str
    steps: int = 0
    answered: bool = False
    disturbed: bool = False


class GameFight:
    """Plays one fight: presses keys, lets the game run, and fills the record."""

    def __init__(
        self,
        setup: Setup,
        tracker: Tracker,
        record: Record,
        notes: dict[str, Any],
        *,
        input_settle_s: float = INPUT_SETTLE_S,
    ) -> None:
        self.setup, self.tracker, self.record, self.notes = setup, tracker, record, notes
        self._input_settle_s = input_settle_s
        self._keeper = self._new_keeper()
        self._start: Start | None = None
        self._sight: Sight | None = None
        self._passed = 0
        self._idle_actions = 0
        self._asked = self._answered = self._unanswered = 0
        self._pending: _Press | None = None

    @property
    def game(self) -> Game:
        """The game that runs now."""
        return self.setup.game

    def _new_keeper(self) -> LockKeeper:
        return LockKeeper(self.setup.camera, self.setup.title.throw_animations)

    def begin(self, start: Start) -> None:
        """Set the game up for a fight and begin it."""
        self.notes.clear()
        self.setup.notes = self.notes
        if self._idle_actions >= NO_EFFECT:
            self.setup.keys_work = False
        self.tracker.close(Outcome.BROKEN)  # until it has really begun
        try:
            sight = self.setup.run(start)
            self.tracker.begin(sight, phase=start.phase, player_hp=start.player_hp, boss_hp=start.boss_hp)
        except GameError as error:
            self._let_go()
            self.setup.note_failure(error)
            raise
        except BaseException:
            self._let_go()
            raise
        self._keeper = self._new_keeper()
        self._start, self._sight, self._idle_actions = start, sight, 0
        self._asked = self._answered = self._unanswered = 0
        self._pending = None
        self._note_maxima(sight)
        self._tell(PacedRun(0, 0.0, 0.0), 0.0, 0)

    def step(self, direction: int, button: int, *, skip: bool) -> None:
        """Play 0.1 s, and with `skip` on until the player can act again."""
        g = self.record
        if g["outcome"] != Outcome.RUNNING:
            self.tracker.close(Outcome(int(g["outcome"])))
            return
        self._step(direction, button)
        if not skip or not self._is_forced():
            return
        sums = {key: g[key] for key in ("damage_dealt", "damage_taken")}
        blows = {key: g[key] for key in ("hit_by", "landed", "dodged")}
        for _ in range(MOST_SKIPPED):
            if not self._is_forced():
                break
            self._step(NO_DIRECTION, Button.NONE)
            sums = {key: value + g[key] for key, value in sums.items()}
            blows = {key: g[key] if g[key] >= 0 else value for key, value in blows.items()}  # the last of each
        for key, value in (sums | blows).items():
            g[key] = value

    def _is_forced(self) -> bool:
        return bool(self.record["outcome"] == Outcome.RUNNING and not self.record["action_mask"][:NOTHING].any())

    def _step(self, direction: int, button: int) -> None:
        source = self.setup.source
        begun, calls, step = source.now(), self.game.process.calls, int(self.record["step"])
        if not self.tracker.allows(direction, button):
            direction, button = NO_DIRECTION, Button.NONE  # the game would queue it up
        run = PacedRun(0, 0.0, 0.0)
        if button != Button.NONE and self._pending is None and self._sight is not None and self._sight.player_sp > 0:
            self._pending = _Press(self._sight.player_animation)
        try:
            run, sight = self._play(*keys_of(direction, button))
            self.tracker.finish(sight, run.ticks, run.game_s)
            self._sight = sight
            self._look_after(sight, direction, button)
        except GameError as error:
            self._break_off(error)
            self.record["step"] = step + 1
        except BaseException:
            self._let_go()
            raise
        self._tell(run, source.now() - begun, self.game.process.calls - calls)

    def _play(self, hold: tuple[str, ...], tap: str) -> tuple[PacedRun, Sight]:
        """Press the keys, let the step pass and look. What disturbs it is put right, within limits."""
        source, pacer = self.setup.source, self._pacer()
        assert self._sight is not None
        aim = self._keeper.aim(self._sight)
        self._passed, game_s = 0, 0.0
        hangs, losses, lapses, unreadable_since = 0, 0, 0, None
        while True:
            try:
                self._keep_focus()
                before = self._passed
                early, ticks = before < RELEASE_TICK, max(1, TICKS_PER_STEP - before)
                press = partial(self._press, (*hold, *aim.hold), tap if early else "", aim)
                release_at = RELEASE_TICK - before if early else min(RELEASE_TICK, ticks)
                run = pacer.run(ticks, self._on_tick(before), {0: press, release_at: self._release})
                self._passed, game_s = before + run.ticks, game_s + run.game_s
                over_s = run.overshoot_s + max(0, before - TICKS_PER_STEP) / 60
                return PacedRun(self._passed, game_s, over_s), self._settled_look()
            except FocusLost:
                losses += 1
                if losses > FOCUS_RETRIES:
                    raise
                self._regain_focus()
            except ReadFailed:
                now = source.now()
                unreadable_since = now if unreadable_since is None else unreadable_since
                if not self.game.process.is_running():
                    raise GameGone("the game has ended") from None
                if now - unreadable_since > UNREADABLE_S:
                    raise
                self.setup.title.clear_cache()
                source.sleep(RETRY_S)
            except SpeedControlError:
                lapses += 1
                if lapses > LAPSE_RETRIES:
                    raise
                pacer.begin()  # the clock ran on by itself, since this program was held up
            except GameHung:
                hangs += 1
                if not self.game.process.is_running():
                    raise GameGone("the game has ended") from None
                if hangs > HANG_RETRIES:
                    raise

    def _on_tick(self, before: int) -> Callable[[int, Any], None]:
        def see(tick: int, glance: Any) -> None:
            self._passed = before + tick
            self.tracker.see(self._passed, glance)
            if glance.player_animation != self.setup.names.idle:
                self._idle_actions = 0
            if self._pending is not None and glance.player_animation != self._pending.before:
                self._pending.answered |= self._is_action(glance.player_animation)

        return see

    def _press(self, hold: tuple[str, ...], tap: str, aim: Aim) -> None:
        keyboard = self.game.keyboard
        sent = keyboard.hold(hold)
        if tap:
            keyboard.press(tap)
        # Looked at once more: the lock may be back by itself, and the key would undo it.
        locks = aim.tap_lock and not self.setup.title.lock_on
        if locks:
            keyboard.press("lock_on")
        if sent or tap or locks:
            self.setup.source.sleep(self._input_settle_s)

    def _release(self) -> None:
        keyboard = self.game.keyboard
        taps = {*KEY_OF_BUTTON.values(), "lock_on"} & keyboard.held
        for tap in taps:
            keyboard.release(tap)
        if taps and self._pacer().stepping == TickPacer.stepping:  # a game that runs does not wait for us
            self.setup.source.sleep(self._input_settle_s)

    def _keep_focus(self) -> None:
        if not self.game.window.has_focus():
            self._regain_focus()

    def _regain_focus(self) -> None:
        self.notes["focus_lost"] = self.notes.get("focus_lost", 0) + 1
        self.game.window.activate()
        self.game.keyboard.release_all()

    def _settled_look(self) -> Sight:
        """A look that a tick still at work does not spoil."""
        last = self.setup.look()
        for _ in range(LOOKS):
            self.setup.source.sleep(LOOK_S)
            sight = self.setup.look()
            if sight == last:
                break
            last = sight
        return last

    def _look_after(self, sight: Sight, direction: int, button: int) -> None:
        """Restore what a training fight restores, and see whether something is wrong with the game."""
        g, setup = self.record, self.setup
        outcome = Outcome(int(g["outcome"]))
        if setup.training:
            self._restore(sight, outcome)
        elif outcome is not Outcome.RUNNING:
            with suppress(GameError):
                self.game.clock.set_speed(1.0)  # let the body fall
        if outcome is not Outcome.RUNNING:
            self.game.keyboard.hold(())
            return
        if self.tracker.is_outside(sight):
            x, y = sight.player_pose[:2]
            raise StageFailed("arena", f"the player is outside at x {x:.1f}, y {y:.1f}")
        self._watch_effects(sight, direction, button)
        self._watch_press(sight)

    def _restore(self, sight: Sight, outcome: Outcome) -> None:
        title, setup = self.setup.title, self.setup
        if sight.player_hp <= 0 or sight.boss_hp <= 0:
            setup.in_arena = False
            setup.reload_because = "the player really died" if sight.player_hp <= 0 else "the boss really died"
            return
        if sight.player_hp < sight.player_max_hp or outcome is Outcome.FELL:
            title.reset_player_hp()
        if sight.boss_hp < sight.boss_max_hp:
            setup.boss.reset_hp()
        if outcome is Outcome.FELL:
            # At once, or the game kills the player and loads.
            assert self._start is not None
            title.player_pose = self._start.player_poses[0]
        self.tracker.set_game_hp(sight.player_max_hp, sight.boss_max_hp)

    def _watch_effects(self, sight: Sight, direction: int, button: int) -> None:
        """Keys that do nothing are a menu's, and attacks that nobody knows are those of bare hands."""
        acts = direction >= 0 or button != Button.NONE
        if acts and sight.player_animation == self.setup.names.idle:
            self._idle_actions += 1
            if self._idle_actions % NO_EFFECT == 0:  # the system may say that the window has the focus and be wrong
                self._regain_focus()
        if self._idle_actions >= NO_EFFECT_LIMIT:
            raise StageFailed("keys", f"{NO_EFFECT_LIMIT} actions had no effect; a menu may be open")
        if button in (Button.LIGHT, Button.HEAVY) and self.record["player_animation"] < 0:
            self.setup.weapon_works = False
            self.notes["weapon"] = f"an attack gave {sight.player_animation}, which is not in the table of animations"

    def _is_action(self, animation: str) -> bool:
        is_attack = animation.startswith(self.setup.title.attack_animations)
        return is_attack or self.setup.plan.player_move(animation) != NO_MOVE

    def _watch_press(self, sight: Sight) -> None:
        """Count presses and those that had an effect: a game may use keys up while its clock stands."""
        press = self._pending
        if press is None:
            return
        press.steps += 1
        # The same again, as one roll after the other, has begun again.
        again = self._is_action(sight.player_animation) and sight.player_animation_s < 0.1 * press.steps + 0.05
        press.disturbed |= bool(self.record["damage_taken"] > 0.0)
        if press.answered or again:
            self._asked, self._answered, self._unanswered = self._asked + 1, self._answered + 1, 0
            self._pending = None
        elif press.disturbed or press.steps >= ANSWER_STEPS:
            self._asked += not press.disturbed
            self._unanswered += not press.disturbed
            self._pending = None
        if self._unanswered >= UNANSWERED_LIMIT:
            self.setup.pressing_works = False
            raise StageFailed(
                "keys",
                f"{self._unanswered} presses in a row were not answered, {self._answered} of {self._asked} in this "
                "fight were; compare the key settings, and give stepping='speed' if it happens again",
            )

    def _break_off(self, error: GameError) -> None:
        log.warning("the fight was aborted: %s", error)
        self.notes["failure"] = str(error)
        self.tracker.close(Outcome.BROKEN)
        self.setup.note_failure(error)
        self._let_go()

    def _let_go(self) -> None:
        with suppress(GameError, OSError):
            self.game.keyboard.release_all()

    def _note_maxima(self, sight: Sight) -> None:
        plan = self.setup.plan
        read = (sight.player_max_hp, sight.player_max_sp, sight.boss_max_hp)
        if read != (plan.player_hp, plan.player_sp, plan.boss_hp):
            self.notes["maxima"] = (
                f"the game's full health, stamina and boss's health are {read}, "
                f"the data say {(plan.player_hp, plan.player_sp, plan.boss_hp)}"
            )
            log.warning("%s", self.notes["maxima"])

    def _pacer(self) -> Pacer:
        assert self.setup.pacer is not None
        return self.setup.pacer

    def _tell(self, run: PacedRun, real_s: float, calls: int) -> None:
        pacer = self._pacer()
        self.notes |= {
            "ticks": run.ticks,
            "overshoot_s": run.overshoot_s,
            "stepping": pacer.stepping,
            "stepping_because": pacer.reason,
            "memory_calls": calls,
            "real_s": real_s,
            "presses": self._asked,
            "presses_answered": self._answered,
            "unknown_animations": dict(self.tracker.unknown),
            "player_animation_name": self.tracker.player.name,
            "boss_animation_name": self.tracker.boss.name,
        }
        with suppress(GameError):
            self.notes["lapses"] = self.game.clock.lapses
            self.notes["idle_ticks"] = self.game.clock.trickled
