"""Connections to the page's server: idle ones are closed and cannot keep others out."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEADERS_S = 10.0
"""Limit for sending the headers of a request."""
MOST_WAITING = 64
"""Connections without a request; beyond this, the oldest is closed."""


class PatientProtocol(H11Protocol):
    """HTTP with a limit on how long, and how many, connections may wait without a request."""

    waiting: dict[PatientProtocol, asyncio.TimerHandle]
    """The idle connections of one server, oldest first; set by `protocol`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._settle()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._note()

    def _note(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        if self.transport.is_closing() or (cycle and not cycle.response_complete):
            self._settle()
        elif self not in self.waiting:
            self.waiting[self] = self.loop.call_later(HEADERS_S, self.transport.close)
            if len(self.waiting) > MOST_WAITING:
                next(iter(self.waiting)).give_up()

    def _settle(self) -> None:
        if timer := self.waiting.pop(self, None):
            timer.cancel()

    def give_up(self) -> None:
        """Close the connection."""
        self._settle()
        self.transport.close()


def protocol() -> Any:
    """The protocol for one server."""
    return type("ServerProtocol", (PatientProtocol,), {"waiting": {}})
