"""Policies from where they are kept: runs and exported files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import torch

from soulsai.acting.exported import is_exported, load_exported
from soulsai.acting.fighter import PolicyFighter
from soulsai.acting.gym_world import GymWorld
from soulsai.acting.policy import NetworkPolicy
from soulsai.checkpoints.store import Checkpoint, CheckpointStore
from soulsai.config.schema import Config
from soulsai.errors import RunError
from soulsai.learning.contestants import Contestant, Warn, refuse_gym
from soulsai.learning.wiring import build_actions, build_encoder, build_fighter, build_networks, main_spec, quiet
from soulsai.networks import ActorCritic, QNetwork
from soulsai.runs.fight_files import config_of
from soulsai.runs.run import Run

ROOT = Path("runs")
"""Where runs are when only their name is given."""

Tensors = Mapping[str, torch.Tensor]
Networks = dict[str, ActorCritic | QNetwork]
log = logging.getLogger(__name__)


def load_trained(text: str, *, latest: bool = False, warn: Warn = log.warning) -> Contestant:
    """The policy of a run, by folder or name, or of an exported file."""
    path = Path(text)
    if is_exported(path) and not path.is_dir():
        config, exported = load_exported(path)
        notes = exported.notes
        _refuse_other_sizes(f"policy {path}", (len(notes.observation_names), len(notes.action_names)), sizes_of(config))
        return Contestant(path.name, config, exported)
    run = open_run(text)
    config, policy = load_policy(run, latest=latest, warn=warn)
    return Contestant(run.name, config, policy, run)


def open_run(text: str) -> Run:
    """The run in a folder, or with this name under runs/."""
    path = Path(text)
    return Run.open(ROOT / path if not path.exists() and (ROOT / path).is_dir() else path)


def load_policy(run: Run, *, latest: bool = False, warn: Warn = log.warning) -> tuple[Config, NetworkPolicy]:
    """The greedy policy that a run has kept, or with `latest` the one it had last, and the run's config."""
    config, networks = load_networks(run, latest=latest, warn=warn)
    return config, quiet(networks)


def load_fighter(run: Run, *, latest: bool = False, warn: Warn = log.warning) -> PolicyFighter:
    """The policy of a run as a fighter."""
    config, policy = load_policy(run, latest=latest, warn=warn)
    refuse_gym(run.name, config)
    return build_fighter(config, policy)


def load_networks(run: Run, *, latest: bool = False, warn: Warn = log.warning) -> tuple[Config, Networks]:
    """The networks of the policy, on the CPU, from the newest intact checkpoint."""
    config = config_of(run)
    saved = CheckpointStore(run.checkpoints).load(warn=warn)
    if saved is None:
        raise RunError(f"{run.folder}: there is no checkpoint yet: train the run first, or wait for its first one")
    networks = build_networks(config, *sizes_of(config))
    for name, network in networks.items():
        tensors = _tensors(saved, name, latest=latest)
        _refuse_other_shapes(f"{saved.path}: {name}", tensors, network.state_dict())
        network.load_state_dict(tensors)
    return config, networks


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


def _tensors(saved: Checkpoint, name: str, *, latest: bool) -> Tensors:
    """Of the policy kept as the best; before the first evaluation, and if asked for, of the newest."""
    best = {} if latest else saved.parts.get("best", {})
    own = {key.removeprefix(f"{name}."): tensor for key, tensor in best.items() if key.startswith(f"{name}.")}
    return own or saved.parts.get(name, {})


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
