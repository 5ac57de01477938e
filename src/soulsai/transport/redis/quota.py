"""How much of Redis a name may use."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True)
class Quota:
    """Limits of one name, far above what workers of ours use; whoever exceeds one is locked out for `locked_s`."""

    memory: float = 256 * MB
    waiting: float = 8192  # messages beyond those from which the oldest are dropped
    workers: float = 2000  # heartbeats
    connections: float = 1024
    messages_per_s: float = 2000.0
    bytes_per_s: float = 512 * MB
    locked_s: float = 60.0

    def exceeded(self, **used: float) -> str:
        """What there is too much of, in words; empty if there is not."""
        for what, value in used.items():
            limit = getattr(self, what)
            if value > limit:
                shown, most = (f"{number / MB:,.0f} MB" if what in ("memory", "bytes_per_s") else f"{number:,.0f}"
                               for number in (value, limit))  # fmt: skip
                return f"{shown} of {what.replace('_', ' ')}, {most} at most"
        return ""


DEFAULT = Quota()
