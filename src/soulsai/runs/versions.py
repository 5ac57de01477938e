"""What a run was made with."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from soulsgym.packages import VERSION

PACKAGES = ("torch", "numpy", "numba", "gymnasium", "safetensors")
GIT_LIMIT_S = 5.0


def package_versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of Python, of soulsgym, and of the installed ones among other packages."""
    own = {"python": platform.python_version(), "soulsgym": VERSION}
    found = {name: _version(name) for name in names}
    return own | {name: text for name, text in found.items() if text is not None}


@cache
def _version(name: str) -> str | None:
    """Remembered: every checkpoint asks, and looking a package up takes milliseconds."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine() -> dict[str, str | int]:
    """What the run runs on."""
    return {"platform": platform.platform(), "cpu_count": os.cpu_count() or 1}


def git_commit() -> str | None:
    """The commit of the source tree this code is run from; None for an installed package."""
    source = Path(__file__).resolve().parents[3]
    if not (source / ".git").exists():
        return None
    command = ["git", "-C", str(source), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
