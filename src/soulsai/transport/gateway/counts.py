"""What a gateway has let in and kept out, in a file beside its certificate, for whoever looks at the fleet."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from soulsai.runs.files import write_atomically

FOLDER, FILE = "gateway", "counts.json"
FRESH_S = 60.0
"""A file older than this is of a gateway that has ended."""

ADDRESS, CREDENTIALS, CROWDED, FULL, LOCKED, MACHINES, NO_REDIS, SILENT = (
    "address", "credentials", "connections", "full", "locked_out", "machines", "unreachable", "silent",
)  # fmt: skip
"""Why a connection is refused: too much came from its address; nobody is invited by these credentials; the name, or all
names together, have enough connections; the name is locked out, or plays on enough machines; Redis does not answer; it
asks for nothing."""


@dataclass
class Counts:
    """Of one gateway since it was started, all names together."""

    connections: int = 0  # that are open
    accepted: int = 0
    bytes: int = 0  # that workers have sent
    passed: int = 0  # messages in Redis
    dropped: dict[str, int] = field(default_factory=Counter)  # messages
    refused: dict[str, int] = field(default_factory=Counter)  # connections

    def as_dict(self) -> dict[str, Any]:
        """As the report of a fleet has them."""
        return vars(self) | {"dropped": dict(self.dropped), "refused": dict(self.refused)}

    def write(self, folder: Path) -> None:
        """Keep them in the folder of the gateway; RunError if that cannot be written to."""
        write_atomically(folder / FILE, msgspec.json.encode(self.as_dict()), durably=False)


def gateway_line(counts: Mapping[str, Any]) -> str:
    """All of it in a line."""
    parts = [
        f"{counts['connections']:,} connections ({counts['accepted']:,} since it was started)",
        f"{counts['bytes'] / 1e6:,.1f} MB", f"{counts['passed']:,} messages passed on",
    ]  # fmt: skip
    for what in ("dropped", "refused"):
        if counts[what]:
            parts.append(
                f"{what} " + ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts[what].items()))
            )
    return "gateway: " + "; ".join(parts)


def gateway_part(run: Path) -> dict[str, Any]:
    """What the report of a fleet says of the gateway of a run, under `gateway`; nothing if there is none."""
    file = run / FOLDER / FILE
    try:
        if time.time() - file.stat().st_mtime > FRESH_S:
            return {}
        return {"gateway": msgspec.json.decode(file.read_bytes(), type=Counts).as_dict()}
    except (OSError, msgspec.MsgspecError):
        return {}
