"""A learner, its workers and a Redis, all of them real processes, and someone who ends them without warning."""

from __future__ import annotations

import heapq
import json
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from fault_plan import NAMES, WORKERS, Event, Scale
from fault_proxy import Proxy

from benchmarks.processes import LIMIT_S, MARK, Processes, ending, player_of
from soulsai.runs.run import Run
from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.policies import unpack_policy
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import Report, look_at

RUN = "faults"
MORE_STEPS = 4000
"""That the last learner makes at least, to end the run by itself."""
TICK_S = 0.1
SAMPLE_S = 0.5
MEMORY_S = 1.0
BACK_S = 2.0
"""After so long a worker that was killed is started again."""
POLITE = 4
ORPHAN_S = 60.0
"""A process whose parent was killed must be gone by then, even if it had only just been started."""
SILENT_S = 4.0
ON_ITS_WAY_S = 1.0
"""How long a heartbeat may come after its worker was killed."""
BUSY = ("playing", "waiting")
GOING_ON = re.compile(r"resuming from step ([\d,]+)")
"""What a learner says that was started again."""
SETTINGS = (
    "run.threads=1",
    "run.device=cpu",
    "run.steps=1000000000",
    "run.evaluate_every_steps=0",
    "run.final_fights=40",
    "run.checkpoint_every_s=3",
    "run.log_every_s=0.5",
    "fleet.beat_s=1",
    f"fleet.silent_after_s={SILENT_S:g}",
)


@dataclass
class Seen:
    """What was noticed on the way."""

    checks: int = 0
    versions: dict[int, int] = field(default_factory=dict)
    """A hash of every version of the policy that was seen, in the order of their coming."""
    memory: list[tuple[float, str, float]] = field(default_factory=list)
    """When, whose, and how many megabytes."""
    states: dict[str, list[tuple[float, str, str]]] = field(default_factory=dict)
    """Of the frozen worker and the one cut off: when, which life, which state."""
    apart: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """Of the same two: which life was frozen or cut off, from when, until when."""
    resumed: list[tuple[int, int, int]] = field(default_factory=list)
    """At every start of the learner: the newest checkpoint, the step it went on from, the last step before."""
    kills: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """What must not be."""


class Fleet:
    """Runs a plan and watches what comes of it."""

    def __init__(self, folder: Path, scale: Scale, preset: str, settings: tuple[str, ...]) -> None:
        self.folder, self.scale = folder, scale
        self.created_s = time.monotonic()
        self.run = folder / "run"
        self.seen = Seen()
        self.keys = Keys(RUN)
        self.mark = secrets.token_hex(8)
        self.processes = Processes(folder, self.mark)
        os.environ[MARK] = self.mark  # for Redis, which is started by this process
        self.redis = OwnServer.start(folder / "redis", memory_mb=256, run=RUN)
        self.proxy = Proxy(self.redis.address.port)
        self.admin = connect(self.redis.address, limit_s=LIMIT_S, client="faults")
        passwords = {name: invite(self.admin, self.keys, name) for name in sorted(set(NAMES.values()))}
        self._urls = {who: self._url(who, passwords[NAMES[who]]) for who in WORKERS}
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._doomed: dict[psutil.Process, float] = {}
        """Processes whose parent was killed, and until when they have to be gone."""
        self._killed_s = -math.inf
        self._frozen: psutil.Process | None = None
        self._starts = 0
        self._redis_is_up = True
        self._queue: list[Event] = []
        self._began_s = time.monotonic()
        self._next_sample_s = self._next_memory_s = 0.0
        arguments = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
        self._learner = self._serve(
            preset, "--redis", self.redis.address.url(), "--advertise", "127.0.0.1", "--accept-all", *arguments
        )

    def _url(self, who: str, password: str) -> str:
        port = self.proxy.port if who == "bob" else self.redis.address.port
        return replace(self.redis.address, user=NAMES[who], password=password, port=port).url()

    def _serve(self, *arguments: object) -> subprocess.Popen[bytes]:
        self._starts += 1
        return self.processes.start(f"learner-{self._starts}", "serve", "--plain", "--run", self.run, *arguments)

    def _join(self, who: str) -> None:
        """Workers are on other machines, as a rule: here they leave the learner its share of the processor."""
        self._workers[who] = self.processes.start(who, "join", SOULS_URL=self._urls[who])
        psutil.Process(self._workers[who].pid).nice(POLITE)

    @property
    def _now_s(self) -> float:
        return time.monotonic() - self._began_s

    # The run

    def begin(self) -> None:
        """Wait until everyone plays."""
        for who in WORKERS:
            self._join(who)
        self._wait("everyone to play", self._all_play)
        self._wait("a checkpoint", lambda: bool(self._checkpoints()))

    def suffer(self, plan: list[Event]) -> None:
        """Let everything happen that is planned."""
        self._queue = list(plan)
        heapq.heapify(self._queue)
        self._began_s, self._next_sample_s, self._next_memory_s = time.monotonic(), 0.0, 0.0
        self.seen.states.clear()  # of another time
        self.seen.memory.clear()
        while self._queue or self._now_s < self.scale.length_s:
            while self._queue and self._queue[0].at_s <= self._now_s:
                self._cause(heapq.heappop(self._queue))
            self._watch()
            time.sleep(TICK_S)
        self._wait("the learner to go on", lambda: bool(GOING_ON.search(self._learner_said())))
        self._wait("everyone to play again", self._all_play)
        self._sample()

    def finish(self) -> None:
        """Stop the learner as its operator does, and let another life of it end the run."""
        stopped = self.processes.run("stop", self.run)
        if stopped.returncode or ending(self._learner):
            self.fail(f"the learner did not stop: {stopped.stderr} {self._learner_said()}")
        self._check_books()
        step = Run.open(self.run).status().step
        steps = max(step + MORE_STEPS, self.scale.steps)
        self._go_on("--set", f"run.steps={steps}")
        if how := ending(self._learner):
            self.fail(f"the last learner {how}: {self._learner_said()}")
        self._note_resumed()
        for who, process in self._workers.items():
            if how := ending(process):
                self.fail(f"{who} {how}: {self.processes.said(who)[-2000:]}")

    def report(self) -> Report:
        """Of all worker lives, now, with the rows on their way."""
        return look_at(self.admin, self.keys, check=True)

    def end(self) -> None:
        """Whatever has happened: nothing is left behind."""
        if self._frozen is not None:
            with suppress(psutil.Error):
                self._frozen.send_signal(signal.SIGCONT)
        self.admin.close()
        self.proxy.close()
        self.redis.stop()
        self.processes.end()
        os.environ.pop(MARK, None)

    def left_over(self) -> list[str]:
        """Processes that should have ended by themselves; Redis is stopped first."""
        self.redis.stop()
        deadline_s = time.monotonic() + ORPHAN_S
        while (left := self.processes.alive()) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        return [" ".join(process.cmdline()) for process in left]

    def fail(self, what: str) -> None:
        """Remember what must not be; the test says it at its end."""
        self.seen.faults.append(f"{self._now_s:.1f} s: {what}")

    # Faults

    def _cause(self, event: Event) -> None:
        sys.stdout.write(f"{event}\n")
        sys.stdout.flush()
        if event.what in ("freeze", "refuse"):
            self._note_apart(event.who)
        elif event.what in ("thaw", "let through"):
            self._note_silence(event.who)
        if event.what == "kill a worker":
            self._note_return(event.who)
            self._kill_worker(event.who, event.how)
        elif event.what == "start a worker":
            self._join(event.who)
        elif event.what == "kill the learner":
            self._kill_learner()
        elif event.what == "start the learner":
            self._go_on()
        elif event.what == "kill Redis":
            self._redis_is_up = False
            os.kill(self.redis.pid, signal.SIGKILL)
            self.seen.kills["Redis"] += 1
        elif event.what == "start Redis":
            self.redis.revive()
            self._redis_is_up = True
        elif event.what in ("freeze", "thaw"):
            self._freeze(event.who) if event.what == "freeze" else self._thaw()
        else:
            self.proxy.set({"refuse": "refuse", "hold back": "hold", "let through": "open"}[event.what])

    def _note_apart(self, who: str) -> None:
        """Which life is frozen or cut off now: one that plays, though it may have been killed before."""
        playing: list[Report] = []
        name = NAMES[who]
        self._stand_still(
            f"{who} to play", lambda: playing.extend(row for row in self._busy() if row["name"] == name) or playing
        )
        self.seen.apart[NAMES[who]] = playing[0]["worker"], self._now_s, math.inf

    def _note_silence(self, who: str) -> None:
        """It is noticed that one is frozen or cut off, before it may go on."""
        life, from_s, _ = self.seen.apart[NAMES[who]]
        self._stand_still(f"{who} to fall silent", lambda: self._state_of(life) == "silent")
        self.seen.apart[NAMES[who]] = life, from_s, self._now_s

    def _note_return(self, who: str) -> None:
        """One that was frozen or cut off plays on before it is killed."""
        life, _, until_s = self.seen.apart.get(NAMES[who], ("", 0.0, math.inf))
        states = self.seen.states.get(NAMES[who], ())
        is_back = any(at_s > until_s and found == life and state in BUSY for at_s, found, state in states)
        if until_s < math.inf and not is_back:
            self._stand_still(f"{who} to come back", lambda: self._state_of(life) in BUSY)

    def _stand_still(self, what: str, done: Any) -> None:
        """Wait while the clock of the plan does not go on: a busy machine is no fault."""
        began_s = time.monotonic()
        self._wait(what, done, watch=False)
        self._began_s += time.monotonic() - began_s
        self._note_states()

    def _kill_worker(self, who: str, how: str) -> None:
        process = self._workers[who]
        player = player_of(process.pid)
        self.seen.kills[f"worker ({how})"] += 1
        if how == "child" and player is not None:
            player.kill()
            self._killed_s = time.monotonic()
            return
        process.kill()
        if how == "tree" and player is not None:
            with suppress(psutil.Error):
                player.kill()
        process.wait(LIMIT_S)
        self._killed_s = time.monotonic()
        if player is not None:
            self._doomed[player] = self._now_s + ORPHAN_S
        heapq.heappush(self._queue, Event(self._now_s + BACK_S, "start a worker", who))

    def _kill_learner(self) -> None:
        self._learner.kill()
        self._learner.wait(LIMIT_S)
        self.seen.kills["learner"] += 1

    def _go_on(self, *arguments: object) -> None:
        """Start the next life of the learner."""
        self._note_resumed()
        steps = [row["step"] for row in self.metrics()]
        self.seen.resumed.append((max(self._checkpoints(), default=0), -1, max(steps, default=0)))
        self._learner = self._serve("--resume", *arguments)

    def _note_resumed(self) -> None:
        """Where the last start went on from, as it says itself."""
        if self.seen.resumed and self.seen.resumed[-1][1] < 0:
            newest, _, last = self.seen.resumed[-1]
            log = f"learner-{1 + len(self.seen.resumed)}"
            found = GOING_ON.search(self.processes.said(log))
            if found is None:
                self.fail(f"{log} did not go on from a checkpoint: {self.processes.said(log)}")
            else:
                self.seen.resumed[-1] = (newest, int(found[1].replace(",", "")), last)

    def _freeze(self, who: str) -> None:
        self._frozen = player_of(self._workers[who].pid)
        if self._frozen is None:
            self.fail(f"{who} could not be frozen: it does not play")
        else:
            self._frozen.suspend()

    def _thaw(self) -> None:
        if self._frozen is not None:
            self._frozen.resume()

    # What is looked at

    def _watch(self) -> None:
        if self._now_s >= self._next_memory_s:
            self._next_memory_s = self._now_s + MEMORY_S
            self._weigh()
            self._look_for_orphans()
        if self._redis_is_up and self._now_s >= self._next_sample_s:
            self._next_sample_s = self._now_s + SAMPLE_S
            self._sample()

    def _sample(self) -> None:
        self._check_books()
        self._note_version()
        self._note_states()

    def _look_for_orphans(self) -> None:
        for process, deadline_s in list(self._doomed.items()):
            if not process.is_running():
                del self._doomed[process]
            elif self._now_s > deadline_s:
                del self._doomed[process]
                self.fail(f"process {process.pid} has outlived its parent")

    def _check_books(self) -> None:
        self.seen.checks += 1
        if found := self.report()["open"]:
            self.fail(f"the counts do not add up: {found}")

    def _note_version(self) -> None:
        frame: Any = self.admin.get(self.keys.policy)
        if frame is None:
            return
        version, found = unpack_policy(frame, run=RUN).version, hash(frame)
        versions = self.seen.versions
        if versions.get(version, found) != found:
            self.fail(f"version {version} of the policy was published twice")
        if versions and version < max(versions):
            self.fail(f"version {version} of the policy came after {max(versions)}")
        versions[version] = found

    def _note_states(self) -> None:
        for row in self._rows():
            if row["name"] in ("bob", "cat"):
                self.seen.states.setdefault(row["name"], []).append((self._now_s, row["worker"], row["state"]))

    def _weigh(self) -> None:
        owners = {self.redis.pid: "Redis"} if self._redis_is_up else {}
        if self._learner.poll() is None:
            owners[self._learner.pid] = "learner"
        for who, process in self._workers.items():
            if process.poll() is None:
                owners[process.pid] = f"{who} starts"
                if (player := player_of(process.pid)) is not None:
                    owners[player.pid] = f"{who} plays"
        for pid, owner in owners.items():
            with suppress(psutil.Error):
                self.seen.memory.append((self._now_s, owner, psutil.Process(pid).memory_info().rss / 2**20))

    def _rows(self) -> list[Report]:
        return list(look_at(self.admin, self.keys, silent_after_s=SILENT_S)["workers"])

    def _busy(self) -> list[Report]:
        """Those who play, and have told so since the last of them was killed."""
        since_s = time.monotonic() - self._killed_s - ON_ITS_WAY_S
        return [row for row in self._rows() if row["state"] in BUSY and row["seen_s"] < since_s and row["sent"]]

    def _all_play(self) -> bool:
        return len(self._busy()) == len(WORKERS)

    def _state_of(self, life: str) -> str:
        return next(row["state"] for row in self._rows() if row["worker"] == life)

    def _learner_said(self) -> str:
        return self.processes.said(f"learner-{self._starts}")

    def _wait(self, what: str, done: Any, *, watch: bool = True) -> None:
        deadline_s = time.monotonic() + LIMIT_S
        while not done():
            if self._learner.poll() is not None:
                raise AssertionError(f"the learner has ended: {self._learner_said()}")
            if time.monotonic() > deadline_s:
                raise AssertionError(f"waited in vain for {what}: {self._rows()}")
            if watch:
                self._watch()
            time.sleep(TICK_S)

    def _checkpoints(self) -> list[int]:
        return [int(path.name) for path in (self.run / "checkpoints").glob("[0-9]*") if path.name.isdigit()]

    def metrics(self) -> list[dict[str, Any]]:
        """All whole rows of the metrics."""
        try:
            text = (self.run / "metrics.jsonl").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
