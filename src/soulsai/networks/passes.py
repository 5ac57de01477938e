"""Passes through a network and back without autograd, on the processor.

All of it is compiled, with the BLAS of SciPy for the products: autograd and torch's small operations take longer than
the products of networks as small as ours, and only one thread at a time can be in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg.cython_blas  # noqa: F401  the products of compiled functions; loaded before its threads are limited
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from soulsai.networks.flat import FlatParameters, flat_data
from soulsai.networks.normalizer import LIMIT, SMALLEST_VARIANCE
from soulsai.networks.parallel import Threads
from soulsai.networks.policy_network import PolicyNetwork
from soulsai.ops.exponential import FAST, exp_
from soulsgym.compiling import inner, njit

Floats = npt.NDArray[np.float32]

INPUTS, OUTPUTS, WEIGHT, BIAS, NORM, KIND, SOURCE, ROOM = range(8)
"""Of a layer: its widths, where its parameters begin (-1: none), its activation, the layer before (-1: the inputs),
and the numbers of all layers before it."""
NONE, RELU, LEAKY_RELU, TANH, SILU = range(5)
KINDS: dict[type[nn.Module], int] = {nn.ReLU: RELU, nn.LeakyReLU: LEAKY_RELU, nn.Tanh: TANH, nn.SiLU: SILU}
LEAK, ZERO, ONE, TWO = np.float32(0.01), np.float32(0.0), np.float32(1.0), np.float32(2.0)
EPS = np.float32(1e-5)
"""Of a LayerNorm."""


Y, SLOPE, NORMAL, GAIN = range(4)
"""The quarters of a room, where passes leave the numbers of all layers one after the other: what leaves them, slopes
of a loss by that, what a LayerNorm makes of its inputs, slopes of SiLU. Behind them, by row, the deviations of every
LayerNorm, the inputs if they are scaled, and a little for exponentials."""


@njit(cache=True)
def numbers_of(room: Any, quarter: int, plan: Any, layer: int, rows: int) -> Any:
    """Those of one layer [rows, outputs]."""
    begin = rows * (quarter * (plan[-1, ROOM] + plan[-1, OUTPUTS]) + plan[layer, ROOM])
    return room[begin : begin + rows * plan[layer, OUTPUTS]].reshape(rows, plan[layer, OUTPUTS])


@inner(cache=True)
def _deviations_of(room: Any, plan: Any, layer: int, rows: int) -> Any:
    begin = rows * (4 * (plan[-1, ROOM] + plan[-1, OUTPUTS]) + layer)
    return room[begin : begin + rows]


@njit(cache=True)
def inputs_of(room: Any, plan: Any, rows: int) -> Any:
    """Room for inputs [rows, D]."""
    begin = rows * (4 * (plan[-1, ROOM] + plan[-1, OUTPUTS]) + len(plan))
    return room[begin : begin + rows * plan[0, INPUTS]].reshape(rows, plan[0, INPUTS])


@inner(cache=True, fastmath=set(FAST))
def _normalize(z: Any, bias: Any, weight: Any, normal: Any, deviations: Any) -> None:
    """A layer's products, biased and normalised by row (kept in `normal`), times the weights of the LayerNorm."""
    width = np.float32(z.shape[1])
    for i in range(len(z)):
        mean = square = ZERO
        for j in range(z.shape[1]):
            normal[i, j] = z[i, j] + bias[j]
            mean += normal[i, j]
        mean /= width
        for j in range(z.shape[1]):
            normal[i, j] -= mean
            square += normal[i, j] * normal[i, j]
        deviations[i] = np.sqrt(square / width + EPS)
        for j in range(z.shape[1]):
            normal[i, j] /= deviations[i]
            z[i, j] = normal[i, j] * weight[j]


@inner(cache=True, fastmath=set(FAST))
def _normalize_back(slope: Any, normal: Any, deviations: Any, weight: Any, to_weight: Any, to_bias: Any) -> None:
    """Turn slopes by what `_normalize` gave into those by the products; add up those by its weights and biases."""
    width = np.float32(slope.shape[1])
    to_weight[:] = ZERO
    to_bias[:] = ZERO
    for i in range(len(slope)):
        mean = along = ZERO
        for j in range(slope.shape[1]):
            to_weight[j] += slope[i, j] * normal[i, j]
            slope[i, j] *= weight[j]
            mean += slope[i, j]
            along += slope[i, j] * normal[i, j]
        mean /= width
        along /= width
        for j in range(slope.shape[1]):
            slope[i, j] = (slope[i, j] - mean - normal[i, j] * along) / deviations[i]
            to_bias[j] += slope[i, j]


@inner(cache=True, fastmath=set(FAST))
def _activate(z: Any, bias: Any, kind: int, gain: Any, bits: Any) -> None:
    """Add biases, and activate; `gain` keeps the slope of SiLU."""
    for i in range(len(z)):
        if kind == RELU:
            for j in range(z.shape[1]):
                biased = z[i, j] + bias[j]
                z[i, j] = ZERO if biased <= ZERO else biased
        elif kind == LEAKY_RELU:
            for j in range(z.shape[1]):
                biased = z[i, j] + bias[j]
                z[i, j] = LEAK * biased if biased <= ZERO else biased
        elif kind == TANH:
            for j in range(z.shape[1]):
                z[i, j] = TWO * (z[i, j] + bias[j])
            exp_(z[i], bits)
            for j in range(z.shape[1]):
                z[i, j] = ONE - TWO / (ONE + z[i, j])
        elif kind == SILU:
            for j in range(z.shape[1]):
                z[i, j] += bias[j]
                gain[i, j] = -z[i, j]
            exp_(gain[i], bits)
            for j in range(z.shape[1]):
                share = ONE / (ONE + gain[i, j])
                z[i, j] *= share
                gain[i, j] = share + z[i, j] * (ONE - share)
        else:
            for j in range(z.shape[1]):
                z[i, j] += bias[j]


@inner(cache=True, fastmath=set(FAST))
def _activate_back(slope: Any, y: Any, kind: int, gain: Any, to_bias: Any) -> None:
    """Turn slopes by the activated `y` into those by what was activated, and add them up for the biases."""
    to_bias[:] = ZERO
    for i in range(len(y)):
        if kind == RELU:
            for j in range(y.shape[1]):
                slope[i, j] = ZERO if y[i, j] <= ZERO else slope[i, j]
        elif kind == LEAKY_RELU:
            for j in range(y.shape[1]):
                slope[i, j] = LEAK * slope[i, j] if y[i, j] <= ZERO else slope[i, j]
        elif kind == TANH:
            for j in range(y.shape[1]):
                slope[i, j] *= ONE - y[i, j] * y[i, j]
        elif kind == SILU:
            for j in range(y.shape[1]):
                slope[i, j] *= gain[i, j]
        for j in range(y.shape[1]):
            to_bias[j] += slope[i, j]


@njit(cache=True, fastmath=set(FAST))
def scale_inputs(x: Any, mean: Any, scale: Any, scaled: Any) -> None:
    """Deviations from the mean, within the limit."""
    limit = np.float32(LIMIT)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            v = (x[i, j] - mean[j]) * scale[j]
            v = -limit if v < -limit else v
            scaled[i, j] = limit if v > limit else v


@njit(cache=True)
def forward(data: Any, plan: Any, x: Any, room: Any) -> None:
    """Write what leaves the layers for inputs [B, D]."""
    rows = len(x)
    for layer in range(len(plan)):
        inputs, outputs, weight, bias = (
            plan[layer, INPUTS],
            plan[layer, OUTPUTS],
            plan[layer, WEIGHT],
            plan[layer, BIAS],
        )
        norm, source = plan[layer, NORM], plan[layer, SOURCE]
        z = numbers_of(room, Y, plan, layer, rows)
        before = x if source < 0 else numbers_of(room, Y, plan, source, rows)
        biases = data[bias : bias + outputs]
        np.dot(before, data[weight : weight + inputs * outputs].reshape(outputs, inputs).T, z)
        if norm >= 0:
            normal, deviations = numbers_of(room, NORMAL, plan, layer, rows), _deviations_of(room, plan, layer, rows)
            _normalize(z, biases, data[norm : norm + outputs], normal, deviations)
            biases = data[norm + outputs : norm + 2 * outputs]
        bits = room[len(room) - outputs :].view(np.int32)
        _activate(z, biases, plan[layer, KIND], numbers_of(room, GAIN, plan, layer, rows), bits)


@njit(cache=True, fastmath=set(FAST))
def backward(data: Any, plan: Any, x: Any, room: Any, grad: Any) -> None:
    """Write the gradient, from the slopes of a loss by what left the heads; these are used up."""
    rows = len(x)
    for layer in range(len(plan) - 1, -1, -1):
        inputs, outputs, weight, bias = (
            plan[layer, INPUTS],
            plan[layer, OUTPUTS],
            plan[layer, WEIGHT],
            plan[layer, BIAS],
        )
        norm, source = plan[layer, NORM], plan[layer, SOURCE]
        slope, y = numbers_of(room, SLOPE, plan, layer, rows), numbers_of(room, Y, plan, layer, rows)
        to_biases = grad[bias : bias + outputs]
        added = to_biases if norm < 0 else grad[norm + outputs : norm + 2 * outputs]
        _activate_back(slope, y, plan[layer, KIND], numbers_of(room, GAIN, plan, layer, rows), added)
        if norm >= 0:
            normal, deviations = numbers_of(room, NORMAL, plan, layer, rows), _deviations_of(room, plan, layer, rows)
            scales = data[norm : norm + outputs]
            _normalize_back(slope, normal, deviations, scales, grad[norm : norm + outputs], to_biases)
        before = x if source < 0 else numbers_of(room, Y, plan, source, rows)
        np.dot(slope.T, before, grad[weight : weight + inputs * outputs].reshape(outputs, inputs))
        if source < 0:
            continue
        weights = data[weight : weight + inputs * outputs].reshape(outputs, inputs)
        below = numbers_of(room, SLOPE, plan, source, rows)
        if layer + 1 < len(plan) and plan[layer + 1, SOURCE] == source:  # a second head, of one number
            for i in range(rows):
                for j in range(inputs):
                    below[i, j] += slope[i, 0] * weights[0, j]
        else:
            np.dot(slope, weights, below)


class Passes:
    """The passes of one thread through one network, in buffers of its own."""

    def __init__(self, network: PolicyNetwork, grad: torch.Tensor | None = None) -> None:
        """With `grad`, flat and in the order of the parameters, there is a way back, which overwrites it."""
        threadpool_limits(1, "blas")  # each thread multiplies for itself
        self._network, self.data = network, flat_data(network).numpy()
        self.plan, self.value = _plan_of(network)
        """The layers; the last is the head for the actions, and `value` the number of the other, if there is one."""
        self.grad = None if grad is None else grad.numpy()
        self._rooms: dict[int, Floats] = {}

    def room(self, rows: int) -> Floats:
        """A room for so many rows, always the same."""
        if rows not in self._rooms:
            widths = self.plan[:, OUTPUTS]
            size = rows * (4 * int(widths.sum()) + len(widths) + int(self.plan[0, INPUTS])) + int(widths.max())
            self._rooms[rows] = np.empty(size, np.float32)
        return self._rooms[rows]

    def inputs(self, x: Floats) -> Floats:
        """Rows [B, D], scaled if the network does that."""
        if (normalizer := self._network.normalizer) is None:
            return x
        scaled: Floats = inputs_of(self.room(len(x)), self.plan, len(x))
        scale = (normalizer.variance.numpy() + SMALLEST_VARIANCE) ** -0.5
        scale_inputs(x, normalizer.mean.float().numpy(), scale.astype(np.float32), scaled)
        return scaled

    def forward(self, x: Floats) -> tuple[Floats, Floats]:
        """What the heads say of rows [B, D], until the next time: of all actions [B, A], and beside it [B, 1]."""
        forward(self.data, self.plan, self.inputs(x), self.room(len(x)))
        return self.heads(Y, len(x))

    def heads(self, quarter: int, rows: int) -> tuple[Floats, Floats]:
        """The numbers of both heads; without a second one those of the first."""
        room = self.room(rows)
        first, second = (
            numbers_of(room, quarter, self.plan, layer, rows) for layer in (len(self.plan) - 1, self.value)
        )
        return first, second


def _plan_of(network: PolicyNetwork) -> tuple[npt.NDArray[np.int64], int]:
    begins: dict[torch.Tensor, int] = {}
    size = 0
    for parameter in network.parameters():
        begins[parameter] = size
        size += parameter.numel()
    plan: list[list[int]] = []
    value = -1
    for torso, heads in reversed(network.chains()):
        source = -1
        for module in (*torso, *reversed(heads)):
            if isinstance(module, nn.Linear):
                widths, begin = [module.in_features, module.out_features], begins[module.weight]
                room = sum(layer[OUTPUTS] for layer in plan)
                plan.append([*widths, begin, begins[module.bias], -1, NONE, source, room])
                source = source if module in heads else len(plan) - 1
            elif isinstance(module, nn.LayerNorm):
                plan[-1][NORM] = begins[module.weight]
            else:
                plan[-1][KIND] = KINDS[type(module)]
            if module is network.chains()[-1][1][-1]:
                value = len(plan) - 1
    return np.array(plan), value


class SharedPasses:
    """Passes of every thread through one network that learns, each with a gradient of its own."""

    def __init__(self, network: PolicyNetwork, flat: FlatParameters, threads: Threads) -> None:
        self._grads = [flat.grad, *(torch.zeros_like(flat.grad) for _ in range(threads.count - 1))]
        self.of_thread: Sequence[Passes] = [Passes(network, grad) for grad in self._grads]

    def add_up(self, parts: int) -> None:
        """The gradients in a fixed order: their sum is the same to the last bit whoever is first."""
        for grad in self._grads[1:parts]:
            self._grads[0].add_(grad)
