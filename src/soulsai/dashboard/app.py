"""The web application: the routes of the page and its API."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from soulsai.dashboard.answers import NO_STORE, answer, error
from soulsai.dashboard.board import Board
from soulsai.dashboard.evaluations import evaluation_of, evaluations_of
from soulsai.dashboard.events import EventResponse, Streams
from soulsai.dashboard.fleet import Fleets
from soulsai.dashboard.library import Library, RunDetails
from soulsai.dashboard.security import LONGEST_BODY, AccessCheck, Guard
from soulsai.errors import RunError
from soulsai.runs.metric_queries import AXES
from soulsgym.errors import MissingPackage, MisuseError, SoulsError
from soulsgym.packages import install_command

STATIC = Path(__file__).parent / "static"
POINTS = 800
MOST_POINTS = 5000
MOST_NAMES = 64
BODY_S = 10.0
"""How long the body of a request may take."""
NO_CACHE = {"cache-control": "no-cache"}
"""Browsers may cache it, but must revalidate each time."""


def build(library: Library, access: AccessCheck, streams: Streams | None = None, board: str = "") -> Starlette:
    """Build the application; pass `streams` to be able to end them; `board` is the run that everybody may see."""
    pages = Pages(library, streams or Streams(library), board)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        pages.streams.close()

    app = Starlette(
        routes=pages.routes(),
        exception_handlers={HTTPException: _http_error, SoulsError: _souls_error, Exception: _own_error},
        lifespan=lifespan,
    )
    app.add_middleware(Guard, access=access)
    return app


class Pages:
    """One method per route; Starlette calls those that are not async in threads."""

    def __init__(self, library: Library, streams: Streams, board: str = "") -> None:
        self.library, self.streams = library, streams
        self._fleets = Fleets()
        self._board = Board(library, self._fleets, board) if board else None

    def routes(self) -> list[Route | Mount]:
        """All routes."""
        of_run: dict[str, Callable[[Request, RunDetails], Response]] = {
            "": lambda request, details: answer(details.details()),
            "/series": self.series,
            "/series.csv": self.series_csv,
            "/fleet": lambda request, details: answer(self._fleets.look(details)),
            "/evaluations": lambda request, details: answer(evaluations_of(details)),
            "/evaluations/{name}": self.evaluation,
            "/fights": self.fights,
            "/fights/{name}": self.fight,
            "/fights/{name}/share": self.share,
            "/fights/{name}/video": self.video,
        }
        return [
            Route("/", self.index),
            Route("/healthz", self.healthz),
            Route("/metrics", self.metrics),
            Route("/api/runs", self.runs),
            Route("/api/events", self.events),
            *(Route(f"/api/runs/{{id}}{part}", self._handler(method)) for part, method in of_run.items()),
            Route("/api/runs/{id}/control", self.control, methods=["POST"]),
            *(self._board.routes() if self._board else ()),
            Mount("/static", Files(directory=STATIC, check_dir=False)),
        ]

    def _handler(self, method: Callable[[Request, RunDetails], Response]) -> Callable[[Request], Response]:
        return lambda request: method(request, self._details(request))

    def _details(self, request: Request) -> RunDetails:
        id = request.path_params["id"]
        details = self.library.find(id)
        if details is None:
            raise HTTPException(404, f"there is no run {id[:100]!r} in {self.library.root}; it may have been moved")
        return details

    def index(self, request: Request) -> Response:
        """The page."""
        return FileResponse(STATIC / "index.html", headers=NO_CACHE)

    async def healthz(self, request: Request) -> Response:
        """Health check."""
        return PlainTextResponse("ok", headers=NO_STORE)

    def metrics(self, request: Request) -> Response:
        """All runs for Prometheus."""
        try:
            from soulsai.telemetry.prometheus import CONTENT_TYPE, RunReading, exposition, last_values
        except ModuleNotFoundError:
            return error(501, f"metrics for Prometheus need: {install_command('dashboard')}")
        readings = []
        for entry in self.library.entries():
            details = self.library.find(entry["id"])
            if details is None:
                continue
            fleet = self._fleets.look(details) if entry["served"] else {}
            ends = {"win_rate": "", "win_rate_low": "_low", "win_rate_high": "_high"}  # of an evaluation, perhaps old
            judged = {f"win_rate/evaluation{end}": entry[key] for key, end in ends.items() if entry[key] is not None}
            readings.append(
                RunReading(
                    run=entry["id"],
                    state=entry["state"],
                    step=entry["step"],
                    steps=entry["steps"],
                    values=judged | last_values(details.metrics.latest()),
                    updated_s=details.metrics.extent().updated_s,
                    fleet=fleet if fleet.get("now") else None,
                )
            )
        return Response(exposition(readings), headers=NO_STORE | {"content-type": CONTENT_TYPE})

    def runs(self, request: Request) -> Response:
        """All runs."""
        return answer(self.library.summary())

    def series(self, request: Request, details: RunDetails) -> Response:
        """Curves."""
        axis, points = _axis(request), _points(request)
        return answer({"x": axis} | details.metrics.series(_names(request), axis, *_ends(request), points))

    def series_csv(self, request: Request, details: RunDetails) -> Response:
        """Every row, as a download."""
        axis, wanted = _axis(request), _names(request)
        there = details.metrics.names()
        names = [name for name in wanted if name in there] if wanted else there
        parts = details.metrics.csv(names, axis, *_ends(request))
        return StreamingResponse(parts, headers=NO_STORE | _download(f"{details.id}.csv"), media_type="text/csv")

    def evaluation(self, request: Request, details: RunDetails) -> Response:
        """One evaluation."""
        name = request.path_params["name"]
        found = evaluation_of(details, name)
        return answer(found) if found is not None else error(404, f"{details.id}: has no evaluation {name[:100]!r}")

    def fights(self, request: Request, details: RunDetails) -> Response:
        """All recorded fights."""
        from soulsai.dashboard.scenes import fights_of

        return answer([fight for fight, _ in fights_of(details.recordings()).values()])

    def fight(self, request: Request, details: RunDetails) -> Response:
        """One fight, for the viewer."""
        return answer(_scene(details, request.path_params["name"]))

    def share(self, request: Request, details: RunDetails) -> Response:
        """One fight as a file that plays anywhere."""
        from soulsai.dashboard.scenes import shared_page

        name = request.path_params["name"]
        page = shared_page(_scene(details, name), f"{details.id}: {name}")
        return Response(page, headers=NO_STORE | _download(f"{details.id}-{name}.html"), media_type="text/html")

    def video(self, request: Request, details: RunDetails) -> Response:
        """One fight as an .mp4 or .gif."""
        from soulsai.dashboard.scenes import VIDEOS, video_of

        name, kind = request.path_params["name"], request.query_params.get("as", "mp4")
        if f".{kind}" not in VIDEOS:
            raise MisuseError(f"as = {kind[:20]!r} is none of {', '.join(each[1:] for each in VIDEOS)}")
        fight, file = _fight(details, name)
        try:
            content = video_of(file, fight["number"], f".{kind}")
        except MissingPackage as problem:
            return error(501, str(problem))
        media = {"mp4": "video/mp4", "gif": "image/gif"}[kind]
        return Response(content, headers=NO_STORE | _download(f"{details.id}-{name}.{kind}"), media_type=media)

    async def control(self, request: Request) -> Response:
        """Save, pause, unpause, stop."""
        details = await run_in_threadpool(self._details, request)
        try:
            action = msgspec.json.decode(await _body(request), type=dict[str, str])["action"]
        except (msgspec.MsgspecError, KeyError, ValueError) as problem:
            raise MisuseError('the request is not JSON of the form {"action": "save"}') from problem
        try:
            return answer({"asked": await run_in_threadpool(details.ask, action)}, 202)
        except RunError as problem:
            return error(409, str(problem))

    async def events(self, request: Request) -> Response:
        """Events as a stream; with `once` the current state as JSON."""
        run = request.query_params.get("run")
        if "once" in request.query_params:
            return answer(await run_in_threadpool(self.streams.news, run))
        if self.streams.is_full:
            return error(503, "too many pages are open here; close some of them", {"retry-after": "10"})
        return EventResponse(self.streams, run)


class Files(StaticFiles):
    """The files of the page."""

    def file_response(self, *arguments: Any, **words: Any) -> Response:
        """A file that browsers must revalidate."""
        response = super().file_response(*arguments, **words)
        response.headers["cache-control"] = NO_CACHE["cache-control"]
        return response

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or an error in the format of all errors."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as problem:
            return error(problem.status_code, f"there is no file {path[:100]!r} here")


def _download(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{re.sub(r"[^A-Za-z0-9._~-]", "_", name)}"'}


def _fight(details: RunDetails, name: str) -> tuple[dict[str, Any], Path]:
    from soulsai.dashboard.scenes import fights_of

    found = fights_of(details.recordings()).get(name)
    if found is None:
        raise HTTPException(404, f"{details.id}: has no recorded fight {name[:100]!r}; older ones are removed")
    return found


def _scene(details: RunDetails, name: str) -> dict[str, Any]:
    from soulsai.dashboard.scenes import scene_of

    fight, file = _fight(details, name)
    return scene_of(file, fight["number"])


def _axis(request: Request) -> str:
    axis = request.query_params.get("x", "step")
    if axis not in AXES:
        raise MisuseError(f"x = {axis[:40]!r} is none of {', '.join(AXES)}")
    return axis


def _names(request: Request) -> list[str]:
    names = [name for name in request.query_params.get("names", "").split(",") if name]
    if len(names) > MOST_NAMES:
        raise MisuseError(f"{len(names)} metrics are too many at once; ask for at most {MOST_NAMES}")
    return list(dict.fromkeys(names))


def _points(request: Request) -> int:
    text = request.query_params.get("points") or str(POINTS)
    if not text.isdecimal() or not 2 <= int(text[:9]) <= MOST_POINTS:
        raise MisuseError(f"points = {text[:20]!r} is not within 2 and {MOST_POINTS:,}")
    return int(text)


def _ends(request: Request) -> tuple[float, float]:
    """The range on an axis that was asked for."""
    places = []
    for name, otherwise in (("from", -math.inf), ("to", math.inf)):
        text = request.query_params.get(name) or str(otherwise)
        try:
            places.append(float(text))
        except ValueError:
            places.append(math.nan)
        if math.isnan(places[-1]):
            raise MisuseError(f"{text[:40]!r} is not a number")
    return places[0], places[1]


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST_BODY:
                    raise HTTPException(413, f"a request may have {LONGEST_BODY:,} bytes at most")
    except ClientDisconnect as problem:
        raise HTTPException(400, "the request ended too early") from problem
    except TimeoutError as problem:
        raise HTTPException(408, f"the request was not complete after {BODY_S:.0f} s; send it again") from problem
    return body


def _http_error(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    words = {404: "there is nothing at this address", 405: "this address does not support this method"}
    detail = str(getattr(problem, "detail", ""))
    told = words.get(status, detail) if detail in ("Not Found", "Method Not Allowed") else detail
    return error(status, told, dict(getattr(problem, "headers", None) or {}))


def _souls_error(request: Request, problem: Exception) -> Response:
    return error(400 if isinstance(problem, MisuseError) else 422, str(problem))


def _own_error(request: Request, problem: Exception) -> Response:
    """A bug: its traceback goes to the server's log, not to the browser."""
    return error(500, f"internal error ({type(problem).__name__}); the server's terminal shows where")
