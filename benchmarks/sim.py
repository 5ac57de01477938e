"""How fast the simulator is: its bare kernel, the environments around it, and peers of other makers."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

GAME_S_PER_STEP = 0.1
ROUNDS = 7
ROUND_S = 0.5
PEER_S = 2.0
START_LIMIT_S = 300.0
MANY_FIGHTS = 4096
TWO_THREADS, TWO_PROCESSES = 1.6, 1.8
"""What two threads shall reach where two processes that know nothing of each other reach this."""
CHILD_LIMIT_S = 30.0
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
    say("simulator: bare kernel and vector environment, in turns")
    bare, one = _interleaved(fights)
    scaling = [rate for number in sorted({fights, MANY_FIGHTS}) for rate in _scaling(number, say)]
    say("simulator: single environment")
    single = _single()
    rates = [
        Rate("bare kernel, one thread", bare),
        Rate("vector environment, one thread", one, 1_000_000.0),
        Rate("vector environment / bare kernel", one / bare, 0.70, "ratio"),
        *scaling,
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


def _vector(fights: int, threads: int = 1) -> tuple[Any, Callable[[int], object]]:
    """A vector environment in all stages of its fights, and its step with random actions."""
    import gymnasium

    import soulsgym  # noqa: F401 (registers the environments)

    actions = _actions(fights)
    environment = gymnasium.make_vec("SoulsGymIudexSim-v0", num_envs=fights, threads=threads)
    environment.reset(seed=0)
    for index in range(SETTLE_STEPS):
        environment.step(actions[index % 64])
    return environment, lambda index: environment.step(actions[index % 64])


def _interleaved(fights: int) -> tuple[float, float]:
    """Kernel and environment: medians over rounds taken in turns, so that a noisy machine disturbs both alike."""
    from soulsgym.actions import ACTION_CONTROLS

    controls = [ACTION_CONTROLS[chosen] for chosen in _actions(fights)]
    environment, step = _vector(fights)
    engine = environment.unwrapped.engine
    rates: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        settled = engine.snapshot()
        # Short stretches from a settled state: fights that end stay ended and would make the kernel look faster.
        bare = _bare_round(engine, settled, controls, fights)
        engine.restore(settled)
        rates.append((bare, _rate_of(step, fights, ROUND_S)))
    environment.close()
    bare, one = (statistics.median(column) for column in zip(*rates, strict=True))
    return bare, one


def _scaling(fights: int, say: Callable[[str], None]) -> tuple[Rate, Rate]:
    """What a second process brings, each with an environment of its own, and what a second thread does, in turns."""
    say(f"simulator: two processes and two threads, {fights} fights, in turns")
    environments, steps = zip(*(_vector(fights, threads) for threads in (1, 2)), strict=True)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(2)]
    children = [context.Process(target=_serve_rates, args=(fights, theirs), daemon=True) for _, theirs in pipes]
    for child in children:
        child.start()
    ours = [own for own, _ in pipes]
    ratios: list[tuple[float, float]] = []
    for own in ours:
        own.recv()
    for _ in range(ROUNDS):
        one, two = (_rate_of(step, fights, ROUND_S) for step in steps)
        alone, both = _rates(ours[:1])[0], sum(_rates(ours))
        ratios.append((both / alone, two / one))
    for own in ours:
        own.send(False)
    for child in children:
        child.join(CHILD_LIMIT_S)
    for environment in environments:
        environment.close()
    processes, threads = (statistics.median(column) for column in zip(*ratios, strict=True))
    # A machine on which a second process brings less cannot give more to a second thread.
    target = TWO_THREADS * min(1.0, processes / TWO_PROCESSES)
    return (
        Rate(f"two processes / one, {fights} fights", processes, unit="ratio"),
        Rate(f"two threads / one, {fights} fights", threads, target, "ratio"),
    )


def _serve_rates(fights: int, pipe: Any) -> None:
    """Measure whenever asked to, until told not to."""
    environment, step = _vector(fights)
    pipe.send(None)
    while pipe.recv():
        pipe.send(_rate_of(step, fights, ROUND_S))
    environment.close()


def _rates(pipes: list[Any]) -> list[float]:
    for pipe in pipes:
        pipe.send(True)
    return [pipe.recv() for pipe in pipes]


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
