"""How other machines reach this one."""

from __future__ import annotations

import socket


def seen_from_outside() -> str:
    """The address of this machine that others most likely know; nothing is sent to find out."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: whoever leads there, leads outside
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()
