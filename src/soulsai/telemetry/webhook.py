"""Messages to webhooks. Their addresses are secrets: nothing here shows them, in whatever goes wrong."""

from __future__ import annotations

import http.client
import json
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from soulsai.errors import ConfigError

TRY_S = 10.0
"""For an answer to one try."""
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
"""Between the tries."""
WORTH_ANOTHER = (408, 429)
"""Status codes worth another try."""
MOST_WAITING = 100
"""Messages that wait for one webhook; more are dropped."""
LONGEST_URL = 4096


class Refused(Exception):
    """A failed attempt, and whether to try again."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


def check_urls(urls: Sequence[str]) -> tuple[str, ...]:
    """The addresses if all can be used; ConfigError, which does not show them, if not."""
    for number, url in enumerate(urls, 1):
        try:
            parts = urlsplit(url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            fits = False
        if not fits or len(url) > LONGEST_URL or not (url.isascii() and url.isprintable()) or " " in url:
            raise ConfigError(f"webhook {number} is not a web address: it must begin with https:// or http://")
    return tuple(urls)


class _OneAddress(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: the message and what is in the address are for this host only."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(url: str, message: Mapping[str, Any]) -> None:
    """Send once, with a time limit; Refused says why it failed."""
    headers = {"Content-Type": "application/json", "User-Agent": "souls"}
    try:
        request = urllib.request.Request(url, data=json.dumps(message).encode(), headers=headers, method="POST")
        urllib.request.build_opener(_OneAddress).open(request, timeout=TRY_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(error.code) from None
    except http.client.HTTPException:
        raise Refused("it does not answer as a web server does", again=True) from None
    except OSError as error:
        raise Refused(f"it cannot be reached ({_reason(error)})", again=True) from None
    except Exception as error:  # its text may hold the address: only its kind is told
        raise Refused(f"the message could not be sent ({type(error).__name__})", again=True) from None


def _refusal(code: int) -> Refused:
    if 300 <= code < 400:
        return Refused(f"it leads to another address (HTTP {code}): give that one", again=False)
    again = code >= 500 or code in WORTH_ANOTHER
    return Refused(f"it refuses the message (HTTP {code})", again=again)


def _reason(error: OSError) -> str:
    """The system's own words; those of the library may hold the address."""
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return "it does not answer in time"
    number = getattr(inner, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number).lower()
    return type(inner).__name__


def send(url: str, message: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep) -> None:
    """Send with retries and growing pauses; Refused if all fail."""
    for pause_s in (*PAUSES_S, None):
        try:
            post(url, message)
            return
        except Refused as refused:
            if pause_s is None or not refused.again:
                raise
            sleep(pause_s)


class Messenger:
    """Sends messages to all webhooks at once; a broken one keeps neither the others nor the caller waiting.

    The first failure of each is told through `say`, from a thread, and the next only after it has worked again.
    """

    def __init__(self, urls: Sequence[str], say: Callable[[str], None]) -> None:
        self._say = say
        self._waiting: list[queue.Queue[Mapping[str, Any]]] = [queue.Queue(MOST_WAITING) for _ in urls]
        for number, (url, messages) in enumerate(zip(urls, self._waiting, strict=True), 1):
            threading.Thread(target=self._work, args=(number, url, messages), name="messenger", daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Put a message on its way."""
        for messages in self._waiting:
            if not messages.full():
                messages.put_nowait(message)

    def drain(self, limit_s: float) -> bool:
        """Wait until everything is sent or given up; whether it was within the limit."""
        until_s = time.monotonic() + limit_s
        while any(messages.unfinished_tasks for messages in self._waiting):
            if time.monotonic() > until_s:
                return False
            time.sleep(0.02)
        return True

    def _work(self, number: int, url: str, messages: queue.Queue[Mapping[str, Any]]) -> None:
        works = True
        while True:
            message = messages.get()
            try:
                send(url, message)
                works = True
            except Refused as refused:
                if works:
                    self._say(f"webhook {number}: {refused}")
                works = False
            finally:
                messages.task_done()
