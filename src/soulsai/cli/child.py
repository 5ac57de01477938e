"""A `souls` command that ends when its parent does, however that ends: it watches its standard input.

Closing the pipe asks it to stop. That works on every system, from the first moment of the process on, and needs no
message from a parent that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from soulsai.processes.supervisor import when_input_ends

SAVE_S = 90.0
"""For saving and leaving, before it is ended at once."""


def interrupt() -> None:
    """Interrupt this process, as Ctrl-C does."""
    if os.name == "nt":
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)  # wakes the main thread if it waits for something
    time.sleep(SAVE_S)
    os._exit(1)


def main() -> None:
    """Run the command line with an eye on the parent."""
    when_input_ends(interrupt)
    from soulsai.cli.main import main as souls

    sys.argv[0] = "souls"
    souls()


if __name__ == "__main__":
    main()
