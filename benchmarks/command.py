"""`souls bench`: speed, beside a limit or a peer. Each benchmark is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from soulsai.cli.options import AsJson, print_json
from soulsai.cli.tables import make_table

if TYPE_CHECKING:
    from benchmarks.sim import SimSpeed
    from benchmarks.train import Figure, TrainSpeed

Row = tuple[str, str, str, str]
FIRST_START_LIMIT_S = 30.0
LATER_START_LIMIT_S = 3.0

bench = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Measure speed, beside a limit or a peer in the same run."
)


@bench.command()
def sim(
    fights: Annotated[int, typer.Option(min=1, help="Fights in the batch.")] = 1024,
    peers: Annotated[bool, typer.Option(help="Also measure LunarLander of Gymnasium and EnvPool.")] = True,
    starts: Annotated[bool, typer.Option(help="Also measure how long the first and later starts take.")] = True,
    as_json: AsJson = False,
) -> None:
    """Measure the simulator.

    Kernel, vector environment, threads, single environment, peers, start-up.

    Example: souls bench sim --no-peers
    """
    from benchmarks.sim import measure_sim

    speed = measure_sim(fights, peers=peers, starts=starts, say=_say)
    _print(speed, f"simulator, {speed.fights} fights", _sim_rows(speed), as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Measure learning.

    PPO and the Q-learner beside their limits and a peer, on every device.

    Example: souls bench train --no-peers
    """
    from benchmarks.train import measure_train

    speed = measure_train(seconds, with_peers=peers, race=race, devices=devices or (), threads=threads, say=_say)
    title = f"learning, {speed.threads} thread{'s' * (speed.threads > 1)}"
    _print(speed, title, [*_figure_rows(speed.figures), *_share_rows(speed)], speed.notes, as_json=as_json)


@bench.command("transport")
def transport_speed(
    seconds: Annotated[float, typer.Option(min=1.0, help="About how long each part is measured.")] = 15.0,
    rows: Annotated[int, typer.Option(min=1, max=16_384, help="Transitions in a chunk.")] = 2048,
    fleet: Annotated[int, typer.Option(min=0, max=500, help="Workers at the pace of the game; 0 leaves it out.")] = 100,
    gateway: Annotated[
        bool, typer.Option("--gateway", help="Measure a gateway in front of it, and only that.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the Redis transport.

    Chunks, policies, an idle learner, a fleet of slow workers.

    Example: souls bench transport --fleet 0
    """
    from benchmarks.transport import measure_transport

    speed = measure_transport(seconds, rows=rows, fleet=fleet, say=_say, gateway=gateway)
    size = f"{speed.rows:,} transitions in {speed.frame_bytes / 1e3:.0f} kB"
    title = f"transport, Redis {speed.server}, chunks of {size}"
    _print(speed, title, _figure_rows(speed.figures), as_json=as_json)


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _print(speed: Any, title: str, rows: Iterable[Row], notes: Sequence[str] = (), *, as_json: bool) -> None:
    if as_json:
        print_json(speed.as_dict())
        return
    console = Console()
    console.print(make_table(("figure", "measured", "target", ""), rows, title))
    for note in notes:
        console.print(note)


def _sim_rows(speed: SimSpeed) -> Iterator[Row]:
    for rate in speed.rates:
        digits = ".2f" if rate.unit == "ratio" else ",.0f"
        target = "" if rate.target is None else f">= {rate.target:{digits}}"
        yield rate.name, f"{rate.steps_per_s:{digits}} {rate.unit}", target, _mark(rate.ok)
    yield "game time in the vector environment", f"{speed.as_dict()['game_hours_per_s']:.1f} hours/s", "", ""
    for name, seconds, limit in (
        ("first start after install, compiling", speed.first_start_s, FIRST_START_LIMIT_S),
        ("later start", speed.later_start_s, LATER_START_LIMIT_S),
    ):
        if seconds is not None:
            yield name, f"{seconds:.1f} s", f"<= {limit:.0f} s", _mark(seconds <= limit)


def _share_rows(speed: TrainSpeed) -> Iterator[Row]:
    for name, shares in speed.shares.items():
        parts = sorted(shares.items(), key=lambda part: -part[1])
        text = ", ".join(f"{phase} {share:.0%}" for phase, share in parts if share >= 0.005)
        yield f"{name}: where the time goes", text, "", ""


def _figure_rows(figures: Sequence[Figure]) -> Iterator[Row]:
    for figure in figures:
        small = figure.unit == "share" and figure.value < 0.1
        digits = ".4f" if small else ",.0f" if figure.value >= 1000.0 else ".1f" if figure.unit == "s" else ".2f"
        measured = f"{'>= ' * figure.at_least}{figure.value:{digits}} {figure.unit}"
        sign = "<=" if figure.at_most else ">="
        target = "" if figure.target is None else f"{sign} {figure.target:,.2f}"
        yield figure.name, measured, target, _mark(figure.ok)


def _mark(ok: bool | None) -> str:
    return "" if ok is None else "reached" if ok else "missed"
