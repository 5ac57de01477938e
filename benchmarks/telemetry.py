"""What looking costs: the throughput of training with and without telemetry, turn by turn in one run of this script.

    python benchmarks/telemetry.py [--rounds 5] [--steps 3000000]

Three ways to train the same thing, one after the other and again: bare (no rows of metrics but those of evaluations, no
recorded fights), with telemetry as it is by default (JSONL, TensorBoard, recorded fights), and with the live page
beside it, which one viewer has open. Each is a `souls train` of its own; its throughput is that of its own clock. The
page is a process of its own: what it takes is the processor's time, once to start and then as long as it is looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from itertools import pairwise
from pathlib import Path

import psutil

PAGE = "dashboard"
BARE = ("run.log_every_s=1000000", "run.record_every_s=0")
LIMIT_S = 900.0
SHOWN = (
    "win_rate/training,win_rate/evaluation,return/training,loss/policy,"
    "loss/value,policy/entropy,steps_per_s,updates_per_s"
)


def train(folder: Path, steps: int, settings: tuple[str, ...], *, page: bool) -> tuple[float, float]:
    """Steps a second of a whole training, and the share of its time that its own clock counts as telemetry."""
    words = ["--accept-all", "--plain", "--run", str(folder), *(("--dashboard",) if page else ())]
    for setting in (f"run.steps={steps}", "run.final_fights=0", *settings):
        words += ["--set", setting]
    command = [sys.executable, "-c", "from soulsai.cli.main import main; main()", "train", "iudex", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        viewer = Viewer(folder.name, process.pid)
        watchdog = threading.Timer(LIMIT_S, process.kill)
        watchdog.start()
        for line in process.stdout or ():
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                viewer.open(found[0])
        watchdog.cancel()
    viewer.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    if page and not viewer.answers:
        raise SystemExit("the page was never there; nothing was measured")
    if page:
        print(f"the page used {viewer.start_s:.1f} s to start, then {viewer.share:.1%} of a core", flush=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    ends_s = [row["elapsed_s"] for row in rows]
    lengths_s = [end_s - begin_s for begin_s, end_s in pairwise([0.0, *ends_s])]
    told_s = sum(row.get("time/telemetry", 0.0) * length_s for row, length_s in zip(rows, lengths_s, strict=True))
    return rows[-1]["step"] / ends_s[-1], told_s / ends_s[-1]


class Viewer:
    """Asks for what an open page of eight charts asks for, every second."""

    def __init__(self, run: str, training: int) -> None:
        self._run, self._training, self._over, self.answers = run, training, threading.Event(), 0
        self._thread: threading.Thread | None = None
        self.used: list[tuple[float, float]] = []  # moments, and the seconds of a core that the page had used by then

    def open(self, url: str) -> None:
        """Begin to look."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, args=(url,), daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look away."""
        self._over.set()
        if self._thread:
            self._thread.join(10.0)

    @property
    def start_s(self) -> float:
        """Seconds of a core until it was looked at for the first time."""
        return self.used[0][1]

    @property
    def share(self) -> float:
        """Share of one core from then on."""
        (begun_s, before_s), (ended_s, after_s) = self.used[0], self.used[-1]
        return (after_s - before_s) / (ended_s - begun_s)

    def _look(self, url: str) -> None:
        (page,) = [one for one in psutil.Process(self._training).children() if PAGE in one.cmdline()]
        while not self._over.wait(1.0):
            with contextlib.suppress(psutil.Error):
                self.used.append((time.monotonic(), sum(page.cpu_times()[:2])))
            for path in (f"/api/runs/{self._run}", f"/api/runs/{self._run}/series?x=step&points=800&names={SHOWN}"):
                try:
                    with urllib.request.urlopen(url + path, timeout=5.0) as answer:
                        answer.read()
                        self.answers += 1
                except OSError:
                    time.sleep(0.1)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3_000_000)
    asked = parser.parse_args()
    ways = {"bare": (BARE, False), "telemetry": ((), False), "telemetry and page": ((), True)}
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    shares: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(asked.rounds):
            # In another order every time: what slows the machine down for a while must not always meet the same one.
            order = list(ways)[number % 3 :] + list(ways)[: number % 3]
            for way in order:
                settings, page = ways[way]
                place = Path(folder) / f"{way.replace(' ', '-')}-{number}"
                speed, share = train(place, asked.steps, settings, page=page)
                speeds[way].append(speed)
                shares[way].append(share)
                print(f"round {number + 1}: {way}: {speed:,.0f} steps/s, telemetry {share:.2%} of its time", flush=True)
    print(f"\n{'way':20} {'median steps/s':>15} {'of bare, round by round':>34} {'median':>8} {'own clock':>10}")
    for way in ways:
        ratios = [speed / bare for speed, bare in zip(speeds[way], speeds["bare"], strict=True)]
        each = " ".join(f"{ratio:.3f}" for ratio in ratios)
        print(
            f"{way:20} {statistics.median(speeds[way]):15,.0f} {each:>34} {statistics.median(ratios):8.3f} "
            f"{statistics.median(shares[way]):10.2%}"
        )


if __name__ == "__main__":
    main()
