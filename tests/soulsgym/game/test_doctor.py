"""Every look of the doctor: what is fine, what is not, what could not be looked at, and what is left behind."""

from __future__ import annotations

import json
import math
import struct
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import ANY

import pytest
from fake_process import BASE, KNIGHT, TEXT, lay_out
from fake_window import FakeKeys, FakeWindow

from soulsgym.errors import GameAccessDenied, GameError, GameNotFound, SpeedControlError
from soulsgym.game import machine
from soulsgym.game import report as report_module
from soulsgym.game.addresses import load_addresses
from soulsgym.game.doctor import World, checks
from soulsgym.game.process import ProcessInfo
from soulsgym.game.report import as_text
from soulsgym.game.saves import Backup

PID = 4711


class Game:
    """A game in fake memory that follows its keys and its clock; `now` is the time of the real world."""

    def __init__(self) -> None:
        self.laid = lay_out(load_addresses("darksouls3"), **{**KNIGHT, "LockOn": 0})
        self.process = self.laid.process
        self.process.pid = PID
        self.keys, self.window = FakeKeys(), FakeWindow()
        self.seconds, self.speed, self.given = 0.0, 1.0, 0.0
        self.game_s, self.closed = 1000.0, False
        self.queries = self.trickled = 0
        self.unhooked: tuple[str, ...] = ()
        self.budget: float | None = None
        self.cap = math.inf
        self.deaf: set[str] = set()
        self.leaks = self.own_time = False
        self.tick_s = 1 / 60
        self.heading, self.x = 0.0, 132.0
        self.last_down: set[str] = set()
        self.keys_every_frame, self.attack_until = False, 0.0

    # the clock of the real world

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.queries += 10
        passes = seconds * (1.0 if self.leaks else min(self.speed, self.cap)) + self.given
        if self.budget is not None:
            passes = min(passes, self.budget)
            self.budget -= passes
            if self.budget <= 1e-9:
                self.speed, self.budget = 0.0, None
        self._run(passes)
        self.given = 0.0

    def _run(self, seconds: float) -> None:
        self.game_s += seconds
        down = self.keys.down - self.deaf
        fresh = down - self.last_down
        if seconds > 0.0 or self.keys_every_frame:
            self.last_down = down
        if "M" in fresh and seconds > 0.0:
            self.attack_until = self.game_s + 0.8
        self.laid.set(PlayerAnimation="AttackLeftHeavy1" if self.game_s < self.attack_until else "Idle")
        self.heading += 1.5 * seconds * (("P" in down) - ("O" in down))
        self.x += 4.0 * seconds * (("W" in down) - ("S" in down))
        ms = int(1000 * self.tick_s * int(self.game_s / self.tick_s + 1e-6) + 1e-6)
        self.laid.set(
            Time=int(1000 * self.seconds) if self.own_time else ms,
            PlayerAnimationTime=ms % 4000 / 1000,
            PlayerX=(self.x, -68.0, 575.0),
            CamQx=(0.96 * math.sin(self.heading), -0.28, 0.96 * math.cos(self.heading), 7.0, 133.0, -66.0, 571.0),
        )

    # the control of the game's clock

    def set_speed(self, factor: float) -> None:
        self.speed, self.budget = factor, None

    def pause(self) -> None:
        self.speed = 0.0

    def advance(self, seconds_times_60: Fraction | int = 1) -> None:
        assert self.speed == 0.0
        self.given += float(seconds_times_60) / 60

    def run(self, seconds_times_60: Fraction | int, factor: float) -> None:
        assert self.speed == 0.0
        self.speed, self.budget = factor, float(seconds_times_60) / 60

    def questions(self) -> list[tuple[int, int]]:
        return [(11, self.queries)]

    def touch(self) -> int:
        return self.trickled

    def close(self) -> None:
        self.speed, self.closed = 1.0, True


class ClockOf:
    """The control of a game's clock, which has another time than the real world."""

    def __init__(self, game: Game) -> None:
        self._game = game

    def __getattr__(self, name: str):
        return getattr(self._game, name)

    def now(self) -> float:
        return self._game.game_s + self._game.given


@pytest.fixture
def game():
    return Game()


def copy_of_saves(age_s=60.0):
    made = datetime.now(UTC) - timedelta(seconds=age_s)
    return Backup(Path("/store/2026-01-01_10-00-00"), "darksouls3", Path("/saves"), made, "by hand", {})


@pytest.fixture
def world(game, tmp_path):
    found = ProcessInfo(PID, r"Z:\DarkSoulsIII.exe", {"DISPLAY": ":5"})
    return World(
        platform="linux",
        find_processes=lambda executable: [found] if executable == "DarkSoulsIII.exe" else [],
        open_process=lambda pid: game.process,
        open_window=lambda found, title, limit_s: game.window,
        open_keys=lambda found: game.keys,
        load_speed_control=lambda found, memory: ClockOf(game),
        find_saves=lambda title, environment: [Path("/saves")],
        backups=lambda title: [copy_of_saves()],
        which=lambda name: f"/usr/bin/{name}",
        time=game,
        proc=tmp_path,
        uid=1000,
    )


def look(world, **asked):
    findings = list(checks(world=world, **asked))
    names = [finding.name for finding in findings]
    assert len(names) == len(set(names))
    return {finding.name: finding for finding in findings}


def test_everything_fine(world, game):
    found = look(world, redis=lambda: "localhost:6379 answers")
    assert game.seconds < 5.0  # of waiting; the rest of ten seconds is for starting
    assert list(found) == [
        "system", "packages", "game", "permission", "version", "patterns", "in game", "window", "screen", "values",
        "layout", "focus", "keys", "speed", "steps", "presses", "offline", "backup", "redis",
    ]  # fmt: skip
    assert {name for name, finding in found.items() if finding.ok is not True} == {"offline"}
    assert found["version"].text == "1.15.2.0"
    assert "2.00 times" in found["speed"].text
    assert "turned its camera and walked" in found["keys"].text
    assert found["redis"].text == "localhost:6379 answers"


def test_game_is_left_as_it_was_found(world, game):
    look(world)
    assert (game.speed, game.keys.down, game.keys.closed) == (1.0, set(), True)
    assert game.window.closed
    assert game.closed
    assert game.process.closed
    assert abs(game.heading) < 0.1
    assert abs(game.x - 132.0) < 0.3
    assert game.process.writes == []


@pytest.mark.parametrize("stage", ["key", "speed"])
def test_game_is_left_as_it_was_found_by_an_interruption(world, game, stage):
    sleep = game.sleep

    def interrupted(seconds):
        if game.keys.down if stage == "key" else game.speed == 2.0:
            raise KeyboardInterrupt
        sleep(seconds)

    game.sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        look(world)
    assert (game.speed, game.keys.down, game.keys.closed) == (1.0, set(), True)


def test_game_is_left_as_it_was_found_when_nobody_wants_the_rest(world, game):
    with closing(checks(world=world)) as findings:
        for finding in findings:
            if finding.name == "speed":
                break
    assert game.closed
    assert game.keys.closed
    assert game.window.closed


def test_only_looking_touches_nothing(world, game):
    def never(found, memory):
        raise AssertionError

    found = look(replace(world, load_speed_control=never), only_look=True)
    assert game.keys.sent == []
    assert game.window.activations == 0
    assert found["focus, keys, speed, steps, presses"].ok is None
    assert found["layout"].ok is True
    assert game.keys.closed


def test_no_game_is_said_clearly_and_the_machine_is_looked_at(world):
    found = look(replace(world, find_processes=lambda executable: []), redis=lambda: "fine")
    assert list(found) == ["system", "packages", "permission", "game", "offline", "backup", "redis"]
    assert found["game"].ok is False
    assert found["game"].text.startswith("DarkSoulsIII.exe is not running")


def test_several_games_need_a_pid(world, game):
    games = [ProcessInfo(PID, "a"), ProcessInfo(PID + 1, "b")]
    world = replace(world, find_processes=lambda executable: games)
    found = look(world)
    assert (found["game"].ok, found["game"].advice) == (False, "say which is meant with --pid")
    assert "version" not in found
    assert look(world, pid=PID)["keys"].ok is True
    wrong = look(world, pid=5)["game"]
    assert wrong.text == "process 5 is not DarkSoulsIII.exe"
    assert wrong.advice == f"give --pid one of {PID}, {PID + 1}"


def test_memory_that_may_not_be_read(world, tmp_path):
    def refused(pid):
        raise GameAccessDenied("process 4711 may not be read")

    (tmp_path / str(PID)).mkdir()
    owner = (tmp_path / str(PID)).stat().st_uid
    found = look(replace(world, open_process=refused, uid=owner + 5))
    assert found["permission"].ok is False
    users = f"the game belongs to user {owner} and this program to user {owner + 5}"
    assert found["permission"].text == f"{users}: process 4711 may not be read"
    for name in ("version", "patterns", "in game", "screen", "keys", "speed", "steps"):
        assert found[name].ok is None, name
        assert found[name].text.startswith("not looked at, as"), name
    assert found["version"].text.endswith("'permission' is not fine")
    assert found["window"].ok is True
    assert found["focus"].ok is True


def test_other_version(world, game):
    game.laid = lay_out(load_addresses("darksouls3"), **KNIGHT)
    game.process = game.laid.process
    game.process.add_module("DarkSoulsIII.exe", BASE, code=game.laid._code(BASE + TEXT), version=(1, 15, 0, 0))
    found = look(world)
    assert found["version"].ok is False
    assert found["version"].text == "the game says 1.15.0.0 and the addresses are of 1.15.2.0"


def test_code_that_is_missing_is_named(world, game):
    code = bytearray(game.laid._code(BASE + TEXT))
    game.process.put(BASE + TEXT, bytes(len(code)))
    found = look(world)
    assert found["patterns"].ok is False
    assert "does not: GameDataMan, WorldChrMan" in found["patterns"].text
    assert found["in game"].text == "not looked at, as 'patterns' is not fine"


def test_code_that_occurs_several_times_with_one_target_is_fine(world, game):
    game.laid.add_code("GameMan", game.laid.bases["GameMan"])
    found = look(world)
    assert found["patterns"].ok is True
    assert "GameMan 2 times" in found["patterns"].text


def test_code_that_leads_to_several_places_is_a_note(world, game):
    game.laid.add_code("GameMan", game.laid.bases["GameMan"] + 8)
    found = look(world)
    assert found["patterns"].ok is None
    assert "GameMan occurs 2 times in DarkSoulsIII.exe and leads to 2 places" in found["patterns"].text
    assert found["in game"].ok is True


def test_no_character_loaded(world, game):
    game.laid.cut("PlayerHP", 1)
    found = look(world)
    assert found["in game"].ok is False
    assert found["keys"].text == "not looked at, as 'in game' is not fine"
    assert found["speed"].ok is None
    assert found["focus"].ok is True


def test_no_window(world):
    def none(found, title, limit_s):
        raise GameNotFound("no window 'DARK SOULS III' appeared")

    found = look(replace(world, open_window=none))
    assert (found["window"].ok, found["window"].text) == (False, "no window 'DARK SOULS III' appeared")
    assert found["screen"].text == found["focus"].text == "not looked at, as 'window' is not fine"
    assert found["keys"].text == "not looked at, as 'focus' is not fine"
    assert found["speed"].ok is True


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"PlayerStats": bytes(48)}, "Soul Level is 0 and must be from 1 to 802"),
        ({"PlayerStats": struct.pack("<12i", 12, 10, 11, 13, 12, 9, 9, 8, 0, 0, 15, 9)}, "sum of 99 makes it 10"),
        ({"LockOn": 7}, "LockOn is 7 and must be from 0 to 1"),
        ({"LastBonfire": 12}, "LastBonfire is 12, which is the id of no bonfire"),
        ({"WindowScreenWidth": 640}, "should be 640 x 450 by the game's memory and is 800 x 450"),
        ({"PlayerMaxSP": 90}, "PlayerSP is 95, more than PlayerMaxSP, 90"),
        ({"AllNoMove": 0x80}, "AllNoMove is 128 and must be from 0 to 1"),
        ({"PlayerX": (float("nan"), 0.0, 0.0)}, "PlayerX is nan, 0, 0 and must be"),
        ({"PlayerAnimation": "\u4e01\u0002"}, "PlayerAnimation is no name"),
        ({"IudexMaxHP": 7, "IudexOtherMaxHP": 7}, "health of Iudex Gundyr is 1037, and memory says IudexMaxHP 7"),
        ({"IudexPoseX": (900.0, 0.0, 0.0)}, "Iudex Gundyr is at 900, 0, 0, outside of his arena"),
    ],
)
def test_values_that_cannot_be_true_are_not_ready_to_play(world, game, wrong, said):
    game.laid.set(**wrong)
    found = look(world, only_look=True)
    assert found["values"].ok is False
    assert said in found["values"].text
    assert game.process.writes == []


def test_camera_that_is_none_is_no_value(world, game):
    game.laid.set(CamQx=(0.3, 0.0, 0.3, 7.0, 133.0, -66.0, 571.0))
    assert "the camera's direction has length 0.42 and not 1" in look(world, only_look=True)["values"].text


def test_boss_may_keep_his_most_health_at_either_place(world, game):
    game.laid.set(IudexMaxHP=0)
    assert look(world)["values"].ok is True


@pytest.mark.parametrize("flags", [0x00, 0xE0])
def test_boss_who_was_never_met_or_is_dead_is_not_judged(world, game, flags):
    game.laid.set(IudexFlags=flags, IudexMaxHP=12, IudexOtherMaxHP=12)
    assert look(world)["values"].ok is True


def test_boss_who_is_not_there_is_not_judged(world, game):
    game.laid.cut("IudexHP", 2)
    found = look(world)["values"]
    assert found.ok is True
    assert "no boss is near" in found.text


def test_full_screen(world, game):
    game.laid.set(ScreenMode=1)
    assert look(world)["screen"].ok is False


def test_other_size_is_a_note(world, game):
    game.window.size = (1280, 720)
    finding = look(world)["screen"]
    assert finding.ok is None
    assert "1280 x 720" in finding.text
    assert "800 x 450" in finding.advice


def test_layout_without_a_bound_key(world, game):
    game.keys.lacking, game.keys.languages = {"Q", "W"}, ["ru"]
    found = look(world)
    assert (found["layout"].ok, found["layout"].text) == (False, "the keyboard layout (ru) has no W, Q")
    assert found["keys"].text == "not looked at, as 'layout' is not fine"


@pytest.mark.parametrize(("layouts", "ok"), [(["us"], True), (["0409"], True), (["0809"], True), ([], True),
                                             (["us", "de"], None), (["0409", "0407"], None)])  # fmt: skip
def test_further_layouts_are_a_note(world, game, layouts, ok):
    game.keys.languages = layouts
    assert look(world)["layout"].ok is ok


def test_keys_that_cannot_be_pressed(world):
    def none(found):
        raise GameError("the display :5 cannot be reached")

    found = look(replace(world, open_keys=none))
    assert found["layout"].text == "the display :5 cannot be reached"
    assert found["keys"].ok is None


def test_focus_that_cannot_be_had(world, game):
    game.window.focused = game.window.regains = False
    found = look(world)
    assert found["focus"].ok is False
    assert found["keys"].text == "not looked at, as 'focus' is not fine"
    assert game.keys.sent == [] or not any(down for _, down in game.keys.sent)


@pytest.mark.parametrize(
    ("deaf", "named"),
    [
        ("O", "cameraleft (O)"),
        ("P", "cameraright (P)"),
        ("W", "forward (W)"),
        ("S", "backward (S)"),
        ("OW", "cameraleft (O), forward (W)"),
    ],
)
def test_unbound_keys_are_named(world, game, deaf, named):
    game.deaf = set(deaf)
    finding = look(world)["keys"]
    assert (finding.ok, finding.text) == (False, f"the game does not follow {named}")
    assert game.keys.down == set()


def test_dead_keys_on_wayland_may_be_a_dialog(world, game):
    game.deaf = {"W", "O"}
    assert "Wayland" in look(replace(world, is_wayland=True))["keys"].advice


def test_dead_keys_elsewhere_are_no_dialog(world, game):
    game.deaf = {"W", "O"}
    assert "Wayland" not in look(replace(world, is_wayland=False))["keys"].advice


def test_sleep_that_cannot_be_hooked_is_said(world, game):
    game.unhooked = ("Sleep",)
    found = look(world)["speed"]
    assert found.ok is True
    assert "Sleep could not be hooked" in found.text


def test_camera_that_is_locked_on_is_not_turned(world, game):
    game.laid.set(LockOn=1)
    game.deaf = {"O", "P"}
    finding = look(world)["keys"]
    assert (finding.ok, finding.text) == (True, "the game walked a step, there and back")
    assert ("O", True) not in game.keys.sent


def test_walking_against_a_wall_is_seen_by_the_animation(world, game):
    run = game._run

    def blocked(seconds):
        run(seconds)
        game.x = 132.0
        game.laid.set(PlayerX=(132.0, -68.0, 575.0), PlayerAnimation="Move" if "W" in game.keys.down else "Idle")

    game._run = blocked
    assert look(world)["keys"].ok is True


def test_speed_control_that_cannot_be_loaded(world):
    def none(found, memory):
        raise SpeedControlError("inject.exe is not there; build it with `make speed`")

    found = look(replace(world, load_speed_control=none))
    assert (found["speed"].ok, found["speed"].text) == (False, "inject.exe is not there; build it with `make speed`")
    assert found["steps"].text == "not looked at, as 'speed' is not fine"


def test_clock_that_does_not_stop(world, game):
    game.leaks = True
    found = look(world)
    assert found["speed"].ok is False
    assert "at speed 0" in found["speed"].text
    assert game.speed == 1.0


def test_play_time_that_goes_on_while_the_game_stands_is_told_and_ticks_are_counted_by_the_clock(world, game):
    game.own_time = True
    found = look(world)
    assert found["speed"].ok is None
    assert "at speed 0 the game stood, at 2 it ran 2.0" in found["speed"].text
    assert "counted by its clock" in found["speed"].text
    assert found["steps"].ok is True
    assert found["presses"].ok is True


def test_machine_that_is_busy_for_a_moment_is_no_fault_of_the_game(world, game):
    sleep, game.cap = game.sleep, 1.4

    def busy(seconds):
        sleep(2.0 if game.keys.down else seconds)
        if game.speed == 2.0:
            game.cap = math.inf

    game.sleep = busy
    found = look(world)
    assert {name for name, finding in found.items() if finding.ok is not True} == {"offline"}


@pytest.mark.parametrize(("cap", "ok"), [(1.4, False), (1.6, True)])
def test_speed_that_is_not_reached(world, game, cap, ok):
    game.cap = cap
    finding = look(world)["speed"]
    assert finding.ok is ok
    assert float(finding.text.partition(" ran ")[2].split()[0]) == pytest.approx(cap, abs=0.03)


def test_steps_that_are_not_exact_are_a_note(world, game):
    game.tick_s = 2 / 60
    found = look(world)
    assert found["speed"].ok is True
    assert found["steps"].ok is None
    assert found["steps"].text.startswith("not exact, since")
    assert game.speed == 1.0


def test_presses_are_counted(world, game):
    assert look(world)["presses"].text == "2 of 2 presses were answered while the clock stood"


def test_game_that_uses_keys_up_while_its_clock_stands_is_said(world, game):
    game.keys_every_frame = True
    found = look(world)["presses"]
    assert found.ok is True
    assert found.text.startswith(
        "0 of 2 presses were answered while the clock stood; 2 of 2 presses were answered while"
    )


def test_parry_key_that_does_nothing(world, game):
    game.deaf = {"M"}
    found = look(world)["presses"]
    assert found.ok is False
    assert "equip the shield" in found.advice


def test_report_has_what_somebody_without_the_game_would_ask_for(world, game):
    report = {}
    look(world, report=report)
    assert report["program"]["version"] == "1.15.2.0"
    assert "darksoulsiii.exe" in report["modules"]
    assert report["patterns"]["GameMan"] == [[ANY, "0x4400200"]]
    assert set(report["fields"]) == set(game.laid.table.fields)
    hp = report["fields"]["PlayerHP"]
    assert (hp["value"], hp["chain"][-1], len(hp["chain"])) == (454, hex(game.laid.addresses["PlayerHP"]), 5)
    assert report["clock"]["play_time_at_speed"] == {"0": 0.0, "1": ANY, "2": ANY, "3": ANY}
    assert report["clock"]["play_time_at_speed"]["3"] == pytest.approx(3.0, rel=0.05)
    assert set(report["clock"]["ticks_per_s_by_ticks_per_frame"]) == {"1", "2", "3", "6"}
    assert report["clock"]["ticks_per_s_by_ticks_per_frame"]["1"] > 0.0
    assert report["taps_answered_at_speed"] == {"0": "2 of 2", "0.25": "2 of 2"}
    assert game.speed == 1.0
    assert json.loads(as_text(report)) == json.loads(json.dumps(report))


def test_report_without_a_character_says_what_failed(world, game):
    game.laid.cut("PlayerHP", 1)
    report = {}
    look(world, report=report)
    assert "not in game" in report["fields"]["PlayerHP"]["failed"]
    assert "clock" not in report


def test_report_that_only_looks_writes_nothing(world, game):
    report = {}
    look(world, report=report, only_look=True)
    assert "clock" not in report
    assert game.process.writes == []
    assert game.keys.sent == []


def test_report_of_a_game_that_uses_up_keys_and_time_late(world, game):
    game.keys_every_frame = True
    report = {}
    look(world, report=report)
    assert report["taps_answered_at_speed"] == {"0": "0 of 2", "0.25": "2 of 2"}
    late = iter([5000, 5200, 5300])
    times = SimpleNamespace(now=iter(range(100)).__next__, sleep=lambda seconds: None)

    class Late:
        @property
        def time(self):
            return next(late, 5300)

    clock = SimpleNamespace(set_speed=lambda speed: None, questions=list, unhooked=())
    assert report_module.clock_of(Late(), clock, times)["play_time_at_speed"]["0"] == 0.0


@pytest.mark.parametrize("nobody", [False, True], ids=["user", "no name of the user"])
def test_report_has_no_name_of_the_user_or_his_machine_in_it(monkeypatch, nobody):
    def who():
        if nobody:
            raise KeyError("getpwuid(): uid not found")
        return "somebody"

    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr(report_module.getpass, "getuser", who)
    monkeypatch.setattr(report_module.platform, "node", lambda: "attic.example.org")
    told = {"system": [True, "wine in /home/somebody/wine"], "window": [False, "display attic:10.0 cannot be reached"]}
    text = as_text({"findings": told, "modules": [] if nobody else ["Somebody.dll", r"c:\users\somebody_2\a.dll"]})
    assert "somebody" not in text.lower()
    assert "attic" not in text


def test_report_keeps_words_that_only_contain_a_name(monkeypatch):
    monkeypatch.setattr(report_module.getpass, "getuser", lambda: "player")
    assert "PlayerHP" in as_text({"fields": {"PlayerHP": 454}})


def test_redis_that_does_not_answer(world):
    def silent():
        raise OSError("nobody there")

    assert look(world, redis=silent)["redis"] == machine.Finding("redis", False, "nobody there")


def test_offline_is_always_advised(world):
    finding = look(world)["offline"]
    assert finding.ok is None
    assert "ban" in finding.text
    assert "Play Offline" in finding.advice


# The machine


def test_systems(tmp_path):
    def system(platform, wine=None):
        return machine.check_system(platform, lambda name: wine, tmp_path)

    assert system("win32").ok is True
    assert system("darwin").ok is False
    assert system("linux", "/usr/bin/wine").text == "Linux with Wine (/usr/bin/wine)"
    assert system("linux").ok is None
    (tmp_path / ".local/share/Steam/steamapps/common/Proton 9.0").mkdir(parents=True)
    assert system("linux").text == "Linux with Proton 9.0"


def test_packages():
    assert machine.check_packages("linux", lambda module: True).ok is True
    missing = machine.check_packages("linux", lambda module: module != "Xlib")
    assert (missing.ok, missing.text) == (False, "not installed: python-xlib")
    assert machine.check_packages("win32", lambda module: True).ok is True
    assert "mss, pillow" in machine.check_packages("win32", lambda module: False).text


@pytest.mark.parametrize(
    ("scope", "root", "ok"),
    [(None, False, True), (0, False, True), (1, False, None), (1, True, True), (2, False, False), (2, True, True),
     (3, True, False)],
)  # fmt: skip
def test_rights(tmp_path, scope, root, ok):
    if scope is not None:
        (tmp_path / "sys/kernel/yama").mkdir(parents=True)
        (tmp_path / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")
    finding = machine.check_rights("linux", tmp_path, is_root=root)
    assert finding.ok is ok
    assert (finding.advice == "") == (ok is True)


def test_backups():
    saves = [Path("/saves/01")]
    none = machine.check_backup(saves, [])
    assert (none.ok, none.advice) == (False, "souls game backup")
    assert machine.check_backup([], []).ok is None
    fresh = machine.check_backup(saves, [copy_of_saves(3 * 3600.0), copy_of_saves(1e7)])
    assert (fresh.ok, fresh.text) == (True, "the newest backup, 2026-01-01_10-00-00, is 3 hours old")
    assert machine.check_backup(saves, [copy_of_saves(8 * 86400.0)]).ok is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "less than a minute"), (60, "1 minute"), (7300, "2 hours"), (90000, "1 day")]
)
def test_ages_in_words(seconds, text):
    assert machine.age_text(seconds) == text
