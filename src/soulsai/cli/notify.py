"""`souls notify`: messages about a run, by webhook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from soulsai.runs.run import Run

BEGIN_S = 10.0
"""How long the run may take to begin: both may be started by one line of a script."""


def notify(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    url: Annotated[
        list[str] | None,
        typer.Option(
            envvar="SOULS_NOTIFY",
            show_envvar=True,
            metavar="URL",
            help="Webhook of Slack, Discord, Mattermost or your own; may be repeated. It is a secret: better in the "
            "variable than here, where every user of this machine sees it.",
        ),
    ] = None,
    won_at: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Evaluated win rate at which it counts as won.")
    ] = 0.9,
    stall_s: Annotated[float, typer.Option(min=1.0, help="Seconds without a new step that are a stall.")] = 300.0,
    test: Annotated[bool, typer.Option("--test", help="Only send a message now, and say whether it arrived.")] = False,
) -> None:
    """Tell a webhook when a run is won, stalls, loses its workers, or ends; goes on until then.

    Example: souls notify runs/mine --url https://hooks.example.org/secret
    """
    from soulsai.errors import ConfigError
    from soulsai.runs.run import Run
    from soulsai.telemetry.webhook import check_urls

    if not url:
        raise ConfigError("--url: whom to notify? give the address of a webhook, or set SOULS_NOTIFY")
    urls = check_urls(url)
    opened = Run.open(run)
    _send_test(opened, urls) if test else _follow(opened, urls, won_at, stall_s)


def _send_test(run: Run, urls: tuple[str, ...]) -> None:
    from soulsai.telemetry.notify import Event, payload
    from soulsai.telemetry.watcher import read
    from soulsai.telemetry.webhook import Refused, send

    failed = False
    for number, address in enumerate(urls, 1):
        reading = read(run)
        event = Event("test", f"{run.name}: this is a test; the run is {reading.state}", reading.step, reading.win_rate)
        try:
            send(address, payload(run.name, event))
            typer.echo(f"webhook {number}: the message has arrived")
        except Refused as refused:
            failed = True
            typer.echo(f"webhook {number}: {refused}", err=True)
    if failed:
        raise typer.Exit(1)


def _follow(run: Run, urls: tuple[str, ...], won_at: float, stall_s: float) -> None:
    import threading

    from soulsai.errors import RunError
    from soulsai.telemetry.notify import Event, Watch, payload
    from soulsai.telemetry.watcher import END_S, follow, has_begun
    from soulsai.telemetry.webhook import Messenger

    if not has_begun(run, BEGIN_S):
        raise RunError(f"{run.folder}: nobody trains here now (it is {run.status().state}); begin first, or use --test")
    messenger = Messenger(urls, lambda text: typer.echo(text, err=True))

    def tell(event: Event) -> None:
        typer.echo(event.text)
        messenger.send(payload(run.name, event))

    typer.echo(f"watching {run.folder} until it ends (Ctrl-C ends the watching only)")
    try:
        follow(run, Watch(run.name, won_at=won_at, stall_s=stall_s), tell, hurry=threading.Event())
    except KeyboardInterrupt:
        return
    messenger.drain(END_S)
