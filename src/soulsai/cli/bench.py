"""`souls bench`: speed, beside a limit or a peer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from soulsai.bench.sim import SimSpeed
    from soulsai.bench.train import Figure, TrainSpeed
    from soulsai.bench.transport import TransportSpeed

FIRST_START_LIMIT_S = 30.0
LATER_START_LIMIT_S = 3.0

bench = typer.Typer(no_args_is_help=True, help="Measure speed, beside a limit or a peer in the same run.")


@bench.command()
def sim(
    fights: Annotated[int, typer.Option(min=1, help="Fights in the batch.")] = 1024,
    peers: Annotated[bool, typer.Option(help="Also measure LunarLander of Gymnasium and EnvPool.")] = True,
    starts: Annotated[bool, typer.Option(help="Also measure how long the first and later starts take.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure the simulator: kernel, vector environment, threads, single environment, peers, start-up.

    Example: souls bench sim --no-peers
    """
    from soulsai.bench.sim import measure_sim

    speed = measure_sim(fights, peers=peers, starts=starts, say=lambda text: typer.echo(text, err=True))
    if as_json:
        typer.echo(json.dumps(speed.as_dict(), indent=2))
    else:
        _print_table(speed)


@bench.command("train")
def train_speed(
    seconds: Annotated[float, typer.Option(min=0.0, help="About how long each part is measured.")] = 10.0,
    peers: Annotated[bool, typer.Option(help="Also measure PPO of Stable-Baselines3 with our network.")] = True,
    race: Annotated[
        bool, typer.Option("--race", help="Also race it to half of the full fights won; takes minutes.")
    ] = False,
    devices: Annotated[
        list[str] | None, typer.Option(help="cpu or cuda; give it once for each, or not at all for all there are.")
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="Processor threads for the networks; 0 takes all cores.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Measure learning: PPO and the Q-learner beside their limits and a peer, on every device.

    Example: souls bench train --no-peers
    """
    from soulsai.bench.train import measure_train

    speed = measure_train(
        seconds,
        with_peers=peers,
        race=race,
        devices=devices or (),
        threads=threads,
        say=lambda text: typer.echo(text, err=True),
    )
    if as_json:
        typer.echo(json.dumps(speed.as_dict(), indent=2))
    else:
        _print_learning(speed)


@bench.command("transport")
def transport_speed(
    seconds: Annotated[float, typer.Option(min=1.0, help="About how long each part is measured.")] = 15.0,
    rows: Annotated[int, typer.Option(min=1, max=16_384, help="Transitions in a chunk.")] = 2048,
    fleet: Annotated[int, typer.Option(min=0, max=500, help="Workers at the pace of the game; 0 leaves it out.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure the way over Redis on this machine: chunks, policies, an idle learner, a fleet of slow workers.

    Example: souls bench transport --fleet 0
    """
    from soulsai.bench.transport import measure_transport

    speed = measure_transport(seconds, rows=rows, fleet=fleet, say=lambda text: typer.echo(text, err=True))
    if as_json:
        typer.echo(json.dumps(speed.as_dict(), indent=2))
    else:
        _print_transport(speed)


def _print_table(speed: SimSpeed) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"simulator, {speed.fights} fights")
    for column in ("figure", "measured", "target", ""):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for rate in speed.rates:
        digits = ".2f" if rate.unit == "ratio" else ",.0f"
        target = "" if rate.target is None else f">= {rate.target:{digits}}"
        table.add_row(rate.name, f"{rate.steps_per_s:{digits}} {rate.unit}", target, _mark(rate.ok))
    hours = speed.as_dict()["game_hours_per_s"]
    table.add_row("game time in the vector environment", f"{hours:.1f} hours/s", "", "")
    for name, seconds, limit in (
        ("first start after install, compiling", speed.first_start_s, FIRST_START_LIMIT_S),
        ("later start", speed.later_start_s, LATER_START_LIMIT_S),
    ):
        if seconds is not None:
            table.add_row(name, f"{seconds:.1f} s", f"<= {limit:.0f} s", _mark(seconds <= limit))
    Console().print(table)


def _print_learning(speed: TrainSpeed) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"learning, {speed.threads} thread{'s' * (speed.threads > 1)}")
    for column in ("figure", "measured", "target", ""):
        table.add_column(column, justify="left" if column == "figure" else "right")
    _add_figures(table, speed.figures)
    for name, shares in speed.shares.items():
        parts = sorted(shares.items(), key=lambda part: -part[1])
        text = ", ".join(f"{phase} {share:.0%}" for phase, share in parts if share >= 0.005)
        table.add_row(f"{name}: where the time goes", text, "", "")
    console = Console()
    console.print(table)
    for note in speed.notes:
        console.print(note)


def _print_transport(speed: TransportSpeed) -> None:
    from rich.console import Console
    from rich.table import Table

    size = f"{speed.rows:,} transitions in {speed.frame_bytes / 1e3:.0f} kB"
    table = Table(title=f"transport, Redis {speed.server}, chunks of {size}")
    for column in ("figure", "measured", "target", ""):
        table.add_column(column, justify="left" if column == "figure" else "right")
    _add_figures(table, speed.figures)
    Console().print(table)


def _add_figures(table: Table, figures: Sequence[Figure]) -> None:
    for figure in figures:
        small = figure.unit == "share" and figure.value < 0.1
        digits = ".4f" if small else ",.0f" if figure.value >= 1000.0 else ".1f" if figure.unit == "s" else ".2f"
        measured = f"{'>= ' * figure.at_least}{figure.value:{digits}} {figure.unit}"
        sign = "<=" if figure.at_most else ">="
        target = "" if figure.target is None else f"{sign} {figure.target:,.2f}"
        table.add_row(figure.name, measured, target, _mark(figure.ok))


def _mark(ok: bool | None) -> str:
    return "" if ok is None else "reached" if ok else "missed"
