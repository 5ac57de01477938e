"""For all tests."""

import os
import sys
from pathlib import Path

# Before torch is loaded: tests are small, and threads that wait for each other beside other programs make them slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent / "standin"))
from standin_fixtures import *  # noqa: F403 (fixtures with which a test gets a game that runs)
