"""Policies as files for play elsewhere: ONNX, or TorchScript.

Prefer ONNX: it is data, run by onnxruntime. Loading TorchScript runs the code inside the file, so load only files that
you trust. Both take observations [n, d] and masks of open actions [n, a], for any n, and give the chosen actions [n]
and the scores of all actions [n, a].
"""

from __future__ import annotations

import io
import json
import logging
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from soulsai.acting.policy import NetworkPolicy
from soulsai.config import config_from_toml, config_to_toml
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, RunError
from soulsai.networks import ActorCritic, QNetwork
from soulsai.ops.masked import masked_argmax
from soulsai.runs.fight_files import files_of, unpack, with_short_names
from soulsai.runs.files import cannot_write, reason, write_durably
from soulsai.runs.versions import package_versions
from soulsgym.errors import MisuseError
from soulsgym.packages import require

FORMAT = 1
"""Version of what is in the file beside the network; rises when its meaning changes."""
ONNX, TORCHSCRIPT = ".onnx", ".pt"
SUFFIXES = (ONNX, TORCHSCRIPT)
INPUTS, OUTPUTS = ("observation", "mask"), ("action", "scores")
PREFIX = "souls."
"""Before the names of our entries in the metadata of an ONNX file."""
NOTES = "souls.json"
"""The file inside a TorchScript file that holds the metadata."""
SOURCES = ".debug_pkl"
"""How the files inside a TorchScript file end that only tell where its operations came from."""
EXAMPLES = 2
"""Rows of the example that the network is traced with; 1 would be taken for a fixed number."""

Network = ActorCritic | QNetwork
Observations = npt.NDArray[np.float32]
Masks = npt.NDArray[np.bool_]
Actions = npt.NDArray[np.int64]


class Greedy(nn.Module):
    """Networks and the choice of the best open action, as one module."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks.values())  # so that their weights count as this module's
        self._policy = NetworkPolicy(*networks.values())

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The best open action of each row, and the scores of all."""
        scores = self._policy.scores(observation)
        return masked_argmax(scores, mask), scores


class OnnxPolicy:
    """A policy of an ONNX file."""

    def __init__(self, session: Any, observation_size: int, num_actions: int) -> None:
        self.observation_size, self.num_actions = observation_size, num_actions
        self._session = session

    def choose(self, observations: Observations, masks: Masks) -> Actions:
        """The best open action of every row."""
        given = dict(zip(INPUTS, (observations, masks), strict=True))
        chosen: Actions = self._session.run([OUTPUTS[0]], given)[0]
        return chosen


class TorchScriptPolicy:
    """A policy of a TorchScript file."""

    def __init__(self, module: torch.jit.ScriptModule, observation_size: int, num_actions: int) -> None:
        self.observation_size, self.num_actions = observation_size, num_actions
        self._module = module

    @torch.no_grad()
    def choose(self, observations: Observations, masks: Masks) -> Actions:
        """The best open action of every row."""
        action, _ = self._module(torch.from_numpy(observations), torch.from_numpy(masks))
        chosen: Actions = action.numpy()
        return chosen


ExportedPolicy = OnnxPolicy | TorchScriptPolicy


def is_exported(path: Path) -> bool:
    """Whether the name is one of an exported policy."""
    return path.suffix.lower() in SUFFIXES


def refuse_target(path: Path) -> None:
    """Refuse a file that a policy cannot be exported to; asked before anything is loaded."""
    if not is_exported(path):
        raise MisuseError(f"{path} ends in {path.suffix!r}: give a name that ends in {ONNX} or {TORCHSCRIPT}")
    if path.exists():
        raise RunError(f"{path} exists: give another name or delete it")
    if not path.parent.is_dir():
        raise RunError(f"{path}: the folder {path.parent} is not there: make it or give another name")


def export_policy(
    networks: Mapping[str, Network], config: Config, path: Path, *, observation_size: int, num_actions: int
) -> None:
    """Write networks, without noise and on the CPU, with their config to a new file; the suffix says what kind."""
    refuse_target(path)
    about = _about(config, observation_size, num_actions)
    module = Greedy(networks).eval()
    example = torch.zeros(EXAMPLES, observation_size), torch.ones(EXAMPLES, num_actions, dtype=torch.bool)
    write = _onnx_bytes if path.suffix.lower() == ONNX else _torchscript_bytes
    with torch.no_grad(), _without_warnings():
        data = write(module, example, about)
    _write_new(path, data)


def load_exported(path: Path) -> tuple[Config, ExportedPolicy]:
    """The policy of an exported file, to play on the CPU, and the config it was trained with.

    A TorchScript file (.pt) may hold any code, which loading runs: load only files that you trust, or use ONNX.
    """
    if not is_exported(path):
        raise MisuseError(f"{path} ends in {path.suffix!r}: an exported policy ends in {ONNX} or {TORCHSCRIPT}")
    data = _read(path)
    kept, about = _load_onnx(path, data) if path.suffix.lower() == ONNX else _load_torchscript(path, data)
    config, observation_size, num_actions = _read_about(path, about)
    kind = OnnxPolicy if path.suffix.lower() == ONNX else TorchScriptPolicy
    policy = kind(kept, observation_size, num_actions)
    _try(path, policy)
    return config, policy


def _about(config: Config, observation_size: int, num_actions: int) -> dict[str, str]:
    files = files_of(config)
    own = {"files": json.dumps(files)} if files else {}
    return own | {
        "format": str(FORMAT),
        "config": config_to_toml(with_short_names(config)),
        "observation_size": str(observation_size),
        "num_actions": str(num_actions),
        "soulsgym": package_versions().get("soulsgym", ""),
    }


def _read_about(path: Path, about: Mapping[str, str]) -> tuple[Config, int, int]:
    written = about.get("format", "")
    if not written:
        raise RunError(f"{path}: was not written by `souls export`: export the run again")
    if written != str(FORMAT):
        raise RunError(f"{path}: has format {written}, this soulsgym reads {FORMAT}: update soulsgym or export again")
    try:
        source = f"config in {path}"
        config = unpack(config_from_toml(about["config"], source), _files(about), source)
        return config, int(about["observation_size"]), int(about["num_actions"])
    except (KeyError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise _damaged(path, repr(error)) from error


def _files(about: Mapping[str, str]) -> dict[str, str]:
    files = json.loads(about.get("files", "{}"))
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise ValueError("its files are no table of texts")
    return files


def _onnx_bytes(module: Greedy, example: tuple[Tensor, Tensor], about: Mapping[str, str]) -> bytes:
    require("onnx", "onnxscript")
    rows = torch.export.Dim("rows")
    with _quiet_logger("torch.onnx"):
        program = torch.onnx.export(
            module,
            example,
            dynamo=True,
            input_names=INPUTS,
            output_names=OUTPUTS,
            dynamic_shapes={name: {0: rows} for name in INPUTS},
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    for node in model.graph.node:
        del node.metadata_props[:]  # where in whose source tree it came from
    for name, text in about.items():
        model.metadata_props.add(key=PREFIX + name, value=text)
    data: bytes = model.SerializeToString()
    return data


def _torchscript_bytes(module: Greedy, example: tuple[Tensor, Tensor], about: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    traced = torch.jit.freeze(torch.jit.trace(module, example))  # type: ignore[no-untyped-call]
    torch.jit.save(traced, buffer, _extra_files={NOTES: json.dumps(about).encode()})
    return _without_sources(buffer)


def _without_sources(archive: io.BytesIO) -> bytes:
    """Leave out where in whose source tree every operation came from."""
    kept = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(kept, "w") as new:
        for name in old.namelist():
            if not name.endswith(SOURCES):
                new.writestr(zipfile.ZipInfo(name), old.read(name))
    return kept.getvalue()


def _load_onnx(path: Path, data: bytes) -> tuple[Any, dict[str, str]]:
    require("onnxruntime")
    import onnxruntime  # type: ignore[import-untyped]
    from onnxruntime.capi import onnxruntime_pybind11_state as errors  # type: ignore[import-untyped]

    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    except (errors.Fail, errors.InvalidArgument, errors.InvalidGraph, errors.InvalidProtobuf, errors.NotImplemented,
            errors.RuntimeException) as error:  # fmt: skip
        raise _damaged(path, str(error)) from error
    notes = session.get_modelmeta().custom_metadata_map
    return session, {key.removeprefix(PREFIX): text for key, text in notes.items() if key.startswith(PREFIX)}


def _load_torchscript(path: Path, data: bytes) -> tuple[torch.jit.ScriptModule, dict[str, str]]:
    extra: dict[str, Any] = {NOTES: ""}
    try:
        with _without_warnings():
            module = torch.jit.load(io.BytesIO(data), "cpu", _extra_files=extra)  # type: ignore[no-untyped-call]
        return module, json.loads(extra[NOTES] or "{}")
    except (RuntimeError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _try(path: Path, policy: ExportedPolicy) -> None:
    """One choice, so that a network that does not fit its own description is found now and not in a fight."""
    observations = np.zeros((1, policy.observation_size), np.float32)
    try:
        chosen = policy.choose(observations, np.ones((1, policy.num_actions), np.bool_))
    except Exception as error:  # the errors of two foreign runtimes, which have no base in common
        raise _damaged(path, str(error)) from error
    if chosen.shape != (1,) or not 0 <= chosen[0] < policy.num_actions:
        raise _damaged(path, f"it chose {chosen.tolist()} of {policy.num_actions} actions")


def _damaged(path: Path, why: str) -> RunError:
    text = why.strip().splitlines()[0] if why.strip() else "unknown reason"
    return RunError(f"{path}: is no exported policy or is damaged ({text}): export the run again")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise RunError(f"{path}: there is no such file: write it with `souls export`") from error
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {reason(error)}") from error


def _write_new(path: Path, data: bytes) -> None:
    """The file gets its name when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_durably(temporary, data)
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Tracing warns of shapes that are checked and of its own age; nothing a user could act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _quiet_logger(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
