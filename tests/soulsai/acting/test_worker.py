"""A worker plays, sends, takes new policies, and outlives its environment."""

import logging

import numpy as np
import pytest

from soulsai.acting import worker as workers
from soulsai.acting.worker import FAILURES_IN_A_ROW, PacedWorld, Worker, WorldFailed
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.experience import Sizes
from soulsai.learning import wiring
from soulsai.learning.wiring import build_worker, build_world
from soulsai.transport.chunks import unpack_chunk
from soulsai.transport.policies import Policy, arrays_of, pack_policy

Q = with_settings(
    load_preset("cartpole-dqn"), ["fleet.chunk_rows=64", "fleet.chunk_s=60", "q.warmup_steps=0", "q.n_step=3"]
)
PPO = with_settings(load_preset("cartpole-ppo"), ["ppo.rollout=8", "gym.number=4", "ppo.minibatch=32"])
SIZES = Sizes(observation_size=4, num_actions=2, terms=1, number=1)


def policy_of(config, version=7, run="run"):
    networks = algorithm_of(config).networks(config, SIZES)
    tensors = {f"{name}.{key}": value for name, net in networks.items() for key, value in net.state_dict().items()}
    share = 32 if config is PPO else 0
    return version, pack_policy(Policy(version, 100, arrays_of(tensors), share), run=run)


def opened(message, config):
    return unpack_chunk(message.frame, algorithm_of(config).schema(config, SIZES), run="run")


@pytest.mark.parametrize("config", [Q, PPO], ids=["q", "ppo"])
def test_sends_chunks_that_can_be_learned_from(config, memory_link):
    memory_link.policies.append(policy_of(config))
    memory_link.stop_after = 1 if config is PPO else 5
    build_worker(config, memory_link).run()
    for number, message in enumerate(memory_link.messages, 1):
        header, chunk = opened(message, config)
        assert (header.sequence, header.policy, header.rows) == (number, 7, message.rows)
        assert (message.sequence, message.worker) == (number, "w.1.abcdef")
        assert chunk.rows == message.rows >= (32 if config is PPO else 64)
        assert chunk.steps > 0


def test_waits_for_the_first_policy(memory_link):
    touched = []

    def touch():
        touched.append(0)
        memory_link.stopping = len(touched) == 5

    build_worker(Q, memory_link, touch=touch).run()
    assert memory_link.messages == []
    assert len(touched) == 5
    assert {report.state for report in memory_link.reports} <= {"starting"}


def test_takes_a_new_policy_and_passes_over_a_bad_one(memory_link, caplog):
    memory_link.policies.append(policy_of(Q))
    send = memory_link.send

    def send_and_publish(message):
        number = len(memory_link.messages)
        if number == 1:
            memory_link.policies.append((8, b"SOULnonsense"))
        elif number == 2:
            memory_link.policies.append(policy_of(Q, 9, run="another"))
        elif number == 3:
            memory_link.policies.append(policy_of(Q, 10))
        return send(message)

    memory_link.send, memory_link.stop_after = send_and_publish, 6
    with caplog.at_level(logging.WARNING):
        build_worker(Q, memory_link).run()
    versions = [opened(message, Q)[0].policy for message in memory_link.messages]
    assert versions == [7, 7, 7, 7, 10, 10]
    assert caplog.text.count("was skipped") == 2


class Failing:
    """A world that raises after some steps."""

    def __init__(self, world, good):
        self._world, self._good = world, good
        for name in ("number", "observation_size", "num_actions", "term_names", "observations", "masks", "reset"):
            setattr(self, name, getattr(world, name))

    def step(self, actions):
        self._good -= 1
        if self._good < 0:
            raise OSError("the game is gone")
        return self._world.step(actions)

    def close(self):
        raise RuntimeError("cannot be closed either")


def worker_in(make_world, link, config=Q):
    algorithm = algorithm_of(config)
    networks = algorithm.light_networks(config, SIZES)
    return Worker(
        config,
        link,
        schema=algorithm.schema(config, SIZES),
        make_world=make_world,
        make_actor=lambda world, seed: algorithm.actor(config, world, networks, seed),
        networks=networks,
    )


def failing_worker(link, lives, config=Q):
    worlds = iter(lives)
    return worker_in(lambda: Failing(build_world(config), next(worlds)), link, config)


def test_a_failed_environment_is_made_anew(memory_link):
    memory_link.policies.append(policy_of(Q))
    memory_link.stop_after = 5
    failing_worker(memory_link, [100, 10, 10_000]).run()
    assert [message.sequence for message in memory_link.messages] == [1, 2, 3, 4, 5]
    assert memory_link.reports[-1].restarts == 2


def test_what_was_played_before_a_failure_is_sent(memory_link):
    """Rows over three decisions: of every life all that were finished when it ended, and no others."""
    memory_link.policies.append(policy_of(Q))
    with pytest.raises(WorldFailed):
        failing_worker(memory_link, [100, 10, 5]).run()
    chunks = [opened(message, Q)[1] for message in memory_link.messages]
    lives = [chunk.rows for chunk in chunks]
    # The first life: a whole chunk of 64 rows or a little more, then what was left. Up to two decisions wait.
    assert len(chunks) == 4
    assert 64 <= lives[0] <= 66
    for rows, played in zip((lives[0] + lives[1], *lives[2:]), (100, 10, 5), strict=True):
        assert played - 2 <= rows <= played
    assert sum(chunk.steps for chunk in chunks) == 115
    assert [message.sequence for message in memory_link.messages] == [1, 2, 3, 4]


def test_a_rollout_that_was_not_finished_is_not_sent(memory_link):
    memory_link.policies.append(policy_of(PPO))
    with pytest.raises(WorldFailed):
        failing_worker(memory_link, [8 + 7, 7, 7], PPO).run()
    assert [message.rows for message in memory_link.messages] == [32]


def test_a_worker_in_the_game_stops_with_the_step_and_not_with_the_rollout(memory_link, monkeypatch):
    played = []

    class Stopping(Failing):
        def step(self, actions):
            played.append(actions)
            memory_link.stopping = len(played) == 8 + 3
            return super().step(actions)

    def stopping_world(config, game=None):
        return Stopping(build_world(config), 10_000) if game else build_world(config)

    monkeypatch.setattr(wiring, "build_world", stopping_world)
    memory_link.policies.append(policy_of(PPO))
    build_worker(PPO, memory_link, game=object()).run()
    assert len(played) == 8 + 3
    assert [message.rows for message in memory_link.messages] == [32]


def test_gives_up_when_nothing_but_failures_come(memory_link):
    memory_link.policies.append(policy_of(Q))
    with pytest.raises(WorldFailed, match="the game is gone"):
        failing_worker(memory_link, [2] * FAILURES_IN_A_ROW).run()
    assert memory_link.messages == []


def test_an_environment_that_cannot_be_made_is_a_failure_too(memory_link):
    with pytest.raises(WorldFailed, match="ZeroDivisionError"):
        worker_in(lambda: 1 / 0, memory_link).run()


def test_every_chunk_can_be_read_also_where_an_episode_ends_right_after_it_begins(memory_link):
    """Rows that waited when a chunk was sent come with the next one: it may hold more rows than steps."""
    config = with_settings(Q, ["fleet.chunk_rows=2", "q.n_step=5"])
    memory_link.policies.append(policy_of(config))
    memory_link.stop_after = 200
    build_worker(config, memory_link).run()
    chunks = [opened(message, config)[1] for message in memory_link.messages]
    assert any(chunk.rows > chunk.steps for chunk in chunks)
    assert sum(len(chunk.ended.lengths) for chunk in chunks) > 5


def test_own_errors_are_not_taken_for_those_of_the_environment(memory_link):
    memory_link.policies.append(policy_of(Q))

    def send(message):
        raise OSError("the disk of the worker")

    memory_link.send = send
    with pytest.raises(OSError, match="the disk"):
        build_worker(Q, memory_link).run()


class Clock:
    """Goes on only while someone sleeps."""

    now_s = 50.0

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds


def test_plays_in_real_time_if_asked_to(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(workers, "time", clock)
    world = PacedWorld(build_world(Q), lambda: None, 100.0)
    world.reset(0)
    for _ in range(20):
        world.step(np.zeros(1, np.int64))
    assert clock.now_s == pytest.approx(50.2)
    clock.now_s += 0.1  # what was slow is made up for
    for _ in range(20):
        world.step(np.zeros(1, np.int64))
    assert clock.now_s == pytest.approx(50.4)


def test_a_worker_that_sent_enough_for_an_update_waits_for_it(memory_link, monkeypatch):
    monkeypatch.setattr(workers, "SHORTEST_WAIT_S", workers.LONGEST_WAIT_S)
    memory_link.policies.append(policy_of(PPO))
    touches = []

    def touch():
        touches.append(len(memory_link.messages))
        if touches.count(1) == 5:
            memory_link.policies.append(policy_of(PPO, 8))
        memory_link.stopping = len(memory_link.messages) == 2

    build_worker(PPO, memory_link, touch=touch).run()
    assert [opened(message, PPO)[0].policy for message in memory_link.messages] == [7, 8]


def test_workers_play_different_episodes(memory_link):
    memory_link.policies.append(policy_of(Q))
    memory_link.stop_after = 1
    build_worker(Q, memory_link).run()
    first = opened(memory_link.messages[0], Q)[1]
    memory_link.messages, memory_link.stopping, memory_link.taken = [], False, 0
    memory_link.worker = "w.2.abcdef"
    build_worker(Q, memory_link).run()
    second = opened(memory_link.messages[0], Q)[1]
    assert not np.array_equal(first.columns["observations"][:10], second.columns["observations"][:10])
