"""For all tests."""

import os

# Before torch is loaded: tests are small, and threads that wait for each other beside other programs make them slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")
