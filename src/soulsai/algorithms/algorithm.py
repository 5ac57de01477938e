"""What an algorithm is: it brings its settings, networks, actor, learner, experience, metrics and preflight rules.

Nothing outside of an algorithm's folder asks which one it is. `soulsai/algorithms/NAME/algorithm.py` defines ALGORITHM
and `learner.py` LEARNER. Workers read only the first, and have no torch: it is loaded where something learns.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from soulsai.acting.actor import Actor
from soulsai.acting.light import LightNetwork
from soulsai.acting.world import World
from soulsai.algorithms.findings import Finding, Sample, UselessSettings
from soulsai.config.algorithms import algorithm_settings
from soulsai.config.schema import Config
from soulsai.errors import ConfigError
from soulsai.experience import Chunk, Schema, Sizes
from soulsai.replay.n_step import TRANSITION
from soulsai.telemetry.clock import LoopClock

if TYPE_CHECKING:
    import torch

    from soulsai.acting.demonstrations import Demos
    from soulsai.acting.policy import NetworkPolicy
    from soulsai.checkpoints.store import Checkpoint
    from soulsai.networks import Adam, FlatParameters, PolicyNetwork
    from soulsai.replay import ReplayStore

Networks: TypeAlias = "dict[str, PolicyNetwork]"
LightNetworks: TypeAlias = dict[str, LightNetwork]
Parts: TypeAlias = "dict[str, dict[str, torch.Tensor | npt.NDArray[Any]]]"
Metrics: TypeAlias = "dict[str, float | torch.Tensor]"

REFUSED = "updates_refused"
"""The metric of gradient steps that were refused."""


@dataclass
class Counters:
    """How far a run has come."""

    steps: int = 0
    updates: int = 0
    updates_owed: float = 0.0
    updates_skipped: float = 0.0
    updates_refused: int = 0


class Learner(ABC):
    """Takes in experience and improves networks with it.

    `modules` are all networks by name, as checkpoints hold them; `optimizers` belong to `flats` of the same name.
    """

    store: ReplayStore | None = None
    """What it remembers of the experience it took in; none: it learns from each chunk once."""
    needs_demos = False
    """Whether it learns from demonstrations alone."""

    def __init__(self, config: Config, schema: Schema, device: torch.device) -> None:
        import torch

        from soulsai.networks.parallel import Threads

        self.config, self.schema, self.device = config, schema, device
        self.counters, self.clock = Counters(), LoopClock()
        self.threads = Threads(threads_of(config) if device.type == "cpu" else 1)
        self.generator = torch.Generator().manual_seed(config.run.seed)
        torch.manual_seed(config.run.seed)
        self.modules: dict[str, torch.nn.Module] = {}
        self.flats: dict[str, FlatParameters] = {}
        self.optimizers: dict[str, Adam] = {}

    @property
    @abstractmethod
    def networks(self) -> Networks:
        """The networks that the policy is made of, by name."""

    @abstractmethod
    def take(self, chunk: Chunk) -> None:
        """Take in experience."""

    @abstractmethod
    def update(self, limit_s: float) -> Metrics:
        """Learn as much as is due, for about `limit_s` at most."""

    def teach(self, demos: Demos) -> None:
        """Learn from demonstrations, too; ConfigError of one that cannot."""
        others = " or ".join(repr(name) for name, each in algorithm_settings().items() if "demos" in each.uses)
        raise ConfigError(
            f"algorithm = {self.config.algorithm!r} learns from no demonstrations; use {others}, or leave out --demos"
        )

    @property
    def is_due(self) -> bool:
        """Whether there is something to learn from right now."""
        return False

    @property
    def is_behind(self) -> bool:
        """Whether more comes in than can be learned from, so that actors that can wait should."""
        return not self.has_room(0)

    def has_room(self, steps: int) -> bool:
        """Whether it is not behind after so many steps more."""
        return True

    @property
    def progress(self) -> float:
        """How far schedules are, 0 to 1."""
        return self.config.run.schedule_progress(self.counters.steps)

    def metrics(self) -> dict[str, float]:
        """What there is to tell beside the metrics of an update."""
        return {}

    def parts(self) -> Parts:
        """Everything that decides how it goes on, but for the store."""
        parts: Parts = {name: dict(module.state_dict()) for name, module in self.modules.items()}
        parts |= {f"optimizer.{name}": dict(optimizer.state()) for name, optimizer in self.optimizers.items()}
        return parts | {"random": {"torch": self.generator.get_state()}}

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint; counters and store are restored before."""
        for name, module in self.modules.items():
            module.load_state_dict(saved.parts[name])
        for name, optimizer in self.optimizers.items():
            optimizer.restore(saved.parts[f"optimizer.{name}"])
        self.generator.set_state(saved.parts["random"]["torch"])

    def forget(self) -> None:  # noqa: B027 (not every learner remembers)
        """Forget all experience, as if none had come since the networks are what they are."""

    def remove(self, gone: npt.NDArray[np.bool_]) -> None:  # noqa: B027 (not every learner remembers)
        """Forget some of the experience, told by flags from the oldest row on."""

    def is_finite(self) -> bool:
        """Whether all weights are numbers."""
        return all(bool(flat.data.isfinite().all()) for flat in self.flats.values())


class Algorithm(ABC):
    """One way of learning. Its settings are the section of its name, defined in its `config.py`."""

    name: str
    workers_wait = False
    """Whether workers that have sent their share of an update wait for the policy that comes of it."""

    can_have_workers = True
    """Whether other processes can play for it."""

    def settings(self, config: Config) -> Any:
        """Its section of a config."""
        return getattr(config, self.name)

    def schema(self, config: Config, sizes: Sizes) -> Schema:
        """What its experience looks like: transitions for a replay."""
        return Schema.of(TRANSITION, sizes)

    @abstractmethod
    def networks(self, config: Config, sizes: Sizes) -> Networks:
        """The networks that its policy is made of, by name."""

    @abstractmethod
    def light_networks(self, config: Config, sizes: Sizes) -> LightNetworks:
        """The same for a worker, which plays with the weights of others and has no torch."""

    @abstractmethod
    def actor(
        self,
        config: Config,
        world: World,
        networks: Networks | LightNetworks,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> Actor:
        """What plays with the networks; all its randomness comes from `seed`."""

    def learner(self, config: Config, sizes: Sizes, device: torch.device) -> Learner:
        """What improves the networks: LEARNER of the module beside it, which has torch."""
        kind: type[Learner] = import_module(f"soulsai.algorithms.{self.name}.learner").LEARNER
        return kind(config, self.schema(config, sizes), device)

    def gamma(self, config: Config) -> float:
        """The discount of an environment step."""
        return float(self.settings(config).gamma)

    def rows_of_update(self, config: Config) -> int:
        """Decisions that an update uses up; 0 for one that learns from a replay."""
        return 0

    def decisions_of_row(self, config: Config) -> int:
        """Decisions whose rewards a row sums up, at most."""
        return int(getattr(self.settings(config), "n_step", 1))

    def max_lag(self, config: Config) -> int | None:
        """Versions that the policy of a decision may be old; None if that does not matter."""
        return None

    def findings(self, config: Config, sample: Sample) -> Iterator[Finding]:
        """What looks wrong about its settings."""
        yield from ()

    def useless(self, config: Config) -> Iterator[UselessSettings]:
        """Settings that others make useless."""
        yield from ()

    def policy(self, networks: Mapping[str, PolicyNetwork]) -> NetworkPolicy:
        """The greedy policy of the networks as they are, without noise; it changes with further learning."""
        for network in networks.values():
            network.quiet()
        from soulsai.acting.policy import NetworkPolicy

        return NetworkPolicy(*networks.values())


def algorithm_of(config: Config) -> Algorithm:
    """The algorithm that a config names."""
    found: Algorithm = import_module(f"soulsai.algorithms.{config.algorithm}.algorithm").ALGORITHM
    return found


def tensors_of(chunk: Chunk) -> dict[str, torch.Tensor]:
    """The columns of a chunk; those of a message cannot be written to, which torch cannot say of a tensor: copies."""
    import torch

    return {
        name: torch.from_numpy(array if array.flags.writeable else array.copy())
        for name, array in chunk.columns.items()
    }


def threads_of(config: Config) -> int:
    """Processor threads to use."""
    return config.run.threads or os.cpu_count() or 1
