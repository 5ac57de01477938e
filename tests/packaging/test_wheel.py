"""The wheel, installed with pip into an empty virtual environment, has everything and works."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.metadata import distribution, distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from soulsgym.packages import install_command

ROOT = Path(__file__).parents[2]
SPEED = "soulsgym/game/speed/bin"
LIMIT_S = 1200.0
UNREACHABLE = ("No matching distribution found", "Could not find a version", "ConnectionError", "Connection refused")
"""What pip says where there is no package index."""

pytestmark = pytest.mark.slow


def run(*command, cwd):
    """Its output; a test is skipped where it needs a package index and there is none."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "PIP_BUILD_CONSTRAINT": str(ROOT / "constraints.txt"),
        "NUMBA_CACHE_DIR": str(cwd / "numba"),
    }
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S
    )
    if done.returncode and any(text in done.stdout for text in UNREACHABLE):
        pytest.skip("the package index cannot be reached")
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with the sdist and with the wheel made of it; the repository gets no new file."""
    if find_spec("build") is None:
        pytest.skip("the package build is not installed: make setup")
    folder = tmp_path_factory.mktemp("built")
    code, output = run(sys.executable, "-m", "build", "-o", str(folder / "dist"), str(ROOT), cwd=folder)
    assert code == 0, output
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("souls_arena-*.whl")
    return found


@pytest.fixture(scope="module")
def bin_folder(wheel, tmp_path_factory):
    """The programs of an environment with nothing but the wheel and its base dependencies."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "-q", "--no-deps", str(wheel)]
    code, output = run(*pip, cwd=folder)
    assert code == 0, output
    add_requirements(folder, "")
    return programs


def add_requirements(folder, extra):
    """Put what the wheel requires for an extra beside it, as links to what is installed here: nothing to download."""
    place = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (wheel,) = (one for one in distributions(path=[str(place)]) if one.name == "souls-arena")
    wanted, seen = [(wheel, extra)], set()
    while wanted:
        one, extra = wanted.pop()
        for requirement in map(Requirement, one.requires or ()):
            if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
                continue
            seen.add(requirement.name)
            wanted += [(distribution(requirement.name), each) for each in ("", *requirement.extras)]
            for name in {file.parts[0] for file in distribution(requirement.name).files} - {"..", "__pycache__"}:
                if not (place / name).exists():
                    (place / name).symlink_to(distribution(requirement.name).locate_file(name))


def files_of_source(folder, pattern):
    source = ROOT / "src"
    return {file.relative_to(source).as_posix() for file in (source / folder).rglob(pattern) if file.is_file()}


def test_sdist_and_wheel_hold_every_file(built, wheel):
    wanted = (
        files_of_source("soulsgym", "*.py")
        | files_of_source("soulsai", "*.py")
        | files_of_source("soulsgym/data", "*")
        | files_of_source("soulsai/dashboard/static", "*")
        | files_of_source("soulsai/presets", "*.toml")
        | files_of_source(SPEED, "*")  # none, if they were not built
        | {"soulsgym/py.typed", "soulsai/py.typed"}
    )
    wanted = {name for name in wanted if "__pycache__" not in name}
    assert len(wanted) > 400
    with zipfile.ZipFile(wheel) as archive:
        assert wanted - set(archive.namelist()) == set()
    (sdist,) = built.glob("souls_arena-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in wanted} - names == set()


def test_wheel_is_made_only_with_the_library_of_the_clock():
    """A user of Windows has no compiler for it: a wheel without it would be of no use there."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    rules = subprocess.run(["make", "-pn", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
    (wheel,) = (line for line in rules.splitlines() if line.startswith("wheel:"))
    assert "speed" in wheel.split()


def test_metadata_tells_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    assert "Name: souls-arena\n" in text
    assert "Description-Content-Type: text/markdown" in text
    assert "# SoulsGym + SoulsAI" in text
    assert "Programming Language :: Python :: 3.13" in text


def test_environments_work_without_torch(bin_folder):
    smoke = Path(__file__).with_name("smoke.py")
    code, output = run(str(bin_folder / "python"), str(smoke), str(bin_folder.parent), cwd=bin_folder.parent)
    assert (code, output) == (0, "ok\n")


def test_command_line_says_what_it_lacks(bin_folder):
    souls, folder = str(bin_folder / "souls"), bin_folder.parent
    assert run(souls, "--help", cwd=folder) == (
        1, f"souls: the command line is not installed; run: {install_command('cli')}\n"
    )  # fmt: skip
    add_requirements(folder, "cli")
    code, output = run(souls, "--help", cwd=folder)
    assert code == 0
    assert "Train agents that beat Souls bosses" in output
    code, output = run(souls, "train", "smoke", cwd=folder)
    assert (code, output) == (2, f"souls: torch is not installed; run: {install_command('train')}\n")
