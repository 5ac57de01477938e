"""The layer on the running game, measured on the stand-in under Wine, beside what SoulsGym does.

.venv/bin/python benchmarks/game.py [--steps 1000] [--resets 20] [--json]

SoulsGym needs Windows and the game, so what it does is done here by our own code in the same run: twelve single reads
for a snapshot, addresses resolved once or at every read; a step that lets the game run at three times its speed, reads
boss animation, player animation and time without a pause until 0.09 s have passed, stops the clock, and reads the
snapshot. Where ours and its way differ by accident the better one is taken for it: its reads are prepared beforehand,
and its clock is ours, which waits until a change is applied.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

STANDIN = Path(__file__).resolve().parents[1] / "tests" / "standin"
sys.path.insert(0, str(STANDIN))

import standin_kit  # noqa: E402

from soulsgym.actions import ACTION_CONTROLS  # noqa: E402
from soulsgym.engine import standard_starts  # noqa: E402
from soulsgym.errors import SoulsError  # noqa: E402
from soulsgym.game.attach import Game, attach  # noqa: E402
from soulsgym.game.engine import GameEngine  # noqa: E402
from soulsgym.game.fight import keys_of  # noqa: E402
from soulsgym.game.titles import Sight  # noqa: E402
from soulsgym.spec import load_fight  # noqa: E402
from soulsgym.spec.game import GameSetup  # noqa: E402
from soulsgym.state import Outcome  # noqa: E402

BOSS = "iudex"
SEED = 7
SPEED = 3.0
TICKS = 6
LOOKS, ROUNDS = 400, 7
"""Snapshots in a round; the median round counts."""
PART_LIMIT_S = 45.0
"""Steps of one kind end after this, however many were made."""
RESET_STEPS = 20
"""Steps at random between two resets that are measured."""
POLLED_S, PRESSED_S = 0.09, 0.05
"""SoulsGym's: how much play time ends a step, and how long a button is held, in seconds of the game."""
STEP_LIMIT_S = 5.0
SNAPSHOT = (
    "PlayerHP", "PlayerMaxHP", "PlayerSP", "PlayerMaxSP", "IudexHP", "IudexMaxHP", "PlayerAnimation", "IudexAnimation",
    "LockOn",
)  # fmt: skip
BLOCKS = {"PlayerA": 24, "IudexPoseA": 24, "CamQx": 28}
"""Poses that SoulsGym reads in one piece, and how large they are."""
UNRELIABLE = ("SABlend", "Attack", "Part")
"""A name of the boss with one of these makes SoulsGym look for the number of his attack."""


def main(arguments: Sequence[str]) -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description="The layer on the running game, measured on the stand-in.")
    parser.add_argument("--steps", type=int, default=1000, help="steps of each kind (default: 1000)")
    parser.add_argument("--resets", type=int, default=20, help="soft resets (default: 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    given = parser.parse_args(arguments)
    if given.steps < 1 or given.resets < 1:
        sys.exit("game: --steps and --resets must be at least 1")
    if reason := standin_kit.missing():
        sys.exit(f"game: the stand-in cannot run here: {reason}; install it with `make wine`")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, standin_kit.bench(Path(folder)) as bench:
        say("starting the stand-in")
        found = Measured(bench.start("--start", "arena", "--seed", str(SEED)), given.steps).all(given.resets)
    found["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(found, indent=2)) if given.json else print_tables(found)


def say(text: str) -> None:
    """What is being measured, beside the result."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- SoulsGym's way, by our own code


class SingleReads:
    """One memory call for each value, as SoulsGym makes them."""

    def __init__(self, game: Game) -> None:
        self._process, self._pointers = game.process, game.title.pointers
        self._sizes = {name: self._pointers.table.field(name).size for name in (*SNAPSHOT, "Time")} | BLOCKS
        self._sizes |= dict.fromkeys(("IudexAttackID", "IudexAttackID2"), 4)
        self._at = {name: self._pointers.address(name) for name in self._sizes}
        self._read = {name: self._process.prepare(((at, self._sizes[name]),)) for name, at in self._at.items()}

    def cached(self, name: str) -> bytes:
        """A value by an address that was resolved once, and with a call that was prepared then."""
        return self._read[name]()

    def fresh(self, name: str) -> bytes:
        """The same with a call that is put together each time, as libraries for this do."""
        return self._process.read_many(((self._at[name], self._sizes[name]),))

    def chained(self, name: str) -> bytes:
        """A value by following every pointer to it."""
        one = self._pointers.table.field(name)
        at = self._pointers.bases[one.base]
        for offset in one.offsets:
            at = int.from_bytes(self._process.read_many(((at, 8),)), "little") + offset
        return self._process.read_many(((at, self._sizes[name]),))

    def snapshot(self, read: Callable[[str], bytes]) -> list[Any]:
        """The twelve values of an observation, decoded."""
        fields = self._pointers.table.fields
        values: list[Any] = [fields[name].type.unpack(read(name)) for name in SNAPSHOT]
        return values + [np.frombuffer(read(name), np.float32) for name in BLOCKS]

    def time_ms(self) -> int:
        """Play time."""
        return int.from_bytes(self.cached("Time"), "little")

    def boss_animation(self) -> str:
        """His name, and what he really does where it is not to be trusted."""
        name = self.cached("IudexAnimation").decode("utf-16-le", "replace").partition("\0")[0]
        if any(part in name for part in UNRELIABLE):
            for register in ("IudexAttackID", "IudexAttackID2"):
                if (number := int.from_bytes(self.cached(register), "little", signed=True)) != -1:
                    return f"Attack{number}"
            return "IdleBattle"
        return name

    def write(self, name: str, value: bytes) -> None:
        """Put a value there."""
        self._process.write(self._at[name], value)


class BusyLoop:
    """Steps as SoulsGym makes them."""

    def __init__(self, game: Game) -> None:
        self._game, self._reads = game, SingleReads(game)

    def step(self, action: int) -> None:
        """Press, let 0.09 s pass while looking all the time, stop, look once more, restore health."""
        game, reads = self._game, self._reads
        control = ACTION_CONTROLS[action]
        hold, tap = keys_of(int(control["direction"]), int(control["button"]))
        game.clock.set_speed(SPEED)
        start = reads.time_ms()
        game.keyboard.hold(hold)
        if tap:
            game.keyboard.press(tap)
            time.sleep(PRESSED_S / SPEED)
            game.keyboard.release(tap)
        limit = time.monotonic() + STEP_LIMIT_S
        while reads.time_ms() - start < 1000 * POLLED_S:
            reads.boss_animation()
            reads.cached("PlayerAnimation")
            if time.monotonic() > limit:
                raise SoulsError(f"the stand-in's time stood still for {STEP_LIMIT_S:g} s; is the machine too busy?")
        game.clock.pause()
        reads.time_ms()
        reads.snapshot(reads.cached)
        reads.write("PlayerHP", reads.cached("PlayerMaxHP"))
        reads.write("IudexHP", reads.cached("IudexMaxHP"))


def open_actions(plan: GameSetup, sight: Sight) -> npt.NDArray[np.bool_]:
    """What SoulsGym would press now, by the player's animation and stamina."""
    times = {one.name: (one.attack_s, one.roll_s, one.move_s) for one in plan.player_animations}
    after = times.get(sight.player_animation, (0.0, 0.0, 0.0))
    attack, roll, walk = (sight.player_animation_s >= after_s for after_s in after)
    rested = sight.player_sp > 0
    return np.array([walk] * 8 + [roll and rested] * 8 + [attack and rested] * 3 + [True])


# ---------------------------------------------------------------- measuring


@dataclass
class Steps:
    """What steps of one kind cost, and how long they were by the stand-in's own counter."""

    name: str
    steps: int = 0
    real_s: float = 0.0
    processor_s: float = 0.0
    memory_calls: int = 0
    ticks: Counter[int] = field(default_factory=Counter)
    stepping: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON and tables."""
        return {
            "name": self.name,
            "stepping": self.stepping,
            "steps": self.steps,
            "steps_per_s": self.steps / self.real_s,
            "times_real_time": self.steps * 0.1 / self.real_s,
            "memory_calls_per_step": self.memory_calls / self.steps,
            "processor_ms_per_step": 1000 * self.processor_s / self.steps,
            "cores_busy": self.processor_s / self.real_s,
            "ticks": {str(ticks): count for ticks, count in sorted(self.ticks.items())},
            "exact_share": self.ticks[TICKS] / self.steps,
            "most_ticks": max(self.ticks),
        }


class Measured:
    """All measurements on one running stand-in."""

    def __init__(self, standin: Any, steps: int) -> None:
        self._standin, self._steps = standin, steps
        self._generator = np.random.default_rng(SEED)
        self._soft_s: list[float] = []
        self._hard_s: list[float] = []

    def all(self, resets: int) -> dict[str, Any]:
        """Every figure."""
        load = os.getloadavg()[0]
        with_engine = self._with_engine
        snapshots = with_engine(SPEED, "ticks", lambda engine: self._snapshots(engine))
        kinds = [
            with_engine(SPEED, "ticks", lambda engine: self._ours(engine, "ticks, speed 3")),
            with_engine(math.inf, "ticks", lambda engine: self._ours(engine, "ticks, unlimited")),
            with_engine(SPEED, "speed", lambda engine: self._ours(engine, "speed and pause, speed 3")),
            with_engine(SPEED, "speed", lambda engine: self._theirs(engine, "SoulsGym's busy loop, speed 3")),
        ]
        say(f"{resets} resets")
        with_engine(math.inf, "ticks", lambda engine: self._resets(engine, resets))
        return {
            "machine": _machine() | {"load_before": round(load, 2), "load_after": round(os.getloadavg()[0], 2)},
            "snapshots": snapshots,
            "steps": [kind.as_dict() for kind in kinds],
            "resets": {
                "soft": len(self._soft_s),
                "soft_median_s": statistics.median(self._soft_s),
                "soft_max_s": max(self._soft_s),
                "hard": len(self._hard_s),
                "hard_median_s": statistics.median(self._hard_s),
                "hard_max_s": max(self._hard_s),
            },
        }

    def _with_engine(self, speed: float, stepping: str, measure: Callable[[GameEngine], Any]) -> Any:
        engine = GameEngine(
            load_fight(BOSS, moves=False).game,
            [attach(pid=self._standin.pid)],
            game_speed=speed,
            stepping=stepping,
            hard_reset_s=math.inf,
        )
        try:
            self._hard_s.append(self._reset(engine))
            return measure(engine)
        finally:
            engine.close()

    def _reset(self, engine: GameEngine) -> float:
        begun = time.perf_counter()
        engine.reset(np.ones(1, np.bool_), standard_starts(1), np.array([self._generator.integers(2**63)], np.uint64))
        return time.perf_counter() - begun

    def _snapshots(self, engine: GameEngine) -> dict[str, Any]:
        """Cost of one look at a game that stands still, in microseconds and memory calls."""
        say("snapshots")
        game = engine.games[0]
        reads = SingleReads(game)
        ways: dict[str, Callable[[], object]] = {
            "ours": lambda: game.title.look(BOSS),
            "ours, polling": lambda: game.title.glance(BOSS),
            "12 single reads, prepared": lambda: reads.snapshot(reads.cached),
            "12 single reads": lambda: reads.snapshot(reads.fresh),
            "12 single reads by their pointers": lambda: reads.snapshot(reads.chained),
        }
        found = {}
        for name, look in ways.items():
            look()
            calls = game.process.calls
            look()
            found[name] = {"memory_calls": game.process.calls - calls}
        rounds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):  # in turns, so that a busy moment of the machine hits all
            for name, look in ways.items():
                begun = time.perf_counter()
                for _ in range(LOOKS):
                    look()
                rounds[name].append(1e6 * (time.perf_counter() - begun) / LOOKS)
        return {name: {"us": statistics.median(rounds[name])} | found[name] for name in ways}

    def _ours(self, engine: GameEngine, name: str) -> Steps:
        found = self._stepped(
            engine,
            name,
            choose=lambda: engine.fights["action_mask"][0],
            step=lambda action: engine.step(ACTION_CONTROLS[action : action + 1]),
            over=lambda: self._is_over(engine),
        )
        found.stepping = str(engine.notes[0]["stepping"])
        return found

    def _theirs(self, engine: GameEngine, name: str) -> Steps:
        game = engine.games[0]
        loop = BusyLoop(game)
        low_m = engine.plan.low_m[2]

        def lost() -> bool:
            sight = game.title.look(BOSS)
            return bool(sight.player_pose[2] < low_m + 1.0 or sight.player_hp <= 0)

        found = self._stepped(
            engine, name, choose=lambda: open_actions(engine.plan, game.title.look(BOSS)), step=loop.step, over=lost
        )
        found.stepping = "busy loop"
        return found

    @staticmethod
    def _is_over(engine: GameEngine) -> bool:
        if engine.fights["outcome"][0] == Outcome.BROKEN:
            raise SoulsError(f"the fight broke off: {engine.notes[0].get('failure')}")
        return bool(engine.fights["outcome"][0] != Outcome.RUNNING)

    def _stepped(
        self,
        engine: GameEngine,
        name: str,
        *,
        choose: Callable[[], Any],
        step: Callable[[int], None],
        over: Callable[[], bool],
    ) -> Steps:
        """Make the steps. What is not a part of them, choosing and resets, is not counted."""
        say(f"steps: {name}")
        found, process = Steps(name), engine.games[0].process
        limit = time.monotonic() + PART_LIMIT_S
        while found.steps < self._steps and time.monotonic() < limit:
            action = int(self._generator.choice(np.flatnonzero(choose())))
            ticks, calls, processor_s = self._standin.ticks, process.calls, time.process_time()
            begun = time.perf_counter()
            step(action)
            found.real_s += time.perf_counter() - begun
            found.processor_s += time.process_time() - processor_s
            found.memory_calls += process.calls - calls
            found.ticks[self._standin.ticks - ticks] += 1
            found.steps += 1
            if over():
                self._reset(engine)
        return found

    def _resets(self, engine: GameEngine, resets: int) -> None:
        for _ in range(resets):
            for _ in range(RESET_STEPS):
                action = int(self._generator.integers(len(ACTION_CONTROLS)))  # the engine leaves out what is closed
                engine.step(ACTION_CONTROLS[action : action + 1])
                if self._is_over(engine):
                    break
            self._soft_s.append(self._reset(engine))


def _machine() -> dict[str, Any]:
    wine = subprocess.run(["wine", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return {"cores": os.cpu_count(), "python": platform.python_version(), "wine": wine, "numpy": np.__version__}


# ---------------------------------------------------------------- printing


def print_tables(found: dict[str, Any]) -> None:
    """Tables for people; the busy loop is the last row, and ratios are to it."""
    machine, resets = found["machine"], found["resets"]
    print(
        f"{machine['cores']} cores, load {machine['load_before']} before and {machine['load_after']} after, Python "
        f"{machine['python']}, {machine['wine']}; {found['seconds']:.0f} s"
    )
    print(f"\n{'snapshot':<34}{'us':>9}{'calls':>7}{'times ours':>12}")
    ours = found["snapshots"]["ours"]["us"]
    for name, row in found["snapshots"].items():
        print(f"{name:<34}{row['us']:>9.1f}{row['memory_calls']:>7}{row['us'] / ours:>12.1f}")
    theirs = found["steps"][-1]
    heads = ("steps", "steps/s", "ratio", "calls/step", "ratio", "cpu ms/step", "cores", "6 ticks", "most")
    print(f"\n{'steps':<34}" + "".join(f"{head:>12}" for head in heads))
    for row in found["steps"]:
        cells = (
            f"{row['steps']}",
            f"{row['steps_per_s']:.1f}",
            f"{row['steps_per_s'] / theirs['steps_per_s']:.2f}",
            f"{row['memory_calls_per_step']:.0f}",
            f"{row['memory_calls_per_step'] / theirs['memory_calls_per_step']:.4f}",
            f"{row['processor_ms_per_step']:.1f}",
            f"{row['cores_busy']:.2f}",
            f"{row['exact_share']:.1%}",
            f"{row['most_ticks']}",
        )
        print(f"{row['name']:<34}" + "".join(f"{cell:>12}" for cell in cells))
    print("\nticks of a step, by the stand-in's own counter")
    for row in found["steps"]:
        print(f"{row['name']:<34}" + ", ".join(f"{ticks}: {count}" for ticks, count in row["ticks"].items()))
    print(f"\n{'resets':<34}{'number':>9}{'median s':>10}{'longest s':>11}")
    for kind, name in (("soft", "soft"), ("hard", "death, bonfire and fog wall")):
        median_s, most_s = resets[f"{kind}_median_s"], resets[f"{kind}_max_s"]
        print(f"{name:<34}{resets[kind]:>9}{median_s:>10.2f}{most_s:>11.2f}")
    print("\nNot measured here: SoulsGym itself made about 22 steps/s at speed 3 with the real game on a PC.")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (SoulsError, standin_kit.StandinError) as error:
        sys.exit(f"game: {error}")
