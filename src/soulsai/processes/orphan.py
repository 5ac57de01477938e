"""Have Linux end this process when its parent ends; as a script, become another program that ends with its parent.

It imports nothing of ours: as a script it runs without the package (`python -I -S orphan.py PARENT PROGRAM ...`).
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
ORPHANED = 70
"""Exit code of a process whose parent is gone."""


def end_with_parent(parent: int, number: int) -> None:
    """Get signal `number` when the thread that started this process ends; exit now if `parent` is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(ORPHANED)


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]), signal.SIGTERM)
    os.execv(sys.argv[2], sys.argv[2:])
