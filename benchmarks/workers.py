"""Memory of workers, and how soon their first rows come: `python benchmarks/workers.py --workers 1 10 100`.

A learner is served on this machine, and `souls join --pace 22` plays for it with so many workers. Memory is that of
all processes of `souls join`, where pages that several of them share count once: `together_mb` by the system's share
(PSS), which is smaller where others have loaded the same libraries, and `alone_mb` as if nobody else had, of which
`files_mb` are pages of files that the system can drop; and what only it has (USS) of each worker.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from soulsai.runs.fleet_file import read_fleet
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import BUSY, look_at

PACE = 22.0
"""Steps a second, as a game has them."""
LIMIT_S = 600.0
SETTINGS = ("run.steps=1000000000", "fleet.number=1", "run.evaluate_every_steps=0", "q.update_every=1000")


def souls(*words: str) -> subprocess.Popen[str]:
    """One of our commands."""
    command = [sys.executable, "-m", "soulsai", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def measure(folder: Path, workers: int, seconds: float) -> dict[str, Any]:
    """What so many workers need, once all of them play."""
    fleet = read_fleet(folder)
    assert fleet is not None
    name, password = next(iter(fleet.passwords.items()))
    admin = Address.parse(fleet.admin, run=fleet.run)
    url = f"redis://{name}:{password}@{admin.place}/{fleet.run}"
    began_s = time.monotonic()
    with connect(admin) as client:
        before = _sent(look_at(client, Keys(fleet.run)))
        join = souls("join", url, "--workers", str(workers), "--pace", str(PACE))
        try:
            first_s = _wait(lambda: _sent(look_at(client, Keys(fleet.run))) > before, join) - began_s
            all_s = _wait(lambda: _playing(look_at(client, Keys(fleet.run))) >= workers, join) - began_s
            rows = len(_oldest_s(folder))
            time.sleep(seconds)
            found = look_at(client, Keys(fleet.run))
            oldest_s = _oldest_s(folder)[rows:] or [float("nan")]
            memory = _memory(join.pid)
        finally:
            join.terminate()
            join.wait(60.0)
    pace = sum(worker["steps_per_s"] for worker in found["workers"] if worker["state"] in BUSY)
    return {"workers": workers, "first_rows_s": first_s, "all_play_s": all_s, "steps_per_s": pace,
            "oldest_s": statistics.median(oldest_s), "oldest_ever_s": max(oldest_s), **memory}  # fmt: skip


def _oldest_s(folder: Path) -> list[float]:
    """How old the oldest chunk was that came since the row of metrics before."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row["fleet/oldest_s"] for row in rows if "fleet/oldest_s" in row]


def _memory(pid: int) -> dict[str, float]:
    parent = psutil.Process(pid)
    processes = [parent, *parent.children(recursive=True)]
    found = [process.memory_full_info() for process in processes]
    own = sorted(each.uss / 2**20 for each in found[1:])
    files, anonymous = _pages(processes)
    return {
        "alone_mb": files + anonymous,
        "files_mb": files,
        "processes": len(found),
        "together_mb": sum(each.pss for each in found) / 2**20,
        "parent_rss_mb": found[0].rss / 2**20,
        "largest_rss_mb": max(each.rss for each in found) / 2**20,
        "own_median_mb": own[len(own) // 2],
    }


def _pages(processes: list[psutil.Process]) -> tuple[float, float]:
    """Megabytes of files, each as much as the process that has read most of it, and of everything else."""
    files: dict[str, float] = {}
    anonymous = 0.0
    for process in processes:
        own: dict[str, float] = {}
        for each in process.memory_maps(grouped=False):
            anonymous += each.anonymous if each.path.startswith("/") else each.pss
            if each.path.startswith("/"):
                own[each.path] = own.get(each.path, 0.0) + each.rss - each.anonymous
        files |= {path: max(size, files.get(path, 0.0)) for path, size in own.items()}
    return sum(files.values()) / 2**20, anonymous / 2**20


def _sent(found: Any) -> int:
    return sum(worker["sent"] for worker in found["workers"])


def _playing(found: Any) -> int:
    return sum(worker["state"] in BUSY and worker["steps"] > 0 for worker in found["workers"])


def _wait(holds: Any, process: subprocess.Popen[str]) -> float:
    until_s = time.monotonic() + LIMIT_S
    while not holds():
        if process.poll() is not None or time.monotonic() > until_s:
            process.terminate()
            raise SystemExit(f"the workers did not come: {process.communicate()[0][-1000:]}")
        time.sleep(0.1)
    return time.monotonic()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--seconds", type=float, default=15.0, help="of play before memory is measured")
    parser.add_argument("--preset", default="clipped-dqn")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        serve = souls(
            "serve", words.preset, "--run", str(folder), "--plain", "--no-dashboard", "--accept-all", *settings
        )
        try:
            _wait(lambda: (folder / "fleet.json").exists() and bool(read_fleet(folder).passwords), serve)  # type: ignore[union-attr]
            time.sleep(5.0)
            for number in words.workers:
                found = measure(folder, number, words.seconds)
                print(
                    json.dumps(found)
                    if words.json
                    else "  ".join(f"{key} {value:,.4g}" for key, value in found.items())
                )
        finally:
            serve.terminate()
            serve.wait(60.0)


if __name__ == "__main__":
    main()
