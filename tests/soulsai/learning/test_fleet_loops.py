"""The learner's loops, fed by real workers over a transport without a process boundary."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from soulsai.config import load_preset, with_settings
from soulsai.learning.fleet_loops import BEHIND_S, CHUNKS_OWED, CHUNKS_PER_WORKER, Place
from soulsai.learning.session import Fleet, run_session
from soulsai.learning.training import Training
from soulsai.learning.wiring import build_fleet_loop, build_worker, environment_version
from soulsai.runs.requests import ask
from soulsai.transport.links import Parcel
from soulsai.transport.policies import unpack_policy
from soulsai.transport.versions import ORDER, lag_of, version_of

Q = with_settings(
    load_preset("cartpole-dqn"),
    ["fleet.chunk_rows=100", "q.warmup_steps=100", "q.burst=1", "q.batch=16", "fleet.publish_every_s=0"],
)
PPO = with_settings(
    load_preset("cartpole-ppo"), ["ppo.rollout=8", "gym.number=8", "fleet.number=2", "ppo.epochs=1", "ppo.minibatch=64"]
)


def loop_of(config, link, generation=1):
    loop = build_fleet_loop(config, link, Place("run", generation), lambda text: None)
    loop.begin()
    return loop


def play(config, link, parcels):
    """Let a worker play until it has sent so many parcels."""
    waiting, link.parcels = link.parcels, []
    link.stop_after, link.stopping, link.taken = parcels, False, 0
    build_worker(config, link).run()
    link.parcels = waiting + link.parcels
    link.stopping = False


def settled(link):
    return sum(delivery.parcel.rows for delivery in link.stored)


def test_transitions_are_acknowledged_when_a_checkpoint_holds_them(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 3)
    rows = sum(parcel.rows for parcel in memory_link.parcels)
    loop.iterate()
    assert len(loop.store) == rows == loop.counters.steps
    assert settled(memory_link) == 0
    loop.saved()
    assert settled(memory_link) == rows
    loop.saved()
    assert settled(memory_link) == rows


def test_gradient_steps_are_those_of_one_process(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 4)
    for _ in range(200):
        loop.iterate()
    assert loop.counters.updates == int((loop.counters.steps - 0) / Q.q.update_every)
    assert len(memory_link.policies) > 1


def test_what_comes_twice_is_stored_once(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 2)
    memory_link.parcels += memory_link.parcels[::-1]
    rows = sum(parcel.rows for parcel in memory_link.parcels) // 2
    loop.iterate()
    assert len(loop.store) == rows
    assert [delivery.parcel.sequence for delivery in memory_link.repeated] == [2, 1]


def test_a_bad_message_is_counted_said_once_and_dropped(memory_link):
    said = []
    loop = build_fleet_loop(Q, memory_link, Place("run", 1), said.append)
    loop.begin()
    play(Q, memory_link, 3)
    good = memory_link.parcels[2]
    rows = [parcel.rows for parcel in memory_link.parcels]
    bad = [replace(parcel, frame=parcel.frame[:-9] + b"nonsense!") for parcel in memory_link.parcels[:2]]
    lying = Parcel("w.1.abcdef", 9, good.rows + 1, replace(good).frame)
    memory_link.parcels = [*bad, good, lying]
    loop.iterate()
    assert len(loop.store) == rows[2]
    assert [(d.parcel.sequence, reason) for d, reason in memory_link.dropped] == [
        (1, "malformed"),
        (2, "malformed"),
        (9, "invalid"),
    ]
    assert len(said) == 1
    assert "w.1.abcdef" in said[0]


def test_a_learner_that_falls_behind_asks_workers_to_wait(memory_link):
    loop = loop_of(with_settings(Q, ["q.update_every=0.01"]), memory_link)
    play(Q, memory_link, 4)
    loop.iterate()
    assert not memory_link.is_open
    most = (CHUNKS_OWED + CHUNKS_PER_WORKER) * Q.fleet.chunk_rows / 0.01
    play(Q, memory_link, 40)
    time.sleep(BEHIND_S)
    metrics = loop.iterate()
    assert loop.counters.updates_owed <= most
    assert metrics["fleet/updates_skipped"] > 0


def test_ppo_learns_when_enough_has_come_from_whoever_is_there(memory_link):
    loop = loop_of(PPO, memory_link)
    play(PPO, memory_link, 3)
    loop.iterate()
    assert loop.counters.updates == 0
    play(PPO, memory_link, 1)
    memory_link.parcels = [replace_worker(memory_link.parcels[-1], memory_link, PPO)]
    loop.iterate()
    assert loop.counters.updates == 1
    assert settled(memory_link) == 4 * 16
    assert loop.counters.steps == 4 * 16
    assert memory_link.is_open
    assert len(memory_link.policies) == 2


def replace_worker(parcel, link, config):
    """The same chunk, sent by another worker."""
    from soulsai.transport.experience import Layout, pack_rollout, unpack
    from soulsai.transport.frames import Kind

    header, chunk = unpack(parcel.frame, Layout(4, 2, 1, config.ppo.rollout), run="run", kind=Kind.ROLLOUT)
    frame = pack_rollout(chunk, run="run", worker="v.1.000000", sequence=1, policy=header.policy)
    return Parcel("v.1.000000", 1, parcel.rows, frame)


def test_ppo_discards_what_is_too_old_and_counts_it(memory_link):
    config = with_settings(PPO, ["fleet.max_lag=1"])
    loop = loop_of(config, memory_link)
    play(config, memory_link, 3)
    for _ in range(2):
        loop._publish()
    loop.iterate()
    assert [reason for _, reason in memory_link.dropped] == ["stale"] * 3
    assert loop.counters.steps == 0


def test_ppo_leaves_what_an_update_does_not_need_for_the_next(memory_link):
    loop = loop_of(PPO, memory_link)
    play(PPO, memory_link, 7)
    loop.iterate()
    assert settled(memory_link) == 4 * 16
    play(PPO, memory_link, 1)
    memory_link.parcels = [replace_worker(memory_link.parcels[-1], memory_link, PPO)]
    loop.iterate()
    assert settled(memory_link) == 8 * 16


def test_versions_never_repeat():
    assert version_of(2, 0) > version_of(1, ORDER - 1)
    assert lag_of(version_of(3, 7), version_of(3, 5)) == 2
    assert lag_of(version_of(4, 5), version_of(3, 7)) == 2


@pytest.mark.parametrize("config", [Q, PPO], ids=["q", "ppo"])
def test_a_killed_learner_gets_again_what_no_checkpoint_holds(config, memory_link, tmp_path, new_run_of):
    """Saved, then more came, then killed: after resuming everything is there once, and versions go on."""
    run = new_run_of(config, tmp_path / "run")
    before = Training(run, config, view=Silent(), stop=lambda: False, loop=loop_of(config, memory_link))
    before.begin()
    play(config, memory_link, 4)
    first = list(memory_link.parcels)
    before.loop.iterate()
    before.save()
    steps_saved = before.loop.counters.steps
    play(config, memory_link, 4)
    second = [replace_sequence(parcel, 4 + number, config) for number, parcel in enumerate(memory_link.parcels, 1)]
    memory_link.parcels = list(second)
    before.loop.iterate()
    versions = [version for version, _ in memory_link.policies]

    loop = build_fleet_loop(config, memory_link, Place("run", 2), lambda text: None)
    after = Training(run, config, view=Silent(), stop=lambda: False, loop=loop)
    after.resume()
    assert loop.counters.steps == steps_saved
    memory_link.parcels = first + second
    memory_link.stored.clear()
    loop.iterate()
    assert {delivery.parcel.sequence for delivery in memory_link.repeated} == {1, 2, 3, 4}
    assert loop.counters.steps == steps_saved * 2 if config is PPO else steps_saved + sum(p.rows for p in second)
    assert memory_link.policies[-1][0] not in versions
    assert memory_link.policies[-1][0] > max(versions)


def replace_sequence(parcel, sequence, config):
    from soulsai.transport.experience import Layout, pack_rollout, pack_transitions, unpack
    from soulsai.transport.frames import Kind

    is_ppo = config.algorithm == "ppo"
    layout = Layout(4, 2, 1, config.ppo.rollout if is_ppo else 0)
    header, chunk = unpack(parcel.frame, layout, run="run", kind=Kind.ROLLOUT if is_ppo else Kind.TRANSITIONS)
    pack = pack_rollout if is_ppo else pack_transitions
    frame = pack(chunk, run="run", worker=parcel.worker, sequence=sequence, policy=header.policy)
    return Parcel(parcel.worker, sequence, parcel.rows, frame)


class Silent:
    def say(self, text):
        pass

    def show(self, progress):
        pass


@pytest.fixture
def new_run_of():
    from soulsai.config import config_to_toml
    from soulsai.runs.run import Run

    return lambda config, folder: Run.create(Path(folder), config_to_toml(config), preset="test", command=[])


def test_operators_can_stop(memory_link, tmp_path, new_run_of):
    run = new_run_of(Q, tmp_path / "run")
    memory_link.publish = lambda version, frame: ask(run, "stop")  # as soon as it has begun
    outcome = run_session(
        run, Q, resume=False, view=Silent(), stop=lambda: False, check=False, fleet=Fleet(memory_link, Place("run", 1))
    )
    assert not outcome.finished
    assert run.status().state == "stopped"
    assert list(run.checkpoints.iterdir())


def test_a_policy_is_the_whole_network(memory_link):
    loop = loop_of(Q, memory_link)
    policy = unpack_policy(memory_link.policies[0][1], run="run")
    assert policy.tensors.keys() == {f"network.{key}" for key in loop.learner.online[0].state_dict()}


def test_the_environment_version_tells_fights_apart():
    fight = load_preset("rainbow")
    assert environment_version(fight) == environment_version(load_preset("dddqn"))
    assert environment_version(fight) != environment_version(with_settings(fight, ["encoder.history=2"]))
    assert environment_version(Q) != environment_version(load_preset("lunarlander-dqn"))


def test_a_worker_that_waits_costs_no_gradient_steps(memory_link):
    """Fights merge steps into decisions: a chunk owes more than its rows, and a few at once are no reason to skip."""
    config = with_settings(load_preset("smoke-q"), ["fleet.chunk_rows=64", "q.warmup_steps=0", "run.threads=1"])
    loop = loop_of(config, memory_link)
    play(config, memory_link, 8)
    metrics = loop.iterate()
    assert loop.counters.steps > 8 * 64 * 2
    assert metrics["fleet/updates_skipped"] == 0.0
