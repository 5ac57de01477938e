"""A learner and its workers, in processes of this machine or over Redis on any."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import config_to_toml
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, WorkerError
from soulsai.learning.session import Fleet as FleetLink
from soulsai.learning.session import Outcome, run_session
from soulsai.learning.sources import Start
from soulsai.learning.training import Progress
from soulsai.processes.supervisor import Supervisor, function
from soulsai.runs.run import Run
from soulsai.runtime.runs import begin_run, resume_run
from soulsai.runtime.serve import RedisOptions, Served, serve_redis
from soulsai.runtime.workers import TRIES, play_local, prepare
from soulsai.telemetry.sinks import Sink
from soulsai.transport.local import LocalLearnerLink

if TYPE_CHECKING:
    from soulsgym.target import TargetOptions

LOCAL = "local"
"""The id of a run in the messages between processes of one machine: nobody else hears them."""
GENERATION = 1
"""Versions need not be told from those of an earlier start: no local worker outlives its learner."""
STOP_S = 10.0
log = logging.getLogger(__name__)


@dataclass
class Fleet:
    """A run to train, with workers in processes of this machine (`train`) or on any machine (`serve`).

    `say` gets lines of news and `show` the progress, from any thread. Training saves and ends soon after `stop` says
    so: pass `threading.Event().is_set`, say. They may be replaced at any time.
    """

    run: Run
    config: Config
    resume: bool = False
    check: bool = True  # whether a preflight looks at what would lead nowhere
    say: Callable[[str], None] = log.info
    show: Callable[[Progress], None] = lambda progress: None
    stop: Callable[[], bool] = lambda: False
    sinks: Sequence[Sink] = ()
    without_replay: bool = False  # a resumed run begins with an empty one

    @classmethod
    def begin(cls, preset: str, folder: str | Path | None = None, settings: Sequence[str] = (), **given: Any) -> Fleet:
        """A new run of a preset or config file; `settings` are texts such as "run.steps=5000"."""
        return cls(*begin_run(preset, settings, Path(folder) if folder else None), **given)

    @classmethod
    def resumed(cls, folder: str | Path, settings: Sequence[str] = (), **given: Any) -> Fleet:
        """A run that goes on from its newest checkpoint; only settings of `run` and `fleet` may change."""
        return cls(*resume_run(Run.open(Path(folder)), settings), resume=True, **given)

    def train(self, workers: int = 0, *, game: TargetOptions | None = None) -> Outcome:
        """Train to the end, or until told to stop: with so many processes that play, or with 0 in this one.

        `game` says how the running game is played, for a run in the game. WorkerError if no worker can play.
        """
        if not workers:
            return self._learn(game=game)
        self._refuse_workers()
        with _local_workers(self, workers) as (link, problems):
            outcome = self._learn(link, lambda: len(problems()) == workers)
            if not outcome.finished and not self.stop() and (found := problems()):
                raise WorkerError(f"no worker can play: {found[0]}; what was learned is saved")
        return outcome

    @contextmanager
    def serve(self, redis: RedisOptions | None = None) -> Iterator[Served]:
        """Be reachable for workers over Redis until the end of the block; `train` of what this yields learns.

        Without the address of a Redis in `redis` the run starts its own.
        """
        self._refuse_workers()
        options = redis or RedisOptions()
        with serve_redis(self.run, self.config, options, self._say, lambda: self.stop()) as served:
            served.learn = self._learn
            yield served

    def _refuse_workers(self) -> None:
        if not algorithm_of(self.config).can_have_workers:
            name = self.config.algorithm
            raise ConfigError(f"algorithm = {name!r} plays no fights to share out; use souls train without --workers")

    def _say(self, text: str) -> None:
        self.say(text)

    def _learn(
        self,
        link: FleetLink | None = None,
        no_more: Callable[[], bool] = lambda: False,
        game: TargetOptions | None = None,
    ) -> Outcome:
        try:
            return run_session(
                self.run, self.config, resume=self.resume, without_replay=self.without_replay, view=self,
                stop=lambda: self.stop() or no_more(), check=self.check, fleet=link, game=game, sinks=self.sinks,
            )  # fmt: skip
        except KeyboardInterrupt:  # whoever trains does not want to wait until it is saved: that is no failure
            status = self.run.status()
            if status.state == "failed":
                self.run.write_status(replace(status, state="stopped"))
            raise


@contextmanager
def _local_workers(fleet: Fleet, workers: int) -> Iterator[tuple[FleetLink, Callable[[], list[str]]]]:
    """Workers that play until the end of the block: the learner's link to them, and why workers were given up."""
    limits, text = fleet.config.fleet, config_to_toml(fleet.config)

    def arguments(index: int) -> tuple[Any, ...]:
        worker = f"{LOCAL}.{index}.{secrets.token_hex(3)}"
        return worker, link.add(worker), LOCAL, text, fleet.run.log_file

    def start() -> None:
        fleet.say(f"starting {workers} workers")
        prepare(text)
        supervisor.start()

    supervisor = Supervisor(
        function(play_local, arguments, forked=True), workers, hang_s=limits.hang_s, tries=TRIES, say=fleet._say
    )
    # Not before the preflight and compiling: there has to be a policy to play with.
    link = LocalLearnerLink(say=fleet._say, on_first_policy=start)
    try:
        yield FleetLink(link, Start(LOCAL, GENERATION)), supervisor.problems
    finally:
        link.stop_workers()
        supervisor.stop(STOP_S)
        link.close()
