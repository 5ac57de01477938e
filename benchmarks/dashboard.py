"""The live page with a long history: how soon it is drawn, how often it moves, whether the browser's memory stays flat.

    .venv/bin/python benchmarks/dashboard.py --minutes 10

Writes a run of 1,000,000 rows of 8 metrics, serves it, opens it in Chromium, and appends a row every second.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

METRICS = (
    "win_rate/training",
    "return/training",
    "loss/policy",
    "loss/value",
    "policy/entropy",
    "policy/kl",
    "value/explained_variance",
    "steps_per_s",
)
"""One chart each."""
STEPS_A_ROW = 20
BEGUN_S = 1_760_000_000.0
"""Time of the first row: fixed, so that the file is the same every time."""
START_S = 60.0
Line = tuple[str, str]
"""Of the table: what, and how much."""
BLOCK = 20_000
ANSWERS = ("first answer", "first answer, again")
DRAWN = """() => performance.getEntriesByName("souls.drawn").length > 0"""
WATCH = """
(() => {
  let last = 0;
  window.soulsUpdates = [];
  const look = () => {
    const all = [...document.querySelectorAll("section.chart .plot[data-points]")];
    const plots = all.filter((plot) => Number(plot.dataset.points) > 0);
    if (plots.length >= 8 && !performance.getEntriesByName("souls.drawn").length) performance.mark("souls.drawn");
    const plot = plots[0];
    if (plot && plot.dataset.drawn !== last) {
      last = plot.dataset.drawn;
      window.soulsUpdates.push(performance.now());
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""
"""Looks with every frame, so the moments are those at which a person could see it."""


def main() -> None:
    """Measure, and print a table."""
    asked = parse()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no Chromium on this machine (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        root = Path(folder) / "runs"
        run = write_run(root / "long", asked.rows)
        size = (run / "metrics.jsonl").stat().st_size
        say(f"{asked.rows:,} rows of {len(METRICS)} metrics, {size / 1e6:.0f} MB; {os.cpu_count()} cores")
        for name in ANSWERS:
            show(name, first_answer(root))
        with served(root) as address:
            for name, value in in_browser(chromium, address, run, asked):
                show(name, value)


def parse() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of history")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the memory is watched")
    parser.add_argument("--updates-s", type=float, default=60.0, help="how long updates are counted")
    parser.add_argument("--loads", type=int, default=5, help="how often the page is opened again")
    parser.add_argument("--folder", type=Path, default=None, help="where the run is written for a while")
    return parser.parse_args()


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def show(name: str, value: str) -> None:
    """A line of the table, as soon as it is known: the whole takes a while."""
    say(f"{name:<40} {value}")


def write_run(folder: Path, rows: int) -> Path:
    """A run with a long history, and nothing else that would take time to look at."""
    from soulsai.config import config_to_toml, load_preset
    from soulsai.runs.metrics import MetricsReader
    from soulsai.runs.run import Run
    from soulsai.runs.status import Status

    run = Run.create(folder, config_to_toml(load_preset("smoke")), preset="smoke", command=["souls", "train", "smoke"])
    with (folder / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for begin in range(0, rows, BLOCK):
            file.writelines(row(number) for number in range(begin, min(begin + BLOCK, rows)))
    MetricsReader(folder).extent()
    run.write_status(Status("running", rows * STEPS_A_ROW, 2 * rows * STEPS_A_ROW, 0.5, 0.45, 0.55))
    return folder


def row(number: int) -> str:
    """A row of metrics: smooth curves with noise that needs no generator."""
    share = number / 1_000_000
    noise = ((number * 2_654_435_761) % 65_536) / 65_536 - 0.5
    curve = share / (share + 0.3) + 0.2 * noise
    values = ",".join([f'"{name}":{curve + 0.05 * place:.6f}' for place, name in enumerate(METRICS[:-1])])
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(BEGUN_S + number))
    head = f'"step":{number * STEPS_A_ROW},"time":"{stamp}.000Z","elapsed_s":{number}.0'
    return f'{{{head},{values},"{METRICS[-1]}":{5000 + 900 * noise:.1f}}}\n'


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The page in a process of its own; its address."""
    code = "from soulsai.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "dashboard", str(root), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    output = process.stdout
    threading.Thread(target=lambda: list(map(lines.put, output)), daemon=True).start()
    try:
        line = lines.get(timeout=START_S)
        yield next(word for word in line.split() if word.startswith("http://")).rstrip("/")
    finally:
        process.terminate()
        process.wait(20)


def first_answer(root: Path) -> str:
    """From the start of the server until it has answered all 8 curves completely."""
    with served(root) as address:
        begin_s = time.perf_counter()
        answer = series(address)
        first_s = time.perf_counter() - begin_s
        while not answer["complete"]:
            time.sleep(0.05)
            answer = series(address)
        whole_s = time.perf_counter() - begin_s
        begin_s = time.perf_counter()
        series(address)
        again_s = time.perf_counter() - begin_s
    return f"{1000 * first_s:.0f} ms; complete after {whole_s:.2f} s; then {1000 * again_s:.0f} ms each"


def series(address: str) -> Any:
    """All curves, as the page asks for them."""
    url = f"{address}/api/runs/long/series?names={','.join(METRICS)}&x=step&points=500"
    with urllib.request.urlopen(url, timeout=START_S) as answer:
        return json.load(answer)


def in_browser(chromium: str, address: str, run: Path, asked: argparse.Namespace) -> Iterator[Line]:
    """What a person sees."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_init_script(WATCH)
        yield from loads(context, address, asked.loads)
        page = context.new_page()
        page.goto(f"{address}/#/learning/long")
        page.wait_for_function(DRAWN, timeout=1000 * START_S)
        with growing(run, asked.rows):
            yield updates(page, asked.updates_s)
            yield from memory(context, page, asked.minutes)
        browser.close()


def loads(context: Any, address: str, number: int) -> list[Line]:
    """How soon something, and everything, is drawn; the first time without the browser's cache."""
    paints, all_drawn = [], []
    for _ in range(number):
        page = context.new_page()
        page.goto(f"{address}/#/learning/long")
        page.wait_for_function(DRAWN, timeout=1000 * START_S)
        paints.append(page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        all_drawn.append(page.evaluate("() => performance.getEntriesByName('souls.drawn')[0].startTime"))
        points = page.evaluate(
            "() => [...document.querySelectorAll('.plot[data-points]')].map((p) => +p.dataset.points)"
        )
        page.close()
    return [
        ("first contentful paint", spread(paints, "ms")),
        ("all 8 charts drawn", spread(all_drawn, "ms")),
        ("points in the charts", f"{sum(points):,} in {len(points)} charts"),
    ]


def spread(values: list[float], unit: str) -> str:
    """The first, the median and the worst."""
    return f"first {values[0]:.0f} {unit}, median {statistics.median(values):.0f}, worst {max(values):.0f}"


@contextmanager
def growing(run: Path, rows: int) -> Iterator[None]:
    """A row more every second, as a run that trains writes them."""
    from soulsai.runs.metrics import MetricsWriter
    from soulsai.runs.run import Run
    from soulsai.runs.status import Status

    ended = threading.Event()

    def grow() -> None:
        number, metrics = rows, MetricsWriter(run)
        while not ended.wait(1.0):
            values = json.loads(row(number))
            metrics.write(number * STEPS_A_ROW, float(number), {name: values[name] for name in METRICS})
            Run.open(run).write_status(Status("running", number * STEPS_A_ROW, 2 * rows * STEPS_A_ROW))
            number += 1

    writer = threading.Thread(target=grow, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join(5)


def updates(page: Any, seconds: float) -> Line:
    """How often the charts move while rows come in every second."""
    page.wait_for_timeout(3000)
    page.evaluate("() => { window.soulsUpdates.length = 0; }")
    page.wait_for_timeout(1000 * seconds)
    moments = page.evaluate("() => window.soulsUpdates")
    gaps = [after - before for before, after in pairwise(moments)]
    if not gaps:
        return ("time between updates", "there were none")
    late = sum(gap > 1500 for gap in gaps)
    told = f"median {statistics.median(gaps):.0f} ms, longest {max(gaps):.0f}, {late} over 1.5 s, {len(moments)} in all"
    return (f"time between updates, {seconds:.0f} s", told)


def memory(context: Any, page: Any, minutes: float) -> list[Line]:
    """The JavaScript heap after a collection, minute by minute, and the nodes of the page."""
    session = context.new_cdp_session(page)
    session.send("Performance.enable")

    def look() -> tuple[float, int]:
        session.send("HeapProfiler.collectGarbage")
        values = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        return values["JSHeapUsedSize"] / 1e6, int(values["Nodes"])

    seen = [look()]
    left_s = 60.0 * minutes
    while left_s > 0:
        page.wait_for_timeout(1000 * min(60.0, left_s))
        left_s -= 60.0
        seen.append(look())
    heaps = " ".join(f"{heap:.1f}" for heap, _ in seen)
    nodes = [count for _, count in seen]
    return [
        (f"JavaScript heap, MB, over {minutes:g} min", heaps),
        ("nodes of the page, first and last", f"{nodes[0]:,} {nodes[-1]:,}"),
    ]


if __name__ == "__main__":
    main()
