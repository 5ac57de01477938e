"""Repeats a recording of the simulator to the last bit, boss and all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import CONTROL
from soulsgym.batch import FightBatch, seed_number
from soulsgym.engine import Engine
from soulsgym.envs.simulated import FightSettings, fight_specs, simulated_batch
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.recordings.departure import Departure
from soulsgym.recordings.recording import Recording, Simulation
from soulsgym.sim.engine import SimEngine
from soulsgym.sim.pack import pack
from soulsgym.spec import FightSpec
from soulsgym.state import FIGHT, Fights


def simulation_of(settings: FightSettings, seeds: Iterable[int]) -> Simulation:
    """What a recording has to hold of the simulated fights that began with these seeds."""
    return Simulation(settings, data_digest(fight_specs(settings)[0]), tuple(seeds))


def data_digest(spec: FightSpec) -> str:
    """Sixteen digits that are others as soon as the simulator reads another number from boss, player or arena."""
    return hashlib.sha256(pack(spec).tobytes()).hexdigest()[:16]


def recorded_spec(recording: Recording) -> FightSpec | None:
    """The fight of a recording of the simulator; None for one of the game, which does not tell."""
    if recording.simulation is None:
        return None
    settings = recording.simulation.settings
    try:
        return fight_specs(settings)[0]
    except MisuseError as error:
        raise _cannot_repeat(recording, error) from error


def other_data(recording: Recording) -> str:
    """One sentence if a recording of the simulator was made with other numbers than those of today, else nothing."""
    spec, simulation = recorded_spec(recording), recording.simulation
    if spec is None or simulation is None or data_digest(spec) == simulation.data:
        return ""
    return (
        f"Recorded with other data of {simulation.settings.boss} (digest {simulation.data}, now "
        f"{data_digest(spec)}), so it cannot be repeated exactly; record it again."
    )


def exact_departures(recording: Recording) -> tuple[Departure, ...]:
    """Play every fight of a recording of the simulator again from its seed, and find the first difference of each."""
    simulation = recording.simulation
    if simulation is None:
        raise RecordingError(f"{recording.source}: has no seeds; give a recording of the simulator")
    try:
        batch = simulated_batch(simulation.settings)
    except MisuseError as error:
        raise _cannot_repeat(recording, error) from error
    departures = []
    for number in range(len(simulation.seeds)):
        one = recording.part(number)
        departures.append(_first_difference(number + 1, _played(batch, one), one.fights))
    return tuple(departures)


def _cannot_repeat(recording: Recording, error: MisuseError) -> RecordingError:
    return RecordingError(f"{recording.source}: cannot be repeated: {error}")


def _played(batch: FightBatch, one: Recording) -> Fights:
    """The records of one fight, played again: its start, and one for every action."""
    assert one.simulation is not None
    batch.begin(seeds=np.array([seed_number(seed) for seed in one.simulation.seeds]))
    records = [batch.record()]
    for step in range(1, len(one)):
        if one.controls is None:
            batch.step(one.actions[step : step + 1])
        else:
            play_ticks(batch.engine, one.controls[step : step + 1])
        records.append(batch.record())
    return np.concatenate(records)


def play_ticks(engine: Engine, controls: npt.NDArray[np.int8]) -> None:
    """Play a step of every fight tick by tick: `controls` are fights x ticks x (direction, button)."""
    assert isinstance(engine, SimEngine)
    for tick in range(controls.shape[1]):
        engine.tick(np.ascontiguousarray(controls[:, tick]).view(CONTROL)[:, 0], tick)


def _first_difference(number: int, again: Fights, real: Fights) -> Departure:
    steps = len(real) - 1
    name = min(FIGHT.names or (), key=lambda name: _differs_at(again[name], real[name]))
    first = _differs_at(again[name], real[name])
    if first > steps:
        return Departure(number, steps, None, "")
    values = " instead of ".join(str(np.squeeze(part[name][first])) for part in (again, real))
    return Departure(number, steps, first, f"{name} {values}")


def _differs_at(again: npt.NDArray[Any], real: npt.NDArray[Any]) -> int:
    """The first row whose bits differ, or the number of rows."""
    bits = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in (again, real)]
    return int(np.argmax([*(bits[0] != bits[1]).any(axis=1), True]))
