"""What a worker learns before it plays: the run, its config, and whether both sides are of the same make."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.errors import TransportError
from soulsai.transport.frames import PROTOCOL, BadFrame, Frame, Kind, decode, encode, protocol_of
from soulsgym.packages import DISTRIBUTION

PACKAGE = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!-]{0,63}")
"""A version of the package: part of a command that the user is told to type."""
ENVIRONMENT = re.compile(r"[ -~]{1,200}")
PARTS_NAME = re.compile(r"[\w .,+@()-]{1,197}\.py")
"""A name that can be shown, and typed in a command."""
DIGEST = re.compile(r"[0-9a-f]{64}")
LARGEST_TEXT = 1 << 20
"""Bytes of a config, or of all files of a boss."""
UPDATE = f"pip install --upgrade {DISTRIBUTION}"
RELEASE = re.compile(r"(\d+(?:\.\d+)*)(.*)")
BEFORE_RELEASE = re.compile(r"[.-]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)[.-]?\d*", re.IGNORECASE)


@dataclass(frozen=True)
class Welcome:
    """What the learner tells everyone who joins; `package` is the version of soulsgym, `environment` a digest."""

    run: str
    config_toml: str
    package: str
    environment: str
    files: Mapping[str, str] = field(default_factory=dict)  # texts of the learner's own boss and overlays, by place
    parts: tuple[tuple[str, str], ...] = ()  # name and digest of the Python files that a worker needs, too


def pack_welcome(welcome: Welcome) -> bytes:
    """The frame of a welcome."""
    arrays = {"config": np.frombuffer(welcome.config_toml.encode(), np.uint8)}
    if welcome.files:
        arrays["files"] = np.frombuffer(json.dumps(dict(welcome.files)).encode(), np.uint8)
        if len(arrays["files"]) > LARGEST_TEXT:
            raise TransportError(
                f"the files of the boss take {len(arrays['files']) >> 10:,} kB and workers accept "
                f"{LARGEST_TEXT >> 10:,} kB; make them smaller"
            )
    for name, _ in welcome.parts:
        if not PARTS_NAME.fullmatch(name):
            raise TransportError(f"the file {name!r} has a name that workers refuse; use letters, digits, _ and -")
    if welcome.parts:
        arrays["parts"] = np.frombuffer(json.dumps(welcome.parts).encode(), np.uint8)
    notes = {"package": welcome.package, "environment": welcome.environment}
    return encode(Kind.WELCOME, run=welcome.run, notes=notes, arrays=arrays)


def unpack_welcome(data: bytes) -> Welcome:
    """The welcome in a frame; TransportError says which side to update, or that it is damaged."""
    try:
        return _welcome(decode(data, kinds=(Kind.WELCOME,)))
    except BadFrame as error:
        if error.reason == "version":
            raise _other_protocol(protocol_of(data) or 0) from error
        raise TransportError(
            f"what the learner says about its run cannot be read ({error}); start the learner again"
        ) from error


def refuse_mismatch(theirs: Welcome, *, package: str, environment: str) -> None:
    """TransportError unless the learner's package and environment are the ones of this machine."""
    if theirs.package != package:
        raise _other_package(theirs.package, package)
    if theirs.environment != environment:
        raise TransportError(
            f"the files of the fight data differ: environment {environment} here, {theirs.environment} at the learner, "
            f"with the same soulsgym {package}; on the side that was changed, type: "
            f"pip install --force-reinstall {DISTRIBUTION}=={package}"
        )


def _welcome(frame: Frame) -> Welcome:
    header, texts = frame.header, {name: _text(name, array) for name, array in frame.arrays.items()}
    if "config" not in texts or not texts.keys() <= {"config", "files", "parts"}:
        raise BadFrame("invalid", "not the arrays of a welcome")
    if header.notes.keys() != {"package", "environment"}:
        raise BadFrame("invalid", "not the notes of a welcome")
    return Welcome(
        header.run,
        texts["config"],
        _matching(header.notes["package"], PACKAGE),
        _matching(header.notes["environment"], ENVIRONMENT),
        _files(texts.get("files", "{}")),
        _parts(texts.get("parts", "[]")),
    )


def _text(name: str, array: npt.NDArray[Any]) -> str:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise BadFrame("invalid", f"{name[:80]!r} is not the array of a welcome")
    if len(array) > LARGEST_TEXT:
        raise BadFrame("invalid", f"{name[:80]!r} is larger than allowed")
    try:
        return array.tobytes().decode()
    except UnicodeDecodeError as error:
        raise BadFrame("invalid", f"{name[:80]!r} is no text: {error}") from error


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame("invalid", f"the {name} are no JSON: {error}") from error


def _parts(text: str) -> tuple[tuple[str, str], ...]:
    pairs = _json("parts", text)
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise BadFrame("invalid", "the parts are no pairs of name and digest")
    return tuple((_matching(name, PARTS_NAME, "name of a file"), _matching(digest, DIGEST)) for name, digest in pairs)


def _files(text: str) -> dict[str, str]:
    files = _json("files", text)
    if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        raise BadFrame("invalid", "the files are no table of texts")
    return files


def _matching(value: object, pattern: re.Pattern[str], what: str = "version") -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadFrame("invalid", f"{str(value)[:80]!r} is no {what}")
    return value


def _other_protocol(theirs: int) -> TransportError:
    side = "on this machine" if theirs > PROTOCOL else "on the learner's machine"
    return TransportError(
        f"the learner speaks protocol {theirs} and this machine protocol {PROTOCOL}: update soulsgym {side}: {UPDATE}"
    )


def _other_package(theirs: str, ours: str) -> TransportError:
    is_ours_older = _order(ours) < _order(theirs)
    side, version = ("this machine", theirs) if is_ours_older else ("the learner's machine", ours)
    older = f"update {side}: pip install {DISTRIBUTION}=={version}"
    if _order(ours) == _order(theirs):
        older = f"install the learner's on this machine: pip install {DISTRIBUTION}=={theirs}"
    return TransportError(f"the learner has soulsgym {theirs} and this machine {ours}, which do not mix; {older}")


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Sorts versions: by the numbers, and what came before a release before it."""
    found = RELEASE.match(version)
    if not found:
        return (), False, ""
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    is_before = BEFORE_RELEASE.match(found[2]) is not None
    return tuple(numbers), not is_before, found[2] if is_before else ""
