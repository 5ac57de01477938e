"""Who looks at a training from outside: the live page, webhooks, Weights & Biases. None of them can disturb it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.runs.run import Run
    from soulsai.telemetry.sinks import Sink

Notify = Annotated[
    list[str] | None,
    typer.Option(
        "--notify",
        metavar="URL",
        envvar="SOULS_NOTIFY",
        help="A webhook to tell when the run is won, stalls, loses its workers or ends; may be repeated.",
    ),
]
Wandb = Annotated[
    str,
    typer.Option(
        "--wandb", metavar="PROJECT", envvar="SOULS_WANDB", help="Send the metrics to Weights & Biases as well."
    ),
]


@dataclass(frozen=True)
class Onlookers:
    """Who is to look."""

    page: bool = False
    urls: tuple[str, ...] = ()
    project: str = ""

    def check(self) -> None:
        """ConfigError for what cannot be, before anything is made."""
        if self.urls:
            from soulsai.telemetry.webhook import check_urls

            check_urls(self.urls)
        if self.project:
            from soulsgym.packages import require

            require("wandb")

    @contextmanager
    def looking(self, run: Run, config: Config, say: Callable[[str], None]) -> Iterator[list[Sink]]:
        """Let them look until the end of the block; the sinks that are to get the metrics for it."""
        with ExitStack() as held:
            if self.page:
                from soulsai.dashboard.child import dashboard_child

                held.enter_context(dashboard_child(run.folder, say))
            if self.urls:
                from soulsai.telemetry.watcher import notify_child

                held.enter_context(notify_child(run.folder, self.urls, say))
            sinks: list[Sink] = []
            if self.project:
                from soulsai.telemetry.wandb_sink import wandb_sink

                sinks.append(wandb_sink(self.project, run, config, say))
            yield sinks
