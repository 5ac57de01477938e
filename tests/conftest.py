"""For all tests."""

import os
import signal
import sys
from pathlib import Path

# Before torch is loaded: tests are small, and threads that wait for each other beside other programs make them slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is started in the background by a shell ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent / "standin"))
from standin_fixtures import *  # noqa: F403 (fixtures with which a test gets a game that runs)
