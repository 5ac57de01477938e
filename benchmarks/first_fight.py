"""How long from the install to a fight on the screen? The first picture of `souls watch zoo:iudex --terminal`.

.venv/bin/python benchmarks/first_fight.py [--agent zoo:iudex]

The command runs in a terminal of its own, first with an empty cache of compiled code, as after an install, then once
more. Time is counted until the first picture, with what the processor spent on it. The exit status is 1 if the first
one takes 60 s or more.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import signal
import sys
import tempfile
import time

LIMIT_S, GIVE_UP_S = 60.0, 600.0
PICTURE = "▀".encode()


def first_picture_s(agent: str, cache: str) -> tuple[float, float]:
    """Seconds, and seconds of the processor, until the first picture."""
    began_s = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"NUMBA_CACHE_DIR": cache, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
        os.environ.pop("NO_COLOR", None)
        os.execv(sys.executable, [sys.executable, "-m", "soulsai", "watch", agent, "--terminal"])
    seen = b""
    while PICTURE not in seen:
        left_s = began_s + GIVE_UP_S - time.monotonic()
        ready, _, _ = select.select([terminal], [], [], max(0.0, left_s))
        if not ready:
            os.kill(child, signal.SIGKILL)
            sys.exit(f"no picture within {GIVE_UP_S:.0f} s")
        try:
            seen = (seen + os.read(terminal, 65_536))[-65_536:]
        except OSError:
            sys.exit(f"souls watch has ended without a picture: {seen.decode(errors='replace')[-500:]}")
    took_s = time.monotonic() - began_s
    os.kill(child, signal.SIGKILL)
    _, _, used = os.wait4(child, 0)
    return took_s, used.ru_utime + used.ru_stime


def main() -> None:
    """Measure with an empty cache, and with what that has left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="zoo:iudex")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        first = first_picture_s(asked.agent, cache)
        again = first_picture_s(asked.agent, cache)
    for name, (took_s, used_s) in (("first", first), ("again", again)):
        print(f"{name}: {took_s:.1f} s until the first picture, {used_s:.1f} s of the processor")
    sys.exit(0 if first[0] < LIMIT_S else 1)


if __name__ == "__main__":
    main()
