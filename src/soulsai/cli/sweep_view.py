"""What `souls sweep` shows: a table that is drawn again, or lines; and the results at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from soulsai.cli.screen import clock_text, duration_text
from soulsai.config.toml import toml_value

if TYPE_CHECKING:
    from soulsai.sweeps.results import Results, TrialResult
    from soulsai.sweeps.study import SweepStudy
    from soulsai.sweeps.sweep import Running, View

PLAIN_EVERY_S = 30.0
LOOK_EVERY_S = 2.0
NEWS = 8
ROWS = 12
"""Trials in the table at the end; the report has all."""


@contextmanager
def make_view(study: SweepStudy, trials: int, *, plain: bool) -> Iterator[View]:
    """A view of a sweep, for as long as it lasts."""
    if plain:
        yield PlainView(study, trials)
        return
    screen = Screen(study, trials)
    with Live(console=screen.console, refresh_per_second=4) as live:
        screen.live = live
        yield screen


class PlainView:
    """One line now and then."""

    def __init__(self, study: SweepStudy, trials: int) -> None:
        self._console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._study, self._trials = study, trials
        self._shown_s = time.monotonic()

    def say(self, text: str) -> None:
        """One line of news."""
        self._console.print(f"{clock_text()}  {text}")

    def show(self, running: Sequence[Running]) -> None:
        """A line, at most every half a minute."""
        if time.monotonic() - self._shown_s < PLAIN_EVERY_S or not running:
            return
        self._shown_s = time.monotonic()
        parts = [
            f"trial {one.number} {one.step / one.steps:.0%} {_score(one, self._study)}".rstrip() for one in running
        ]
        self.say(f"{_tally(self._study, self._trials)} | {' | '.join(parts)}")


class Screen:
    """A panel that is drawn again in place."""

    def __init__(self, study: SweepStudy, trials: int) -> None:
        self.console = Console()
        self.live: Live | None = None
        self._study, self._trials = study, trials
        self._news: list[str] = []
        self._running: Sequence[Running] = ()
        self._tally, self._tally_s = "", -LOOK_EVERY_S

    def say(self, text: str) -> None:
        """One line of news, below the table."""
        self._news = [*self._news, f"{clock_text()}  {text}"][-NEWS:]
        self._draw()

    def show(self, running: Sequence[Running]) -> None:
        """New figures."""
        self._running = list(running)
        if time.monotonic() - self._tally_s > LOOK_EVERY_S:
            self._tally, self._tally_s = _tally(self._study, self._trials), time.monotonic()
        self._draw()

    def _draw(self) -> None:
        if self.live is not None:
            self.live.update(self._picture())

    def _picture(self) -> Panel:
        table = Table("trial", "done", "score", "time", "settings", box=box.SIMPLE_HEAD, pad_edge=False)
        for one in self._running:
            settings = ", ".join(f"{key.rpartition('.')[2]} {toml_value(value)}" for key, value in one.settings.items())
            spent = duration_text(time.monotonic() - one.begun_s)
            table.add_row(str(one.number), _done(one), _score(one, self._study), spent, Text(settings))
        parts = Group(Text(self._tally, style="bold"), table, Text("\n".join(self._news), style="dim"))
        title = Text(f"souls sweep: {self._study.about.name}")
        return Panel(parts, title=title, border_style="dark_orange3")


def _done(one: Running) -> str:
    return f"{min(1.0, one.step / one.steps):.0%}"


def _score(one: Running, study: SweepStudy) -> str:
    from soulsai.sweeps.sweep import figure

    return "" if one.score is None else figure(one.score, study.about.metric)


def _tally(study: SweepStudy, trials: int) -> str:
    from soulsai.sweeps.results import PRUNED, results_of
    from soulsai.sweeps.sweep import figure

    found = results_of(study.study, study.about, study.folder, quick=True)
    over = sum(each.state not in ("running", "waiting") for each in found.trials)
    best = f", best {figure(found.ranked[0].value or 0.0, study.about.metric)}" if found.ranked else ""
    return f"{over} of {trials} trials over, {found.count(PRUNED)} of them pruned{best}"


def print_results(results: Results, console: Console | None = None) -> None:
    """The best trials in a table, and what they are worth."""
    from soulsai.sweeps.report import against_preset, figure, interval, verdict

    out = console or Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Trials, best first", title_justify="left")
    table.add_column("trial", justify="right")
    for column in ("search", "fresh", "interval"):
        table.add_column(column, justify="right")
    table.add_column("settings")
    for each in results.ranked[:ROWS]:
        again = each.confirmed
        table.add_row(
            str(each.number),
            figure(each.value, results),
            figure(again.value, results) if again else "-",
            interval(again.low, again.high, results) if again else "-",
            Text(_settings(each)),
        )
    if results.ranked:
        out.print(table)
    out.print(Text(verdict(results), style="bold"), soft_wrap=True)
    if said := against_preset(results):
        out.print(Text(said), soft_wrap=True)
    if results.best is not None:
        out.print(Text(f"train it again: {results.command(results.best)}"), soft_wrap=True)


def _settings(trial: TrialResult) -> str:
    values: dict[str, Any] = dict(trial.settings)
    words = ", ".join(f"{key.rpartition('.')[2]} {toml_value(value)}" for key, value in values.items())
    return f"(preset) {words}" if trial.is_preset else words
