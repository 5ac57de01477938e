"""Is this machine, its game and its keyboard ready? Looks at one thing after the other and says what to do."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from soulsgym.errors import ReadFailed, SoulsError
from soulsgym.game import clock as speed_control
from soulsgym.game.addresses import AddressTable, load_addresses
from soulsgym.game.clock import Clock, load_speed_control
from soulsgym.game.keyboard import Keyboard, Keys, load_bindings, open_keys
from soulsgym.game.machine import (
    Finding,
    check_backup,
    check_game,
    check_offline,
    check_owner,
    check_packages,
    check_rights,
    check_system,
)
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.pacing import OWN_TIME, SEVERAL, Animated, TickPacer, probe, tick_source
from soulsgym.game.pointers import choose_target, find_hits
from soulsgym.game.process import Process, ProcessInfo, find_processes, open_process
from soulsgym.game.report import tried, write_report
from soulsgym.game.saves import Backup, backups, find_saves
from soulsgym.game.titles import TITLES, FightTitle, Title
from soulsgym.game.titles.plausible import bosses_of, own_fields
from soulsgym.game.waits import REAL_TIME, TimeSource
from soulsgym.game.window import Window, open_window
from soulsgym.spec import load_fight

ADVISED = (800, 450)
FIND_S = 2.0
"""A game that runs shows its window at once."""
MOVE_S, WATCH_S, SETTLE_S = 1.0, 0.02, 0.1
"""How long a key may take to show in the game, between two looks, and until what was let go stands still."""
TURN_RAD, WALK_M = 0.05, 0.2
"""Turns and ways that are surely not by chance."""
STILL_S, RUN_S = 0.3, 0.8
SPEED, TOLERANCE = 2.0, 0.25
PRESSES, PRESS_TICKS, SLOW_PRESS = 2, 6, 0.25
REST_SPEED, REST_S = 3.0, 2.0
"""After an attack the game runs so fast, and so long at most, until the player stands."""
ENGLISH = ("us", "gb")
ENGLISH_CODES = "09"
"""Windows' numbers of layouts end in that of the language, whatever the country."""


@dataclass(frozen=True)
class World:
    """What the doctor reaches the machine and the game through; a test puts something else in its place."""

    platform: str = sys.platform
    find_processes: Callable[[str], Sequence[ProcessInfo]] = find_processes
    open_process: Callable[[int], Process] = open_process
    open_window: Callable[[ProcessInfo, str, float], Window] = open_window
    open_keys: Callable[[ProcessInfo], Keys] = open_keys
    load_speed_control: Callable[[ProcessInfo, ProcessMemory], Clock] = load_speed_control
    find_saves: Callable[[str, Mapping[str, str] | None], Sequence[Path]] = find_saves
    backups: Callable[[str], Sequence[Backup]] = backups
    which: Callable[[str], str | None] = shutil.which
    time: TimeSource = REAL_TIME
    proc: Path = Path("/proc")
    is_wayland: bool = bool(os.environ.get("WAYLAND_DISPLAY"))
    uid: int = os.geteuid() if hasattr(os, "geteuid") else 0


REAL_WORLD = World()


@dataclass(frozen=True)
class Moment:
    """The game's time: all that is needed to see it tick."""

    time_ms: int


def checks(
    title: str = "darksouls3",
    pid: int | None = None,
    redis: Callable[[], str] | None = None,
    *,
    only_look: bool = False,
    display: str = "",
    report: dict[str, Any] | None = None,
    world: World = REAL_WORLD,
) -> Generator[Finding, None, None]:
    """Look at everything, one finding at a time; whatever happens, the game is left as it was found.

    `redis` says in a few words that it can be reached, or raises; `only_look` presses no key and loads nothing.
    What `report` gets is for those who cannot see the game.
    """
    table = load_addresses(title)
    yield check_system(world.platform, world.which, Path.home())
    yield check_packages(world.platform, lambda module: importlib.util.find_spec(module) is not None)
    found = None
    try:
        finding, found = check_game(table, world.find_processes(table.executable), pid)
    except SoulsError as error:
        finding = Finding("game", False, str(error))
    if found is None:
        yield check_rights(world.platform, world.proc, is_root=world.uid == 0)
    yield finding
    if found is not None:
        found = replace(found, display=display)
        with ExitStack() as held:
            examination = _Examination(title, table, found, world, held, only_look)
            yield from examination.findings()
            if report is not None:
                report |= examination.report()
    yield check_offline(table)
    environment = found.environment if found is not None else None
    yield try_check("backup", lambda: check_backup(world.find_saves(title, environment), world.backups(title)))
    if redis is not None:
        yield try_check("redis", lambda: Finding("redis", True, redis()))


def try_check(name: str, look: Callable[[], Finding]) -> Finding:
    """A finding, also when the look itself fails."""
    try:
        return look()
    except (SoulsError, OSError) as error:
        return Finding(name, False, str(error))


class _Examination:
    """The looks at one running game, in order; what an earlier one could not open, later ones do without."""

    def __init__(
        self, title: str, table: AddressTable, found: ProcessInfo, world: World, held: ExitStack, only_look: bool
    ) -> None:
        self._name, self._table, self._found, self._world, self._held = title, table, found, world, held
        self._only_look = only_look
        self._parts: dict[str, Any] = {}
        self._failed: set[str] = set()

    def findings(self) -> Iterator[Finding]:
        """All looks at the game."""
        bindings = load_bindings(self._name)
        time = self._world.time
        yield self._look("permission", (), self._permission)
        yield self._look("version", ("memory",), lambda: check_version(self._parts["memory"], self._table))
        yield self._look("patterns", ("memory",), self._patterns)
        yield self._look("in game", ("title",), lambda: check_in_game(self._parts["title"]))
        yield self._look("window", (), self._window)
        yield self._look(
            "screen", ("title", "window"), lambda: check_screen(self._parts["title"], self._parts["window"])
        )
        yield self._look("values", ("title", "in game"), self._values)
        yield self._look("layout", (), lambda: self._layout(bindings))
        if self._only_look:
            yield Finding("focus, keys, speed, steps, presses", None, "not tried, as was asked for")
            return
        yield self._look("focus", ("window",), lambda: check_focus(self._parts["window"]))
        needed = ("title", "keyboard", "in game", "focus")
        yield self._look("keys", needed, lambda: self._keys(bindings))
        yield self._look("speed", ("title", "in game"), self._speed)
        needed = ("title", "clock", "in game", "speed")
        yield self._look("steps", needed, lambda: check_steps(self._parts["title"], self._parts["clock"], time))
        yield self._look(
            "presses",
            ("title", "clock", "keyboard", "in game", "focus", "keys", "speed"),
            lambda: check_presses(self._parts["title"], self._parts["keyboard"], self._parts["clock"], time),
        )

    def report(self) -> dict[str, Any]:
        """What somebody who does not have this game would ask for."""
        report = write_report(self._table, self._found, self._parts, self._world.time)
        if not isinstance(report.get("clock"), dict) or "in game" in self._failed:
            return report
        title, clock, time = self._parts["title"], self._parts["clock"], self._world.time
        report["clock"]["ticks_per_s_by_ticks_per_frame"] = tried(lambda: tick_rates(title, clock, time))
        if isinstance(title, FightTitle) and not self._failed & {"focus", "keys"}:
            keyboard, speeds = self._parts["keyboard"], (0.0, SLOW_PRESS)
            report["taps_answered_at_speed"] = tried(
                lambda: {
                    f"{speed:g}": f"{answered_presses(title, keyboard, clock, time, speed)} of {PRESSES}"
                    for speed in speeds
                }
            )
        return report

    def _look(self, name: str, needed: tuple[str, ...], look: Callable[[], Finding]) -> Finding:
        for part in needed:
            blocked = part in self._failed if part in CHECKED else part not in self._parts
            if blocked:
                self._failed.add(name)
                return Finding(name, None, f"not looked at, as {OPENED_BY.get(part, part)!r} is not fine")
        finding = try_check(name, look)
        if finding.ok is False:
            self._failed.add(name)
        return finding

    def _permission(self) -> Finding:
        try:
            process = self._world.open_process(self._found.pid)
            self._held.callback(process.close)
            memory = ProcessMemory(process)
            finding = check_permission(memory, self._table)
        except SoulsError as error:
            reason = check_owner(self._found, self._world.proc, self._world.uid)
            return Finding("permission", False, f"{reason}: {error}" if reason else str(error))
        self._parts["memory"] = memory
        return finding

    def _patterns(self) -> Finding:
        finding = check_patterns(self._parts["memory"], self._table)
        if finding.ok is not False:
            self._parts["title"] = TITLES[self._name](self._parts["memory"])
        return finding

    def _window(self) -> Finding:
        window = self._world.open_window(self._found, self._table.window_title, FIND_S)
        self._held.callback(window.close)
        self._parts["window"] = window
        width, height = window.client_size()
        return Finding("window", True, f"{window.title!r}, {width} x {height} pixels")

    def _values(self) -> Finding:
        window = self._parts.get("window")
        return check_values(self._parts["title"], window.client_size() if window is not None else None)

    def _layout(self, bindings: Mapping[str, str]) -> Finding:
        keys = self._world.open_keys(self._found)
        keyboard = Keyboard(keys, bindings)
        # Even the doctor's own keys must be up when it is interrupted.
        self._held.callback(_close_quietly, keys if self._only_look else keyboard)
        finding = check_layout(keys, bindings)
        if finding.ok is not False:
            self._parts["keyboard"] = keyboard
        return finding

    def _keys(self, bindings: Mapping[str, str]) -> Finding:
        finding = check_keys(self._parts["title"], self._parts["keyboard"], bindings, self._world.time)
        if finding.ok is False and self._world.is_wayland:
            return replace(finding, advice=f"{finding.advice}; {WAYLAND}")
        return finding

    def _speed(self) -> Finding:
        memory: ProcessMemory = self._parts["memory"]
        is_loaded = speed_control.find_block(memory) is not None
        clock = self._world.load_speed_control(self._found, memory)
        self._held.callback(_close_quietly, clock)
        self._parts["clock"] = clock
        how = "was loaded already" if is_loaded else "could be loaded into the game"
        return check_speed(self._parts["title"], clock, how, self._world.time)


WAYLAND = "on Wayland, look for a dialog that asks whether input may be controlled, and allow it"
CHECKED = frozenset({"in game", "focus", "keys", "speed"})
"""Looks that others stand on; the rest of what is needed are parts."""
OPENED_BY = {"memory": "permission", "title": "patterns", "keyboard": "layout", "clock": "speed"}
"""The look that opens a part."""


def _close_quietly(part: Any) -> None:
    with contextlib.suppress(SoulsError, OSError):
        part.close()


def check_permission(memory: ProcessMemory, table: AddressTable) -> Finding:
    """May the game's memory be read? ProcessInfo out by reading some."""
    base = memory.process.modules().get(table.executable.lower())
    if base is None:
        return Finding("permission", False, f"process {memory.process.pid} has no {table.executable} in its memory")
    memory.read(base, 2)
    return Finding("permission", True, "the game's memory can be read")


def check_version(memory: ProcessMemory, table: AddressTable) -> Finding:
    """Is it the version that the addresses are of?"""
    version = memory.module(table.executable).file_version or "nothing"
    if table.file_version is None:
        return Finding("version", None, f"the game says {version}; it is not known of which version the addresses are")
    if version != table.file_version:
        text = f"the game says {version} and the addresses are of {table.file_version}"
        return Finding("version", False, text, "let Steam bring the game up to date, or undo a downgrade")
    return Finding("version", True, version)


def check_patterns(memory: ProcessMemory, table: AddressTable) -> Finding:
    """Does the code that leads to the game's values occur, and is it clear where it leads?"""
    module = memory.module(table.executable)
    found = find_hits(memory, table, module)
    missing = [name for name, hits in found.items() if not hits]
    if missing:
        text = f"code that must occur does not: {', '.join(missing)}"
        return Finding("patterns", False, text, "this is another version of the game, or a mod changes it")
    notes = [note for name, hits in found.items() if (note := choose_target(table.bases[name], hits, module)[1])]
    if notes:
        return Finding("patterns", None, "; ".join(notes), "whether it is right shows in the line 'values'")
    several = [f"{name} {len(hits)} times" for name, hits in found.items() if len(hits) > 1]
    more = f"; {', '.join(several)}, of which the right one is known" if several else ""
    return Finding("patterns", True, f"all {len(found)} pieces of code occur{more}")


def check_in_game(title: Title) -> Finding:
    """Is a character loaded?"""
    if not title.is_ingame:
        return Finding("in game", False, "no character is loaded", "load one; a new one for this alone is best")
    return Finding("in game", True, f"a character with {title.player_hp} of {title.player_max_hp} HP is loaded")


def check_values(title: Title, size: tuple[int, int] | None) -> Finding:
    """Can everything be true that is read from the game's memory?"""
    faults, seen = title.faults(size), list[str]()
    for boss in bosses_of(title.folder):
        plan = load_fight(boss, moves=False).watch
        if (of_boss := title.boss_faults(plan)) is not None:
            faults += of_boss
            seen.append(plan.name)
    if faults:
        advice = "nothing is written into such a game; is it the original program? please report it"
        return Finding("values", False, "; ".join(faults), advice)
    there = f"; {', '.join(seen)} too" if seen else ", and no boss is near"
    count = len(own_fields(title.pointers, title.folder))
    return Finding("values", True, f"{count} values of game and character{there}")


def check_screen(title: Title, window: Window) -> Finding:
    """Is it a window, and of a good size?"""
    if title.screen_mode != "window":
        advice = "choose windowed mode in the game's graphics options"
        return Finding("screen", False, "the game runs in full screen, where it loses keys to other windows", advice)
    width, height = window.client_size()
    if (width, height) != ADVISED:
        text = f"windowed, {width} x {height}, which is fine unless you train on pictures"
        return Finding("screen", None, text, f"for pictures {ADVISED[0]} x {ADVISED[1]} is fastest and sharpest")
    return Finding("screen", True, f"windowed, {width} x {height}")


def check_layout(keys: Keys, bindings: Mapping[str, str]) -> Finding:
    """Does the keyboard layout have every bound key?"""
    missing = keys.missing(bindings.values())
    layouts = keys.layouts()
    named = f" ({', '.join(layouts)})" if layouts else ""
    if missing:
        text = f"the keyboard layout{named} has no {', '.join(missing)}"
        return Finding("layout", False, text, "choose an English keyboard layout")
    foreign = [name for name in layouts if not _is_english(name)]
    if foreign:
        text = f"every bound key exists, but there is a layout that is not English{named}"
        return Finding("layout", None, text, "if a key does nothing, remove that layout while the game is played")
    return Finding("layout", True, f"every bound key exists{named}")


def _is_english(layout: str) -> bool:
    return layout in ENGLISH or (len(layout) == 4 and layout.endswith(ENGLISH_CODES))


def check_focus(window: Window) -> Finding:
    """Can the window be given the keys?"""
    window.activate()
    return Finding("focus", True, "the game has it")


def check_keys(title: Title, keyboard: Keyboard, bindings: Mapping[str, str], time: TimeSource) -> Finding:
    """Does the game follow the keys? Turns the camera and walks a step, there and back."""
    tries: list[tuple[str, str, _Turn | _Walk]] = [("forward", "backward", _Walk(title))]
    # Nobody can turn the camera by hand while it is locked on.
    if not title.lock_on:
        tries.insert(0, ("cameraleft", "cameraright", _Turn(title)))
    dead = [action for there, back, seen in tries for action in _tried_keys(keyboard, there, back, seen, time)]
    if dead:
        keys = ", ".join(f"{action} ({bindings[action]})" for action in dead)
        advice = "close all menus, and bind these keys in the game's options as the documentation says"
        return Finding("keys", False, f"the game does not follow {keys}", advice)
    turned = "turned its camera and " if len(tries) > 1 else ""
    return Finding("keys", True, f"the game {turned}walked a step, there and back")


class _Turn:
    """How far the camera has turned to one side."""

    enough = TURN_RAD

    def __init__(self, title: Title) -> None:
        self._title = title
        self.begin()

    def begin(self) -> None:
        """Count from how it stands now."""
        self._begin = self._heading()

    def _heading(self) -> float:
        x, y = self._title.camera_pose[3:5]
        return math.atan2(float(x), float(y))

    def far(self) -> float:
        """Away from where it began."""
        return abs(math.remainder(self._heading() - self._begin, math.tau))

    def stirred(self) -> bool:
        """Has it turned?"""
        return self.far() > self.enough


class _Walk:
    """How far the player has come, or whether he tries to walk against something."""

    enough = WALK_M

    def __init__(self, title: Title) -> None:
        self._title = title
        self._animation = title.player_animation
        self.begin()

    def begin(self) -> None:
        """Count from where he stands now."""
        self._begin = self._place()

    def _place(self) -> tuple[float, float]:
        x, y = self._title.player_pose[:2]
        return float(x), float(y)

    def far(self) -> float:
        """Away from where he began."""
        return math.dist(self._begin, self._place())

    def stirred(self) -> bool:
        """Has he moved, or begun to?"""
        return self.far() > self.enough or self._title.player_animation != self._animation


def _tried_keys(keyboard: Keyboard, there: str, back: str, seen: _Turn | _Walk, time: TimeSource) -> list[str]:
    """Hold one key until it shows, then the opposite one until that is undone; those that did nothing."""
    if not _held(keyboard, there, seen.stirred, time):
        return [there]
    time.sleep(SETTLE_S)
    farthest = seen.far()
    seen.begin()  # from here: a camera may have moved by itself meanwhile, as after a respawn
    returned = _held(keyboard, back, lambda: seen.far() > 0.5 * farthest or farthest < 0.5 * seen.enough, time)
    return [] if returned else [back]


def _held(keyboard: Keyboard, action: str, shows: Callable[[], bool], time: TimeSource) -> bool:
    deadline = time.now() + MOVE_S
    keyboard.hold([action])
    try:
        while True:
            late = time.now() >= deadline  # and looked at once more: we may have been held up
            with contextlib.suppress(ReadFailed):
                if shows():
                    return True
            if late:
                return False
            time.sleep(WATCH_S)
    finally:
        keyboard.hold([])


def check_speed(title: Title, clock: Clock, how: str, time: TimeSource) -> Finding:
    """Does the game's time stand still, and run twice as fast, when told to?"""
    try:
        clock.pause()
        # Each is measured once more before it counts: the machine may have been busy for a moment.
        pass_s, own_time = _play_time(title), False
        if _rate(pass_s, time, STILL_S) and (still := _rate(pass_s, time, STILL_S)):
            animation = _animation_time(title)
            if animation is None or _rate(animation, time, STILL_S):
                return Finding(
                    "speed", False, f"at speed 0 the game's time kept running, {still:.2f} times as fast", HOOKS
                )
            pass_s, own_time = animation, True
        clock.set_speed(SPEED)
        rate = _rate(pass_s, time, RUN_S)
        if abs(rate / SPEED - 1) > TOLERANCE:
            rate = _rate(pass_s, time, RUN_S)
    finally:
        clock.set_speed(1.0)
    if abs(rate / SPEED - 1) > TOLERANCE:
        text = f"at speed {SPEED:g} the game's time ran {rate:.2f} times as fast as real time"
        return Finding(
            "speed", False, text, "close its menus, and lower its graphics until it keeps 60 frames a second"
        )
    text = f"the library {how}; at speed 0 the game stood, at {SPEED:g} it ran {rate:.2f} times"
    if own_time:
        return Finding("speed", None, f"{text}; {OWN_TIME}", "nothing needs to be done; please report it")
    if clock.unhooked:
        names = ", ".join(clock.unhooked)
        return Finding("speed", True, f"{text}; {names} could not be hooked, so that it takes steps more slowly")
    return Finding("speed", True, text)


def _rate(passed_s: Callable[[], float], time: TimeSource, seconds: float) -> float:
    """How many seconds of the game pass in a real one now; `passed_s` says how many have passed since it was asked."""
    passed_s()
    began, passed = time.now(), 0.0
    while (left := began + seconds - time.now()) > 0.0:
        time.sleep(min(left, WATCH_S))
        passed += passed_s()
    return passed / (time.now() - began)


def _since_asked(read_s: Callable[[], float]) -> Callable[[], float]:
    """How much a time went on since it was asked for last; one that begins again, as an animation does, counts on."""
    last = read_s()

    def passed() -> float:
        nonlocal last
        before, last = last, read_s()
        return max(0.0, last - before)

    return passed


def _play_time(title: Title) -> Callable[[], float]:
    return _since_asked(lambda: title.time / 1000)


def _animation_time(title: Title) -> Callable[[], float] | None:
    """The time of what the player does, which stands when the game stands; None where it is not known."""
    return _since_asked(lambda: title.player_animation_time) if isinstance(title, FightTitle) else None


def _ticks_of(title: Title, clock: Clock, time: TimeSource) -> tuple[Callable[[], Moment], Animated | None]:
    """By what the ticks of the game are counted."""
    animated = (lambda: (title.player_animation_time,)) if isinstance(title, FightTitle) else None
    return tick_source(clock, lambda: Moment(title.time), time, animated)


HOOKS = "another tool may hold the game's clock: close it, and start the game again"


def check_steps(title: Title, clock: Clock, time: TimeSource) -> Finding:
    """Can the game be moved on tick by tick?"""
    try:
        glance, animated = _ticks_of(title, clock, time)
        fault = probe(TickPacer(clock, glance, source=time, animated=animated))
    finally:
        clock.set_speed(1.0)
    if fault:
        return Finding(
            "steps", None, f"not exact, since {fault}", "the game is run and stopped instead, which works too"
        )
    return Finding("steps", True, "the game can be moved on tick by tick")


def tick_rates(title: Title, clock: Clock, time: TimeSource) -> dict[str, float | None]:
    """By how many ticks are given at a time, how many a second the game makes of them; None if it makes others."""
    rates: dict[str, float | None] = {}
    try:
        glance, animated = _ticks_of(title, clock, time)
        for number in (1, *SEVERAL):
            pacer = TickPacer(clock, glance, source=time, animated=animated)
            pacer.ticks_per_frame = number
            rates[str(number)] = round(pacer.ticks_per_s, 1) if pacer.measure() else None
    finally:
        clock.set_speed(1.0)
    return rates


def check_presses(title: Title, keyboard: Keyboard, clock: Clock, time: TimeSource) -> Finding:
    """Does a parry follow its key while the clock is stepped, and must the clock run for that?"""
    if not isinstance(title, FightTitle):
        return Finding("presses", None, "not tried: no fights are known in this game")
    counts = []
    for speed in (0.0, SLOW_PRESS):
        answered = answered_presses(title, keyboard, clock, time, speed)
        how = f"while time passed {speed:g} times as fast" if speed else "while the clock stood"
        counts.append(f"{answered} of {PRESSES} presses were answered {how}")
        if answered == PRESSES:
            return Finding("presses", True, "; ".join(counts))
    advice = "equip the shield in the left hand, and compare the key settings"
    return Finding("presses", None if answered else False, "; ".join(counts), advice)


def answered_presses(title: FightTitle, keyboard: Keyboard, clock: Clock, time: TimeSource, speed: float) -> int:
    """How many of some presses of a key the game follows if its clock runs so fast in that tick."""
    try:
        return sum(_is_answered(title, keyboard, clock, time, speed) for _ in range(PRESSES))
    finally:
        keyboard.hold([])
        clock.set_speed(1.0)


def _is_answered(title: FightTitle, keyboard: Keyboard, clock: Clock, time: TimeSource, speed: float) -> bool:
    glance, animated = _ticks_of(title, clock, time)
    pacer = TickPacer(clock, glance, source=time, animated=animated)
    pacer.act_speed = speed
    seen = set[str]()

    def press() -> None:
        keyboard.hold(["parry"])  # an attack would take the player some way off
        time.sleep(SETTLE_S)  # long enough for a game that uses keys up while its clock stands to do so

    def release() -> None:
        keyboard.hold([])

    pacer.begin()
    acts: dict[int, Callable[[], None]] = {0: press, 3: release}
    for part in (acts, {}):
        pacer.run(PRESS_TICKS, lambda _tick, _moment: seen.add(title.player_animation), part)
    clock.set_speed(REST_SPEED)
    end = time.now() + REST_S
    while title.player_animation != title.names.idle and time.now() < end:
        time.sleep(WATCH_S)
    return bool(seen - {title.names.idle})
