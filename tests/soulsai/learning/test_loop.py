"""The loop: when it learns, with what, that a greedy policy is greedy, and that divergence ends it."""

import numpy as np
import pytest
import torch

from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import load_preset, with_settings
from soulsai.errors import DivergedError
from soulsai.learning.loop import REFUSED_IN_A_ROW, STEPS_PER_ITERATION, build_loop
from soulsai.learning.wiring import build_world

FIGHTS = ["fight.number=4", "network.hidden=[8]", "q.batch=16", "replay.capacity=2000", "q.warmup_steps=300"]
CARTPOLE = ["network.hidden=[8]", "gym.number=3", "q.batch=16", "q.burst=1", "q.warmup_steps=0"]


def begun(preset, *settings):
    config = with_settings(load_preset(preset), list(settings))
    loop = build_loop(config, build_world(config))
    loop.begin()
    return loop


def test_updates_begin_after_the_warm_up_and_keep_their_pace():
    loop = begun("smoke-q", *FIGHTS, "q.update_every=8")
    loop.iterate()
    assert STEPS_PER_ITERATION <= loop.counters.steps < 300
    assert loop.counters.updates == 0
    while loop.counters.steps < 1000:
        loop.iterate()
    counted_from = 300
    assert loop.counters.updates == pytest.approx((loop.counters.steps - counted_from) / 8, abs=8)


def test_updates_in_bursts():
    loop = begun("smoke-q", *FIGHTS, "q.update_every=2", "q.burst=25")
    while loop.counters.steps < 700:
        loop.iterate()
    assert loop.counters.updates % 25 == 0
    assert 0 <= loop.counters.updates_owed < 25


def test_metrics_of_the_q_loop():
    loop = begun("smoke-q", *FIGHTS, "replay.prioritized=true", "run.steps=20000")
    first = loop.iterate()
    assert first.keys() == {"epsilon", "replay/size", "beta", "replay/priority_mean", "replay/priority_max"}
    assert (first["replay/priority_mean"], first["replay/priority_max"]) == (1.0, 1.0)  # nothing was learned from yet
    for _ in range(2):
        metrics = loop.iterate()
    assert {"loss/q", "q/mean", "q/max", "gradient/norm"} <= metrics.keys()
    assert metrics["q/max"] >= metrics["q/mean"]
    assert 0.0 < metrics["replay/priority_mean"] < metrics["replay/priority_max"]
    share = loop.counters.steps / 20_000
    assert metrics["beta"] == pytest.approx(0.4 + 0.6 * share)
    assert metrics["epsilon"] == pytest.approx(1.0 - 0.98 * loop.counters.steps / 50_000)
    assert metrics["replay/size"] == len(loop.learner.store)


def test_the_greedy_policy_has_no_noise():
    loop = begun("smoke-q", *FIGHTS, "q.noisy=true")
    loop.iterate()
    policy = loop.policy()
    seen = torch.randn(5, loop.source.actors[0].world.observation_size)
    quiet = policy.scores(seen)
    for net in loop.learner.online:
        assert not net.head.noise_in.any()
        assert not net.value_head.noise_in.any()
    assert torch.equal(policy.scores(seen), quiet)
    loop.source.actors[0].play()
    assert torch.equal(policy.scores(seen), quiet)  # those who play have noise of their own
    loop.learner.online[0].draw_noise(torch.Generator().manual_seed(0))
    assert not torch.equal(policy.scores(seen), quiet)


def test_asking_for_the_policy_changes_nothing_for_the_noise_of_training():
    """Evaluations in between leave the run as it was."""

    def played(asks):
        loop = begun("smoke-q", *FIGHTS, "q.noisy=true", "q.epsilon=0", "q.final_epsilon=0")
        for _ in range(3):
            if asks:
                loop.policy()
            loop.iterate()
        return loop.learner.flats["network"].data

    assert torch.equal(played(True), played(False))


@pytest.mark.parametrize("normalize", ["true", "false"])
def test_the_first_pass_learns_from_the_policy_that_acted(normalize):
    """Between acting and learning nothing may change, the scale of the inputs neither."""
    loop = begun("smoke", "fight.number=8", "ppo.epochs=1", "ppo.minibatch=128", f"network.normalize={normalize}")
    for iteration in range(3):
        metrics = loop.iterate()
        assert metrics["policy/kl"] == pytest.approx(0.0, abs=1e-6)
        assert metrics["policy/clip_fraction"] == 0.0
        if normalize == "true":
            assert int(loop.learner.network.normalizer.count) == (iteration + 1) * 128


def test_a_q_loop_that_normalizes_sees_each_observation_once():
    loop = begun("cartpole-dqn", *CARTPOLE, "network.normalize=true")
    loop.iterate()
    assert int(loop.learner.online[0].normalizer.count) == loop.counters.steps


def test_a_resumed_gymnasium_run_mixes_no_episodes(tmp_path):
    """The episodes that ran cannot be gone on with, so nothing that waits for their next steps may be kept."""
    loop = begun("cartpole-dqn", *CARTPOLE, "q.n_step=5")
    loop.iterate()
    assert loop.source.actors[0].own_state()["counts"].any()
    store = CheckpointStore(tmp_path)
    store.save(1, loop.parts(), {"source": loop.source.notes()})
    other = begun("cartpole-dqn", *CARTPOLE, "q.n_step=5")
    other.counters.steps = loop.counters.steps
    other.restore(store.load())
    assert not other.source.actors[0].own_state()["counts"].any()
    assert not np.array_equal(other.source.actors[0].world.observations, loop.source.actors[0].world.observations)


def test_progress_of_ppo_is_the_share_of_steps_done():
    loop = begun("smoke", "fight.number=8", "ppo.minibatch=128", "run.steps=4000")
    rate = loop.learner.config.ppo.learning_rate
    done = []
    for _ in range(3):
        done.append(loop.counters.steps / 4000)
        assert loop.iterate()["learning_rate"] == pytest.approx(rate * (1 - 0.95 * done[-1]))
    assert done[2] > done[1] > done[0] == 0.0


DIVERGING = {
    "ppo": ("smoke", ["fight.number=8", "ppo.minibatch=128"], "loss/policy is nan at step "),
    "q": ("smoke-q", [*FIGHTS, "q.warmup_steps=0"], "the error of a transition is no longer a number at step "),
    "prioritized": (
        "smoke-q",
        [*FIGHTS, "q.warmup_steps=0", "replay.prioritized=true"],
        "the error of a transition is no longer a number at step ",
    ),
}


@pytest.mark.parametrize("case", DIVERGING)
def test_numbers_that_are_none_end_the_loop(case):
    preset, settings, text = DIVERGING[case]
    loop = begun(preset, *settings, "run.threads=1")
    loop.iterate()
    assert loop.learner.is_finite()
    loop.learner.flats["network"].data[-1] = float("nan")
    assert not loop.learner.is_finite()
    with pytest.raises(DivergedError, match=text):
        loop.iterate()


def test_a_loss_that_stays_infinite_is_divergence_too(monkeypatch):
    loop = begun("smoke", "fight.number=8", "ppo.minibatch=128")
    monkeypatch.setattr(loop.learner, "update", lambda limit_s: {"loss/value": torch.tensor(float("inf"))})
    loop.learner.take = lambda chunk: setattr(loop.counters, "steps", loop.counters.steps + 1000)
    assert "loss/value" not in (metrics := loop.iterate())
    assert metrics["updates_refused"] == loop.counters.updates_refused == 1
    for _ in range(REFUSED_IN_A_ROW - 2):
        loop.iterate()
    with pytest.raises(DivergedError, match="loss/value is inf at step 20,000"):
        loop.iterate()
