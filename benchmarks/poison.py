"""A fleet of which two of five workers lie: `python benchmarks/poison.py FOLDER --steps 40000 --seed 1`.

The two send every reward with the wrong sign, under names of their own, in chunks that are in order otherwise. Three
runs of as many steps, over a Redis of their own: everybody is honest; two lie and what they send is played again
(`fleet.spot_checks`); two lie and nobody looks. Then each policy plays greedily, one fight in each of many places:
the mean return is compared. Reached: with the checks at least 90 % of the honest return, without them less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace as changed

from soulsai.acting import worker as worker_module
from soulsai.config import config_from_toml
from soulsai.experience import Chunk, Schema
from soulsai.learning.loading import load_policy
from soulsai.learning.wiring import build_worker, build_world
from soulsai.runs.metrics import MetricsReader
from soulsai.runtime import Fleet
from soulsai.runtime.serve import Served
from soulsai.transport.chunks import pack_chunk
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import look_at
from soulsai.transport.redis.worker import RedisWorkerLink, fetch_welcome
from soulsai.transport.welcome import unpack_welcome

PRESET = "clipped-dqn"
SETTINGS = (
    "fight.full=false", "starts.mid_fight=1", "starts.boss_hp_share=[0.05,0.15]", "starts.player_hp_share=[0.5,1.0]",
    "fight.step_limit=400", "q.clipped=false", "q.double=true", "replay.prioritized=false", "run.threads=1",
    "run.evaluate_every_steps=0", "run.final_fights=0", "run.log_every_s=1", "fleet.number=4", "fleet.chunk_rows=64",
    "fleet.max_chunks=8",
)  # fmt: skip
"""The last tenth of phase 1 of Iudex, learned in a minute of one core; workers are not far ahead of the learner."""
NAMES = ("alice", "bob", "carol", "mallory", "trudy")
LIARS = ("mallory", "trudy")
ARMS = {"honest": ((), "on"), "checked": (LIARS, "on"), "unchecked": (LIARS, "off")}
REACHED = 0.9
LEAVE_S = 30.0


def play(url: str, index: int, *, lies: bool) -> None:
    """A worker; one that lies turns the sign of each reward just before it is packed."""
    address = Address.parse(url)
    frame, joined_s = fetch_welcome(address, 60.0)
    welcome = unpack_welcome(frame)
    config = config_from_toml(welcome.config_toml, "the learner's config")

    def lie(chunk: Chunk, schema: Schema, **told: Any) -> bytes:
        columns = chunk.columns | {"rewards": -chunk.columns["rewards"]}
        return pack_chunk(replace(chunk, columns=columns), schema, **told)

    if lies:
        worker_module.pack_chunk = lie  # type: ignore[attr-defined]
    link = RedisWorkerLink(
        address, f"{address.user}.{index}.{index:06x}", max_chunks=config.fleet.max_chunks, buffer_bytes=64 << 20,
        waits=True, patience_s=60.0, started_s=joined_s,
    ).start()  # fmt: skip
    try:
        build_worker(config, link, environment=welcome.environment).run()
    finally:
        link.close()


def train(folder: Path, steps: int, seed: int, liars: tuple[str, ...], checks: str) -> dict[str, Any]:
    """One run with five workers; what is to be told about it."""
    settings = [*SETTINGS, f"run.steps={steps}", f"run.seed={seed}", f"fleet.spot_checks={checks}"]
    said: list[str] = []
    fleet = Fleet.begin(PRESET, folder, settings, say=said.append)
    with fleet.serve() as served:
        workers = _workers(served, liars)
        began_s = time.monotonic()
        served.train()
        took_s = time.monotonic() - began_s
        with connect(served.address) as admin:
            found = look_at(admin, Keys(served.fleet.run))
    for worker in workers:
        worker.wait(LEAVE_S)
    return {
        **judge(fleet.run),
        "seconds": round(took_s, 1),
        "stored": {name: told["stored"] for name, told in found["names"].items()},
        "dropped": found["total"]["dropped"],
        "out": found["ended"],
        "check_share_of_time": round(_check_share(folder), 4),
        "said": [line for line in said if "not played" in line or "removed from" in line],
    }


def _check_share(folder: Path) -> float:
    """Share of the learner's time that went into checks."""
    rows: list[Any] = list(MetricsReader(folder).rows())
    spans = [row["elapsed_s"] - before["elapsed_s"] for before, row in pairwise(rows)]
    checks = [row.get("time/check", 0.0) * span for row, span in zip(rows[1:], spans, strict=True)]
    return sum(checks) / max(sum(spans), 1e-9)


def _workers(served: Served, liars: tuple[str, ...]) -> list[subprocess.Popen[bytes]]:
    keys, place = Keys(served.fleet.run), served.address.place
    started = []
    with connect(served.address) as admin:
        for index, name in enumerate(NAMES, 1):
            url = f"redis://{name}:{invite(admin, keys, name)}@{place}/{served.fleet.run}"
            command = [sys.executable, __file__, "--play", url, "--index", str(index)]
            started.append(subprocess.Popen([*command, "--lies"] if name in liars else command))
    return started


def judge(run: Any, places: int = 500) -> dict[str, float]:
    """Mean return and wins of the greedy policy at the end, one fight in each place."""
    config, policy = load_policy(run, latest=True)
    world = build_world(changed(config, fight=changed(config.fight, number=places)))
    world.reset(12345)
    returns, won, running = np.zeros(places), np.zeros(places, np.bool_), np.ones(places, np.bool_)
    while running.any():
        step = world.step(policy.choose(world.observations, world.masks))
        returns += step.rewards * running
        won |= step.won & step.ended & running
        running &= ~step.ended
    world.close()
    error = 1.96 * float(returns.std(ddof=1)) / places**0.5
    return {"return": round(float(returns.mean()), 4), "plus_minus": round(error, 4), "wins": float(won.mean())}


def main() -> None:
    """Run the arms that are asked for, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--play", default="", help=argparse.SUPPRESS)
    parser.add_argument("--index", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--lies", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        play(given.play, given.index, lies=given.lies)
        return
    if given.folder is None:
        parser.error("name a folder for the runs")
    found = {}
    for arm in given.arms:
        found[arm] = train(given.folder / arm, given.steps, given.seed, *ARMS[arm])
        print(json.dumps({arm: found[arm]}, indent=1), flush=True)
    honest = found.get("honest", {}).get("return", float("nan"))
    for arm in found:
        ratio = found[arm]["return"] / honest
        print(f"{arm}: return {found[arm]['return']:.3f}, {ratio:.0%} of the honest one, wins {found[arm]['wins']:.1%}")
    if {"checked", "unchecked"} <= found.keys():
        ratios = [found[arm]["return"] / honest for arm in ("checked", "unchecked")]
        print(f"at least {REACHED:.0%} with the checks and less without: {ratios[0] >= REACHED > ratios[1]}")


if __name__ == "__main__":
    main()
