"""One run from its first step, or its last checkpoint, to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Protocol

import torch

from soulsai.acting.episodes import GAME_S_PER_STEP
from soulsai.acting.policy import NetworkPolicy
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, DivergedError, RunError
from soulsai.learning.demos import load_demos
from soulsai.learning.evaluator import Evaluator, Snapshot
from soulsai.learning.loading import start_from
from soulsai.learning.loop import Loop, build_loop
from soulsai.learning.saving import CheckpointWriter, State, copy_parts
from soulsai.learning.scoring import PolicyScore, score_policy
from soulsai.learning.showing import EvaluationFiles
from soulsai.learning.wiring import build_worlds
from soulsai.runs.requests import FORGET, KEPT, LOOK_EVERY_S, Requests, open_requests
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.telemetry.clock import TELEMETRY
from soulsai.telemetry.sinks import Sink, Sinks, TensorBoardSink, open_sinks, resume_sinks
from soulsai.transport.policies import weights_of
from soulsgym.errors import GameError

if TYPE_CHECKING:
    from soulsai.evaluation.evaluation import Evaluation
    from soulsgym.target import TargetOptions

WORKERS = "fleet/workers"
WRITE_S = 120.0
"""How long a checkpoint may take to be written where the loop waits for it."""
CLOSE_S = 5.0
"""The same where a run ends by an error, or whoever trains does not want to wait."""
LAST_S = 120.0
"""How long the end of a run waits for an evaluation that began before it."""
TRIES = 3
"""How often a fleet's learner goes back to the same checkpoint after training has diverged."""
DIVERGED = "diverged"
"""Why experience is dropped that came between a checkpoint and training that diverged."""
FORGOTTEN = "forgotten"
"""The same where training went back to before a name came."""
FORMAT = 2
"""Of checkpoints. Those of another one can be played, but not trained on."""


@dataclass(frozen=True)
class Progress:
    """What there is to tell about a run at a moment."""

    step: int
    steps: int
    elapsed_s: float
    left_s: float
    metrics: dict[str, float]
    recent_wins: tuple[int, int]
    score: PolicyScore | None


class View(Protocol):
    """Shows a run to whoever watches."""

    def say(self, text: str) -> None:
        """One line of news."""

    def show(self, progress: Progress) -> None:
        """How it goes."""


@dataclass
class Memory:
    """What a run remembers beside its loop."""

    elapsed_s: float = 0.0
    score: PolicyScore | None = None
    scored_at: int = 0
    reached: int = 0  # evaluations in a row that reached run.stop_at
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    best_score: PolicyScore | None = None  # of the policy that is kept
    top: PolicyScore | None = None  # the highest there was


class Training:
    """A run being trained. `stop` is asked after every iteration whether to end here; `sinks` get the metrics too.

    With an `evaluator` the loop goes on while a policy is evaluated; without one it waits, and the same seed gives the
    same run.
    """

    def __init__(
        self,
        run: Run,
        config: Config,
        *,
        view: View,
        stop: Callable[[], bool],
        loop: Loop | None = None,
        game: TargetOptions | None = None,
        sinks: Sequence[Sink] = (),
        evaluator: Evaluator | None = None,
    ) -> None:
        self.run, self.config, self._view, self._stop = run, config, view, stop
        torch.set_num_threads(1)  # the learner shares its work out itself: small matrices do not share threads well
        self.loop = loop or build_loop(config, *build_worlds(config, game))
        if config.demos.files:
            self.loop.learner.teach(load_demos(config))
        elif self.loop.learner.needs_demos:
            raise ConfigError(f"algorithm = {config.algorithm!r} learns from recordings alone; give some: --demos FILE")
        self.memory = Memory()
        self._writer = CheckpointWriter(run.checkpoints, config.run.keep_checkpoints, run.replay)
        self._saved: Callable[[], None] = lambda: None  # what is to be done when the checkpoint is written
        self._evaluator = evaluator
        self._requests = Requests(run)
        self._evaluation_files = EvaluationFiles(run, config, self.loop.clock, view.say)
        self._more_sinks = sinks
        self._sinks: Sinks | None = None
        self._metrics: dict[str, float] = {}
        self._begun_s = self._logged_s = self._saved_s = 0.0
        self._logged_steps = self._logged_updates = 0
        self._logged_workers: float | None = None
        self._without_replay = False
        self._back_at: list[int] = []  # the checkpoint that it had to go back to last, and how often in a row
        self._went_back = 0

    def begin(self) -> None:
        """Start from nothing, or from the networks of another run."""
        if self.config.run.start_from:
            start_from(self.loop.learner, self.config, self.config.run.start_from)
        self.loop.begin()
        self._sinks = Sinks(
            [*open_sinks(self.run.folder), TensorBoardSink(self.run.tensorboard), *self._more_sinks],
            warn=self._view.say,
        )

    def resume(self, *, without_replay: bool = False) -> None:
        """Go on from the newest checkpoint whose files are all intact; without its replay, with an empty one."""
        self._without_replay = without_replay
        saved = self._newest()
        if saved is None:
            self._view.say("no checkpoint was written yet; beginning again")
            self.run.metrics_file.unlink(missing_ok=True)
            self.begin()
            return
        state = saved.state
        if state.get("format") != FORMAT:
            raise RunError(
                f"{saved.path} was written by another version of soulsai: it can be evaluated and watched, but not "
                "trained on; start a new run"
            )
        self._take_up(saved)
        if without_replay:
            self._view.say("its replay is left out: the networks are as they were, and what they learn from is new")
        self._without_replay = False
        self._view.say(f"resuming from step {self.loop.counters.steps:,} of {self.config.run.steps:,}")

    def _take_up(self, saved: Checkpoint) -> None:
        """Be where a checkpoint is; what was measured since is forgotten."""
        state = saved.state
        self.loop.counters.__dict__.update(state["counters"])
        self.loop.restore(saved)
        if self._without_replay:
            self.loop.learner.forget()
        self.memory = Memory(
            elapsed_s=state["elapsed_s"],
            score=PolicyScore.of(state["score"]),
            scored_at=state["scored_at"],
            reached=state["reached"],
            best=saved.parts.get("best", {}),
            best_score=PolicyScore.of(state["best_score"]),
            top=PolicyScore.of(state["top"]),
        )
        self._writer.listed = [] if self._without_replay else state["segments"]
        position, step = state["metrics_position"], self.loop.counters.steps
        self._sinks = Sinks(
            [
                *resume_sinks(self.run.folder, position),
                TensorBoardSink(self.run.tensorboard, purge_step=step + 1),
                *self._more_sinks,
            ],
            warn=self._view.say,
        )

    def go(self) -> bool:
        """Train until the end (True) or until stopped (False). The last state is saved in either case."""
        loop, run = self.loop, self.config.run
        self._begun_s = self._logged_s = self._saved_s = time.perf_counter()
        self._logged_steps, self._logged_updates = loop.counters.steps, loop.counters.updates
        loop.clock.take()
        while not (done := self._is_done()) and not self._stop():
            self._metrics |= self._iterate()
            requests = self._requests.take()
            if "pause" in requests:
                requests = self._pause()
            if "stop" in requests:
                self._view.say("stopping and saving, as the operator asked")
                break
            self._forget_names()
            self._look_at_evaluations()
            if time.perf_counter() - self._logged_s >= run.log_every_s and self._has_news():
                self._log()
            due = time.perf_counter() - self._saved_s >= run.checkpoint_every_s
            if not self._writer.is_busy:
                self._finish_saving()
                if due or loop.source.saving_is_due or "save" in requests:
                    self._begin_saving("running")
        if done:
            self._finish_evaluations()
        if loop.counters.steps > self._logged_steps:
            self._log()
        self.save()
        return done

    def _forget_names(self) -> None:
        """Forget what names gave that were found out, or where the operator asked for it; it is saved at once."""
        found_out = [(name, False) for name in self.loop.source.names_to_forget()]
        for name, go_back in (*found_out, *self._requests.names_to_forget()):
            self._finish_saving()
            before = self._before(name) if go_back else None
            if before is not None:
                self._return_to(before, FORGOTTEN)
                self._view.say(f"{name}: back to the checkpoint of step {before.number:,}, from before it came")
            elif go_back:
                self._view.say(
                    f"{name}: no checkpoint is kept from before it came, so only its rows go; keep more with "
                    "run.keep_checkpoints"
                )
            rows = self.loop.source.forget(name, self.loop.learner)
            self._writer.listed = []  # rows have other numbers now
            self.save()
            self._requests.finish(f"{FORGET}{name}")
            self._view.say(f"{name}: {rows:,} rows removed from the replay")

    def _before(self, name: str) -> Checkpoint | None:
        """The newest checkpoint that holds no rows of a name, with its replay."""
        store = self._writer.store
        for number in sorted(store.numbers(), reverse=True):
            with suppress(RunError):
                if name in store.load_state(number)["source"].get("givers", [name]):
                    continue
                saved = store.load(number, self._view.say)
                if saved is not None and self.loop.learner.store is not None:
                    self._writer.segments.load(self.loop.learner.store, saved.state["segments"])
                return saved
        return None

    def _pause(self) -> tuple[str, ...]:
        """Stand still until told to go on or to stop; what was asked for last. This is no time of training."""
        if self.loop.counters.steps > self._logged_steps:
            self._log()
        self.loop.source.pause()
        self.save("paused")
        self._view.say("saved and paused, as the operator asked")
        requests: tuple[str, ...] = ("pause",)
        while "pause" in requests and "stop" not in requests and not self._stop():
            time.sleep(LOOK_EVERY_S)
            requests = open_requests(self.run)
            self._begun_s = self._logged_s = time.perf_counter()
            if "save" in requests:
                self.save("paused")
        self.loop.clock.take()
        self._status("running")
        if "pause" not in requests:
            self._view.say("continuing")
        return requests

    def _iterate(self) -> dict[str, float]:
        """One turn of the loop. A game that cannot be played on ends the session, but what was learned is kept."""
        try:
            if self.config.world == "fight" and self.config.fight.engine == "game":
                return self.loop.iterate(self._stop)  # a step takes a moment there: many would be a long wait
            return self.loop.iterate()
        except GameError:
            self._view.say("the game failed; saving what was learned")
            self.save()
            raise
        except DivergedError as error:
            self._go_back(error)
            return {}

    def _go_back(self, error: DivergedError) -> None:
        """Learn on from the last checkpoint, where what comes next may be better; else there is nothing to be done."""
        self._finish_saving()
        numbers = self._writer.store.numbers()
        self._went_back = self._went_back + 1 if numbers[-1:] == self._back_at else 1
        saved = self._newest() if self.loop.source.is_from_others and numbers and self._went_back <= TRIES else None
        if saved is None:
            raise self._explain_divergence(error) from error
        self._back_at = numbers[-1:]
        self._return_to(saved, DIVERGED)
        self._view.say(
            f"training had diverged ({error}): back to the checkpoint of step {self.loop.counters.steps:,}; what came "
            f"since is dropped ({DIVERGED})"
        )

    def _return_to(self, saved: Checkpoint, reason: str) -> None:
        """Be where a checkpoint is, in the middle of training; what came since is dropped for a reason."""
        self.loop.source.discard(reason)
        if self._sinks:
            self._sinks.close(keep=self._more_sinks)
        self._take_up(saved)
        self._logged_steps, self._logged_updates = self.loop.counters.steps, self.loop.counters.updates
        self._metrics = {}

    def _explain_divergence(self, error: DivergedError) -> DivergedError:
        """What broke, what is kept, and what to do."""
        self._finish_saving()
        numbers = self._writer.store.numbers()
        kept = f"the checkpoint of step {numbers[-1]:,} is kept" if numbers else "there is no checkpoint"
        return DivergedError(
            f"training has diverged: {error}; {kept}: lower the learning rate or the weights of the reward, and start "
            "a new run"
        )

    def save(self, state: str = "running") -> None:
        """Write a checkpoint; `state` is how the run stands. DivergedError instead if the networks are broken."""
        self._finish_saving()
        self._begin_saving(state)
        self._finish_saving()

    def _begin_saving(self, state: str) -> None:
        """Copy what the checkpoint is to hold; it is written beside the loop."""
        if not self.loop.learner.is_finite():
            problem = f"a weight is no longer a number at step {self.loop.counters.steps:,}"
            self._go_back(DivergedError(problem))
            return
        with self.loop.clock.phase("save"):
            self._note_time()
            memory, loop, store = self.memory, self.loop, self.loop.learner.store
            notes = {
                "counters": asdict(loop.counters),
                "elapsed_s": memory.elapsed_s,
                "score": memory.score and asdict(memory.score),
                "best_score": memory.best_score and asdict(memory.best_score),
                "top": memory.top and asdict(memory.top),
                "scored_at": memory.scored_at,
                "reached": memory.reached,
                "metrics_position": self._sinks.position() if self._sinks else None,
                "source": loop.source.notes(),
                "format": FORMAT,
            }
            parts = copy_parts(loop.parts())
            if memory.best:
                parts["best"] = dict(memory.best)
            rows = store.copy_since(self._writer.rows_listed) if store is not None else None
            self._writer.begin(State(loop.counters.steps, parts, notes, rows, store.capacity if store else 0))
        is_stored, is_asked = loop.source.start_saving(), "save" in open_requests(self.run)

        def note_saved() -> None:
            is_stored()
            if is_asked:  # before the copy was taken
                self._requests.finish("save")
            self._status(state)

        self._saved, self._saved_s = note_saved, time.perf_counter()

    def _finish_saving(self) -> None:
        """Wait for the checkpoint that is being written, if there is one; an error if that fails."""
        if self._writer.finish(WRITE_S):
            self._saved()

    def close(self, state: str, final: Evaluation | None = None) -> None:
        """Release everything; `state` is how the run stands: finished, stopped or failed.

        The win rate of a run that is over is that of its `final` evaluation. The best one of those during training was
        chosen among many, and so is too high on average.
        """
        if self._evaluator:
            self._evaluator.stop()
        with suppress(RunError):  # there is a reason already why this run has failed
            self._writer.finish(CLOSE_S)
        if self._sinks:
            self._sinks.close()
        self.loop.source.close()
        self._requests.finish(*KEPT)
        self._status(state, final)

    def networks(self) -> dict[str, torch.Tensor]:
        """The weights of the policy as it is, by network and name."""
        nets = self.loop.learner.networks
        return {f"{name}.{key}": value for name, net in nets.items() for key, value in net.state_dict().items()}

    def _is_done(self) -> bool:
        run = self.config.run
        return self.loop.counters.steps >= run.steps or (run.stop_at != 0.0 and self.memory.reached >= 2)

    def _evaluation_due(self) -> bool:
        every, step = self.config.run.evaluate_every_steps, self.loop.counters.steps
        return every > 0 and (step // every > self.memory.scored_at // every or step >= self.config.run.steps)

    def _look_at_evaluations(self) -> None:
        """Evaluate the policy if that is due; with an evaluator the result comes some time later."""
        evaluator = self._evaluator
        if evaluator is None:
            if self._evaluation_due():
                self._evaluate()
            return
        if found := evaluator.take():
            self._keep_score(*found)
        if evaluator.is_free and self._evaluation_due() and not self._is_done():
            evaluator.begin(self._snapshot())

    def _finish_evaluations(self) -> None:
        """At the end: wait for the evaluation that has begun, then evaluate the last policy here."""
        evaluator, until_s = self._evaluator, time.monotonic() + LAST_S
        if evaluator is None or self.loop.counters.steps < self.config.run.steps:
            return  # two good evaluations ended it: the policy to keep is known
        while not evaluator.is_free and not evaluator.has_failed and not self._stop():
            if found := evaluator.take():
                self._keep_score(*found)
            elif time.monotonic() > until_s:
                self._view.say(f"the last evaluation but one is left out: it took more than {LAST_S:.0f} s")
                break
            else:
                time.sleep(LOOK_EVERY_S)
        if self._evaluation_due():
            self._evaluate()

    def _snapshot(self) -> Snapshot:
        weights = {name: value.detach().to("cpu", copy=True) for name, value in self.networks().items()}
        return Snapshot(self.loop.counters.steps, weights)

    def _evaluate(self) -> None:
        self.loop.source.pause()
        snapshot = self._snapshot()
        with self.loop.clock.phase("evaluate"):
            score = score_policy(
                self.config, self.loop.policy(), self.config.run.evaluation_fights,
                step=snapshot.step, evaluation_files=self._evaluation_files, progress=lambda *_: self.run.beat(),
            )  # fmt: skip
        self._keep_score(snapshot, score)

    def _keep_score(self, snapshot: Snapshot, score: PolicyScore) -> None:
        memory, run = self.memory, self.config.run
        memory.score, memory.scored_at = score, snapshot.step
        memory.reached = memory.reached + 1 if run.stop_at and score.value >= run.stop_at else 0
        # The newest policy is the one to keep, unless an earlier one was measurably better: the best one there was, for
        # step by step a collapse could stay within the noise.
        if memory.top is None or score.high >= memory.top.low:
            memory.best, memory.best_score = snapshot.weights, score
        if memory.top is None or score.low > memory.top.low:
            memory.top = score
        self._metrics |= score.metrics()
        self._log()

    def _has_news(self) -> bool:
        """Steps, or workers that came or went: those who watch want to know that there is none left."""
        before = self._logged_workers
        is_other = before is not None and self._metrics.get(WORKERS, before) != before
        return is_other or self.loop.counters.steps > self._logged_steps

    def _log(self) -> None:
        loop, now_s = self.loop, time.perf_counter()
        passed_s = max(now_s - self._logged_s, 1e-9)
        self._note_time()
        metrics = self._metrics | loop.episodes.metrics()
        metrics |= {
            "updates": float(loop.counters.updates),
            "steps_per_s": (loop.counters.steps - self._logged_steps) / passed_s,
            "updates_per_s": (loop.counters.updates - self._logged_updates) / passed_s,
        }
        if self.config.world == "fight":
            metrics["game_hours"] = loop.counters.steps * GAME_S_PER_STEP / 3600.0
        metrics |= {f"time/{name}": share for name, share in loop.clock.shares().items()}
        loop.clock.take()
        with loop.clock.phase(TELEMETRY):
            if self._sinks and loop.counters.steps > 0:
                self._sinks.write(loop.counters.steps, self.memory.elapsed_s, metrics)
            self._view.show(self._progress(metrics))
        self._logged_workers = metrics.get(WORKERS, self._logged_workers)
        self._metrics = {}
        self._logged_s = now_s
        self._logged_steps, self._logged_updates = loop.counters.steps, loop.counters.updates

    def _progress(self, metrics: dict[str, float]) -> Progress:
        step, steps = self.loop.counters.steps, self.config.run.steps
        left_s = self.memory.elapsed_s * (steps - step) / step if step else 0.0
        return Progress(
            step=step,
            steps=steps,
            elapsed_s=self.memory.elapsed_s,
            left_s=max(0.0, left_s),
            metrics=metrics,
            recent_wins=self.loop.episodes.recent_wins,
            score=self.memory.score,
        )

    def _note_time(self) -> None:
        now_s = time.perf_counter()
        self.memory.elapsed_s += now_s - self._begun_s
        self._begun_s = now_s

    def _newest(self) -> Checkpoint | None:
        """The newest checkpoint whose replay is intact as well; the replay is loaded with it."""
        numbers: list[int | None] = [None, *sorted(self._writer.store.numbers(), reverse=True)]
        tried: set[int] = set()
        wrong: list[str] = []
        for number in numbers:
            if number in tried:
                continue
            try:
                saved = self._writer.store.load(number, self._view.say)
                if saved is None:
                    return None
                tried.add(saved.number)
                if self.loop.learner.store is not None and not self._without_replay:
                    self._writer.segments.load(self.loop.learner.store, saved.state["segments"])
                return saved
            except RunError as error:
                if number is None and not tried:
                    raise
                wrong.append(str(error).partition(";")[0])
                self._view.say(f"{error} (trying the checkpoint before)")
        raise RunError(
            f"{self.run.folder}: no checkpoint is intact with its replay ({'; '.join(dict.fromkeys(wrong))}), but the "
            "networks are: continue with them and an empty replay with --resume --without-replay, or start a new run"
        )

    def _status(self, state: str, final: Evaluation | None = None) -> None:
        step, score = self.loop.counters.steps, self.memory.best_score
        rates: tuple[float | None, float | None, float | None] = (None, None, None)
        if final:
            rates = (final.win_rate, *final.interval)
        elif score and score.is_win_rate:
            rates = (score.value, score.low, score.high)
        self.run.write_status(Status(state, step, self.config.run.steps, *rates))


def final_policy(training: Training) -> NetworkPolicy:
    """The policy to keep: the newest, or an earlier one that was measurably better."""
    if training.memory.best:
        for name, network in training.loop.learner.networks.items():
            network.load_state_dict(weights_of(name, training.memory.best))
    return training.loop.policy()
