"""Runs watched by their files, from other processes: real locks, real webhooks, real kills."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

from soulsai.errors import ConfigError
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.telemetry import watcher
from soulsai.telemetry.notify import Reading, Watch
from soulsai.telemetry.watcher import URLS, follow, has_begun, notify_child, read

LIMIT_S = 240.0
TRAINER = """
import json, sys, time
from pathlib import Path
from soulsai.runs.metrics import MetricsWriter
from soulsai.runs.run import Run
from soulsai.runs.status import Status
run = Run(Path(sys.argv[1]))
with run.lock():
    metrics = MetricsWriter(run.folder)
    print("begun", flush=True)
    for line in sys.stdin:
        said = json.loads(line)
        if "status" in said:
            run.write_status(Status(**said["status"]))
        if "row" in said:
            metrics.write(said["row"].pop("step"), 0.0, said["row"])
        print("done", flush=True)
"""


class Trainer:
    """A process that holds the lock of a run and writes what it is told to."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAINER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "begun\n"

    def __call__(self, **said):
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def status(self, state="running", **more):
        self(status={"state": state, "steps": 100, **more})

    def end(self):
        self.process.stdin.close()
        self.process.wait(LIMIT_S)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT_S)


class Hook(BaseHTTPRequestHandler):
    """Keeps what came."""

    def do_POST(self):
        self.server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.code)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def hook():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.got, server.code = [], 204
        server.url = f"http://127.0.0.1:{server.server_port}/s3cr3t"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def folder(tmp_path):
    Run.create(tmp_path / "mine", "[run]\nseed = 1\n", preset="smoke", command=["souls"])
    return tmp_path / "mine"


@pytest.fixture
def trainer(folder):
    made = Trainer(folder)
    yield made
    with contextlib.suppress(OSError):
        made.kill()


def wait_for(done, limit_s=LIMIT_S):
    until_s = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < until_s, "it did not happen in time"
        time.sleep(0.02)


def events(hook):
    return [message["event"] for message in hook.got]


# ---- Reading a folder


def test_a_run_that_has_just_begun(folder, trainer):
    assert read(Run(folder)) == Reading("running")


def test_steps_and_win_rates_are_those_of_the_newest_row(folder, trainer):
    trainer.status(step=10, win_rate=0.1, win_rate_low=0.0, win_rate_high=0.3)
    assert read(Run(folder)) == Reading("running", 10, 100, 0.1, 0.0, 0.3)
    names = ("win_rate/evaluation", "win_rate/evaluation_low", "win_rate/evaluation_high")
    trainer(row={"step": 20, **dict(zip(names, (0.5, 0.4, 0.6), strict=True)), "fleet/workers": 2.0})
    trainer(row={"step": 30, "loss/q": float("nan")})
    assert read(Run(folder)) == Reading("running", 30, 100, 0.5, 0.4, 0.6, 2.0)
    trainer.status("finished", step=30, win_rate=0.45, win_rate_low=0.4, win_rate_high=0.5)  # by the last evaluation
    found = read(Run(folder))
    assert (found.win_rate, found.low, found.high) == (0.45, 0.4, 0.5)


def test_metrics_that_are_damaged_are_left_out(folder, trainer):
    trainer(row={"step": 5, "fleet/workers": 2.0})
    trainer.status(step=3)
    assert read(Run(folder)) == Reading("running", 5, 100, workers=2.0)
    trainer.kill()
    for file in folder.glob("metrics.sqlite*"):
        file.write_bytes(b"no database" * 1000)
    assert read(Run(folder)) == Reading("killed", 3, 100)


def test_the_state_of_an_earlier_time_does_not_count_while_somebody_trains(folder, trainer):
    trainer.status("stopped", step=5)
    assert read(Run(folder)).state == "running"
    trainer.end()
    assert read(Run(folder)).state == "stopped"


def test_a_kill_is_seen(folder, trainer):
    trainer.status(step=5)
    trainer.kill()
    assert read(Run(folder)).state == "killed"


def test_a_folder_that_is_gone(tmp_path):
    assert read(Run(tmp_path / "gone")) == Reading("failed")


def test_waiting_for_the_beginning_has_a_limit(folder):
    assert not has_begun(Run(folder), 0.2)
    Run(folder).write_status(Status("finished", 10, 10))
    assert not has_begun(Run(folder), 0.2)
    assert has_begun(Run(folder), LIMIT_S, "2026-01-01")


class WatchByHand(Watch):
    """Its clock is moved by the test, and it keeps what it has looked at."""

    now_s = 0.0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.seen = []

    def look(self, reading, now_s):
        found = super().look(reading, self.now_s)
        self.seen.append(reading)
        return found


def test_following_to_the_end(folder, trainer):
    told, watch = [], WatchByHand("mine", stall_s=300.0)
    follower = threading.Thread(
        target=follow,
        args=(Run(folder), watch, lambda event: told.append(event.event)),
        kwargs={"every_s": 0.02},
    )
    follower.start()
    trainer(row={"step": 1, "fleet/workers": 1.0})
    wait_for(lambda: watch.seen and watch.seen[-1].step == 1)
    watch.now_s = 301.0
    wait_for(lambda: "stalled" in told)
    trainer(row={"step": 2, "fleet/workers": 0.0})
    wait_for(lambda: "workers_lost" in told)
    trainer.status("paused", step=2)
    wait_for(lambda: watch.seen[-1].state == "paused")
    watch.now_s, looks = 1000.0, len(watch.seen)
    wait_for(lambda: len(watch.seen) > looks + 1)
    assert told == ["stalled", "going_on", "workers_lost"]
    trainer.status("finished", step=2)
    trainer.end()
    follower.join(LIMIT_S)
    assert told[3:] == ["finished"]


# ---- In a process of its own


def child_of(folder, url, *, after="time.sleep(600)"):
    """A process that has `notify_child` around a training that waits to be stopped or killed."""
    program = (
        "import os, time\nfrom pathlib import Path\nfrom soulsai.runs.run import Run\n"
        "from soulsai.runs.status import Status\nfrom soulsai.telemetry.watcher import notify_child\n"
        f"run = Run(Path({str(folder)!r}))\n"
        f"with notify_child(run.folder, [os.environ['HOOK']], print):\n"
        "    with run.lock():\n"
        "        run.write_status(Status('running', 3, 10))\n"
        "        try:\n"
        "            print('begun', flush=True)\n"
        f"            {after}\n"
        "        except KeyboardInterrupt:\n"
        "            run.write_status(Status('stopped', 4, 10))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "HOOK": url}
    )


def watchers(pid):
    """The processes that watch, of those that a process has started, and their command lines."""
    found = {}
    for process in psutil.Process(pid).children():
        with contextlib.suppress(psutil.Error):  # it has ended
            words = process.cmdline()
            if "soulsai" in words and "notify" in words:
                found[process.pid] = " ".join(words)
    return found


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_kill_is_told_and_the_watcher_ends(folder, hook):
    with child_of(folder, hook.url) as training:
        assert training.stdout.readline() == "begun\n"
        wait_for(lambda: watchers(training.pid))
        ((pid, command),) = watchers(training.pid).items()
        assert "s3cr3t" not in command
        training.send_signal(signal.SIGKILL)
        training.wait(LIMIT_S)
    wait_for(lambda: hook.got)
    assert events(hook) == ["killed"]
    assert hook.got[0]["run"] == "mine"
    assert hook.got[0]["step"] == 3
    wait_for(lambda: not is_alive(pid))
    texts = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert not any(b"s3cr3t" in text for text in texts)


def test_a_quick_end_is_told_before_the_process_goes_on(folder, hook):
    with child_of(folder, hook.url, after="run.write_status(Status('finished', 10, 10))") as training:
        assert training.wait(LIMIT_S) == 0
    wait_for(lambda: hook.got)
    assert events(hook) == ["finished"]


def test_ctrl_c_ends_the_training_and_is_told(folder, hook):
    with child_of(folder, hook.url) as training:
        assert training.stdout.readline() == "begun\n"
        training.send_signal(signal.SIGINT)
        assert training.wait(LIMIT_S) == 0
    wait_for(lambda: hook.got)
    assert events(hook) == ["stopped"]


def test_a_webhook_that_hangs_holds_the_end_only_for_a_moment_and_its_process_ends(folder, monkeypatch):
    monkeypatch.setattr(watcher, "LINGER_S", 0.5)
    before = watchers(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        said = []
        begun_s = time.monotonic()
        with (
            notify_child(folder, [f"http://127.0.0.1:{hanging.getsockname()[1]}/s3cr3t"], said.append),
            Run(folder).lock(),
        ):
            Run(folder).write_status(Status("stopped", 3, 10))
        assert time.monotonic() - begun_s < 60.0  # all tries together take longer
        (pid,) = watchers(os.getpid()).keys() - before.keys()
        os.kill(pid, signal.SIGKILL)  # it would give up after all tries


def test_no_webhooks_no_process(folder):
    before = watchers(os.getpid())
    with notify_child(folder, [], pytest.fail):
        assert watchers(os.getpid()).keys() <= before.keys()


def test_an_address_that_cannot_be_used_is_refused_at_once(folder):
    with (
        pytest.raises(ConfigError, match="webhook 1 is not a web address"),
        notify_child(folder, ["ftp://s3cr3t"], print),
    ):
        pytest.fail("it began")


def test_a_broken_webhook_is_a_line_of_news(folder, hook):
    said = []
    hook.code = 404
    with notify_child(folder, [hook.url], said.append), Run(folder).lock():
        Run(folder).write_status(Status("failed", 3, 10))
    wait_for(lambda: said)
    assert said == ["webhook 1: it refuses the message (HTTP 404)"]


@pytest.mark.slow
@pytest.mark.faults
def test_a_real_training_that_is_killed(tmp_path, hook):
    from soulsai.config import config_to_toml, load_preset, with_settings

    settings = ["run.steps=100000000", "run.threads=1", "fight.number=8", "network.hidden=[16]", "ppo.minibatch=64"]
    (tmp_path / "tiny.toml").write_text(config_to_toml(with_settings(load_preset("smoke"), settings)))
    souls = [sys.executable, "-c", "from soulsai.cli.main import main; main()"]
    words = ["train", str(tmp_path / "tiny.toml"), "--run", str(tmp_path / "mine"), "--plain", "--accept-all"]
    with subprocess.Popen([*souls, *words], stdout=subprocess.DEVNULL) as training, contextlib.ExitStack() as held:
        held.callback(training.kill)
        run = Run(tmp_path / "mine")
        wait_for(lambda: run.metrics_file.exists() and run.metrics_file.stat().st_size, 2 * LIMIT_S)
        watching = subprocess.Popen(
            [*souls, "notify", str(run.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, URLS: hook.url},
        )
        with watching:
            assert "watching" in watching.stdout.readline()
            training.send_signal(signal.SIGKILL)
            training.wait(LIMIT_S)
            rest = watching.stdout.read()
            assert watching.wait(LIMIT_S) == 0
    assert events(hook) == ["killed"]
    assert hook.got[0]["step"] > 0
    assert "was killed" in rest
    assert "s3cr3t" not in rest


@pytest.mark.slow
def test_a_webhook_that_hangs_does_not_delay_a_real_training(tmp_path, hook):
    from soulsai.runs.status import read_status

    settings = ["run.steps=1200", "run.threads=1", "fight.number=8", "network.hidden=[16]", "ppo.minibatch=64"]
    settings += ["run.evaluate_every_steps=0", "run.final_fights=0"]
    souls = [sys.executable, "-c", "from soulsai.cli.main import main; main()"]
    words = ["train", "smoke", "--run", str(tmp_path / "mine"), "--plain", "--accept-all"]
    words += [word for setting in settings for word in ("--set", setting)]
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        words += ["--notify", f"http://127.0.0.1:{hanging.getsockname()[1]}/s3cr3t", "--notify", hook.url]
        training = subprocess.Popen([*souls, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with training:
            status_file = Run(tmp_path / "mine").status_file

            def finished():
                status = read_status(status_file)
                return status is not None and status.state == "finished"

            wait_for(finished, 2 * LIMIT_S)
            finished_s = time.monotonic()
            text = training.communicate(timeout=LIMIT_S)[0]
            assert training.returncode == 0, text
            assert time.monotonic() - finished_s < 60.0  # all tries together take longer
    wait_for(lambda: hook.got)
    assert events(hook) == ["finished"]
    kept = [file.read_bytes() for file in (tmp_path / "mine").rglob("*") if file.is_file()]
    assert not any(b"s3cr3t" in text for text in kept)
    assert "s3cr3t" not in text
    assert "Traceback" not in text


@pytest.mark.slow
@pytest.mark.faults
def test_a_real_fleet_that_loses_its_worker_and_gets_another(tmp_path, hook):
    souls = [sys.executable, "-c", "from soulsai.cli.main import main; main()"]
    settings = ["run.steps=100000000", "run.threads=1", "run.evaluate_every_steps=0", "fleet.beat_s=0.5"]
    words = ["serve", "cartpole-dqn", "--run", str(tmp_path / "mine"), "--plain", "--accept-all", "--no-dashboard"]
    words += [word for setting in settings for word in ("--set", setting)]
    said = tmp_path / "said.txt"
    with contextlib.ExitStack() as held:
        log = held.enter_context(said.open("wb"))

        def start(*words, **environment):
            process = subprocess.Popen(
                [*souls, *words], stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **environment}
            )
            held.callback(end, process)
            return process

        def join():
            return start("join", SOULS_URL=url)

        def end(process):
            process.terminate()
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()

        server = start(*words, SOULS_NOTIFY=hook.url)
        wait_for(lambda: re.search(r"souls join (redis://\S+)", said.read_text()))
        url = re.search(r"souls join (redis://\S+)", said.read_text())[1]
        friend = join()
        wait_for(lambda: (read(Run(tmp_path / "mine")).workers or 0) > 0)
        time.sleep(2 * watcher.LOOK_EVERY_S)
        parent = psutil.Process(friend.pid)
        for process in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        wait_for(lambda: "workers_lost" in events(hook))
        join()
        wait_for(lambda: "workers_back" in events(hook))
        end(server)
    wait_for(lambda: "stopped" in events(hook))
    assert events(hook) == ["workers_lost", "workers_back", "stopped"]
    assert "s3cr3t" not in said.read_text()
