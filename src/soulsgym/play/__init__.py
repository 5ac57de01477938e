"""A person fights on the simulator, tick by tick."""

import os

# pygame greets on standard output, which belongs to the user's program.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
