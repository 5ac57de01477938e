"""What workers send is played again: honest ones are never accused, whoever sends something else is out."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from soulsai.acting import worker as workers
from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.learning import checks as checks_module
from soulsai.learning.loop import build_fleet_loop
from soulsai.learning.sources import Start
from soulsai.learning.training import Training
from soulsai.learning.wiring import build_worker, build_world, environment_version
from soulsai.replay.givers import FULL_SHARES
from soulsai.runs.fleet_file import FleetFile, write_fleet
from soulsai.runs.run import Run
from soulsai.runtime.gateway import with_spot_checks
from soulsai.transport.chunks import pack_chunk, unpack_chunk
from soulsai.transport.links import ROUND, name_of, round_of

SMALL = ["run.threads=1", "run.device=cpu", "fleet.spot_checks=on", "fight.step_limit=40", "network.hidden=[8]",
         "fleet.chunk_s=60", "fleet.publish_every_s=0"]  # fmt: skip
Q = with_settings(
    load_preset("dqn"),
    [*SMALL, "fleet.number=4", "fleet.chunk_rows=64", "q.warmup_steps=100000", "fleet.probation_fights=4"],
)
PPO = with_settings(
    load_preset("smoke"),
    [*SMALL, "fight.number=8", "ppo.rollout=8", "ppo.minibatch=64", "fleet.number=4", "fleet.probation_fights=4"],
)
CONFIGS = {
    "q": Q,
    "n-step": with_settings(Q, ["q.n_step=3", "starts.mid_fight=0.5", "starts.random_pose=true"]),
    "curriculum": with_settings(Q, ["starts.mid_fight=0.5", "starts.curriculum=1.0", "q.n_step=2"]),
    "every step": with_settings(Q, ["fight.decisions=false", "encoder.history=2", "fight.randomize=1.0"]),
    "drawn": with_settings(Q, ['fight.variants=["standard","drawn:2"]', "fight.randomize=0.5", "q.n_step=3"]),
    "bosses": with_settings(Q, ['fight.bosses=["iudex","vordt"]', "q.n_step=3"]),
    "one fight": with_settings(Q, ["fleet.number=1", "q.n_step=3", "fleet.chunk_rows=16"]),
    "no masks": with_settings(Q, ["actions.masks=false"]),
    "sac": with_settings(load_preset("sac"), [*SMALL, "fleet.number=4", "sac.warmup_steps=100000"]),
    "ppo": PPO,
    "half precision": with_settings(PPO, ["fleet.half_precision=true"]),
    "impala": with_settings(
        load_preset("impala"), [*SMALL, "fight.number=8", "impala.rollout=8", "impala.sequences=8", "fleet.number=4"]
    ),
}  # fmt: skip


class Fleet:
    """A learner that checks, and workers of any name whose messages may be changed on the way."""

    def __init__(self, config, link, generation=1):
        self.config, self.link, self.said = config, link, []
        link.has_invitations, link.revoked, link.end = True, [], self.end
        self.problem = ""  # why nobody can be revoked
        self.environment = environment_version(config)
        self.loop = build_fleet_loop(config, link, Start("run", generation), self.said.append)
        self.checks = self.loop.source.checks

    def end(self, name):
        if not self.problem:
            self.link.revoked.append(name)
        return self.problem

    def play(self, worker, messages, config=None, environment=None):
        """What a worker sends, opened: it has all the time it needs."""
        link = self.link
        waiting, link.messages, link.worker, link.taken = link.messages, [], worker, 0
        link.stop_after, link.stopping = messages, False
        build_worker(config or self.config, link, environment=environment or self.environment).run()
        sent, link.messages, link.stopping = link.messages, waiting, False
        return sent

    def opened(self, message):
        return unpack_chunk(message.frame, self.loop.learner.schema, run="run")

    def changed(self, message, change):
        """The same message with another chunk, correctly packed."""
        header, chunk = self.opened(message)
        other = replace(chunk, columns={name: array.copy() for name, array in chunk.columns.items()})
        other = change(other) or other
        frame = pack_chunk(other, self.loop.learner.schema, run="run", worker=header.worker, sequence=header.sequence,
                           policy=header.policy)  # fmt: skip
        return replace(message, rows=other.rows, frame=frame)

    def take(self, messages):
        """Let the learner look at messages."""
        self.link.messages += messages
        self.loop.source._receive(0.0)

    def dropped(self):
        found = {}
        for message, reason in self.link.dropped:
            found.setdefault(name_of(message.worker), []).append(reason)
        return found


@pytest.fixture
def make_fleet(memory_link, monkeypatch):
    """A function that makes a learner; each round of its workers is short."""
    monkeypatch.setattr(workers, "ROUND_EPISODES", 2)
    monkeypatch.setattr(checks_module, "BUILD_S", 1e9)  # so short that worlds are made all the time
    monkeypatch.setattr(workers, "SHORTEST_WAIT_S", 0.0)
    monkeypatch.setattr(workers, "LONGEST_WAIT_S", 0.0)  # for a policy that comes of what nobody has learned from

    def make(config=Q, generation=1):
        fleet = Fleet(config, memory_link, generation)
        fleet.loop.begin()
        return fleet

    return make


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_an_honest_worker_is_never_accused(config, make_fleet, monkeypatch):
    monkeypatch.setattr(checks_module, "POLICY_SHARE", 1.0)
    fleet = make_fleet(config)
    sent = fleet.play("alice.1.abcdef", 24)
    rounds = {round_of(message.sequence)[0] for message in sent}
    assert len(rounds) > 1
    fleet.take(sent)
    assert fleet.link.revoked == []
    assert "wrong" not in fleet.dropped().get("alice", [])
    ended = sum(len(fleet.opened(message)[1].ended.lengths) for message in sent)
    assert fleet.checks.fights["alice"] == ended > 0
    assert fleet.checks.vouch(fleet.opened(sent[-1])[0]) == (ended >= config.fleet.probation_fights)


def test_the_pace_of_chunks_does_not_matter(make_fleet):
    """Chunks of any size, also with decisions whose rows come later."""
    config = with_settings(Q, ["q.n_step=3", "fleet.chunk_rows=1", "fleet.number=1"])
    fleet = make_fleet(config)
    fleet.take(fleet.play("alice.1.abcdef", 100))
    assert fleet.link.revoked == []
    assert fleet.checks.fights["alice"] > 0


def flipped(chunk):
    chunk.columns["rewards"][:] *= -1


def scaled(chunk):
    chunk.columns["rewards"][:] *= 1.01


def blurred(chunk):
    chunk.columns["observations"][..., 3] += 0.01


def other_actions(chunk):
    chunk.columns["actions"][:] = (chunk.columns["actions"] + 1) % 2


def never_ends(chunk):
    chunk.columns["discounts"][:] = 0.99


def opened_masks(chunk):
    name = "masks" if "masks" in chunk.columns else "next_masks"
    chunk.columns[name][:] = True


def all_won(chunk):
    return replace(chunk, ended=replace(chunk.ended, won=np.ones_like(chunk.ended.won)))


def more_steps(chunk):
    return replace(chunk, steps=chunk.steps + 1)


def fewer_rows(chunk):
    return replace(chunk, columns={name: array[:-4] for name, array in chunk.columns.items()})


def fewer_decisions(chunk):
    return replace(chunk, proof=replace(chunk.proof, actions=chunk.proof.actions[:-1]))


def far_more_decisions(chunk):
    return replace(chunk, proof=replace(chunk.proof, actions=np.tile(chunk.proof.actions, (50, 1))))


def raised(chunk):
    chunk.columns["values"][:] += 1.0


def surer(chunk):
    chunk.columns["log_probs"][:] *= 0.5


COMMON = [flipped, scaled, blurred, never_ends, opened_masks, all_won, more_steps, fewer_decisions,
          far_more_decisions]  # fmt: skip


@pytest.mark.parametrize("change", [*COMMON, other_actions, fewer_rows])
def test_whoever_sends_other_transitions_is_out(change, make_fleet):
    fleet = make_fleet(with_settings(Q, ["q.n_step=2"]))
    honest, eve = fleet.play("alice.1.abcdef", 6), fleet.play("eve.1.abcdef", 6)
    fleet.take([*honest, *(fleet.changed(message, change) for message in eve)])
    assert fleet.link.revoked == ["eve"]
    assert set(fleet.dropped()["eve"]) == {"wrong"}
    assert list(fleet.loop.source.names_to_forget()) == ["eve"]
    assert sum("eve has sent what was not played" in line for line in fleet.said) == 1
    assert "alice" not in fleet.dropped()


@pytest.mark.parametrize("change", [*COMMON, raised, surer])
def test_whoever_sends_other_rollouts_is_out(change, make_fleet, monkeypatch):
    monkeypatch.setattr(checks_module, "POLICY_SHARE", 1.0)
    fleet = make_fleet(PPO)
    honest, eve = fleet.play("alice.1.abcdef", 6), fleet.play("eve.1.abcdef", 6)
    fleet.take([*honest, *(fleet.changed(message, change) for message in eve)])
    assert fleet.link.revoked == ["eve"]
    assert "alice" not in fleet.dropped()


def test_the_same_easy_fight_again_and_again(make_fleet):
    """Rows of an honest round, sent once more as the next round and by the next worker."""
    fleet = make_fleet(with_settings(Q, ["fight.randomize=1.0", "starts.random_pose=true"]))
    fleet.take(fleet.play("alice.1.abcdef", 4))
    eve = fleet.play("eve.1.abcdef", 1)

    def again(message, worker, sequence):
        chunk = fleet.opened(message)[1]
        frame = pack_chunk(chunk, fleet.loop.learner.schema, run="run", worker=worker, sequence=sequence, policy=1)
        return replace(message, worker=worker, sequence=sequence, frame=frame)

    fleet.take([*eve, again(eve[0], "eve.1.abcdef", ROUND + 1)])
    assert fleet.link.revoked == ["eve"]
    fleet.take([again(eve[0], "eve.1.bbbbbb", 1)])
    assert fleet.link.revoked == ["eve", "eve"]
    assert set(fleet.dropped()) == {"eve"}


def test_who_turns_bad_later_is_found_out(make_fleet):
    fleet = make_fleet()
    eve = fleet.play("eve.1.abcdef", 20)
    fleet.take(eve[:15])
    assert not fleet.checks.is_new("eve")
    fleet.take([fleet.changed(message, flipped) for message in eve[15:]])
    assert fleet.link.revoked == ["eve"]
    assert fleet.checks.is_new("eve")


def test_what_waits_of_a_name_found_out_is_dropped(make_fleet):
    fleet = make_fleet()
    eve = fleet.play("eve.1.abcdef", 6)
    fleet.take(eve[:5])
    source = fleet.loop.source
    assert source._waiting_rows > 0
    fleet.take([fleet.changed(eve[5], flipped)])
    assert (source._waiting_rows, len(source._waiting)) == (0, 0)
    assert fleet.dropped()["eve"].count("wrong") == 6


def test_what_a_name_gave_before_it_was_found_out_is_forgotten(make_fleet, tmp_path):
    fleet = make_fleet()
    run = Run.create(tmp_path / "run", config_to_toml(Q), preset="test", command=[])
    view = SimpleNamespace(say=fleet.said.append, show=lambda progress: None)
    training = Training(run, Q, view=view, stop=lambda: False, loop=fleet.loop)
    training.begin()
    eve, honest = fleet.play("eve.1.abcdef", 12), fleet.play("alice.1.abcdef", 12)
    fleet.link.messages += [*honest, *eve[:11]]
    fleet.loop.iterate()
    training.save()
    givers, store = fleet.loop.source.givers, fleet.loop.learner.store
    gave, kept = givers.rows_of("eve"), givers.rows_of("alice")
    assert gave > 0
    fleet.link.messages.append(fleet.changed(eve[11], flipped))
    fleet.loop.iterate()
    training._forget_names()
    assert (givers.rows_of("eve"), givers.rows_of("alice"), len(store)) == (0, kept, kept)
    assert f"eve: {gave:,} rows removed from the replay" in fleet.said
    training.close("stopped")


def test_a_gap_is_no_offence_and_no_proof(make_fleet):
    """Chunks were lost on the way: the rest of the round is on probation, the next one is judged again."""
    fleet = make_fleet()
    sent = fleet.play("alice.1.abcdef", 40)
    firsts = [at for at, message in enumerate(sent) if round_of(message.sequence)[1] == 0]
    fleet.take(sent[: firsts[2]])
    assert not fleet.checks.is_new("alice")
    before = fleet.checks.fights["alice"]
    fleet.take(sent[firsts[2] + 1 : firsts[3]])
    assert fleet.checks.fights["alice"] == before
    assert not fleet.checks.vouch(fleet.opened(sent[firsts[3] - 1])[0])
    fleet.take(sent[firsts[3] :])
    assert fleet.checks.vouch(fleet.opened(sent[-1])[0])
    assert fleet.checks.fights["alice"] > before
    assert fleet.link.revoked == []


def test_who_always_leaves_out_the_beginning_stays_on_probation(make_fleet):
    fleet = make_fleet()
    fleet.take(fleet.play("alice.1.abcdef", 40))
    honest = len(fleet.loop.source._waiting)
    eve = [message for message in fleet.play("eve.1.abcdef", 90) if round_of(message.sequence)[1]]
    fleet.take([fleet.changed(message, flipped) for message in eve])
    assert fleet.checks.is_new("eve")
    taken = len(fleet.loop.source._waiting) - honest
    assert taken < len(eve) / 2
    assert fleet.dropped()["eve"].count("probation") == len(eve) - taken
    assert taken <= Q.fleet.probation_share * (honest + taken) + FULL_SHARES


def test_newcomers_share_a_small_part_together(make_fleet):
    """Many names do not make it larger."""
    fleet = make_fleet(with_settings(Q, ["fleet.probation_fights=1000000"]))
    for number in range(8):
        fleet.take(fleet.play(f"guest-{number}.1.abcdef", 10))
    taken = len(fleet.loop.source._waiting)
    assert 0 < taken <= FULL_SHARES + 1  # those that come before shares mean something
    assert sum(reasons.count("probation") for reasons in fleet.dropped().values()) == 80 - taken
    assert fleet.link.revoked == []
    assert len(fleet.checks.newcomers()) == 8


def test_a_worker_of_another_version_is_not_judged(make_fleet):
    fleet = make_fleet()
    sent = fleet.play("alice.1.abcdef", 5, environment="0123456789abcdef")
    fleet.take([fleet.changed(message, flipped) for message in sent])
    fleet.take(fleet.play("bob.1.abcdef", 5, config=with_settings(Q, ["fleet.number=8"])))
    fleet.take(fleet.play("carol.1.abcdef", 5, config=with_settings(Q, ["fleet.spot_checks=off"])))
    assert fleet.link.revoked == []
    assert set(fleet.checks.newcomers()) == {"alice", "bob", "carol"}


def test_an_environment_that_failed_begins_a_new_round(make_fleet, monkeypatch):
    fleet = make_fleet(with_settings(Q, ["q.n_step=3"]))
    step, count = workers.PacedWorld.step, iter(range(10**9))

    def sometimes(world, actions):
        if next(count) in (60, 150):
            raise workers.WorldFailed("gone")
        return step(world, actions)

    monkeypatch.setattr(workers.PacedWorld, "step", sometimes)
    sent = fleet.play("alice.1.abcdef", 24)
    fleet.take(sent)
    assert fleet.link.revoked == []
    assert fleet.checks.fights["alice"] == sum(len(fleet.opened(one)[1].ended.lengths) for one in sent)


def test_workers_that_are_started_again(make_fleet):
    fleet = make_fleet()
    for life in ("aaaaaa", "bbbbbb", "cccccc"):
        fleet.take(fleet.play(f"alice.1.{life}", 5))
    assert fleet.link.revoked == []
    assert fleet.checks.vouch(SimpleNamespace(worker="alice.1.cccccc"))


def test_a_learner_that_is_started_again_knows_whom_it_knew(make_fleet, monkeypatch):
    monkeypatch.setattr(workers, "ROUND_EPISODES", 16)
    fleet = make_fleet()
    sent = fleet.play("alice.1.abcdef", 30)
    second = next(at for at, message in enumerate(sent) if round_of(message.sequence)[0])
    assert second > 6
    fleet.take(sent[:3])
    notes, marks = {"alice": 100}, {"alice.1.abcdef": sent[2].sequence}
    again = make_fleet(generation=2)
    again.checks.restore(notes, marks)
    again.take(sent[4:6])  # one chunk was lost with the learner
    assert again.checks.vouch(again.opened(sent[5])[0])
    again.take(sent[7:8])  # but this one was not
    assert not again.checks.vouch(again.opened(sent[7])[0])
    assert again.checks.fights["alice"] == 100
    again.take(sent[second:])
    assert again.checks.vouch(again.opened(sent[-1])[0])
    assert again.checks.fights["alice"] > 100
    assert again.link.revoked == []


def test_what_was_checked_is_in_checkpoints(make_fleet):
    fleet = make_fleet()
    fleet.take(fleet.play("alice.1.abcdef", 10))
    notes = fleet.loop.source.notes()
    again = make_fleet(generation=2)
    saved = SimpleNamespace(state={"source": notes}, parts={}, arrays=None)
    again.loop.source.restore(saved, again.loop.learner)
    assert again.checks.fights == fleet.checks.fights != {}
    again.checks.skip(SimpleNamespace(worker="alice.1.abcdef", sequence=1))
    again.loop.source.restore(SimpleNamespace(state={"source": notes | {"checked": {}}}, parts={}), again.loop.learner)
    assert again.checks.fights == fleet.checks.fights  # back to a checkpoint: what was seen since was seen


def test_what_a_checkpoint_holds_is_not_played_again(make_fleet, monkeypatch):
    monkeypatch.setattr(workers, "ROUND_EPISODES", 50)
    fleet = make_fleet()
    sent = fleet.play("alice.1.abcdef", 6)
    fleet.checks.restore({"alice": 100}, {"alice.1.abcdef": sent[2].sequence})
    fleet.link.receive = lambda limit_s: [replace(message, is_held=message.sequence <= 3) for message in sent]
    fleet.loop.source._receive(0.0)
    assert fleet.checks.fights["alice"] == 100
    assert fleet.checks.vouch(fleet.opened(sent[-1])[0])
    assert len(fleet.loop.source._waiting) == 3


def test_a_name_that_cannot_be_revoked_is_not_heard(make_fleet):
    fleet = make_fleet()
    eve = fleet.play("eve.1.abcdef", 6)
    fleet.problem = "Redis does not answer"
    fleet.take([fleet.changed(eve[0], flipped)])
    fleet.take(eve[1:3])
    assert fleet.dropped()["eve"] == ["wrong"] * 3
    assert sum("could not be revoked" in line for line in fleet.said) == 1
    fleet.problem = ""
    fleet.take([])
    assert fleet.link.revoked == ["eve"]
    fleet.take(fleet.play("eve.1.bbbbbb", 3))  # invited once more
    assert fleet.dropped()["eve"] == ["wrong"] * 3
    assert fleet.checks.fights["eve"] > 0


def test_known_names_are_checked_now_and_then(make_fleet, monkeypatch):
    fleet = make_fleet(with_settings(Q, ["fleet.checked_share=0.5"]))
    fleet.checks.fights["alice"] = 100
    chances = iter([0.7, 0.2] * 50)
    monkeypatch.setattr(checks_module, "random", SimpleNamespace(random=lambda: next(chances)))
    sent = fleet.play("alice.1.abcdef", 40)
    fleet.take(sent)
    judged = [message for message in sent if round_of(message.sequence)[0] % 2]
    assert fleet.checks.fights["alice"] == 100 + sum(len(fleet.opened(one)[1].ended.lengths) for one in judged)
    assert fleet.checks.vouch(fleet.opened(sent[-1])[0])


def test_rounds_that_only_begin_do_not_keep_the_learner_busy(make_fleet, monkeypatch):
    """A round for every chunk: a world is made for each, as long as there is time for it."""
    monkeypatch.setattr(checks_module, "BUILD_S", 0.0)
    monkeypatch.setattr(workers, "ROUND_EPISODES", 0)
    fleet = make_fleet()
    made = []
    monkeypatch.setattr(checks_module, "build_world", lambda config: made.append(config) or build_world(config))
    sent = fleet.play("eve.1.abcdef", 20)
    fleet.take(sent)
    assert len(made) == 1
    assert not fleet.checks.vouch(fleet.opened(sent[-1])[0])
    assert fleet.link.revoked == []


def test_shadows_have_a_limit(make_fleet):
    fleet = make_fleet()
    fleet.checks._most_shadows = 2
    sent = [fleet.play(f"eve.{number}.abcdef", 2) for number in range(4)]
    honest = fleet.play("alice.1.abcdef", 4)
    fleet.take([*honest[:2], *(one[0] for one in sent)])
    with_shadow = [who for who, life in fleet.checks._lives.items() if life.shadow]
    assert len(with_shadow) == 2
    fleet.take(honest[2:])
    assert fleet.link.revoked == []


def test_a_gateway_turns_the_checks_on(tmp_path):
    config = with_settings(Q, ["fleet.spot_checks=gateway"])

    def checks(place, config=config):
        return with_spot_checks(config, tmp_path, place).fleet.spot_checks

    assert (checks(""), checks("off"), checks("souls.example.org:8443")) == ("off", "off", "on")
    write_fleet(tmp_path, FleetFile("run", "", "", gateway="souls.example.org:8443"))
    assert (checks(""), checks("off")) == ("on", "off")
    assert checks("", with_settings(Q, ["fleet.spot_checks=off"])) == "off"
    assert checks("off", Q) == "on"


def test_runs_that_cannot_be_checked_are_left_alone(memory_link):
    memory_link.has_invitations = True
    gym = with_settings(load_preset("cartpole-dqn"), ["fleet.spot_checks=on"])
    for config in (gym, with_settings(Q, ["fleet.spot_checks=off"]), with_settings(Q, ["fleet.spot_checks=gateway"])):
        assert build_fleet_loop(config, memory_link, Start("run", 1), print).source.checks is None
    memory_link.has_invitations = False  # workers of this machine
    assert build_fleet_loop(Q, memory_link, Start("run", 1), print).source.checks is None
