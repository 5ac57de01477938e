"""Entry point of the `souls` command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

try:
    import typer
except ModuleNotFoundError:
    from soulsgym.packages import install_command

    sys.exit(f"souls: the command line is not installed; run: {install_command('cli')}")

from soulsai.cli.bench import bench
from soulsai.cli.compare import compare_runs
from soulsai.cli.config import config
from soulsai.cli.control import pause, resume, save, stop
from soulsai.cli.dashboard import dashboard
from soulsai.cli.data import data
from soulsai.cli.doctor import doctor
from soulsai.cli.eval import evaluate_run
from soulsai.cli.export import export
from soulsai.cli.fidelity import fidelity
from soulsai.cli.fleet import fleet, invite, revoke
from soulsai.cli.game import game
from soulsai.cli.join import join
from soulsai.cli.notify import notify
from soulsai.cli.presets import presets
from soulsai.cli.record import record
from soulsai.cli.runs import runs
from soulsai.cli.serve import serve
from soulsai.cli.sweep import sweep
from soulsai.cli.train import train
from soulsai.cli.variant import variant
from soulsai.cli.watch import watch

app = typer.Typer(name="souls", no_args_is_help=True, pretty_exceptions_enable=False)


def show_version(requested: bool) -> None:
    if requested:
        from soulsgym.packages import VERSION

        typer.echo(f"souls {VERSION}")
        raise typer.Exit


@app.callback()
def souls(
    show: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train agents that beat Souls bosses."""


app.command()(train)
app.command()(sweep)
app.command("eval")(evaluate_run)
app.command("compare")(compare_runs)
app.command()(dashboard)
app.command()(notify)
app.command()(watch)
app.command()(record)
app.command()(doctor)
app.add_typer(game, name="game")
app.command()(export)
app.command()(runs)
app.command()(presets)
app.command()(serve)
app.command()(join)
app.command()(fleet)
app.command()(invite)
app.command()(revoke)
app.command()(save)
app.command()(pause)
app.command()(resume)
app.command()(stop)
app.add_typer(variant, name="variant")
app.add_typer(config, name="config")
app.command()(fidelity)
app.command()(data)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command line; an expected error becomes one sentence and its exit code."""
    # Before torch is loaded. Its threads spin while they wait for each other, by default so long that other programs
    # beside slow training down badly. Beside a busy loop on one of two cores: 128 k steps/s instead of 73 k; alone
    # 236 k instead of 268 k.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    try:
        app()
    except Exception as error:
        # Imported late: `souls --help` must not wait for the simulator to load.
        from soulsgym.errors import SoulsError
        from soulsgym.packages import missing_package

        told = error if isinstance(error, SoulsError) else missing_package(error)
        if told is None:
            raise
        typer.echo(f"souls: {told}", err=True)
        sys.exit(told.exit_code)
