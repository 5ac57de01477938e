"""Without torch, commands that need it say what to install, and scripted players play."""

import json
import subprocess
import sys

import pytest

from soulsgym.packages import install_command

PROGRAM = """
import contextlib, io, json, sys
sys.modules["torch"] = None
from soulsai.cli.main import main
found = {}
for words in json.loads(sys.argv[1]):
    sys.argv = ["souls", *words.split()]
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            found[words] = end.code, said.getvalue(), errors.getvalue()
print(json.dumps(found))
"""
LIMIT_S = 180.0


def souls(folder, *commands):
    """Exit code, output and errors of commands, in one process that cannot import torch."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_needs_it_says_what_to_install(tmp_path):
    commands = [
        "train smoke",
        "eval runs/mine",
        "watch runs/mine --terminal",
        "record runs/mine",
        "serve smoke",
        "export runs/mine a.onnx",
    ]
    refusal = [2, "", f"souls: torch is not installed; run: {install_command('train')}\n"]
    assert souls(tmp_path, *commands) == dict.fromkeys(commands, refusal)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_scripted_players_need_none(tmp_path):
    wanted = {
        "record player:idle --out fights.npz": "fights.npz: 1 fight",
        "watch player:idle --html fight.html": "fight.html: died",
        "watch player:idle --terminal": "died by",
        "eval player:idle --fights 3": "0.0 %",
        "compare player:idle player:runner --fights 3": "player:runner wins",
    }
    for words, (code, said, errors) in souls(tmp_path, *wanted).items():
        assert (code, errors) == (0, ""), words
        assert wanted[words] in said
