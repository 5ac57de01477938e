"""The web application: which address answers with what."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable
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

from soulsai.dashboard import board as asking
from soulsai.dashboard.answers import NO_STORE, answer, encoded, error
from soulsai.dashboard.board import Board, place
from soulsai.dashboard.events import EventResponse, Streams
from soulsai.dashboard.fights import fights_of, find
from soulsai.dashboard.library import Dossier
from soulsai.dashboard.security import LONGEST_BODY, Door, Guard
from soulsai.dashboard.table import AXES
from soulsai.dashboard.table_file import csv_rows
from soulsai.errors import RunError
from soulsgym.errors import MisuseError, SoulsError
from soulsgym.packages import install_command

STATIC = Path(__file__).parent / "static"
POINTS = 800
MOST_POINTS = 5000
MOST_NAMES = 64
NO_CACHE = {"cache-control": "no-cache"}
"""Kept by browsers, but asked for again each time, which costs one short answer."""

Handler = Callable[[Request], Awaitable[Response]]


def build(board: Board, door: Door, streams: Streams | None = None) -> Starlette:
    """The application; `streams` is for whoever wants to end them."""
    pages = Pages(board, streams or Streams(board))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        pages.streams.close()
        board.close()

    app = Starlette(
        routes=pages.routes(),
        exception_handlers={HTTPException: _http_error, SoulsError: _souls_error, Exception: _own_error},
        lifespan=lifespan,
    )
    app.add_middleware(Guard, door=door)
    return app


class Pages:
    """One method for each address."""

    def __init__(self, board: Board, streams: Streams) -> None:
        self.board = board
        self.streams = streams

    def routes(self) -> list[Route | Mount]:
        """All addresses."""
        one = "/api/runs/{id}"
        return [
            Route("/", self.index),
            Route("/healthz", self.healthz),
            Route("/metrics", self.metrics),
            Route("/api/runs", self.runs),
            Route("/api/events", self.events),
            Route(one, self._of_run(self.run)),
            Route(f"{one}/series", self._of_run(self.series)),
            Route(f"{one}/series.csv", self._of_run(self.series_csv)),
            Route(f"{one}/fleet", self._of_run(self.fleet)),
            Route(f"{one}/evaluations", self._of_run(self.evaluations)),
            Route(f"{one}/evaluations/{{name}}", self._of_run(self.evaluation)),
            Route(f"{one}/fights", self._of_run(self.fights)),
            Route(f"{one}/fights/{{name}}", self._of_run(self.fight)),
            Route(f"{one}/fights/{{name}}/share", self._of_run(self.share)),
            Route(f"{one}/control", self._of_run(self.control), methods=["POST"]),
            Mount("/static", Files(directory=STATIC, check_dir=False)),
        ]

    def _of_run(self, handler: Callable[[Request, Dossier], Awaitable[Response]]) -> Handler:
        async def found(request: Request) -> Response:
            id = request.path_params["id"]
            dossier = await run_in_threadpool(self.board.library.find, id)
            if dossier is None:
                return error(404, f"there is no run {id[:100]!r} in {self.board.library.root}; it may have been moved")
            return await handler(request, dossier)

        return found

    async def index(self, request: Request) -> Response:
        """The page."""
        return FileResponse(STATIC / "index.html", headers=NO_CACHE)

    async def healthz(self, request: Request) -> Response:
        """Whether the server lives."""
        return PlainTextResponse("ok", headers=NO_STORE)

    async def metrics(self, request: Request) -> Response:
        """All runs for Prometheus."""
        try:
            from soulsai.telemetry.prometheus import CONTENT_TYPE, exposition
        except ModuleNotFoundError:
            return error(501, f"metrics for Prometheus need: {install_command('dashboard')}")
        text = await run_in_threadpool(lambda: exposition(list(self.board.readings())))
        return Response(text, headers=NO_STORE | {"content-type": CONTENT_TYPE})

    async def runs(self, request: Request) -> Response:
        """All runs."""
        return answer(await run_in_threadpool(self.board.runs))

    async def run(self, request: Request, dossier: Dossier) -> Response:
        """One run."""
        return answer(await run_in_threadpool(self.board.run, dossier))

    async def series(self, request: Request, dossier: Dossier) -> Response:
        """Curves."""
        asked, axis = request.query_params, _axis(request)
        names, points = _names(request), _points(asked.get("points", ""))
        low, high = place(asked.get("from", ""), -math.inf), place(asked.get("to", ""), math.inf)

        def curves() -> bytes:
            found = self.board.series(dossier, names, axis, low, high, points)
            about = {"rows": found.rows, "complete": found.complete, "x": axis, "series": found.series}
            return encoded(about)

        return Response(await run_in_threadpool(curves), headers=NO_STORE, media_type="application/json")

    async def series_csv(self, request: Request, dossier: Dossier) -> Response:
        """Every row, as a download."""
        asked, axis, wanted = request.query_params, _axis(request), _names(request)
        low, high = place(asked.get("from", ""), -math.inf), place(asked.get("to", ""), math.inf)
        there = await run_in_threadpool(self.board.names, dossier)
        names = [name for name in wanted if name in there] if wanted else there
        parts = csv_rows(dossier.metrics_file, names, axis, low, high)
        return StreamingResponse(parts, headers=NO_STORE | _download(f"{dossier.id}.csv"), media_type="text/csv")

    async def fleet(self, request: Request, dossier: Dossier) -> Response:
        """Workers and the accounting."""
        return answer(await run_in_threadpool(self.board.fleet, dossier))

    async def evaluations(self, request: Request, dossier: Dossier) -> Response:
        """All evaluations."""
        return answer(await run_in_threadpool(self.board.evaluations, dossier))

    async def evaluation(self, request: Request, dossier: Dossier) -> Response:
        """One evaluation."""
        name = request.path_params["name"]
        found = await run_in_threadpool(self.board.evaluation, dossier, name)
        return answer(found) if found is not None else error(404, f"{dossier.id}: has no evaluation {name[:100]!r}")

    async def fights(self, request: Request, dossier: Dossier) -> Response:
        """All recorded fights."""
        return answer(await run_in_threadpool(fights_of, dossier))

    async def fight(self, request: Request, dossier: Dossier) -> Response:
        """One fight, to be played."""
        scene = await run_in_threadpool(_scene, dossier, request.path_params["name"])
        return answer(scene)

    async def share(self, request: Request, dossier: Dossier) -> Response:
        """One fight as a file that plays anywhere."""
        name = request.path_params["name"]

        def page() -> str:
            from soulsai.dashboard.scenes import shared_page

            return shared_page(_scene(dossier, name), f"{dossier.id}: {name}")

        headers = NO_STORE | _download(f"{dossier.id}-{name}.html")
        return Response(await run_in_threadpool(page), headers=headers, media_type="text/html")

    async def control(self, request: Request, dossier: Dossier) -> Response:
        """Save, pause, resume, stop."""
        try:
            action = msgspec.json.decode(await _body(request), type=dict[str, str])["action"]
        except (msgspec.MsgspecError, KeyError, ValueError) as problem:
            raise MisuseError('the request is no JSON of the form {"action": "save"}') from problem
        try:
            asked = await run_in_threadpool(asking.ask, dossier, action)
        except RunError as problem:
            return error(409, str(problem))
        return answer({"asked": asked}, 202)

    async def events(self, request: Request) -> Response:
        """News."""
        if self.streams.is_full:
            return error(503, "too many pages are open here; close some of them", {"retry-after": "10"})
        return EventResponse(self.streams, request.query_params.get("run"))


class Files(StaticFiles):
    """The files of the page."""

    def file_response(self, *arguments: Any, **words: Any) -> Response:
        """A file, to be asked for again each time."""
        response = super().file_response(*arguments, **words)
        response.headers["cache-control"] = NO_CACHE["cache-control"]
        return response

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file; what is missing is told as elsewhere."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as problem:
            return error(problem.status_code, f"there is no file {path[:100]!r} here")


def _download(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{re.sub(r"[^A-Za-z0-9._~-]", "_", name)}"'}


def _scene(dossier: Dossier, name: str) -> dict[str, Any]:
    from soulsai.dashboard.scenes import scene_of

    found = find(dossier, name)
    if found is None:
        raise HTTPException(404, f"{dossier.id}: has no recorded fight {name[:100]!r}; older ones are removed")
    fight, file = found
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


def _points(text: str) -> int:
    if not text:
        return POINTS
    if not text.isdecimal() or not 2 <= int(text[:9]) <= MOST_POINTS:
        raise MisuseError(f"points = {text[:20]!r} is not within 2 and {MOST_POINTS:,}")
    return int(text)


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > LONGEST_BODY:
                raise HTTPException(413, f"a request may have {LONGEST_BODY:,} bytes at most")
    except ClientDisconnect as problem:
        raise HTTPException(400, "the request ended too early") from problem
    return body


def _http_error(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    words = {404: "there is nothing at this address", 405: "this address is not asked in this way"}
    detail = str(getattr(problem, "detail", ""))
    told = words.get(status, detail) if detail in ("Not Found", "Method Not Allowed") else detail
    return error(status, told, dict(getattr(problem, "headers", None) or {}))


def _souls_error(request: Request, problem: Exception) -> Response:
    return error(400 if isinstance(problem, MisuseError) else 422, str(problem))


def _own_error(request: Request, problem: Exception) -> Response:
    """A mistake of ours: its traceback goes to the server's log, not to the browser."""
    return error(500, f"the page has a mistake here ({type(problem).__name__}); its terminal shows where")
