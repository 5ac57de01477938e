"""Fleets as a library: local workers, workers over Redis, and workers that cannot play."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from soulsai.errors import ConfigError, TransportError, WorkerError
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.runtime import Fleet, RedisOptions, join
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import look_at

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet.py"
LIMIT_S = 240.0
SMALL = ["run.threads=1", "run.evaluate_every_steps=0", "run.final_fights=5", "network.hidden=[8]", "fleet.beat_s=0.3"]
BROKEN = """
import multiprocessing
import gymnasium

class Broken(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0.0, 1.0, (2,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        if multiprocessing.parent_process() is not None:
            raise OSError("the console is not plugged in")
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}

gymnasium.register("Broken-v0", Broken)
"""


@pytest.fixture(autouse=True)
def no_forks_of_before():
    """The process that workers are forked from remembers what it has loaded; the next test begins without it."""
    yield
    if sys.platform == "linux":
        from multiprocessing import forkserver

        forkserver._forkserver._stop()


@pytest.fixture
def main_module(monkeypatch):
    """Worker processes need not load pytest."""
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)


@pytest.fixture
def broken(tmp_path, monkeypatch, main_module):
    """The id of an environment that can be made everywhere but played in no worker."""
    (tmp_path / "broken_games.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    return "broken_games:Broken-v0"


def test_a_fleet_does_nothing_until_it_is_told_to(tmp_path):
    before = threading.active_count()
    fleet = Fleet.begin("cartpole-dqn", tmp_path / "run", SMALL)
    assert threading.active_count() == before
    assert fleet.run.folder == tmp_path / "run"
    assert fleet.config.run.threads == 1
    again = Fleet.resumed(tmp_path / "run", ["run.steps=7"])
    assert (again.resume, again.config.run.steps) == (True, 7)
    with pytest.raises(ConfigError, match="a resumed run keeps its settings"):
        Fleet.resumed(tmp_path / "run", ["q.gamma=0.5"])


def test_ended_at_once_is_stopped_and_no_failure(tmp_path, monkeypatch):
    def interrupt(run, config, **_):
        run.write_status(Status("failed", 5, 10))
        raise KeyboardInterrupt

    monkeypatch.setattr("soulsai.runtime.fleet.run_session", interrupt)
    fleet = Fleet.begin("cartpole-dqn", tmp_path / "run", SMALL)
    with pytest.raises(KeyboardInterrupt):
        fleet.train()
    assert (fleet.run.status().state, fleet.run.status().step) == ("stopped", 5)


@pytest.mark.slow
@pytest.mark.faults
def test_local_workers(tmp_path, main_module):
    """Stopped by an event, after an evaluation beside the learner, and resumed."""
    stop, news, shown = threading.Event(), [], []

    def show(progress):
        shown.append(progress.step)
        if progress.step > 500 and progress.score:
            stop.set()

    settings = [*SMALL, "run.steps=100000000", "run.log_every_s=0.1", "run.evaluate_every_steps=100",
                "run.evaluation_fights=2"]  # fmt: skip
    fleet = Fleet.begin("cartpole-dqn", tmp_path / "run", settings, check=False, say=news.append, stop=stop.is_set)
    fleet.show = show
    assert not fleet.train(workers=2).finished
    assert "starting 2 workers" in news
    assert Run.open(tmp_path / "run").status().state == "stopped"
    assert any("return/evaluation" in row for row in fleet.run.metrics())
    step = fleet.run.status().step
    again = Fleet.resumed(tmp_path / "run", [f"run.steps={step + 2000}"])
    outcome = again.train(workers=1)
    assert outcome.finished
    assert outcome.mean_return is not None


@pytest.mark.slow
@pytest.mark.faults
def test_local_workers_that_can_never_play_end_the_training(tmp_path, broken):
    news = []
    settings = [*SMALL, f"gym.id={broken}", "gym.kwargs={}", "run.steps=100000000"]
    fleet = Fleet.begin("cartpole-dqn", tmp_path / "run", settings, check=False, say=news.append)
    with pytest.raises(WorkerError, match=r"no worker can play: .*OSError: the console is not plugged in"):
        fleet.train(workers=1)
    assert any(text.endswith("given up after 4 tries") for text in news)
    assert "given up after 4 tries" in fleet.run.log_file.read_text()
    assert fleet.run.status().state == "stopped"


@pytest.mark.slow
@pytest.mark.faults
def test_joined_workers_that_can_never_play_end_with_the_reason(tmp_path, broken):
    """Environments of other packages are refused by join, so the learner's is one that this machine has replaced."""
    settings = [*SMALL, "run.steps=100000000"]
    stop = threading.Event()
    fleet = Fleet.begin("cartpole-dqn", tmp_path / "run", settings, check=False, stop=stop.is_set)
    (tmp_path / "sitecustomize.py").write_text(
        "import multiprocessing, sys\n"
        "if any('multiprocessing' in word for word in sys.orig_argv):\n"
        "    import gymnasium.envs.classic_control.cartpole as cartpole\n"
        "    def reset(*_, **__):\n        raise OSError('the console is not plugged in')\n"
        "    cartpole.CartPoleEnv.reset = cartpole.CartPoleVectorEnv.reset = reset\n"
    )
    with fleet.serve() as served:
        learner = threading.Thread(target=served.train)
        learner.start()
        try:
            with pytest.raises(WorkerError, match=r"^this machine cannot play: .*the console is not plugged in"):
                join(served.url, stop=stop.is_set)
            with connect(served.address) as admin:
                workers = look_at(admin, Keys(served.fleet.run))["workers"]
            assert any("the console is not plugged in" in worker["problem"] for worker in workers)
        finally:
            stop.set()
            learner.join(LIMIT_S)
    assert fleet.run.status().state == "stopped"


def test_a_join_that_is_stopped_before_it_begins():
    assert join("redis://alice:hush@127.0.0.1:1/mine", stop=lambda: True) is None


@pytest.mark.slow
def test_the_example(tmp_path):
    words = [sys.executable, EXAMPLE, tmp_path / "run", "2000"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "souls join redis://friend:" in done.stdout
    assert "mean return" in done.stdout
    assert "Traceback" not in done.stderr
    assert Run.open(tmp_path / "run").status().state == "finished"


def test_options_for_redis_are_as_before_by_default():
    assert RedisOptions() == RedisOptions("", "", 0, None, None, "")


@pytest.mark.slow
def test_strangers_join_through_a_gateway_with_one_line(tmp_path):
    from soulsai.runs.fleet_file import read_fleet
    from soulsai.runtime.gateway import serve_gateway

    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    fleet = Fleet.begin("cartpole-dqn", tmp_path / "run", ["run.steps=600", "run.final_fights=0"], check=False)
    with fleet.serve() as served, serve_gateway(served, place, fleet.say):
        assert served.url.startswith("wss://friend:")
        assert served.url.count("#") == 1
        assert len(served.join_line.split()) == 3
        learner = threading.Thread(target=served.train)
        learner.start()
        done = join(served.url, patience_s=LIMIT_S, stop=lambda: not learner.is_alive())
        with pytest.raises(TransportError, match="cannot listen"), serve_gateway(served, place, fleet.say):
            pass
    assert done.sent > 0
    assert fleet.run.status().state == "finished"
    assert read_fleet(fleet.run.folder).gateway == place
    with pytest.raises(ConfigError, match="name the port"), serve_gateway(served, "somewhere", fleet.say):
        pass
    with serve_gateway(served, "off", fleet.say):
        assert served.url.startswith("redis://")
