"""How fast experience comes from workers to the replay over Redis, and policies back: beside bare redis-py."""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.train import Figure
from soulsai.acting.world import sizes_of
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import config_from_toml, config_to_toml, load_preset, with_settings
from soulsai.config.schema import Config
from soulsai.experience import Chunk, Schema
from soulsai.learning.evaluator import Evaluator
from soulsai.learning.loop import build_fleet_loop
from soulsai.learning.sources import Start
from soulsai.learning.training import Progress, Training
from soulsai.learning.wiring import build_worker, build_world, smallest
from soulsai.runs.run import Run
from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.chunks import pack_chunk
from soulsai.transport.frames import MOST_FREED, keep_freed_memory
from soulsai.transport.gateway.certificate import load_or_make_certificate
from soulsai.transport.gateway.quotas import Limits
from soulsai.transport.gateway.server import Gateway, GatewayOptions, make_server
from soulsai.transport.links import Message
from soulsai.transport.policies import Policy, arrays_of, pack_policy, unpack_policy
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys, worker_id
from soulsai.transport.redis.learner import RedisLearnerLink
from soulsai.transport.redis.worker import RedisWorkerLink

PRESET = "clipped-dqn"
"""Whose observations and network are sent."""
RUN, NAME = "bench", "bench"
CHUNKS = 16
"""Different chunks that are sent in turns."""
ROUNDS = 3
MAX_CHUNKS = 256
AT_ONCE = 16
"""Chunks in a pipeline of the bare sender; with fewer it is slower."""
PER_READ = 16
POLICIES = 60
POLICY_EVERY_S = 0.05
IDLE_S = 5.0
WORKERS_PER_PROCESS = 25
"""A process for each of 100 workers would not fit into memory beside the learner."""
FLEET_S = 20.0
"""A fleet of slow workers is looked at for so long at least, to see some checkpoints and evaluations."""
SLOW_FLEET = (
    "fleet.number=1", "fleet.publish_every_s=2", "run.checkpoint_every_s=5", "run.evaluate_every_steps=10000",
    "run.log_every_s=0.5",  # more often than the fleet is looked at, so that no figure is missed
)  # fmt: skip
GAME_STEPS_PER_S = 22.0
"""What one machine with the real game gives."""
READY_S = 180.0
"""For processes to import and compile."""
GATEWAY_TARGET = 100_000.0
WIDE = Limits(chunks_per_s=1e6, bytes_per_s=1e12, memory=1 << 40, message=128 << 20)
"""So that no quota is measured."""
ROWS_TARGET, RATIO_TARGET, LATENCY_TARGET_MS, IDLE_TARGET, LAG_TARGET_S = 500_000.0, 0.6, 50.0, 0.05, 1.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class TransportSpeed:
    """All figures of one run."""

    rows: int  # in a chunk
    frame_bytes: int
    server: str
    figures: tuple[Figure, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure with its target and whether it is reached."""
        return asdict(self) | {"figures": [asdict(figure) | {"ok": figure.ok} for figure in self.figures]}


def measure_transport(seconds: float, *, rows: int, fleet: int, say: Say, gateway: bool = False) -> TransportSpeed:
    """Measure everything, each part for about `seconds`; `fleet` slow workers, none for 0; or a `gateway` alone."""
    with tempfile.TemporaryDirectory() as folder, OwnServer.start(Path(folder) / "redis") as server:
        admin = replace(server.address, run=RUN)
        with connect(admin) as client:
            version = str(client.info("server")["redis_version"])
            password = invite(client, Keys(RUN), NAME)
        guest = replace(admin, user=NAME, password=password)
        say("playing fights to have something to send")
        chunks = make_chunks(rows)
        frame_bytes = len(_frames(chunks)[0])
        if gateway:
            say("chunks from worker memory through a gateway, with TLS, to replay memory")
            figures = _through_gateway(seconds, admin, guest, rows, Path(folder))
            return TransportSpeed(rows, frame_bytes, version, tuple(figures))
        say("chunks from worker memory to replay memory, and the same bytes through bare pipelines, in turns")
        figures = _throughput(seconds, admin, guest, chunks, rows)
        say("policies: from publishing to the first step played with them")
        figures.append(_latency(admin, guest))
        say("an idle learner")
        figures.append(_idle(admin))
        if fleet:
            say(f"{fleet} workers at the pace of the game, {GAME_STEPS_PER_S:.0f} steps/s each")
            figures += _slow_fleet(seconds, admin, guest, fleet, folder)
    return TransportSpeed(rows, frame_bytes, version, tuple(figures))


def make_chunks(rows: int, seed: int = 0) -> list[Chunk]:
    """Chunks of real fights, played at random."""
    config = _config()
    algorithm, world = algorithm_of(config), build_world(config)
    networks = algorithm.networks(config, sizes_of(world))
    actor, schema = algorithm.actor(config, world, networks, [seed]), algorithm.schema(config, sizes_of(world))
    actor.begin(seed)
    chunks: list[Chunk] = []
    pieces: list[Chunk] = []
    while len(chunks) < CHUNKS:
        pieces.append(Chunk.join([actor.play()], schema))
        if sum(piece.rows for piece in pieces) >= rows:
            chunks.append(Chunk.join(pieces, schema))
            pieces = []
    world.close()
    return chunks


def _schema(config: Config) -> Schema:
    world = build_world(smallest(config))
    world.close()
    return algorithm_of(config).schema(config, sizes_of(world))


def _config() -> Config:
    return with_settings(load_preset(PRESET), ["run.threads=1", "run.device=cpu", "run.evaluate_every_steps=0"])


def _frames(chunks: list[Chunk]) -> list[bytes]:
    schema, worker = _schema(_config()), worker_id(NAME, 9, "000000")
    return [pack_chunk(chunk, schema, run=RUN, worker=worker, sequence=1, policy=1, squeeze=False) for chunk in chunks]


# Throughput


def _throughput(seconds: float, admin: Address, guest: Address, chunks: list[Chunk], rows: int) -> list[Figure]:
    each_s = seconds / ROUNDS
    with _child(_send_ours, guest, rows) as ours, _child(_send_bare, admin, _frames(chunks)) as bare:
        intake, limit = _Replay(admin), _BareReader(admin)
        rates: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(ROUNDS):
            rates["ours"].append(_rate(ours, intake.take, each_s))
            rates["bare"].append(_rate(bare, limit.take, each_s) * rows)
        intake.close()
    through, bound = float(np.median(rates["ours"])), float(np.median(rates["bare"]))
    return [
        Figure("from worker memory to replay memory", through, "transitions/s", ROWS_TARGET),
        Figure("limit: the same bytes, bare redis-py pipelines", bound, "transitions/s"),
        Figure("ours / limit", through / bound, "ratio", RATIO_TARGET),
    ]


def _through_gateway(seconds: float, admin: Address, guest: Address, rows: int, folder: Path) -> list[Figure]:
    """What one process of a gateway lets through, and what it would with a core of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    certificate = load_or_make_certificate(folder / "gateway", ["127.0.0.1"])
    door = replace(guest, port=port, is_gateway=True, tls=True, fingerprint=certificate.fingerprint)
    options = GatewayOptions(admin, certificate.certificate, certificate.key, WIDE)
    with _child(_run_gateway, options, port) as gateway, _child(_send_ours, door, rows) as ours:
        intake = _Replay(admin)
        began_s, taken = _cpu_s(gateway), 0

        def take() -> int:
            nonlocal taken
            taken += (count := intake.take())
            return count

        through = _rate(ours, take, seconds)
        used_s = _cpu_s(gateway) - began_s
        intake.close()
    return [
        Figure("from worker memory through a gateway to replay memory", through, "transitions/s"),
        Figure("gateway, per second of its processor time", taken / used_s, "transitions/s", GATEWAY_TARGET),
    ]


def _cpu_s(gateway: Connection) -> float:
    gateway.send_bytes(b"cpu")
    return float(gateway.recv_bytes(64))


def _run_gateway(connection: Connection, options: GatewayOptions, port: int) -> None:
    def answer() -> None:
        while connection.recv_bytes(16) == b"cpu":
            connection.send_bytes(str(time.process_time()).encode())
        server.should_exit = True

    threading.Thread(target=answer, daemon=True).start()
    gateway = Gateway(options.upstream, options.limits, lambda text: None)
    server = make_server(options, gateway, lambda: connection.send_bytes(b"ready"))
    server.run([socket.create_server(("127.0.0.1", port))])


def _rate(sender: Connection, take: Callable[[], int], seconds: float) -> float:
    """What comes in a second, while the sender sends; what is left is taken before the next round."""
    sender.send_bytes(b"go")
    warm_s = time.perf_counter() + 0.5
    while time.perf_counter() < warm_s:
        take()
    began_s, total = time.perf_counter(), 0
    while time.perf_counter() - began_s < seconds:
        total += take()
    took_s = time.perf_counter() - began_s
    sender.send_bytes(b"pause")
    while take():
        pass
    return total / took_s


class _Replay:
    """The learner's side as in training: receive, check, store, set priorities, acknowledge."""

    def __init__(self, admin: Address) -> None:
        keep_freed_memory(MOST_FREED)
        config = _config()
        self._link = RedisLearnerLink(admin)
        loop = build_fleet_loop(config, self._link, Start(RUN, 1), lambda text: None)
        self._source, self._learner = loop.source, loop.learner
        assert self._learner.store is not None
        for column in self._learner.store.columns.values():
            column.fill(0)  # memory that was never touched is slow the first time

    def take(self) -> int:
        """Rows stored."""
        chunks = self._source.next(self._learner)
        for chunk in chunks:
            self._learner.take(chunk)
        self._learner.counters.updates_owed = 0.0  # nothing is learned here
        self._source.start_saving()()
        return sum(chunk.rows for chunk in chunks)

    def close(self) -> None:
        self._link.close()


class _BareReader:
    """XREADGROUP, XACK, XDEL, and nothing else."""

    def __init__(self, admin: Address) -> None:
        self._client: Any = connect(admin)
        self._client.xgroup_create("bare", "group", "0", mkstream=True)

    def take(self) -> int:
        """Chunks read."""
        found = self._client.xreadgroup("group", "reader", {"bare": ">"}, count=PER_READ, block=200)
        if not found:
            return 0
        ids = [entry for entry, _ in found[0][1]]
        pipe = self._client.pipeline(transaction=False)
        pipe.xack("bare", "group", *ids)
        pipe.xdel("bare", *ids)
        pipe.execute()
        return len(ids)


def _send_ours(connection: Connection, guest: Address, rows: int) -> None:
    keep_freed_memory()
    chunks, schema = make_chunks(rows, seed=1), _schema(_config())
    worker = worker_id(NAME, 1, "000001")
    link = RedisWorkerLink(guest, worker, max_chunks=MAX_CHUNKS, buffer_bytes=64 << 20, waits=True, ahead=AT_ONCE)
    link.start()
    sequence = 0
    connection.send_bytes(b"ready")
    while _may_go(connection):
        sequence += 1
        chunk = chunks[sequence % CHUNKS]
        frame = pack_chunk(chunk, schema, run=RUN, worker=worker, sequence=sequence, policy=1, squeeze=not link.is_near)
        link.send(Message(worker, sequence, chunk.rows, frame))
    link.close()


def _send_bare(connection: Connection, admin: Address, frames: list[bytes]) -> None:
    client: Any = connect(admin)
    number = 0
    connection.send_bytes(b"ready")
    while _may_go(connection):
        pipe = client.pipeline(transaction=False)
        for _ in range(AT_ONCE):
            number += 1
            pipe.xadd("bare", {"f": frames[number % CHUNKS]})
        pipe.xlen("bare")
        waiting = pipe.execute()[-1]
        while waiting > MAX_CHUNKS:
            time.sleep(0.001)
            waiting = client.xlen("bare")


def _may_go(connection: Connection) -> bool:
    """Whether to send on; while it pauses nothing happens here."""
    while connection.poll():
        order = connection.recv_bytes(16)
        while order == b"pause":
            order = connection.recv_bytes(16)
        if order == b"end":
            return False
    return True


# Policies


def _latency(admin: Address, guest: Address) -> Figure:
    config = _config()
    world = build_world(smallest(config))
    networks = algorithm_of(config).networks(config, sizes_of(world))
    world.close()
    tensors = arrays_of(
        {f"{name}.{key}": value for name, net in networks.items() for key, value in net.state_dict().items()}
    )
    link = RedisLearnerLink(admin)
    published_s: dict[int, float] = {}
    link.publish(1, pack_policy(Policy(1, 10**9, tensors), run=RUN))
    with _child(_use_policies, guest) as follower:
        follower.send_bytes(b"go")
        time.sleep(1.0)
        for version in range(2, POLICIES + 2):
            published_s[version] = time.monotonic()
            link.publish(version, pack_policy(Policy(version, 10**9, tensors), run=RUN))
            link.receive(POLICY_EVERY_S)
        time.sleep(0.5)
        follower.send_bytes(b"end")
        used = np.frombuffer(follower.recv_bytes(1 << 20), np.float64).reshape(-1, 2)
        follower.send_bytes(b"end")
    link.close()
    taken_ms = [1e3 * (used_s - published_s[int(version)]) for version, used_s in used if int(version) in published_s]
    return Figure(
        f"policy, published to first step played with it, median of {len(taken_ms)}",
        float(np.median(taken_ms)),
        "ms",
        LATENCY_TARGET_MS,
        at_most=True,
    )


def _use_policies(connection: Connection, guest: Address) -> None:
    """A worker that plays and notes when it first played with each version."""
    link: Any = RedisWorkerLink(guest, worker_id(NAME, 2, "000002"), max_chunks=4096, buffer_bytes=1 << 20, waits=False)
    link.start()
    used: list[tuple[float, float]] = []
    fresh: list[int] = []
    newest = link.newest

    def noted() -> bytes | None:
        frame: bytes | None = newest()
        if frame is not None:
            fresh.append(unpack_policy(frame, run=RUN).version)
        return frame

    def touch() -> None:
        while fresh:
            used.append((float(fresh.pop()), time.monotonic()))

    link.newest = noted
    worker = build_worker(_config(), link, touch=touch)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    connection.send_bytes(b"ready")
    connection.recv_bytes(16)
    connection.recv_bytes(16)
    connection.send_bytes(np.array(used, np.float64).tobytes())
    link.stop()
    thread.join(10.0)
    link.close(0.5)


# The learner


def _idle(admin: Address) -> Figure:
    address = replace(admin, run="idle")
    with connect(address) as client:
        invite(client, Keys("idle"), "nobody")
    link = RedisLearnerLink(address)
    loop = build_fleet_loop(_config(), link, Start("idle", 1), lambda text: None)
    loop.begin()
    loop.iterate()
    began_s, cpu_s = time.perf_counter(), time.process_time()
    while time.perf_counter() - began_s < IDLE_S:
        loop.iterate()
    share = (time.process_time() - cpu_s) / (time.perf_counter() - began_s)
    link.close()
    return Figure("an idle learner uses of a core", share, "share", IDLE_TARGET, at_most=True)


def _slow_fleet(seconds: float, admin: Address, guest: Address, number: int, folder: str) -> list[Figure]:
    config = with_settings(_config(), list(SLOW_FLEET))
    run = Run.create(Path(folder) / "run", config_to_toml(config), preset=PRESET, command=[])
    link = RedisLearnerLink(admin)
    view = _Watch()
    loop = build_fleet_loop(config, link, Start(RUN, 2), view.say)
    evaluator = Evaluator(run, config, view.say)
    training = Training(run, config, view=view, stop=lambda: view.is_over(), loop=loop, evaluator=evaluator)
    training.begin()
    with ExitStack() as held:
        text, groups = config_to_toml(config), range(0, number, WORKERS_PER_PROCESS)
        fleet = [held.enter_context(_child(_play_slowly, guest, text, first, number)) for first in groups]
        for process in fleet:
            process.send_bytes(b"go")
        ready_s = time.monotonic() + READY_S
        # What has piled up while one program after the other was started has to be through.
        view.is_over = lambda: (view.workers >= number and view.oldest_s < LAG_TARGET_S) or time.monotonic() > ready_s
        training.go()
        if view.workers < number:
            raise RuntimeError(f"{view.workers:.0f} of {number} workers came within {READY_S:.0f} s")
        view.rows.clear()
        end_s = time.monotonic() + max(seconds, FLEET_S)
        view.is_over = lambda: time.monotonic() > end_s
        training.go()
        for process in fleet:
            process.send_bytes(b"end")
        drops = {reason for account in link.accounts() for reason, rows in account.dropped.items() if rows}
        dropped = float(sum(sum(account.dropped.values()) for account in link.accounts()))
    training.close("stopped")
    link.close()
    paces = [row["steps_per_s"] for row in view.rows if "steps_per_s" in row]
    oldest_s = [row["fleet/oldest_s"] for row in view.rows if "fleet/oldest_s" in row]
    mean_s = [row["fleet/age_s"] for row in view.rows if "fleet/age_s" in row]
    evaluated = sum("win_rate/evaluation" in row for row in view.rows)
    return [
        Figure(f"{number} slow workers, environment steps", float(np.mean(paces)), "steps/s"),
        Figure(f"{number} slow workers, mean age of a chunk when it comes", float(np.mean(mean_s)), "s"),
        Figure(f"{number} slow workers, evaluations meanwhile", float(evaluated), "evaluations"),
        Figure(f"{number} slow workers, oldest chunk", max(oldest_s), "s", LAG_TARGET_S, at_most=True),
        Figure(
            f"{number} slow workers, dropped {sorted(drops) or ''}".strip(), float(dropped), "rows", 0.0, at_most=True
        ),
    ]


class _Watch:
    """Keeps the metrics of a run."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.workers = 0.0
        self.oldest_s = float("inf")
        self.is_over: Callable[[], bool] = lambda: False

    def say(self, text: str) -> None:
        """Nobody listens."""

    def show(self, progress: Progress) -> None:
        """New figures."""
        self.rows.append(progress.metrics)
        self.workers = progress.metrics.get("fleet/workers", self.workers)
        self.oldest_s = progress.metrics.get("fleet/oldest_s", self.oldest_s)


def _play_slowly(connection: Connection, guest: Address, config_toml: str, first: int, number: int) -> None:
    """Some of the workers in one process, each with its own connections, at the pace of the game."""
    config = config_from_toml(config_toml, "config")
    links: list[Any] = []
    threads: list[threading.Thread] = []
    connection.send_bytes(b"ready")
    connection.recv_bytes(16)
    for index in range(first, min(first + WORKERS_PER_PROCESS, number)):
        link = RedisWorkerLink(
            guest, worker_id(NAME, 10 + index, "000003"), max_chunks=4096, buffer_bytes=1 << 20, waits=False
        )
        link.start()
        worker = build_worker(config, link, pace=GAME_STEPS_PER_S)
        threads.append(threading.Thread(target=worker.run, daemon=True))
        threads[-1].start()
        links.append(link)
    connection.recv_bytes(16)
    for link in links:
        link.stop()
    for thread in threads:
        thread.join(5.0)


@contextmanager
def _child(target: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """A process of its own, ready; ended afterwards whatever happens."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_run_child, args=(target, there, *arguments), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(READY_S) or here.recv_bytes(16) != b"ready":
            raise RuntimeError(f"{target.__name__} was not ready within {READY_S:.0f} s")
        if target in (_send_ours, _send_bare):
            here.send_bytes(b"pause")
        yield here
        with _quietly():
            here.send_bytes(b"end")
        process.join(10.0)
    finally:
        if process.is_alive():
            process.kill()
        process.join()


@contextmanager
def _quietly() -> Iterator[None]:
    try:
        yield
    except OSError:
        return


def _run_child(target: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    target(connection, *arguments)
