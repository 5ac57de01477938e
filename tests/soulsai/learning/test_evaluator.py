"""Evaluations in a process of their own: answered, asked again when it is lost, ended when nobody wants them."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from functools import partial

import pytest

from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.learning import evaluator as module
from soulsai.learning.evaluator import Evaluator, Snapshot, evaluate_snapshots
from soulsai.learning.loading import networks_of
from soulsai.learning.loop import build_loop
from soulsai.learning.scoring import score_policy
from soulsai.learning.wiring import build_world
from soulsai.processes.supervisor import Control, Pauses, Process, Supervisor
from soulsai.runs.run import Run
from soulsai.telemetry.logfile import LOGGER

LIMIT_S = 240.0
SETTINGS = ["network.hidden=[8]", "run.threads=1", "run.evaluation_fights=3", "gym.number=1", "run.seed=3"]
SCORE = b'{"value": 5.0, "low": 4.0, "high": 6.0, "episodes": 3, "time_outs": 0, "is_win_rate": false}'


@pytest.fixture
def cartpole(tmp_path):
    """A run, its config, and the weights of an untrained policy."""
    config = with_settings(load_preset("cartpole-dqn"), SETTINGS)
    run = Run.create(tmp_path / "run", config_to_toml(config), preset="cartpole-dqn", command=[])
    return run, config, weights_of(config)


def weights_of(config):
    world = build_world(config)
    nets = build_loop(config, world).learner.networks
    world.close()
    return {f"{name}.{key}": value.clone() for name, net in nets.items() for key, value in net.state_dict().items()}


def result_of(evaluator, limit_s=LIMIT_S):
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        if found := evaluator.take():
            return found
        time.sleep(0.01)
    pytest.fail("no result came")


class Played(Process):
    """In place of a process: does with every request what the test says; ends with a code, or answers."""

    def __init__(self, connection, act):
        self.connection, self.code, self.steps = connection, None, []
        self.thread = threading.Thread(target=self.play, args=(act,), daemon=True)

    def play(self, act):
        while self.code is None:
            if self.connection.poll(0.01):
                self.steps.append(int(self.connection.recv_bytes()))
                self.code = act(self.connection)
        self.connection.close()

    def exit_code(self):
        return self.code

    def worked(self):
        return False

    def pulse(self):
        return time.monotonic_ns()

    def terminate(self):
        self.code = -15

    def last_word(self):
        return "out of order" if self.code == 1 else ""


def answer(connection):
    connection.send_bytes(SCORE)


@pytest.fixture
def staged(monkeypatch, cartpole):
    """An evaluator whose processes act as the test says, one act each, the last one for all that follow."""
    made, said = [], []

    def stage(*acts):
        acts = list(acts)

        def start(target, arguments):
            def begin(index):
                made.append(Played(arguments(index)[0], acts.pop(0) if len(acts) > 1 else acts[0]))
                made[-1].thread.start()
                return made[-1]

            return begin

        monkeypatch.setattr(module, "function", start)
        monkeypatch.setattr(module, "Supervisor", partial(Supervisor, pauses=Pauses(0.01, 0.01)))
        run, config, weights = cartpole
        staged.evaluator = Evaluator(run, config, said.append)
        return staged.evaluator, weights, made, said

    yield stage
    staged.evaluator.stop()


def test_one_at_a_time(staged):
    evaluator, weights, made, said = staged(answer)
    for step in (100, 200):
        assert evaluator.is_free
        evaluator.begin(Snapshot(step, weights))
        assert not evaluator.is_free
        snapshot, score = result_of(evaluator)
        assert (snapshot.step, score.value, score.episodes) == (step, 5.0, 3)
        assert snapshot.weights is weights
    assert made[0].steps == [100, 200]
    assert not said


@pytest.mark.faults
def test_a_lost_process_is_replaced_by_one_that_evaluates_the_same(staged):
    evaluator, weights, made, said = staged(lambda connection: -9, answer)
    evaluator.begin(Snapshot(100, weights))
    snapshot, _ = result_of(evaluator)
    assert snapshot.step == 100
    assert [process.steps for process in made] == [[100], [100]]
    assert said == ["the evaluator died (SIGKILL): a new one starts in 0.01 s"]


@pytest.mark.faults
def test_evaluations_that_always_fail_are_given_up(staged):
    evaluator, weights, made, said = staged(lambda connection: 1)
    evaluator.begin(Snapshot(100, weights))
    deadline_s = time.monotonic() + LIMIT_S
    while not evaluator.has_failed and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert evaluator.has_failed
    assert not evaluator.is_free
    assert evaluator.take() is None
    assert len(made) == module.TRIES
    assert said[-1] == "the evaluator ended: out of order: given up after 4 tries"


@pytest.mark.faults
def test_stopping_does_not_wait_for_an_evaluation(staged):
    evaluator, weights, made, _ = staged(lambda connection: None)
    evaluator.begin(Snapshot(100, weights))
    deadline_s = time.monotonic() + LIMIT_S
    while not (made and made[0].steps) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    evaluator.stop()
    assert made[0].code == -15
    assert evaluator.take() is None


def test_an_evaluator_that_was_never_needed_is_stopped_too(cartpole):
    run, config, _ = cartpole
    Evaluator(run, config, print).stop()


# Within the process


@pytest.fixture
def inside(cartpole):
    """What the process does, in a thread: its end of the pipe, its control, and the thread."""
    run, config, weights = cartpole
    ours, theirs = multiprocessing.Pipe()
    control = Control(0, [0, 0], print)
    content = module.part_to_bytes(weights)
    before = list(logging.getLogger(LOGGER).handlers)
    arguments = (control, theirs, content, run.folder, config_to_toml(config))
    thread = threading.Thread(target=evaluate_snapshots, args=arguments, daemon=True)
    yield ours, control, thread
    control.stop()
    thread.join(LIMIT_S)
    for handler in set(logging.getLogger(LOGGER).handlers) - set(before):
        logging.getLogger(LOGGER).removeHandler(handler)


@pytest.fixture(autouse=True)
def no_nice(monkeypatch):
    monkeypatch.setattr(module, "step_back", lambda: None)


def test_the_score_is_that_of_an_evaluation_in_line(cartpole, inside):
    _, config, weights = cartpole
    ours, control, thread = inside
    thread.start()
    ours.send_bytes(b"700")
    assert ours.poll(LIMIT_S)
    expected = score_policy(config, module.algorithm_of(config).policy(networks_of(config, weights)), 3)
    assert module.PolicyScore(**module.json.loads(ours.recv_bytes())) == expected
    assert control._counts[0] > 1
    deadline_s = time.monotonic() + LIMIT_S
    while control._counts[1] != 1:  # it is counted after it was told
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_an_evaluation_ends_when_it_is_to_stop(inside, monkeypatch):
    ours, control, thread = inside
    playing = threading.Event()

    def play_on(config, policy, episodes, **_):
        while True:
            playing.set()
            policy.choose(module.np.zeros((1, 4), module.np.float32), module.np.ones((1, 2), module.np.bool_))

    monkeypatch.setattr(module, "score_policy", play_on)
    thread.start()
    ours.send_bytes(b"700")
    assert playing.wait(LIMIT_S)
    control.stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert not ours.poll()


@pytest.mark.slow
@pytest.mark.faults
def test_a_real_process_that_is_killed(cartpole, monkeypatch):
    monkeypatch.delattr("__main__.__file__", raising=False)
    monkeypatch.setattr("__main__.__spec__", None)
    run, config, weights = cartpole
    said = []
    evaluator = Evaluator(run, config, said.append)
    try:
        evaluator.begin(Snapshot(100, weights))
        deadline_s = time.monotonic() + LIMIT_S
        while not evaluator._supervisor.pids() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        os.kill(evaluator._supervisor.pids()[0], signal.SIGKILL)
        snapshot, score = result_of(evaluator)
        assert (snapshot.step, score.episodes) == (100, 3)
        assert said == ["the evaluator died (SIGKILL): a new one starts in 1 s"]
    finally:
        evaluator.stop()
    assert not evaluator._supervisor.pids()
