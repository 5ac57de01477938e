"""Noisy layers."""

import pytest
import torch

from soulsai.networks.noisy import NoisyLinear


def test_by_hand():
    layer = NoisyLinear(2, 1, 0.5)
    with torch.no_grad():
        layer.weight_mean.copy_(torch.tensor([[1.0, 2.0]]))
        layer.bias_mean.fill_(3.0)
        layer.weight_deviation.copy_(torch.tensor([[0.5, 0.25]]))
        layer.bias_deviation.fill_(0.1)
        layer.noise_in.copy_(torch.tensor([1.0, -2.0]))
        layer.noise_out.fill_(2.0)
    # Weights 1 + 0.5 * 1 * 2 = 2 and 2 + 0.25 * -2 * 2 = 1, bias 3 + 0.1 * 2.
    out = layer(torch.tensor([[1.0, 10.0]]))
    assert out.item() == pytest.approx(2.0 + 10.0 + 3.2)
    out.sum().backward()
    assert layer.weight_deviation.grad.tolist() == [[1.0 * 2.0, 10.0 * -4.0]]
    assert layer.bias_deviation.grad.tolist() == [2.0]


def test_initial_sizes():
    layer = NoisyLinear(16, 8, 0.5)
    assert torch.equal(layer.weight_deviation, torch.full((8, 16), 0.125))
    assert torch.equal(layer.bias_deviation, torch.full((8,), 0.125))
    assert 0.2 < layer.weight_mean.abs().max() <= 0.25


def test_noise_is_the_signed_root_of_a_normal_number():
    layer = NoisyLinear(3, 2, 0.5)
    layer.draw_noise(torch.Generator().manual_seed(7))
    again = torch.Generator().manual_seed(7)
    for noise in (layer.noise_in, layer.noise_out):
        normal = torch.empty_like(noise).normal_(generator=again)
        assert torch.allclose(noise * noise.abs(), normal, atol=1e-6)


def test_quiet_is_the_mean_and_draws_differ():
    layer, generator, x = NoisyLinear(3, 2, 0.5), torch.Generator().manual_seed(7), torch.ones(1, 3)
    mean = layer(x)
    layer.draw_noise(generator)
    first = layer(x)
    layer.draw_noise(generator)
    assert not torch.equal(first, mean)
    assert not torch.equal(first, layer(x))
    layer.quiet()
    assert torch.equal(layer(x), mean)


def test_a_new_draw_between_forward_and_backward_does_no_harm():
    layer, generator = NoisyLinear(3, 2, 0.5), torch.Generator().manual_seed(7)
    layer.draw_noise(generator)
    expected, expected_bias = torch.outer(layer.noise_out, layer.noise_in), layer.noise_out.clone()
    out = layer(torch.ones(1, 3))
    layer.draw_noise(generator)
    out.sum().backward()
    assert torch.equal(layer.weight_deviation.grad, expected)
    assert torch.equal(layer.bias_deviation.grad, expected_bias)


def test_noise_is_drawn_where_the_generator_is_and_moved_to_the_layer():
    """A network on another device than the generator of the run, which is on the CPU."""
    layer, generator = NoisyLinear(3, 2, 0.5).to("meta"), torch.Generator().manual_seed(7)
    layer.draw_noise(generator)
    assert (layer.noise_in.device.type, layer.noise_out.device.type) == ("meta", "meta")
    again = torch.Generator().manual_seed(7)
    for count in (3, 2):
        torch.empty(count).normal_(generator=again)
    assert torch.equal(generator.get_state(), again.get_state())  # as many numbers as the layer has
    layer.quiet()
    assert layer.noise_in.device.type == "meta"
