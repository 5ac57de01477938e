"""What plays: an actor in a world, wherever that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from soulsai.acting.episodes import Running
from soulsai.acting.world import World
from soulsai.errors import RunError
from soulsai.experience import Chunk
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import State

States = dict[str, State]


class Stopped(Exception):
    """The actor was told to stop in the middle of what it played: nobody can learn from that."""


class Actor(ABC):
    """Plays in a world with networks that somebody else improves."""

    steps = 0
    """Environment steps of the whole run so far, which schedules go by; whoever improves the networks sets it."""
    stop: Callable[[], bool] = staticmethod(lambda: False)
    """Whether to end with the next step, by `Stopped`; for worlds in which many steps would be a long wait."""

    def __init__(self, world: World, clock: LoopClock | None = None) -> None:
        self.world, self.clock = world, clock or LoopClock()
        self.running = Running(world.number, len(world.term_names))

    @abstractmethod
    def play(self) -> Chunk:
        """Play on for a while; what was played, in arrays that last until the next time. It may have no rows yet."""

    @abstractmethod
    def own_state(self) -> State:
        """What decides how it goes on beside networks, world and running episodes."""

    @abstractmethod
    def restore_own(self, state: Mapping[str, npt.NDArray[Any]], *, same_episodes: bool) -> None:
        """Go on from a state; without `same_episodes` new ones have begun in the world."""

    def begin(self, seed: int) -> None:
        """Begin all episodes."""
        self.world.reset(seed)

    def state(self) -> States:
        """Everything that decides how it goes on, but for the networks."""
        return {"world": dict(self.world.state()), "running": self.running.state(), "actor": self.own_state()}

    def restore(self, states: Mapping[str, Mapping[str, npt.NDArray[Any]]], seed: int) -> None:
        """Go on from a state; where the world cannot, new episodes begin with a seed."""
        world = states["world"]
        self.restore_own(states["actor"], same_episodes=bool(world))
        if not world:
            self.begin(seed)
            return
        self.running.restore(states["running"])
        try:
            self.world.restore(world)
        except KeyError as error:
            raise RunError(
                "the checkpoint holds fights of another version of soulsgym; continue with that one, or start a new run"
            ) from error
