"""Passes without autograd give what torch's own do."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from soulsai.config.schema import NetworkConfig
from soulsai.networks import ActorCritic, FlatParameters, QNetwork
from soulsai.networks.parallel import Threads
from soulsai.networks.passes import SLOPE, Passes, SharedPasses, backward

D, ACTIONS = 7, 5
SHAPES = [(), (9,), (16, 12), (8, 8, 8)]
ACTIVATIONS = ["relu", "tanh", "silu", "leaky_relu"]


def build(kind, **settings):
    torch.manual_seed(3)
    config = NetworkConfig(**settings)
    network = (
        ActorCritic(D, ACTIONS, config)
        if kind == "actor-critic"
        else QNetwork(D, ACTIONS, config, dueling=kind == "dueling")
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))  # no weight of a LayerNorm is 1, no bias 0
    return network


def by_torch(network, x, pushes):
    """What the heads say, that for the actions first, and the gradient of the sum of that times `pushes`."""
    x = x if network.normalizer is None else network.normalizer(x)
    outs = [head(torso(x)) for torso, heads in network.chains() for head in heads]
    sum((out * push).sum() for out, push in zip(outs, pushes, strict=False)).backward()
    return outs


def go_back(passes, x, pushes):
    """Write the gradient of the same."""
    room = passes.room(len(x))
    for slope, push in reversed(list(zip(passes.heads(SLOPE, len(x)), pushes, strict=True))):
        slope[:] = push.numpy()
    backward(passes.data, passes.plan, passes.inputs(x.numpy()), room, passes.grad)


@pytest.mark.parametrize("hidden", SHAPES, ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("kind", ["actor-critic", "separate", "plain", "dueling"])
def test_they_are_those_of_autograd(hidden, activation, layer_norm, kind):
    shape = {"hidden": hidden, "activation": activation, "layer_norm": layer_norm, "normalize": len(hidden) == 2}
    network = build(kind.replace("separate", "actor-critic"), **shape, separate=kind == "separate")
    flat = FlatParameters(network)
    passes = Passes(network, grad := torch.full_like(flat.grad, 9.0))
    for rows in (33, 4, 33):
        x = 2.0 * torch.randn(rows, D)
        found = passes.forward(x.numpy())
        pushes = [torch.randn(out.shape) for out in found]
        flat.zero_grad()
        outs = by_torch(network, x, pushes)
        for mine, out in zip(found, outs, strict=False):
            torch.testing.assert_close(torch.from_numpy(mine), out.detach(), rtol=1e-4, atol=1e-5)
        go_back(passes, x, pushes)
        torch.testing.assert_close(grad, flat.grad, rtol=1e-3, atol=1e-4)
        flat.data.add_(0.01 * torch.randn_like(flat.data))  # it sees weights as they are


def test_parts_of_the_rows_add_up_to_the_whole_and_bit_for_bit_each_time():
    network = build("actor-critic", hidden=(16, 16), layer_norm=True)
    flat, threads = FlatParameters(network), Threads(2)
    x, push = torch.randn(64, D), torch.randn(64, ACTIONS)

    def gradient(parts):
        shared = SharedPasses(network, flat, threads)

        def work(number):
            rows = slice(64 * number // parts, 64 * (number + 1) // parts)
            passes = shared.of_thread[number]
            passes.forward(x[rows].numpy())
            go_back(passes, x[rows], (push[rows], torch.ones(len(x[rows]), 1)))

        threads.run([lambda number=number: work(number) for number in range(parts)])
        shared.add_up(parts)
        return flat.grad.clone()

    torch.testing.assert_close(gradient(2), gradient(1), rtol=1e-4, atol=1e-5)
    assert torch.equal(gradient(2), gradient(2))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_what_is_no_number_stays_none(activation):
    network = build("plain", hidden=(8, 8), activation=activation)
    network.torso[0].weight.data[:] = float("nan")
    assert np.isnan(Passes(network).forward(np.ones((2, D), np.float32))[0]).all()


def test_noisy_networks_and_distributions_have_none():
    shape = NetworkConfig(hidden=(8,))
    assert QNetwork(D, ACTIONS, shape, noise=0.5).chains() == []
    assert QNetwork(D, ACTIONS, shape, distribution="c51").chains() == []


def test_a_thread_multiplies_for_itself():
    Passes(build("plain", hidden=(8,)))
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
