"""Workers in processes of this machine, for `souls train --workers`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.learning.session import Fleet
    from soulsai.runs.run import Run

RUN = "local"
"""The id of the run in the messages between its processes: nobody else hears them."""
GENERATION = 1
"""Versions need not be told from those of an earlier start: no worker outlives the learner."""
STOP_S = 10.0


@contextmanager
def local_fleet(run: Run, config: Config, workers: int, say: Callable[[str], None]) -> Iterator[Fleet]:
    """Workers that play until the end of the block."""
    from soulsai.acting.crew import Crew
    from soulsai.cli.playing import play_local
    from soulsai.config import config_to_toml
    from soulsai.learning.fleet_loops import Place
    from soulsai.learning.session import Fleet
    from soulsai.transport.local import LocalLearnerLink

    class Link(LocalLearnerLink):
        """Starts the workers when there is a policy to play with, so not before the preflight and compiling."""

        def publish(self, version: int, frame: bytes) -> None:
            super().publish(version, frame)
            start()

    link = Link(silent_after_s=config.fleet.silent_after_s, say=say)
    text = config_to_toml(config)
    started = False

    def arguments(index: int) -> tuple[Any, ...]:
        worker = f"{RUN}.{index}.{secrets.token_hex(3)}"
        return worker, link.add(worker), RUN, text, run.log_file

    crew = Crew(play_local, workers, arguments=arguments, hang_s=config.fleet.hang_s, say=say)

    def start() -> None:
        nonlocal started
        if not started:
            started = True
            say(f"starting {workers} workers")
            crew.start()

    try:
        yield Fleet(link, Place(RUN, GENERATION))
    finally:
        link.stop_workers()
        crew.stop(STOP_S)
        link.close()
