"""A recording: the record of every step, the action that led to it, and which episode it belongs to.

Two formats are read. `.npz` is written here: arrays `fights`, `actions` and `episodes` and a JSON `header` with the
versions and, where the simulator made it, all that repeats its fights; `controls` too where a person played it. `.json`
is what SoulsGym's own collector writes: lists under observations, actions, rewards, dones, infos, episodes and steps.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt

from soulsgym.actions import DIRECTIONS, NO_DIRECTION, NOTHING, Button
from soulsgym.envs.simulated import FightSettings
from soulsgym.errors import RecordingError
from soulsgym.packages import VERSION
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.state import FIGHT, NUM_ACTIONS, OBSERVATION_KEYS, Fights, Outcome

FORMAT_VERSION = 1
JSON_LISTS = ("observations", "actions", "dones", "infos", "episodes", "steps")
ARRAYS = ("header", "fights", "actions", "episodes")
LARGEST = 1e6
"""Number of an observation: metres, seconds and points of a fight are far below it."""


@dataclass(frozen=True)
class Simulation:
    """How the simulator made a recording: beside the actions, all that an exact replay needs."""

    settings: FightSettings
    data: str
    """Digest of the numbers it read from boss, player and arena."""
    seeds: tuple[int, ...]
    """One for each episode."""


@dataclass(frozen=True)
class Recording:
    """Steps of one or more episodes, one after the other.

    `actions[i]` was applied in the step that led to `fights[i]`; the first record of an episode is its start, and its
    action means nothing. Records of one episode have the same number in `episodes`. A recording of the game has no
    `simulation`. Where a person played the simulator, `controls[i]` is the direction and the button of each of the six
    ticks that led to `fights[i]`, and `actions[i]` the action nearest to them.
    """

    fights: Fights
    actions: npt.NDArray[np.int64]
    episodes: npt.NDArray[np.int64]
    source: str = "memory"
    simulation: Simulation | None = None
    controls: npt.NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.fights)

    def part(self, number: int) -> Recording:
        """One episode alone, counted from 0."""
        low, high = self.bounds()[number]
        made = self.simulation
        return dataclasses.replace(
            self,
            fights=self.fights[low:high],
            actions=self.actions[low:high],
            episodes=self.episodes[low:high],
            simulation=made and dataclasses.replace(made, seeds=made.seeds[number : number + 1]),
            controls=None if self.controls is None else self.controls[low:high],
        )

    def bounds(self) -> list[tuple[int, int]]:
        """First index and end of every episode."""
        return _stretches(self.episodes)


def write_recording(file: Path | str, recording: Recording) -> None:
    """Write the recording as `.npz`."""
    arrays = recording_arrays(recording, str(file))
    with Path(file).open("wb") as out:
        np.savez_compressed(out, **arrays)


def recording_arrays(recording: Recording, file: str) -> dict[str, Any]:
    """The arrays of its `.npz`, to be written into `file`; others may stand beside them there."""
    header: dict[str, Any] = {"format": FORMAT_VERSION, "soulsgym": VERSION, "steps": len(recording)}
    if recording.simulation is not None:
        header["simulation"] = dataclasses.asdict(recording.simulation)
    _check(file, recording)
    own = {} if recording.controls is None else {"controls": recording.controls}
    return own | {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "fights": recording.fights,
        "actions": recording.actions,
        "episodes": recording.episodes,
    }


def read_recording(file: Path | str) -> Recording:
    """Read a `.npz` or `.json` recording; every problem is a RecordingError."""
    path = Path(file)
    try:
        with path.open("rb") as opened:
            start = opened.read(4)
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror}; give a recording in .npz or .json") from error
    if not start:
        raise RecordingError(f"{file}: is empty; record the fight again")
    recording = _read_npz(path) if start[:2] == b"PK" else _read_json(path)
    _check(str(file), recording)
    return recording


def _check(file: str, recording: Recording) -> None:
    count = len(recording.fights)
    for name in ("actions", "episodes"):
        values = getattr(recording, name)
        if values.shape != (count,) or not np.issubdtype(values.dtype, np.integer):
            raise RecordingError(
                f"{file}: {name} is {values.dtype} {list(values.shape)} beside {count} records; "
                "give one whole number for each"
            )
    if recording.controls is not None:
        _check_controls(file, recording.controls, count)
    if count < 2:
        raise RecordingError(f"{file}: holds {count} steps; a recording needs at least 2")
    bad = np.flatnonzero((recording.actions < 0) | (recording.actions >= NUM_ACTIONS))
    if len(bad):
        raise RecordingError(
            f"{file}: actions[{bad[0]}] = {recording.actions[bad[0]]} is not an action; give 0 to {NUM_ACTIONS - 1}"
        )
    for key in OBSERVATION_KEYS:
        rows = recording.fights[key].reshape(count, -1)
        broken = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1))
        if len(broken):
            worst = rows[broken[0]][~(np.abs(rows[broken[0]]) <= LARGEST)][0]
            raise RecordingError(
                f"{file}: observations[{broken[0]}].{key} holds {worst:g}, which no fight shows; "
                "cut the recording before it"
            )
    fights, simulation = len(recording.bounds()), recording.simulation
    if simulation is not None and len(simulation.seeds) != fights:
        raise RecordingError(f"{file}: has {len(simulation.seeds)} seeds for {fights} episodes; give one for each")


def _check_controls(file: str, controls: npt.NDArray[Any], count: int) -> None:
    shape = (count, TICKS_PER_STEP, 2)
    if controls.shape != shape or controls.dtype != np.int8:
        raise RecordingError(
            f"{file}: controls is {controls.dtype} {list(controls.shape)}, not int8 {list(shape)}; record it again"
        )
    directions, buttons = controls[..., 0], controls[..., 1]
    if (
        directions.min() < NO_DIRECTION
        or directions.max() >= len(DIRECTIONS)
        or not np.isin(buttons, list(Button)).all()
    ):
        raise RecordingError(f"{file}: controls holds a direction or a button that there is not; record it again")


# ---------------------------------------------------------------- .npz


def _read_npz(path: Path) -> Recording:
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in ARRAYS if name not in archive.files]
            if missing:
                raise RecordingError(f"{path}: {missing[0]} is missing; write it with write_recording")
            arrays = {name: archive[name] for name in ARRAYS}
            controls = archive["controls"] if "controls" in archive.files else None
    except RecordingError:
        raise
    except Exception as error:  # flipped bits make NumPy and zipfile raise nearly anything, even errors of syntax
        raise RecordingError(f"{path}: is damaged or cut short ({error}); copy or record it again") from error
    header = _header(path, arrays["header"])
    stored = arrays["fights"]
    names = stored.dtype.names or ()
    absent = [name for name in FIGHT.names or () if name not in names]
    if absent or stored.ndim != 1:
        raise RecordingError(f"{path}: fights has no field {(absent or ['?'])[0]!r}; record it again with this version")
    fights = np.zeros(len(stored), FIGHT)
    for name in FIGHT.names or ():
        if stored[name].shape != fights[name].shape:
            raise RecordingError(
                f"{path}: fights.{name} has shape {list(stored[name].shape)}, not {list(fights[name].shape)}; "
                "record it again with this version"
            )
        fights[name] = stored[name]
    simulation = read_simulation(path, header)
    return Recording(fights, arrays["actions"], arrays["episodes"], str(path), simulation, controls)


def _header(path: Path, raw: npt.NDArray[Any]) -> Mapping[str, Any]:
    try:
        header = json.loads(raw.tobytes())
        found = header["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{path}: header is not the JSON of a recording; write it with write_recording") from error
    if found != FORMAT_VERSION:
        raise RecordingError(
            f"{path}: header.format = {found!r} is not known, only {FORMAT_VERSION} is; "
            f"read it with soulsgym {header.get('soulsgym', 'of its time')}"
        )
    checked: Mapping[str, Any] = header
    return checked


def read_simulation(path: Path, header: Mapping[str, Any]) -> Simulation | None:
    """How the simulator made it; None for a recording of the game, or one from before that was written down."""
    if "simulation" not in header:
        return None
    try:
        told = header["simulation"]
        settings = FightSettings(**told["settings"])
        simulation = Simulation(settings, told["data"], tuple(told["seeds"]))
    except (KeyError, TypeError) as error:
        raise RecordingError(f"{path}: header.simulation does not fit ({error}); record it again") from error
    parts = [(f"settings.{key}", getattr(settings, key), kind) for key, kind in get_type_hints(FightSettings).items()]
    parts += [("data", simulation.data, str), *(("seeds", seed, int) for seed in simulation.seeds)]
    for key, value, kind in parts:
        if not isinstance(value, (int, float) if kind is float else kind):
            raise RecordingError(f"{path}: header.simulation.{key} = {value!r} does not fit; record it again")
    return simulation


# ---------------------------------------------------------------- .json


def _read_json(path: Path) -> Recording:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise RecordingError(f"{path}: is neither .npz nor .json; give a recording of a fight") from error
    except json.JSONDecodeError as error:
        raise RecordingError(
            f"{path}: is not JSON: {error.msg} at line {error.lineno} column {error.colno}; it may be cut short"
        ) from error
    if not isinstance(content, Mapping):
        raise RecordingError(f"{path}: is a {type(content).__name__}; give an object with {', '.join(JSON_LISTS)}")
    lists = {key: _list(path, content, key) for key in JSON_LISTS}
    count = len(lists["observations"])
    for key, values in lists.items():
        if len(values) != count:
            raise RecordingError(
                f"{path}: {key} has {len(values)} entries and observations {count}; every list needs one for each step"
            )
    fights = np.zeros(count, FIGHT)
    for i, observation in enumerate(lists["observations"]):
        _fill_observation(path, fights[i], i, observation)
        _fill_mask(path, fights[i], i, lists["infos"][i])
    actions = _whole(path, "actions", lists["actions"])
    episodes = _episodes(path, lists)
    fill_history(fights, episodes, _whole(path, "steps", lists["steps"]))
    return Recording(fights, actions, episodes, str(path))


def _list(path: Path, content: Mapping[str, Any], key: str) -> list[Any]:
    if key not in content:
        raise RecordingError(f"{path}: {key} is missing; a recording has {', '.join(JSON_LISTS)}")
    values = content[key]
    if not isinstance(values, list):
        raise RecordingError(f"{path}: {key} is a {type(values).__name__}; give a list with one entry for each step")
    return values


def _whole(path: Path, key: str, values: list[Any]) -> npt.NDArray[np.int64]:
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            raise RecordingError(f"{path}: {key}[{i}] = {value!r} is not a whole number; give one for each step")
    return np.array(values, np.int64)


def _fill_observation(path: Path, row: Any, i: int, observation: Any) -> None:
    where = f"{path}: observations[{i}]"
    if not isinstance(observation, Mapping):
        raise RecordingError(
            f"{where} is a {type(observation).__name__}; give an object with {', '.join(OBSERVATION_KEYS)}"
        )
    for key in OBSERVATION_KEYS:
        if key not in observation:
            raise RecordingError(f"{where}.{key} is missing; an observation has {', '.join(OBSERVATION_KEYS)}")
        shape = FIGHT[key].shape
        try:
            value = np.array(observation[key], np.float64)
            row[key] = value.reshape(shape)
        except (TypeError, ValueError) as error:
            size = shape[0] if shape else 1
            raise RecordingError(f"{where}.{key} = {observation[key]!r} does not fit; give {size} number(s)") from error


def _fill_mask(path: Path, row: Any, i: int, info: Any) -> None:
    if not isinstance(info, Mapping) or not isinstance(info.get("allowed_actions"), list):
        raise RecordingError(f"{path}: infos[{i}].allowed_actions is missing; give the list of open actions")
    for action in info["allowed_actions"]:
        if isinstance(action, bool) or not isinstance(action, int) or not 0 <= action < NUM_ACTIONS:
            raise RecordingError(
                f"{path}: infos[{i}].allowed_actions holds {action!r}, which is not an action; "
                f"give 0 to {NUM_ACTIONS - 1}"
            )
        row["action_mask"][action] = 1
    row["action_mask"][NOTHING] = 1


def _episodes(path: Path, lists: Mapping[str, list[Any]]) -> npt.NDArray[np.int64]:
    """Number the episodes: a new one begins where their index changes, the steps restart or the fight was over."""
    given, steps = _whole(path, "episodes", lists["episodes"]), _whole(path, "steps", lists["steps"])
    for i, done in enumerate(lists["dones"]):
        if not isinstance(done, bool):
            raise RecordingError(f"{path}: dones[{i}] = {done!r} is not true or false; give one for each step")
    begins = np.zeros(len(given), bool)
    begins[1:] = (np.diff(given) != 0) | (np.diff(steps) <= 0) | np.array(lists["dones"][:-1], bool)
    return np.cumsum(begins).astype(np.int64)


def fill_history(fights: Fights, episodes: npt.NDArray[np.int64], steps: npt.NDArray[np.int64]) -> None:
    """What the observations imply: damage, steps, and how the fight ended."""
    for name in ("hit_by", "landed", "dodged", "boss_move", "player_move", "killed_by"):
        fights[name] = -1
    for low, high in _stretches(episodes):
        part = fights[low:high]
        part["damage_taken"][1:] = np.maximum(0.0, -np.diff(part["player_hp"][:, 0]))
        part["damage_dealt"][1:] = np.maximum(0.0, -np.diff(part["boss_hp"][:, 0]))
        part["taken_total"], part["dealt_total"] = np.cumsum(part["damage_taken"]), np.cumsum(part["damage_dealt"])
        part["step"] = steps[low:high] - steps[low]
        part["time_s"] = part["step"] * 0.1
        if part["boss_hp"][-1, 0] <= 0.0:
            part["outcome"][-1] = Outcome.WON
        elif part["player_hp"][-1, 0] <= 0.0:
            part["outcome"][-1] = Outcome.DIED


def _stretches(episodes: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    cuts = [0, *(np.flatnonzero(np.diff(episodes)) + 1).tolist(), len(episodes)]
    return list(itertools.pairwise(cuts))
