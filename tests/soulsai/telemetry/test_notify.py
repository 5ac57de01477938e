"""What is told of a run, from readings and a clock that the test moves."""

import pytest

from soulsai.telemetry.notify import Event, Reading, Watch, payload


class FightFile:
    """A watch and its clock."""

    def __init__(self, **options):
        self.watch, self.now_s = Watch("mine", **options), 1000.0

    def __call__(self, passed_s=1.0, **reading):
        self.now_s += passed_s
        return [event.event for event in self.watch.look(Reading(**({"state": "running"} | reading)), self.now_s)]


def rate(value, low, step=1):
    return {"win_rate": value, "low": low, "high": 1.0, "step": step}


def test_nothing_to_tell():
    told = FightFile()
    assert told() == []
    assert told(step=10) == []
    assert told(step=20, workers=2.0) == []


def test_won_once_and_again_only_after_it_was_clearly_lost():
    told = FightFile()
    assert told(**rate(0.89, 0.85)) == []
    assert told(**rate(0.9, 0.85, 2)) == ["won"]
    assert told(**rate(0.95, 0.9, 3)) == []
    assert told(**rate(0.85, 0.8, 4)) == []  # about the same
    assert told(**rate(0.92, 0.87, 5)) == []
    assert told(**rate(0.5, 0.4, 6)) == []
    assert told(**rate(0.91, 0.86, 7)) == ["won"]


@pytest.mark.parametrize(("value", "low", "won"), [(1.0, 0.438, False), (1.0, 0.839, True), (0.9, 0.74, False)])
def test_a_few_lucky_fights_are_no_win(value, low, won):
    assert FightFile()(**rate(value, low)) == (["won"] if won else [])


def test_won_at_is_what_was_asked_for():
    assert FightFile(won_at=0.5)(**rate(0.5, 0.4)) == ["won"]
    assert FightFile(won_at=0.99)(**rate(0.98, 0.95)) == []


def test_a_run_without_an_interval_is_never_won():
    assert FightFile()(win_rate=1.0, step=1) == []


def test_stalled_once_until_it_goes_on():
    told = FightFile(stall_s=300.0)
    assert told(step=5) == []
    assert told(299.0, step=5) == []
    assert told(1.0, step=5) == ["stalled"]
    assert told(1000.0, step=5) == []
    assert told(1.0, step=6) == ["going_on"]
    assert told(299.0, step=6) == []
    assert told(2.0, step=6) == ["stalled"]


def test_a_run_that_never_makes_a_step_stalls_too():
    told = FightFile(stall_s=10.0)
    assert told(step=0) == []
    assert told(10.0, step=0) == ["stalled"]


def test_a_pause_is_no_stall():
    told = FightFile(stall_s=300.0)
    assert told(step=5) == []
    assert told(10_000.0, state="paused", step=5) == []
    assert told(299.0, step=5) == []
    assert told(2.0, step=5) == ["stalled"]


def test_a_resumed_run_that_steps_back_goes_on():
    told = FightFile(stall_s=10.0)
    told(step=50)
    assert told(11.0, step=50) == ["stalled"]
    assert told(1.0, step=40) == ["going_on"]


def test_workers_lost_and_back():
    told = FightFile()
    assert told(step=1, workers=0.0) == []  # none were there yet
    assert told(step=2, workers=2.0) == []
    assert told(step=3, workers=1.0) == []
    assert told(step=4, workers=0.0) == ["workers_lost"]
    assert told(step=4, workers=0.0) == []
    assert told(step=5, workers=1.0) == ["workers_back"]


def test_a_run_without_a_fleet_has_no_workers_to_lose():
    told = FightFile()
    assert told(step=1) == told(step=2) == []


@pytest.mark.parametrize("state", ["finished", "stopped", "failed", "killed"])
def test_the_end_is_told_once(state):
    told = FightFile()
    told(step=1, workers=1.0)
    assert told(state=state, step=1, workers=0.0) == [state]
    assert told(10_000.0, state=state, step=1) == []


def test_the_last_evaluation_and_the_end_may_come_together():
    assert FightFile()(state="finished", **rate(0.98, 0.95)) == ["won", "finished"]


def test_texts_are_for_people_and_hold_no_control_characters():
    reading = Reading("stopped", 1_234_567, 40_000_000, 0.98, 0.95, 0.992)
    won, stopped = Watch("my\nrun\x1b[31m").look(reading, 0.0)
    assert won.text == (
        "my run [31m: won 98.0 % of its evaluation fights (95 % interval 95.0 to 99.2 %) at step 1,234,567"
    )
    assert stopped.text == ("my run [31m: was stopped and saved, at step 1,234,567 of 40,000,000, winning 98.0 %")


def test_a_message_has_what_the_services_show_and_plain_fields():
    message = payload("mine", Event("won", "mine: won", 7, 0.9))
    assert message["text"] == message["content"] == "mine: won"
    assert (message["run"], message["event"], message["step"], message["win_rate"]) == ("mine", "won", 7, 0.9)
    assert message["time"].endswith("Z")
