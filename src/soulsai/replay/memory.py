"""Whether something fits into the machine's memory."""

from __future__ import annotations

import psutil  # type: ignore[import-untyped]

from soulsgym.errors import MisuseError

BYTES_PER_GB = 1e9


def refuse_if_too_large(bytes_needed: int, what: str) -> None:
    """Refuse before a run starts what would end it, or the machine, much later."""
    available = psutil.virtual_memory().available
    if bytes_needed > available:
        raise MisuseError(
            f"{what} needs {bytes_needed / BYTES_PER_GB:.1f} GB of memory, but only {available / BYTES_PER_GB:.1f} GB "
            "are free; make it smaller or close other programs"
        )
