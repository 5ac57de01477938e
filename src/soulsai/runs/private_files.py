"""Files and folders that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

from soulsai.runs.files import cannot_write, sync_folder


def make_private_folder(folder: Path) -> None:
    """Make the folder, or take the rights of others away from it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise cannot_write(folder, error) from error


def write_private(file: Path, data: bytes) -> None:
    """Replace a file in one moment, durably; at no moment can others read it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # One that is there may be readable for others.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
        sync_folder(file.parent)
    except OSError as error:
        raise cannot_write(file, error) from error
