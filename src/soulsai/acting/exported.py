"""Policies as files for play elsewhere: ONNX, or TorchScript.

Prefer ONNX: it is data, run by onnxruntime. Loading TorchScript runs the code inside the file, so load only files that
you trust. Both take observations [n, d] and masks of open actions [n, a], for any n, and give the chosen actions [n]
and the scores of all actions [n, a].
"""

from __future__ import annotations

import io
import json
import logging
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from msgspec.structs import replace
from torch import Tensor, nn

from soulsai.acting.policy import NetworkPolicy
from soulsai.config import config_from_toml, config_to_toml
from soulsai.config.schema import Config
from soulsai.networks import PolicyNetwork
from soulsai.ops.masked import masked_argmax
from soulsai.runs.fight_files import file_name, files_of, remove_parts, unpack, with_short_names
from soulsai.runs.files import check_new_file, write_atomically
from soulsgym.errors import MisuseError
from soulsgym.packages import VERSION, require
from soulsgym.players.onnx_policy import (
    FORMAT,
    INPUTS,
    OUTPUTS,
    PREFIX,
    Actions,
    Masks,
    Observations,
    OnnxPolicy,
    PolicyNotes,
    damaged,
    load_policy,
    read_notes,
    read_policy_file,
    try_policy,
    write_notes,
)

ONNX, TORCHSCRIPT = ".onnx", ".pt"
SUFFIXES = (ONNX, TORCHSCRIPT)
NOTES = "souls.json"
"""The file inside a TorchScript file that holds the metadata."""
SOURCES = ".debug_pkl"
"""How the files inside a TorchScript file end that only tell where its operations came from."""
EXAMPLES = 2
"""Rows of the example that the network is traced with; 1 would be taken for a fixed number."""

Names = tuple[str, ...]


class Greedy(nn.Module):
    """Networks and the choice of the best open action, as one module."""

    def __init__(self, networks: Mapping[str, PolicyNetwork]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks.values())  # so that their weights count as this module's
        self._policy = NetworkPolicy(*networks.values())

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The best open action of each row, and the scores of all."""
        scores = self._policy.scores(observation)
        return masked_argmax(scores, mask), scores


class TorchScriptPolicy:
    """A policy of a TorchScript file."""

    def __init__(self, module: torch.jit.ScriptModule, notes: PolicyNotes) -> None:
        self.notes = notes
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


def export_policy(
    networks: Mapping[str, PolicyNetwork], config: Config, path: Path, *, observation_names: Names, action_names: Names
) -> None:
    """Write networks, without noise and on the CPU, with notes about them to a new file; the suffix says what kind."""
    check_new_file(path, "policy", *SUFFIXES)
    about = write_notes(_notes(config, observation_names, action_names))
    module = Greedy(networks).eval()
    observations = torch.zeros(EXAMPLES, len(observation_names))
    example = observations, torch.ones(EXAMPLES, len(action_names), dtype=torch.bool)
    write = _onnx_bytes if path.suffix.lower() == ONNX else _torchscript_bytes
    # Tracing warns of shapes that are checked and of its own age; nothing a user could act on.
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        data = write(module, example, about)
    write_atomically(path, data)


def load_exported(path: Path) -> tuple[Config, ExportedPolicy]:
    """The policy of an exported file, to play on the CPU, and the config it was trained with.

    A TorchScript file (.pt) may hold any code, which loading runs: load only files that you trust, or use ONNX.
    """
    if not is_exported(path):
        raise MisuseError(f"{path} ends in {path.suffix!r}: an exported policy ends in {ONNX} or {TORCHSCRIPT}")
    policy = load_policy(path) if path.suffix.lower() == ONNX else _load_torchscript(path)
    source = f"config in {path}"
    config = remove_parts(config_from_toml(policy.notes.config, source), source)
    return unpack(config, policy.notes.files, source), policy


def _notes(config: Config, observation_names: Names, action_names: Names) -> PolicyNotes:
    notes = PolicyNotes(
        format=FORMAT,
        soulsgym=VERSION,
        observation_names=observation_names,
        action_names=action_names,
        masks=config.actions.masks,
        config=config_to_toml(with_short_names(config)),
        files=files_of(config),
    )
    if config.world == "gym":
        return replace(notes, gym_id=config.gym.id)
    return replace(
        notes,
        boss=file_name(config.fight.main_boss),
        variant=file_name(config.fight.main_variant),
        encoder={"name": config.encoder.name, "history": config.encoder.history}
        | ({"bosses": config.fight.bosses} if config.fight.bosses else {}),
        decisions=config.fight.decisions,
    )


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
    return _strip_sources(buffer)


def _strip_sources(archive: io.BytesIO) -> bytes:
    """Leave out where in whose source tree every operation came from."""
    kept = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(kept, "w") as new:
        for name in old.namelist():
            if not name.endswith(SOURCES):
                new.writestr(zipfile.ZipInfo(name), old.read(name))
    return kept.getvalue()


def _load_torchscript(path: Path) -> TorchScriptPolicy:
    data, extra = read_policy_file(path), {NOTES: ""}
    try:
        with warnings.catch_warnings(action="ignore"):
            module = torch.jit.load(io.BytesIO(data), "cpu", _extra_files=extra)  # type: ignore[no-untyped-call]
        entries = json.loads(extra[NOTES] or "{}")
    except (RuntimeError, ValueError) as error:
        raise damaged(path, str(error)) from error
    policy = TorchScriptPolicy(module, read_notes(path, entries))
    try_policy(path, policy)
    return policy


@contextmanager
def _quiet_logger(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
