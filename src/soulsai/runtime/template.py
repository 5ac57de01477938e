"""The process that workers are forked from: whatever this module loads and compiles exists once for all of them.

It is imported by multiprocessing's fork server and nothing else. An error here is no error of the run: a worker that
meets it again says so.
"""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress

from soulsai.processes import orphan
from soulsai.runtime.workers import CONFIG


def _load(config_toml: str) -> None:
    import soulsai.acting.worker
    import soulsai.transport.local
    import soulsai.transport.redis.worker  # noqa: F401
    from soulsai.config import config_from_toml
    from soulsai.learning.wiring import compile_worker

    compile_worker(config_from_toml(config_toml, "config.toml"))


def _prepare() -> None:
    # The thread that has started this process may be gone as well, which counts as the end of the parent.
    orphan.end_with_parent(os.getppid(), signal.SIGKILL)
    with suppress(Exception):
        _load(os.environ.pop(CONFIG))
    gc.collect()
    gc.freeze()  # so that a collection in a worker does not copy what it shares


if CONFIG in os.environ:
    _prepare()
