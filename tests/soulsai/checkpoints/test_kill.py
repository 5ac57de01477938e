"""kill -9 at any moment of a save: the store still holds an intact checkpoint, and at least the last one announced."""

import os
import subprocess
import sys

import pytest

KILLER = """
import os, random, select, signal, sys, time
from pathlib import Path
import numpy as np
from soulsai.checkpoints import CheckpointStore

folder, rounds = Path(sys.argv[1]), 16
chance = random.Random(5)
number = 0

def save_for_ever(store, number, pipe):
    while True:
        number += 1
        # Every third number is saved twice: replacing a checkpoint must be as safe as adding one.
        for _ in range(1 + (number % 3 == 0)):
            store.save(number, {"a": {"x": np.full(20_000, number)}, "b": {"y": np.array(number)}}, {"step": number})
            os.write(pipe, number.to_bytes(8, "little"))

for _ in range(rounds):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        save_for_ever(CheckpointStore(folder), number, writer)
    os.close(writer)
    select.select([reader], [], [], 60.0)
    time.sleep(chance.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    announced = b""
    while block := os.read(reader, 1 << 16):
        announced += block
    os.close(reader)
    warnings = []
    found = CheckpointStore(folder).load(warn=warnings.append)
    assert not warnings, warnings
    assert found.number >= int.from_bytes(announced[-8:], "little") > number, (found.number, announced[-8:])
    assert found.state == {"step": found.number}
    assert (found.arrays("a")["x"] == found.number).all() and found.arrays("b")["y"] == found.number
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    number = found.number
print(number)
"""


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 is for POSIX")
def test_kill_during_save(tmp_path):
    command = [sys.executable, "-c", KILLER, str(tmp_path / "checkpoints")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 16
