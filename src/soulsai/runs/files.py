"""Writing files so that a killed process or a full disk leaves the old content or the new, never a mixture."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from pathlib import Path

from soulsai.errors import RunError
from soulsgym.errors import MisuseError

FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def write_durably(file: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def write_atomically(file: Path, text: str | bytes, *, durably: bool = True, private: bool = False) -> None:
    """Replace a file by new content in one moment.

    `durably` also survives a power cut, for some milliseconds more; `private`: at no moment can others read it.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    data = text.encode() if isinstance(text, str) else text
    try:
        if private:
            temporary.unlink(missing_ok=True)  # One that is there may be readable for others.
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if durably:
            write_durably(temporary, data)
        else:
            temporary.write_bytes(data)
        os.replace(temporary, file)
        if durably:
            sync_folder(file.parent)
    except OSError as error:
        with contextlib.suppress(OSError):  # What made the writing fail may well forbid this too.
            temporary.unlink(missing_ok=True)
        raise cannot_write(file, error) from error


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may read, or take the rights of others away from it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise cannot_write(folder, error) from error


def write_files(files: Mapping[str, str] | Mapping[str, bytes], folder: Path) -> None:
    """Write texts or bytes to their places in a folder, such as boss/sentinel.toml."""
    for place, text in files.items():
        file = folder / place
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(file, error) from error
        write_atomically(file, text)


def check_new_file(file: Path, what: str, *suffixes: str) -> None:
    """Refuse a file that cannot be made; asked before anything is loaded or played for it."""
    if file.suffix.lower() not in suffixes:
        raise MisuseError(f"{what} {file} ends in {file.suffix!r}; give a name that ends in {' or '.join(suffixes)}")
    if file.exists():
        raise RunError(f"{what} {file} exists; give another name or delete it")
    if not file.parent.is_dir():
        raise RunError(f"folder {file.parent} of the {what} is not there; make it or give another name")
    if not os.access(file.parent, os.W_OK):
        raise cannot_write(file, PermissionError(errno.EACCES, ""))


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's list of names."""
    if os.name == "nt":
        return  # Windows neither can nor must open folders for this.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> RunError:
    """The error for a file or folder that could not be written: what, why, and what to do."""
    if error.errno in FULL:
        return RunError(f"{path}: cannot be written, the disk is full: free some space; runs continue with --resume")
    if error.errno in FORBIDDEN:
        return RunError(f"{path}: cannot be written, permission is missing: allow it, or choose another place")
    return RunError(f"{path}: cannot be written: {reason(error)}; choose another place")


def reason(error: OSError) -> str:
    """The system's own words, without number and path."""
    return (error.strerror or str(error) or type(error).__name__).lower()
