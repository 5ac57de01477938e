"""Recording a person who plays: memory is read and nothing else, so that nothing can go wrong with the game."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from soulsgym.actions import NOTHING, Button
from soulsgym.errors import GameGone, ReadFailed
from soulsgym.game.attach import find_game
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.pacing import TICKS_PER_S, ticks_between
from soulsgym.game.process import open_process
from soulsgym.game.titles import TITLES, Sight, WatchTitle, watch_title
from soulsgym.game.tracking import TICKS_PER_STEP, Tracker
from soulsgym.game.waits import REAL_TIME, TimeSource
from soulsgym.recordings.recording import Recording
from soulsgym.spec.game import ROLL_MOVE, WatchSetup
from soulsgym.state import FIGHT, Outcome

if TYPE_CHECKING:
    import numpy.typing as npt

POLL_S = 0.004
"""Between two looks for the next tick of the game."""
LOST_S = 1.0
"""Without a player for so long a fight is over: the game loads, or a menu is open."""
WALK_M_PER_S = 0.8
FEWEST_RECORDS = 10
BUTTON_ACTIONS = {Button.LIGHT: 16, Button.HEAVY: 17, Button.PARRY: 18}
ROLL_ACTIONS = 8


class Watcher:
    """Turns what is seen of a fight that somebody else plays into records, one for every six ticks."""

    def __init__(self, plan: WatchSetup, title: WatchTitle) -> None:
        self._plan, self._title = plan, title
        self._record: npt.NDArray[Any] = np.zeros(1, FIGHT)
        status = np.zeros(1, [(name, "f4", (1,)) for name in title.statuses])
        self._tracker = Tracker(plan, type(title), self._record[0], status[0], training=False)
        self._sight: Sight | None = None
        self._begin_ms = self._last_ms = 0
        self.records: list[npt.NDArray[Any]] = []
        self.actions: list[int] = []
        self.samples = 0
        """Ticks that were looked at."""

    @property
    def unknown(self) -> dict[str, int]:
        """Animations that are not in our tables, and how often they were seen."""
        return dict(self._tracker.unknown)

    def begin(self, sight: Sight) -> None:
        """A fight begins."""
        self._tracker.begin(sight, phase=1)
        self._sight, self._begin_ms, self._last_ms = sight, sight.time_ms, sight.time_ms
        self.records, self.actions = [self._record[0].copy()], [NOTHING]

    def look(self) -> Outcome:
        """Look once, and add a record if a step's time has passed; how does the fight stand?"""
        assert self._sight is not None
        glance = self._title.glance(self._plan.boss)
        if not ticks_between(self._last_ms, glance.time_ms):
            return Outcome.RUNNING
        self._last_ms = glance.time_ms
        self.samples += 1
        passed = ticks_between(self._begin_ms, glance.time_ms)
        if passed < TICKS_PER_STEP:
            self._tracker.see(passed, glance)
            return Outcome.RUNNING
        sight = self._title.look(self._plan.boss)
        passed = ticks_between(self._begin_ms, sight.time_ms)
        self._tracker.finish(sight, passed, passed / TICKS_PER_S)
        self.records.append(self._record[0].copy())
        self.actions.append(self.action_between(self._sight, sight, passed / TICKS_PER_S))
        self._sight, self._begin_ms = sight, sight.time_ms
        return Outcome(int(self._record[0]["outcome"]))

    def action_between(self, before: Sight, after: Sight, seconds: float) -> int:
        """What was pressed, as far as it shows: an attack, roll or parry that has begun, or the way he walked."""
        name = after.player_animation
        begun = name != before.player_animation or after.player_animation_s < before.player_animation_s
        button = next((one for start, one in self._title.buttons.items() if name.startswith(start)), None)
        if begun and button is not None:
            return BUTTON_ACTIONS[button]
        way = after.player_pose[0] - before.player_pose[0], after.player_pose[1] - before.player_pose[1]
        direction = direction_of(way, before.camera_pose)
        is_roll = self._plan.player_move(name) == ROLL_MOVE
        if is_roll:
            return ROLL_ACTIONS + direction if begun else NOTHING
        is_free = button is None and name.startswith(self._title.walk_animations)
        return direction if is_free and math.hypot(*way) > WALK_M_PER_S * seconds else NOTHING


def direction_of(way: tuple[float, float], camera: tuple[float, ...]) -> int:
    """The key of eight that leads along a way on the ground, clockwise from forward as the camera looks."""
    turned = math.atan2(*way) - math.atan2(camera[3], camera[4])
    return round(math.remainder(turned, math.tau) / (math.pi / 4)) % 8


def record_person(
    plan: WatchSetup,
    fights: int,
    *,
    pid: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda text: None,
    source: TimeSource = REAL_TIME,
) -> Recording | None:
    """Watch a person fight so many times, or until `stop`; None if no fight was seen.

    Only memory is read: no library is loaded, nothing is written, no key is pressed and no window touched.
    """
    found = find_game(plan.title, pid)
    process = open_process(found.pid)
    try:
        title = watch_title(TITLES[plan.title](ProcessMemory(process)))
        if faults := title.faults():
            say(f"note: what is read cannot all be true ({'; '.join(faults[:3])}); the recording may be of no use")
        parts: list[tuple[npt.NDArray[Any], list[int]]] = []
        while len(parts) < fights and not stop():
            one = _watch_fight(title, plan, stop, source)
            if one is not None:
                parts.append((np.stack(one.records), one.actions))
                ended = Outcome(int(one.records[-1]["outcome"])).name.lower()
                unknown = f", unknown animations {', '.join(one.unknown)}" if one.unknown else ""
                say(f"fight {len(parts)}: {ended}, {len(one.records):,} records of {one.samples:,} samples{unknown}")
    except GameGone:
        say("the game has ended")
    finally:
        process.close()
    if not parts:
        return None
    episodes = np.repeat(np.arange(len(parts)), [len(records) for records, _ in parts])
    actions = np.array([action for _, chosen in parts for action in chosen], np.int64)
    return Recording(np.concatenate([records for records, _ in parts]), actions, episodes)


def _watch_fight(title: WatchTitle, plan: WatchSetup, stop: Callable[[], bool], source: TimeSource) -> Watcher | None:
    """Wait for a fight and watch it to its end; None if it was none worth keeping."""
    while not stop():
        try:
            sight = title.look(plan.boss)
            sides = zip(sight.player_pose[:2], plan.low_m[:2], plan.high_m[:2], strict=True)
            inside = all(low <= at <= high for at, low, high in sides)
            if inside and sight.player_hp > 0 and sight.boss_hp > 0 and not plan.is_resting(sight.boss_animation):
                break
        except ReadFailed:
            pass  # it loads, or the boss's map is not there
        source.sleep(POLL_S)
    else:
        return None
    # A person has a character of his own.
    own = replace(plan, player_hp=sight.player_max_hp, player_sp=sight.player_max_sp, boss_hp=sight.boss_max_hp)
    watcher = Watcher(own, title)
    watcher.begin(sight)
    outcome, seen_at = Outcome.RUNNING, source.now()
    while outcome is Outcome.RUNNING and not stop():
        source.sleep(POLL_S)
        now, samples = source.now(), watcher.samples
        with suppress(ReadFailed):
            outcome = watcher.look()
        if watcher.samples > samples:
            seen_at = source.now()
        elif now - seen_at > LOST_S:  # when it was looked at: this program may have been held up before that
            break
    if outcome is Outcome.RUNNING:
        watcher.records[-1]["outcome"] = Outcome.BROKEN
    return watcher if len(watcher.records) >= FEWEST_RECORDS else None
