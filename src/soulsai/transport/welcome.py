"""What a worker learns before it plays: the run, its config, and whether both sides are of the same make."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from soulsai.errors import TransportError
from soulsai.transport.frames import PROTOCOL, BadFrame, Frame, Kind, decode, encode, protocol_of

PACKAGE = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!-]{0,63}")
"""A version of the package: part of a command that the user is told to type."""
ENVIRONMENT = re.compile(r"[ -~]{1,200}")
LARGEST_CONFIG = 1 << 20
UPDATE = "pip install --upgrade soulsgym"
RELEASE = re.compile(r"(\d+(?:\.\d+)*)(.*)")
BEFORE_RELEASE = re.compile(r"[.-]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)[.-]?\d*", re.IGNORECASE)


@dataclass(frozen=True)
class Welcome:
    """What the learner tells everyone who joins; `package` is the version of soulsgym, `environment` a digest."""

    run: str
    config_toml: str
    package: str
    environment: str


def pack_welcome(welcome: Welcome) -> bytes:
    """The frame of a welcome."""
    config = np.frombuffer(welcome.config_toml.encode(), np.uint8)
    notes = {"package": welcome.package, "environment": welcome.environment}
    return encode(Kind.WELCOME, run=welcome.run, notes=notes, arrays={"config": config})


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
            f"pip install --force-reinstall soulsgym=={package}"
        )


def _welcome(frame: Frame) -> Welcome:
    header, config = frame.header, frame.arrays.get("config")
    if config is None or len(frame.arrays) > 1 or config.dtype != np.uint8 or config.ndim != 1:
        raise BadFrame("invalid", "not the array of a welcome")
    if len(config) > LARGEST_CONFIG:
        raise BadFrame("invalid", "the config is larger than allowed")
    try:
        text = config.tobytes().decode()
    except UnicodeDecodeError as error:
        raise BadFrame("invalid", f"the config is no text: {error}") from error
    if header.notes.keys() != {"package", "environment"}:
        raise BadFrame("invalid", "not the notes of a welcome")
    return Welcome(
        header.run,
        text,
        _matching(header.notes["package"], PACKAGE),
        _matching(header.notes["environment"], ENVIRONMENT),
    )


def _matching(value: object, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadFrame("invalid", f"{str(value)[:80]!r} is no version")
    return value


def _other_protocol(theirs: int) -> TransportError:
    side = "on this machine" if theirs > PROTOCOL else "on the learner's machine"
    return TransportError(
        f"the learner speaks protocol {theirs} and this machine protocol {PROTOCOL}: update soulsgym {side}: {UPDATE}"
    )


def _other_package(theirs: str, ours: str) -> TransportError:
    is_ours_older = _order(ours) < _order(theirs)
    side, version = ("this machine", theirs) if is_ours_older else ("the learner's machine", ours)
    older = f"update {side}: pip install soulsgym=={version}"
    if _order(ours) == _order(theirs):
        older = f"install the learner's on this machine: pip install soulsgym=={theirs}"
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
