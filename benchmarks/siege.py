"""Everything at once against a served run: `python benchmarks/siege.py --minutes 60`.

A learner (`souls serve --gateway`) with its own Redis; honest workers over Redis and through the gateway, who come, go
and are killed at random, as is the learner, which is resumed. In the last three quarters of the time hostile members of
every kind (`benchmarks/hostile.py`) do what they can. The report says whether the learner lived, learned and kept its
books, what was attacked and counted, how much memory was used, what the honest ones could still give, and what is left
of the hostile ones when they are revoked. The exit code is 1 if anything did not hold.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import random
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from redis.exceptions import RedisError

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import hostile
from benchmarks.processes import LIMIT_S, Processes, ending, player_of
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.experience import Sizes
from soulsai.runs.fleet_file import read_fleet
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import BUSY, Report, look_at

PRESET = "cartpole-dqn"
MEMORY_MB = 128
"""Of Redis; one name may have half of it waiting."""
SETTINGS = (
    "run.threads=1", "run.device=cpu", "run.steps=1000000000", "run.evaluate_every_steps=0", "run.checkpoint_every_s=3",
    "run.log_every_s=0.5", "q.double=true", "q.n_step=3", "q.batch=128", "q.burst=16", "q.update_every=8",
    "q.target=soft", "q.target_period=1", "q.tau=0.01", "q.learning_rate=1e-3", "q.warmup_steps=1000",
    "q.epsilon_steps=6000", "network.hidden=[64,64]", "replay.capacity=50000", "fleet.number=8", "fleet.chunk_rows=256",
    "fleet.chunk_s=0.5", "fleet.max_chunks=512", "fleet.beat_s=1", "fleet.silent_after_s=4",
    f"fleet.memory_mb={MEMORY_MB}",
)  # fmt: skip
PACE = 50.0
"""Steps a second of each of the environments that an honest worker plays."""
HONEST = {"ann": "redis", "bob": "redis", "wes": "gateway", "wyn": "gateway"}
"""Who comes how."""
PEACE = 0.25
"""Share of the time without hostile members."""
WORKER_S, LEARNER_S = 10.0, 240.0
"""How often a worker, and the learner, is ended."""
BACK_S = 2.0
LOOK_S = 1.0
GONE_S = 60.0
REST_S = (0.5, 2.0)
"""Between two attacks of a member."""
OUT_S = 2.0
"""How long one who was refused waits."""
NICE_HOSTILE, NICE_HONEST = 10, 4
"""They are on other machines, as a rule: here the learner comes first, and attackers last."""
EVIL = "evil-"
LEARNS, SLOWED = 2.0, 0.8
"""How many times as high the return has to be at the end, and how much of their rate the honest ones must keep."""
MOST_MB = {"learner": 1500.0, "Redis": 3.0 * MEMORY_MB, "gateway": 600.0}
GROWTH, GROWTH_MB = 1.2, 60.0
"""How much more than in the middle of the attack a process may weigh in its last quarter."""

Redis = hostile.Member
Attack = Callable[..., Any]
OVER_REDIS: Mapping[str, Sequence[Attack]] = {
    "liar": (
        hostile.too_many_steps,
        hostile.leaping_sequences,
        hostile.too_many_rows,
        hostile.impossible_episodes,
        hostile.false_clocks,
    ),
    "numbers": (hostile.no_numbers,),
    "forger": (hostile.damaged_frames, hostile.bombs),
    "pulse": (hostile.false_heartbeat, hostile.heartbeats_of_tomorrow, hostile.fill_heartbeats),
    "crowd": (hostile.many_heartbeats,),
    "heavy": (lambda eve: hostile.fill_memory(eve, MEMORY_MB // 3), hostile.unfinished_messages),
    "flood": (hostile.many_messages,),
    "trickle": (hostile.small_chunks,),
    "wedge": (hostile.forbidden_commands, hostile.large_commands, hostile.wrong_types),
    "idle": (lambda eve: hostile.many_connections(eve, 1100),),
    "stranger": (hostile.without_credentials,),
}
THROUGH_GATEWAY: Mapping[str, Attack] = {
    "nonsense": hostile.gateway_nonsense,
    "rush": hostile.gateway_flood,
    "mask": hostile.gateway_in_another_name,
    "long": hostile.gateway_too_long,
    "horde": hostile.gateway_crowd,
    "mute": hostile.gateway_silence,
    "guess": hostile.gateway_guesses,
    "pings": hostile.gateway_frames,
    "pieces": lambda address, place: hostile.gateway_frames(address, place, hostile.PIECE),
    "greed": hostile.gateway_greed,
}


# Those who mean harm


def besiege(addresses: Mapping[str, Address], told: Any, is_over: Any) -> None:
    """A process in which all hostile members attack, a thread each, until it is over; what they did is told then."""
    os.nice(NICE_HOSTILE)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # that a gateway hangs up is what is expected
    config = with_settings(load_preset(PRESET), SETTINGS)
    schema = algorithm_of(config).schema(config, Sizes(4, 2, 1, config.fleet.number))
    done: Counter[str] = Counter()
    worked: list[str] = []
    lock = threading.Lock()

    def attack(name: str, go: Attack, *words: Any) -> str:
        try:
            breach = go(*words)
        except Exception as error:
            return type(error).__name__
        with lock:
            worked.extend(f"{name}: {each}" for each in breach or ())
        return "done"

    def over_redis(name: str, address: Address) -> None:
        member = Redis(address, schema)
        for number, each in _in_turns(OVER_REDIS[name], is_over):
            found = attack(name, each, member)
            _count(done, lock, f"{name}: {found}")
            if found != "done" or number % 20 == 19:
                member.close()
                member = Redis(address, schema)
            is_over.wait(random.uniform(*REST_S) if found == "done" else OUT_S)

    def through_gateway(name: str, address: Address, place: str) -> None:
        for _, each in _in_turns((THROUGH_GATEWAY[name],), is_over):
            found = attack(name, each, address, place)
            _count(done, lock, f"{name}: {found}")
            is_over.wait(random.uniform(*REST_S) if found == "done" else OUT_S)

    for number, (name, address) in enumerate(addresses.items()):
        words = (name, address) if name in OVER_REDIS else (name, address, f"127.0.1.{number + 1}")
        target: Any = over_redis if name in OVER_REDIS else through_gateway
        threading.Thread(target=target, args=words, daemon=True, name=name).start()
    is_over.wait()
    time.sleep(REST_S[0])  # one that waits for an answer is not waited for
    with lock:
        told.send((dict(done), sorted(set(worked))[:20]))


def _in_turns(attacks: Sequence[Attack], is_over: Any) -> Iterator[tuple[int, Attack]]:
    number = 0
    while not is_over.is_set():
        yield number, attacks[number % len(attacks)]
        number += 1


def _count(done: Counter[str], lock: threading.Lock, what: str) -> None:
    with lock:
        done[what] += 1


# The siege


@dataclass
class Rate:
    """What the honest ones gave, and for how long all of them together have played."""

    rows: int = 0
    played_s: float = 0.0

    @property
    def per_s(self) -> float:
        """Rows of one worker that plays."""
        return self.rows / self.played_s if self.played_s else 0.0


@dataclass
class Seen:
    """What was noticed on the way."""

    rates: dict[str, Rate] = field(default_factory=lambda: {"peace": Rate(), "siege": Rate()})
    memory: list[tuple[float, str, float]] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    attacks: dict[str, int] = field(default_factory=dict)
    worked: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    books: Report = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """What must not be."""


class Siege:
    """A served run, those who play for it, and those who mean harm."""

    def __init__(self, folder: Path, seed: int, say: Callable[[str], None]) -> None:
        self.folder, self.run, self.seen = folder, folder / "run", Seen()
        self._began_s = time.monotonic()
        self._say = lambda text: say(f"{time.monotonic() - self._began_s:6.1f} s  {text}")
        self._random = random.Random(seed)
        self.processes = Processes(folder, secrets.token_hex(8))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._starts = 0
        self._workers: dict[str, Any] = {}
        self._since_s: dict[str, float | None] = dict.fromkeys(HONEST)
        self._ended: set[str] = set()  # lives that were ended
        self._rows: list[Report] = []
        self._rows_before = 0
        self._phase = ""

    # Who is there

    def _about(self) -> Any:
        return read_fleet(self.run) if (self.run / "fleet.json").exists() else None

    def _invited(self, name: str, how: str) -> Address:
        password = invite(self.admin, self.keys, name)
        address = replace(self.admin_address, user=name, password=password)
        if how == "redis":
            return address
        return replace(address, host="127.0.0.1", port=self._port, tls=True, ca=None, is_gateway=True,
                       fingerprint=self._fingerprint)  # fmt: skip

    def _serve(self, *words: object) -> None:
        self._starts += 1
        self._learner = self.processes.start(
            f"learner-{self._starts}", "serve", "--plain", "--no-dashboard", "--run", self.run, *words
        )

    def _join(self, name: str) -> None:
        self._workers[name] = self.processes.start(name, "join", "--pace", PACE, SOULS_URL=self.honest[name].url())
        with suppress(psutil.Error):
            psutil.Process(self._workers[name].pid).nice(NICE_HONEST)

    def begin(self) -> None:
        """Wait until everyone plays, and there is something to go on from."""
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        self._serve(PRESET, "--gateway", f"127.0.0.1:{self._port}", "--accept-all", *settings)
        self._wait("the learner to be there", lambda: bool((about := self._about()) and about.fingerprint))
        about = self._about()
        self._fingerprint, self.keys = about.fingerprint, Keys(about.run)
        self.admin_address = Address.parse(about.admin, run=about.run)
        self.admin = connect(self.admin_address, limit_s=20.0, client="siege")
        self.honest = {name: self._invited(name, how) for name, how in HONEST.items()}
        for name in HONEST:
            self._join(name)
        self._wait("everyone to play", lambda: self._look() is not None and None not in self._since_s.values())
        self._wait("a checkpoint", lambda: any((self.run / "checkpoints").glob("[0-9]*")))

    def live(self, phase: str, length_s: float) -> None:
        """Let a while pass in which somebody comes, goes or is killed now and then."""
        self._say(f"{phase}: {length_s:.0f} s")
        self._look()
        self._phase = phase
        now_s = time.monotonic()
        until_s, worker_s = now_s + length_s, now_s + min(WORKER_S, length_s / 3)
        learner_s = now_s + min(LEARNER_S, length_s) / 2 if length_s > 20.0 else float("inf")
        due: dict[str, float] = {}
        while (now_s := time.monotonic()) < until_s:
            if now_s >= learner_s:
                learner_s += LEARNER_S
                self._kill_learner()
            if now_s >= worker_s:
                worker_s += WORKER_S
                name = self._random.choice([name for name in HONEST if name not in due])
                if self._end_worker(name):
                    due[name] = now_s + BACK_S
            for name in [name for name, at_s in due.items() if now_s >= at_s]:
                del due[name]
                self._join(name)
            self._look()
            time.sleep(LOOK_S)
        for name in due:
            self._join(name)
        self._wait("Redis to answer", lambda: self._look() is not None)
        self._phase = ""

    # Who is ended

    def _end_worker(self, name: str) -> bool:
        """One leaves, or both of its processes are killed, or one of them; whether it has to be started again."""
        how = self._random.choice(("leaves", "tree", "parent", "child"))
        process, player = self._workers[name], player_of(self._workers[name].pid)
        self._stop_clock(name)
        self.seen.kills[f"worker {how}"] += 1
        if how == "child":
            if player is not None:
                player.kill()
            return False
        process.send_signal(signal.SIGTERM) if how == "leaves" else process.kill()
        if how == "tree" and player is not None:
            with suppress(psutil.Error):
                player.kill()
        process.wait(LIMIT_S)
        return True

    def _stop_clock(self, name: str) -> None:
        """A life of this worker is over."""
        self._look()
        self._since_s[name] = None
        self._ended |= {row["worker"] for row in self._rows if row["name"] == name}

    def _kill_learner(self) -> None:
        """With its Redis and its gateway, which do not outlive it."""
        self.seen.kills["learner"] += 1
        self._learner.kill()
        self._learner.wait(LIMIT_S)
        self._note_log(self._starts)
        time.sleep(BACK_S)
        self._serve("--resume")
        self._wait("the learner to go on", lambda: self._look() is not None)

    # Who attacks

    @contextmanager
    def attacked(self) -> Iterator[None]:
        """All hostile members do what they can until the end of the block."""
        spawn = multiprocessing.get_context("spawn")
        is_over, bands = spawn.Event(), []
        for how, names in (("redis", OVER_REDIS), ("gateway", THROUGH_GATEWAY)):
            ours, theirs = spawn.Pipe(duplex=False)
            addresses = {name: self._invited(f"{EVIL}{name}", how) for name in names}
            bands.append((spawn.Process(target=besiege, args=(addresses, theirs, is_over)), ours))
            bands[-1][0].start()
            theirs.close()
        try:
            yield
        finally:
            is_over.set()
            for band, ours in bands:
                self._hear(ours)
                band.join(GONE_S)
                band.kill()

    def _hear(self, ours: Any) -> None:
        """What a band of attackers has done."""
        try:
            done, worked = ours.recv() if ours.poll(GONE_S) else ({}, [])
        except EOFError:
            done, worked = {}, []
        if not done:
            self.fail("attackers have died")
        self.seen.attacks |= done
        self.seen.worked += worked

    def revoke(self) -> None:
        """End all their invitations at once, while they attack, and see what is left."""
        self._say("revoke")
        done = self.processes.run("invitations", "--revoke", f"{EVIL}*", self.run)
        if done.returncode:
            self.fail(f"souls invitations --revoke: {done.stderr.strip()}")
        until_s = time.monotonic() + GONE_S
        while (found := hostile.left_of(self.admin, self.keys, EVIL)) and time.monotonic() < until_s:
            self._look()
            time.sleep(LOOK_S)
        self.seen.left = found

    # What is looked at

    def _look(self) -> Report | None:
        """The fleet as it is now, unless Redis is away; books and memory are looked at, too."""
        if self._learner.poll() is not None:
            raise SystemExit(f"the learner has ended: {self.processes.said(f'learner-{self._starts}')[-2000:]}")
        try:
            found = look_at(self.admin, self.keys, check=True)
        except (RedisError, OSError):
            return None
        self.seen.looks += 1
        self.seen.books = found
        if broken := {who: rows for who, rows in found["open"].items() if not who.startswith(EVIL)}:
            self.fail(f"the counts of honest workers do not add up: {broken}")
        self._note_rates(found)
        self._weigh()
        return found

    def _note_rates(self, found: Report) -> None:
        self._rows = [row for row in found["workers"] if row["name"] in HONEST]
        now_s = time.monotonic()
        rows = sum(row["stored"] + row["in_flight"] for row in self._rows)
        rate = self.seen.rates.get(self._phase)
        if rate is not None:
            rate.rows += rows - self._rows_before
            rate.played_s += sum(now_s - since_s for since_s in self._since_s.values() if since_s is not None)
        self._rows_before = rows
        for name in HONEST:
            playing = any(
                row["name"] == name and row["worker"] not in self._ended and row["state"] in BUSY and row["sent"]
                for row in self._rows
            )
            self._since_s[name] = now_s if playing or self._since_s[name] is not None else None
            process = self._workers.get(name)
            if process is not None and self._since_s[name] is not None and process.poll() is not None:
                self.fail(f"{name} has ended by itself: {self.processes.said(name)[-500:]}")
                self._since_s[name] = None

    def _weigh(self) -> None:
        at_s = time.monotonic() - self._began_s
        with suppress(psutil.Error):
            learner = psutil.Process(self._learner.pid)
            self.seen.memory.append((at_s, "learner", learner.memory_info().rss / 2**20))
            for child in learner.children():
                with suppress(psutil.Error):
                    words = " ".join(child.cmdline())
                    owner = "Redis" if "redis-server" in words else "gateway" if "spawn_main" in words else ""
                    if owner:
                        self.seen.memory.append((at_s, owner, child.memory_info().rss / 2**20))

    def _note_log(self, start: int) -> None:
        if "Traceback" in (text := self.processes.said(f"learner-{start}")):
            self.fail(f"an error of learner {start}: {text[-2000:]}")

    def fail(self, what: str) -> None:
        """Remember what must not be; once is enough."""
        if what not in self.seen.faults:
            self._say(f"fault: {what}")
            self.seen.faults.append(what)

    def _wait(self, what: str, done: Callable[[], bool]) -> None:
        until_s = time.monotonic() + LIMIT_S
        while not done():
            if self._learner.poll() is not None:
                raise SystemExit(f"the learner has ended: {self.processes.said(f'learner-{self._starts}')[-2000:]}")
            if time.monotonic() > until_s:
                raise SystemExit(f"waited in vain for {what}: {self.processes.said(f'learner-{self._starts}')[-2000:]}")
            time.sleep(0.2)

    # The end

    def finish(self) -> None:
        """Stop everything as its operator does; the books close once more."""
        self._say("the end")
        self.seen.books = look_at(self.admin, self.keys, check=True)
        for process in self._workers.values():
            process.send_signal(signal.SIGTERM)
        for process in self._workers.values():
            ending(process)
        stopped = self.processes.run("stop", self.run)
        if stopped.returncode or ending(self._learner):
            self.fail(f"the learner did not stop: {stopped.stderr}")
        self._note_log(self._starts)
        last = json.loads((self.run / "fleet_last.json").read_text())
        self.seen.books = last
        if last["open"]:
            self.fail(f"the counts do not add up at the end: {last['open']}")

    def returns(self) -> tuple[float, float]:
        """Mean return of training episodes: the first that is known, and the last."""
        rows = [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().split("\n")[:-1]]
        found = [row["return/training"] for row in rows if row.get("return/training") is not None]
        return (found[0], found[-1]) if found else (0.0, 0.0)

    def end(self) -> None:
        """Whatever has happened: nothing is left behind."""
        self.processes.end()


# The report


def report_of(siege: Siege, minutes: float) -> dict[str, Any]:
    """What came of it, and whether each of the things that are asked for held."""
    seen = siege.seen
    first, last = siege.returns()
    total = seen.books["total"]
    rates = {phase: rate.per_s for phase, rate in seen.rates.items()}
    ratio = rates["siege"] / rates["peace"] if rates["peace"] else 0.0
    most = {owner: max(mb for _, who, mb in seen.memory if who == owner) for owner in MOST_MB}
    heavy = [f"{owner} {mb:.0f} MB" for owner, mb in most.items() if mb > MOST_MB[owner]] + grown(seen.memory)
    counted = counted_attacks(seen.books)
    closes = total["sent"] == total["stored"] + sum(total["dropped"].values()) + total["in_flight"]
    held = {
        "learner alive, nothing broken": not seen.faults,
        "learns": last >= LEARNS * first > 0.0,
        "the counts close": closes and not seen.books["open"],
        "no attack worked": bool(seen.attacks) and not seen.worked,
        "attacks are counted": {"rows dropped", "refused of a name", "refused by the gateway"} <= counted.keys(),
        "memory is bounded": not heavy,
        f"honest workers keep {SLOWED:.0%} of their rate": ratio >= SLOWED,
        "nothing is left after revoke": not seen.left,
    }
    return {
        "minutes": minutes, "preset": PRESET, "held": held, "faults": seen.faults,
        "returns": {"start": first, "end": last}, "books": total, "looks_at_the_books": seen.looks,
        "attacks": dict(sorted(seen.attacks.items())), "counted": counted, "worked": seen.worked,
        "kills": dict(seen.kills), "most_mb": {owner: round(mb) for owner, mb in most.items()}, "too_heavy": heavy,
        "rows_per_s_of_a_worker": {**rates, "ratio": ratio}, "left_after_revoke": seen.left,
    }  # fmt: skip


def grown(memory: Sequence[tuple[float, str, float]]) -> list[str]:
    """Who became heavier and heavier: the last quarter beside the half before it."""
    if not memory:
        return ["nothing was weighed"]
    first_s, length_s = memory[0][0], memory[-1][0] - memory[0][0]
    found = []
    for owner in MOST_MB:
        own = [((at_s - first_s) / max(length_s, 1.0), mb) for at_s, who, mb in memory if who == owner]
        early, late = [mb for at, mb in own if 0.25 <= at < 0.75], [mb for at, mb in own if at >= 0.75]
        if early and late and max(late) > GROWTH * max(early) + GROWTH_MB:
            found.append(f"{owner} has grown from {max(early):.0f} to {max(late):.0f} MB")
    return found


def counted_attacks(books: Report) -> dict[str, dict[str, int]]:
    """What the learner and the gateway have counted of hostile members, by reason."""
    counted: dict[str, Counter[str]] = {"rows dropped": Counter(), "refused of a name": Counter()}
    for row in books["workers"]:
        if row["name"].startswith(EVIL):
            counted["rows dropped"].update(row["dropped"])
    for name, refused in books["refused"].items():
        counted["refused of a name"].update(refused if name.startswith(EVIL) else {})
    counted["refused of a name"]["unreadable"] += sum(
        count for name, count in books["unreadable"].items() if name.startswith(EVIL)
    )
    for what in ("dropped", "refused"):
        counted[f"{what} by the gateway"] = Counter(books.get("gateway", {}).get(what, {}))
    return {what: dict(counts) for what, counts in counted.items() if any(counts.values())}


def text_of(report: Mapping[str, Any]) -> str:
    """The report in words."""
    rates, returns, books = report["rows_per_s_of_a_worker"], report["returns"], report["books"]
    words = {what: ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
             for what, counts in report["counted"].items()}  # fmt: skip
    lines = [f"siege of {report['minutes']:g} minutes ({report['preset']})", ""]
    lines += [f"  {'held' if held else 'MISSED'}  {what}" for what, held in report["held"].items()]
    lines += [
        "",
        f"mean return: {returns['start']:.1f} at the start, {returns['end']:.1f} at the end",
        f"rows: sent {books['sent']:,} = stored {books['stored']:,} + dropped {sum(books['dropped'].values()):,} + "
        f"in flight {books['in_flight']:,}; looked at {report['looks_at_the_books']:,} times",
        f"ended: {', '.join(f'{what} {count}' for what, count in sorted(report['kills'].items()))}",
        "attacks: " + ", ".join(f"{what} {count:,}" for what, count in report["attacks"].items()),
        *(f"counted as {what}: {text}" for what, text in words.items()),
        "highest memory: " + ", ".join(f"{owner} {mb:,} MB" for owner, mb in report["most_mb"].items()),
        f"honest workers, each: {rates['peace']:.0f} rows/s before the attack, {rates['siege']:.0f} in it, "
        f"ratio {rates['ratio']:.2f}",
        f"left after revoke: {', '.join(report['left_after_revoke']) or 'nothing'}",
        *(f"fault: {fault}" for fault in (*report["faults"], *report["worked"], *report["too_heavy"])),
    ]
    return "\n".join(lines)


def besieged(folder: Path, minutes: float, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Run it in `folder`; the report."""
    siege = Siege(folder, seed, say)
    try:
        siege.begin()
        siege.live("peace", 60.0 * minutes * PEACE)
        with siege.attacked():
            siege.live("siege", 60.0 * minutes * (1.0 - PEACE))
            siege.revoke()
        siege.finish()
        return report_of(siege, minutes)
    finally:
        siege.end()


def main(words: Sequence[str] | None = None) -> int:
    """Print the report; 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1, help="of who is ended when")
    parser.add_argument("--report", type=Path, default=Path("siege.json"), help="file for the report as JSON")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        report = besieged(Path(place), given.minutes, given.seed, lambda text: print(text, flush=True))
    given.report.write_text(json.dumps(report, indent=1))
    print(text_of(report))
    return 0 if all(report["held"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
