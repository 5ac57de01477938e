"""The manifest of a checkpoint: its format, and size and checksum of each of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from soulsai.errors import RunError
from soulsai.runs.files import reason
from soulsai.runs.stamps import utc_stamp
from soulsai.runs.versions import package_versions

FORMAT = 1
MANIFEST = "manifest.json"


class Damage(Exception):
    """Something in a checkpoint's folder is not what was written; names the file and says why."""


def manifest_text(number: int, contents: Mapping[str, bytes]) -> str:
    """The manifest for files with these contents."""
    files = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in contents.items()}
    about = {"format": FORMAT, "number": number, "time": utc_stamp(), "versions": package_versions(), "files": files}
    return json.dumps(about, indent=1)


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and checksum by file name."""
    file = folder / MANIFEST
    try:
        manifest = json.loads(read_bytes(file))
        number, written, files = manifest["number"], manifest["format"], manifest["files"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damage(f"{file} is not a manifest ({error})") from error
    if isinstance(written, int) and written > FORMAT:
        made_by = manifest.get("versions", {}).get("soulsgym", "of a newer version")
        raise RunError(
            f"{folder}: the checkpoint has format {written}, made by soulsgym {made_by}, and this soulsgym reads "
            f"formats up to {FORMAT}: update soulsgym on this machine"
        )
    if written != FORMAT or number != int(folder.name) or not isinstance(files, dict):
        raise Damage(f"{file} belongs to checkpoint {number!r} of format {written!r}")
    return files


def read_checked(folder: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> bytes:
    """A file's content, if it is what was written."""
    file, expected = folder / name, files[name]
    data = read_bytes(file)
    if len(data) != expected.get("bytes"):
        raise Damage(f"{file} has {len(data)} bytes instead of {expected.get('bytes')}")
    if hashlib.sha256(data).hexdigest() != expected.get("sha256"):
        raise Damage(f"{file} does not match its checksum")
    return data


def read_bytes(file: Path) -> bytes:
    """A file's content; a missing permission is no damage: falling back to an older checkpoint would lose work."""
    try:
        return file.read_bytes()
    except PermissionError as error:
        raise RunError(f"{file}: cannot be read, permission is missing: allow it, then try again") from error
    except FileNotFoundError as error:
        raise Damage(f"{file} is missing") from error
    except OSError as error:
        raise Damage(f"{file} cannot be read ({reason(error)})") from error
