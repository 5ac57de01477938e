"""The Q-learner: every option on a chain whose values are known, and its targets on networks made by hand."""

import pytest
import torch

from soulsai.algorithms.q import QBatch, QLearner
from soulsai.config.schema import NetworkConfig, QConfig

GAMMA = 0.9
FAST = {"learning_rate": 0.05, "tau": 0.2, "gradient_norm": 0.0}
LINEAR = NetworkConfig(hidden=())


def chain(next_masks=None, copies=4):
    """Two places. In the first, 0 ends with 1 and 1 goes on to the second, where 0 ends with 2 and 1 with nothing."""
    places = torch.eye(2)
    rows = QBatch(
        observations=places[[0, 0, 1, 1]],
        actions=torch.tensor([0, 1, 0, 1]),
        rewards=torch.tensor([1.0, 0.0, 2.0, 0.0]),
        discounts=torch.tensor([0.0, GAMMA, 0.0, 0.0]),
        next_observations=places[[1, 1, 1, 1]],
        next_masks=torch.ones(4, 2, dtype=torch.bool) if next_masks is None else next_masks,
        weights=torch.ones(4),
    )
    return QBatch(*(getattr(rows, name).repeat(copies, *[1] * (getattr(rows, name).dim() - 1))
                    for name in QBatch.__dataclass_fields__))  # fmt: skip


def made(network=LINEAR, seed=0, **q):
    torch.manual_seed(seed)
    config = QConfig(**{**FAST, **q})
    generator = torch.Generator().manual_seed(seed)
    return QLearner(2, 2, network, config, device=torch.device("cpu"), generator=generator)


def learned(learner, batch, updates):
    """The values after so many updates, of all networks by themselves."""
    for _ in range(updates):
        learner.learn(batch, 0.0)
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
    return QBatch(
        observations=torch.tensor([[1.0, 0.0]]),
        actions=torch.tensor([0]),
        rewards=torch.tensor([3.0]),
        discounts=torch.tensor([0.5]),
        next_observations=torch.tensor([[0.0, 1.0]]),
        next_masks=torch.tensor([mask]),
        weights=torch.tensor([weight]),
    )


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
    wrong, metrics = learner.learn(one_row(mask), 0.0)
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
    before = [flat.data.clone() for flat in learner.flats]
    wrong, metrics = learner.learn(one_row(mask), 0.0)
    assert wrong.tolist() == pytest.approx([30 - target])  # of the two that are wrong, the larger error
    assert float(metrics["q/mean"]) == pytest.approx(10.0)
    assert not any(torch.equal(old, flat.data) for old, flat in zip(before, learner.flats, strict=True))


def test_twins_learn_from_each_other():
    """The net that learns chooses, its twin values; a coin decides which learns."""
    learner = made(twin=True, learning_rate=1e-12)
    set_values(learner.online[0], ONLINE)
    set_values(learner.online[1], [[20.0, 0.0], [8.0, 6.0]])
    found = [learner.learn(one_row(), 0.0) for _ in range(40)]
    errors = [round(float(wrong), 3) for wrong, _ in found]
    # First: chooses 1, worth 6 to the twin. Second: chooses 0, worth 2 to the first.
    assert set(errors) == {10 - (3 + 0.5 * 6), 20 - (3 + 0.5 * 2)}
    assert 10 <= errors.count(4.0) <= 30


def test_only_the_twin_whose_turn_it_is_changes():
    learner = made(twin=True)
    turns = []
    for _ in range(20):
        before = [flat.data.clone() for flat in learner.flats]
        learner.learn(chain(), 0.0)
        turns.append([not torch.equal(old, flat.data) for old, flat in zip(before, learner.flats, strict=True)])
    assert all(sum(turn) == 1 for turn in turns)
    assert {tuple(turn) for turn in turns} == {(True, False), (False, True)}


def test_acting_goes_by_the_sum_of_twins():
    learner = made(twin=True)
    set_values(learner.online[0], ONLINE)
    set_values(learner.online[1], TARGET)
    assert learner.values(torch.eye(2)).tolist() == [[10.0, 0.0], [10.0, 10.0]]


@pytest.mark.parametrize(("loss", "expected"), [("huber", 3.5), ("mse", 16.0)])
def test_importance_weights_scale_the_loss(loss, expected):
    def after(weight):
        learner = made(loss=loss, double=True)
        set_values(learner.online[0], ONLINE)
        set_values(learner.targets[0], TARGET)
        wrong, metrics = learner.learn(one_row(weight=weight), 0.0)
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
        batch.weights[:] = torch.tensor(weights)
        wrong, metrics = learner.learn(batch, 0.0)
        return wrong, float(metrics["loss/q"])

    wrong, total = loss(1.0, 0.0, 0.5, 0.0)
    assert total == pytest.approx(float(wrong[0] + 0.5 * wrong[2]) / 4)


# ---------------------------------------------------------------- targets over time


def test_hard_target_is_a_copy_now_and_then():
    learner = made(target="hard", target_period=3)
    first = learner.targets[0].head.weight.clone()
    assert torch.equal(first, learner.online[0].head.weight)
    for _ in range(2):
        learner.learn(chain(), 0.0)
        assert torch.equal(learner.targets[0].head.weight, first)
        assert not torch.equal(learner.online[0].head.weight, first)
    learner.learn(chain(), 0.0)
    assert torch.equal(learner.targets[0].head.weight, learner.online[0].head.weight)


def test_soft_target_follows_by_its_share():
    learner = made(target="soft", tau=0.25, target_period=2)
    first = learner.targets[0].head.weight.clone()
    learner.learn(chain(), 0.0)
    assert torch.equal(learner.targets[0].head.weight, first)
    learner.learn(chain(), 0.0)
    expected = 0.75 * first + 0.25 * learner.online[0].head.weight
    assert learner.targets[0].head.weight.tolist() == [pytest.approx(row, abs=1e-6) for row in expected.tolist()]


def test_target_takes_no_gradient():
    learner = made(double=True)
    learner.learn(chain(), 0.0)
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
    before = learner.flats[0].data.clone()
    batch = chain()
    batch.weights[:] = 0.0
    learner.learn(batch, 0.0)
    expected = before * (1 - 0.1 * 0.5) if shrinks else before
    assert torch.allclose(learner.flats[0].data, expected, atol=1e-7)


@pytest.mark.parametrize(("progress", "rate"), [(0.0, 0.05), (0.5, 0.03), (1.0, 0.01)])
def test_learning_rate_schedule(progress, rate):
    learner = made(final_learning_rate=0.2)
    learner.learn(chain(), progress)
    assert learner.optimizers[0].param_groups[0]["lr"] == pytest.approx(rate)


def test_gradient_is_clipped():
    learner = made(gradient_norm=0.01, loss="mse")
    _, metrics = learner.learn(chain(), 0.0)
    assert float(metrics["gradient/norm"]) > 0.1
    assert float(learner.flats[0].grad.norm()) == pytest.approx(0.01, rel=1e-3)


def test_noise_is_new_for_every_update_and_every_action():
    learner = made(noisy=True)
    noises = []
    for _ in range(2):
        learner.draw_noise()
        noises.append(learner.values(torch.eye(2)))
        learner.learn(chain(), 0.0)
        noises.append(learner.online[0].head.noise_in.clone())
        noises.append(learner.targets[0].head.noise_in.clone())
    assert not torch.equal(noises[0], noises[3])
    assert not torch.equal(noises[1], noises[4])
    assert not torch.equal(noises[1], noises[2])
