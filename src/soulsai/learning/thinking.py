"""Thinks a recorded fight through again: what the policy saw, weighed and chose at every decision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from soulsai.acting.policy import NetworkPolicy
from soulsai.config.schema import Config
from soulsai.errors import ConfigError
from soulsai.evaluation.thoughts import PROBABILITY, Layer, Q, Thoughts, to_shades
from soulsai.learning.loading import names_of
from soulsai.learning.wiring import build_actions, build_fighter
from soulsai.networks import PolicyNetwork
from soulsai.networks.layers import ACTIVATIONS
from soulsai.ops.masked import masked_argmax
from soulsgym.recordings.recording import Recording
from soulsgym.state import Outcome

OBSERVATION = "observation"

Activations = dict[str, Tensor]


def think(config: Config, policy: NetworkPolicy, recording: Recording) -> Thoughts:
    """What the policy thinks at every decision of a recording, of the simulator or of the game.

    It sees the fights as they went, whoever played them: through the run's own fighter, which is made to play what was
    played. The network itself then runs once, over all that was seen.
    """
    if config.world != "fight":
        raise ConfigError(
            f"world = {config.world!r} has no fights to think about; give a run that was trained on fights"
        )
    actions = build_actions(config)
    replayer = _Replayer({int(number): position for position, number in enumerate(actions.indices)})
    records = _replay(config, replayer, recording)
    sights = names_of(config)[0]
    seen = np.concatenate(replayer.seen) if replayer.seen else np.zeros((0, len(sights)), np.float32)
    opened = np.concatenate(replayer.open) if replayer.open else np.zeros((0, len(actions)), np.bool_)
    network = policy.networks[0]
    device = next(network.parameters()).device
    observations, masks = torch.from_numpy(seen).to(device), torch.from_numpy(opened).to(device)
    with torch.no_grad(), _record_activations(policy) as activations:
        kind, scores, value, chosen = _score(policy, observations, masks)
    shades, scale = to_shades(seen, each=True)
    layers = [Layer(OBSERVATION, shades, scale)]
    layers += [Layer(name, *to_shades(_plain(found), each=False)) for name, found in activations.items()]
    return Thoughts(
        kind=kind,
        actions=tuple(int(number) for number in actions.indices),
        records=records,
        scores=_finite(scores),
        open=opened,
        chosen=_plain(chosen).astype(np.int32),
        value=_finite(value),
        layers=tuple(layers),
        sights=sights,
    )


class _Replayer:
    """In place of a policy: plays what was played, and remembers what it was shown."""

    def __init__(self, positions: dict[int, int]) -> None:
        self._positions = positions
        self.played = 0
        self.seen: list[npt.NDArray[np.float32]] = []
        self.open: list[npt.NDArray[np.bool_]] = []

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """What was played; of an action that this agent does not have, its last one, which is to do nothing."""
        self.seen.append(observations)
        self.open.append(masks)
        return np.array([self._positions.get(self.played, len(self._positions) - 1)], np.int64)


def _replay(config: Config, replayer: _Replayer, recording: Recording) -> npt.NDArray[np.int32]:
    """Let the run's own fighter see every record from which a step was played; those at which it had a choice."""
    fighter, everyone = build_fighter(config, replayer), np.ones(1, np.bool_)
    running = recording.fights["outcome"] == Outcome.RUNNING
    decided = []
    for low, high in recording.bounds():
        fighter.begin(recording.fights[low : low + 1], everyone)
        for i in range(low, high - 1):
            if not running[i]:
                continue
            before, replayer.played = len(replayer.seen), int(recording.actions[i + 1])
            fighter.act(recording.fights[i : i + 1])
            if len(replayer.seen) > before:
                decided.append(i)
    return np.array(decided, np.int32)


def _score(policy: NetworkPolicy, observations: Tensor, masks: Tensor) -> tuple[str, Tensor, Tensor, Tensor]:
    """Kind of the scores, the scores, the value of the state, and the choice."""
    total = policy.scores(observations)
    chosen = masked_argmax(total, masks)
    network, mean = policy.networks[0], total / len(policy.networks)
    opened = mean.masked_fill(~masks, -torch.inf)
    if network.scores_are == PROBABILITY:
        return PROBABILITY, torch.softmax(opened, dim=1), network.state_values(observations), chosen
    return Q, mean, opened.amax(dim=1) if len(mean) else mean.new_zeros(0), chosen


@contextmanager
def _record_activations(policy: NetworkPolicy) -> Iterator[Activations]:
    """What leaves every hidden layer, by name, in the order in which the network has them."""
    heard: Activations = {}
    handles = []
    for number, network in enumerate(policy.networks):
        owner = "twin " if number else ""
        for part, torso in _torsos(network).items():
            active = [module for module in torso if isinstance(module, tuple(ACTIVATIONS.values()))]
            for depth, module in enumerate(active, 1):
                name = f"{owner}{part}layer {depth}"
                handles.append(module.register_forward_hook(_listener(heard, name)))
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def _torsos(network: PolicyNetwork) -> dict[str, nn.Sequential]:
    found = {"": getattr(network, "torso", None), "value ": getattr(network, "value_torso", None)}
    return {name: torso for name, torso in found.items() if torso is not None}


def _listener(heard: Activations, name: str) -> Any:
    def hear(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        heard[name] = output

    return hear


def _plain(tensor: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _finite(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A network that has diverged is shown, too; what is no number is shown as 0."""
    return np.nan_to_num(_plain(tensor).astype(np.float32), posinf=0.0, neginf=0.0)
