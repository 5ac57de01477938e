"""Every page "use it with ..." runs as it stands, and the index tells the versions that were tried."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "use-with"
INDEX = FOLDER / "README.md"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page != INDEX)
MODULES = {
    "cleanrl": "torch",
    "d3rlpy": "d3rlpy",
    "gymnasium": "gymnasium",
    "minari": "jax",  # Minari records with it
    "rllib": "ray",
    "sb3-contrib": "sb3_contrib",
    "skrl": "skrl",
    "stable-baselines3": "stable_baselines3",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
}
PACKAGES = {"cleanrl": "torch", "rllib": "ray"}
"""What pip calls the library of a page, where it is not the page's name."""
LIMIT_S = 900.0
WON = re.compile(r"^won (\d+) of (\d+) fights", re.MULTILINE)


def run(*command, folder):
    """Its output. Everything that libraries write beside it goes into the folder, too."""
    places = dict.fromkeys(("HOME", "TMPDIR", "RAY_TMPDIR"), folder)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | places,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=LIMIT_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, f"{output[-2000:]}\n{errors[-4000:]}"
    return output, errors


@pytest.fixture
def folder():
    """A folder with a short name: Ray keeps sockets in it, whose paths must not be long."""
    with tempfile.TemporaryDirectory(prefix="souls", ignore_cleanup_errors=True) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_one_after_the_other(page, folder, need):
    need(MODULES[page.stem])
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = Path(folder) / "page.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    output, errors = run(sys.executable, str(program), folder=folder)
    assert WON.search(output), output
    assert re.findall(r"^.*/soulsgym/\S+:\d+: \w*Warning.*$", errors, re.MULTILINE) == []


@pytest.mark.slow
@pytest.mark.learning
def test_the_script_in_the_style_of_cleanrl_learns(folder):
    script = str(ROOT / "examples" / "cleanrl_ppo.py")
    output, _ = run(sys.executable, script, "--steps", "100000", "--fights", "100", folder=folder)
    rate = float(re.search(r"^won ([\d.]+)% of 100 fights$", output, re.MULTILINE)[1])
    assert rate > 10.0  # nobody who presses keys at random wins


def test_commands_of_the_pages_name_scripts_that_are_there():
    named = {name for page in PAGES for name in re.findall(r"python (examples/\w+\.py)", page.read_text("utf-8"))}
    assert named == {"examples/cleanrl_ppo.py", "examples/sb3_maskable_ppo.py"}
    assert all((ROOT / name).exists() for name in named)


def pins(file):
    """The versions in a file of requirements, by package."""
    return dict(re.findall(r"^([\w-]+)(?:\[[\w,]+\])?==([\d.]+)", (ROOT / file).read_text("utf-8"), re.MULTILINE))


def test_the_index_lists_every_page_with_the_version_that_was_tried():
    """A star says that make test runs the page: constraints.txt has the library and what it needs there."""
    row = re.compile(r"^\| \[[^]]+\]\(([\w-]+)\.md\)( \*)? \| ([\d.]+) \|", re.MULTILINE)
    told = [(stem, bool(star), version) for stem, star, version in row.findall(INDEX.read_text(encoding="utf-8"))]
    ours, others = pins("constraints.txt"), pins("tools/ecosystem.txt")
    packages = {page.stem: PACKAGES.get(page.stem, page.stem) for page in PAGES}
    runs = {stem: MODULES[stem].replace("_", "-") in ours for stem in packages}
    assert told == [(stem, runs[stem], (others | ours)[name]) for stem, name in packages.items()]
    assert MODULES.keys() == packages.keys()
