"""Adam over a flat tensor is torch's, on the processor and elsewhere."""

import math

import pytest
import torch
from torch import nn

from soulsai.errors import RunError
from soulsai.networks import Adam, FlatParameters


def made(device="cpu", **settings):
    torch.manual_seed(0)
    flat = FlatParameters(nn.Linear(30, 7).to(device))
    return flat, Adam(flat, 0.1, **{"eps": 1e-8, **settings})


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("decay", "max_norm"), [(0.0, 0.0), (0.0, 0.5), (0.2, 0.5), (0.2, 1e9)])
def test_it_is_that_of_torch(compiled, decay, max_norm):
    flat, _ = made()
    ours = Adam(flat, 0.01, eps=1e-5, decay=decay)
    ours._compiled = compiled  # if not, as on other devices
    parameter = nn.Parameter(flat.data.clone())
    theirs = torch.optim.AdamW([parameter], 0.01, eps=1e-5, weight_decay=decay)
    for step in range(20):
        flat.grad.normal_(generator=torch.Generator().manual_seed(step))
        parameter.grad = flat.grad.clone()
        norm = nn.utils.clip_grad_norm_([parameter], max_norm or float("inf"))
        assert float(ours.step(max_norm)) == pytest.approx(float(norm), rel=1e-5)
        theirs.step()
        ours.rate = theirs.param_groups[0]["lr"] = 0.01 / (step + 1)
        torch.testing.assert_close(flat.data, parameter.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(flat.grad, parameter.grad, rtol=1e-5, atol=1e-6)


def test_clip_by_hand():
    flat = FlatParameters(nn.Linear(1, 1))
    adam = Adam(flat, 0.0, eps=1e-8)
    flat.grad.copy_(torch.tensor([3.0, 4.0]))
    assert adam.step(10.0) == adam.step(0.0) == 5.0
    assert flat.grad.tolist() == [3.0, 4.0]
    assert adam.step(1.0) == 5.0
    assert flat.grad.tolist() == pytest.approx([0.6, 0.8], abs=1e-5)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_is_refused(wrong, compiled):
    flat, adam = made()
    adam._compiled = compiled
    before = flat.data.clone()
    flat.grad.fill_(0.1)[3] = wrong
    assert not math.isfinite(float(adam.step(0.5)))
    assert torch.equal(flat.data, before)
    assert adam.refused == int(compiled)
    flat.grad.fill_(0.1)
    adam.step(0.5)
    assert flat.data.isfinite().all()
    assert not torch.equal(flat.data, before)


def test_a_saved_one_goes_on_bit_for_bit():
    (one, adam), (two, other) = made(), made()
    one.grad.fill_(0.5)
    adam.step()
    two.data.copy_(one.data)
    other.restore({name: tensor.clone() for name, tensor in adam.state().items()})
    for flat, each in ((one, adam), (two, other)):
        flat.grad.fill_(-0.25)
        each.step()
    assert torch.equal(one.data, two.data)
    assert adam.state()["step"] == other.state()["step"] == 2
    assert adam.state().keys() == {"step", "exp_avg", "exp_avg_sq"}


def test_it_goes_on_with_the_memory_of_torchs_own():
    """As checkpoints of earlier versions hold it."""
    flat, adam = made()
    parameter = nn.Parameter(flat.data)
    parameter.grad = flat.grad
    theirs = torch.optim.Adam([parameter], 0.1, fused=True)
    flat.grad.fill_(0.5)
    theirs.step()
    adam.restore(theirs.state[parameter])
    expected = nn.Parameter(flat.data.clone())
    continued = torch.optim.Adam([expected], 0.1)
    continued.load_state_dict(theirs.state_dict())
    expected.grad = flat.grad.clone()
    adam.step()
    continued.step()
    torch.testing.assert_close(flat.data, expected.detach(), rtol=1e-6, atol=1e-7)


def test_one_that_never_took_a_step_forgets():
    flat, adam = made()
    flat.grad.fill_(0.5)
    adam.step()
    adam.restore({})
    assert [float(tensor.abs().sum()) for tensor in adam.state().values()] == [0.0, 0.0, 0.0]


def test_it_is_restored_beside_the_parameters_and_steps_there():
    _, adam = made()
    adam.step()
    elsewhere, other = made("meta")
    other.restore(adam.state())
    assert other.step(0.5).device.type == elsewhere.data.device.type == "meta"
    assert {other.state()[name].device.type for name in ("exp_avg", "exp_avg_sq")} == {"meta"}


def test_that_of_another_network_is_refused():
    with pytest.raises(RunError, match="the optimizer of the checkpoint is of another network"):
        made()[1].restore({"exp_avg": torch.zeros(8)})
