"""`souls doctor`: is this machine, game and keyboard ready?"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from soulsgym.game.machine import Finding

NEEDS_FIXING = 1
INTERRUPTED = 130
REDIS_S = 3.0


class GameTitle(StrEnum):
    """The games there are."""

    DARK_SOULS_3 = "darksouls3"
    ELDEN_RING = "eldenring"


def doctor(
    title: Annotated[GameTitle, typer.Option(help="Which game.")] = GameTitle.DARK_SOULS_3,
    pid: Annotated[int | None, typer.Option(help="Process of the game, if several run.")] = None,
    redis: Annotated[
        str, typer.Option(metavar="URL", envvar="SOULS_URL", show_default=False, help="A Redis to reach, too.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
    only_look: Annotated[
        bool,
        typer.Option("--only-look", help="Only look: press no key, load nothing into the game, leave its speed alone."),
    ] = False,
) -> None:
    """Look whether everything is ready to play in the game, and say what to do where it is not.

    With a character loaded, the game is tried: it gets the focus, turns its camera, walks a step, stops and runs fast
    for a second. Afterwards it is as before.

    Example: souls doctor
    """
    from soulsgym.game.doctor import checks

    found: list[Finding] = []
    # Whoever ends this program ends it as Ctrl-C does: keys up, speed 1.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with closing(checks(title.value, pid, _reached(redis) if redis else None, only_look=only_look)) as findings:
            for finding in findings:
                found.append(finding)
                if not as_json:
                    typer.echo(_line(finding))
    except KeyboardInterrupt:
        typer.echo("souls: interrupted; the game is as before", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    is_ready = not any(finding.ok is False for finding in found)
    if as_json:
        typer.echo(json.dumps({"ready": is_ready, "findings": [asdict(finding) for finding in found]}, indent=1))
    else:
        faults = sum(finding.ok is False for finding in found)
        typer.echo("ready to play" if is_ready else f"{faults} to fix" if faults > 1 else "one thing to fix")
    if not is_ready:
        raise typer.Exit(NEEDS_FIXING)


def _line(finding: Finding) -> str:
    mark = {True: "ok  ", False: "FIX ", None: "note"}[finding.ok]
    return f"{mark} {finding.name:10} {finding.text}{f': {finding.advice}' if finding.advice else ''}"


def _reached(url: str) -> Callable[[], str]:
    """A look at a Redis, which is another package's business."""

    def look() -> str:
        from soulsai.errors import TransportError
        from soulsgym.packages import require

        require("redis")
        from redis.exceptions import RedisError

        from soulsai.transport.redis.address import Address
        from soulsai.transport.redis.connection import connect

        address = Address.parse(url) if "@" in url else Address.parse(url, run="doctor")
        client = connect(address, limit_s=REDIS_S)
        try:
            client.ping()
        except (RedisError, OSError) as error:
            reason = " ".join(str(error).split())
            raise TransportError(
                f"{address.place} does not answer: {reason}; is it running, and the port open?"
            ) from None
        finally:
            client.close()
        return f"{address.place} answers"

    return look
