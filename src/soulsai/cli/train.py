"""`souls train`, `serve` and `join`: learners and workers, from the run's folder to the last words."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.cli.options import (
    INTERRUPTED,
    RECORDINGS,
    GameFlags,
    InGame,
    PartsFiles,
    Plain,
    Settings,
    TargetFlags,
    choose_run,
    run_argument,
)
from soulsai.config.toml import toml_value
from soulsai.errors import ConfigError, OtherVersion, TransportError
from soulsai.telemetry.webhook import check_urls
from soulsgym.errors import SoulsError
from soulsgym.packages import require

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.learning.session import Outcome
    from soulsai.runs.run import Run
    from soulsai.runtime.remote import JoinProgress
    from soulsai.runtime.serve import Served
    from soulsai.telemetry.sinks import Sink
    from soulsgym.target import TargetOptions

DEFAULT_PRESET, GAME_PRESET = "iudex", "iudex-game"
IN_GAME = ("fight.engine=game", "fight.number=1", "run.evaluate_every_steps=0", "run.final_fights=0")
"""What --game sets, before whatever the user sets."""
TOGETHER_S = 0.5
"""Signals within this time are one wish to stop."""

UPDATED = "SOULS_UPDATED"
"""Says to the program that is started after an update what was installed, so that none follows another for ever."""
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
WEBHOOK = re.compile(r"(https?://[^/?#\s]+)[/?#]\S+")


class Backend(StrEnum):
    """What is played in."""

    SIM = "sim"
    GAME = "game"


@dataclass(frozen=True)
class RunOptions:
    """The run to train, and who looks at it."""

    preset: Annotated[
        str | None, run_argument("Preset or config file (.toml); with --resume: folder or name of a run.", "PRESET")
    ] = None
    settings: Settings = None
    run: Annotated[Path | None, typer.Option(help="Folder of a new run; one under runs/ if not given.")] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run from its last checkpoint; without a name the newest one.")
    ] = False
    without_replay: Annotated[
        bool,
        typer.Option(
            "--without-replay", help="With --resume: continue with an empty replay, if its files are damaged."
        ),
    ] = False
    parts: PartsFiles = None
    demos: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A recording to learn from (.npz, .json); may be repeated, or *.npz."),
    ] = None
    more_demos: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="More recordings after --demos.")] = (
        None
    )
    accept: Annotated[bool, typer.Option("--accept-all", help="Train despite preflight findings.")] = False
    plain: Plain = False
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            envvar="SOULS_NOTIFY",
            help="A webhook to notify when the run wins, stalls, loses its workers or ends; may be repeated.",
        ),
    ] = None
    wandb: Annotated[
        str, typer.Option(metavar="PROJECT", envvar="SOULS_WANDB", help="Send the metrics to Weights & Biases as well.")
    ] = ""

    def check(self) -> None:
        """ConfigError or MissingPackage for what cannot be, before anything is made."""
        check_urls(self.notify or ())
        if self.without_replay and not self.resume:
            raise ConfigError("--without-replay is for resumed runs: add --resume")
        if self.wandb:
            require("wandb")

    def open(self, preset: str = DEFAULT_PRESET, first: Sequence[str] = ()) -> tuple[Run, Config]:
        """The run; a new one is of this preset and with these settings unless the user says otherwise."""
        name, files = self._demo_files()
        given = name if self.resume else name or preset
        settings = [*demos_setting(files), *(self.settings or ())]
        return open_run(given, settings, self.run, resume=self.resume, parts=self.parts or (), first=first)

    def _demo_files(self) -> tuple[str | None, list[str]]:
        """The preset, and the recordings: a shell makes several words of --demos *.npz."""
        words = [word for word in (self.preset, *(self.more_demos or ())) if word is not None]
        files = [word for word in words if word.endswith(RECORDINGS)] if self.demos else []
        others = [word for word in words if word not in files]
        if len(others) > 1:
            raise typer.BadParameter(f"got unexpected extra argument ({others[1]})")
        return (others[0] if others else None), [*(self.demos or ()), *files]

    @contextmanager
    def session(self, run: Run, config: Config, *, page: bool) -> Iterator[tuple[Any, Callable[[], bool], list[Sink]]]:
        """The view of a run, whether it is to stop, and sinks for its metrics; whoever else looks cannot disturb it."""
        from soulsai.cli.screen import PlainView, Screen
        from soulsai.dashboard.child import dashboard_child
        from soulsai.telemetry.wandb_sink import wandb_sink
        from soulsai.telemetry.watcher import notify_child

        view = PlainView() if self.plain or not sys.stdout.isatty() else Screen(run.name, config)
        with view, stop_on_signals(view.say) as stop, ExitStack() as held:
            if page:
                held.enter_context(dashboard_child(run.folder, view.say))
            held.enter_context(notify_child(run.folder, self.notify or (), view.say))
            yield view, stop, [wandb_sink(self.wandb, run, config, view.say)] if self.wandb else []


def train(
    options: RunOptions,
    workers: Annotated[int, typer.Option(min=0, max=256, help="Extra actor processes (0: the learner plays too).")] = 0,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Show it in a web page on this machine.")] = False,
    in_game: InGame = False,
    *,
    flags: TargetFlags,
) -> None:
    """Train an agent.

    With no arguments: the full fight against Iudex Gundyr in the simulator.

    With --game it plays in the running game, one fight at a time, by default with the preset iudex-game. With --resume
    it continues a run: souls train --resume runs/mine

    Example: souls train dddqn --set run.seed=3 --run runs/mine
    """
    options.check()
    game = flags.target(in_game)
    if game:
        if in_game:
            from soulsgym.game.attach import find_game

            found = find_game(pid=flags.pid)  # before a folder is made for nothing
            typer.echo(f"playing in the running game: process {found.pid}")
        run, config = options.open(GAME_PRESET, IN_GAME)
    else:
        run, config = options.open()
    with remove_if_unused(run, resume=options.resume):
        _refuse_mix(config, game, workers, flags.rehearse)
        from soulsai.runtime import Fleet

        with options.session(run, config, page=dashboard) as (view, stop, sinks):
            fleet = Fleet(run, config, options.resume, not options.accept, view.say, view.show, stop, sinks,
                          without_replay=options.without_replay)  # fmt: skip
            outcome = fleet.train(workers, game=game)
    again = (
        "souls train"
        + (" --game" if in_game else f" --rehearse {shlex.quote(flags.rehearse)}" if game else "")
        + (f" --workers {workers}" if workers else "")
    )
    conclude(run, outcome, again=again, interrupted=stop())


def _refuse_mix(config: Config, game: TargetOptions | None, workers: int, rehearse: str = "") -> None:
    in_game = config.world == "fight" and config.fight.engine == "game"
    if in_game and workers:
        raise ConfigError(
            f"--workers {workers}: a game plays one fight at a time; use souls serve, and "
            "souls join --env-backend game for each game"
        )
    if game and not in_game:
        given = f"--rehearse {rehearse}" if rehearse else "--game"
        raise ConfigError(f"{given}: this run trains in the simulator; leave it out, or start a new run with it")
    if in_game and not game:
        raise ConfigError(
            'this run plays in the running game (fight.engine = "game"); say so with --game, or --rehearse FILE'
        )


def serve(
    options: RunOptions,
    redis: Annotated[
        str,
        typer.Option(
            envvar="SOULS_REDIS",
            metavar="URL",
            help="An existing Redis: redis://ADMIN:PASSWORD@HOST:PORT; otherwise the run starts its own.",
        ),
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address the run's own Redis listens on; 0.0.0.0 lets other machines connect.")
    ] = "",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Its port; if not given, a free one is chosen and kept.")
    ] = 0,
    tls: Annotated[
        bool | None, typer.Option("--tls/--no-tls", help="Encrypt; others then need the run's file ca.crt.")
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="Certificate to check the Redis of --redis with.")] = None,
    advertise: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="HOST or HOST:PORT that others use to connect, if it differs from this machine's own."
        ),
    ] = "",
    gateway: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Let strangers join through a gateway at this address. It listens on this port, with TLS. "
            "`off` turns it off; if not given, it stays as it was.",
        ),
    ] = "",
    dashboard: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Show it in a web page on this machine.")
    ] = True,
) -> None:
    """Start a learner and print the join command.

    Example: souls serve rainbow --gateway souls.example.org:8443
    """
    options.check()
    run, config = options.open()
    with ExitStack() as held:
        held.enter_context(remove_if_unused(run, resume=options.resume))
        from soulsai.runtime import Fleet, RedisOptions
        from soulsai.runtime.gateway import serve_gateway, with_spot_checks
        from soulsai.runtime.invitation import end_expired_invitations

        config = with_spot_checks(config, run.folder, gateway)
        fleet = Fleet(run, config, resume=options.resume, check=not options.accept, say=typer.echo,
                      without_replay=options.without_replay)  # fmt: skip
        served = held.enter_context(fleet.serve(RedisOptions(redis, host, port, tls, ca, advertise)))
        held.enter_context(serve_gateway(served, gateway, fleet._say))
        held.enter_context(end_expired_invitations(served.address))
        _tell_how_to_join(served, config)
        with options.session(run, config, page=dashboard) as (view, stop, sinks):
            fleet.say, fleet.show, fleet.stop, fleet.sinks = view.say, view.show, stop, sinks
            outcome = served.train()
        fleet.say = typer.echo
    conclude(run, outcome, again="souls serve", interrupted=stop())


def _tell_how_to_join(served: Served, config: Config) -> None:
    from soulsai.runtime.invitation import how_to_join

    folder = served.run.folder
    for name, password in served.fleet.passwords.items():
        for line in how_to_join(folder, served.fleet, name, password):
            typer.echo(line)
    for file in config.fight.parts:
        typer.echo(f"others need a copy of {file} and add: --parts {Path(file).name}")
    typer.echo(f"a separate join command for each person: souls invite NAME {folder}")
    typer.echo(f"list the workers: souls fleet {folder}; Ctrl-C saves and stops")


def join(
    url: Annotated[
        str,
        typer.Argument(
            envvar="SOULS_URL",
            show_default=False,
            help="The address from your join command. In the environment variable, others on this machine do not "
            "see its password.",
        ),
    ] = "",
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Number of worker processes, for example one per core.")
    ] = 1,
    backend: Annotated[Backend, typer.Option("--env-backend", help="Play in the simulator or in the game.")] = (
        Backend.SIM
    ),
    pace: Annotated[float, typer.Option(min=0.0, help="Maximum steps a second, to imitate a game; 0: no limit.")] = 0.0,
    parts: PartsFiles = None,
    update: Annotated[
        bool, typer.Option("--update", help="Install the learner's version if it differs, after asking.")
    ] = False,
    ca: Annotated[Path | None, typer.Option(help="Certificate that came with the join command, for rediss://.")] = None,
    patience: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="MINUTES", help="How long to try to reach the learner; without it, forever."),
    ] = None,
    *,
    flags: GameFlags,
) -> None:
    """Join a fleet: play for a learner until Ctrl-C.

    Example: souls join redis://alice:PASSWORD@192.168.1.5:41234/iudex-5f3a9c --workers 4
    """
    if not url:
        raise typer.BadParameter("give the address from your join command, or set SOULS_URL")
    game = flags.options(backend is Backend.GAME, "--env-backend game")
    from soulsai.runtime import join as play

    try:
        with stop_on_signals(_say, "leaving; sending the rest (Ctrl-C again quits at once)") as stop:
            play(
                url,
                workers,
                ca=ca,
                pace=pace,
                parts=parts or [],
                game=game,
                patience_s=None if patience is None else 60.0 * patience,
                say=_say,
                show=lambda progress: _say(progress_line(progress)),
                stop=stop,
            )
    except OtherVersion as error:
        if not update or not error.install:
            raise
        _update(error)
        return
    if stop():
        raise typer.Exit(INTERRUPTED)
    _say("the learner asked this worker to stop: the run is over, or its operator stopped it")


def _say(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')}  {text}")


def _update(error: OtherVersion) -> None:
    """Install the learner's version, if the user agrees, and join with it."""
    command = [sys.executable, "-m", "pip", "install", *error.install]
    if os.environ.get(UPDATED) == error.install[-1]:
        raise TransportError(f"{error}; it was just installed, and this is still not the learner's version") from error
    typer.echo(str(error))
    if not typer.confirm(f"run: {' '.join(command[1:])}?"):
        raise error
    if subprocess.run(command, check=False).returncode:
        raise TransportError(f"pip could not install {error.install[-1]}: see above, and install it by hand") from error
    if sys.platform == "win32":  # where a program cannot become another
        typer.echo("installed; run the same command again")
        return
    os.environ[UPDATED] = error.install[-1]
    os.execv(sys.executable, [sys.executable, "-m", "soulsai", *sys.argv[1:]])


def progress_line(progress: JoinProgress) -> str:
    """How all workers of this machine are doing."""
    parts = [
        f"{progress.steps:,} steps, {progress.steps_per_s:,.0f}/s",
        f"{progress.episodes:,} episodes",
        *([f"{progress.wins / progress.fights:.1%} won"] if progress.fights else []),
        f"policy {progress.policy:,}",
        f"sent {progress.sent:,} rows",
        *([f"{progress.unsent:,} not sent yet"] if progress.unsent else []),
        *([f"{progress.dropped:,} dropped"] if progress.dropped else []),
        *([f"{count} {how} and replaced" for how, count in progress.restarts.items() if count]),
    ]
    return " | ".join(parts)


def hide_secrets(text: str) -> str:
    """A word of a command line as it may be kept: URLs lose user and password, webhooks all but their host."""
    return WEBHOOK.sub(r"\1/***", CREDENTIALS.sub("***@", text))


def demos_setting(files: Sequence[str]) -> list[str]:
    """What --demos sets."""
    return [f"demos.files={toml_value(tuple(files))}"] if files else []


def parts_setting(files: Sequence[Path]) -> list[str]:
    """What --parts sets."""
    return [f"fight.parts={toml_value(tuple(map(str, files)))}"] if files else []


def open_run(
    preset: str | None,
    settings: Sequence[str],
    folder: Path | None,
    *,
    resume: bool,
    parts: Sequence[Path] = (),
    first: Sequence[str] = (),
) -> tuple[Run, Config]:
    """The run to train: a new one of a preset, or the one to continue, to which settings in `first` do not apply."""
    require("torch")  # before a folder is made for nothing
    if resume and preset and folder:
        raise typer.BadParameter(f"with --resume name the run once: {preset} or --run {folder}")
    if resume and parts:
        raise typer.BadParameter(f"a run keeps its own copy of its parts; leave out --parts {parts[0]}")
    settings = [*parts_setting(parts), *settings]
    from soulsai.runtime.runs import begin_run, can_continue, resume_run

    if resume:
        run = choose_run(preset or (str(folder) if folder else None), can_continue,
                         missing="there is no unfinished run", label="resuming")  # fmt: skip
        return resume_run(run, settings, typer.echo)
    command = [hide_secrets(word) for word in sys.argv]
    return begin_run(preset or DEFAULT_PRESET, settings, folder, command, first)


@contextmanager
def remove_if_unused(run: Run, *, resume: bool) -> Iterator[None]:
    """Remove the folder of a new run that ends before it has learned anything, by a refusal or by Ctrl-C.

    Otherwise --resume without a name would continue it instead of the run before.
    """
    try:
        yield
    except (SoulsError, KeyboardInterrupt):
        if not resume and not run.metrics_file.exists() and not any(run.checkpoints.glob("*")):
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


@contextmanager
def stop_on_signals(say: Callable[[str], None], news: str = "") -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C or SIGTERM asks to stop after this step; a second one ends at once.

    Whoever sends one to all processes of a group and to this one means it once: those together count as one.
    """
    asked, asked_s = False, 0.0

    def ask(number: int, frame: object) -> None:
        nonlocal asked, asked_s
        if asked and time.monotonic() - asked_s > TOGETHER_S:
            raise KeyboardInterrupt
        if asked:
            return
        asked, asked_s = True, time.monotonic()
        say(news or "stopping after this step and saving (Ctrl-C again quits at once; the last checkpoint stays)")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def conclude(run: Run, outcome: Outcome, *, again: str, interrupted: bool) -> None:
    """Say how the session ended and what to do next; `again` is the command that continues a stopped one."""
    if not outcome.finished:
        typer.echo(f"stopped and saved; continue with: {again} --resume {run.folder}")
        raise typer.Exit(INTERRUPTED if interrupted else 0)
    for evaluation in outcome.evaluations:
        from soulsai.cli.tables import print_evaluation

        print_evaluation(evaluation)
    if outcome.mean_return is not None:
        typer.echo(f"mean return {outcome.mean_return:.1f}")
    typer.echo(f"report: {run.report_file}")
    verbs = ("watch", "eval", "open") if outcome.evaluations else ("eval", "open")
    typer.echo("next: " + ", ".join(f"souls {verb} {run.folder}" for verb in verbs))
