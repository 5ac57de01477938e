"""`souls gateway`: the door for strangers, alone."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from soulsai.errors import ConfigError


def gateway(
    redis: Annotated[
        str, typer.Argument(metavar="URL", help="The Redis behind it: redis://HOST:PORT, or rediss://... with TLS.")
    ],
    place: Annotated[
        str, typer.Option("--at", metavar="HOST:PORT", help="Address that workers use; it listens on this port.")
    ] = "localhost:8443",
    listen_on: Annotated[str, typer.Option("--host", help="Address it listens on.")] = "0.0.0.0",
    folder: Annotated[Path, typer.Option(help="Folder for its certificate.")] = Path("gateway"),
    certificate: Annotated[
        Path | None, typer.Option(help="A certificate from a known authority instead of a self-signed one; with --key.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The key of --certificate.")] = None,
    tls: Annotated[
        bool, typer.Option("--tls/--no-tls", help="Use TLS; turn it off only behind a proxy that adds it.")
    ] = True,
    ca: Annotated[Path | None, typer.Option(help="CA certificate for a rediss:// address.")] = None,
    chunks: Annotated[float, typer.Option(min=0.1, help="Messages per second and name.")] = 50.0,
    megabytes: Annotated[float, typer.Option(min=0.01, help="Megabytes per second and name.")] = 8.0,
    memory: Annotated[float, typer.Option(min=1.0, help="Megabytes per name that may wait for the learner.")] = 256.0,
    connections: Annotated[int, typer.Option(min=1, help="Connections per name.")] = 32,
) -> None:
    """Let strangers join through one port in front of a Redis.

    It stores no passwords: anyone invited to a run in that Redis can connect, until the invitation is revoked.

    Example: souls gateway redis://10.0.0.5:6379 --at souls.example.org:443
    """
    from soulsai.runtime.gateway import listen, run_gateway
    from soulsai.runtime.invitation import host_and_port
    from soulsai.transport.gateway.certificate import load_certificate, load_or_make_certificate
    from soulsai.transport.gateway.counts import gateway_line
    from soulsai.transport.gateway.quotas import Limits
    from soulsai.transport.gateway.server import Gateway, GatewayOptions
    from soulsai.transport.redis.address import Address

    if (certificate is None) != (key is None) or (certificate and not tls):
        raise ConfigError("--certificate needs --key and TLS: give both, or neither")
    host, port = host_and_port(place, "--at")
    upstream = replace(Address.parse(redis, ca, run="any"), user="", password="")
    files = None
    if certificate and key:
        files = load_certificate(certificate, key, trusted=True)
    elif tls:
        files = load_or_make_certificate(folder, [host, "localhost", "127.0.0.1"])
    limits = Limits(
        chunks_per_s=chunks, bytes_per_s=megabytes * 2**20, memory=int(memory * 2**20), connections=connections
    )
    with closing(listen(listen_on, port or 8443)) as listening:
        found = listening.getsockname()[1]
        typer.echo(f"workers join with: souls join {line_of(host, found, files and files.fingerprint)}")
        typer.echo("NAME, PASSWORD and RUN come from an invitation; Ctrl-C stops the gateway")
        options = GatewayOptions(upstream, files and files.certificate, files and files.key, limits)
        door = Gateway(upstream, limits, typer.echo)
        run_gateway(door, options, listening)
    typer.echo(gateway_line(door.quotas.totals.as_dict()))
    for name, counts in sorted(door.quotas.counts().items()):
        typer.echo(f"{name}: " + ", ".join(f"{count:,} {what}" for what, count in counts.items()))


def line_of(host: str, port: int, fingerprint: str | None) -> str:
    """The address that workers type; None: without TLS."""
    from soulsai.runtime.invitation import bracket_host

    scheme = "ws" if fingerprint is None else "wss"
    return f"{scheme}://NAME:PASSWORD@{bracket_host(host)}:{port}/RUN{f'#{fingerprint}' if fingerprint else ''}"
