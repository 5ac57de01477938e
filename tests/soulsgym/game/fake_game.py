"""A small model of the game behind the interfaces of the game layer, with a time of its own and bad habits to order.

Ticks happen when the fake clock is advanced, or as fake time passes while it runs. All is exact and no test waits.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from types import SimpleNamespace

from fake_window import FakeKeys, FakeWindow

from soulsgym.errors import GameGone, GameHung, ReadFailed, SpeedControlError
from soulsgym.game.addresses import load_addresses
from soulsgym.game.attach import Game
from soulsgym.game.keyboard import Keyboard, load_bindings
from soulsgym.game.process import ProcessInfo
from soulsgym.game.titles import DarkSoulsIII, Glance, Sight
from soulsgym.spec import load_fight

MS_PER_TICK = 1000 / 60
WALK_M, CAMERA_RAD, BOSS_M = 0.06, 0.06, 0.03
DEATH_TICKS, LOAD_TICKS, RISE_TICKS, FOG_TICKS, FALL_TICKS = 60, 60, 40, 50, 90
LENGTHS = {"RollingMedium": 60, "AttackRightLight1": 66, "AttackRightHeavy1Sta": 60, "ParryLeftStart": 58,
           "DamageMiddle": 60, "AttackBare": 30}  # fmt: skip
TAPS = {"roll": "RollingMedium", "lightattack": "AttackRightLight1", "heavyattack": "AttackRightHeavy1Sta",
        "parry": "ParryLeftStart"}  # fmt: skip
STRIKE_TICK, BLOW_TICK = 28, 40
DIRECTIONS = {"forward": 0.0, "right": math.pi / 2, "backward": math.pi, "left": -math.pi / 2}


@dataclass
class Passed:
    """How much time has passed for somebody."""

    at: float = 1000.0
    slept: float = 0.0


class FakeTime:
    """Time that passes only when somebody sleeps, and a hair when somebody asks.

    Of several games each has a time of its own, which passes when the thread sleeps that plays it: then it goes the
    same way whatever the system does with the threads of the others.
    """

    def __init__(self) -> None:
        self.worlds: list[World] = []
        self.playing = threading.local()
        self._nobody = Passed()

    def _mine(self) -> Passed:
        world = self.worlds[0] if len(self.worlds) == 1 else getattr(self.playing, "world", None)
        return self._nobody if world is None else world.passed

    @property
    def at(self) -> float:
        return self._mine().at

    @property
    def slept(self) -> float:
        return self._mine().slept

    def now(self) -> float:
        mine = self._mine()
        mine.at += 1e-6
        return mine.at

    def sleep(self, seconds: float) -> None:
        mine, seconds = self._mine(), max(1e-5, seconds)  # even no time at all takes some
        mine.at += seconds
        mine.slept += seconds
        assert mine.slept < 5000.0, "somebody waits for ever"
        for world in self.worlds:
            if world.passed is mine:
                world.pass_real(seconds)


@dataclass
class Habits:
    """What the game does wrong; set them at any time."""

    hung: bool = False
    gone: bool = False
    unreadable_ticks: int = 0
    menu: bool = False
    unarmed: bool = False
    stuck: bool = False
    refuses_lock: bool = False
    ignores_keys: bool = False
    uneven: bool = False  # time goes on without ticks of its own
    runs_on: bool = False  # it goes on while its clock is frozen
    own_time: bool = False  # play time passes by itself, whatever the clock does
    double_ticks: bool = False
    never_dies: bool = False
    never_respawns: bool = False
    far_bonfire: bool = False
    no_second_phase: bool = False
    reversed_camera: bool = False
    lapse: bool = False  # the clock returns to speed 1 by itself, once
    stands_up_dead: bool = False  # health returns although nobody died
    slow_reads: bool = False  # no look is over before the game ticks again
    interrupt_at_tick: int = -1
    frame_s: float = 0.0  # time is taken in only so often, as by a game that waits for the screen
    one_tick_a_frame: bool = False  # and what is more than a tick of it is lost
    foreign_lock: bool = False  # the camera is locked on somebody who stands the other way
    keys_every_frame: bool = False  # a press is used up in a frame without time
    boss_faults: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # what is read from memory and cannot be true
    bad_place: tuple[float, ...] | None = None  # whoever is put there ends up beside it


class World:
    """The game itself."""

    def __init__(self, boss: str = "iudex", *, screen: str = "field") -> None:
        self.plan = load_fight(boss, moves=False).game
        self.habits = Habits()
        self.keys = FakeKeys()
        self.window = FakeWindow()
        self.bindings = load_bindings("darksouls3")
        self.speed, self.owed, self.turns = 1.0, 0.0, 0
        self.budget: float | None = None  # ticks after which the clock stops by itself
        self.clock_ticks = 0.0  # that the clock has shown
        self.waiting, self.since_frame, self._in_frame = 0.0, 0.0, False
        self.ticks, self.time_ms = 0, 5000.0
        self.screen, self.screen_ticks = screen, 0
        self.hp = self.max_hp = self.plan.player_hp
        self.sp = self.max_sp = self.plan.player_sp
        self.boss_max_hp, self.boss_hp = self.plan.boss_hp, self.plan.boss_hp
        self.pose = [*self.plan.bonfire_m, 0.0] if screen == "field" else list(self.plan.player_start)
        self.boss_pose = list(self.plan.boss_start)
        self.view = 0.0  # atan2(nx, ny) of the camera
        self.animation, self.animation_ticks = "Idle", 0
        self.boss_animation, self.boss_ticks = "IdleBattle", 0
        self.lock, self.phase = False, 1
        self.stats: tuple[int, ...] = (1,) * 10
        self.bonfire = "Firelink Shrine"
        self.flags_ok = True
        self.permissions = dict.fromkeys(
            ("allow_attacks", "allow_hits", "allow_moves", "allow_deaths", "allow_player_death",
             "allow_weapon_durability_dmg", "gravity"), True)  # fmt: skip
        self.bonus_range, self.unseen_s = 0.0, 2.0
        self.frost = 1.0
        self.last_down: set[str] = set()
        self.deaths = self.loads = self.rolls = self.lights = self.lock_presses = 0
        self.is_open = True
        self.passed = Passed()

    # ---- time

    def pass_real(self, seconds: float) -> None:
        """Real time passes."""
        if self.habits.hung or self.habits.gone:
            return
        self.turns += 1 + int(seconds * 800)
        if self.habits.runs_on and self.speed == 0.0:
            self.give(seconds * 60)
        if self.habits.own_time:
            self.time_ms += 1000 * seconds
        if self.habits.lapse and self.speed == 0.0:
            self.speed = 1.0
        if self.habits.keys_every_frame and self.speed == 0.0:
            self.last_down = self.down()
        ticks = seconds * self.speed * 60
        if self.budget is not None and self.speed:
            ticks = min(ticks, self.budget)
            self.budget -= ticks
            if self.budget <= 1e-9:
                self.speed, self.budget = 0.0, None
        self.clock_ticks += ticks
        self.give(ticks)
        self._frames(seconds)

    def _frames(self, seconds: float) -> None:
        """What has come in since the last frame is taken in by the next."""
        if not self.habits.frame_s:
            return
        self.since_frame += seconds
        while self.since_frame >= self.habits.frame_s:
            self.since_frame -= self.habits.frame_s
            taken = min(self.waiting, 1.0) if self.habits.one_tick_a_frame else self.waiting
            self.waiting, self._in_frame = 0.0, True
            self.give(taken)
            self._in_frame = False

    def give(self, ticks: float) -> None:
        """Game time passes."""
        if self.habits.frame_s and not self._in_frame:
            self.waiting += ticks
            return
        self.owed += ticks
        while self.owed >= 1.0 - 1e-9:
            self.owed -= 1.0
            for _ in range(2 if self.habits.double_ticks else 1):
                self.tick()

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == self.habits.interrupt_at_tick:
            raise KeyboardInterrupt
        if self.habits.unreadable_ticks > 0:
            self.habits.unreadable_ticks -= 1
        self.screen_ticks += 1
        if self.screen in ("title", "loading"):
            self._elsewhere()
        else:
            self._play()
        if self.screen not in ("title", "loading") and not self.habits.own_time:
            self.time_ms += MS_PER_TICK * (3 if self.habits.uneven else 1)

    def down(self) -> set[str]:
        """The actions whose keys are down, as far as the game hears of them."""
        if not self.window.focused or self.habits.ignores_keys:
            return set()
        return {action for action, key in self.bindings.items() if key in self.keys.down}

    def _elsewhere(self) -> None:
        down = self.down()
        if self.screen == "title" and "interact" in down - self.last_down:
            self._go("loading")
        elif self.screen == "loading" and self.screen_ticks > LOAD_TICKS and not self.habits.never_respawns:
            self._respawn()
        self.last_down = down

    def _go(self, screen: str) -> None:
        self.screen, self.screen_ticks = screen, 0

    def _respawn(self) -> None:
        self._go("field")
        self.loads += 1
        self.permissions["allow_weapon_durability_dmg"] = True
        self.hp, self.sp, self.boss_hp, self.phase = self.max_hp, self.max_sp, self.boss_max_hp, 1
        self.max_hp, self.max_sp = self.plan.player_hp, self.plan.player_sp
        self.pose = [*self.plan.bonfire_m, 0.0]
        if self.habits.far_bonfire:
            self.pose[0] += 300.0
        self.boss_pose = list(self.plan.boss_start)
        self.lock = False
        self._show("Event63000")

    def _show(self, name: str) -> None:
        self.animation, self.animation_ticks = name, 0

    # ---- one tick of play

    def _play(self) -> None:
        down = self.down()
        taps, self.last_down = down - self.last_down, down
        self.animation_ticks += 1
        self.boss_ticks += 1
        if "menu" in taps:
            self.habits.menu = not self.habits.menu
        if self._die_or_fall():
            return
        if self.habits.menu:
            down, taps = set(), set()
        self._camera(down, taps)
        self._act(down, taps)
        self._boss()

    def _die_or_fall(self) -> bool:
        mortal = self.permissions["allow_deaths"] and self.permissions["allow_player_death"]
        if self.pose[2] < self.plan.low_m[2] and self.screen_ticks > FALL_TICKS:
            self.hp = 0
        if self.hp <= 0 and not mortal:
            self.hp = 1
        if self.hp <= 0 and self.habits.stands_up_dead:
            self.hp, self.habits.stands_up_dead = self.max_hp, False
        if self.hp <= 0 and not self.habits.never_dies:
            if self.animation != "DeathIdle":
                self.deaths += 1
                self._show("DeathIdle")
            if self.animation_ticks > DEATH_TICKS:
                self._go("loading")
            return True
        return False

    def _camera(self, down: set[str], taps: set[str]) -> None:
        turn = CAMERA_RAD * (("cameraright" in down) - ("cameraleft" in down))
        self.view += -turn if self.habits.reversed_camera else turn
        to_boss = math.atan2(self.boss_pose[0] - self.pose[0], self.boss_pose[1] - self.pose[1])
        error = math.remainder(to_boss - self.view, 2 * math.pi)
        if self.habits.foreign_lock:
            self.lock, error = True, math.remainder(to_boss + math.pi - self.view, 2 * math.pi)
        if "lock_on" in taps and self.habits.foreign_lock:
            self.habits.foreign_lock = self.lock = False
        elif "lock_on" in taps:
            self.lock_presses += 1
            in_view = math.cos(error) > 0.8 and self.screen == "arena" and not self.habits.refuses_lock
            self.lock = in_view and not self.lock
        if self.lock:
            self.view += 0.3 * error

    def _act(self, down: set[str], taps: set[str]) -> None:
        length = LENGTHS.get(self.animation)
        if self.animation == "Event63000":
            length = RISE_TICKS
        if self.animation == "FogWalk":
            if self.animation_ticks >= FOG_TICKS:
                self._go("arena")
                self.pose[:3] = self.plan.behind_fog_m
                self._show("Idle")
            return
        strikes = self.animation == "AttackRightLight1" and self.animation_ticks == STRIKE_TICK
        if strikes and self.away_m() < 3.0 and self.permissions["allow_hits"]:
            self.boss_hp -= 52
        if length is not None and self.animation_ticks < length:
            return
        near_fog = self.screen == "field" and math.dist(self.pose[:3], self.plan.fog_wall[:3]) < 0.5
        if "interact" in taps and near_fog:
            self._show("FogWalk")
            return
        for action, name in TAPS.items():
            if action in taps:
                self.rolls += action == "roll"
                self.lights += action == "lightattack"
                self._show("AttackBare" if self.habits.unarmed and "attack" in action else name)
                return
        walking = down & DIRECTIONS.keys()
        if walking and not self.habits.stuck:
            angle = self.view + DIRECTIONS[sorted(walking)[0]]
            self.pose[0] += WALK_M * math.sin(angle)
            self.pose[1] += WALK_M * math.cos(angle)
        wanted = "Move" if walking else "Idle"
        if self.animation != wanted:
            self._show(wanted)

    def away_m(self) -> float:
        return math.dist(self.pose[:2], self.boss_pose[:2])

    def _boss_shows(self, name: str) -> None:
        if self.boss_animation != name:
            self.boss_animation, self.boss_ticks = name, 0

    def _boss(self) -> None:
        second = self.plan.changes[0]
        changing = self.boss_animation == second.animation and bool(second.animation)
        if changing and self.boss_ticks < 60:
            return
        if changing:
            self.phase = 2
            self._boss_shows("IdleBattle")
        if self.screen != "arena" or not self.permissions["allow_attacks"]:
            self._boss_shows("IdleBattle")
            return
        if self.phase == 1 and 0 < self.boss_hp <= 500 and not self.habits.no_second_phase:
            if second.animation:
                self._boss_shows(second.animation)
            else:
                self.phase = 2
            return
        if self.boss_animation == "Attack3001":
            if self.boss_ticks == BLOW_TICK and self.away_m() < 3.5 and self.permissions["allow_hits"]:
                self.hp -= 120
                self._show("DamageMiddle")
            if self.boss_ticks >= 90:
                self._boss_shows("IdleBattle")
        elif self.away_m() > 2.5:
            self._boss_shows("WalkFrontBattle")
            share = BOSS_M / self.away_m()
            for axis in (0, 1):
                self.boss_pose[axis] += share * (self.pose[axis] - self.boss_pose[axis])
        else:
            self._boss_shows("Attack3001")

    # ---- as a program

    def check(self) -> None:
        if self.habits.gone:
            raise GameGone("the game (pid 7) has ended: start it again")

    def check_readable(self) -> None:
        self.check()
        if self.screen in ("title", "loading") or self.habits.unreadable_ticks > 0:
            raise ReadFailed(0x140000000, "the way to PlayerHP ends in 0x0: not in game")


class FakeClock:
    """The clock of the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lapses = self.trickled = 0
        self.trickle_after_s = math.inf
        self.was_abandoned = False
        self.closed = False

    @property
    def speed(self) -> float:
        return self._world.speed

    @property
    def queries(self) -> int:
        self._world.check()
        return self._world.turns

    def now(self) -> float:
        return self._world.clock_ticks / 60

    def touch(self) -> int:
        return self.trickled

    def find_loops(self) -> int:
        return 1

    def set_speed(self, factor: float) -> None:
        self._world.check()
        if self._world.habits.hung:
            raise GameHung("the game (pid 7) did not take the speed within 1 s: it hangs; end it and start it again")
        self._world.speed, self._world.budget = factor, None

    def run(self, seconds_times_60, factor) -> None:
        assert self._world.speed == 0.0, "run while it runs"
        self.set_speed(factor)
        self._world.budget = float(seconds_times_60)

    def pause(self) -> None:
        self.set_speed(0.0)

    def advance(self, seconds_times_60=1) -> None:
        self._world.check()
        if self._world.habits.lapse:
            self._world.habits.lapse = False
            self._world.speed = 1.0
            self.lapses += 1
            raise SpeedControlError("the clock of the game (pid 7) ran on by itself; pause() it again")
        assert self._world.speed == 0.0, "advanced while it runs"
        self._world.turns += 4
        self._world.clock_ticks += float(seconds_times_60)
        if not self._world.habits.hung:
            self._world.give(float(seconds_times_60))

    def close(self) -> None:
        self.closed = True
        if not self._world.habits.gone:
            self._world.speed = 1.0


def _plain(name):
    """A value of the world that the title shows and sets as it is."""

    def get(self):
        self.world.check_readable()
        return getattr(self.world, name)

    def put(self, value):
        self.world.check_readable()
        setattr(self.world, name, value)

    return property(get, put)


def _permission(name):
    def get(self):
        self.world.check()
        return self.world.permissions[name]

    def put(self, value):
        self.world.check()
        self.world.permissions[name] = bool(value)

    return property(get, put)


class FakeBoss:
    """What the game layer knows of the boss."""

    hp, max_hp, flags = _plain("boss_hp"), _plain("boss_max_hp"), _plain("flags_ok")

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def pose(self):
        return tuple(self.world.boss_pose)

    @pose.setter
    def pose(self, pose):
        self.world.boss_pose = list(map(float, pose))

    def reset_hp(self):
        self.world.boss_hp = self.world.boss_max_hp


class FakeTitle(DarkSoulsIII):
    """What the game layer knows of the game."""

    player_hp, player_sp = _plain("hp"), _plain("sp")
    player_max_hp, player_max_sp = _plain("max_hp"), _plain("max_sp")
    player_animation = _plain("animation")
    player_stats, last_bonfire = _plain("stats"), _plain("bonfire")
    lock_on = _plain("lock")
    lock_on_bonus_range, los_lock_on_deactivate_time = _plain("bonus_range"), _plain("unseen_s")
    player_frost_resistance = _plain("frost")
    allow_attacks, allow_hits = _permission("allow_attacks"), _permission("allow_hits")
    allow_moves, allow_deaths = _permission("allow_moves"), _permission("allow_deaths")
    allow_player_death = _permission("allow_player_death")
    allow_weapon_durability_dmg = _permission("allow_weapon_durability_dmg")

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls = 0

    @property
    def is_ingame(self):
        self.world.check()
        return self.world.screen not in ("title", "loading") and self.world.habits.unreadable_ticks == 0

    @property
    def time(self):
        self.world.check()
        return int(self.world.time_ms)

    @time.setter
    def time(self, value):
        self.world.time_ms = float(value)

    @property
    def player_pose(self):
        self.world.check_readable()
        return tuple(self.world.pose)

    @player_pose.setter
    def player_pose(self, pose):
        self.world.check_readable()
        bad = self.world.habits.bad_place
        if not self.world.habits.stuck:
            self.world.pose = list(map(float, pose))
            if bad is not None and math.dist(bad[:2], pose[:2]) < 0.5:
                self.world.pose[0] += 3.0

    @property
    def camera_pose(self):
        world = self.world
        x, y, z = world.pose[:3]
        nx, ny = math.sin(world.view), math.cos(world.view)
        return x - 3.6 * nx, y - 3.6 * ny, z + 2.0, nx, ny, 0.0

    was_written = True

    def faults(self, size=None):
        return list(self.world.habits.faults)

    def boss_faults(self, plan):
        return list(self.world.habits.boss_faults) if self.world.screen == "arena" else None

    @property
    def names(self):
        return load_addresses("darksouls3").animations

    def boss(self, name):
        assert name == self.world.plan.boss
        return FakeBoss(self.world)

    def die(self):
        self.allow_deaths = self.allow_player_death = True
        self.player_hp = 0

    def _player_object(self):
        self.world.check_readable()
        return self.world.loads

    def clear_cache(self):
        self.world.check()

    def remember(self):
        self.world.check_readable()
        return dict(self.world.permissions), self.world.bonus_range, self.world.unseen_s

    def put_back(self, saved):
        self.world.check()
        permissions, self.world.bonus_range, self.world.unseen_s = saved
        self.world.permissions = dict(permissions)

    def glance(self, boss):
        self.calls += 1
        world = self.world
        world.check_readable()
        return Glance(round(world.time_ms), world.hp, world.boss_hp, world.animation, world.boss_animation)

    def look(self, boss):
        self.calls += 1
        world = self.world
        world.check_readable()
        if world.habits.slow_reads and world.speed > 0.0:
            raise ReadFailed(0x140000000, "the game ticked during each of 5 reads")
        return Sight(
            time_ms=round(world.time_ms), player_hp=world.hp, player_max_hp=world.max_hp, player_sp=world.sp,
            player_max_sp=world.max_sp, boss_hp=world.boss_hp, boss_max_hp=world.boss_max_hp,
            player_pose=tuple(world.pose), boss_pose=tuple(world.boss_pose), camera_pose=self.camera_pose,
            player_animation=world.animation, boss_animation=world.boss_animation,
            player_animation_s=(world.animation_ticks + 1) / 60,
            boss_animation_s=(world.boss_ticks + 1) / 60, lock_on=world.lock, statuses=(world.frost, 0.0),
        )  # fmt: skip


class FakeGame(Game):
    """A Game on a world: what attach() gives."""

    def __init__(self, world: World, source: FakeTime) -> None:
        source.worlds.append(world)
        process = SimpleNamespace(pid=7, calls=0, is_running=lambda: not world.habits.gone, close=lambda: None)
        super().__init__(
            "darksouls3",
            ProcessInfo(7, "DarkSoulsIII.exe", {}),
            process,
            memory=None,
            title=FakeTitle(world),
            keyboard=Keyboard(world.keys, world.bindings),
            window=world.window,
            clock=FakeClock(world),
        )
        self.world, self.source = world, source
        self.closed = 0

    def __getattribute__(self, name: str):
        if name in ("process", "keyboard", "window", "clock", "title") and "world" in self.__dict__:
            self.source.playing.world = self.world  # whoever reaches for it plays this game
        return super().__getattribute__(name)

    def close(self) -> None:
        self.closed += 1
        super().close()
        self.world.is_open = False


def fake_game(boss: str = "iudex", *, screen: str = "field", source: FakeTime | None = None) -> FakeGame:
    """A game that behaves, until told otherwise by `game.world.habits`."""
    return FakeGame(World(boss, screen=screen), source or FakeTime())
