"""Runs in the text format of Prometheus, read back by the library's own parser."""

import math
import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from soulsai.telemetry.metrics import METRICS, RUN_METRICS
from soulsai.telemetry.prometheus import CONTENT_TYPE, GONE_S, LONGEST_LABEL, RunReading, exposition, last_values

NOW_S = 1_800_000_000.0
WORKER = {
    "worker": "alice.1.abcdef", "name": "alice", "host": "pc", "state": "playing", "lag": 2, "steps": 90,
    "steps_per_s": 3.5, "episodes": 4, "wins": 1, "fights": 4, "win_rate": 0.25, "seen_s": 0.5, "restarts": 1,
    "sent": 10, "stored": 4, "dropped": {"stale": 3, "full": 1}, "in_flight": 2,
}  # fmt: skip


def samples(text):
    """Value by name and labels; the parser refuses what Prometheus would."""
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def told(*readings):
    return samples(exposition(readings, NOW_S))


def reading(**changes):
    return RunReading(**({"run": "a", "state": "running"} | changes))


def fleet(*workers, **more):
    return {"learner": {}, "workers": list(workers), "names": {}, "total": {}, "unreadable": {}} | more


def test_a_run_without_rows():
    assert told(reading(step=0, steps=100)) == {
        ("souls_run_state", ("run", "a"), ("state", "running")): 1.0,
        ("souls_run_steps_total", ("run", "a")): 0.0,
        ("souls_run_steps_wanted", ("run", "a")): 100.0,
    }


def test_values_families_units_and_age():
    values = {"game_hours": 2.0, "reward/dealt": 0.5, "reward/taken": -1.0, "loss/policy": -0.25, "wins": 7.0}
    found = told(reading(values=values, updated_s=NOW_S - 12.0))
    assert found["souls_game_seconds_total", ("run", "a")] == 7200.0
    assert found["souls_reward", ("run", "a"), ("term", "dealt")] == 0.5
    assert found["souls_reward", ("run", "a"), ("term", "taken")] == -1.0
    assert found["souls_loss_policy", ("run", "a")] == -0.25
    assert found["souls_wins_total", ("run", "a")] == 7.0
    assert found["souls_run_row_age_seconds", ("run", "a")] == 12.0


def test_a_clock_that_goes_wrong_makes_no_negative_age():
    assert told(reading(updated_s=NOW_S + 5.0))["souls_run_row_age_seconds", ("run", "a")] == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "0.5", True, 10**400, [1.0]])
def test_what_is_no_finite_number_is_left_out(value):
    found = told(reading(values={"epsilon": value, "beta": 0.5}, updated_s=value))
    assert ("souls_beta", ("run", "a")) in found
    assert ("souls_epsilon_ratio", ("run", "a")) not in found
    assert ("souls_run_row_age_seconds", ("run", "a")) not in found


def test_names_of_another_version_are_left_out():
    assert told(reading(values={"once/known": 1.0, "reward/": 1.0})) == told(reading())


def test_workers():
    found = told(reading(fleet=fleet(WORKER, unreadable={"mallory": 3})))
    who = (("run", "a"), ("worker", "alice.1.abcdef"))
    assert found["souls_worker_state", ("run", "a"), ("state", "playing"), who[1]] == 1.0
    assert found[("souls_worker_steps_per_second", *who)] == 3.5
    assert found[("souls_worker_lag", *who)] == 2.0
    assert found[("souls_worker_beat_age_seconds", *who)] == 0.5
    assert found[("souls_worker_restarts_total", *who)] == 1.0
    dropped = {key: value for key, value in found.items() if key[0] == "souls_worker_dropped_total"}
    assert sorted(dropped.values()) == [0.0, 1.0, 3.0]
    parts = [found[(f"souls_worker_{part}", *who)] for part in ("stored_total", "in_flight")]
    assert found[("souls_worker_sent_total", *who)] == sum(parts) + sum(dropped.values())
    assert found["souls_run_unreadable_total", ("name", "mallory"), ("run", "a")] == 3.0


def test_what_was_refused_and_what_the_gateway_has_counted():
    gateway = {"connections": 3, "accepted": 9, "bytes": 5000, "passed": 40, "dropped": {"invalid": 2},
               "refused": {"silent": 7}}  # fmt: skip
    found = told(reading(fleet=fleet(WORKER, refused={"mallory": {"quota": 3, "other": 1}}, gateway=gateway)))
    assert found["souls_run_refused_total", ("name", "mallory"), ("run", "a")] == 4.0
    assert found["souls_run_refused_total", ("name", "alice"), ("run", "a")] == 0.0
    numbers = [found[f"souls_gateway_{name}", ("run", "a")]
               for name in ("connections", "accepted_total", "bytes_total", "passed_total")]  # fmt: skip
    assert numbers == [3.0, 9.0, 5000.0, 40.0]
    for what, reason, count in (("dropped", "invalid", 2.0), ("dropped", "chunks", 0.0), ("refused", "silent", 7.0),
                                ("refused", "credentials", 0.0)):  # fmt: skip
        assert found[f"souls_gateway_{what}_total", ("reason", reason), ("run", "a")] == count
    assert not any("gateway" in key[0] for key in told(reading(fleet=fleet(WORKER))))


def test_counters_of_what_goes_wrong_are_there_before_it_does():
    who = (("run", "a"), ("worker", "alice.1.abcdef"))
    quiet = told(reading(fleet=fleet(WORKER | {"dropped": {}})))
    assert quiet["souls_fleet_dropped_total", ("reason", "lost_by_redis"), ("run", "a")] == 0.0
    assert quiet["souls_fleet_dropped_total", ("reason", "stale"), ("run", "a")] == 0.0
    assert quiet["souls_worker_dropped_total", ("reason", "lost_by_redis"), *who] == 0.0
    assert quiet["souls_run_unreadable_total", ("name", "alice"), ("run", "a")] == 0.0
    nobody = told(reading(fleet=fleet()))
    assert [key[0] for key in nobody].count("souls_run_unreadable_total") == 1
    values = {"fleet/sent": 9.0, "fleet/dropped/lost_by_redis": 2.0}
    assert told(reading(values=values))["souls_fleet_dropped_total", ("reason", "lost_by_redis"), ("run", "a")] == 2.0
    assert not any(key[0] == "souls_fleet_dropped_total" for key in told(reading()))


@pytest.mark.parametrize(
    ("state", "seen_s", "shown"),
    [
        ("left", 1.0, False),
        ("silent", GONE_S - 1.0, True),
        ("silent", GONE_S + 1.0, False),
        ("silent", None, False),
        ("starting", None, True),
    ],
)
def test_workers_that_are_long_gone_are_not_shown(state, seen_s, shown):
    found = told(reading(fleet=fleet(WORKER | {"state": state, "seen_s": seen_s})))
    assert any(name == "souls_worker_state" for name, *_ in found) == shown


@pytest.mark.parametrize(
    "broken",
    [{"workers": None}, {"workers": ["x", None]}, {"unreadable": 3}, {"workers": [{}]}, {"refused": {"eve": 3}},
     {"gateway": 3}, {"gateway": {"dropped": 3, "refused": {"silent": "x"}}}],
)  # fmt: skip
def test_a_report_that_is_damaged_breaks_nothing(broken):
    found = told(reading(fleet=fleet() | broken))
    assert ("souls_run_steps_total", ("run", "a")) in found


HOSTILE = [
    'a"} 1\nsouls_wins_total{run="b',
    "back\\slash\\",
    "line\nbreak\r\n",
    "nul\x00and\x1besc",
    "lone\udc80surrogate",
    "ünïcode ✓ {}[]=,",
    "x" * 5000,
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_values_of_labels(name):
    values = {f"reward/{name}": 1.0} if name else {}
    worker = WORKER | {"worker": name, "state": name, "dropped": {name: 1}}
    text = exposition([RunReading(name, name, values=values, fleet=fleet(worker, unreadable={name: 1}))], NOW_S)
    found = samples(text)
    assert {key[0] for key in found} <= {each.prometheus for each in (METRICS | RUN_METRICS).values()}
    assert ("souls_wins_total", ("run", "b")) not in found
    for line in text.decode().split("\n"):
        assert line == "" or line.startswith(("# HELP souls_", "# TYPE souls_", "souls_"))
    assert all(len(value) <= LONGEST_LABEL for key in found for _, value in key[1:])


def test_of_two_that_look_alike_the_first_counts():
    found = told(reading(run="a\x01", step=1), reading(run="a\x02", step=2))
    assert [value for key, value in found.items() if key[0] == "souls_run_steps_total"] == [1.0]


def test_no_runs_at_all():
    assert exposition([]) == b""
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_shares_of_time_stay_together():
    latest = {"time/act": (2, 1.0), "time/evaluate": (1, 0.4), "beta": (1, 0.4), "win_rate/evaluation": (3, 0.5)}
    assert last_values(latest) == {"time/act": 1.0, "beta": 0.4, "win_rate/evaluation": 0.5}
    assert last_values({}) == {}


def full_reading(run="a"):
    """A run that has everything that is declared."""
    values = {each.prefix + "some" if each.prefix else name: 1.0 for name, each in METRICS.items()}
    gateway = {"connections": 1, "accepted": 1, "bytes": 1, "passed": 1, "dropped": {}, "refused": {}}
    return RunReading(run, "running", 5, 10, values, NOW_S, fleet(WORKER, unreadable={"b": 1}, gateway=gateway))


def test_everything_declared_is_told_with_its_help_and_type():
    text = exposition([full_reading()], NOW_S).decode()
    for each in (METRICS | RUN_METRICS).values():
        assert f"# TYPE {each.prometheus} {each.kind}\n" in text
        assert f"# HELP {each.prometheus} {each.text}" in text


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (Debian: apt install prometheus)")
def test_promtool_has_nothing_to_say_against_it():
    text = exposition([full_reading(), full_reading("b"), reading(run=HOSTILE[0])], NOW_S)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
