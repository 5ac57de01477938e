"""Learning beside its limit, on fights small enough to be quick."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from benchmarks import limits
from benchmarks.limits import measure_ppo, measure_q, pass_back, update_times
from soulsai.config import load_preset, with_settings
from soulsai.learning.loop import build_loop
from soulsai.learning.wiring import build_worlds

PPO = with_settings(
    load_preset("iudex"),
    ["fight.number=8", "ppo.rollout=8", "ppo.minibatch=24", "ppo.epochs=2", "network.hidden=[16]", "run.device=cpu"],
)
Q = with_settings(
    load_preset("clipped-dqn"),
    ["fight.number=4", "replay.capacity=300", "q.batch=16", "network.hidden=[16]", "q.atoms=11", "run.device=cpu"],
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEWEST_ROUNDS", 2)
    monkeypatch.setattr(limits, "STEPS_PER_ROUND", 3)
    monkeypatch.setattr(limits, "PLAYED_ROWS", 100)


def test_ppo_has_times_for_all_parts_of_its_limit():
    speed = measure_ppo(PPO, 0.0)
    assert set(speed.against.parts_s) == {"environment", "acting", "learning"}
    assert speed.against.ratio > 0.0
    assert speed.steps_per_s > 0.0
    assert speed.decisions_per_s == pytest.approx(8 * 8 / speed.against.real_s)
    assert sum(speed.against.shares.values()) == pytest.approx(1.0)
    assert {"act", "simulate", "store", "learn"} <= speed.against.shares.keys()


def started():
    loop = build_loop(PPO, *build_worlds(PPO))
    loop.begin()
    return loop


def test_the_environment_alone_plays_the_same_steps_again():
    loop = started()
    bare = limits._BarePPO(PPO, loop)
    bare.restore()
    loop.iterate()
    bare.environment()
    after, again = loop.source.actors[0].world.state(), bare._worlds[0].state()
    for name, value in after.items():
        np.testing.assert_array_equal(value, again[name], err_msg=name)


@pytest.mark.parametrize(("minibatch", "expected"), [(24, 2 * 2), (64, 2 * 1)])
def test_the_limit_has_as_many_passes_as_an_update(monkeypatch, minibatch, expected):
    config = with_settings(PPO, [f"ppo.minibatch={minibatch}"])
    loop = build_loop(config, *build_worlds(config))
    loop.begin()
    loop.learner.take(loop.source.actors[0].play())
    loop.learner.update(1.0)
    sizes = []
    monkeypatch.setattr(limits, "pass_back", lambda network, batch: sizes.append(len(batch)))
    limits._BarePPO(config, loop).learning()
    assert len(sizes) == loop.counters.updates == expected
    assert set(sizes) == {minibatch}


def test_measuring_the_limit_leaves_the_learner_alone():
    loop = started()
    loop.iterate()
    network = loop.learner.networks["network"]
    before = copy.deepcopy(network.state_dict())
    bare = limits._BarePPO(PPO, loop)
    bare.acting()
    bare.learning()
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_bare_pass_reaches_every_parameter():
    network = build_loop(PPO, *build_worlds(PPO)).learner.networks["network"]
    copied = copy.deepcopy(network)
    pass_back(copied, torch.ones(4, next(copied.parameters()).shape[1]))
    assert all(parameter.grad is not None for parameter in copied.parameters())


def test_q_is_measured_with_a_full_store():
    loop = limits._fill(Q)
    assert len(loop.learner.store) == loop.learner.store.capacity == 300
    assert loop.counters.updates == 0
    loop.learner.learn_once()
    assert loop.counters.updates == 1


def test_q_beside_its_limit():
    against = measure_q(Q, 0.0)
    assert against.ratio > 0.0
    assert against.real_s > 0.0
    assert against.limit_s == pytest.approx(against.parts_s["learning"])
    assert {"sample", "learn"} <= against.shares.keys()


def test_updates_of_both_families_take_time():
    ppo_s, q_s = update_times(PPO, Q, 0.0)
    assert ppo_s > 0.0
    assert q_s > 0.0


def test_ratios_are_taken_round_by_round():
    rounds = limits._Rounds(units=2)
    rounds._columns = {"real": [4.0, 8.0, 100.0], "learning": [2.0, 4.0, 50.0], "acting": [1.0, 2.0, 25.0]}
    against = rounds.against({"learn": 3.0, "act": 1.0})
    assert against.ratio == pytest.approx(0.75)
    assert (against.real_s, against.limit_s) == (4.0, 3.0)
    assert against.parts_s == {"learning": 2.0, "acting": 1.0}
    assert against.shares == {"learn": 0.75, "act": 0.25}
