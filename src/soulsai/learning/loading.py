"""Policies from where they are kept: runs and exported files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import torch

from soulsai.acting.exported import is_exported, load_exported
from soulsai.acting.gym_world import GymWorld
from soulsai.acting.policy import NetworkPolicy
from soulsai.algorithms.algorithm import Learner, Networks, algorithm_of
from soulsai.checkpoints.store import CheckpointStore
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, RunError
from soulsai.experience import Sizes
from soulsai.learning.candidates import Candidate, Warn
from soulsai.learning.wiring import build_actions, build_encoder, main_spec
from soulsai.runs.fight_files import config_of
from soulsai.runs.run import Run
from soulsai.runs.summary import ZOO, open_trained
from soulsai.transport.policies import weights_of

Tensors = Mapping[str, torch.Tensor]
log = logging.getLogger(__name__)


def load_trained(text: str, *, latest: bool = False, warn: Warn = log.warning) -> Candidate:
    """The policy of a run, by folder or name, of zoo:NAME, or of an exported file."""
    path = Path(text)
    if is_exported(path) and not path.is_dir():
        config, exported = load_exported(path)
        notes = exported.notes
        _refuse_other_sizes(f"policy {path}", (len(notes.observation_names), len(notes.action_names)), sizes_of(config))
        return Candidate(path.name, config, exported)
    run = open_trained(text)
    config, policy = load_policy(run, latest=latest, warn=warn)
    if text.startswith(ZOO):
        return Candidate(text, config, policy)  # without a folder: nothing is written into the package
    return Candidate(run.name, config, policy, run)


def load_policy(run: Run, *, latest: bool = False, warn: Warn = log.warning) -> tuple[Config, NetworkPolicy]:
    """The greedy policy that a run has kept, or with `latest` the one it had last, and the run's config."""
    config, networks = load_networks(run, latest=latest, warn=warn)
    return config, algorithm_of(config).policy(networks)


def load_networks(
    run: Run, *, latest: bool = False, warn: Warn = log.warning, config: Config | None = None
) -> tuple[Config, Networks]:
    """The networks of the policy, on the CPU, from the newest intact checkpoint; `config` instead of the run's own."""
    config = config or config_of(run)
    saved = CheckpointStore(run.checkpoints).load(warn=warn)
    if saved is None:
        raise RunError(f"{run.folder}: there is no checkpoint yet: train the run first, or wait for its first one")
    best = {} if latest else saved.parts.get("best", {})
    newest = {f"{name}.{key}": value for name, part in saved.parts.items() for key, value in part.items()}
    return config, networks_of(config, best or newest, str(saved.path))


def networks_of(config: Config, weights: Tensors, where: str = "the policy") -> Networks:
    """The networks of the policy, on the CPU, from weights by network and name; `where` they come from."""
    networks = algorithm_of(config).networks(config, Sizes(*sizes_of(config), 0, 1))
    for name, network in networks.items():
        tensors = weights_of(name, weights)
        _refuse_other_shapes(f"{where}: {name}", tensors, network.state_dict())
        network.load_state_dict(tensors)
        network.eval()
    return networks


def start_from(learner: Learner, config: Config, folder: str) -> None:
    """Let a learner begin with the networks that a run has kept, in place of random ones."""
    run = open_trained(folder)
    other = config_of(run)
    if type(algorithm_of(other)) is not type(algorithm_of(config)):
        raise ConfigError(
            f"run.start_from = {folder!r} was trained by {other.algorithm}, not {config.algorithm}; give another run"
        )
    saved = CheckpointStore(run.checkpoints).load()
    if saved is None:
        raise RunError(f"{run.folder}: there is no checkpoint to start from: train the run first")
    best = saved.parts.get("best", {})
    for name, module in learner.modules.items():
        # A shared agent is its policy alone: target networks begin as those that they follow.
        tensors = weights_of(name, best) or saved.parts.get(name) or weights_of(name.removeprefix("target."), best)
        _refuse_other_shapes(f"{saved.path}: {name}", tensors, module.state_dict())
        module.load_state_dict(tensors)


def names_of(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the numbers that the policy sees are called, and the actions it chooses from."""
    if config.world == "gym":
        world = GymWorld(config.gym.id, 1, config.gym.kwargs)
        world.close()
        observations = tuple(f"observation_{index}" for index in range(world.observation_size))
        return observations, tuple(f"action_{index}" for index in range(world.num_actions))
    return build_encoder(config, main_spec(config), 1).names, build_actions(config).names


def sizes_of(config: Config) -> tuple[int, int]:
    """Numbers the policy sees, and actions it chooses from."""
    observations, actions = names_of(config)
    return len(observations), len(actions)


def _refuse_other_shapes(where: str, tensors: Tensors, wanted: Tensors) -> None:
    """A checkpoint of other networks than the config makes: say which of their tensors."""
    for key in sorted(tensors.keys() | wanted.keys()):
        found = tuple(tensors[key].shape) if key in tensors else "nothing"
        needed = tuple(wanted[key].shape) if key in wanted else "nothing"
        if found != needed:
            raise RunError(
                f"{where} does not fit the run's config.toml or this version of soulsgym "
                f"({key} is {found} instead of {needed}): play it with the version that trained it, or train again"
            )


def _refuse_other_sizes(what: str, found: tuple[int, int], needed: tuple[int, int]) -> None:
    if found != needed:
        raise RunError(
            f"{what} takes {found[0]} numbers and {found[1]} actions, but its config makes {needed[0]} and {needed[1]} "
            f"in this version of soulsgym: export the run again"
        )
