"""The Q-learner: every option on a chain whose values are known, and its targets on networks made by hand."""

import numpy as np
import pytest
import torch

from soulsai.acting.policy import NetworkPolicy
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.algorithms.q.config import QConfig
from soulsai.algorithms.q.learner import QLearner
from soulsai.config.schema import Config, NetworkConfig, ReplayConfig, RunConfig
from soulsai.errors import DivergedError
from soulsai.experience import Chunk, Ended, Schema, Sizes
from soulsai.replay.n_step import TRANSITION

GAMMA = 0.9
FAST = {"learning_rate": 0.05, "tau": 0.2, "gradient_norm": 0.0}
LINEAR = NetworkConfig(hidden=())


def chain(next_masks=None, copies=4):
    """Two places. In the first, 0 ends with 1 and 1 goes on to the second, where 0 ends with 2 and 1 with nothing."""
    places = torch.eye(2)
    rows = {
        "observations": places[[0, 0, 1, 1]],
        "actions": torch.tensor([0, 1, 0, 1]),
        "rewards": torch.tensor([1.0, 0.0, 2.0, 0.0]),
        "discounts": torch.tensor([0.0, GAMMA, 0.0, 0.0]),
        "next_observations": places[[1, 1, 1, 1]],
        "next_masks": torch.ones(4, 2, dtype=torch.bool) if next_masks is None else next_masks,
        "weights": torch.ones(4),
    }
    return {name: values.repeat(copies, *[1] * (values.dim() - 1)) for name, values in rows.items()}


STEPS = 1000


def made(network=LINEAR, seed=0, progress=0.0, threads=1, prioritized=False, **q):
    """A learner of a run that is so far done; two numbers seen, two actions."""
    config = Config(
        algorithm="q",
        q=QConfig(**{**FAST, **q}),
        network=network,
        replay=ReplayConfig(capacity=64, prioritized=prioritized),
        run=RunConfig(seed=seed, steps=STEPS, threads=threads),
    )
    learner = QLearner(config, Schema(TRANSITION, 2, 2, 1), torch.device("cpu"))
    learner.counters.steps = int(progress * STEPS)
    return learner


def learn(learner, batch):
    """One gradient step, counted as the loop does it."""
    found = learner.learn(batch)
    learner.counters.updates += 1
    return found


def learned(learner, batch, updates):
    """The values after so many updates, of all networks by themselves."""
    for _ in range(updates):
        learn(learner, batch)
    with torch.no_grad():
        for net in learner.online:
            net.quiet()
        return [net.means(torch.eye(2)) for net in learner.online]


KNOWN = [[1.0, 1.8], [2.0, 0.0]]
OPTIONS = {
    "plain": ({}, KNOWN, 300),
    "mse": ({"loss": "mse"}, KNOWN, 300),
    "double": ({"double": True}, KNOWN, 300),
    "twin": ({"twin": True}, KNOWN, 600),
    "clipped": ({"clipped": True}, KNOWN, 300),
    "clipped c51": (
        {"distribution": "c51", "atoms": 21, "value_range": (-1.0, 3.0), "learning_rate": 0.2, "clipped": True},
        KNOWN,
        400,
    ),
    "dueling": ({"dueling": True}, KNOWN, 300),
    "noisy": ({"noisy": True, "noise": 0.1}, KNOWN, 500),
    "noisy dueling double": ({"noisy": True, "noise": 0.1, "dueling": True, "double": True}, KNOWN, 500),
    "c51": ({"distribution": "c51", "atoms": 21, "value_range": (-1.0, 3.0), "learning_rate": 0.2}, KNOWN, 400),
    "c51 twin": (
        {"distribution": "c51", "atoms": 21, "value_range": (-1.0, 3.0), "learning_rate": 0.2, "twin": True},
        KNOWN,
        800,
    ),
    "quantile": ({"distribution": "quantile", "atoms": 5}, KNOWN, 400),
    "quantile double": ({"distribution": "quantile", "atoms": 5, "double": True, "dueling": True}, KNOWN, 400),
    "hard target": ({"target": "hard", "target_period": 20}, KNOWN, 300),
    "soft target": ({"target": "soft", "tau": 0.1}, KNOWN, 300),
    # No target beyond 1.5: the second place is worth no more, and so the first 0.9 times that.
    "value clip": ({"value_clip": 1.5}, [[1.0, 1.35], [1.5, 0.0]], 300),
    "adamw": ({"optimizer": "adamw", "weight_decay": 1e-5}, KNOWN, 300),
}


@pytest.mark.parametrize("option", list(OPTIONS))
def test_the_values_of_the_chain_are_learned(option):
    q, known, updates = OPTIONS[option]
    for values in learned(made(**q), chain(), updates):
        assert values.tolist() == [pytest.approx(row, abs=0.08) for row in known]


def test_hidden_layers_and_normalized_inputs():
    learner = made(NetworkConfig(hidden=(16,), layer_norm=True, normalize=True), learning_rate=0.01)
    learner.normalize_with(torch.eye(2))
    (values,) = learned(learner, chain(), 400)
    assert values.tolist() == [pytest.approx(row, abs=0.08) for row in KNOWN]


@pytest.mark.parametrize("option", ["plain", "double", "twin", "clipped", "c51", "quantile"])
def test_closed_next_actions_do_not_count(option):
    """With the best action closed in the second place, nothing is to be had there."""
    q, _, updates = OPTIONS[option]
    masks = torch.tensor([[False, True]]).repeat(4, 1)
    for values in learned(made(**q), chain(masks), updates):
        assert values.tolist() == [pytest.approx(row, abs=0.08) for row in ([1.0, 0.0], [2.0, 0.0])]


# ---------------------------------------------------------------- targets by hand


def set_values(net, rows):
    """Let a linear network have these values of the two one-hot places."""
    with torch.no_grad():
        net.head.weight[:] = torch.tensor(rows).T
        net.head.bias[:] = 0.0


def one_row(mask=(True, True), weight=1.0):
    """From the first place by action 0 to the second, for a reward of 3."""
    return {
        "observations": torch.tensor([[1.0, 0.0]]),
        "actions": torch.tensor([0]),
        "rewards": torch.tensor([3.0]),
        "discounts": torch.tensor([0.5]),
        "next_observations": torch.tensor([[0.0, 1.0]]),
        "next_masks": torch.tensor([mask]),
        "weights": torch.tensor([weight]),
    }


ONLINE, TARGET = [[10.0, 0.0], [2.0, 4.0]], [[0.0, 0.0], [8.0, 6.0]]


@pytest.mark.parametrize(
    ("double", "mask", "target"),
    [
        (False, (True, True), 3 + 0.5 * 8),  # the best of the target network
        (True, (True, True), 3 + 0.5 * 6),  # the online network chooses 1, the target network values it
        (False, (False, True), 3 + 0.5 * 6),
        (True, (True, False), 3 + 0.5 * 8),
    ],
)
def test_who_chooses_and_who_values(double, mask, target):
    learner = made(double=double)
    set_values(learner.online[0], ONLINE)
    set_values(learner.targets[0], TARGET)
    wrong, metrics = learn(learner, one_row(mask))
    assert wrong.tolist() == pytest.approx([10 - target])
    assert float(metrics["q/mean"]) == pytest.approx(10.0)
    assert float(metrics["loss/q"]) == pytest.approx(10 - target - 0.5)  # huber, beyond 1


@pytest.mark.parametrize(("mask", "target"), [((True, True), 3 + 0.5 * 5), ((False, True), 3 + 0.5 * 1)])
def test_the_smaller_of_two_targets(mask, target):
    """Both together choose 0 (8 + 5 against 6 + 1); what counts is the smaller value of it, for both learners."""
    learner = made(clipped=True)
    for net, rows in zip([*learner.online, *learner.targets], (
        [[10.0, 0.0], [0.0, 0.0]], [[30.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [8.0, 6.0]], [[0.0, 0.0], [5.0, 1.0]],
    ), strict=True):  # fmt: skip
        set_values(net, rows)
    before = [flat.data.clone() for flat in learner.flats.values()]
    wrong, metrics = learn(learner, one_row(mask))
    assert wrong.tolist() == pytest.approx([30 - target])  # of the two that are wrong, the larger error
    assert float(metrics["q/mean"]) == pytest.approx(10.0)
    assert not any(torch.equal(old, flat.data) for old, flat in zip(before, learner.flats.values(), strict=True))


def test_twins_learn_from_each_other():
    """The net that learns chooses, its twin values; a coin decides which learns."""
    learner = made(twin=True, learning_rate=1e-12)
    set_values(learner.online[0], ONLINE)
    set_values(learner.online[1], [[20.0, 0.0], [8.0, 6.0]])
    found = [learn(learner, one_row()) for _ in range(40)]
    errors = [round(float(wrong), 3) for wrong, _ in found]
    # First: chooses 1, worth 6 to the twin. Second: chooses 0, worth 2 to the first.
    assert set(errors) == {10 - (3 + 0.5 * 6), 20 - (3 + 0.5 * 2)}
    assert 10 <= errors.count(4.0) <= 30


def test_only_the_twin_whose_turn_it_is_changes():
    learner = made(twin=True)
    turns = []
    for _ in range(20):
        before = [flat.data.clone() for flat in learner.flats.values()]
        learn(learner, chain())
        turns.append(
            [not torch.equal(old, flat.data) for old, flat in zip(before, learner.flats.values(), strict=True)]
        )
    assert all(sum(turn) == 1 for turn in turns)
    assert {tuple(turn) for turn in turns} == {(True, False), (False, True)}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_without_autograd_it_learns_the_same(seed, threads):
    """A few steps of a learner drawn from all settings that have such a way, beside one that goes by autograd."""
    draw = np.random.default_rng(seed)
    rows, kinds = int(draw.choice([3, 128, 200])), ("plain", "double", "twin", "clipped")
    kind = kinds[seed % len(kinds)]
    settings = {"dueling": bool(draw.integers(2)), "loss": str(draw.choice(["huber", "mse"])), "batch": rows,
                "value_clip": float(draw.choice([0.0, 1.0])), "gradient_norm": float(draw.choice([0.0, 0.1])),
                "target": str(draw.choice(["soft", "hard"])), "target_period": int(draw.integers(1, 3)),
                "optimizer": str(draw.choice(["adam", "adamw"])), "weight_decay": 0.1,
                "learning_rate": 1e-3}  # fmt: skip
    network = NetworkConfig(hidden=(8, 8), layer_norm=bool(draw.integers(2)), normalize=bool(draw.integers(2)),
                            activation=str(draw.choice(["relu", "tanh", "silu", "leaky_relu"])))  # fmt: skip
    ours, theirs = (
        made(network, seed, threads=threads, **settings, **({} if kind == "plain" else {kind: True})) for _ in range(2)
    )
    assert ours._passes
    theirs._passes = []
    for step in range(4):
        torch.manual_seed(step)
        batch = {
            "observations": torch.randn(rows, 2), "next_observations": torch.randn(rows, 2),
            "actions": torch.randint(2, (rows,)), "rewards": torch.randn(rows), "discounts": 0.9 * torch.rand(rows),
            "next_masks": torch.rand(rows, 2) < 0.7, "weights": torch.rand(rows),
        }  # fmt: skip
        if step % 2:
            batch["open"] = torch.rand(rows // 2, 2) < 0.7  # of the first rows, which were demonstrated
        for learner in (ours, theirs):
            learner.normalize_with(batch["observations"])
        (wrong, metrics), (expected, others) = learn(ours, batch), learn(theirs, batch)
        torch.testing.assert_close(wrong, expected, rtol=1e-3, atol=1e-4)
        for name, value in others.items():
            assert float(metrics[name]) == pytest.approx(float(value), rel=1e-3, abs=1e-4), name
    for name, module in theirs.modules.items():
        for one, other in zip(ours.modules[name].parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-2, atol=3e-4)


def test_acting_goes_by_the_sum_of_twins():
    learner = made(twin=True)
    set_values(learner.online[0], ONLINE)
    set_values(learner.online[1], TARGET)
    assert NetworkPolicy(*learner.networks.values()).scores(torch.eye(2)).tolist() == [[10.0, 0.0], [10.0, 10.0]]


@pytest.mark.parametrize(("loss", "expected"), [("huber", 3.5), ("mse", 16.0)])
def test_importance_weights_scale_the_loss(loss, expected):
    def after(weight):
        learner = made(loss=loss, double=True)
        set_values(learner.online[0], ONLINE)
        set_values(learner.targets[0], TARGET)
        wrong, metrics = learn(learner, one_row(weight=weight))
        assert wrong.tolist() == pytest.approx([4.0])
        return float(metrics["loss/q"]), float(metrics["gradient/norm"])

    whole, half = after(1.0), after(0.5)
    assert whole[0] == pytest.approx(expected)
    assert half == pytest.approx((expected / 2, whole[1] / 2))


@pytest.mark.parametrize("distribution", ["c51", "quantile"])
def test_importance_weights_of_distributions(distribution):
    def loss(*weights):
        learner = made(distribution=distribution, atoms=7)
        batch = chain(copies=1)
        batch["weights"][:] = torch.tensor(weights)
        wrong, metrics = learn(learner, batch)
        return wrong, float(metrics["loss/q"])

    wrong, total = loss(1.0, 0.0, 0.5, 0.0)
    assert total == pytest.approx(float(wrong[0] + 0.5 * wrong[2]) / 4)


# ---------------------------------------------------------------- targets over time


def test_hard_target_is_a_copy_now_and_then():
    learner = made(target="hard", target_period=3)
    first = learner.targets[0].head.weight.clone()
    assert torch.equal(first, learner.online[0].head.weight)
    for _ in range(2):
        learn(learner, chain())
        assert torch.equal(learner.targets[0].head.weight, first)
        assert not torch.equal(learner.online[0].head.weight, first)
    learn(learner, chain())
    assert torch.equal(learner.targets[0].head.weight, learner.online[0].head.weight)


def test_soft_target_follows_by_its_share():
    learner = made(target="soft", tau=0.25, target_period=2)
    first = learner.targets[0].head.weight.clone()
    learn(learner, chain())
    assert torch.equal(learner.targets[0].head.weight, first)
    learn(learner, chain())
    expected = 0.75 * first + 0.25 * learner.online[0].head.weight
    assert learner.targets[0].head.weight.tolist() == [pytest.approx(row, abs=1e-6) for row in expected.tolist()]


def test_target_takes_no_gradient():
    learner = made(double=True)
    learn(learner, chain())
    assert not any(parameter.requires_grad for parameter in learner.targets[0].parameters())
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in learner.targets[0].parameters())


def test_one_set_of_statistics_for_all():
    for twin in (False, True):
        learner = made(NetworkConfig(hidden=(), normalize=True), twin=twin)
        nets = [*learner.online, *learner.targets]
        assert all(net.normalizer is learner.online[0].normalizer for net in nets)


# ---------------------------------------------------------------- optimizers


@pytest.mark.parametrize(("optimizer", "shrinks"), [("adam", False), ("adamw", True)])
def test_weight_decay_is_apart_from_the_gradient(optimizer, shrinks):
    """Without any gradient AdamW shrinks the weights by rate times decay, exactly."""
    learner = made(optimizer=optimizer, learning_rate=0.1, weight_decay=0.5 if shrinks else 0.0)
    before = learner.flats["network"].data.clone()
    batch = chain()
    batch["weights"][:] = 0.0
    learn(learner, batch)
    expected = before * (1 - 0.1 * 0.5) if shrinks else before
    assert torch.allclose(learner.flats["network"].data, expected, atol=1e-7)


@pytest.mark.parametrize(("progress", "rate"), [(0.0, 0.05), (0.5, 0.03), (1.0, 0.01)])
def test_learning_rate_schedule(progress, rate):
    learner = made(final_learning_rate=0.2, progress=progress)
    learn(learner, chain())
    assert learner.optimizers["network"].rate == pytest.approx(rate)


def test_gradient_is_clipped():
    learner = made(gradient_norm=0.01, loss="mse")
    _, metrics = learn(learner, chain())
    assert float(metrics["gradient/norm"]) > 0.1
    assert float(learner.flats["network"].grad.norm()) == pytest.approx(0.01, rel=1e-3)


def test_noise_is_new_for_every_update():
    learner = made(noisy=True)
    noises = []
    for _ in range(2):
        learn(learner, chain())
        noises.append(learner.online[0].head.noise_in.clone())
        noises.append(learner.targets[0].head.noise_in.clone())
    assert not torch.equal(noises[0], noises[2])
    assert not torch.equal(noises[1], noises[3])
    assert not torch.equal(noises[0], noises[1])


# ---------------------------------------------------------------- with its replay


def chunk_of(batch, steps):
    columns = {name: batch[name].numpy() for name in TRANSITION}
    return Chunk(columns, Ended.join([], 1), steps)


def owed(learner, steps):
    learner.take(chunk_of(chain(), steps))
    return learner.counters.updates_owed


def test_gradient_steps_are_owed_for_steps_of_the_environment_after_the_warm_up():
    learner = made(batch=8, update_every=4.0, warmup_steps=30)
    assert owed(learner, 20) == 0.0
    assert not learner.is_due
    assert owed(learner, 20) == 5.0
    assert learner.is_due
    assert learner.update(60.0)["loss/q"] > 0.0
    assert (learner.counters.updates, learner.counters.updates_owed) == (5, 0.0)
    assert len(learner.store) == 32


def test_nothing_is_learned_before_a_batch_is_full():
    learner = made(batch=17, update_every=1.0, warmup_steps=0)
    assert owed(learner, 16) == 16.0
    assert not learner.is_due
    assert learner.update(60.0) == {}


def test_what_cannot_be_learned_from_in_time_is_skipped_and_counted():
    learner = made(batch=8, update_every=1.0, warmup_steps=0)
    for _ in range(100):
        owed(learner, 20)
    assert learner.is_behind
    assert learner.counters.updates_owed == 64 * 20
    assert learner.counters.updates_skipped == 36 * 20


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_chain_is_learned_from_the_replay(prioritized, threads):
    learner = made(batch=16, update_every=0.05, warmup_steps=0, clipped=True, prioritized=prioritized, threads=threads)
    learner.take(chunk_of(chain(), 16))
    learner.update(60.0)
    assert learner.counters.updates == 320
    with torch.no_grad():
        for net in learner.online:
            assert net.means(torch.eye(2)).tolist() == [pytest.approx(row, abs=0.1) for row in KNOWN]


@pytest.mark.parametrize("prioritized", [False, True])
def test_errors_that_are_no_numbers_are_divergence_not_misuse(prioritized):
    """Also where each error is to become a priority, which refuses such numbers."""
    learner = made(batch=16, update_every=16.0, warmup_steps=0, prioritized=prioritized)
    learner.take(chunk_of(chain(), 16))
    learner.flats["network"].data[0] = float("nan")
    assert not learner.is_finite()
    with pytest.raises(DivergedError, match="is no longer a number at step 16"):
        learner.update(60.0)


# ---------------------------------------------------------------- acting


class Still:
    """One episode that never ends, in which two actions are open."""

    number, observation_size, num_actions, term_names = 3, 2, 2, ("reward",)

    def __init__(self):
        from soulsgym.batch import Step

        self.observations, self.masks = torch.eye(2)[[0, 1, 0]].numpy(), torch.ones(3, 2, dtype=torch.bool).numpy()
        self._step = Step.of_size(3, 2, 2, 1)
        self._step.steps[:] = 1

    def step(self, actions):
        return self._step


def actor_of(learner, seed=0):
    return algorithm_of(learner.config).actor(learner.config, Still(), learner.networks, [seed])


def test_the_greedy_action_and_a_share_of_random_ones():
    learner = made(epsilon=1.0, final_epsilon=0.0, epsilon_steps=100, warmup_steps=0)
    set_values(learner.online[0], [[1.0, 0.0], [0.0, 1.0]])
    actor = actor_of(learner)
    random = [actor.play().columns["actions"].tolist() for _ in range(50)]
    assert {number for row in random for number in row} == {0, 1}
    assert random != [[0, 1, 0]] * 50
    actor.steps = 100
    assert [actor.play().columns["actions"].tolist() for _ in range(5)] == [[0, 1, 0]] * 5


def test_noise_is_new_for_every_action_and_comes_from_the_actors_seed():
    quiet = {"noisy": True, "epsilon": 0.0, "final_epsilon": 0.0}

    def noises(seed):
        learner = made(**quiet)
        actor, found = actor_of(learner, seed), []
        for _ in range(3):
            actor.play()
            found.append(tuple(actor._networks[0].network.head.noise_in.tolist()))
        return found

    assert len(set(noises(1))) == 3
    assert noises(1) == noises(1)
    assert not set(noises(1)) & set(noises(2))


def test_actors_share_the_weights_but_not_the_noise():
    """Several may play at once, each on its thread: the noise of one must not change under the other."""
    learner = made(NetworkConfig(hidden=(4,), normalize=True), noisy=True, epsilon=0.0, final_epsilon=0.0)
    first, second = actor_of(learner, 1), actor_of(learner, 2)
    first.play()
    net = first._networks[0].network
    noise = net.head.noise_in.clone()
    second.play()
    learn(learner, chain())
    assert torch.equal(net.head.noise_in, noise)
    learner.online[0].load_state_dict(learner.online[0].state_dict())
    for mine, shared in zip(net.parameters(), learner.online[0].parameters(), strict=True):
        assert mine.data_ptr() == shared.data_ptr()
    assert net.normalizer is learner.online[0].normalizer


def test_networks_to_play_with_fit_those_that_learn():
    for q in ({"twin": True}, {"clipped": True}, {"noisy": True, "dueling": True}):
        learner = made(**q)
        own = algorithm_of(learner.config).networks(learner.config, Sizes(2, 2, 1, 1))
        assert own.keys() == learner.networks.keys()
        for name, network in own.items():
            network.load_state_dict(learner.networks[name].state_dict())
