"""`souls dashboard`, `open` and `notify`: the live page, the report, and messages about a run."""

from __future__ import annotations

import os
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from soulsai.cli.options import RunName, RunsFolder, choose_run, has_screen
from soulsai.errors import ConfigError, RunError
from soulsai.runs.run import Run
from soulsai.runs.summary import ROOT
from soulsai.telemetry.notify import STALL_S, WON_AT, Event, Watch, payload
from soulsai.telemetry.watcher import END_S, SINCE, follow, has_begun, read
from soulsai.telemetry.webhook import Messenger, Refused, check_urls, send

BEGIN_S = 10.0
"""How long the run may take to begin: both may be started by one line of a script."""


def dashboard(
    folder: RunsFolder = None,
    host: Annotated[
        str, typer.Option(help="Address it listens on; 0.0.0.0 lets other machines connect, with a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Its port; 8716 or the next free one if not given.")
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            envvar="SOULS_DASHBOARD_TOKEN",
            show_envvar=True,
            help="Required to open the page; generated and printed if other machines can reach the page.",
        ),
    ] = "",
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    board: Annotated[
        str, typer.Option(metavar="RUN", help="Show the board of this run publicly, at /board, without a token.")
    ] = "",
) -> None:
    """Show runs in a live web page.

    It shows progress, causes of death and workers. Ctrl-C closes the page; training continues.

    Example: souls dashboard --open
    """
    from soulsai.dashboard.server import ServeOptions, serve

    root = folder or ROOT

    def announce(url: str) -> None:
        typer.echo(f"the page of {root} is at {url} (Ctrl-C closes the page)")
        if open_browser:  # in a thread: some systems wait until the browser is closed
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    try:
        serve(ServeOptions(root, host, port, token, board), announce)
    except KeyboardInterrupt:
        return


def open_page(run: RunName = None) -> None:
    """Open the report of a run in the browser.

    For a run that is being trained, the live page. Without a display, only the path of the report is printed.

    Example: souls open runs/mine
    """
    chosen = choose_run(run)
    if chosen.is_locked():
        dashboard(chosen.folder, open_browser=True)
        return
    if not _is_newer(chosen.report_file, than=chosen.metrics_file):
        from soulsai.learning.session import update_report

        update_report(chosen)
    typer.echo(chosen.report_file)
    if has_screen():
        webbrowser.open(chosen.report_file.resolve().as_uri())


def _is_newer(file: Path, than: Path) -> bool:
    return file.exists() and (not than.exists() or file.stat().st_mtime >= than.stat().st_mtime)


def notify(
    run: RunName = None,
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
        float, typer.Option(min=0.0, max=1.0, help="Win rate in evaluation that counts as a win.")
    ] = WON_AT,
    stall_s: Annotated[
        float, typer.Option(min=1.0, help="Seconds without a new step that count as a stall.")
    ] = STALL_S,
    test: Annotated[
        bool, typer.Option("--test", help="Only send a test message now, and report whether it arrived.")
    ] = False,
) -> None:
    """Send a webhook when a run wins, stalls or ends.

    Also when it loses its workers. Runs until training ends.

    Example: souls notify runs/mine --url https://hooks.example.org/secret
    """
    if not url:
        raise ConfigError("--url: give the address of a webhook, or set SOULS_NOTIFY")
    urls = check_urls(url)
    opened = choose_run(run)
    _send_test(opened, urls) if test else _follow(opened, urls, won_at, stall_s)


def _send_test(run: Run, urls: tuple[str, ...]) -> None:
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
    if not has_begun(run, BEGIN_S, os.environ.get(SINCE, "")):
        raise RunError(
            f"{run.folder}: is not being trained (it is {run.status().state}); start it first, or use --test"
        )
    messenger = Messenger(urls, lambda text: typer.echo(text, err=True))

    def tell(event: Event) -> None:
        typer.echo(event.text)
        messenger.send(payload(run.name, event))

    typer.echo(f"watching {run.folder} until it ends (Ctrl-C stops watching; training continues)")
    try:
        follow(run, Watch(run.name, won_at=won_at, stall_s=stall_s), tell)
    except KeyboardInterrupt:
        return
    messenger.drain(END_S)
