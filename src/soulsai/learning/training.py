"""One run from its first step, or its last checkpoint, to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch

from soulsai.acting.policy import NetworkPolicy
from soulsai.checkpoints.store import Checkpoint, CheckpointStore
from soulsai.config.schema import Config
from soulsai.errors import RunError
from soulsai.learning.exhibition import Exhibition
from soulsai.learning.judging import Judgement, judge
from soulsai.learning.loops import Loop
from soulsai.learning.students import QStudent
from soulsai.learning.wiring import build_loop, build_world, threads_of
from soulsai.replay import ReplaySegments, SegmentInfo
from soulsai.replay.segments import alive
from soulsai.runs.requests import KEPT, LOOK_EVERY_S, Requests, asked
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.telemetry.clock import TELEMETRY
from soulsai.telemetry.sinks import JsonlSink, Sink, Sinks, TensorBoardSink
from soulsgym.errors import GameError

if TYPE_CHECKING:
    from soulsai.evaluation.evaluation import Evaluation
    from soulsgym.game.engine import GameOptions

GAME_S_PER_STEP = 0.1
WORKERS = "fleet/workers"


@dataclass(frozen=True)
class Progress:
    """What there is to tell about a run at a moment."""

    step: int
    steps: int
    elapsed_s: float
    left_s: float
    metrics: dict[str, float]
    recent_wins: tuple[int, int]
    judgement: Judgement | None


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
    judgement: Judgement | None = None
    judged_at: int = 0
    reached: int = 0  # evaluations in a row that reached run.stop_at
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    best_judgement: Judgement | None = None
    segments: list[SegmentInfo] = field(default_factory=list)


class Training:
    """A run being trained. `stop` is asked after every iteration whether to end here; `sinks` get the metrics too."""

    def __init__(
        self,
        run: Run,
        config: Config,
        *,
        view: View,
        stop: Callable[[], bool],
        loop: Loop | None = None,
        game: GameOptions | None = None,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self.run, self.config, self._view, self._stop = run, config, view, stop
        torch.set_num_threads(threads_of(config))
        self.loop = loop or build_loop(config, build_world(config, game))
        self.memory = Memory()
        self._checkpoints = CheckpointStore(run.checkpoints, config.run.keep_checkpoints)
        self._segments = ReplaySegments(run.replay)
        self._requests = Requests(run)
        self._exhibition = Exhibition(run, config, self.loop.clock, view.say)
        self._more_sinks = sinks
        self._sinks: Sinks | None = None
        self._metrics: dict[str, float] = {}
        self._begun_s = self._logged_s = self._saved_s = 0.0
        self._logged_steps = self._logged_updates = 0
        self._logged_workers: float | None = None

    def begin(self) -> None:
        """Start from nothing."""
        self.loop.begin()
        self._sinks = Sinks(
            [JsonlSink(self.run.metrics_file), TensorBoardSink(self.run.tensorboard), *self._more_sinks],
            warn=self._view.say,
        )

    def resume(self) -> None:
        """Go on from the newest checkpoint whose files are all intact."""
        saved = self._newest()
        if saved is None:
            self._view.say("no checkpoint was written yet; beginning again")
            self.run.metrics_file.unlink(missing_ok=True)
            self.begin()
            return
        state = saved.state
        self.loop.counters.__dict__.update(state["counters"])
        self.loop.restore(saved)
        self.memory = Memory(
            elapsed_s=state["elapsed_s"],
            judgement=Judgement.of(state["judgement"]),
            judged_at=state["judged_at"],
            reached=state["reached"],
            best=saved.parts.get("best", {}),
            best_judgement=Judgement.of(state["best_judgement"]),
            segments=state["segments"],
        )
        position, step = state["metrics_position"], self.loop.counters.steps
        self._sinks = Sinks(
            [
                JsonlSink.resume(self.run.metrics_file, position["jsonl"]),
                TensorBoardSink(self.run.tensorboard, purge_step=step + 1),
                *self._more_sinks,
            ],
            warn=self._view.say,
        )
        self._view.say(f"going on from step {step:,} of {self.config.run.steps:,}")

    def go(self) -> bool:
        """Train until the end (True) or until stopped (False). The last state is saved in either case."""
        loop, run = self.loop, self.config.run
        self._begun_s = self._logged_s = self._saved_s = time.perf_counter()
        self._logged_steps, self._logged_updates = loop.counters.steps, loop.counters.updates
        loop.clock.take()
        while not (done := self._is_done()) and not self._stop():
            self._metrics |= self._iterated()
            requests = self._requests.take()
            if "pause" in requests:
                requests = self._pause()
            if "stop" in requests:
                self._view.say("stopping and saving, as the operator asked")
                break
            if self._judging_due():
                self._judge()
            if time.perf_counter() - self._logged_s >= run.log_every_s and self._has_news():
                self._log()
            due = time.perf_counter() - self._saved_s >= run.checkpoint_every_s
            if due or loop.saving_is_due or "save" in requests:
                self.save()
        if loop.counters.steps > self._logged_steps:
            self._log()
        self.save()
        return done

    def _pause(self) -> tuple[str, ...]:
        """Stand still until told to go on or to stop; what was asked for last. This is no time of training."""
        if self.loop.counters.steps > self._logged_steps:
            self._log()
        self.loop.pause()
        self.save("paused")
        self._view.say("saved and paused, as the operator asked")
        requests: tuple[str, ...] = ("pause",)
        while "pause" in requests and "stop" not in requests and not self._stop():
            time.sleep(LOOK_EVERY_S)
            requests = asked(self.run)
            self._begun_s = self._logged_s = time.perf_counter()
            if "save" in requests:
                self.save("paused")
        self.loop.clock.take()
        self._status("running")
        if "pause" not in requests:
            self._view.say("going on")
        return requests

    def _iterated(self) -> dict[str, float]:
        """One turn of the loop. A game that cannot be played on ends the session, but what was learned is kept."""
        try:
            return self.loop.iterate()
        except GameError:
            self._view.say("the game failed; saving what was learned")
            self.save()
            raise

    def save(self, state: str = "running") -> None:
        """Write a checkpoint; `state` is how the run stands."""
        with self.loop.clock.phase("save"):
            self._note_time()
            memory, loop = self.memory, self.loop
            parts: dict[str, Any] = dict(loop.parts())
            if memory.best:
                parts["best"] = memory.best
            if isinstance(loop, QStudent):
                self._save_replay(loop)
            notes = {
                "counters": asdict(loop.counters),
                "elapsed_s": memory.elapsed_s,
                "judgement": memory.judgement and asdict(memory.judgement),
                "best_judgement": memory.best_judgement and asdict(memory.best_judgement),
                "judged_at": memory.judged_at,
                "reached": memory.reached,
                "segments": memory.segments,
                "metrics_position": self._sinks.position() if self._sinks else None,
                "loop": loop.notes(),
            }
            self._checkpoints.save(loop.counters.steps, parts, notes)
            self._segments.prune(self._needed_segments())
            loop.saved()
        self._requests.met("save")
        self._saved_s = time.perf_counter()
        self._status(state)

    def close(self, state: str, final: Evaluation | None = None) -> None:
        """Release everything; `state` is how the run stands: finished, stopped or failed.

        The win rate of a run that is over is that of its `final` evaluation. The best one of those during training was
        chosen among many, and so is too high on average.
        """
        if self._sinks:
            self._sinks.close()
        self.loop.close()
        self._requests.met(*KEPT)
        self._status(state, final)

    def networks(self) -> dict[str, torch.Tensor]:
        """The weights of the policy as it is, by network and name."""
        nets = self.loop.networks()
        return {f"{name}.{key}": value for name, net in nets.items() for key, value in net.state_dict().items()}

    def _is_done(self) -> bool:
        run = self.config.run
        return self.loop.counters.steps >= run.steps or (run.stop_at != 0.0 and self.memory.reached >= 2)

    def _judging_due(self) -> bool:
        every, step = self.config.run.evaluate_every_steps, self.loop.counters.steps
        return every > 0 and (step // every > self.memory.judged_at // every or step >= self.config.run.steps)

    def _judge(self) -> None:
        memory, run = self.memory, self.config.run
        self.loop.pause()
        with self.loop.clock.phase("evaluate"):
            judgement = judge(
                self.config, self.loop.policy(), run.evaluation_fights,
                step=self.loop.counters.steps, exhibition=self._exhibition,
            )  # fmt: skip
        memory.judgement, memory.judged_at = judgement, self.loop.counters.steps
        memory.reached = memory.reached + 1 if run.stop_at and judgement.score >= run.stop_at else 0
        # The newest policy is the one to keep, unless an earlier one was measurably better.
        if memory.best_judgement is None or judgement.high >= memory.best_judgement.low:
            memory.best = {name: value.detach().cpu().clone() for name, value in self.networks().items()}
            memory.best_judgement = judgement
        self._metrics |= judgement.metrics()
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
            judgement=self.memory.judgement,
        )

    def _note_time(self) -> None:
        now_s = time.perf_counter()
        self.memory.elapsed_s += now_s - self._begun_s
        self._begun_s = now_s

    def _save_replay(self, loop: QStudent) -> None:
        memory = self.memory
        since = max((info["first"] + info["rows"] for info in memory.segments), default=0)
        written = self._segments.save(loop.store, since)
        memory.segments = alive([*memory.segments, *written], loop.store.added, loop.store.capacity)

    def _needed_segments(self) -> set[str]:
        needed = {info["name"] for info in self.memory.segments}
        for number in self._checkpoints.numbers():
            try:
                needed |= {info["name"] for info in self._checkpoints.load_state(number)["segments"]}
            except RunError:
                continue  # damaged; what only it needs may go
        return needed

    def _newest(self) -> Checkpoint | None:
        """The newest checkpoint whose replay is intact as well; the replay is loaded with it."""
        numbers: list[int | None] = [None, *sorted(self._checkpoints.numbers(), reverse=True)]
        tried: set[int] = set()
        for number in numbers:
            if number in tried:
                continue
            try:
                saved = self._checkpoints.load(number, self._view.say)
                if saved is None:
                    return None
                tried.add(saved.number)
                if isinstance(self.loop, QStudent):
                    self._segments.load(self.loop.store, saved.state["segments"])
                return saved
            except RunError as error:
                if number is None and not tried:
                    raise
                self._view.say(f"{error} (trying the checkpoint before)")
        raise RunError(f"{self.run.folder}: no checkpoint is intact with its replay; start a new run")

    def _status(self, state: str, final: Evaluation | None = None) -> None:
        step, judgement = self.loop.counters.steps, self.memory.best_judgement
        rates: tuple[float | None, float | None, float | None] = (None, None, None)
        if final:
            rates = (final.win_rate, *final.interval)
        elif judgement and judgement.wins:
            rates = (judgement.score, judgement.low, judgement.high)
        self.run.write_status(Status(state, step, self.config.run.steps, *rates))


def final_policy(training: Training) -> NetworkPolicy:
    """The policy to keep: the newest, or an earlier one that was measurably better."""
    best = training.memory.best
    if best:
        for name, network in training.loop.networks().items():
            own = {key.removeprefix(f"{name}."): value for key, value in best.items() if key.startswith(f"{name}.")}
            network.load_state_dict(own)
    return training.loop.policy()
