"""`souls bench`: the folder benchmarks, which comes with the source and not with the package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from soulsgym.errors import MisuseError

ROOT = Path(__file__).parents[3]

if not (ROOT / "benchmarks" / "command.py").is_file():
    raise MisuseError(
        "benchmarks come with the source, not with the package: clone the repository, then use make bench"
    )
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # child processes get the path as well
bench: Any = import_module("benchmarks.command").bench
