"""How fast learning is: beside its limit, beside a peer, on every device there is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from benchmarks import peers
from benchmarks.limits import Against, PPOSpeed, measure_ppo, measure_q, update_times
from soulsai.config import load_preset, with_settings
from soulsai.config.schema import Config
from soulsai.learning.session import compile_parts
from soulsai.transport.frames import MOST_FREED, keep_freed_memory
from soulsgym.errors import MisuseError

PPO_PRESET = "iudex"
Q_PRESETS = ("clipped-dqn", "dddqn")
Q_BATCH = 256
PPO_TARGET = 0.75
Q_TARGET = 0.75
PEER_TARGET = 2.5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Figure:
    """One measured number and what it is held against."""

    name: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False  # the measurement ended before the true value was known
    at_most: bool = False  # smaller is better

    @property
    def ok(self) -> bool | None:
        """Is the target reached? None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


@dataclass(frozen=True)
class TrainSpeed:
    """All figures of one run."""

    threads: int
    devices: tuple[str, ...]
    figures: tuple[Figure, ...]
    shares: dict[str, dict[str, float]]  # of the time, by what learns and phase of its loop
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure with its target and whether it is reached."""
        return asdict(self) | {"figures": [asdict(figure) | {"ok": figure.ok} for figure in self.figures]}


def measure_train(
    seconds: float = 10.0,
    *,
    with_peers: bool = True,
    race: bool = False,
    devices: Sequence[str] = (),
    threads: int = 0,
    changes: Sequence[str] = (),
    say: Say,
) -> TrainSpeed:
    """Measure everything, each part for about `seconds`; `changes` are settings for all configs, `say` is told news."""
    chosen = devices_to_measure(devices)
    threads = threads or os.cpu_count() or 1
    ppo = with_settings(load_preset(PPO_PRESET), ["run.device=cpu", *changes])
    qs = {
        name: with_settings(load_preset(name), [f"q.batch={Q_BATCH}", "run.device=cpu", *changes]) for name in Q_PRESETS
    }
    say("compiling the simulator (about 20 s the first time, a second later on)")
    compile_parts(ppo)
    keep_freed_memory(MOST_FREED)  # as in training
    notes = [] if torch.cuda.is_available() else ["torch sees no CUDA device; only the CPU is measured"]
    changes = [*changes, f"run.threads={threads}"]
    ppo, qs = with_settings(ppo, changes), {name: with_settings(q, changes) for name, q in qs.items()}
    with _threads(1):  # of torch, as in training
        figures, shares = _against_limits(ppo, qs, seconds, say)
    with _threads(threads):
        if (with_peers or race) and not peers.is_installed():
            notes.append("Stable-Baselines3: not installed, skipped (make bench installs it)")
            say(notes[-1])
        elif with_peers:
            figures += _against_peer(ppo, seconds, say)
        if race and peers.is_installed():
            figures += _race(ppo, notes, say)
        figures += _on_devices(ppo, qs[Q_PRESETS[0]], chosen, threads, seconds, say)
    return TrainSpeed(threads, chosen, tuple(figures), shares, tuple(notes))


def devices_to_measure(asked: Sequence[str]) -> tuple[str, ...]:
    """Those asked for, or all there are."""
    there = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    for name in asked:
        if name not in there:
            raise MisuseError(f"device {name!r} cannot be measured; torch has {' and '.join(there)} here")
    return tuple(dict.fromkeys(asked)) or there


def _against_limits(
    ppo: Config, qs: dict[str, Config], seconds: float, say: Say
) -> tuple[list[Figure], dict[str, dict[str, float]]]:
    say("PPO: whole iterations, environment alone, bare passes, in turns")
    speed = measure_ppo(ppo, seconds)
    figures, shares = _ppo_figures(speed), {"PPO": speed.against.shares}
    for name, config in qs.items():
        say(f"Q-learner ({name}): whole gradient steps and bare passes, in turns")
        against = measure_q(config, seconds)
        figures += _q_figures(name, against)
        shares[name] = against.shares
    return figures, shares


def _ppo_figures(speed: PPOSpeed) -> list[Figure]:
    parts = speed.against.parts_s
    return [
        Figure("PPO, environment steps", speed.steps_per_s, "steps/s"),
        Figure("PPO, decisions", speed.decisions_per_s, "decisions/s"),
        Figure("PPO, a whole iteration", speed.against.real_s * 1e3, "ms"),
        *(Figure(f"PPO limit, {name}", seconds * 1e3, "ms") for name, seconds in parts.items()),
        Figure("PPO / its limit", speed.against.ratio, "ratio", PPO_TARGET),
    ]


def _q_figures(name: str, against: Against) -> list[Figure]:
    return [
        Figure(f"{name}, a whole gradient step", against.real_s * 1e3, "ms"),
        Figure(f"{name} limit, bare passes", against.limit_s * 1e3, "ms"),
        Figure(f"{name} / its limit", against.ratio, "ratio", Q_TARGET),
    ]


def _against_peer(ppo: Config, seconds: float, say: Say) -> list[Figure]:
    say("peer: PPO of Stable-Baselines3 with the same network, batch, epochs and fights, in turns with ours")
    found = peers.measure_throughput(ppo, seconds)
    ours, theirs, by_step = found.ours, found.theirs, found.theirs_by_step
    return [
        Figure("PPO 256x256, ours", ours.steps_per_s, "steps/s"),
        Figure("PPO 256x256, Stable-Baselines3", theirs.steps_per_s, "steps/s"),
        Figure("PPO 256x256, Stable-Baselines3, every step a decision", by_step.steps_per_s, "steps/s"),
        Figure("ours / Stable-Baselines3", ours.steps_per_s / theirs.steps_per_s, "ratio", PEER_TARGET),
        Figure("ours / Stable-Baselines3, decisions", ours.decisions_per_s / theirs.decisions_per_s, "ratio"),
        Figure("ours / Stable-Baselines3, every step a decision", ours.steps_per_s / by_step.steps_per_s, "ratio"),
    ]


def _race(ppo: Config, notes: list[str], say: Say) -> list[Figure]:
    say("race: who first wins half of the full fights? Ours")
    ours, theirs = peers.race(ppo, say)
    if ours.reached_s is None or theirs is None:
        notes.append(f"race: ours won {ours.win_rate:.0%} after {ours.trained_s:.0f} s, and the peer was not measured")
        return []
    theirs_s = theirs.reached_s or theirs.trained_s
    if theirs.reached_s is None:
        notes.append(
            f"race: Stable-Baselines3 did not win half within {theirs.trained_s:.0f} s; it won {theirs.win_rate:.1%}"
        )
    never = theirs.reached_s is None
    return [
        Figure("until half of the fights are won, ours", ours.reached_s, "s"),
        Figure("until half are won, Stable-Baselines3", theirs_s, "s", at_least=never),
        Figure("Stable-Baselines3 / ours", theirs_s / ours.reached_s, "ratio", peers.PEER_TIMES_OURS, at_least=never),
    ]


def _on_devices(
    ppo: Config, q: Config, devices: tuple[str, ...], threads: int, seconds: float, say: Say
) -> list[Figure]:
    figures = []
    for device in devices:
        for count in sorted({1, threads}) if device == "cpu" else [threads]:
            where = f"CPU, {count} thread{'s' * (count > 1)}" if device == "cpu" else "CUDA"
            say(f"updates on {where}")
            setting = [f"run.device={device}", f"run.threads={count}"]
            with _threads(1):
                ppo_s, q_s = update_times(with_settings(ppo, setting), with_settings(q, setting), seconds)
            figures.append(Figure(f"PPO update, {where}", ppo_s * 1e3, "ms"))
            figures.append(Figure(f"{Q_PRESETS[0]} gradient step, {where}", q_s * 1e3, "ms"))
    return figures


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
