"""What a worker learns before it plays: the run, its config, and whether both sides are of the same make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
import numpy as np

from soulsai.errors import OtherVersion, TransportError
from soulsai.transport.frames import PROTOCOL, BadFrame, Kind, Word, decode, encode, protocol_of
from soulsgym.packages import DISTRIBUTION

EXTRA = f"{DISTRIBUTION}[worker]"
LARGEST_WELCOME = 2 << 20
"""Bytes of the config and all files of a boss."""

Package = Annotated[str, msgspec.Meta(pattern=r"\A[0-9A-Za-z][0-9A-Za-z.+!-]{0,63}\Z")]
"""A version of the package: part of a command that the user is told to type."""
Environment = Annotated[str, msgspec.Meta(pattern=r"\A[ -~]{1,200}\Z")]
PartName = Annotated[str, msgspec.Meta(pattern=r"\A[\w .,+@()-]{1,197}\.py\Z")]
"""A name that can be shown, and typed in a command."""
Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Welcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the learner tells everyone who joins; `package` is the version of soulsgym, `environment` a digest."""

    run: Word
    config_toml: str
    package: Package
    environment: Environment
    files: Mapping[str, str] = {}  # texts of the learner's own boss and overlays, by place
    parts: tuple[tuple[PartName, Digest], ...] = ()  # name and digest of the Python files that a worker needs, too


_welcomes = msgspec.msgpack.Decoder(Welcome)


def pack_welcome(welcome: Welcome) -> bytes:
    """The frame of a welcome; TransportError if workers would refuse it."""
    data = msgspec.msgpack.encode(welcome)
    if len(data) > LARGEST_WELCOME:
        raise TransportError(
            f"config and files of the boss take {len(data) >> 10:,} kB and workers accept {LARGEST_WELCOME >> 10:,} "
            "kB; make the files smaller"
        )
    try:
        _welcomes.decode(data)
    except msgspec.ValidationError as error:
        names = ", ".join(repr(name) for name, _ in welcome.parts)
        raise TransportError(
            f"workers would refuse this run ({error}); for the names of its files use letters, digits, _ and -: {names}"
        ) from error
    return encode(Kind.WELCOME, run=welcome.run, arrays={"welcome": np.frombuffer(data, np.uint8)})


def unpack_welcome(data: bytes) -> Welcome:
    """The welcome in a frame; TransportError says which side to update, or that it is damaged."""
    try:
        stored = decode(data, Kind.WELCOME).arrays.get("welcome")
        if stored is None or not 0 < stored.nbytes <= LARGEST_WELCOME:
            raise BadFrame("invalid", "it holds no welcome, or one that is too long")
        return _welcomes.decode(stored.tobytes())
    except BadFrame as error:
        if error.reason == "version":
            theirs = protocol_of(data) or 0
            side = "on this machine" if theirs > PROTOCOL else "on the learner's machine"
            refusal = OtherVersion(
                f"the learner speaks protocol {theirs} and this machine protocol {PROTOCOL}: update soulsgym {side}: "
                f"pip install --upgrade {DISTRIBUTION}"
            )
            refusal.install = ("--upgrade", EXTRA) if theirs > PROTOCOL else ()
            raise refusal from error
        raise _unreadable(error) from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"invalid: {error}") from error


def refuse_mismatch(theirs: Welcome, *, package: str, environment: str) -> None:
    """TransportError unless the learner's package and environment are the ones of this machine."""
    if theirs.package != package:
        refusal = OtherVersion(
            f"the learner has soulsgym {theirs.package} and this machine {package}, which do not mix; install the "
            f"learner's on this machine: pip install {DISTRIBUTION}=={theirs.package}"
        )
        refusal.install = (f"{EXTRA}=={theirs.package}",)
        raise refusal
    if theirs.environment != environment:
        raise TransportError(
            f"the files of the fight data differ: environment {environment} here, {theirs.environment} at the learner, "
            f"with the same soulsgym {package}; on the side that was changed, type: "
            f"pip install --force-reinstall {DISTRIBUTION}=={package}"
        )


def _unreadable(why: object) -> TransportError:
    return TransportError(f"what the learner says about its run cannot be read ({why}); start the learner again")
