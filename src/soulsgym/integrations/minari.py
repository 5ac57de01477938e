"""Recordings as Minari datasets, and back.

The observations are those of the environment without an encoder, the rewards its own. What else a recording holds is in
the infos (`fight`), so that it comes back whole. A dataset of somebody else's needs `action_mask` in its infos.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.actions import NOTHING
from soulsgym.batch import FightBatch
from soulsgym.envs.registry import SIMULATED
from soulsgym.envs.simulated import FightEnv
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.packages import require
from soulsgym.recordings.playback import RecordedEngine
from soulsgym.recordings.recording import Recording, fill_history, read_simulation
from soulsgym.spec import is_path
from soulsgym.state import FIGHT, OBSERVATION_KEYS, Fights, Outcome, observation_of

MASK, REST, OURS = "action_mask", "fight", "souls"
"""In the infos: open actions, and what of the record is no observation; in the metadata: the rest of a recording."""
REST_FIELDS = tuple(name for name in FIGHT.names or () if name not in (*OBSERVATION_KEYS, MASK))


def export_dataset(
    recording: Recording, dataset_id: str, *, boss: str, variant: str, about: Mapping[str, Any] | None = None
) -> Path:
    """Write a recording as a new local dataset; its folder. `about` is kept with it, as JSON."""
    require("minari", "h5py")
    import minari
    from minari.data_collector import EpisodeBuffer
    from minari.storage import get_dataset_path

    env = _environment(recording, boss, variant)
    buffers = [EpisodeBuffer(**episode) for episode in _episodes(recording, env)]
    path = Path(get_dataset_path(dataset_id))
    if path.exists():
        raise MisuseError(f"dataset {dataset_id!r} exists in {path}; choose another name, or remove it")
    try:
        with warnings.catch_warnings(action="ignore"):  # about authors and links
            dataset = minari.create_dataset_from_buffers(dataset_id, buffers, env=env, jpeg_encoding=False)
        told = {"about": dict(about or {})}
        if recording.simulation is not None:
            told["simulation"] = dataclasses.asdict(recording.simulation)
        dataset.storage.update_metadata({OURS: json.dumps(told)})
    except ValueError as error:
        raise MisuseError(f"dataset {dataset_id!r} cannot be made: {error}") from error
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)  # half of a dataset is none
        raise
    finally:
        env.close()
    return path


def import_dataset(dataset_id: str) -> tuple[Recording, dict[str, Any]]:
    """A local dataset of fights as a recording, and what is told about it; RecordingError if it is none."""
    require("minari", "h5py")
    import minari

    try:
        dataset = minari.load_dataset(dataset_id)
    except FileNotFoundError as error:
        raise RecordingError(f"dataset {dataset_id!r} is not here; list them with `minari list local`") from error
    except Exception as error:  # whatever a damaged file makes of h5py and json
        raise RecordingError(f"dataset {dataset_id!r} cannot be read ({error}); make or download it again") from error
    keys, kwargs = getattr(dataset.observation_space, "spaces", {}), getattr(dataset.env_spec, "kwargs", {})
    if not set(OBSERVATION_KEYS) <= set(keys) or kwargs.get("zero_based"):
        raise RecordingError(
            f"dataset {dataset_id!r} does not hold the observations of a fight; a recording needs those of an "
            "environment without an encoder, such as SoulsGymIudexSimDemo-v0"
        )
    try:
        fights = [_fights(episode) for episode in dataset.iterate_episodes()]
        actions = [
            np.concatenate([[NOTHING], episode.actions]).astype(np.int64) for episode in dataset.iterate_episodes()
        ]
    except RecordingError as error:
        raise RecordingError(f"dataset {dataset_id!r} {error}") from error
    except Exception as error:
        raise RecordingError(f"dataset {dataset_id!r} is damaged ({error}); make or download it again") from error
    if not fights:
        raise RecordingError(f"dataset {dataset_id!r} has no episode; give one that has")
    numbers = np.repeat(np.arange(len(fights)), [len(one) for one in fights])
    told = _told(dataset.storage.metadata.get(OURS, "{}"))
    simulation = read_simulation(Path(dataset_id), told)
    about = told.get("about") or _about(kwargs)
    return Recording(np.concatenate(fights), np.concatenate(actions), numbers, dataset_id, simulation), about


def _environment(recording: Recording, boss: str, variant: str) -> gymnasium.Env[Any, Any]:
    """The environment in which the recording could have been made."""
    simulation = recording.simulation
    changes, phase = (simulation.settings.changes, simulation.settings.phase) if simulation else (True, 1)
    wanted = {"boss": boss, "changes": changes}
    name = next((each for each, fixed in SIMULATED.items() if {**fixed, **wanted} == fixed), "SoulsGymSim-v0")
    keywords: dict[str, Any] = {} if name != "SoulsGymSim-v0" else wanted
    if phase != 1:
        keywords["phase"] = phase
    if variant != "standard":
        keywords["variant"] = variant
    env = gymnasium.make(name, disable_env_checker=True, **keywords)
    if env.spec is not None:  # which the dataset keeps: where a file lies here is nobody else's business
        env.spec.kwargs |= {key: Path(value).name for key, value in keywords.items() if is_path(str(value))}
    return env


def _episodes(recording: Recording, env: gymnasium.Env[Any, Any]) -> Iterator[dict[str, Any]]:
    """What Minari wants to know of each fight."""
    made = env.unwrapped
    assert isinstance(made, FightEnv)
    engine = RecordedEngine(recording)
    batch = FightBatch(engine, made.batch.parts, autoreset=AutoresetMode.DISABLED)
    seeds = recording.simulation.seeds if recording.simulation else [None] * len(recording.bounds())
    for (low, high), seed in zip(recording.bounds(), seeds, strict=True):
        fights, rewards = recording.fights[low:high], list[float]()
        batch.begin()
        for action in recording.actions[low + 1 : high]:
            rewards.append(float(batch.step(np.array([action])).rewards[0]))
        over, last = bool(fights["outcome"][-1] != Outcome.RUNNING), np.arange(1, high - low) == high - low - 1
        infos = {MASK: fights[MASK], REST: {name: fights[name] for name in REST_FIELDS}}
        yield {
            "observations": observation_of(fights), "actions": recording.actions[low + 1 : high], "rewards": rewards,
            "terminations": last & over, "truncations": last & (not over), "infos": infos, "seed": seed,
        }  # fmt: skip


def _fights(episode: Any) -> Fights:
    """The records of an episode; without our own infos, what the observations imply."""
    count, infos = len(episode.actions) + 1, episode.infos or {}
    fights = np.zeros(count, FIGHT)
    for key in OBSERVATION_KEYS:
        fights[key] = np.reshape(episode.observations[key], fights[key].shape)
    if MASK not in infos:
        raise RecordingError(f"has no {MASK} in its infos; collect it with record_infos=True")
    fights[MASK] = infos[MASK]
    rest = infos.get(REST, {})
    if set(rest) >= set(REST_FIELDS):
        for name in REST_FIELDS:
            fights[name] = rest[name]
    else:
        fill_history(fights, np.zeros(count, np.int64), np.arange(count))
    return fights


def _told(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) and isinstance(told.get("about", {}), dict) else {}


def _about(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Boss and variant, if the environment names them; a path of another machine says nothing."""
    return {
        key: kwargs[key] for key in ("boss", "variant") if isinstance(kwargs.get(key), str) and not is_path(kwargs[key])
    }
