"""Folders of runs as training leaves them, made in milliseconds, and servers that show them."""

from __future__ import annotations

import json
import threading
import time
import urllib.request

import pytest

from soulsai.runs.metrics import MetricsReader, MetricsWriter

CONFIG = 'world = "fight"\nalgorithm = "ppo"\n\n[run]\nseed = 0\nsteps = 1000\n\n[fight]\nengine = "sim"\n'
BEGAN_S = 1_790_000_000
LIMIT_S = 60.0


def row_of(number, **values):
    """A row of metrics.jsonl."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(BEGAN_S + number))
    about = {"step": 10 * number, "time": f"{moment}.500Z", "elapsed_s": float(number)}
    return about | {"loss/policy": number / 8} | values


def lines_of(rows):
    """Rows as the sink writes them."""
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def write_metrics(folder, lines):
    """The metrics of a run whose database is gone: the lines of its export."""
    for file in folder.glob("metrics.*"):
        file.unlink()
    (folder / "metrics.jsonl").write_bytes(lines)


def append_row(folder, *, step, elapsed_s, time, **values):
    """What a training adds to its metrics."""
    writer = MetricsWriter(folder)
    writer.write(step, elapsed_s, values)
    writer.close()


def make_folder(folder, rows=(), *, state="finished", updated="2026-11-16T06:00:00.000Z", **status):
    """The folder of a run."""
    for name in ("evaluations", "recordings", "checkpoints"):
        (folder / name).mkdir(parents=True)
    (folder / "config.toml").write_text(CONFIG)
    (folder / "versions.json").write_text(json.dumps({"preset": "iudex", "seed": 0, "python": "3.11"}))
    values = {"state": state, "step": 100, "steps": 1000, "win_rate": 0.5, "win_rate_low": 0.4, "win_rate_high": 0.6}
    (folder / "status.json").write_text(json.dumps(values | {"updated": updated} | status))
    write_metrics(folder, lines_of(rows))
    MetricsReader(folder).extent()
    (folder / "log.txt").write_text("".join(f"line {number}\n" for number in range(80)))
    return folder


@pytest.fixture
def kit():
    """The functions above, for tests that need others than the fixtures make."""

    class Kit:
        row, lines, folder = staticmethod(row_of), staticmethod(lines_of), staticmethod(make_folder)
        metrics, append = staticmethod(write_metrics), staticmethod(append_row)
        began_s = BEGAN_S

    return Kit


@pytest.fixture
def root(tmp_path):
    """A folder with two runs."""
    place = tmp_path / "runs"
    make_folder(place / "one", [row_of(number) for number in range(100)])
    make_folder(place / "two", [row_of(number) for number in range(5)], updated="2026-11-16T07:00:00.000Z")
    return place


@pytest.fixture
def client_of():
    """A function that makes a client of a folder's page, without a network between."""
    from starlette.testclient import TestClient

    from soulsai.dashboard.app import build
    from soulsai.dashboard.library import Library
    from soulsai.dashboard.security import AccessCheck

    def make(root, token="", *, loopback=True, **words):
        app = build(Library(root), AccessCheck(loopback, token))
        return TestClient(app, base_url="http://127.0.0.1:8716", follow_redirects=False, **words)

    return make


@pytest.fixture
def client(root, client_of):
    return client_of(root)


class Served:
    """A real server in a thread."""

    def __init__(self, root, **wishes):
        from soulsai.dashboard.server import ServeOptions, serve

        self._urls, self._ends, self.problems = [], [], []

        def work():
            try:
                serve(ServeOptions(root, **{"port": 0} | wishes), self._urls.append, until=self._ends.append)
            except Exception as error:
                self.problems.append(error)

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()
        deadline_s = time.monotonic() + LIMIT_S
        while not self._urls and self.thread.is_alive():
            assert time.monotonic() < deadline_s, "the server does not start"
            time.sleep(0.01)

    @property
    def url(self):
        return self._urls[0].partition("?")[0].rstrip("/")

    def get(self, path, **headers):
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return answer.read()

    def json(self, path):
        return json.loads(self.get(path))

    def end(self):
        for end in self._ends:
            end()
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive(), "the server does not end"


@pytest.fixture
def serve_folder():
    """A function that serves a folder until the end of the test."""
    open_ones = []

    def make(root, **wishes):
        open_ones.append(Served(root, **wishes))
        return open_ones[-1]

    yield make
    for each in open_ones:
        each.end()
