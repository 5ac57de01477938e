"""Policies that `souls export` has written as ONNX files, played with onnxruntime alone: neither torch nor soulsai."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError, PolicyError
from soulsgym.packages import require

FORMAT = 1
"""Version of what a file says about its policy; rises when its meaning changes."""
PREFIX = "souls."
"""Before the names of our entries in the metadata of an ONNX file."""
INPUTS, OUTPUTS = ("observation", "mask"), ("action", "scores")

Observations = npt.NDArray[np.float32]
Masks = npt.NDArray[np.bool_]
Actions = npt.NDArray[np.int64]


class PolicyNotes(msgspec.Struct, frozen=True, kw_only=True):
    """What an exported policy says about itself; in the file's metadata each value is JSON."""

    format: int
    soulsgym: str
    """Version that exported it."""
    observation_names: tuple[str, ...]
    """The numbers of an observation, in order."""
    action_names: tuple[str, ...]
    """The actions it chooses from, by position."""
    boss: str = ""
    variant: str = ""
    encoder: dict[str, str | int | tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Name and history of the encoder that writes its observations, and its bosses if there are several."""
    decisions: bool = False
    """Whether it is asked only where it has a choice; the other steps do nothing."""
    masks: bool = True
    """Whether it was trained with masks; otherwise all actions are open."""
    gym_id: str = ""
    """Gymnasium environment, if it does not play fights."""
    config: str = ""
    """The whole config of its training, TOML."""
    files: dict[str, str] = msgspec.field(default_factory=dict)
    """Texts of the user's own boss and overlays."""


class OnnxPolicy:
    """Chooses the best open action of every observation."""

    def __init__(self, session: Any, notes: PolicyNotes) -> None:
        self.notes = notes
        self._session = session

    def choose(self, observations: Observations, masks: Masks | None = None) -> Actions:
        """The positions [n] of the best open actions for observations [n, d] and masks of open actions [n, a]."""
        shape = len(observations), len(self.notes.observation_names)
        opened = np.ones((len(observations), len(self.notes.action_names)), np.bool_) if masks is None else masks
        if observations.shape != shape or opened.shape != (shape[0], len(self.notes.action_names)):
            raise MisuseError(
                f"observations are {list(observations.shape)} and masks {list(opened.shape)}; give "
                f"[n, {shape[1]}] and [n, {len(self.notes.action_names)}]"
            )
        given = (observations.astype(np.float32, copy=False), opened.astype(np.bool_, copy=False))
        chosen: Actions = self._session.run([OUTPUTS[0]], dict(zip(INPUTS, given, strict=True)))[0]
        return chosen


def load_policy(path: Path | str) -> OnnxPolicy:
    """The policy of an ONNX file that `souls export` has written."""
    require("onnxruntime")
    import onnxruntime  # type: ignore[import-untyped]
    from onnxruntime.capi import onnxruntime_pybind11_state as errors  # type: ignore[import-untyped]

    try:
        session = onnxruntime.InferenceSession(read_policy_file(path), providers=["CPUExecutionProvider"])
    except (errors.Fail, errors.InvalidArgument, errors.InvalidGraph, errors.InvalidProtobuf, errors.NotImplemented,
            errors.RuntimeException) as error:  # fmt: skip
        raise damaged(path, str(error)) from error
    entries = session.get_modelmeta().custom_metadata_map
    own = {key.removeprefix(PREFIX): text for key, text in entries.items() if key.startswith(PREFIX)}
    policy = OnnxPolicy(session, read_notes(path, own))
    try_policy(path, policy)
    return policy


def read_policy_file(path: Path | str) -> bytes:
    """The content of an exported policy's file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise PolicyError(f"{path}: there is no such file: write it with `souls export`") from error
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from error


def write_notes(notes: PolicyNotes) -> dict[str, str]:
    """The entries for a file's metadata."""
    return {name: json.dumps(value) for name, value in msgspec.to_builtins(notes).items()}


def read_notes(path: Path | str, entries: Mapping[str, str]) -> PolicyNotes:
    """What the entries of a file's metadata say."""
    if "format" not in entries:
        raise PolicyError(f"{path}: was not written by `souls export`: export the run again")
    if entries["format"] != str(FORMAT):
        raise PolicyError(
            f"{path}: has format {entries['format']}, this soulsgym reads {FORMAT}: update soulsgym or export again"
        )
    try:
        return msgspec.convert({name: json.loads(text) for name, text in entries.items()}, PolicyNotes)
    except (ValueError, msgspec.ValidationError) as error:
        raise damaged(path, str(error)) from error


def try_policy(path: Path | str, policy: Any) -> None:
    """One choice, so that a network that does not fit its own description is found now and not in a fight."""
    size, actions = len(policy.notes.observation_names), len(policy.notes.action_names)
    try:
        chosen = policy.choose(np.zeros((1, size), np.float32), np.ones((1, actions), np.bool_))
    except Exception as error:  # the errors of foreign runtimes, which have no base in common
        raise damaged(path, str(error)) from error
    if chosen.shape != (1,) or not 0 <= chosen[0] < actions:
        raise damaged(path, f"it chose {chosen.tolist()} of {actions} actions")


def damaged(path: Path | str, why: str) -> PolicyError:
    """The error for a file that holds no policy."""
    text = why.strip().splitlines()[0] if why.strip() else "unknown reason"
    return PolicyError(f"{path}: is not an exported policy, or is damaged ({text}): export the run again")
