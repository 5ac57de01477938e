"""How fast the simulator is: its bare kernel, the environments around it, and peers of other makers."""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

GAME_S_PER_STEP = 0.1
ROUNDS = 7
ROUND_S = 0.5
PEER_S = 2.0
START_LIMIT_S = 300.0
SETTLE_STEPS = 400
"""Steps before measuring, so that the fights are in all stages at once."""

START_PROGRAM = """
import gymnasium, soulsgym
env = gymnasium.make("SoulsGymIudexSim-v0")
env.reset(seed=0)
env.step(19)
"""


@dataclass(frozen=True)
class Rate:
    """One measured rate in environment steps a second, the median of its rounds, and what it is held against."""

    name: str
    steps_per_s: float
    target: float | None = None
    unit: str = "steps/s"

    @property
    def ok(self) -> bool | None:
        """Is the target reached? None without one."""
        return None if self.target is None else self.steps_per_s >= self.target


@dataclass(frozen=True)
class SimSpeed:
    """All figures of one run."""

    fights: int
    rates: tuple[Rate, ...]
    first_start_s: float | None
    later_start_s: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure with its target and whether it is reached."""
        rates = [asdict(rate) | {"ok": rate.ok} for rate in self.rates]
        return {
            "fights": self.fights,
            "rates": rates,
            "game_hours_per_s": self.rates[1].steps_per_s * GAME_S_PER_STEP / 3600.0,
            "first_start_s": self.first_start_s,
            "later_start_s": self.later_start_s,
        }


def measure_sim(fights: int = 1024, *, peers: bool = True, starts: bool = True, say: Callable[[str], None]) -> SimSpeed:
    """Measure everything; `say` is told what is going on."""
    say("simulator: bare kernel, vector environment, two threads, in turns")
    bare, one, two = _interleaved(fights)
    say("simulator: single environment")
    single = _single()
    rates = [
        Rate("bare kernel, one thread", bare),
        Rate("vector environment, one thread", one, 1_000_000.0),
        Rate("vector environment / bare kernel", one / bare, 0.70, "ratio"),
        Rate("two threads / one thread", two / one, 1.7, "ratio"),
        Rate("single environment", single, 20_000.0),
    ]
    if peers:
        rates += list(_peers(fights, one, say))
    first_s, later_s = _starts(say) if starts else (None, None)
    return SimSpeed(fights, tuple(rates), first_s, later_s)


def _actions(fights: int) -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.integers(0, 20, fights) for _ in range(64)]


def _rate_of(step: Callable[[int], object], per_call: int, seconds: float) -> float:
    calls, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        for _ in range(8):
            step(calls)
            calls += 1
    return calls * per_call / passed


def _interleaved(fights: int) -> tuple[float, float, float]:
    """Medians over rounds taken in turns, so that a noisy machine disturbs all three alike."""
    import gymnasium

    import soulsgym  # noqa: F401 (registers the environments)
    from soulsgym.actions import ACTION_CONTROLS
    from soulsgym.envs.vector import FightVectorEnv

    actions = _actions(fights)
    controls = [ACTION_CONTROLS[chosen] for chosen in actions]
    environments = [gymnasium.make_vec("SoulsGymIudexSim-v0", num_envs=fights, threads=threads) for threads in (1, 2)]
    for environment in environments:
        environment.reset(seed=0)
        for index in range(SETTLE_STEPS):
            environment.step(actions[index % 64])
    engine = cast(FightVectorEnv, environments[0].unwrapped).engine

    rates: list[tuple[float, ...]] = []
    for _ in range(ROUNDS):
        settled = engine.snapshot()
        # Short stretches from a settled state: fights that end stay ended and would make the kernel look faster.
        bare = _bare_round(engine, settled, controls, fights)
        engine.restore(settled)
        vector = [_rate_of(lambda i, e=env: e.step(actions[i % 64]), fights, ROUND_S) for env in environments]  # type: ignore[misc]
        rates.append((bare, *vector))
    for environment in environments:
        environment.close()
    bare, one, two = (statistics.median(column) for column in zip(*rates, strict=True))
    return bare, one, two


def _bare_round(engine: Any, settled: Any, controls: list[Any], fights: int) -> float:
    stepped, spent = 0, 0.0
    while spent < ROUND_S:
        engine.restore(settled)
        for index in range(8):
            running = int(np.count_nonzero(engine.fights["outcome"] == 0))
            begun = time.perf_counter()
            engine.step(controls[index])
            spent += time.perf_counter() - begun
            stepped += running
    return stepped / spent


def _single() -> float:
    import gymnasium

    environment = gymnasium.make("SoulsGymIudexSim-v0")
    environment.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 20, 64).tolist()

    def step(index: int) -> None:
        _, _, terminated, truncated, _ = environment.step(actions[index % 64])
        if terminated or truncated:
            environment.reset()

    rates = [_rate_of(step, 1, ROUND_S) for _ in range(ROUNDS)]
    environment.close()
    return statistics.median(rates)


def _peers(fights: int, ours: float, say: Callable[[str], None]) -> Iterator[Rate]:
    if importlib.util.find_spec("Box2D") is None:
        say("LunarLander of Gymnasium: not installed, skipped (make bench installs it)")
    else:
        say("peer: LunarLander of Gymnasium, vectorised")
        rate = _gymnasium_lander(fights)
        yield Rate("Gymnasium LunarLander-v3, vectorised", rate)
        yield Rate("ours / Gymnasium LunarLander-v3", ours / rate, unit="ratio")
    if importlib.util.find_spec("envpool") is None:
        say("LunarLander of EnvPool: not installed, skipped (make bench installs it)")
    else:
        say("peer: LunarLander of EnvPool, one thread")
        rate = _envpool_lander(fights)
        yield Rate("EnvPool LunarLander-v3, one thread", rate)
        yield Rate("ours / EnvPool LunarLander-v3", ours / rate, unit="ratio")


def _gymnasium_lander(fights: int) -> float:
    import gymnasium

    environment = gymnasium.make_vec("LunarLander-v3", num_envs=fights, vectorization_mode="sync")
    environment.reset(seed=0)
    actions = [np.random.default_rng(i).integers(0, 4, fights) for i in range(16)]
    rate = _rate_of(lambda i: environment.step(actions[i % 16]), fights, PEER_S)
    environment.close()
    return rate


def _envpool_lander(fights: int) -> float:
    import envpool

    environment = envpool.make("LunarLander-v3", env_type="gymnasium", num_envs=fights, num_threads=1)
    environment.reset()
    actions = [np.random.default_rng(i).integers(0, 4, fights).astype(np.int32) for i in range(16)]
    rate = _rate_of(lambda i: environment.step(actions[i % 16]), fights, PEER_S)
    environment.close()
    return rate


def _starts(say: Callable[[str], None]) -> tuple[float, float]:
    """Seconds from starting Python to the first step: with an empty cache of compiled code, and with a filled one."""
    with tempfile.TemporaryDirectory() as cache:
        surroundings = os.environ | {"NUMBA_CACHE_DIR": cache}
        taken = []
        for which in ("first start, compiling", "later start, from the cache"):
            say(f"simulator: {which}")
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", START_PROGRAM], check=True, env=surroundings, timeout=START_LIMIT_S)
            taken.append(time.perf_counter() - begun)
    return taken[0], taken[1]
