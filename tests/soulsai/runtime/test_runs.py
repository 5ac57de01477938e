"""Which runs can be continued, and that their schedules do not jump."""

import pytest
from msgspec.structs import replace

from soulsai.config import Config, with_settings
from soulsai.errors import RunFinished
from soulsai.runs import Run, Status
from soulsai.runs.summary import list_runs
from soulsai.runtime.runs import can_continue, keep_schedule, refuse_finished

CONFIG = with_settings(Config(), ["run.steps=100"])


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "runs/mine", "[run]\nseed = 1\n", preset="smoke", command=["souls"])


@pytest.mark.parametrize(
    ("state", "step", "saved", "expected"),
    [("failed", 0, False, False), ("failed", 0, True, True), ("failed", 7, False, True), ("stopped", 0, False, True),
     ("finished", 100, True, False)],
)  # fmt: skip
def test_what_can_be_continued(run, state, step, saved, expected):
    run.write_status(Status(state, step, 100))
    if saved:
        (run.checkpoints / "000000000001").mkdir()
    (summary,) = list_runs(run.folder.parent)
    assert can_continue(summary) is expected


def test_a_finished_run_needs_more_steps(run):
    run.write_status(Status("finished", 104, 100))
    for steps in (100, 104):
        with pytest.raises(RunFinished, match=r"mine is finished at step 104; .* --set run\.steps=208$"):
            refuse_finished(run, CONFIG, with_settings(CONFIG, [f"run.steps={steps}"]))
    refuse_finished(run, CONFIG, with_settings(CONFIG, ["run.steps=105"]))
    run.write_status(Status("stopped", 104, 100))
    refuse_finished(run, CONFIG, CONFIG)


def test_a_run_that_was_good_enough_needs_another_mark(run):
    run.write_status(Status("finished", 50, 100))
    good = with_settings(CONFIG, ["run.stop_at=0.9"])
    with pytest.raises(RunFinished, match=r"--set run\.stop_at=0$"):
        refuse_finished(run, good, with_settings(good, ["run.steps=1000"]))
    refuse_finished(run, good, with_settings(good, ["run.stop_at=0"]))


@pytest.mark.parametrize("steps", [50, 400])
def test_schedules_keep_the_length_they_began_with(run, steps):
    run.write_status(Status("stopped", 40, 100))
    said: list[str] = []
    changed = keep_schedule(run, CONFIG, with_settings(CONFIG, [f"run.steps={steps}"]), said.append)
    assert changed.run == replace(CONFIG.run, steps=steps, schedule_steps=100)
    assert changed.run.schedule_progress(40) == CONFIG.run.schedule_progress(40) == 0.4  # before: 0.8 and 0.1
    assert len(said) == 1
    again = keep_schedule(run, changed, with_settings(changed, ["run.steps=500"]), said.append)
    assert (again.run.steps, again.run.schedule_steps, len(said)) == (500, 100, 1)


def test_the_user_may_choose_another_schedule_and_a_new_run_has_none_yet(run):
    run.write_status(Status("stopped", 40, 100))
    chosen = with_settings(CONFIG, ["run.steps=400", "run.schedule_steps=400"])
    assert keep_schedule(run, CONFIG, chosen, pytest.fail) == chosen
    run.write_status(Status("failed", 0, 100))
    longer = with_settings(CONFIG, ["run.steps=400"])
    assert keep_schedule(run, CONFIG, longer, pytest.fail) == longer
