"""Declared metrics, families, their names for Prometheus, and the page made from them."""

import re

import pytest

from soulsai.telemetry.metrics import METRICS, RUN_METRICS, metric, reference
from soulsgym.errors import MisuseError

USED = """
win_rate/training win_rate/evaluation win_rate/evaluation_low win_rate/evaluation_high time_out_rate/evaluation
return/training return/evaluation episode/length episode/time_s episodes wins time_outs reward/dealt loss/policy
loss/value loss/q policy/entropy policy/kl policy/clip_fraction value/mean value/explained_variance q/mean q/max
epsilon beta gradient/norm learning_rate updates steps_per_s updates_per_s game_hours replay/size replay/priority_mean
replay/priority_max time/act temperature boss_health_left/all episode/length_evaluation
win_rate/against/vordt updates_refused loss/clone clone/agreement clone/held_out demo_share
fleet/workers fleet/version fleet/lag fleet/age_s fleet/oldest_s fleet/sent fleet/stored fleet/in_flight
fleet/dropped/stale fleet/updates_skipped fleet/checked fleet/newcomers fleet/ended
"""


def test_all_used_names_are_declared():
    assert all(map(metric, USED.split()))
    assert len(METRICS) == len(USED.split())


def test_families():
    assert metric("reward/anything at all").name == "reward/<term>"
    assert metric("time/learn").unit == "share"


@pytest.mark.parametrize("name", ["reward/", "reward/<term>", "loss", "time", ""])
def test_names_that_are_not_declared(name):
    with pytest.raises(MisuseError, match="is not declared"):
        metric(name)


def test_near_names_are_suggested():
    with pytest.raises(MisuseError, match=r"'loss/polcy' is not declared; did you mean loss/policy\?"):
        metric("loss/polcy")


def test_counters_only_grow():
    assert {each.name for each in METRICS.values() if each.kind == "counter"} == {
        "episodes", "wins", "time_outs", "updates", "updates_refused", "game_hours",
        "fleet/version", "fleet/sent", "fleet/stored", "fleet/dropped/<reason>", "fleet/updates_skipped",
        "fleet/checked", "fleet/ended",
    }  # fmt: skip


def test_reference_has_a_row_for_each():
    text = reference()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == len(METRICS) + len(RUN_METRICS)
    assert "| `policy/kl` | nat | gauge |" in text
    assert "| `souls_worker_dropped_total{worker, reason}` |" in text
    assert all(line.count("|") == 6 for line in rows)


@pytest.mark.parametrize(
    ("name", "for_prometheus"),
    [
        ("win_rate/evaluation_low", "souls_win_rate_evaluation_low_ratio"),
        ("loss/policy", "souls_loss_policy"),
        ("episode/time_s", "souls_episode_time_seconds"),
        ("steps_per_s", "souls_steps_per_second"),
        ("game_hours", "souls_game_seconds_total"),
        ("wins", "souls_wins_total"),
        ("reward/dealt", "souls_reward"),
        ("time/learn", "souls_time_ratio"),
        ("fleet/dropped/stale", "souls_fleet_dropped_total"),
    ],
)
def test_names_for_prometheus_end_in_its_units(name, for_prometheus):
    assert metric(name).prometheus == for_prometheus


def test_names_for_prometheus_are_valid_and_tell_all_metrics_apart():
    declared = [*METRICS.values(), *RUN_METRICS.values()]
    names = [each.prometheus for each in declared]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"souls(_[a-z0-9]+)+", name) for name in names)
    assert all(re.fullmatch(r"[a-z]+", label) for each in declared for label in each.prometheus_labels)
    assert all(len(set(each.prometheus_labels)) == len(each.prometheus_labels) for each in declared)


def test_what_is_told_of_runs_is_no_metric_of_rows():
    assert not METRICS.keys() & RUN_METRICS.keys()
    with pytest.raises(MisuseError, match="is not declared"):
        metric("worker/sent")
