"""Networks without torch, for workers: the same numbers from the same weights, in a fifth of the memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from soulsai.config.schema import NetworkConfig

Floats = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]
Shape: TypeAlias = tuple[int, ...]

SMALLEST_VARIANCE, LIMIT = 1e-8, np.float32(10.0)
"""Of inputs that are scaled."""
EPS = np.float32(1e-5)
"""Of a LayerNorm."""
LEAK = np.float32(0.01)


class LightNetwork(ABC):
    """A network that plays and does not learn; its weights have the names they have in torch."""

    def __init__(self, observation_size: int, network: NetworkConfig) -> None:
        self._inputs, self._network = observation_size, network
        self._width = network.hidden[-1] if network.hidden else observation_size
        self._weights: dict[str, npt.NDArray[Any]] = {}

    @abstractmethod
    def _shapes(self) -> Iterator[tuple[str, Shape]]:
        """Name and shape of everything it is made of."""

    @abstractmethod
    def scores(self, x: Floats) -> Floats:
        """Scores of all actions [B, A], not masked."""

    def think(self, x: Floats) -> tuple[Floats, Floats]:
        """Logits and values; one whose scores are values knows nothing beside them."""
        raise NotImplementedError

    def values(self, x: Floats) -> Floats:
        """Values [B]."""
        return self.think(x)[1]

    def draw_noise(self, seed: int) -> None:
        """New noise in the weights, where they have any."""
        raise NotImplementedError

    def clear(self) -> None:
        """Play with zeros."""
        self.load({name: np.zeros(shape, np.float32) for name, shape in self._shapes()})

    def load(self, weights: Arrays) -> None:
        """Play with these from now on; ValueError if they belong to another network."""
        expected = dict(self._shapes())
        if weights.keys() != expected.keys():
            wrong = sorted(weights.keys() ^ expected.keys())
            raise ValueError(f"these are tensors of another network: {', '.join(wrong[:3])}")
        for name, shape in expected.items():
            if weights[name].shape != shape:
                raise ValueError(f"{name} is of another network: its shape is {weights[name].shape}, not {shape}")
        self._weights = {name: _to_single_precision(name, weights[name]) for name in expected}

    def _torso_shapes(self, name: str) -> Iterator[tuple[str, Shape]]:
        size, at = self._inputs, 0
        for width in self._network.hidden:
            yield from linear_shapes(f"{name}.{at}", size, width)
            if self._network.layer_norm:
                at += 1
                yield from ((f"{name}.{at}.{part}", (width,)) for part in ("weight", "bias"))
            size, at = width, at + 2

    def _normalizer_shapes(self) -> Iterator[tuple[str, Shape]]:
        if self._network.normalize:
            yield from (("normalizer.mean", (self._inputs,)), ("normalizer.variance", (self._inputs,)))
            yield "normalizer.count", ()

    def _scale(self, x: Floats) -> Floats:
        """Deviations from the mean, within the limit."""
        if not self._network.normalize:
            return x
        mean, variance = self._weights["normalizer.mean"], self._weights["normalizer.variance"]
        scale = (1.0 / np.sqrt(variance + SMALLEST_VARIANCE)).astype(np.float32)
        scaled: Floats = np.clip((x - mean.astype(np.float32)) * scale, -LIMIT, LIMIT)
        return scaled

    def _torso(self, name: str, x: Floats) -> Floats:
        at = 0
        for _ in self._network.hidden:
            x = self._linear(f"{name}.{at}", x)
            if self._network.layer_norm:
                at += 1
                x = x - x.mean(axis=1, keepdims=True)
                x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS)
                x = x * self._weights[f"{name}.{at}.weight"] + self._weights[f"{name}.{at}.bias"]
            x = _activate(x, self._network.activation)
            at += 2
        return x

    def _linear(self, name: str, x: Floats) -> Floats:
        out: Floats = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return out


class LightActorCritic(LightNetwork):
    """A policy and the value of what it sees."""

    def __init__(self, observation_size: int, num_actions: int, network: NetworkConfig) -> None:
        super().__init__(observation_size, network)
        self._num_actions = num_actions
        self._value_torso = "value_torso" if network.separate else "torso"

    def _shapes(self) -> Iterator[tuple[str, Shape]]:
        yield from self._normalizer_shapes()
        for name in sorted({"torso", self._value_torso}):
            yield from self._torso_shapes(name)
        yield from linear_shapes("policy_head", self._width, self._num_actions)
        yield from linear_shapes("value_head", self._width, 1)

    def scores(self, x: Floats) -> Floats:
        """Logits of all actions."""
        return self._linear("policy_head", self._torso("torso", self._scale(x)))

    def think(self, x: Floats) -> tuple[Floats, Floats]:
        """Logits of all actions, and values."""
        x = self._scale(x)
        features = self._torso("torso", x)
        value_features = self._torso(self._value_torso, x) if self._network.separate else features
        return self._linear("policy_head", features), self._linear("value_head", value_features)[:, 0]


class LightQNetwork(LightNetwork):
    """The value of every action; of a distribution the mean."""

    def __init__(
        self,
        observation_size: int,
        num_actions: int,
        network: NetworkConfig,
        *,
        dueling: bool,
        noisy: bool,
        distribution: Literal["none", "c51", "quantile"],
        atoms: int,
        value_range: tuple[float, float],
    ) -> None:
        super().__init__(observation_size, network)
        self._num_actions, self._distribution, self._noisy = num_actions, distribution, noisy
        self._numbers = 1 if distribution == "none" else atoms
        self._heads = {"head": num_actions * self._numbers, **({"value_head": self._numbers} if dueling else {})}
        self._support = np.linspace(*value_range, atoms, dtype=np.float32)
        self._noise: dict[str, tuple[Floats, Floats]] = {}

    def _shapes(self) -> Iterator[tuple[str, Shape]]:
        yield from self._normalizer_shapes()
        yield from self._torso_shapes("torso")
        for name, width in self._heads.items():
            if not self._noisy:
                yield from linear_shapes(name, self._width, width)
                continue
            for kind in ("mean", "deviation"):
                yield f"{name}.weight_{kind}", (width, self._width)
                yield f"{name}.bias_{kind}", (width,)
            yield from ((f"{name}.noise_in", (self._width,)), (f"{name}.noise_out", (width,)))

    def draw_noise(self, seed: int) -> None:
        """New noise of every noisy layer: that of its inputs, and that of its outputs."""
        normal = np.random.default_rng(seed).normal
        self._noise = {
            name: (_signed_root(normal(size=self._width)), _signed_root(normal(size=width)))
            for name, width in self._heads.items()
        }

    def scores(self, x: Floats) -> Floats:
        """Mean value of every action."""
        features = self._torso("torso", self._scale(x))
        out = self._head("head", features).reshape(len(x), self._num_actions, self._numbers)
        if "value_head" in self._heads:
            level = self._head("value_head", features).reshape(len(x), 1, self._numbers)
            out = out + level - out.mean(axis=1, keepdims=True)
        if self._distribution == "c51":
            out = np.exp(out - out.max(axis=2, keepdims=True))
            means: Floats = (out @ self._support) / out.sum(axis=2)
            return means
        return out.mean(axis=2) if self._distribution == "quantile" else out[:, :, 0]

    def _head(self, name: str, x: Floats) -> Floats:
        if not self._noisy:
            return self._linear(name, x)
        weights, (noise_in, noise_out) = self._weights, self._noise_of(name)
        # x (mean + deviation * out in) = x mean + (x * in) deviation * out: no matrix of noise is made.
        noise = (x * noise_in) @ weights[f"{name}.weight_deviation"].T + weights[f"{name}.bias_deviation"]
        out: Floats = x @ weights[f"{name}.weight_mean"].T + weights[f"{name}.bias_mean"] + noise * noise_out
        return out

    def _noise_of(self, name: str) -> tuple[Floats, Floats]:
        """The noise drawn last; before the first draw that which came with the weights."""
        return self._noise.get(name) or (self._weights[f"{name}.noise_in"], self._weights[f"{name}.noise_out"])


def linear_shapes(name: str, inputs: int, outputs: int) -> Iterator[tuple[str, Shape]]:
    """Of a linear layer."""
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _to_single_precision(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Single precision, but for statistics."""
    return array if name.startswith("normalizer.") else np.asarray(array, np.float32, order="C")


def _signed_root(normal: npt.NDArray[np.float64]) -> Floats:
    return (np.sign(normal) * np.sqrt(np.abs(normal))).astype(np.float32)


def _activate(x: Floats, kind: str) -> Floats:
    if kind == "relu":
        return np.maximum(x, np.float32(0.0))
    if kind == "leaky_relu":
        leaky: Floats = np.maximum(x, LEAK * x)
        return leaky
    if kind == "tanh":
        return np.tanh(x)
    with np.errstate(over="ignore"):  # of very negative numbers, which give 0
        silu = x / (np.float32(1.0) + np.exp(-x))
    return np.asarray(silu, np.float32)
