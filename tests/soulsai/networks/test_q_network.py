"""The Q network in all its forms."""

import copy
import itertools

import pytest
import torch

from soulsai.config.schema import NetworkConfig
from soulsai.networks import NoisyLinear
from soulsai.networks.q_network import QNetwork, of_actions

SMALL = NetworkConfig(hidden=(8,))
X = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]])


def made(network=SMALL, *, seed=1, **settings):
    """Three numbers seen, four actions."""
    torch.manual_seed(seed)
    return QNetwork(3, 4, network, **settings)


def generator():
    return torch.Generator().manual_seed(1)


def filled(layer, weight, bias):
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))


@pytest.mark.parametrize(
    ("distribution", "dueling", "noisy", "normalize"),
    [*itertools.product(("none", "c51", "quantile"), (False, True), (False, True), (False, True))],
)
def test_every_form_has_its_shapes_and_learns_in_every_parameter(distribution, dueling, noisy, normalize):
    config = NetworkConfig(hidden=(8, 8), normalize=normalize, layer_norm=True)
    network = made(config, distribution=distribution, dueling=dueling, noise=0.5 if noisy else None, atoms=7)
    network.draw_noise(generator())
    out = network(X)
    assert out.shape == ((2, 4) if distribution == "none" else (2, 4, 7))
    assert network.means(X).shape == (2, 4)
    (out * torch.randn(out.shape, generator=generator())).sum().backward()
    assert all(parameter.grad.any() for parameter in network.parameters())


def test_dueling_by_hand():
    network = QNetwork(1, 2, NetworkConfig(hidden=()), dueling=True)
    filled(network.head, [[1.0], [3.0]], [0.0, 0.0])
    filled(network.value_head, [[10.0]], [1.0])
    # At x = 2: value 21, advantages 2 and 6 less their mean 4.
    assert network(torch.tensor([[2.0]])).tolist() == [[19.0, 23.0]]


def test_dueling_distribution_takes_the_mean_over_actions_not_over_atoms():
    network = QNetwork(1, 2, NetworkConfig(hidden=()), dueling=True, distribution="quantile", atoms=3)
    filled(network.head, [[0.0]] * 6, [1.0, 2.0, 3.0, 5.0, 4.0, 3.0])
    filled(network.value_head, [[0.0]] * 3, [10.0, 20.0, 30.0])
    # Means over the two actions: 3, 3, 3.
    assert network(torch.zeros(1, 1)).tolist() == [[[8.0, 19.0, 30.0], [12.0, 21.0, 30.0]]]
    assert network.means(torch.zeros(1, 1)).tolist() == [[19.0, 21.0]]


def test_c51_means_by_hand():
    network = QNetwork(1, 2, NetworkConfig(hidden=()), distribution="c51", atoms=3, value_range=(-2.0, 2.0))
    assert network.support.tolist() == [-2.0, 0.0, 2.0]
    filled(network.head, [[0.0]] * 6, torch.tensor([1.0, 3.0, 4.0, 1.0, 1.0, 1.0]).log().tolist())
    assert network.means(torch.zeros(1, 1)).tolist() == [pytest.approx([3 / 4, 0.0], abs=1e-6)]


def test_only_the_heads_are_noisy_and_each_has_its_own_noise():
    network = made(noise=0.3, dueling=True)
    noisy = [name for name, module in network.named_modules() if isinstance(module, NoisyLinear)]
    assert noisy == ["head", "value_head"]
    assert network.head.weight_deviation[0, 0].item() == pytest.approx(0.3 / 8**0.5)
    network.draw_noise(generator())
    assert not torch.equal(network.head.noise_in, network.value_head.noise_in)


def test_quiet_play_is_greedy_in_the_mean_weights():
    network = made(noise=0.5, dueling=True)
    mean = network.means(X)
    network.draw_noise(generator())
    assert not torch.equal(network.means(X), mean)
    network.quiet()
    assert torch.equal(network.means(X), mean)


def test_a_copy_has_noise_of_its_own():
    network = made(noise=0.5)
    other = copy.deepcopy(network)
    other.draw_noise(generator())
    assert not network.head.noise_in.any()
    assert other.head.noise_in.any()


def test_without_noisy_layers_noise_changes_nothing():
    network = made()
    before = network(X)
    network.draw_noise(generator())
    assert torch.equal(network(X), before)


def test_inputs_are_normalised():
    network = made(NetworkConfig(hidden=(8,), normalize=True))
    plain = made()
    network.normalizer.update(torch.tensor([[1.0, 0.0, 5.0], [3.0, 4.0, 9.0]]))
    scaled = (X - torch.tensor([2.0, 2.0, 7.0])) / torch.tensor([1.0, 2.0, 2.0])
    assert torch.allclose(network(X), plain(scaled), atol=1e-5)


def test_two_networks_may_share_a_normaliser():
    config = NetworkConfig(hidden=(8,), normalize=True)
    online, target = made(config), made(config)
    target.normalizer = online.normalizer
    online.normalizer.update(X)
    assert torch.equal(online(X), target(X))


def test_the_seed_decides_the_weights():
    assert torch.equal(made(seed=1)(X), made(seed=1)(X))
    assert not torch.equal(made(seed=1)(X), made(seed=2)(X))


def test_scores_are_the_means():
    network = made(distribution="quantile", atoms=5)
    assert torch.equal(network.scores(X), network.means(X))


def test_state_goes_from_one_network_to_another():
    config, form = NetworkConfig(hidden=(8,), normalize=True), {"noise": 0.5, "dueling": True, "atoms": 5}
    first, second = (made(config, seed=seed, distribution="c51", **form) for seed in (1, 2))
    first.draw_noise(generator())
    first.normalizer.update(X)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(X), second(X))


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("distribution", ["none", "c51", "quantile"])
def test_one_action_of_every_row_is_that_of_the_whole_output(distribution, dueling):
    network = made(distribution=distribution, dueling=dueling, atoms=7)
    actions, grads = torch.tensor([3, 1]), []
    whole, chosen = of_actions(network(X), actions), network.of_actions(X, actions)
    assert torch.equal(whole, chosen)
    for out in (whole, chosen):
        network.zero_grad()
        out.square().sum().backward(retain_graph=True)
        grads.append([parameter.grad.clone() for parameter in network.parameters()])
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(*grads, strict=True))
