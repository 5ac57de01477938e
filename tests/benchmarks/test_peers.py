"""The peer plays our fights, and the race is timed by its training alone."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.peers import Counted, infos_of, run_lap
from soulsai.config import load_preset, with_settings
from soulsai.learning.wiring import build_world
from soulsgym.batch import Step

SMALL = with_settings(load_preset("iudex"), ["fight.number=8", "ppo.rollout=4", "ppo.minibatch=16", "run.device=cpu"])
needs_peer = pytest.mark.skipif(not peers.is_installed(), reason="Stable-Baselines3 is not installed")


def lap(monkeypatch: pytest.MonkeyPatch, rates: list[float], *, second_s: float = 1.0, limit_s: float = 100.0):
    """A lap in which each bit of training takes as long and the looks find these win rates."""
    monkeypatch.setattr(peers, "_seconds_of", lambda work: work() or second_s)
    left = iter(rates)
    return run_lap(lambda: None, lambda: next(left), limit_s, lambda text: None)


def test_half_is_won_when_two_looks_in_a_row_say_so(monkeypatch):
    # Looks after 2, 4, 6, 8 and 10 s; the one at 4 s is not confirmed.
    found = lap(monkeypatch, [0.0, 0.6, 0.4, 0.5, 0.7])
    assert (found.reached_s, found.trained_s, found.win_rate) == (8.0, 10.0, 0.7)


def test_a_lap_ends_at_its_limit(monkeypatch):
    found = lap(monkeypatch, [0.1] * 9, limit_s=5.0)
    assert (found.reached_s, found.trained_s, found.win_rate) == (None, 6.0, 0.1)


def test_a_win_at_the_limit_is_still_confirmed(monkeypatch):
    assert lap(monkeypatch, [0.1, 0.9, 0.9], limit_s=4.0).reached_s == 4.0
    assert lap(monkeypatch, [0.1, 0.9, 0.1], limit_s=4.0).reached_s is None


def test_long_bits_of_training_are_looked_at_each_time(monkeypatch):
    assert lap(monkeypatch, [0.5, 0.5], second_s=60.0).reached_s == 60.0


def test_steps_are_counted():
    world = Counted(build_world(SMALL))
    world.reset(0)
    step = world.step(np.zeros(8, np.int64))
    assert world.steps == int(step.steps.sum()) >= 8
    world.close()


def test_the_peer_is_told_of_ends_and_of_fights_cut_off():
    step = Step.of_size(3, 2, 4, 1)
    step.ended[:] = [True, False, True]
    step.terminated[:] = [True, False, False]
    step.truncated[:] = [True, False, True]
    step.final_observations[2] = [3.0, 4.0]
    infos = infos_of(step)
    assert infos[1] == {}
    assert [infos[0]["TimeLimit.truncated"], infos[2]["TimeLimit.truncated"]] == [False, True]
    assert infos[2]["terminal_observation"].tolist() == [3.0, 4.0]


@needs_peer
def test_the_peer_keeps_what_it_was_given():
    environment = peers.peer_environment(Counted(build_world(SMALL)), 0)
    first = environment.reset()
    kept = first.copy()
    environment.step(np.zeros(8, np.int64))
    np.testing.assert_array_equal(first, kept)


@needs_peer
def test_both_are_measured_on_the_same_network(monkeypatch):
    monkeypatch.setattr(peers, "FEWEST_ROUNDS", 1)
    monkeypatch.setattr(
        peers, "SAME_NETWORK", ["network.hidden=[8]", "network.separate=true", "ppo.minibatch=16", "ppo.epochs=1"]
    )
    found = peers.measure_throughput(SMALL, 0.0)
    assert all(value > 0.0 for pace in astuple(found) for value in pace)
    by_step = found.theirs_by_step
    assert by_step.steps_per_s == pytest.approx(by_step.decisions_per_s)


def test_the_first_iteration_only_warms_up(monkeypatch):
    times_s, steps = iter([100.0, 2.0, 4.0, 8.0]), iter([0, 50, 50, 150, 150, 350, 350, 1150])
    monkeypatch.setattr(peers, "_seconds_of", lambda work: next(times_s))
    player = peers._Player(lambda: None, lambda: next(steps))
    for _ in range(4):
        player.play()
    # 100 / 2, 200 / 4 and 800 / 8 steps, 16 / 2, 16 / 4 and 16 / 8 decisions a second.
    assert astuple(player.pace(16)) == (50.0, 4.0)


@needs_peer
def test_the_peers_network_has_as_many_weights_as_ours():
    from soulsai.networks import ActorCritic

    same = with_settings(SMALL, [*peers.SAME_NETWORK, "ppo.minibatch=16"])
    world = Counted(build_world(same))
    theirs = peers.same_peer(same, world).policy
    ours = ActorCritic(world.observation_size, world.num_actions, same.network)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in ours.parameters())


@needs_peer
def test_one_iteration_of_the_peer_is_one_rollout():
    same = with_settings(SMALL, ["network.hidden=[8]", "ppo.minibatch=16"])
    model = peers.same_peer(same, Counted(build_world(same)))
    peers.learn_once(model)
    peers.learn_once(model)
    assert model.num_timesteps == 2 * 4 * 8


def test_in_the_race_the_peer_gets_the_same_fights_without_our_loop():
    config = load_preset("iudex")
    plain = peers.peer_config(config)
    assert (plain.fight.number, plain.fight.decisions, plain.actions.masks) == (64, False, False)
    assert (plain.encoder, plain.reward, plain.starts) == (config.encoder, config.reward, config.starts)
    assert (plain.fight.variants, plain.fight.randomize) == (config.fight.variants, config.fight.randomize)


@needs_peer
def test_the_peer_races_with_its_own_defaults_and_is_judged_in_full_fights(monkeypatch):
    monkeypatch.setattr(peers, "PEER_FIGHTS", 3)
    monkeypatch.setattr(peers, "CHECK_FIGHTS", 2)
    monkeypatch.setattr(peers, "CHECK_EVERY_S", 0.0)
    models = []
    monkeypatch.setattr(peers, "learn_once", models.append)
    said: list[str] = []
    found = peers._their_lap(load_preset("iudex"), 0.0, said.append)
    (model,) = models
    assert (model.n_steps, model.batch_size, model.n_epochs, model.n_envs) == (2048, 64, 10, 3)
    assert found.reached_s is None
    assert found.win_rate == 0.0
    assert "0.0% of 2 fights" in said[-1]


def test_who_never_wins_half_leaves_the_peer_out(monkeypatch):
    monkeypatch.setattr(peers, "_our_lap", lambda config, say: peers.Lap(None, 300.0, 0.1))
    assert peers.race(load_preset("iudex"), lambda text: None)[1] is None
