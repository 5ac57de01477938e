"""A run: its metrics, when it is measured, what it keeps, and what damaged or full disks do to it."""

import errno
import json
import shutil
import threading
import time
from itertools import pairwise

import pytest
import torch
from msgspec.structs import replace

from soulsai.checkpoints import store as checkpoints
from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.errors import DivergedError, PreflightError, RunError
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.statistics import wilson
from soulsai.learning import session, showing, training
from soulsai.learning.scoring import PolicyScore
from soulsai.learning.session import run_session
from soulsai.learning.training import Training, final_policy
from soulsai.runs.requests import ask, open_requests
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsgym.recordings.recording import read_recording

PPO = ["run.steps=2000", "run.log_every_s=0", "run.evaluate_every_steps=0", "fight.number=4",
       "fight.variants=['standard']", "fight.decisions=true", "ppo.rollout=4", "ppo.epochs=1", "ppo.minibatch=16",
       "network.hidden=[8]", "run.threads=1", "run.final_fights=2"]  # fmt: skip
Q = ["run.steps=2000", "run.log_every_s=0", "run.evaluate_every_steps=0", "fight.number=4", "q.batch=16",
     "fight.variants=['standard']",
     "network.hidden=[8]", "run.threads=1", "q.warmup_steps=300", "replay.capacity=1500",
     "run.final_fights=2"]  # fmt: skip
GYM = ["run.steps=1000", "run.log_every_s=0", "run.evaluate_every_steps=400", "run.evaluation_fights=3", "gym.number=4",
       "ppo.minibatch=64", "network.hidden=[8]", "run.threads=1", "run.final_fights=3"]  # fmt: skip

A_TURN = 800
"""Environment steps that no turn of the loop exceeds here, whatever is played: no evaluation is left out."""


LIMIT_S = 120.0


class Heard:
    """A view that remembers."""

    def __init__(self):
        self.news, self.shown = [], []

    def say(self, text):
        self.news.append(text)

    def show(self, progress):
        self.shown.append(progress)


class After:
    """Says stop after so many iterations."""

    def __init__(self, iterations):
        self.left = iterations

    def __call__(self):
        self.left -= 1
        return self.left < 0


def never():
    return False


def create(folder, preset, *settings):
    config = with_settings(load_preset(preset), list(settings))
    return Run.create(folder, config_to_toml(config), preset=preset, command=[]), config


def make(folder, preset, *settings, stop=never):
    run, config = create(folder, preset, *settings)
    made = Training(run, config, view=Heard(), stop=stop)
    made.begin()
    return made


def resumed(made, stop=never):
    other = Training(Run.open(made.run.folder), made.config, view=Heard(), stop=stop)
    other.resume()
    return other


def trained(folder, preset, *settings, stop=never):
    made = make(folder, preset, *settings, stop=stop)
    made.go()
    made.close("stopped")
    return made


def weights(made):
    return {name: value.clone() for name, value in made.networks().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize(
    ("preset", "settings", "keys"),
    [
        ("smoke", PPO, {"loss/policy", "loss/value", "policy/entropy", "policy/kl", "learning_rate", "game_hours"}),
        ("smoke-q", Q, {"loss/q", "q/mean", "epsilon", "replay/size", "game_hours"}),
        ("cartpole-ppo", GYM, {"loss/policy", "return/training", "return/evaluation", "episode/length", "episodes"}),
    ],
)
def test_rows_of_metrics(tmp_path, preset, settings, keys):
    made = trained(tmp_path / "run", preset, *settings)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        assert {"step", "time", "elapsed_s", "updates", "steps_per_s", "updates_per_s"} <= row.keys()
        shares = [value for name, value in row.items() if name.startswith("time/")]
        assert sum(shares) == pytest.approx(1.0)
    steps = [row["step"] for row in rows]
    assert steps == sorted(steps)
    assert steps[-1] == made.loop.counters.steps >= made.config.run.steps
    assert [row["elapsed_s"] for row in rows] == sorted(row["elapsed_s"] for row in rows)
    assert keys <= set().union(*rows)
    if "game_hours" in keys:
        assert rows[-1]["game_hours"] == pytest.approx(steps[-1] / 36_000)
    assert made._view.shown[-1].step == steps[-1]


def test_time_is_shared_out_since_the_last_row(tmp_path, monkeypatch):
    made = make(tmp_path / "run", "smoke", *PPO)
    with made.loop.clock.phase("evaluate"):
        pass
    made.loop.iterate()
    made._log()
    made.loop.iterate()
    made._log()
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert "time/evaluate" in rows[0]
    assert "time/evaluate" not in rows[1]


# ---------------------------------------------------------------- evaluations


class Judge:
    """Gives scores one after the other, each with an interval of a tenth to both sides; remembers when.

    With `fights` scores are shares of so many, with the interval of those.
    """

    def __init__(self, monkeypatch, *scores, fights=0):
        self.scores, self.steps, self.weights, self.training = iter(scores), [], [], None
        self.fights = fights
        monkeypatch.setattr(training, "score_policy", self)

    def __call__(self, config, policy, episodes, *, step, evaluation_files, progress=None):
        score = next(self.scores)
        self.steps.append(self.training.loop.counters.steps)
        self.weights.append(weights(self.training))
        if self.fights:
            return PolicyScore(score, *wilson(round(score * self.fights), self.fights), self.fights, 0, True)
        return PolicyScore(score, score - 0.1, score + 0.1, episodes, 1, True)


def judged(tmp_path, monkeypatch, scores, *settings, fights=0):
    judge = Judge(monkeypatch, *scores, fights=fights)
    judge.training = make(tmp_path / "run", "smoke", *PPO, *settings)
    return judge.training, judge


def test_evaluations_come_when_due_and_at_the_end(tmp_path, monkeypatch):
    made, judge = judged(tmp_path, monkeypatch, [0.1] * 20, "run.evaluate_every_steps=500")
    assert made.go()
    *regular, last = judge.steps
    assert [step // 500 for step in regular] == [1, 2, 3]
    assert last == made.loop.counters.steps
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    evaluated = [row for row in rows if "win_rate/evaluation" in row]
    assert [row["step"] for row in evaluated] == judge.steps
    assert evaluated[0]["time_out_rate/evaluation"] == pytest.approx(1 / 20)
    assert evaluated[0]["win_rate/evaluation_high"] == pytest.approx(0.2)


def test_a_resumed_run_is_measured_when_it_would_have_been(tmp_path, monkeypatch):
    made, judge = judged(tmp_path, monkeypatch, [0.1] * 20, "run.evaluate_every_steps=500")
    made._stop = After(4)
    assert not made.go()
    before = list(judge.steps)
    assert before
    judge.training = resumed(made)
    assert judge.training.memory.scored_at == before[-1]
    judge.training.go()
    assert [step // 500 for step in judge.steps[:-1]] == [1, 2, 3]


def test_two_good_evaluations_in_a_row_end_the_run(tmp_path, monkeypatch):
    scores = [0.2, 0.95, 0.4, 0.9, 0.91, 0.0]
    made, judge = judged(tmp_path, monkeypatch, scores, "run.evaluate_every_steps=1", "run.stop_at=0.9")
    assert made.go()
    assert len(judge.steps) == 5
    assert made.loop.counters.steps < made.config.run.steps


@pytest.mark.parametrize(("stop_at", "evaluations"), [(-0.5, 2), (0.0, 4)])
def test_a_return_below_zero_can_be_the_aim_and_zero_is_none(tmp_path, monkeypatch, stop_at, evaluations):
    made, judge = judged(tmp_path, monkeypatch, [0.9] * 20, "run.evaluate_every_steps=500", f"run.stop_at={stop_at}")
    assert made.go()
    assert len(judge.steps) == evaluations


def test_an_aim_given_later_counts_from_then(tmp_path, monkeypatch):
    made, judge = judged(tmp_path, monkeypatch, [0.95] * 20, "run.evaluate_every_steps=300")
    made._stop = After(4)
    assert not made.go()
    assert len(judge.steps) >= 2
    made.config = with_settings(made.config, ["run.stop_at=0.9"])
    again = judge.training = resumed(made)
    before = len(judge.steps)
    assert again.go()
    assert len(judge.steps) == before + 2


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([0.5, 0.6, 0.7], 2),
        ([0.5, 0.45, 0.4], 2),  # the last is worse than the first, but not measurably
        ([0.8, 0.5, 0.45], 0),
        ([0.8, 0.5, 0.75], 2),
        ([0.5, 0.9, 0.1], 1),
    ],
)
def test_the_newest_policy_unless_an_earlier_one_was_measurably_better(tmp_path, monkeypatch, scores, kept):
    made, judge = judged(tmp_path, monkeypatch, scores, f"run.evaluate_every_steps={A_TURN}",
                         f"run.steps={3 * A_TURN}")  # fmt: skip
    assert made.go()
    assert len(judge.steps) == 3
    assert made.memory.best_score.value == scores[kept]
    assert same(made.memory.best, judge.weights[kept])
    saved = CheckpointStore(made.run.checkpoints).load()
    assert same(saved.parts["best"], judge.weights[kept])
    final_policy(made)
    assert same(weights(made), judge.weights[kept])


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([0.95, 0.87, 0.77, 0.64, 0.51], {0.95, 0.87}),  # each step lies within the noise of the one before
        ([0.60, 0.90, 0.85, 0.75, 0.65, 0.55], {0.90, 0.85}),
        ([0.95, 0.87, 0.77, 0.96], {0.96}),
        ([0.20, 0.24, 0.28, 0.32], {0.32}),
    ],
)
def test_a_slow_collapse_is_not_kept(tmp_path, monkeypatch, scores, kept):
    often = (f"run.evaluate_every_steps={A_TURN}", f"run.steps={A_TURN * len(scores)}")
    made, judge = judged(tmp_path, monkeypatch, scores, *often, fights=200)
    assert made.go()
    assert len(judge.steps) == len(scores)
    found = made.memory.best_score.value
    assert found in kept
    assert same(made.memory.best, judge.weights[scores.index(found)])


def test_a_slow_collapse_over_several_sessions_is_not_kept(tmp_path, monkeypatch):
    """What the best one was is remembered by checkpoints."""
    scores = [0.95, 0.87, 0.77, 0.64, 0.51]
    often = (f"run.evaluate_every_steps={A_TURN}", f"run.steps={A_TURN * len(scores)}")
    made, judge = judged(tmp_path, monkeypatch, scores, *often, fights=200)
    while len(judge.steps) < len(scores):
        judge.training._stop = After(1)
        judge.training.go()
        judge.training = resumed(made)
    assert judge.training.memory.top.value == 0.95
    assert judge.training.memory.best_score.value in (0.95, 0.87)


def test_without_evaluations_the_last_policy_is_kept(tmp_path):
    made = make(tmp_path / "run", "smoke", *PPO)
    made.go()
    last = weights(made)
    final_policy(made)
    assert made.memory.best == {}
    assert same(weights(made), last)


# ---------------------------------------------------------------- beside the loop


class Beside:
    """In place of an evaluator: gives a score when it was asked so many times."""

    def __init__(self, *scores, patience=3, has_failed=False):
        self.scores, self.patience, self.has_failed = list(scores), patience, has_failed
        self.snapshot, self.steps, self.left, self.stopped = None, [], 0, False

    @property
    def is_free(self):
        return self.snapshot is None

    def begin(self, snapshot):
        assert self.is_free
        self.snapshot, self.left = snapshot, self.patience
        self.steps.append(snapshot.step)

    def take(self):
        self.left -= 1
        if self.snapshot is None or self.left > 0:
            return None
        snapshot, self.snapshot = self.snapshot, None
        value = self.scores.pop(0)
        return snapshot, PolicyScore(value, value - 0.1, value + 0.1, 20, 1, True)

    def stop(self):
        self.stopped = True


def beside(folder, evaluator, *settings, stop=never):
    run, config = create(folder, "smoke", *PPO, *settings)
    made = Training(run, config, view=Heard(), stop=stop, evaluator=evaluator)
    made.begin()
    return made


def test_the_loop_goes_on_while_a_policy_is_evaluated(tmp_path, monkeypatch):
    """Evaluations that take longer than the time between them: one at a time, and always of the newest policy."""
    evaluator = Beside(*[0.3] * 20, patience=4)
    made = beside(tmp_path / "run", evaluator, "run.evaluate_every_steps=100", "run.steps=4000")
    last = Judge(monkeypatch, 0.35)
    last.training = made
    assert made.go()
    made.close("stopped")
    assert evaluator.stopped
    assert len(evaluator.steps) > 2
    assert all(later - earlier >= 3 * 256 for earlier, later in pairwise(evaluator.steps[:-1]))
    assert last.steps == [made.loop.counters.steps]  # the last policy is evaluated in line
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum("win_rate/evaluation" in row for row in rows) == len(evaluator.steps) + 1


def test_the_policy_that_is_kept_is_the_one_that_was_evaluated(tmp_path, monkeypatch):
    evaluator = Beside(0.9, *[0.1] * 20, patience=3)
    made = beside(tmp_path / "run", evaluator, "run.evaluate_every_steps=300")
    snapshots = []
    begin, evaluator.begin = evaluator.begin, lambda snapshot: (snapshots.append(snapshot), begin(snapshot))
    Judge(monkeypatch, 0.1).training = made
    made.go()
    assert made.memory.best_score.value == 0.9
    assert same(made.memory.best, snapshots[0].weights)
    assert not same(weights(made), snapshots[0].weights)


def test_two_good_evaluations_beside_the_loop_end_the_run(tmp_path):
    evaluator = Beside(0.95, 0.96, patience=2)
    settings = ("run.evaluate_every_steps=300", "run.stop_at=0.9", "run.steps=1000000")
    made = beside(tmp_path / "run", evaluator, *settings)
    assert made.go()
    assert made.memory.reached == len(evaluator.steps) == 2


@pytest.mark.faults
def test_an_evaluator_that_has_failed_does_not_hold_up_the_run(tmp_path, monkeypatch):
    evaluator = Beside(patience=10**9, has_failed=True)
    made = beside(tmp_path / "run", evaluator, "run.evaluate_every_steps=300")
    last = Judge(monkeypatch, 0.2)
    last.training = made
    assert made.go()
    assert last.steps == [made.loop.counters.steps]


@pytest.mark.faults
def test_an_evaluation_that_never_ends_is_left_out_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "LAST_S", 0.1)
    made = beside(tmp_path / "run", Beside(patience=10**9), "run.evaluate_every_steps=300")
    Judge(monkeypatch, 0.2).training = made
    assert made.go()
    assert made.memory.score.value == 0.2
    assert "the last evaluation but one is left out: it took more than 0 s" in made._view.news


@pytest.mark.faults
def test_what_was_being_evaluated_when_a_run_ended_is_evaluated_after_it_is_resumed(tmp_path):
    """Stopped or killed between the snapshot and the result: the checkpoint knows of no evaluation."""
    evaluator = Beside(patience=10**9)
    made = beside(tmp_path / "run", evaluator, "run.evaluate_every_steps=300", stop=After(4))
    assert not made.go()
    made.close("stopped")
    assert len(evaluator.steps) == 1
    again, second = resumed(made, stop=After(1)), Beside(patience=10**9)
    again._evaluator = second
    assert again.memory.scored_at == 0
    again.go()
    assert second.steps == [again.loop.counters.steps]


@pytest.fixture
def slow_disk(monkeypatch):
    """Checkpoints that are written when the event is set; how many are being written, and how many were."""
    go, counts, save = threading.Event(), {"now": 0, "most": 0, "all": 0}, CheckpointStore.save

    def slowly(self, *given):
        counts["now"] += 1
        counts["most"] = max(counts["most"], counts["now"])
        assert go.wait(LIMIT_S)
        counts["now"] -= 1
        counts["all"] += 1
        return save(self, *given)

    monkeypatch.setattr(CheckpointStore, "save", slowly)
    return go, counts


@pytest.mark.parametrize(("preset", "settings"), [("smoke", PPO), ("smoke-q", Q)])
def test_the_loop_goes_on_while_a_checkpoint_is_written(tmp_path, slow_disk, preset, settings):
    go, counts = slow_disk
    made = make(tmp_path / "run", preset, *settings, "run.checkpoint_every_s=0", "run.steps=1000000")
    at = {}

    def stop():
        if counts["now"] and "begun" not in at:
            at["begun"] = made.loop.counters.steps
        at["waited"] = at.get("waited", 0) + bool(counts["now"])
        if at["waited"] == 4:
            go.set()
        return at["waited"] >= 4

    made._stop = stop
    assert not made.go()
    made.close("stopped")
    assert made.loop.counters.steps >= at["begun"] + 3 * 256
    assert counts["most"] == 1
    assert counts["all"] == 2
    numbers = CheckpointStore(made.run.checkpoints).numbers()
    assert numbers[-1] == made.loop.counters.steps
    assert numbers[0] <= at["begun"]
    again = resumed(made)
    assert same(weights(again), weights(made))


def test_who_asks_for_a_checkpoint_while_one_is_written_gets_the_next(tmp_path, slow_disk):
    made = make(tmp_path / "run", "smoke", *PPO)
    with made.run.lock():
        made._begin_saving("running")
        ask(made.run, "save")
        slow_disk[0].set()
        made._finish_saving()
        assert open_requests(made.run) == ("save",)
        made.save()
        assert open_requests(made.run) == ()


@pytest.mark.faults
def test_a_checkpoint_that_cannot_be_written_beside_the_loop_ends_it(tmp_path, monkeypatch):
    made = make(tmp_path / "run", "smoke", *PPO, "run.checkpoint_every_s=0", "run.steps=100000000")

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(checkpoints, "write_durably", full)
    with pytest.raises(RunError, match="cannot be written, the disk is full"):
        made.go()


@pytest.mark.faults
def test_the_end_waits_for_a_checkpoint_with_a_limit(tmp_path, monkeypatch, slow_disk):
    monkeypatch.setattr(training, "WRITE_S", 0.1)
    made = make(tmp_path / "run", "smoke", *PPO, stop=After(2))
    with pytest.raises(RunError, match=r"is not written after 0 s: look what the disk waits for"):
        made.go()
    slow_disk[0].set()


# ---------------------------------------------------------------- stopping in the game


def test_in_the_game_a_stop_ends_a_rollout_with_the_step(tmp_path):
    """A step takes a moment there, and a rollout many seconds; what it was in the middle of is not learned from."""
    asked = threading.Event()
    made = make(tmp_path / "run", "smoke", *PPO, "ppo.rollout=64", "ppo.minibatch=64", stop=asked.is_set)
    config, world, played = made.config, made.loop.source.actors[0].world, []
    made.config = replace(config, fight=replace(config.fight, engine="game"))
    step = world.step

    def counted(actions):
        played.append(actions)
        if len(played) == 70:
            asked.set()
        return step(actions)

    world.step = counted
    assert not made.go()
    made.close("stopped")
    assert len(played) == 70
    assert made.loop.counters.updates == 4  # minibatches of the one rollout that was whole
    made.config = config
    assert resumed(made).loop.counters.steps == made.loop.counters.steps > 0


# ---------------------------------------------------------------- divergence


def break_after(iterations, made, monkeypatch, *, late=False):
    """Make a weight no number after so many more turns; with `late` the turn itself still looks fine."""
    plain, left = made.loop.iterate, iter(range(iterations))

    def iterate():
        broken = next(left, None) is None
        if broken and not late:
            made.loop.learner.flats["network"].data[3] = float("nan")
        metrics = plain()
        if broken and late:
            made.loop.learner.flats["network"].data[3] = float("nan")
        return metrics

    monkeypatch.setattr(made.loop, "iterate", iterate)


DIVERGING = {
    "ppo": ("smoke", PPO),
    "q": ("smoke-q", [*Q, "q.warmup_steps=0"]),
    "prioritized": ("smoke-q", [*Q, "q.warmup_steps=0", "replay.prioritized=true"]),
}


@pytest.mark.parametrize("late", [False, True], ids=["loss", "weight"])
@pytest.mark.parametrize("case", DIVERGING)
def test_divergence_ends_training_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch, case, late):
    preset, settings = DIVERGING[case]
    made = make(tmp_path / "run", preset, *settings, "run.steps=100000", stop=After(3))
    assert not made.go()
    good, kept = made.loop.counters.steps, weights(made)
    made._stop = never
    made.config = with_settings(made.config, ["run.checkpoint_every_s=0"]) if late else made.config
    break_after(0, made, monkeypatch, late=late)
    with pytest.raises(DivergedError) as caught:
        made.go()
    text = str(caught.value)
    assert text.startswith("training has diverged: ")
    assert "\n" not in text
    assert f"the checkpoint of step {good:,} is kept" in text
    assert "lower the learning rate" in text
    made.close("failed")
    assert CheckpointStore(made.run.checkpoints).numbers()[-1] == good
    again = resumed(made, stop=After(2))
    assert same(weights(again), kept)
    assert again.loop.counters.steps == good
    assert not again.go()
    assert again.loop.counters.steps > good
    assert all(bool(torch.isfinite(value).all()) for value in weights(again).values())


def test_divergence_before_the_first_checkpoint_says_that_there_is_none(tmp_path, monkeypatch):
    made = make(tmp_path / "run", "smoke", *PPO)
    break_after(1, made, monkeypatch)
    with pytest.raises(DivergedError, match="there is no checkpoint"):
        made.go()
    assert CheckpointStore(made.run.checkpoints).numbers() == []


def test_a_session_that_diverges_is_a_failed_one(tmp_path, monkeypatch):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    begin = Training.begin

    def begin_and_break(self):
        begin(self)
        break_after(2, self, monkeypatch)

    monkeypatch.setattr(Training, "begin", begin_and_break)
    with pytest.raises(DivergedError, match="training has diverged"):
        session_of(run, config)
    assert run.status().state == "failed"
    assert not run.is_locked()


def test_a_checkpoint_of_another_format_is_refused_in_one_sentence(tmp_path, monkeypatch):
    made = trained(tmp_path / "run", "smoke", *PPO, stop=After(2))
    monkeypatch.setattr(training, "FORMAT", training.FORMAT + 1)
    with pytest.raises(RunError, match="was written by another version of soulsai: it can be evaluated") as refused:
        resumed(made)
    assert "\n" not in str(refused.value)


# ---------------------------------------------------------------- sessions


def session_of(run, config, *, resume=False, view=None, stop=never, check=False):
    return run_session(run, config, resume=resume, view=view or Heard(), stop=stop, check=check)


@pytest.mark.parametrize(("preset", "settings"), [("smoke", PPO), ("cartpole-ppo", GYM)])
def test_a_whole_session(tmp_path, preset, settings):
    run, config = create(tmp_path / "run", preset, *settings)
    outcome = session_of(run, config)
    assert outcome.finished
    assert run.status().state == "finished"
    assert not run.is_locked()
    (evaluation,) = run.evaluations()
    content = json.loads(evaluation[1])
    if preset == "smoke":
        assert outcome.worst.fights == 2
        assert outcome.worst.to_json() == evaluation[1]
    else:
        assert len(content["returns"]) == 3
        assert outcome.mean_return == pytest.approx(sum(content["returns"]) / 3)
    assert "<html" in run.report_file.read_text()[:500].lower()


def test_a_session_that_is_stopped_goes_on_where_it_was(tmp_path):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    assert not session_of(run, config, stop=After(3)).finished
    assert run.status().state == "stopped"
    stopped_at = run.status().step
    assert 0 < stopped_at < 2000
    view = Heard()
    assert session_of(Run.open(run.folder), config, resume=True, view=view).finished
    assert any(f"resuming from step {stopped_at:,}" in text for text in view.news)
    assert run.status().state == "finished"


def test_a_damaged_evaluation_is_left_out_of_the_report(tmp_path, caplog):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    texts = ["{}", "null", '{"format": 1, "per_f']
    files = [run.add_evaluation("eval", text) for text in texts]
    assert session_of(run, config).finished
    assert run.status().state == "finished"
    assert [f"{file}: is damaged and left out" in caplog.text for file in files] == [True] * 3
    assert "of 2 fights" in run.report_file.read_text()


def test_a_run_whose_report_cannot_be_written_is_finished(tmp_path):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    run.report_file.mkdir()
    with pytest.raises(RunError, match=r"report\.html"):
        session_of(run, config)
    assert run.status().state == "finished"


def test_a_run_without_its_checkpoints_does_not_begin_again(tmp_path):
    """Half a copy: its metrics would be lost."""
    run, config = create(tmp_path / "run", "smoke", *PPO)
    session_of(run, config)
    shutil.rmtree(run.checkpoints)
    rows = len(run.metrics())
    for _ in range(2):
        with pytest.raises(RunError, match="is empty, though the run was saved at step"):
            session_of(run, with_settings(config, ["run.steps=9000"]), resume=True)
    assert run.status().state == "finished"
    assert len(run.metrics()) == rows > 0


def test_a_run_that_cannot_be_resumed_keeps_its_step_and_win_rate(tmp_path, monkeypatch):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    session_of(run, config)
    before = run.status()
    longer = with_settings(config, ["run.steps=9000"])
    for place in ("soulsai.learning.session.compile_parts", "soulsai.learning.training.Training._newest"):
        with monkeypatch.context() as patch:
            patch.setattr(place, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                session_of(run, longer, resume=True)
        after = run.status()
        assert (after.state, after.step, after.steps) == ("failed", before.step, 9000)
        assert after.win_rate == before.win_rate is not None


def test_a_failed_session_says_so_and_frees_the_run(tmp_path, monkeypatch):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    monkeypatch.setattr(Training, "go", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session_of(run, config)
    assert run.status().state == "failed"
    assert not run.is_locked()


def test_a_run_that_the_preflight_refused_is_looked_at_again(tmp_path, monkeypatch):
    """Resuming is no way around it, unless something was trained already."""
    run, config = create(tmp_path / "run", "smoke", *PPO)

    def refuse(config, say):
        raise PreflightError("no")

    monkeypatch.setattr(session, "preflight", refuse)
    for resume in (False, True):
        with pytest.raises(PreflightError):
            session_of(run, config, resume=resume, check=True)
    assert not session_of(run, config, stop=After(1)).finished
    assert session_of(run, config, resume=True, check=True).finished


def test_resuming_before_the_first_checkpoint_begins_anew(tmp_path):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 5}\n')
    view = Heard()
    assert session_of(run, config, resume=True, view=view).finished
    assert "no checkpoint was written yet; beginning again" in view.news
    assert run.metrics()[0]["step"] > 5


# ---------------------------------------------------------------- faults


def damage(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.faults
def test_a_full_disk_leaves_the_older_checkpoint(tmp_path, monkeypatch):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    session_of(run, config, stop=After(3))
    (older,) = CheckpointStore(run.checkpoints).numbers()

    def full(file, data):
        file.write_bytes(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(checkpoints, "write_durably", full)
    with pytest.raises(RunError, match=r"cannot be written, the disk is full: free some space.*--resume$") as refused:
        session_of(run, config, resume=True)
    assert "\n" not in str(refused.value)
    assert run.status().state == "failed"
    monkeypatch.undo()
    assert CheckpointStore(run.checkpoints).load().number == older
    assert session_of(run, config, resume=True).finished


@pytest.mark.faults
def test_a_full_disk_while_the_replay_is_saved(tmp_path, monkeypatch):
    made = trained(tmp_path / "run", "smoke-q", *Q, stop=After(4))
    older = CheckpointStore(made.run.checkpoints).numbers()
    again = resumed(made, stop=After(2))

    def full(self, store, first, rows, unfinished):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("soulsai.replay.segments.ReplaySegments._write", full)
    with pytest.raises(RunError, match=r"replay: cannot be written, the disk is full"):
        again.go()
    monkeypatch.undo()
    assert CheckpointStore(made.run.checkpoints).numbers() == older
    assert resumed(made).go()


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    """Runs of both kinds, each with two checkpoints."""
    folders = {}
    for preset, settings in (("smoke", PPO), ("smoke-q", Q)):
        folder = tmp_path_factory.mktemp("two") / preset
        made = make(folder, preset, *settings, stop=After(4))
        made.go()
        made._stop = After(2)
        made.go()
        made.close("stopped")
        assert len(CheckpointStore(folder / "checkpoints").numbers()) == 2
        folders[preset] = made
    return folders


@pytest.fixture(params=["smoke", "smoke-q"])
def twice_saved(request, two_checkpoints, tmp_path):
    """A copy of such a run: what was trained last, its folder, and the steps of its checkpoints."""
    original = two_checkpoints[request.param]
    folder = shutil.copytree(original.run.folder, tmp_path / "copy")
    return original, folder, CheckpointStore(folder / "checkpoints").numbers()


@pytest.mark.faults
def test_a_damaged_checkpoint_is_passed_over(twice_saved):
    original, folder, (older, newer) = twice_saved
    damage(folder / "checkpoints" / f"{newer:012d}" / "network.safetensors")
    other = Training(Run.open(folder), original.config, view=Heard(), stop=never)
    other.resume()
    assert other.loop.counters.steps == older
    assert any(f"checkpoint {newer} is damaged and was skipped" in text for text in other._view.news)
    assert other.go()
    assert CheckpointStore(folder / "checkpoints").load().number == other.loop.counters.steps


@pytest.mark.faults
def test_a_damaged_replay_leads_to_the_checkpoint_before(two_checkpoints, tmp_path):
    original = two_checkpoints["smoke-q"]
    folder = shutil.copytree(original.run.folder, tmp_path / "copy")
    store = CheckpointStore(folder / "checkpoints")
    older, newer = store.numbers()
    only_newer = {info["name"] for info in store.load_state(newer)["segments"]}
    only_newer -= {info["name"] for info in store.load_state(older)["segments"]}
    (segment,) = only_newer
    damage(folder / "replay" / segment)
    other = Training(Run.open(folder), original.config, view=Heard(), stop=never)
    other.resume()
    assert other.loop.counters.steps == older
    assert any(segment in text and "is damaged" in text for text in other._view.news)
    assert other.loop.learner.store.added < original.loop.learner.store.added
    assert other.go()


@pytest.mark.faults
def test_nothing_intact_is_one_sentence(two_checkpoints, tmp_path):
    original = two_checkpoints["smoke-q"]
    folder = shutil.copytree(original.run.folder, tmp_path / "copy")
    for segment in (folder / "replay").iterdir():
        damage(segment)
    other = Training(Run.open(folder), original.config, view=Heard(), stop=never)
    with pytest.raises(RunError, match="no checkpoint is intact with its replay") as refused:
        other.resume()
    text = str(refused.value)
    assert "\n" not in text
    assert "--resume --without-replay" in text
    for number in (store := CheckpointStore(folder / "checkpoints")).numbers():
        assert any(info["name"] in text for info in store.load_state(number)["segments"])


@pytest.mark.faults
@pytest.mark.parametrize("prioritized", [False, True])
def test_networks_without_their_replay(tmp_path, prioritized):
    """Also where its files are gone: the weights go on, and what is written next is whole again."""
    settings = [*Q, f"replay.prioritized={str(prioritized).lower()}", "run.steps=100000"]
    made = trained(tmp_path / "run", "smoke-q", *settings, stop=After(4))
    for segment in made.run.replay.iterdir():
        segment.unlink()
    other = Training(made.run, made.config, view=Heard(), stop=After(4))
    other.resume(without_replay=True)
    assert other.loop.counters.steps == made.loop.counters.steps
    assert same(weights(other), weights(made))
    assert len(other.loop.learner.store) == 0
    assert any("its replay is left out" in text for text in other._view.news)
    assert not other.go()
    assert other.loop.counters.updates > made.loop.counters.updates
    other.close("stopped")
    again = Training(made.run, made.config, view=Heard(), stop=After(1))
    again.resume()
    assert len(again.loop.learner.store) == len(other.loop.learner.store) > 0


def test_segments_of_the_replay_are_cleared_away(tmp_path):
    """Only what the checkpoints that are kept need stays on the disk."""
    made = make(tmp_path / "run", "smoke-q", *Q, "run.checkpoint_every_s=0", "replay.capacity=300")
    assert made.go()
    store = CheckpointStore(made.run.checkpoints)
    needed = {info["name"] for number in store.numbers() for info in store.load_state(number)["segments"]}
    assert {path.name for path in made.run.replay.iterdir()} == needed


# What it is asked for while it trains


class Scene(threading.Thread):
    """Someone beside the training who asks for things as soon as its state is what they wait for."""

    def __init__(self, run, *acts):
        super().__init__(daemon=True)
        self.run_asked, self.acts, self.seen = run, acts, []
        self.start()

    def run(self):
        for awaited, action in self.acts:
            deadline_s = time.monotonic() + 120.0
            while not awaited(self.run_asked) and time.monotonic() < deadline_s:
                time.sleep(0.01)
            self.seen.append((self.run_asked.status().state, self.run_asked.status().step))
            ask(self.run_asked, action)


def state_is(state):
    return lambda run: run.status().state == state


def is_saved(run):
    """Whether a checkpoint is there and the status, which is written after it, tells of it."""
    status = run.status()
    return status.state == "running" and status.step > 0 and any(run.checkpoints.glob("[0-9]*"))


def waited(seconds):
    begun_s = []

    def is_over(run):
        begun_s.append(time.monotonic())
        return time.monotonic() - begun_s[0] > seconds

    return is_over


def endless(folder, *settings):
    run, config = create(folder, "smoke", *PPO, "run.steps=100000000", "run.checkpoint_every_s=0.05", *settings)
    return run, lambda: run_session(run, config, resume=False, view=Heard(), stop=never, check=False)


def test_stop_saves_and_ends(tmp_path):
    run, go = endless(tmp_path / "run")
    scene = Scene(run, (is_saved, "stop"))
    assert not go().finished
    assert run.status().state == "stopped"
    assert run.status().step >= scene.seen[0][1] > 0
    assert open_requests(run) == ()
    assert max(int(path.name) for path in run.checkpoints.glob("[0-9]*")) == run.status().step


def test_save_writes_a_checkpoint_at_once(tmp_path):
    run, go = endless(tmp_path / "run", "run.checkpoint_every_s=1000")
    is_met = lambda run: any(run.checkpoints.glob("[0-9]*")) and open_requests(run) == ()  # noqa: E731
    scene = Scene(run, (lambda run: run.metrics_file.exists() and run.metrics(), "save"), (is_met, "stop"))
    go()
    assert len(scene.seen) == 2


def test_a_paused_run_stands_still_and_this_is_no_time_of_training(tmp_path):
    run, go = endless(tmp_path / "run")
    begun_s = time.monotonic()
    scene = Scene(run, (is_saved, "pause"), (state_is("paused"), "save"), (waited(1.5), "unpause"), (is_saved, "stop"))
    go()
    passed_s = time.monotonic() - begun_s
    (_, _), (paused, at_first), (still_paused, at_last), _ = scene.seen
    assert (paused, still_paused) == ("paused", "paused")
    assert at_first == at_last < run.status().step
    assert run.metrics()[-1]["elapsed_s"] < passed_s - 1.5


def test_a_paused_run_can_be_stopped(tmp_path):
    run, go = endless(tmp_path / "run")
    Scene(run, (is_saved, "pause"), (state_is("paused"), "stop"))
    assert not go().finished
    assert (run.status().state, open_requests(run)) == ("stopped", ())


def test_what_an_earlier_process_was_asked_for_is_forgotten(tmp_path):
    run, config = create(tmp_path / "run", "smoke", *PPO)
    with run.lock():
        for action in ("save", "pause", "stop"):
            ask(run, action)
    assert run_session(run, config, resume=False, view=Heard(), stop=never, check=False).finished


def test_a_killed_run_that_was_paused_is_a_killed_one(tmp_path):
    run, _ = create(tmp_path / "run", "smoke", *PPO)
    run.write_status(Status("paused", 5, 10))
    assert run.status().state == "killed"


# What is kept of evaluations, for whoever looks


def judging(folder, *settings):
    often = ("run.evaluate_every_steps=600", "run.evaluation_fights=3", "fight.step_limit=200")
    run, config = create(folder, "smoke", *PPO, *often, *settings)
    view = Heard()
    run_session(run, config, resume=False, view=view, stop=never, check=False)
    return run, view


def test_the_newest_evaluation_and_fights_of_it_are_kept(tmp_path):
    run, _ = judging(tmp_path / "run", "run.record_every_s=3600")
    newest = Evaluation.from_json(run.judged_file.read_text())
    assert newest.fights == 3
    rates = [row["win_rate/evaluation"] for row in run.metrics() if "win_rate/evaluation" in row]
    assert newest.win_rate == rates[-1]
    fights = sorted(file.name for file in run.recordings.iterdir())
    assert fights  # only those of the first evaluation: the next ones came sooner than they are kept
    assert len({name.split("-")[1] for name in fights}) == 1
    assert len(read_recording(run.recordings / fights[0])) > 1


def test_fights_need_not_be_kept(tmp_path):
    run, _ = judging(tmp_path / "run", "run.record_every_s=0")
    assert run.judged_file.exists()
    assert not list(run.recordings.iterdir())


def test_a_full_disk_ends_the_exhibition_not_the_training(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(showing, "keep_fights", full)
    run, view = judging(tmp_path / "run", "run.record_every_s=0.001")
    told = [text for text in view.news if "no longer kept for the viewer" in text]
    assert told == ["evaluations are no longer kept for the viewer: [Errno 28] No space left on device"]
    assert run.status().state == "finished"
