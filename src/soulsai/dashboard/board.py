"""The public board: a page about one run that may be shown to everybody, without the token of the rest.

It tells who gave how much as the learner has counted it, since when, how often the agent wins, and shows the newest
fight. It tells nothing of machines, settings or files, and nothing can be asked for by it.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Mapping
from string import Template
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soulsai.dashboard.fleet import Fleets
from soulsai.dashboard.library import Library, RunDetails

PATHS = ("/board", "/board/fight")
FRESH_S = 10.0
"""However many look, the page is made again after so long."""
METRICS = ("win_rate/evaluation", "win_rate/training")
"""How often it wins: the first that there is."""
POINTS, WIDTH, HEIGHT, LEFT = 200, 590, 160, 46
MOST_NAMES = 200
LOOK_AT = 5
"""Recordings."""
CACHE = {"cache-control": f"public, max-age={FRESH_S:.0f}"}
ALONE = {
    # A page of its own: its script plays the fight and can reach nothing of this server.
    "content-security-policy": "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
}
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="60"><link rel="icon" href="data:,"><title>$title</title><style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: .2rem .6rem; }
th:first-child, td:first-child { text-align: left; } tr { border-bottom: 1px solid #8884; }
svg { width: 100%; height: auto; } iframe { width: 100%; height: 32rem; border: 1px solid #8884; }
</style></head><body><h1>$title</h1><p>$state</p>
<h2>Win rate</h2>$curve
<h2>Who plays</h2>$names
<h2>The newest fight</h2>$fight
</body></html>
""")


class Board:
    """The board of one run."""

    def __init__(self, library: Library, fleets: Fleets, run: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._library, self._fleets, self._run, self._clock = library, fleets, run, clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Response]] = {}

    def routes(self) -> list[Route]:
        """Its addresses."""
        return [Route(path, self.page if path == PATHS[0] else self.fight) for path in PATHS]

    def page(self, request: Request) -> Response:
        """The board."""
        return self._keep("page", lambda details: Response(self._text(details), headers=CACHE, media_type="text/html"))

    def fight(self, request: Request) -> Response:
        """The newest fight, to be played."""
        return self._keep("fight", _newest_fight)

    def _keep(self, what: str, make: Callable[[RunDetails], Response]) -> Response:
        with self._lock:
            until_s, kept = self._kept.get(what, (0.0, None))
            if kept is None or self._clock() >= until_s:
                details = self._library.find(self._run)
                if details is None:
                    raise HTTPException(404, "there is no such run any more")
                kept = make(details)
                self._kept[what] = self._clock() + FRESH_S, kept
            return kept

    def _text(self, details: RunDetails) -> str:
        entry = details.entry()
        share = f" of {entry['steps']:,}" if entry["steps"] else ""
        report = self._fleets.look(details)
        return PAGE.substitute(
            title=html.escape(details.id),
            state=html.escape(f"{entry['state']}, {entry['step']:,}{share} steps"),
            curve=_curve(details),
            names=_names(report),
            fight='<iframe src="board/fight" title="the newest fight"></iframe>'
            if entry["fights"]
            else "<p>none yet</p>",
        )


def _newest_fight(details: RunDetails) -> Response:
    from soulsai.dashboard.scenes import fights_of, scene_of, shared_page

    for fight, file in fights_of(
        details.recordings()[:LOOK_AT]
    ).values():  # the newest first; damaged ones are left out
        return Response(shared_page(scene_of(file, fight["number"])), headers=CACHE | ALONE, media_type="text/html")
    raise HTTPException(404, "no fight is recorded yet")


def _names(report: Mapping[str, Any]) -> str:
    """What the learner has stored of each name, the largest share first."""
    names, since = report.get("names") or {}, report.get("since") or {}
    rows = "".join(
        f"<tr><td>{html.escape(str(name))}</td><td>{_day(since.get(name))}</td><td>{total['stored']:,}</td>"
        f"<td>{total['share']:.1%}</td></tr>"
        for name, total in sorted(names.items(), key=lambda item: -item[1]["stored"])[:MOST_NAMES]
    )
    if not rows:
        return "<p>nobody yet</p>"
    return f"<table><tr><th>name</th><th>since</th><th>decisions given</th><th>share</th></tr>{rows}</table>"


def _day(time_s: float | None) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time_s)) if time_s else "-"


def _curve(details: RunDetails) -> str:
    """The win rate by step as a picture."""
    name = next((name for name in METRICS if name in details.metrics.names()), "")
    found = details.metrics.series([name], "step", 0.0, float("inf"), POINTS)["series"][name] if name else {}
    pairs = [(x, y) for x, y in zip(found.get("x", ()), found.get("y", ()), strict=True) if y is not None]
    if not pairs:
        return "<p>not measured yet</p>"
    last = max(pairs[-1][0], 1)
    points = " ".join(f"{WIDTH * x / last:.1f},{HEIGHT * (1.0 - y):.1f}" for x, y in pairs)
    words = f"{pairs[-1][1]:.1%} after {pairs[-1][0]:,.0f} steps"
    rates = "".join(
        f'<path d="M0 {y}h{WIDTH}" stroke="#8884"/><text x="-6" y="{y + 4}" text-anchor="end">{rate}</text>'
        for rate, y in (("0%", HEIGHT), ("50%", HEIGHT // 2), ("100%", 0))
    )
    below = HEIGHT + 18
    ends = f'<text y="{below}">0</text><text x="{WIDTH}" y="{below}" text-anchor="end">{last:,.0f} steps</text>'
    return (
        f'<svg viewBox="{-LEFT} -8 {LEFT + WIDTH + 4} {HEIGHT + 30}" role="img" aria-label="{words}" font-size="12" '
        f'fill="currentColor">{rates}{ends}<polyline points="{points}" fill="none" stroke="#2a78d6" stroke-width="2"/>'
        f"</svg><p>{words}</p>"
    )
