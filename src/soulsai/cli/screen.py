"""The live screen of a training run, and its plain form for files and pipes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from soulsai.evaluation.statistics import wilson

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.learning.training import Progress

PLAIN_EVERY_S = 5.0
BORDER = "dark_orange3"
LOSSES = ("loss/policy", "loss/value", "loss/q", "policy/entropy", "policy/kl", "q/mean", "epsilon", "gradient/norm")


class Lines:
    """Lines of text with the time of day, for as long as a `with` block lasts."""

    def __init__(self) -> None:
        self._console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, text: str) -> None:
        """One line of news."""
        self._console.print(f"{clock_text()}  {text}")


class LivePanel:
    """A panel that is drawn again in place while a `with` block lasts; news goes by above it."""

    def __init__(self) -> None:
        self._live = Live(console=Console(highlight=False), refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """One line of news."""
        self._live.console.print(Text(f"{clock_text()}  {text}", style="dim"))

    def picture(self) -> Panel:
        """The panel as it stands."""
        raise NotImplementedError

    def _draw(self) -> None:
        self._live.update(self.picture())


class PlainView(Lines):
    """One line now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._shown_s = 0.0

    def show(self, progress: Progress) -> None:
        """A line, at most every few seconds."""
        if time.monotonic() - self._shown_s < PLAIN_EVERY_S and progress.step < progress.steps:
            return
        self._shown_s = time.monotonic()
        parts = [
            f"{progress.step:>12,} steps ({min(1.0, progress.step / progress.steps):4.0%})",
            f"{progress.metrics.get('steps_per_s', 0.0):>9,.0f}/s",
            *(f"{label} {value}" for label, value in (*score_lines(progress), *fleet_lines(progress))),
            f"left {duration_text(progress.left_s)}",
        ]
        self.say(" | ".join(parts))


class Screen(LivePanel):
    """How a training goes."""

    def __init__(self, name: str, config: Config) -> None:
        super().__init__()
        self._name = name
        self._progress: Progress | None = None
        self._bar = Bar(TextColumn("{task.fields[steps]}"), BarColumn(bar_width=None), TaskProgressColumn())
        self._task = self._bar.add_task("", total=config.run.steps, steps=f"0 of {config.run.steps:,} steps")

    def show(self, progress: Progress) -> None:
        """New figures."""
        self._progress = progress
        steps = f"{progress.step:,} of {progress.steps:,} steps"
        self._bar.update(self._task, completed=min(progress.step, progress.steps), steps=steps)
        self._draw()

    def picture(self) -> Panel:
        """The panel as it stands."""
        figures = self._figures(self._progress) if self._progress else Text()
        return Panel(Group(self._bar, figures), title=Text(f"souls: {self._name}"), border_style=BORDER)

    def _figures(self, progress: Progress) -> Table:
        left, right = Table.grid(padding=(0, 2)), Table.grid(padding=(0, 2))
        for label, value in (*score_lines(progress), *_time_lines(progress), *fleet_lines(progress)):
            left.add_row(Text(label, style="bold"), value)
        for label, value in _learning_lines(progress):
            right.add_row(Text(label, style="bold"), value)
        both = Table.grid(padding=(0, 4), expand=True)
        both.add_row(left, right)
        return both


def score_lines(progress: Progress) -> list[tuple[str, str]]:
    """How good it is: wins while exploring, wins in evaluation, return."""
    lines = []
    wins, fights = progress.recent_wins
    if fights:
        rate = rate_text(wins / fights, *wilson(wins, fights))
        lines.append(("win rate (training)", f"{rate} of the last {fights}"))
    score = progress.score
    if score is not None and score.is_win_rate:
        lines.append(("win rate (evaluation)", rate_text(score.value, score.low, score.high)))
    elif score is not None:
        lines.append(("return (evaluation)", f"{score.value:.1f}"))
    if "return/training" in progress.metrics:
        lines.append(("return", f"{progress.metrics['return/training']:.2f}"))
    return lines


def fleet_lines(progress: Progress) -> list[tuple[str, str]]:
    """Who plays, where that is not this process."""
    metrics = progress.metrics
    if "fleet/workers" not in metrics:
        return []
    dropped = sum(value for name, value in metrics.items() if name.startswith("fleet/dropped/"))
    lost = f", {dropped:,.0f} of {metrics.get('fleet/sent', 0.0):,.0f} rows dropped" if dropped else ""
    return [("workers", f"{metrics['fleet/workers']:.0f}{lost}")]


def _time_lines(progress: Progress) -> list[tuple[str, str]]:
    metrics = progress.metrics
    steps, updates = (metrics.get(name, 0.0) for name in ("steps_per_s", "updates_per_s"))
    lines = [
        ("speed", f"{steps:,.0f} steps/s, {updates:,.0f} updates/s"),
        ("time", f"{duration_text(progress.elapsed_s)}, {duration_text(progress.left_s)} left"),
    ]
    if "game_hours" in metrics:
        lines.insert(1, ("simulated", f"{metrics['game_hours']:,.1f} h of game time"))
    return lines


def _learning_lines(progress: Progress) -> list[tuple[str, str]]:
    lines = [(name, f"{progress.metrics[name]:.4g}") for name in LOSSES if name in progress.metrics]
    shares = {name: value for name, value in progress.metrics.items() if name.startswith("time/") and value >= 0.005}
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [*lines, ("time spent", ", ".join(f"{name[5:]} {value:.0%}" for name, value in ordered))]


def rate_text(rate: float, low: float, high: float) -> str:
    """A rate with its interval."""
    return f"{rate:.1%} ({low:.1%} to {high:.1%})"


def duration_text(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def clock_text() -> str:
    """The time of day, for news."""
    return time.strftime("%H:%M:%S")
