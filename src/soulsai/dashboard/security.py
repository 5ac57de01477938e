"""Who may ask for what: the host, the token, the size and the origin of a request, before anything else sees it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from soulsai.dashboard.answers import error

LONGEST_BODY = 4 * 1024
LONGEST_URL = 8 * 1024
SHORTEST_TOKEN = 12
METHODS = ("GET", "HEAD", "POST")
MARK = ("x-souls", "page")
"""A header that pages of other sites cannot send."""
OPEN = ("/healthz",)
"""Asked for by programs that watch whether the server lives; tells nothing."""
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Door:
    """What is needed to come in: a token, or a name of this machine, or both."""

    loopback: bool
    token: str = ""

    @property
    def cookie(self) -> str:
        """The name of the cookie: servers on other ports of this machine see it too, and have their own."""
        return f"souls_{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    @property
    def pass_word(self) -> str:
        """What is in the cookie: made of the token, but not the token."""
        return hmac.new(self.token.encode(), b"souls dashboard cookie", hashlib.sha256).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


class Refusal(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers or {}


class Guard:
    """Lets through what may pass, and marks all answers."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at a request before the pages do."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            answer = self._look(scope)
        except Refusal as refusal:
            answer = error(refusal.status, str(refusal), refusal.headers)
        if answer is not None:
            await answer(scope, receive, marked)
        else:
            await self._app(scope, receive, marked)

    def _look(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        _check_size(scope, headers)
        if scope["method"] not in METHODS:
            raise Refusal(405, f"method {scope['method'][:20]} is not used here; GET and POST are")
        if self._door.loopback:
            _check_host(headers)
        if scope["method"] == "POST":
            _check_origin(scope, headers)
        if self._door.token and scope["path"] not in OPEN:
            return self._check_token(scope, headers)
        return None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        kind, _, told = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(told.strip(), self._door.token):
            return None
        if same(cookie_parser(headers.get("cookie", "")).get(self._door.cookie, ""), self._door.pass_word):
            return self._without_token(scope) if scope["method"] == "GET" else None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and same(query.get("token", ""), self._door.token):
            return self._without_token(scope)
        how = "open the page with the whole address that was printed at its start, ?token=... included"
        raise Refusal(401, f"this page needs its token: {how}", {"www-authenticate": 'Bearer realm="souls"'})

    def _without_token(self, scope: Scope) -> Response | None:
        """Ask again without it: so it stays out of the history of the browser, and out of what is copied."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        kept = [(name, value) for name, value in pairs if name != "token"]
        if len(kept) == len(pairs):
            return None
        # One slash: two would be the address of another server.
        place = "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(kept)}" if kept else "")
        answer = RedirectResponse(place, 303, {"cache-control": "no-store"})
        secure = scope.get("scheme") == "https"
        answer.set_cookie(
            self._door.cookie, self._door.pass_word, httponly=True, samesite="strict", path="/", secure=secure
        )
        return answer


def same(told: str, expected: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell how much of them is."""
    return bool(expected) and hmac.compare_digest(told.encode("utf-8", "replace"), expected.encode())


def _check_size(scope: Scope, headers: Headers) -> None:
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_URL:
        raise Refusal(414, f"the address is longer than {LONGEST_URL:,} bytes; ask for less at once")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > LONGEST_BODY:
        raise Refusal(413, f"a request may have {LONGEST_BODY:,} bytes at most")


def _check_host(headers: Headers) -> None:
    """A page of another site can have its name lead here; it cannot have the browser say another name."""
    told = headers.getlist("host")
    try:
        host = urlsplit(f"//{told[0]}").hostname if len(told) == 1 else None
    except ValueError:
        host = None
    if host is None or not is_loopback(host):
        raise Refusal(403, "this page is for this machine only: open it as http://127.0.0.1 with its port")


def _check_origin(scope: Scope, headers: Headers) -> None:
    name, value = MARK
    if headers.get(name) != value:
        raise Refusal(403, f"only the page itself may ask for this; programs send the header {name}: {value}")
    origin = headers.get("origin")
    if origin is not None and origin != f"{scope.get('scheme', 'http')}://{headers.get('host', '')}":
        raise Refusal(403, "a page of another site asked for this; open this page itself")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "a page of another site asked for this; open this page itself")
