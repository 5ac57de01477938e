"""A `souls` command that ends when its parent does, however that ends: it watches its standard input.

Closing the pipe asks it to stop. That works on every system, from the first moment of the process on, and needs no
message from a parent that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

SAVE_S = 90.0
"""For saving and leaving, before it is ended at once."""


def watch() -> None:
    """Wait until the pipe is closed, then interrupt, as Ctrl-C does."""
    try:
        while os.read(0, 1024):
            pass
    except OSError:
        pass
    if os.name == "nt":
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)  # wakes the main thread if it waits for something
    time.sleep(SAVE_S)
    os._exit(1)


def main() -> None:
    """Run the command line with the parent's eye on it."""
    threading.Thread(target=watch, daemon=True, name="parent").start()
    from soulsai.cli.main import main as souls

    sys.argv[0] = "souls"
    souls()


if __name__ == "__main__":
    main()
