"""Serving the page from this process until it is told to end."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soulsai.transport.reach import seen_from_outside
from soulsgym.errors import MisuseError, SoulsError
from soulsgym.packages import require

HOST, PORT = "127.0.0.1", 8716
MORE_PORTS = 50
"""Ports tried after the default one if it is taken."""
END_S = 2
"""Seconds for open requests to finish after Ctrl-C."""
MOST_REQUESTS = 128
"""Concurrent requests, including event streams."""
LONGEST_HEADERS = 16 * 1024
SHORTEST_TOKEN = 12
EVERYWHERE = ("0.0.0.0", "::")


class ServerError(SoulsError):
    """The page cannot be served."""


@dataclass(frozen=True)
class ServeOptions:
    """How to serve the page; without a port, the default or the next free one."""

    root: Path
    host: str = HOST
    port: int | None = None
    token: str = ""
    board: str = ""  # the run that everybody may look at without a token, at /board


def serve(
    options: ServeOptions, say: Callable[[str], None], *, until: Callable[[Callable[[], None]], None] | None = None
) -> None:
    """Serve until Ctrl-C. `say` gets the address when it answers; `until` gets a function that ends it."""
    require("starlette", "uvicorn")
    from soulsai.dashboard.app import build
    from soulsai.dashboard.board import PATHS
    from soulsai.dashboard.events import Streams
    from soulsai.dashboard.library import Library
    from soulsai.dashboard.security import AccessCheck, is_loopback

    if not options.root.is_dir():
        raise ServerError(
            f"{options.root}: there is no such folder; give the folder in which the runs are, or that of a run"
        )
    token = token_for(options)
    with closing(listen(options.host, options.port)) as listening:
        library = Library(options.root)
        streams = Streams(library)
        if options.board and library.find(options.board) is None:
            raise ServerError(
                f"--board {options.board}: there is no such run in {options.root}; name one that is there"
            )
        access = AccessCheck(is_loopback(options.host), token, PATHS if options.board else ())
        app = build(library, access, streams, options.board)
        server = _server(app, streams, lambda: say(address(options.host, listening.getsockname()[1], token)))

        def end() -> None:
            streams.close()
            server.should_exit = True

        if until is not None:
            until(end)
        server.run([listening])


def token_for(options: ServeOptions) -> str:
    """The token of the page; a new one if other machines can reach it and none was given."""
    from soulsai.dashboard.security import is_loopback

    token = options.token
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise MisuseError(
            f"the token has {len(token)} characters; give at least {SHORTEST_TOKEN} plain ones, or none to get one"
        )
    return token or ("" if is_loopback(options.host) else secrets.token_urlsafe(24))


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens; ServerError if the port that was asked for is taken."""
    wanted = [port] if port is not None else [*range(PORT, PORT + MORE_PORTS), 0]
    problem: OSError | None = None
    for number in wanted:
        try:
            return _bind(host, number)
        except socket.gaierror as error:
            raise ServerError(
                f"--host {host}: there is no such address on this machine; 127.0.0.1 is for it alone"
            ) from error
        except (OSError, OverflowError) as error:
            problem = error if isinstance(error, OSError) else OSError(str(error))
    why = os.strerror(problem.errno).lower() if problem and problem.errno else str(problem)
    raise ServerError(f"port {wanted[0]} on {host} cannot be used ({why}); choose another with --port, or leave it out")


def _bind(host: str, port: int) -> socket.socket:
    family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(place, family=family, backlog=128, dualstack_ipv6=both)


def address(host: str, port: int, token: str = "") -> str:
    """What to type into a browser."""
    shown = seen_from_outside() if host in EVERYWHERE else host
    if ":" in shown and not shown.startswith("["):
        shown = f"[{shown}]"
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")


def _server(app: Any, streams: Any, started: Callable[[], None]) -> Any:
    import uvicorn

    from soulsai.dashboard.connections import protocol

    class Server(uvicorn.Server):
        """Calls `started` when it answers, and ends the streams when it stops."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                started()

        def handle_exit(self, sig: int, frame: Any) -> None:
            streams.close()
            super().handle_exit(sig, frame)

    return Server(
        uvicorn.Config(
            app,
            http=protocol(),
            loop="asyncio",
            ws="none",
            log_level="warning",
            access_log=False,  # Its lines would hold the token.
            server_header=False,
            date_header=True,
            proxy_headers=False,
            limit_concurrency=MOST_REQUESTS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=END_S,
            h11_max_incomplete_event_size=LONGEST_HEADERS,
        )
    )
