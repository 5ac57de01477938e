"""Connections of the page's server: one that asks for nothing is closed, and never keeps others out."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEADERS_S = 10.0
"""A request must have sent its headers after so long."""
MOST_WAITING = 64
"""Connections that have no request; the one that has waited longest makes room for the next."""


class PatientProtocol(H11Protocol):
    """HTTP with a limit on how long, and how many, connections may wait without a request."""

    waiting: dict[PatientProtocol, asyncio.TimerHandle]
    """Of one server, the longest first; set on the class that `protocol` makes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._settle()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A piece of a request."""
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """An answer was sent; the connection may be used again."""
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
        """Close it."""
        self._settle()
        self.transport.close()


def protocol() -> Any:
    """The protocol for one server."""
    return type("ServerProtocol", (PatientProtocol,), {"waiting": {}})
