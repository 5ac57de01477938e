"""The end of a served run: its workers are let go, and the books are closed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from soulsai.transport.redis.address import Address

LEAVE_S = 15.0
"""How long workers may take to leave; one that is cut off finds out when it comes back."""
LOOK_S = 0.2
OVER = "run_over"
"""Why rows are dropped that came after the last step of the run."""


def let_go(address: Address) -> None:
    """Tell all workers to stop, and count what was still on its way as dropped."""
    from soulsai.transport.redis.access import invited
    from soulsai.transport.redis.beats import EVERYONE
    from soulsai.transport.redis.connection import connect
    from soulsai.transport.redis.keys import Keys
    from soulsai.transport.redis.learner import RedisLearnerLink
    from soulsai.transport.redis.ledger import look, stop_workers

    keys = Keys(address.run)
    # A new link: what the learner had taken but not used is handed out once more.
    link = RedisLearnerLink(address, patience_s=LEAVE_S, say=typer.echo)
    try:
        with connect(address) as admin:
            stop_workers(admin, keys, EVERYONE, invited(admin, keys))
            deadline_s = time.monotonic() + LEAVE_S
            while True:
                left = all(row.state in ("left", "silent") for row in look(admin, keys).workers)
                late = link.receive(LOOK_S)
                link.settle((), [(delivery, OVER) for delivery in late])
                if not late and (left or time.monotonic() > deadline_s):
                    return
    finally:
        link.close()


def close_books(folder: Path, address: Address) -> None:
    """Say what became of every row, and keep it for `souls fleet`."""
    from soulsai.runs.run import Run
    from soulsai.transport.redis.connection import connect
    from soulsai.transport.redis.keys import Keys
    from soulsai.transport.redis.report import books_line, keep_last, look_at, open_lines

    with connect(address) as admin:
        report = look_at(admin, Keys(address.run), check=True)
    report["learner"] |= {"steps": str(Run(folder).status().step)}  # it tells that only now and then
    keep_last(folder, report)
    typer.echo(books_line(report["total"]))
    for line in open_lines(report):
        typer.echo(line)
