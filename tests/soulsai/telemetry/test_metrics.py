"""Declared metrics, families, and the page made from them."""

import pytest

from soulsai.telemetry.metrics import METRICS, check_names, metric, reference, write_reference
from soulsgym.errors import MisuseError

USED = """
win_rate/training win_rate/evaluation win_rate/evaluation_low win_rate/evaluation_high time_out_rate/evaluation
return/training return/evaluation episode/length episode/time_s episodes wins time_outs reward/dealt loss/policy
loss/value loss/q policy/entropy policy/kl policy/clip_fraction value/explained_variance q/mean epsilon
beta gradient/norm learning_rate updates steps_per_s updates_per_s game_hours replay/size time/act
fleet/workers fleet/version fleet/lag fleet/age_s fleet/oldest_s fleet/sent fleet/stored fleet/in_flight
fleet/dropped/stale fleet/updates_skipped
"""


def test_all_used_names_are_declared():
    check_names(USED.split())
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
        "episodes", "wins", "time_outs", "updates", "game_hours",
        "fleet/version", "fleet/sent", "fleet/stored", "fleet/dropped/<reason>", "fleet/updates_skipped",
    }  # fmt: skip


def test_reference_has_a_row_for_each(tmp_path):
    write_reference(tmp_path / "metrics.md")
    text = (tmp_path / "metrics.md").read_text(encoding="utf-8")
    assert text == reference()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == len(METRICS)
    assert "| `policy/kl` | nat | gauge |" in text
    assert all(line.count("|") == 5 for line in rows)
