"""All parameters as one tensor."""

import pytest
import torch

from soulsai.config.schema import NetworkConfig
from soulsai.networks import ActorCritic, FlatParameters, QNetwork
from soulsai.networks.flat import flat_data
from soulsgym.errors import MisuseError

X = torch.randn(16, 3, generator=torch.Generator().manual_seed(1))
SMALL = NetworkConfig(hidden=(8, 8))
RAINBOW = {"noise": 0.5, "dueling": True, "distribution": "c51", "atoms": 5}


def network(seed=1):
    torch.manual_seed(seed)
    return QNetwork(3, 4, NetworkConfig(hidden=(8, 8), normalize=True, layer_norm=True), **RAINBOW)


def loss_of(module):
    return module(X).square().mean()


def joined(tensors):
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def test_flattening_changes_no_number():
    plain, module = network(), network()
    flat = FlatParameters(module)
    assert torch.equal(module(X), plain(X))
    assert torch.equal(flat.data, joined(plain.parameters()))
    assert flat.data.shape == flat.grad.shape == (sum(p.numel() for p in plain.parameters()),)


def test_gradients_are_those_of_an_ordinary_module():
    plain, module = network(), network()
    flat = FlatParameters(module)
    loss_of(plain).backward()
    loss_of(module).backward()
    expected = joined(p.grad for p in plain.parameters())
    assert expected.any()
    assert torch.equal(flat.grad, expected)
    loss_of(module).backward()
    assert torch.allclose(flat.grad, 2.0 * expected)


def test_zero_grad_keeps_the_views():
    module = network()
    flat = FlatParameters(module)
    loss_of(module).backward()
    first = flat.grad.clone()
    flat.zero_grad()
    assert not flat.grad.any()
    assert not any(p.grad.any() for p in module.parameters())
    loss_of(module).backward()
    assert torch.equal(flat.grad, first)


def test_dropped_gradients_are_noticed():
    module = network()
    flat = FlatParameters(module)
    module.zero_grad()
    with pytest.raises(MisuseError, match="gradients were dropped"):
        flat.zero_grad()


def test_lerp_and_copy_are_those_of_every_parameter():
    online, target = network(1), network(2)
    expected = [t.lerp(o, 0.25) for o, t in zip(online.parameters(), target.parameters(), strict=True)]
    flat_online, flat_target = FlatParameters(online), FlatParameters(target)
    flat_target.lerp_from(flat_online, 0.25)
    for ours, theirs in zip(target.parameters(), expected, strict=True):
        assert torch.equal(ours, theirs)
    flat_target.copy_from(flat_online)
    assert torch.equal(target(X), online(X))
    flat_online.data.zero_()
    assert not torch.equal(target(X), online(X))


def test_state_is_loaded_into_the_flat_tensor():
    module, other = network(1), network(2)
    flat = FlatParameters(module)
    module.load_state_dict(other.state_dict())
    assert torch.equal(flat.data, joined(other.parameters()))
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(X), module(X))


def test_flat_data_keeps_what_is_flat_and_flattens_what_is_not():
    module = network(1)
    data = flat_data(module)
    assert torch.equal(data, joined(module.parameters()))
    data[0] += 1.0
    assert torch.equal(data, joined(module.parameters()))
    assert flat_data(module).data_ptr() == data.data_ptr()
    flat = FlatParameters(other := network(2))
    assert flat_data(other).data_ptr() == flat.data.data_ptr()
    assert flat_data(other).shape == flat.data.shape


def test_moved_before_flattening():
    module = ActorCritic(3, 4, SMALL).to("cpu", torch.float64)
    flat = FlatParameters(module)
    assert flat.data.dtype == flat.grad.dtype == torch.float64
    module(X.double())[1].sum().backward()
    assert flat.grad.any()


def test_the_normaliser_learns_beside_it():
    module = network()
    flat = FlatParameters(module)
    before = flat.data.clone()
    module.normalizer.update(X)
    assert torch.equal(flat.data, before)
    loss_of(module).backward()
    assert flat.grad.any()
