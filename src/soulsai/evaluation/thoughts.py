"""Thoughts: what a policy saw and weighed in a recorded fight, and the file that holds both.

The file is a recording, which everything that reads recordings reads; beside its arrays there are `about` and
`thoughts`, JSON as bytes, and arrays whose names begin with `thought_`. Nothing in it is ever unpickled.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from soulsai.config.schema import DEFAULT_BOSS
from soulsai.runs.fight_files import file_name, own_files, unpack_names
from soulsai.runs.files import write_atomically
from soulsgym.errors import RecordingError, SoulsError
from soulsgym.recordings.recording import Recording, read_recording, recording_arrays
from soulsgym.spec import STANDARD, FightSpec, load_fight
from soulsgym.spec.draw import drawn_spec
from soulsgym.state import NUM_ACTIONS

FORMAT = 1
"""Version of the extras; rises when their meaning changes."""
PROBABILITY, Q = "probability", "q"
MOST_BYTES = 256 * 2**20
"""Extras that would take more memory than this are nobody's thoughts."""
MOST_LAYERS = 64
ZERO = 128
"""What stands for 0 among the 256 shades of an activation."""
FINEST = 127

T = TypeVar("T")
Array = npt.NDArray[Any]
ActionNumber = Annotated[int, msgspec.Meta(ge=0, lt=NUM_ACTIONS)]


@dataclass(frozen=True, eq=False)
class Layer:
    """What one layer of the network said at every decision, in 256 shades."""

    name: str
    shades: npt.NDArray[np.uint8]  # [decisions, units]; 128 is 0
    scale: npt.NDArray[np.float32]  # [units]; the value that the last shade stands for

    def values(self) -> npt.NDArray[np.float32]:
        """The activations, as exactly as the shades tell."""
        return ((self.shades.astype(np.float32) - ZERO) * (self.scale / FINEST)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Thoughts:
    """Per decision what the policy weighed. Steps of a recording without a choice have none."""

    kind: str  # of the scores: probability or q
    actions: tuple[int, ...]  # numbers of the actions the agent chooses from
    records: npt.NDArray[np.int32]  # [decisions] which record was seen, ascending
    scores: npt.NDArray[np.float32]  # [decisions, actions]
    open: npt.NDArray[np.bool_]  # [decisions, actions]
    chosen: npt.NDArray[np.int32]  # [decisions] position among the actions
    value: npt.NDArray[np.float32]  # [decisions] of the state
    layers: tuple[Layer, ...] = ()
    sights: tuple[str, ...] = ()  # names of the numbers that are the observation, the first layer

    def __len__(self) -> int:
        return len(self.records)

    def of(self, low: int, high: int) -> Thoughts:
        """The thoughts at the records from `low` to before `high`, counted from there."""
        rows = slice(*np.searchsorted(self.records, (low, high)).tolist())
        return replace(
            self,
            records=self.records[rows] - np.int32(low),
            scores=self.scores[rows],
            open=self.open[rows],
            chosen=self.chosen[rows],
            value=self.value[rows],
            layers=tuple(replace(layer, shades=layer.shades[rows]) for layer in self.layers),
        )


@dataclass(frozen=True, eq=False)
class FightFile:
    """A file of fights: the recording, what is told about it, and its thoughts or why there are none."""

    recording: Recording
    about: Mapping[str, Any] = field(default_factory=dict)
    thoughts: Thoughts | None = None
    reason: str = ""

    @property
    def boss(self) -> str:
        """The name of the boss; empty if the file does not say."""
        simulation = self.recording.simulation
        return str(self.about.get("boss") or (simulation.settings.boss if simulation else ""))


def to_shades(values: Array, *, each: bool) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Values [decisions, units] in 256 shades and their scale: one for `each` unit, or the same for all."""
    values = np.nan_to_num(np.asarray(values, np.float32), posinf=0.0, neginf=0.0)
    largest = (
        np.abs(values).max(axis=0, initial=0.0) if each else np.full(values.shape[1], np.abs(values).max(initial=0))
    )
    scale = np.where(largest > 0.0, largest, 1.0).astype(np.float32)
    return np.rint(values * (FINEST / scale) + ZERO).astype(np.uint8), scale


def write_fight_file(
    file: Path,
    recording: Recording,
    about: Mapping[str, Any],
    thoughts: Thoughts | None = None,
    *,
    durably: bool = False,
) -> None:
    """Write a recording with what is told about it, in one moment."""
    arrays = {**recording_arrays(recording, str(file)), "about": _json(about)}
    if thoughts is not None:
        arrays |= _arrays(thoughts)
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    write_atomically(file, stream.getvalue(), durably=durably)


def read_fight_file(file: Path) -> FightFile:
    """A recording of any kind with whatever is told about it; RecordingError if even the recording cannot be read."""
    recording = read_recording(file)
    try:
        about, thoughts, reason = _read_extras(file, len(recording))
    except Exception as error:  # flipped bits make NumPy and zipfile raise nearly anything, even errors of syntax
        return FightFile(recording, reason=f"what {file.name} tells about its fights is damaged ({error})")
    return FightFile(recording, about, thoughts, reason)


def about_boss(boss: str, variant: str, draw_seed: int | None = None) -> dict[str, Any]:
    """What a recording tells of the boss: names, and the texts of the user's files, so that it needs no other file.

    `draw_seed` is that of the drawn file of the fight, if it was one.
    """
    if draw_seed is not None:
        about = {"boss": file_name(boss), "variant": f"drawn from seed {draw_seed}", "draw_seed": draw_seed}
        files = own_files(boss, [STANDARD])
    else:
        about = {"boss": file_name(boss), "variant": file_name(variant)}
        files = own_files(boss, [variant])
    return about | ({"files": files} if files else {})


def about_game(boss: str) -> dict[str, Any]:
    """What is told of a recording of the game: whom it shows, for labels are counted in his table."""
    told = about_boss(boss, STANDARD)
    del told["variant"]
    return {"engine": "game"} | told


def spec_of(told: FightFile) -> FightSpec:
    """The fight that a recording tells of, or its seeds belong to; that of the default boss if it tells of none."""
    seed = told.about.get("draw_seed")
    try:
        boss, variant = fight_names(told)
        return load_fight(boss, variant) if seed is None else drawn_spec(boss, seed)
    except SoulsError:
        return load_fight(DEFAULT_BOSS)  # somebody's file may tell anything


def fight_names(told: FightFile) -> tuple[str, str]:
    """Boss and variant of it, by name or as files that stay until the process ends; of a drawn one the standard."""
    about, simulation = told.about, told.recording.simulation
    if "boss" not in about and simulation is not None:
        about = {**about, "boss": simulation.settings.boss, "variant": simulation.settings.variant}
    boss, seed, files = str(about.get("boss") or DEFAULT_BOSS), about.get("draw_seed"), about.get("files", {})
    variant = STANDARD if seed is not None else str(about.get("variant") or STANDARD)
    is_told = isinstance(files, dict) and all(isinstance(text, str) for text in files.values())
    if not is_told or not isinstance(seed, (int, type(None))):
        raise RecordingError(f"{told.recording.source}: what it tells about its boss is damaged; record it again")
    boss, (variant,) = unpack_names(boss, [variant], files, "recording")
    return boss, variant


def fight_of(told: FightFile, number: int) -> FightFile:
    """Fight `number`, counted from 1, alone."""
    low, high = told.recording.bounds()[number - 1]
    recording = told.recording.part(number - 1)
    return replace(told, recording=recording, thoughts=told.thoughts and told.thoughts.of(low, high))


# ---------------------------------------------------------------- arrays


class _Notes(msgspec.Struct):
    """What the arrays of thoughts do not tell."""

    format: Literal[1]
    kind: Literal["probability", "q"]
    actions: Annotated[tuple[ActionNumber, ...], msgspec.Meta(min_length=1)]
    layers: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_LAYERS)]
    sights: tuple[str, ...] = ()


def _arrays(thoughts: Thoughts) -> dict[str, Array]:
    names = tuple(layer.name for layer in thoughts.layers)
    notes = _Notes(FORMAT, thoughts.kind, thoughts.actions, names, thoughts.sights)  # type: ignore[arg-type]
    arrays: dict[str, Array] = {"thoughts": _json(notes)}
    for name in ("records", "scores", "open", "chosen", "value"):
        arrays[f"thought_{name}"] = getattr(thoughts, name)
    for i, layer in enumerate(thoughts.layers):
        arrays |= {f"thought_layer_{i}": layer.shades, f"thought_scale_{i}": layer.scale}
    return arrays


def _json(content: Any) -> npt.NDArray[np.uint8]:
    return np.frombuffer(msgspec.json.encode(content), np.uint8)


def _read_extras(file: Path, count: int) -> tuple[Mapping[str, Any], Thoughts | None, str]:
    if not zipfile.is_zipfile(file):
        return {}, None, "only the fight was recorded, not what the agent thought"
    with np.load(file, allow_pickle=False) as archive:
        if sum(entry.file_size for entry in archive.zip.infolist()) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES >> 20} MB")
        about = _table(archive["about"], dict[str, Any]) if "about" in archive else {}
        if "thoughts" not in archive:
            return about, None, "only the fight was recorded, not what the agent thought"
        try:
            return about, _thoughts(archive, count), ""
        except Exception as error:
            return about, None, f"the thoughts in {file.name} are damaged or of another version ({error})"


def _table(raw: Array, kind: type[T]) -> T:
    return msgspec.json.decode(raw.astype(np.uint8).tobytes(), type=kind)


def _thoughts(archive: Mapping[str, Array], count: int) -> Thoughts:
    notes = _table(archive["thoughts"], _Notes)
    actions = notes.actions
    if len(set(actions)) != len(actions):
        raise ValueError(f"actions {actions}")
    records = _array(archive["thought_records"], np.int32, (-1,))
    number = len(records)
    if number and (records[0] < 0 or records[-1] >= count or (np.diff(records) <= 0).any()):
        raise ValueError("records out of order")
    chosen = _array(archive["thought_chosen"], np.int32, (number,))
    if number and not (chosen.min() >= 0 and chosen.max() < len(actions)):
        raise ValueError("chosen actions that there are not")
    layers = []
    for i, name in enumerate(notes.layers):
        shades = _array(archive[f"thought_layer_{i}"], np.uint8, (number, -1))
        layers.append(Layer(name, shades, _array(archive[f"thought_scale_{i}"], np.float32, (shades.shape[1],))))
    return Thoughts(
        kind=notes.kind,
        actions=actions,
        records=records,
        scores=_array(archive["thought_scores"], np.float32, (number, len(actions))),
        open=_array(archive["thought_open"], np.bool_, (number, len(actions))),
        chosen=chosen,
        value=_array(archive["thought_value"], np.float32, (number,)),
        layers=tuple(layers),
        sights=notes.sights,
    )


def _array(array: Array, kind: Any, shape: tuple[int, ...]) -> Array:
    """The array if it is of this kind and shape, where -1 stands for any length; and finite."""
    fits = array.ndim == len(shape) and all(want in (-1, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.dtype(kind):
        raise ValueError(f"{array.dtype} {list(array.shape)} instead of {np.dtype(kind)} {list(shape)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("numbers that are not finite")
    return array
