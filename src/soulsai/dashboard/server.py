"""Serving the page from this process until it is told to end."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soulsai.transport.reach import seen_from_outside
from soulsgym.errors import MisuseError, SoulsError
from soulsgym.packages import require

HOST, PORT = "127.0.0.1", 8716
MORE_PORTS = 50
"""Tried after the usual one, when nobody asked for it and it is taken."""
END_S = 2
"""What is still being answered may take so long after Ctrl-C."""
MOST_REQUESTS = 128
"""At the same time, open streams of events among them."""
LONGEST_HEADERS = 16 * 1024
SWITCH_S = 0.001
LOOK_S = 1.0
EVERYWHERE = ("0.0.0.0", "::")


class ServerError(SoulsError):
    """The page cannot be served."""


@dataclass(frozen=True)
class Wish:
    """How the page is to be served; without a port the usual one, or the next one that is free."""

    root: Path
    host: str = HOST
    port: int | None = None
    token: str = ""


def serve(wish: Wish, say: Callable[[str], None], *, until: Callable[[Callable[[], None]], None] | None = None) -> None:
    """Serve until Ctrl-C. `say` gets the address when it answers; `until` gets a function that ends it."""
    check_installed()
    from soulsai.dashboard.app import build
    from soulsai.dashboard.board import Board
    from soulsai.dashboard.cache import ColumnCache, default_folder
    from soulsai.dashboard.events import Streams
    from soulsai.dashboard.security import Door

    check_root(wish.root)
    token = token_for(wish)
    with closing(listen(wish.host, wish.port)) as listening, _quick_turns():
        board = Board(wish.root, ColumnCache(default_folder()))
        streams = Streams(board)
        app = build(board, Door(_is_loopback(wish.host), token), streams)
        server = _server(app, streams, lambda: say(address(wish.host, listening.getsockname()[1], token)))
        if until is not None:
            until(lambda: _end(server, streams))
        server.run([listening])


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Answers wait no longer than a moment for a thread that reads a long history."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)


def check_installed() -> None:
    """Raise MissingPackage if packages of the page are missing."""
    require("starlette", "uvicorn")


def check_root(root: Path) -> None:
    """ServerError if there is no such folder."""
    if not root.is_dir():
        raise ServerError(f"{root}: there is no such folder; give the folder in which the runs are, or that of a run")


def token_for(wish: Wish) -> str:
    """The token that the page needs; a new one where others could reach it and none was given."""
    from soulsai.dashboard.security import SHORTEST_TOKEN, new_token

    if wish.token and (len(wish.token) < SHORTEST_TOKEN or not wish.token.isascii() or not wish.token.isprintable()):
        raise MisuseError(
            f"the token has {len(wish.token)} characters; give at least {SHORTEST_TOKEN} plain ones, or none to get one"
        )
    return wish.token or ("" if _is_loopback(wish.host) else new_token())


def _is_loopback(host: str) -> bool:
    from soulsai.dashboard.security import is_loopback

    return is_loopback(host)


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens; ServerError if the port that was asked for is taken."""
    wanted = [port] if port is not None else [*range(PORT, PORT + MORE_PORTS), 0]
    problem: OSError | None = None
    for number in wanted:
        try:
            return _bound(host, number)
        except (OSError, OverflowError) as error:
            problem = error if isinstance(error, OSError) else OSError(str(error))
            if isinstance(error, socket.gaierror):
                break
    if isinstance(problem, socket.gaierror):
        raise ServerError(f"--host {host}: there is no such address on this machine; 127.0.0.1 is for it alone")
    why = (problem.strerror or str(problem)).lower() if problem else "no port is free"
    raise ServerError(f"port {wanted[0]} on {host} cannot be used ({why}); choose another with --port, or leave it out")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # There it would let two servers share a port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening


def address(host: str, port: int, token: str = "") -> str:
    """What to type into a browser."""
    shown = seen_from_outside() if host in EVERYWHERE else host
    if ":" in shown and not shown.startswith("["):
        shown = f"[{shown}]"
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")


def _server(app: Any, streams: Any, started: Callable[[], None]) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Tells when it answers, and ends streams when it is to end."""

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
            http="h11",
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


def _end(server: Any, streams: Any) -> None:
    streams.close()
    server.should_exit = True


def end_with_input(end: Callable[[], None]) -> None:
    """End when standard input does, or the process that started this one: a page goes when its training is gone."""

    def end_after(wait: Callable[[], None]) -> None:
        wait()
        end()

    for wait in (_until_input_ends, _until_left_alone):
        threading.Thread(target=end_after, args=(wait,), name=wait.__name__, daemon=True).start()


def _until_input_ends() -> None:
    try:
        while sys.stdin.buffer.read(4096):
            pass
    except (OSError, ValueError):
        return


def _until_left_alone() -> None:
    """Another process may have got the other end of the input too, and still live."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(LOOK_S)
