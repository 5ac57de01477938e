"""Without torch, commands that need it say what to install, and scripted players play."""

import subprocess
import sys

import pytest

from soulsgym.packages import install_command

SOULS = "import sys; sys.modules['torch'] = None; from soulsai.cli.main import main; main()"
LIMIT_S = 180.0


def souls(folder, words):
    command = [sys.executable, "-c", SOULS, *words.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=folder)


@pytest.mark.parametrize(
    "words",
    ["train smoke", "eval runs/mine", "watch runs/mine", "record runs/mine", "serve smoke", "export runs/mine a.onnx"],
)
def test_what_needs_it_says_what_to_install(words, tmp_path):
    done = souls(tmp_path, words)
    assert (done.returncode, done.stderr) == (2, f"souls: torch is not installed; run: {install_command('train')}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("record player:idle --out fights.npz", "fights.npz: 1 fight"),
        ("watch player:idle --html fight.html", "fight.html: died"),
        ("watch player:idle --terminal", "died after"),
        ("eval player:idle --fights 3", "0.0 %"),
        ("compare player:idle player:runner --fights 3", "player:runner wins"),
    ],
)
def test_scripted_players_need_none(words, said, tmp_path):
    done = souls(tmp_path, words)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout
