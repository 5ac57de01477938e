"""A training session as a user starts it: preflight, compile, train, evaluate, report."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from soulsai.acting.policy import NetworkPolicy
from soulsai.checkpoints.store import CheckpointStore
from soulsai.config.schema import Config
from soulsai.errors import RunError
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.report import write_report
from soulsai.learning.evaluator import Evaluator
from soulsai.learning.loop import Loop, build_fleet_loop
from soulsai.learning.preflight import preflight
from soulsai.learning.scoring import evaluate_policy, gym_returns
from soulsai.learning.sources import Start
from soulsai.learning.training import Training, View, final_policy
from soulsai.learning.wiring import against, compile_parts, game_parts
from soulsai.runs.metrics import MetricsReader
from soulsai.runs.requests import KEPT, Requests
from soulsai.runs.run import Run
from soulsai.telemetry.logfile import attach, detach
from soulsai.telemetry.sinks import Sink
from soulsai.transport.frames import MOST_FREED, keep_freed_memory
from soulsai.transport.links import LearnerLink

if TYPE_CHECKING:
    from soulsgym.target import TargetOptions

log = logging.getLogger(__name__)

SAVED = ("finished", "stopped")
"""States in which a run has a checkpoint."""
FINAL_SEED = 0
"""Of the evaluation after training; the default of `souls eval`, so that both say the same."""


@dataclass(frozen=True)
class Outcome:
    """How a session ended."""

    finished: bool
    evaluations: Sequence[Evaluation] = ()
    mean_return: float | None = None

    @property
    def worst(self) -> Evaluation | None:
        """That of the boss who is won against least."""
        return min(self.evaluations, key=lambda one: one.win_rate, default=None)


@dataclass(frozen=True)
class Fleet:
    """The link to workers, and which run they play for."""

    link: LearnerLink
    start: Start


def run_session(
    run: Run,
    config: Config,
    *,
    resume: bool,
    without_replay: bool = False,
    view: View,
    stop: Callable[[], bool],
    check: bool = True,
    fleet: Fleet | None = None,
    game: TargetOptions | None = None,
    sinks: Sequence[Sink] = (),
    make_loop: Callable[[], Loop] | None = None,
) -> Outcome:
    """Train in the folder of `run` to the end, or until `stop` says so; with a fleet, from what its workers play.

    `without_replay` leaves out the replay of a run that is resumed, as where its files are damaged.

    `game` says how the running game is played on this machine, for runs that train on it. Metrics go to `sinks` beside
    the files of the run. `make_loop` makes another loop than the config's own.
    """
    view = Logged(view)
    if resume:
        _refuse_lost_checkpoints(run)
    with run.lock(), _log_to_file(run):
        training: Training | None = None
        before, has_begun = run.status(), False
        Requests(run).finish(*KEPT)
        try:
            if config.world == "fight":
                if config.fight.engine != "game":
                    view.say("compiling the simulator (about 20 s the first time, a second later on)")
                compile_parts(config)
                if config.fight.engine == "game":
                    game_parts(config, game)  # refuses a reward that the game cannot give
            if check and not (resume and CheckpointStore(run.checkpoints).numbers()):
                preflight(config, view.say)
            keep_freed_memory(MOST_FREED)
            loop = build_fleet_loop(config, fleet.link, fleet.start, view.say) if fleet else make_loop and make_loop()
            beside = Evaluator(run, config, view.say) if fleet else None
            training = Training(run, config, view=view, stop=stop, loop=loop, game=game, sinks=sinks, evaluator=beside)
            training.resume(without_replay=without_replay) if resume else training.begin()
            has_begun = True
            if training.go():
                outcome = _evaluate_at_the_end(run, config, final_policy(training), view)
                training.close("finished", outcome.worst)
            else:
                outcome = Outcome(finished=False)
                training.close("stopped")
        except BaseException:
            if training is not None:
                training.close("failed")
            if not has_begun:  # what was reached before still holds
                run.write_status(replace(before, state="failed", steps=config.run.steps))
            raise
        update_report(run)
        return outcome


def _refuse_lost_checkpoints(run: Run) -> None:
    """RunError for a run that was saved and has no checkpoint, as after half a copy: it would begin again."""
    status = run.status()
    if status.state in SAVED and not CheckpointStore(run.checkpoints).numbers():
        raise RunError(
            f"{run.checkpoints}: is empty, though the run was saved at step {status.step:,}: copy it from where it was "
            "trained, or start a new run"
        )


class Logged:
    """A view whose news is written to the run's log as well."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.show = view.show

    def say(self, text: str) -> None:
        """One line of news."""
        log.info(text)
        self._view.say(text)


@contextmanager
def _log_to_file(run: Run) -> Iterator[None]:
    handler = attach(run.log_file)
    try:
        yield
    finally:
        detach(handler)


def update_report(run: Run) -> None:
    """Write the report of a run again, from what is in its folder; evaluations that are damaged are left out."""
    evaluations = []
    for name, text in run.evaluations():
        try:
            if _is_fight(text):
                evaluations.append(Evaluation.from_json(text))
        except ValueError:
            file = run.evaluations_folder / f"{name}.json"
            log.warning("%s: is damaged and left out of the report; restore it from a copy, or remove it", file)
    write_report(
        run.report_file,
        title=run.name,
        config_toml=run.config_toml,
        versions=run.versions,
        metrics=MetricsReader(run.folder),
        evaluations=evaluations,
    )


def _is_fight(text: str) -> bool:
    content = json.loads(text)
    return not isinstance(content, dict) or "returns" not in content


def _evaluate_at_the_end(run: Run, config: Config, policy: NetworkPolicy, view: View) -> Outcome:
    episodes = config.run.final_fights
    if not episodes:
        return Outcome(finished=True)
    if config.world == "gym":
        view.say(f"evaluating {episodes:,} episodes")
        returns = gym_returns(config, policy, episodes, FINAL_SEED)
        content: dict[str, Any] = {"id": config.gym.id, "seed": FINAL_SEED, "returns": returns.tolist()}
        run.add_evaluation("final", json.dumps(content))
        return Outcome(finished=True, mean_return=float(returns.mean()))
    bosses = config.fight.all_bosses
    each = f" against each of {len(bosses)} bosses" if len(bosses) > 1 else ""
    view.say(f"evaluating {episodes:,} fights{each} on unseen seeds")
    found = [
        evaluate_policy(against(config, boss), policy, episodes, seed=FINAL_SEED, progress=lambda *_: run.beat())
        for boss in bosses
    ]
    for one in found:
        run.add_evaluation(f"final-{one.settings.boss}" if len(bosses) > 1 else "final", one.to_json())
    return Outcome(finished=True, evaluations=found)
