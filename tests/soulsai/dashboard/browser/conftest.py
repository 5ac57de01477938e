"""A real browser on the real page of runs that were really trained."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

SOULS = [sys.executable, "-c", "from soulsai.cli.main import main; main()"]
START_S = 240.0
LIMIT_S = 120.0
SMALL = [
    "run.threads=1",
    "run.log_every_s=0",
    "run.record_every_s=0.01",
    "run.evaluation_fights=8",
    "run.final_fights=12",
    "fight.number=8",
    "fight.step_limit=900",
    "network.hidden=[16]",
]
FIRST = [*SMALL, "run.steps=40000", "run.evaluate_every_steps=8000", "ppo.minibatch=64"]
SECOND = [*SMALL, "run.steps=3000", "run.evaluate_every_steps=1500", "run.seed=5"]
LIVE = [
    *SMALL,
    "run.log_every_s=0.2",
    "run.steps=1000000000",
    "run.evaluate_every_steps=20000",
    "run.checkpoint_every_s=1000",
    "ppo.minibatch=64",
]


class Silent:
    """Shows nothing."""

    def say(self, text):
        pass

    def show(self, progress):
        pass


def train(folder, preset, settings):
    """Train a run in this process."""
    from soulsai.config import config_to_toml, load_preset, with_settings
    from soulsai.learning.session import run_session
    from soulsai.runs.run import Run

    config = with_settings(load_preset(preset), settings)
    run = Run.create(folder, config_to_toml(config), preset=preset, command=["souls", "train", preset])
    outcome = run_session(run, config, resume=False, view=Silent(), stop=lambda: False, check=False)
    assert outcome.finished


@contextmanager
def process(words, *, until="", **options):
    """A process of its own, ended afterwards; with `until` the first line that has this."""
    running = subprocess.Popen(
        [*SOULS, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options
    )
    lines = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(line) for line in running.stdout], daemon=True)
    reader.start()
    try:
        yield (
            (running, next(line for line in iter(lambda: lines.get(timeout=START_S), None) if until in line))
            if until
            else running
        )
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGTERM)
            try:
                running.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait(LIMIT_S)
        reader.join(LIMIT_S)
        running.stdout.close()


@contextmanager
def page_server(root, *words):
    """`souls dashboard` on a folder; its process and address."""
    with process(["dashboard", str(root), *words], until="http://") as (running, line):
        yield running, next(word for word in line.split() if word.startswith("http://")).rstrip("/")


def wait_until(done, limit_s=LIMIT_S, what="it"):
    """Wait until something is true; a failure that names it otherwise."""
    deadline_s = time.monotonic() + limit_s
    while not (value := done()):
        assert time.monotonic() < deadline_s, f"{what} did not happen within {limit_s:.0f} s"
        time.sleep(0.1)
    return value


@pytest.fixture(scope="session")
def chromium():
    """Where Chromium is."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt install chromium)")
    return path


@pytest.fixture(scope="session")
def site(chromium, tmp_path_factory):
    """A folder with two trained runs, and the address of its page."""
    root = tmp_path_factory.mktemp("site")
    train(root / "first", "smoke", FIRST)
    train(root / "second", "smoke-q", SECOND)
    with page_server(root, "--port", "0") as (_, address):
        yield root, address


@pytest.fixture(scope="module")
def live(site):
    """The folder of a run that trains now in a process of its own, under the page of `site`; and the process."""
    root, _ = site
    folder = root / "live"
    words = ["train", "smoke", "--run", str(folder), "--plain", *(f"--set={setting}" for setting in LIVE)]
    with process(words) as running:
        metrics = folder / "metrics.jsonl"
        wait_until(lambda: metrics.exists() and metrics.stat().st_size > 0, START_S, "the first row of metrics")
        yield folder, running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
def browser(chromium):
    """Chromium, for this folder, not for the session: while it runs, its event loop is in the way of others."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=1000 * START_S)
        yield running
        running.close()


class Complaints:
    """What a page complained about."""

    def __init__(self):
        self.found = []
        self.expected = ()

    def watch(self, page):
        page.on("console", lambda message: message.type in ("error", "warning") and self.add("console", message.text))
        page.on("pageerror", lambda error: self.add("exception", str(error)))
        page.on("requestfailed", self.failed)
        page.on("response", lambda answer: answer.status >= 400 and self.add(str(answer.status), answer.url))

    def failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # left on purpose: another view, or the end of the page
            self.add(request.failure, request.url)

    def add(self, kind, text):
        if not any(part in text for part in self.expected):
            self.found.append(f"{kind}: {text}")


@pytest.fixture
def complaints():
    """What pages complain about; a test may name parts of what it expects."""
    return Complaints()


@pytest.fixture
def open_page(browser, complaints):
    """A function that opens an address; afterwards no page may have complained."""
    contexts = []

    def show(address, **options):
        size = {"width": 1280, "height": 800}
        context = browser.new_context(**{"viewport": size, "accept_downloads": True, **options})
        context.set_default_timeout(1000 * LIMIT_S)
        contexts.append(context)
        page = context.new_page()
        complaints.watch(page)
        page.goto(address)
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints.found == []


@pytest.fixture
def pictures(tmp_path):
    """Where screenshots go: the folder SOULS_SCREENSHOTS, to be looked at, or one that is thrown away."""
    folder = Path(os.environ.get("SOULS_SCREENSHOTS") or tmp_path / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def wait():
    """`wait_until` for tests."""
    return wait_until


@pytest.fixture(scope="session")
def serve_page():
    """`page_server` for tests that need their own."""
    return page_server
