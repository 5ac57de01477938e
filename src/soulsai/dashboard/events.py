"""Events for open pages: at most one a second, and only when something has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from soulsai.dashboard.answers import to_json
from soulsai.dashboard.library import Library

EVERY_S = 1.0
HEARTBEAT_S = 15.0
"""Interval of keep-alive comments, for proxies that close idle connections."""
MOST_STREAMS = 32
RETRY_MS = 2000
SHORTEST_REST_S = 0.05
CLOSE_S = 0.25
"""Interval in which a stream checks whether the server is closing."""


class Streams:
    """The event streams of all open pages."""

    def __init__(self, library: Library, most: int = MOST_STREAMS) -> None:
        self._library = library
        self._most = most
        self._closing = False
        self.open = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit of streams is reached."""
        return self.open >= self._most

    def close(self) -> None:
        """End all streams; each sends the last state first."""
        self._closing = True

    async def events(self, id: str | None) -> AsyncIterator[bytes]:
        """Events of all runs, and of one in more detail."""
        last: dict[str, bytes] = {}
        spoke_s = time.monotonic()
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not self._closing:
            turn_s = time.monotonic()
            changed = await self._changes(id, last)
            if changed or time.monotonic() - spoke_s > HEARTBEAT_S:
                yield changed or b": still here\n\n"
                spoke_s = time.monotonic()
            await self._rest(turn_s + EVERY_S)
        self._library.forget()
        yield await self._changes(id, last) + b"event: end\ndata: {}\n\n"

    async def _changes(self, id: str | None, last: dict[str, bytes]) -> bytes:
        news = await run_in_threadpool(self.news, id)
        changed = {kind: data for kind, value in news.items() if last.get(kind) != (data := to_json(value))}
        last |= changed
        return b"".join(b"event: %s\ndata: %s\n\n" % (kind.encode(), data) for kind, data in changed.items())

    async def _rest(self, until_s: float) -> None:
        await asyncio.sleep(SHORTEST_REST_S)
        while not self._closing and (left_s := until_s - time.monotonic()) > 0.0:
            await asyncio.sleep(min(left_s, CLOSE_S))

    def news(self, id: str | None) -> dict[str, Any]:
        """The current state of all runs, and of one in more detail."""
        news: dict[str, Any] = {"runs": self._library.summary()}
        if id is not None:
            news["run"] = self._library.event(id)
        return news


class EventResponse(StreamingResponse):
    """A response that streams events, counted while it is open."""

    def __init__(self, streams: Streams, id: str | None) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(streams.events(id), headers=headers, media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until either side closes."""
        self._streams.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open -= 1
