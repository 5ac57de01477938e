"""All parameters as one tensor."""

import pytest
import torch
from torch import nn

from soulsai.config.schema import NetworkConfig, QConfig
from soulsai.networks import FlatParameters, build_actor_critic, build_q
from soulsgym.errors import MisuseError

X = torch.randn(16, 3, generator=torch.Generator().manual_seed(1))
SMALL = NetworkConfig(hidden=(8, 8))
RAINBOW = QConfig(noisy=True, dueling=True, distribution="c51", atoms=5)


def network(seed=1):
    return build_q(3, 4, NetworkConfig(hidden=(8, 8), normalize=True, layer_norm=True), RAINBOW, seed=seed)


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
    assert flat.parameter.grad is flat.grad


@pytest.mark.parametrize("dropping", ["module", "optimizer"])
def test_dropped_gradients_are_noticed(dropping):
    module = network()
    flat = FlatParameters(module)
    (module if dropping == "module" else torch.optim.Adam([flat.parameter])).zero_grad()
    with pytest.raises(MisuseError, match="gradients were dropped"):
        flat.zero_grad()


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_fused_adam_on_one_tensor_is_ordinary_adam(clip):
    plain, module = network(), network()
    flat = FlatParameters(module)
    ordinary = torch.optim.Adam(plain.parameters(), lr=1e-2)
    fused = torch.optim.Adam([flat.parameter], lr=1e-2, fused=True)
    start = module(X)
    for _ in range(5):
        ordinary.zero_grad()
        loss_of(plain).backward()
        flat.zero_grad()
        loss_of(module).backward()
        if clip:
            expected_norm = nn.utils.clip_grad_norm_(plain.parameters(), clip)
            assert torch.allclose(flat.clip_(clip), expected_norm)
        ordinary.step()
        fused.step()
    assert not torch.allclose(module(X), start, atol=1e-3)
    assert torch.allclose(flat.data, joined(plain.parameters()), atol=1e-6)
    assert torch.allclose(module(X), plain(X), atol=1e-5)


def test_clip_by_hand():
    module = nn.Linear(1, 1)
    flat = FlatParameters(module)
    flat.grad.copy_(torch.tensor([3.0, 4.0]))
    assert flat.clip_(10.0).item() == 5.0
    assert flat.grad.tolist() == [3.0, 4.0]
    assert flat.clip_(0.0).item() == 5.0
    assert flat.grad.tolist() == [3.0, 4.0]
    assert flat.clip_(1.0).item() == 5.0
    assert [module.weight.grad.item(), module.bias.grad.item()] == pytest.approx([0.6, 0.8], abs=1e-5)


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


def test_moved_before_flattening():
    module = build_actor_critic(3, 4, SMALL, seed=1).to("cpu", torch.float64)
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
