"""A gateway as a process: beside a learner, or alone on a machine that workers can reach."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from soulsai.config.schema import Config
from soulsai.errors import ConfigError, RunError, TransportError
from soulsai.processes.supervisor import Control, Supervisor, function
from soulsai.runs.fleet_file import read_fleet, write_fleet
from soulsai.runtime.invitation import host_and_port
from soulsai.transport.gateway.certificate import load_or_make_certificate
from soulsai.transport.gateway.counts import FOLDER
from soulsai.transport.gateway.server import Gateway, GatewayOptions, make_server

if TYPE_CHECKING:
    from soulsai.runtime.serve import Served

EVERYWHERE = "0.0.0.0"
OFF = "off"
TOUCH_S = 1.0
HANG_S = 60.0
STOP_S = 5.0
Say = Callable[[str], None]


def run_gateway(
    gateway: Gateway,
    options: GatewayOptions,
    listening: socket.socket,
    until: Callable[[Callable[[], None]], None] = lambda end: None,
) -> None:
    """Let workers through until Ctrl-C, or until the function that `until` is given is called."""
    server = make_server(options, gateway)
    until(lambda: setattr(server, "should_exit", True))
    with suppress(KeyboardInterrupt):  # raised once more when everybody was told
        server.run([listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; TransportError if it cannot."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        why = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0]
        raise TransportError(
            f"the gateway cannot listen on {host}:{port} ({why}): choose another port, or an address of this machine"
        ) from error


@contextmanager
def serve_gateway(served: Served, place: str, say: Say) -> Iterator[None]:
    """A gateway in front of the Redis of a run until the end of the block, at `place`, or where it was before."""
    place = place or served.fleet.gateway
    if place == OFF or not place:
        _keep(served, "", "")
        yield
        return
    host, port = host_and_port(place, "--gateway")
    if not port:
        raise ConfigError(f"--gateway {place}: name the port too, such as {place}:8443")
    certificate = load_or_make_certificate(served.run.folder / FOLDER, [host, "localhost", "127.0.0.1"])
    listen(EVERYWHERE, port).close()  # so that a port that is taken is told here
    options = GatewayOptions(served.address, certificate.certificate, certificate.key)
    start = function(_serve, lambda index: (options, port, served.run.log_file, served.run.folder / FOLDER))
    supervisor = Supervisor(start, name="the gateway", hang_s=HANG_S, say=say)
    supervisor.start()
    try:
        _keep(served, place, certificate.fingerprint)
        yield
    finally:
        supervisor.stop(STOP_S)


def with_spot_checks(config: Config, folder: Path, place: str) -> Config:
    """The config of a run that is served with a gateway at `place`, or where it was before: whether it is checked."""
    if config.fleet.spot_checks != "gateway":
        return config
    before = read_fleet(folder)
    place = place or (before.gateway if before else "")
    is_on = bool(place) and place != OFF
    return msgspec.structs.replace(
        config, fleet=msgspec.structs.replace(config.fleet, spot_checks="on" if is_on else "off")
    )


def _keep(served: Served, place: str, fingerprint: str) -> None:
    if (served.fleet.gateway, served.fleet.fingerprint) != (place, fingerprint):
        served.fleet = replace(served.fleet, gateway=place, fingerprint=fingerprint)
        write_fleet(served.run.folder, served.fleet)


def _serve(control: Control, options: GatewayOptions, port: int, log_file: Path, folder: Path) -> None:
    """The process of a gateway beside a learner."""
    from soulsai.telemetry.logfile import attach

    attach(log_file)
    control.touch()
    # Nothing of the administrator's: the gateway asks with the credentials of each worker.
    bare = replace(options, upstream=replace(options.upstream, user="", password=""))
    gateway = Gateway(bare.upstream, bare.limits, logging.getLogger(__name__).warning)
    is_over = threading.Event()

    def keep_touching() -> None:
        while not is_over.wait(TOUCH_S):
            control.touch()
            with suppress(RunError):  # a full disk is no reason to keep workers out
                gateway.quotas.totals.write(folder)

    threading.Thread(target=keep_touching, daemon=True, name="touch").start()
    with closing(listen(EVERYWHERE, port)) as listening:
        run_gateway(gateway, bare, listening, control.on_stop)
    is_over.set()
