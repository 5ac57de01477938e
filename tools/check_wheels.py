"""Are there wheels of everything that the extra `train` needs, for every system and version of Python that we name?

Asks the package index that pip is configured with, and downloads nothing. Exit code 1 if a
wheel is missing. Torch counts as it is on the CPU, without CUDA's packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
EXTRA = "train"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
GLIBCS = ("2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")
SYSTEMS = {
    "Linux x86_64": (
        (*(f"manylinux_{glibc}_x86_64" for glibc in GLIBCS), "manylinux2014_x86_64"),
        {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"},
    ),
    "Windows x64": (
        ("win_amd64",),
        {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"},
    ),
    "macOS arm64": (
        ("macosx_14_0_arm64",),
        {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"},
    ),
}
"""By name: the platforms that pip may choose, and what markers of requirements say there."""
AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
ASKING = 4
"""Questions to the index at a time."""


def needed(markers: dict[str, str]) -> dict[str, Requirement]:
    """All that the extra needs where markers have these values, with what is needed by that, by name.

    What needs what is known of the packages that are installed here.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, Requirement] = {}
    left = [*map(Requirement, project["dependencies"]), Requirement(f"{project['name']}[{EXTRA}]")]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name == project["name"]:
            inner = [text for extra in requirement.extras for text in project["optional-dependencies"][extra]]
        elif name in found:
            continue
        else:
            found[name] = requirement
            inner = _requirements(name)
        left += [one for one in map(Requirement, inner) if _applies(one, requirement.extras, markers)]
    return found


@cache
def has_wheel(requirement: str, python: str, platforms: tuple[str, ...], abis: tuple[str, ...] = ()) -> bool:
    """Whether the index has a wheel of a version that fits."""
    wanted = Requirement(requirement)
    options = [word for platform in platforms for word in ("--platform", platform)]
    options += [word for abi in abis for word in ("--abi", abi)]
    command = [
        sys.executable, "-m", "pip", "index", "versions", wanted.name, "--only-binary=:all:",
        "--python-version", python, *options,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = AVAILABLE.search(done.stdout)
    if not found and "No matching distribution" not in done.stderr:
        raise SystemExit(f"wheels: pip failed: {done.stderr[-1000:]}")
    return bool(found) and any(wanted.specifier.filter(found[1].split(", ")))


def missing(python: str, platforms: tuple[str, ...], requirements: dict[str, Requirement]) -> list[str]:
    """Names of those without a wheel."""

    def is_missing(requirement: Requirement) -> bool:
        text = f"{requirement.name}{requirement.specifier}"
        runs_everywhere = has_wheel(text, PYTHONS[0], ("any",), ("none",))
        return not runs_everywhere and not has_wheel(text, python, platforms)

    with ThreadPoolExecutor(ASKING) as pool:
        return [
            name for name, lacks in zip(requirements, pool.map(is_missing, requirements.values()), strict=True) if lacks
        ]


def _requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []  # Needed on another system only; none of these needs anything more.


def _applies(requirement: Requirement, extras: set[str], markers: dict[str, str]) -> bool:
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate(markers | {"extra": extra}) for extra in (extras or {""}))


def main() -> None:
    """Print the table."""
    print(f"{'':14}" + "".join(f"{python:>12}" for python in PYTHONS))
    absent: dict[str, list[str]] = {}
    for system, (platforms, markers) in SYSTEMS.items():
        cells = []
        for python in PYTHONS:
            requirements = needed(markers | {"python_version": python, "python_full_version": f"{python}.0"})
            lacking = missing(python, platforms, requirements)
            for name in lacking:
                absent.setdefault(name, []).append(f"{system}, Python {python}")
            cells.append(f"{len(requirements) - len(lacking)} of {len(requirements)}")
        print(f"{system:14}" + "".join(f"{cell:>12}" for cell in cells), flush=True)
    for name, where in absent.items():
        print(f"{name}: no wheel for {'; '.join(where)}")
    sys.exit(1 if absent else 0)


if __name__ == "__main__":
    main()
