"""A learner with workers: the loop, fed by real ones over a transport without a process boundary."""

from dataclasses import replace
from pathlib import Path

import pytest

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.algorithms.replay_learner import CHUNKS_OWED
from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import load_preset, with_settings
from soulsai.errors import DivergedError
from soulsai.experience import Sizes
from soulsai.learning import sources
from soulsai.learning import training as training_module
from soulsai.learning.loop import build_fleet_loop, build_loop
from soulsai.learning.session import Fleet, run_session
from soulsai.learning.sources import Start
from soulsai.learning.training import Training
from soulsai.learning.wiring import build_worker, build_worlds, environment_version
from soulsai.runs.requests import ask, ask_to_forget, to_forget
from soulsai.transport import links
from soulsai.transport.chunks import pack_chunk, unpack_chunk
from soulsai.transport.links import ORDER, Message, lag_of, version_of
from soulsai.transport.policies import unpack_policy

Q = with_settings(
    load_preset("cartpole-dqn"),
    ["fleet.chunk_rows=100", "q.warmup_steps=100", "q.burst=1", "q.batch=16", "fleet.publish_every_s=0"],
)
PPO = with_settings(
    load_preset("cartpole-ppo"), ["ppo.rollout=8", "gym.number=8", "fleet.number=2", "ppo.epochs=1", "ppo.minibatch=64"]
)


SIZES = Sizes(observation_size=4, num_actions=2, terms=1, number=1)


def loop_of(config, link, generation=1):
    loop = build_fleet_loop(config, link, Start("run", generation), lambda text: None)
    loop.begin()
    return loop


def play(config, link, messages):
    """Let a worker play until it has sent so many messages."""
    waiting, link.messages = link.messages, []
    link.stop_after, link.stopping, link.taken = messages, False, 0
    build_worker(config, link).run()
    link.messages = waiting + link.messages
    link.stopping = False


def learn_all(loop):
    """Iterate until nothing waits that can be learned from."""
    loop.iterate()
    while loop.algorithm.rows_of_update(loop.learner.config) == 0 and loop.source._waiting:
        loop.iterate()


def settled(link):
    return sum(delivery.rows for delivery in link.stored)


def test_a_run_goes_on_with_workers_and_without_them(memory_link, tmp_path):
    """What it did before, alone or served, is in the checkpoint; what only the other source has is not asked for."""
    alone, served = build_loop(Q, *build_worlds(Q)), loop_of(Q, memory_link)
    alone.begin()
    alone.iterate()
    store = CheckpointStore(tmp_path)
    for number, (before, after) in enumerate(((alone, served), (served, alone))):
        store.save(number, before.parts(), {"source": before.source.notes()})
        after.restore(store.load())
    play(Q, memory_link, 1)
    served.iterate()
    alone.iterate()


def test_transitions_are_acknowledged_when_a_checkpoint_holds_them(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 3)
    rows = sum(message.rows for message in memory_link.messages)
    loop.iterate()
    assert len(loop.learner.store) == rows == loop.counters.steps
    assert settled(memory_link) == 0
    loop.source.start_saving()()
    assert settled(memory_link) == rows
    loop.source.start_saving()()
    assert settled(memory_link) == rows


def test_what_comes_while_a_checkpoint_is_written_waits_for_the_next(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 3)
    late = memory_link.messages.pop()
    held = sum(message.rows for message in memory_link.messages)
    loop.iterate()
    written = loop.source.start_saving()
    memory_link.messages.append(late)
    loop.iterate()
    assert settled(memory_link) == 0
    written()
    assert settled(memory_link) == held
    loop.source.start_saving()()
    assert settled(memory_link) == held + late.rows


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
    memory_link.messages += memory_link.messages[::-1]
    rows = sum(message.rows for message in memory_link.messages) // 2
    loop.iterate()
    assert len(loop.learner.store) == rows
    assert [delivery.sequence for delivery in memory_link.repeated] == [2, 1]


def test_a_bad_message_is_counted_said_once_and_dropped(memory_link):
    said = []
    loop = build_fleet_loop(Q, memory_link, Start("run", 1), said.append)
    loop.begin()
    play(Q, memory_link, 3)
    good = memory_link.messages[2]
    rows = [message.rows for message in memory_link.messages]
    bad = [replace(message, frame=message.frame[:-9] + b"nonsense!") for message in memory_link.messages[:2]]
    lying = Message("w.1.abcdef", 9, good.rows + 1, replace(good).frame)
    memory_link.messages = [*bad, good, lying]
    loop.iterate()
    assert len(loop.learner.store) == rows[2]
    assert [(d.sequence, reason) for d, reason in memory_link.dropped] == [
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
    loop.iterate()
    assert not memory_link.is_open


def test_what_came_while_the_learner_was_busy_waits_for_its_gradient_steps(memory_link):
    loop = loop_of(with_settings(Q, ["q.update_every=20"]), memory_link)
    play(Q, memory_link, 2 * CHUNKS_OWED)
    came = sum(message.rows for message in memory_link.messages)
    loop.iterate()
    loop.iterate()
    assert len(loop.learner.store) < came
    assert not memory_link.is_open
    learn_all(loop)
    while loop.learner.is_behind:
        loop.iterate()
    loop.iterate()
    counters = loop.counters
    assert counters.updates_skipped == 0
    assert counters.updates + counters.updates_owed == pytest.approx((counters.steps - 100) / 20, abs=10)
    assert memory_link.is_open


def test_a_learner_that_has_learned_from_everything_takes_what_came_and_lets_more_in(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 10)
    later, memory_link.messages = memory_link.messages[2:], memory_link.messages[:2]
    while not loop.counters.updates or loop.learner.is_due:
        loop.iterate()
    memory_link.messages = later
    assert len(loop.source.next(loop.learner)) == 8
    assert memory_link.is_open


def test_a_learner_on_a_busy_machine_learns_whatever_the_time(memory_link):
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 2)
    for chunk in loop.source.next(loop.learner):
        loop.learner.take(chunk)
    loop.learner.update(0.0)
    assert loop.counters.updates == 1


def test_workers_are_let_in_while_there_are_fewer_rows_than_a_batch(memory_link):
    loop = loop_of(with_settings(Q, ["q.warmup_steps=0", "q.batch=2048"]), memory_link)
    play(Q, memory_link, 8)
    for _ in range(8):
        loop.iterate()
    assert len(loop.learner.store) == 800
    assert loop.counters.updates == 0
    assert memory_link.is_open


def test_of_too_much_that_waits_some_is_taken_and_its_gradient_steps_are_skipped(memory_link, monkeypatch):
    monkeypatch.setattr(sources, "MOST_WAITING", 64)
    loop = loop_of(with_settings(Q, ["q.update_every=0.01"]), memory_link)
    play(Q, memory_link, 2 * CHUNKS_OWED)
    loop.iterate()
    assert loop.source._waiting_rows <= 64
    assert loop.counters.updates_owed <= CHUNKS_OWED * loop.learner._owed_for_a_chunk
    assert loop.counters.updates_skipped > 0
    assert loop.learner.is_behind


def test_ppo_learns_when_enough_has_come_from_whoever_is_there(memory_link):
    loop = loop_of(PPO, memory_link)
    play(PPO, memory_link, 3)
    loop.iterate()
    assert loop.counters.updates == 0
    play(PPO, memory_link, 1)
    memory_link.messages = [resent(memory_link.messages[-1], PPO, "v.1.000000", 1)]
    loop.iterate()
    assert loop.counters.updates == 1
    assert settled(memory_link) == 4 * 16
    assert loop.counters.steps == 4 * 16
    assert memory_link.is_open
    assert len(memory_link.policies) == 2


def resent(message, config, worker, sequence):
    """The same chunk, as another message or of another worker."""
    schema = algorithm_of(config).schema(config, SIZES)
    header, chunk = unpack_chunk(message.frame, schema, run="run")
    frame = pack_chunk(chunk, schema, run="run", worker=worker, sequence=sequence, policy=header.policy)
    return Message(worker, sequence, message.rows, frame)


def test_ppo_discards_what_is_too_old_and_counts_it(memory_link):
    config = with_settings(PPO, ["fleet.max_lag=1"])
    loop = loop_of(config, memory_link)
    play(config, memory_link, 3)
    for _ in range(2):
        loop.source._publish(loop.learner)
    loop.iterate()
    assert [reason for _, reason in memory_link.dropped] == ["stale"] * 3
    assert loop.counters.steps == 0


def test_ppo_leaves_what_an_update_does_not_need_for_the_next(memory_link):
    loop = loop_of(PPO, memory_link)
    play(PPO, memory_link, 7)
    loop.iterate()
    assert settled(memory_link) == 4 * 16
    play(PPO, memory_link, 1)
    memory_link.messages = [resent(memory_link.messages[-1], PPO, "v.1.000000", 1)]
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
    first = list(memory_link.messages)
    learn_all(before.loop)
    before.save()
    steps_saved = before.loop.counters.steps
    play(config, memory_link, 4)
    second = [
        resent(message, config, message.worker, 4 + number) for number, message in enumerate(memory_link.messages, 1)
    ]
    memory_link.messages = list(second)
    learn_all(before.loop)
    versions = [version for version, _ in memory_link.policies]

    loop = build_fleet_loop(config, memory_link, Start("run", 2), lambda text: None)
    after = Training(run, config, view=Silent(), stop=lambda: False, loop=loop)
    after.resume()
    assert loop.counters.steps == steps_saved
    memory_link.messages = first + second
    memory_link.stored.clear()
    learn_all(loop)
    assert {delivery.sequence for delivery in memory_link.repeated} == {1, 2, 3, 4}
    assert loop.counters.steps == steps_saved * 2 if config is PPO else steps_saved + sum(p.rows for p in second)
    assert memory_link.policies[-1][0] not in versions
    assert memory_link.policies[-1][0] > max(versions)


@pytest.mark.parametrize("late", [False, True], ids=["in an update", "in a checkpoint"])
@pytest.mark.parametrize("config", [Q, PPO], ids=["q", "ppo"])
def test_a_learner_that_diverged_goes_back_to_its_checkpoint(config, late, memory_link, tmp_path, new_run_of):
    """Nothing broken is saved or published, what came since is dropped, and learning goes on."""
    said, view = [], Silent()
    view.say = said.append
    run = new_run_of(config, tmp_path / "run")
    training = Training(run, config, view=view, stop=lambda: False, loop=loop_of(config, memory_link))
    training.begin()
    play(config, memory_link, 4)
    training.loop.iterate()
    training.save()
    good, step = next(iter(training.networks().values())).clone(), training.loop.counters.steps
    play(config, memory_link, 2)
    (last,) = memory_link.messages[-1:]
    memory_link.messages = [resent(last, config, "v.1.000000", 1)]
    training.loop.iterate()
    flat = training.loop.learner.flats["network"].data
    flat[-1] = float("nan")
    published = len(memory_link.policies)
    if late:
        training.save()
    else:
        for worker in ("x.1.000000", "y.1.000000", "z.1.000000", "a.1.000000"):
            memory_link.messages.append(resent(last, config, worker, 1))
        training._iterate()
    assert training.loop.learner.is_finite()
    assert training.loop.counters.steps == step
    assert bool((next(iter(training.networks().values())) == good).all())
    assert f"back to the checkpoint of step {step:,}" in said[-1]
    assert {reason for _, reason in memory_link.dropped} == {"diverged"}
    for _, frame in memory_link.policies[published:]:
        unpack_policy(frame, run="run")  # refuses what is not finite
    play(config, memory_link, 4)
    memory_link.messages = [
        resent(message, config, "b.1.000000", number) for number, message in enumerate(memory_link.messages, 1)
    ]
    training.loop.iterate()
    assert training.loop.counters.steps > step
    for _ in range(training_module.TRIES - 1):
        flat[-1] = float("nan")
        training.save()
    flat[-1] = float("nan")
    with pytest.raises(DivergedError, match=f"the checkpoint of step {step:,} is kept"):
        training.save()


NAMES = [f"{letter}.1.000000" for letter in "abcde"]


def flooded(config, link, loop, greedy, shares=8):
    """Five names send as much, and then one of them far more; what came of the messages of the greedy one."""
    play(config, link, 1)
    (message,) = link.messages
    number = 0
    for _ in range(shares):
        number += 1
        link.messages = [resent(message, config, worker, number) for worker in NAMES]
        loop.iterate()
    for _ in range(40):
        number += 1
        link.messages = [resent(message, config, greedy, number)]
        loop.iterate()
    return message.rows


def test_no_name_has_more_than_its_share_of_the_replay(memory_link):
    loop = loop_of(Q, memory_link)
    rows = flooded(Q, memory_link, loop, NAMES[0])
    givers, store = loop.source.givers, loop.learner.store
    assert 0.25 < givers.rows_of("a") / len(store) <= 0.3
    assert sum(givers.rows_of(name) for name in "abcde") == len(store)
    assert {reason for _, reason in memory_link.dropped} == {"share"}
    assert {message.worker for message, _ in memory_link.dropped} == {NAMES[0]}
    assert loop.counters.steps == len(store)
    assert len(store) + rows * len(memory_link.dropped) == rows * (40 + 40)


def test_no_name_has_more_than_its_share_of_the_updates(memory_link):
    config = with_settings(PPO, ["fleet.max_lag=1000000"])
    loop = loop_of(config, memory_link)
    flooded(config, memory_link, loop, NAMES[0], shares=20)
    assert "share" in {reason for _, reason in memory_link.dropped}
    assert {message.worker for message, reason in memory_link.dropped if reason == "share"} == {NAMES[0]}


@pytest.mark.parametrize("go_back", [False, True])
def test_what_a_name_gave_is_forgotten(go_back, memory_link, tmp_path, new_run_of):
    """By a learner that runs, or by the next one; the others' rows stay, and so does what a checkpoint says of them."""
    said, view = [], Silent()
    view.say = said.append
    run = new_run_of(Q, tmp_path / "run")
    training = Training(run, Q, view=view, stop=lambda: False, loop=loop_of(Q, memory_link))
    training.begin()
    play(Q, memory_link, 2)
    one, other = memory_link.messages
    memory_link.messages = [resent(one, Q, "a.1.000000", 1)]
    training.loop.iterate()
    training.save()
    early = training.loop.counters.steps
    memory_link.messages = [resent(other, Q, "eve.1.000000", 1), resent(one, Q, "a.1.000000", 2)]
    training.loop.iterate()
    training.save()
    ask_to_forget(run, "eve", go_back=go_back)
    training.close("stopped")
    assert training.loop.source.givers.rows_of("eve") == other.rows

    loop = build_fleet_loop(Q, memory_link, Start("run", 2), lambda text: None)
    after = Training(run, Q, view=view, stop=lambda: False, loop=loop)
    after.resume()
    assert loop.source.givers.rows_of("eve") == other.rows
    after._forget_names()
    assert to_forget(run) == {}
    left = one.rows if go_back else 2 * one.rows
    assert (len(loop.learner.store), loop.source.givers.rows_of("eve"), loop.source.givers.rows_of("a")) == (
        left,
        0,
        left,
    )
    assert loop.counters.steps == early if go_back else loop.counters.steps > early
    assert any(f"eve: {0 if go_back else other.rows:,} rows removed" in text for text in said)
    again = build_fleet_loop(Q, memory_link, Start("run", 3), lambda text: None)
    Training(run, Q, view=view, stop=lambda: False, loop=again).resume()
    assert len(again.learner.store) == left
    assert again.source.givers.rows_of("a") == left


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
        run, Q, resume=False, view=Silent(), stop=lambda: False, check=False, fleet=Fleet(memory_link, Start("run", 1))
    )
    assert not outcome.finished
    assert run.status().state == "stopped"
    assert list(run.checkpoints.iterdir())


def test_a_policy_is_the_whole_network(memory_link):
    loop = loop_of(Q, memory_link)
    policy = unpack_policy(memory_link.policies[0][1], run="run")
    assert policy.tensors.keys() == {f"network.{key}" for key in loop.learner.networks["network"].state_dict()}


def test_the_environment_version_tells_fights_apart():
    fight = load_preset("clipped-dqn")
    assert environment_version(fight) == environment_version(load_preset("dddqn"))
    assert environment_version(fight) != environment_version(with_settings(fight, ["encoder.history=2"]))
    assert environment_version(Q) != environment_version(load_preset("lunarlander-dqn"))


def test_of_too_many_workers_those_heard_of_last_are_remembered(memory_link, monkeypatch):
    """The one that plays longest is not forgotten because it was the first: its last message would count twice."""
    monkeypatch.setattr(links, "MOST_MARKS", 3)
    loop = loop_of(Q, memory_link)
    play(Q, memory_link, 1)
    (message,) = memory_link.messages
    oldest = "a.1.000000"
    for number, worker in enumerate([oldest, "a.2.000000", "a.3.000000", oldest, "a.4.000000"], 1):
        memory_link.messages = [resent(message, Q, worker, number)]
        loop.iterate()
    assert loop.source.notes()["marks"] == {"a.3.000000": 3, oldest: 4, "a.4.000000": 5}
    memory_link.messages = [resent(message, Q, oldest, 4)]
    loop.iterate()
    assert [delivery.worker for delivery in memory_link.repeated] == [oldest]


def test_a_rejoined_worker_begins_with_the_next_number(memory_link, tmp_path, new_run_of):
    """What a checkpoint remembers of the workers, and the order of it, outlives the learner."""
    run = new_run_of(Q, tmp_path / "run")
    before = Training(run, Q, view=Silent(), stop=lambda: False, loop=loop_of(Q, memory_link))
    before.begin()
    play(Q, memory_link, 1)
    (message,) = memory_link.messages
    workers = ["z.1.000000", "b.1.000000", "a.1.000000"]
    memory_link.messages = [resent(message, Q, worker, 9) for worker in workers]
    before.loop.iterate()
    before.save()
    loop = build_fleet_loop(Q, memory_link, Start("run", 2), lambda text: None)
    Training(run, Q, view=Silent(), stop=lambda: False, loop=loop).resume()
    assert list(loop.source.notes()["marks"].items()) == [(worker, 9) for worker in workers]


def test_a_worker_that_waits_costs_no_gradient_steps(memory_link):
    """Fights merge steps into decisions: a chunk owes more than its rows, and a few at once are no reason to skip."""
    config = with_settings(load_preset("smoke-q"), ["fleet.chunk_rows=64", "q.warmup_steps=0", "run.threads=1"])
    loop = loop_of(config, memory_link)
    play(config, memory_link, 8)
    learn_all(loop)
    assert loop.counters.steps > 8 * 64 * 2
    assert loop.counters.updates_skipped == 0.0


@pytest.mark.parametrize("algorithm", ["sac", "impala"])
def test_every_algorithm_learns_from_workers(algorithm, memory_link, tmp_path, new_run_of):
    """Also after a resume; nothing here was written for it."""
    config = with_settings(
        load_preset("cartpole-ppo"),
        [f"algorithm={algorithm}", "gym.number=2", "impala.rollout=8", "impala.sequences=2", "sac.warmup_steps=0",
         "sac.batch=16", "fleet.chunk_rows=16", "run.threads=1", "run.evaluate_every_steps=0"],
    )  # fmt: skip
    run = new_run_of(config, tmp_path / "run")
    training = Training(run, config, view=Silent(), stop=lambda: False, loop=loop_of(config, memory_link))
    training.begin()
    play(config, memory_link, 4)
    for _ in range(4):
        metrics = training.loop.iterate()
    updates = training.loop.counters.updates
    assert updates > 0
    assert metrics.keys() >= {"fleet/stored"} or memory_link.described
    training.save()
    resumed = loop_of(config, memory_link, generation=2)
    Training(run, config, view=Silent(), stop=lambda: False, loop=resumed).resume()
    assert resumed.counters.updates == updates
    assert resumed.learner.flats["network"].data.equal(training.loop.learner.flats["network"].data)


def test_a_loop_that_is_asked_to_stop_ends_after_the_step():
    config = with_settings(load_preset("cartpole-dqn"), ["gym.number=1", "q.warmup_steps=1000"])
    loop = build_loop(config, *build_worlds(config, None))
    loop.begin()
    loop.iterate(lambda: True)
    assert 0 < loop.counters.steps < 256
    loop.source.close()


def test_reports_go_out_with_policies_and_not_with_metrics(memory_link):
    loop = loop_of(Q, memory_link)
    loop.source.metrics(loop.counters)
    assert memory_link.described == []
    loop.iterate()
    assert [report["steps"] for report in memory_link.described] == [0]
