"""A network between a worker and Redis that can be cut."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress

PIECE = 1 << 16
WAIT_S = 0.1
CONNECT_S = 20.0


class Proxy:
    """Passes connections on to a port of this machine, in a thread.

    `open` passes everything on. `refuse` drops all connections and takes no new ones. `hold` takes them, but nothing
    comes through; what was held back arrives when it is opened again, late, as it does on a real network.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._mode = "open"
        self._listener = self._bound(0)
        self.port: int = self._listener.getsockname()[1]
        self._listener.listen(64)
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def set(self, mode: str) -> None:
        """open, hold or refuse."""
        with self._lock:
            before, self._mode = self._mode, mode
            if mode == "refuse" and before != "refuse":
                waiting = self._bound(self.port)  # holds the port without listening: connections are refused
                self._listener.close()
                self._listener = waiting
                for one in list(self._pairs):
                    self._drop(one)
            elif before == "refuse" and mode != "refuse":
                self._listener.listen(64)

    def close(self) -> None:
        """Drop everything and end the thread."""
        self._ending.set()
        self._thread.join(2 * CONNECT_S)
        with self._lock:
            for one in list(self._pairs):
                self._drop(one)
            self._listener.close()

    def _bound(self, port: int) -> socket.socket:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        found.bind(("127.0.0.1", port))
        found.setblocking(False)
        return found

    def _run(self) -> None:
        while not self._ending.is_set():
            with self._lock:
                mode, readers = self._mode, [self._listener, *self._pairs]
            if mode != "open":  # who connects meanwhile waits in the queue of the listener
                self._ending.wait(WAIT_S)
                continue
            with selectors.DefaultSelector() as selector:
                for one in readers:
                    with suppress(ValueError, OSError):
                        selector.register(one, selectors.EVENT_READ, one)
                ready = [key.data for key, _ in selector.select(WAIT_S)]
            with self._lock:
                if self._mode == "open":
                    for one in ready:
                        self._serve(one)

    def _serve(self, one: socket.socket) -> None:
        if one is self._listener:
            self._take()
        elif one in self._pairs:
            self._pass_on(one)

    def _take(self) -> None:
        with suppress(OSError):
            near, _ = self._listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self._target), CONNECT_S)
            except OSError:
                near.close()
                return
            for one in (near, far):
                one.setblocking(True)
                one.settimeout(CONNECT_S)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs[near], self._pairs[far] = far, near

    def _pass_on(self, one: socket.socket) -> None:
        try:
            data = one.recv(PIECE)
            self._pairs[one].sendall(data)
        except OSError:
            data = b""
        if not data:
            self._drop(one)

    def _drop(self, one: socket.socket) -> None:
        other = self._pairs.pop(one, None)
        for end in (one, other):
            if end is not None:
                self._pairs.pop(end, None)
                end.close()
