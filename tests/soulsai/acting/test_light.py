"""Networks without torch say what those of torch say, and refuse the weights of others."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from soulsai.acting.network import acting_network, best_open, draw_open
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.experience import Sizes
from soulsai.ops.masked import masked_argmax
from soulsai.ops.mersenne import Mersenne
from soulsai.transport.policies import Policy, arrays_of, pack_policy, unpack_policy, weights_of

SIZES = Sizes(observation_size=11, num_actions=7, terms=1, number=3)
SHAPES = {
    "plain": [],
    "none": ["network.hidden=[]"],
    "deep": ["network.hidden=[24,16,8]", "network.activation='tanh'"],
    "normal": ["network.layer_norm=true", "network.normalize=true", "network.activation='silu'"],
    "apart": ["network.separate=true", "network.activation='leaky_relu'"],
}
KINDS = {
    "ppo": ["algorithm='ppo'"],
    "impala": ["algorithm='impala'"],
    "sac": ["algorithm='sac'"],
    "q": ["algorithm='q'"],
    "dueling": ["algorithm='q'", "q.dueling=true"],
    "clipped": ["algorithm='q'", "q.clipped=true"],
    "noisy": ["algorithm='q'", "q.noisy=true"],
    "c51": ["algorithm='q'", "q.distribution='c51'", "q.value_range=[-3.0,9.0]"],
    "quantile": ["algorithm='q'", "q.distribution='quantile'", "q.atoms=9"],
    "rainbow": ["algorithm='q'", "q.distribution='c51'", "q.dueling=true", "q.noisy=true", "q.double=true"],
}


def networks_of(settings):
    """The networks of a config with random weights, and the light ones with the same, as workers get them."""
    config = with_settings(load_preset("cartpole-dqn"), ["network.hidden=[16]", "ppo.minibatch=32", *settings])
    algorithm = algorithm_of(config)
    networks, light = algorithm.networks(config, SIZES), algorithm.light_networks(config, SIZES)
    generator = torch.Generator().manual_seed(5)
    for network in networks.values():
        for parameter in network.parameters():
            parameter.data.normal_(generator=generator).div_(2.0)
        if network.normalizer is not None:
            network.normalizer.update(3.0 + 2.0 * torch.randn(64, SIZES.observation_size, generator=generator))
        if config.q.noisy:
            network.draw_noise(generator)
    tensors = {f"{name}.{key}": value for name, net in networks.items() for key, value in net.state_dict().items()}
    arrived = unpack_policy(pack_policy(Policy(1, 0, arrays_of(tensors)), run="r"), run="r").tensors
    assert networks.keys() == light.keys()
    for name, network in light.items():
        network.load(weights_of(name, arrived))
    return networks, light


def seen(rows=64):
    return np.random.default_rng(1).normal(size=(rows, SIZES.observation_size)).astype(np.float32) * 2.0


def assert_near(found, expected):
    assert np.abs(found - expected).max() <= 1e-5 * max(1.0, float(np.abs(expected).max()))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_scores_and_values(kind, shape):
    networks, light = networks_of(KINDS[kind] + SHAPES[shape])
    for name, network in networks.items():
        with torch.no_grad():
            expected = network.scores(torch.from_numpy(seen())).numpy()
        assert_near(light[name].scores(seen()), expected)
        if network.scores_are == "probability":
            with torch.no_grad():
                values = network.state_values(torch.from_numpy(seen())).numpy()
            logits, found = light[name].think(seen())
            assert_near(logits, expected)
            assert_near(found, values)
            assert_near(light[name].values(seen(3)), values[:3])


def test_noise_is_that_of_a_seed_and_as_large_as_in_torch():
    networks, light = networks_of(KINDS["noisy"])
    heavy, own = acting_network(networks["network"]), light["network"]
    seeds = range(300)

    def scores(network, seed):
        network.draw_noise(seed)
        return network.scores(seen(4))

    assert np.array_equal(scores(own, 3), scores(own, 3))
    assert not np.array_equal(scores(own, 3), scores(own, 4))
    drawn = [np.array([scores(network, seed) for seed in seeds]).std(0) for network in (heavy, own)]
    assert drawn[0].mean() > 0.1
    assert drawn[1].mean() == pytest.approx(drawn[0].mean(), rel=0.1)


def test_very_large_inputs_give_numbers():
    _, light = networks_of(KINDS["sac"] + ["network.activation='silu'"])
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(light["network"].scores(np.full((2, 11), -1e6, np.float32))).all()


def test_weights_of_another_network_are_refused_and_the_old_ones_kept():
    _, light = networks_of(KINDS["dueling"])
    (network,) = light.values()
    before, weights = network.scores(seen()), dict(network._weights)
    missing = {name: array for name, array in weights.items() if name != "head.bias"}
    for wrong, message in (
        ({}, "another network"),
        (missing, "another network: head.bias"),
        (weights | {"more": np.zeros(1)}, "another network: more"),
        (weights | {"head.bias": np.zeros(8, np.float32)}, "head.bias is of another network"),
        (weights | {"head.weight": weights["head.weight"].T.copy()}, "head.weight is of another network"),
    ):
        with pytest.raises(ValueError, match=message):
            network.load(wrong)
    assert np.array_equal(network.scores(seen()), before)


def test_the_best_choice_is_that_of_torch():
    rng = np.random.default_rng(0)
    scores, masks = rng.normal(size=(500, 7)).astype(np.float32), rng.random((500, 7)) < 0.5
    masks[:, 3] = True
    logits, mask = torch.from_numpy(scores), torch.from_numpy(masks)
    assert best_open(scores, masks).tolist() == masked_argmax(logits, mask).tolist()


def test_a_draw_by_hand():
    # Gumbel of 1/2 is 0.367, of 1/10 is -0.834: a logit 1 ahead stays behind 1.201 of noise, one 2 ahead does not.
    uniform, every = np.float32([[0.1, 0.5], [0.1, 0.5]]), np.ones((2, 2), np.bool_)
    assert draw_open(np.float32([[1.0, 0.0], [2.0, 0.0]]), every, uniform).tolist() == [1, 0]


def test_draws_have_the_given_odds():
    logits = np.log(np.float32([[1.0, 3.0, 4.0, 9.0]])).repeat(40_000, axis=0)
    masks = np.array([[True, True, True, False]]).repeat(40_000, axis=0)
    drawn = draw_open(logits, masks, np.random.default_rng(3).random((40_000, 4), np.float32))
    shares = np.bincount(drawn, minlength=4) / 40_000
    assert shares.tolist() == pytest.approx([1 / 8, 3 / 8, 4 / 8, 0.0], abs=0.01)
    assert shares[3] == 0.0


@pytest.mark.parametrize("uniform", [[0.0, 0.5, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
def test_a_closed_action_is_never_drawn_at_the_edge_of_the_noise(uniform):
    logits, masks = np.float32([[0.0, -1e9, -1e9]]), np.array([[True, False, False]])
    assert draw_open(logits, masks, np.float32([uniform])).tolist() == [0]


def test_random_numbers_are_those_of_torch_also_from_its_checkpoints():
    own, theirs = Mersenne(77), torch.Generator().manual_seed(77)
    for size in (1, 5, 624, 700, 3):
        numbers = np.empty(size, np.float32)
        own.uniform(numbers)
        assert np.array_equal(numbers, torch.empty(size).uniform_(generator=theirs).numpy())
        restored, torchs = Mersenne(0), torch.Generator()
        restored.restore(theirs.get_state().numpy())
        torchs.set_state(torch.from_numpy(own.state()))
        again, expected = np.empty(9, np.float32), torch.empty(9).uniform_(generator=torchs)
        restored.uniform(again)
        assert np.array_equal(again, expected.numpy())


@pytest.mark.slow
def test_a_worker_needs_no_torch_and_nothing_else_that_its_extra_does_not_bring():
    """Everything that the processes of `souls join` import and do, where the packages of all other extras are gone."""
    code = """
import sys
from soulsgym.packages import EXTRAS
for extra in EXTRAS.keys() - {"cli", "worker"}:
    for module in EXTRAS[extra]:
        sys.modules[module] = None
import soulsai.cli.train, soulsai.transport.gateway.client
from soulsai.config import config_to_toml, load_preset
from soulsai.learning.wiring import build_worker, environment_version
from soulsai.runtime import join, template, workers

class Link:
    run, worker, is_near, has_sent, is_waiting, stopping, sent = "r", "w.0.abcdef", True, False, False, False, 0
    def newest(self): return None
    def report(self, progress): self.stopping = True
    def send(self, message): return True

for name in ("cartpole-dqn", "cartpole-ppo", "smoke"):
    config = load_preset(name)
    template._load(config_to_toml(config))
    build_worker(config, Link()).run()
    assert environment_version(config)
print("played")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "played\n", done.stderr
