"""`souls dashboard`: the live page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soulsai.cli.runs import ROOT


def dashboard(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where the runs are, or one run; runs/ if not given.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address on which it listens; 0.0.0.0 lets other machines in, with a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Its port; 8716 or the next free one if not given.")
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            envvar="SOULS_DASHBOARD_TOKEN",
            show_envvar=True,
            help="Who opens the page must know it; made and printed if other machines can reach the page.",
        ),
    ] = "",
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show runs in a web page: how they learn, why they lose, who plays. Ctrl-C ends it, and no run with it.

    Example: souls dashboard --open
    """
    from soulsai.dashboard.server import Wish, serve

    root = folder or ROOT

    def started(url: str) -> None:
        typer.echo(f"the page of {root} is at {url} (Ctrl-C ends it)")
        if open_browser:
            _open(url)

    try:
        serve(Wish(root, host, port, token), started)
    except KeyboardInterrupt:
        return


def _open(url: str) -> None:
    """In a thread: some systems wait until the browser is closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
