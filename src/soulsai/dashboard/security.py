"""Who may ask for what: the host, the token and the origin of a request, before anything else sees it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from soulsai.dashboard.answers import NO_STORE, error

LONGEST_BODY = 4 * 1024
MARK = ("x-souls", "page")
"""A header that pages of other sites cannot send."""
OPEN = ("/healthz",)
"""Health checks need no token; they reveal nothing."""
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

FORM = """<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>souls</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { display: grid; place-items: center; min-height: 90vh; margin: 0 1rem }
input, button { font: inherit; padding: 0.5rem 0.75rem }
input { width: min(24rem, 90vw); box-sizing: border-box }
</style>
<main>
<h1>souls</h1>
<p>This page needs its token. <code>souls dashboard</code> printed it when it started, after <code>?token=</code>.</p>
<form action="/" method="get">
<p><label>Token <input name="token" type="password" autocomplete="current-password" required autofocus></label>
<button>Open</button></p>
<p role="alert">HINT</p>
</form>
</main>
</html>
"""


@dataclass(frozen=True)
class AccessCheck:
    """What a request needs: a token, a local host name, or both."""

    loopback: bool
    token: str = ""
    open: tuple[str, ...] = ()  # paths that everybody may ask for

    @property
    def cookie(self) -> str:
        """The name of the cookie: servers on other ports of this machine see it too, and have their own."""
        return f"souls_{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    @property
    def pass_word(self) -> str:
        """The content of the cookie, derived from the token."""
        return hmac.new(self.token.encode(), b"souls dashboard cookie", hashlib.sha256).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Middleware that refuses requests without access, and adds security headers to all responses."""

    def __init__(self, app: ASGIApp, access: AccessCheck) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        answer = next(self._refusals(scope, headers), None) or self._check_token(scope, headers)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusals(self, scope: Scope, headers: Headers) -> Iterator[Response]:
        # A page of another site can have its name lead here; it cannot have the browser say another name.
        if self._access.loopback and not _is_local_name(headers.getlist("host")):
            yield error(403, "this page is for this machine only: open it as http://127.0.0.1 with its port")
        if scope["method"] == "POST":
            (name, value), own = MARK, f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"
            site = headers.get("sec-fetch-site", "none")
            if headers.get(name) != value:
                yield error(403, f"only the page itself may ask for this; programs send the header {name}: {value}")
            if headers.get("origin", own) != own or site not in ("same-origin", "none"):
                yield error(403, "a page of another site asked for this; open this page itself")

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        access, is_get = self._access, scope["method"] == "GET"
        if not access.token or scope["path"] in (*OPEN, *(access.open if is_get else ())):
            return None
        kind, _, told = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(told.strip(), access.token):
            return None
        if same(cookie_parser(headers.get("cookie", "")).get(access.cookie, ""), access.pass_word):
            return self._strip_token(scope) if is_get else None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if is_get and same(query.get("token", ""), access.token):
            return self._strip_token(scope)
        if is_get and scope["path"] == "/" and "text/html" in headers.get("accept", ""):
            return _token_form(is_wrong="token" in query)
        how = "open the page with the whole address that was printed at its start, ?token=... included"
        return error(401, f"this page needs its token: {how}", {"www-authenticate": 'Bearer realm="souls"'})

    def _strip_token(self, scope: Scope) -> Response | None:
        """Redirect to the same address without the token, which keeps it out of the browser's history."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        kept = [(name, value) for name, value in pairs if name != "token"]
        if len(kept) == len(pairs):
            return None
        # One slash: two would be the address of another server.
        place = "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(kept)}" if kept else "")
        answer = RedirectResponse(place, 303, NO_STORE)
        secure = scope.get("scheme") == "https"
        answer.set_cookie(self._access.cookie, self._access.pass_word, httponly=True, samesite="strict", secure=secure)
        return answer


def _token_form(*, is_wrong: bool) -> Response:
    """A page with a field for the token; submitting it leads to `_strip_token`."""
    hint = "That is not the token of this page." if is_wrong else ""
    policy = HEADERS["content-security-policy"].replace("form-action 'none'", "form-action 'self'")
    return HTMLResponse(FORM.replace("HINT", hint), 401, NO_STORE | {"content-security-policy": policy})


def same(told: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    return bool(expected) and hmac.compare_digest(told.encode("utf-8", "replace"), expected.encode())


def _is_local_name(told: Sequence[str]) -> bool:
    try:
        return len(told) == 1 and is_loopback(urlsplit(f"//{told[0]}").hostname or "")
    except ValueError:
        return False
