"""A fleet in which everything is killed, frozen or cut off while it learns: no row is lost in silence, and it learns.

The short plan always runs. The long one, of three minutes, runs with SOULS_FAULTS=long in the environment. With
SOULS_FAULTS_SEED another plan is made; with SOULS_FAULTS_REPORT=FOLDER what was counted is written there.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from fault_fleet import BUSY, Fleet
from fault_plan import LONG, SHORT, make_plan

SEED = int(os.environ.get("SOULS_FAULTS_SEED", "1"))
PRESETS = {
    "cartpole-dqn": (
        "gym.number=2",
        "run.evaluate_every_steps=10000",  # so that a good policy is kept when a later one is worse
        "run.evaluation_fights=10",
        "q.double=true",
        "q.n_step=3",
        "q.batch=128",
        "q.burst=16",
        "q.update_every=8",
        "q.target=soft",
        "q.target_period=1",
        "q.tau=0.01",
        "q.learning_rate=1e-3",
        "q.warmup_steps=1000",
        "q.epsilon_steps=6000",
        "network.hidden=[64,64]",
        "replay.capacity=50000",
        "fleet.chunk_rows=256",
        "fleet.chunk_s=0.5",
        "fleet.max_chunks=512",
    ),
    "cartpole-ppo": (
        "ppo.epochs=10",
        "ppo.rollout=64",
        "ppo.minibatch=256",
        "ppo.learning_rate=1e-3",
        "ppo.final_learning_rate=1",
        "ppo.target_kl=0.03",
        "fleet.number=4",
    ),
}
MOST_MB = {"learner": 1500.0, "starts": 1000.0, "plays": 1000.0, "Redis": 300.0}
GROWTH = 1.2
GROWTH_MB = 40.0
"""How much more than before a process may weigh in the last quarter."""


def is_asked_for(scale):
    return scale is SHORT or os.environ.get("SOULS_FAULTS") == scale.name


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("scale", [SHORT, LONG], ids=lambda scale: scale.name)
def test_faults(tmp_path, scale, preset):
    if not is_asked_for(scale):
        pytest.skip(f"takes minutes; it runs with SOULS_FAULTS={scale.name}")
    plan = make_plan(scale, SEED)
    tell(f"seed {SEED}", *plan)
    threads = set(threading.enumerate())
    fleet = Fleet(tmp_path, scale, preset, PRESETS[preset])
    try:
        fleet.begin()
        fleet.suffer(plan)
        fleet.finish()
        books = fleet.report()
        told = fleet.processes.run("fleet", "--check", "--json", fleet.run)
        left = fleet.left_over()
    finally:
        fleet.end()
        report(fleet, scale, preset, time.monotonic())
    tell(*fleet.seen.faults)
    assert fleet.seen.faults == []
    assert left == []
    assert set(threading.enumerate()) <= threads
    check_books(books, told)
    check_kills(fleet, scale, plan)
    check_states(fleet.seen)
    check_versions(fleet, scale)
    check_metrics(fleet, scale)
    check_memory(fleet.seen.memory, scale)
    for log in tmp_path.glob("*.txt"):
        assert "Traceback" not in log.read_text(), log.read_text()
    assert mean_return(fleet.run) > scale.returns


def tell(*lines):
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def mean_return(run):
    (file,) = (run / "evaluations").glob("*final*")
    returns = json.loads(file.read_text())["returns"]
    return sum(returns) / len(returns)


def check_books(books, told):
    """At the end nothing is on its way any more, and `souls fleet` says the same."""
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["open"] == {}
    assert found["total"]["in_flight"] == 0
    assert books["open"] == {}
    assert "lost_by_redis" not in found["total"]["dropped"]
    assert found["total"]["stored"] > 0
    for kind in ("sent", "stored"):
        assert found["total"][kind] == books["total"][kind]


def check_kills(fleet, scale, plan):
    """The plan was carried out, and everyone played in more than one life who was killed."""
    assert fleet.seen.kills["learner"] == len(scale.learner)
    assert fleet.seen.kills["Redis"] == 1
    workers = sum(count for what, count in fleet.seen.kills.items() if what.startswith("worker"))
    assert workers == sum(event.what == "kill a worker" for event in plan) == (scale.length_s - 1) // scale.kill_every_s
    assert fleet.seen.checks > scale.length_s / 4  # twice a second, where the machine has time for it


def check_states(seen):
    """Who is frozen or cut off falls silent until that is over, and the same life of it plays on afterwards."""
    assert set(seen.apart) == {"cat", "bob"}
    for name, (life, from_s, until_s) in seen.apart.items():
        own = [(at_s, state) for at_s, found, state in seen.states[name] if found == life]
        during = [state for at_s, state in own if from_s <= at_s <= until_s]
        assert set(during[during.index("silent") :]) == {"silent"}, name
        after = [state for at_s, state in own if at_s > until_s]
        assert set(after) & set(BUSY), f"{name} did not come back: {after}"


def check_versions(fleet, scale):
    """They grow, also from one life of the learner to the next; the harness has seen no version twice."""
    versions = list(fleet.seen.versions)
    assert versions == sorted(versions)
    generations = {version >> 32 for version in versions}
    assert generations >= set(range(1, len(scale.learner) + 2))


def check_metrics(fleet, scale):
    """Every learner went on from the newest checkpoint, and the file reads as if there had been one only."""
    assert len(fleet.seen.resumed) == len(scale.learner) + 1
    for newest, step, _ in fleet.seen.resumed:
        assert step == newest
    text = (fleet.run / "metrics.jsonl").read_text()
    assert text.endswith("\n")
    rows = [json.loads(line) for line in text.splitlines()]
    step, workers = -1, None
    for row in rows:  # A step comes twice only where a worker came or went, or with the result of an evaluation.
        now = row.get("fleet/workers", workers)
        is_news = now != workers or "return/evaluation" in row
        assert row["step"] > step or (row["step"] == step and is_news), row
        step, workers = row["step"], now
    elapsed = [row["elapsed_s"] for row in rows]
    assert elapsed == sorted(elapsed)
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)


def check_memory(memory, scale):
    """Nothing is too heavy, and nothing becomes heavier and heavier."""
    assert memory
    for owner in {owner for _, owner, _ in memory}:
        weights = [(at_s, weight) for at_s, who, weight in memory if who == owner]
        most = MOST_MB[owner.split()[-1]]
        assert max(weight for _, weight in weights) < most, owner
        late_s = 0.75 * scale.length_s
        late = [weight for at_s, weight in weights if at_s >= late_s]
        early = [weight for at_s, weight in weights if at_s < late_s]
        if early and late:
            assert max(late) < GROWTH * max(early) + GROWTH_MB, owner


def report(fleet, scale, preset, now_s):
    """What was counted, for whoever runs it by hand."""
    seen = fleet.seen
    last = fleet.run / "fleet_last.json"
    content = {
        "scale": scale.name,
        "preset": preset,
        "seed": SEED,
        "took_s": round(now_s - fleet.created_s, 1),
        "kills": dict(seen.kills),
        "checks_of_the_books": seen.checks,
        "total": json.loads(last.read_text())["total"] if last.exists() else None,
        "lives": len(json.loads(last.read_text())["workers"]) if last.exists() else None,
        "versions_seen": len(seen.versions),
        "resumed_at": seen.resumed,
        "most_mb": {owner: round(max(w for _, who, w in seen.memory if who == owner)) for _, owner, _ in seen.memory},
        "mean_return": mean_return(fleet.run) if list(fleet.run.glob("evaluations/*final*")) else None,
        "updates": max((row.get("updates", 0) for row in fleet.metrics()), default=0),
        "skipped": [row.get("fleet/updates_skipped") for row in fleet.metrics()][-1:],
        "steps": max((row["step"] for row in fleet.metrics()), default=0),
        "faults": seen.faults,
    }
    text = json.dumps(content, indent=1)
    tell(text)
    if folder := os.environ.get("SOULS_FAULTS_REPORT"):
        (Path(folder) / f"{preset}-{scale.name}-{SEED}.json").write_text(text)
