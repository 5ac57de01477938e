"""`souls invitations`: who is invited, and many at once out again."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from typing import Annotated

import typer
from rich.console import Console

from soulsai.cli.fleet import ServedRun, _find_served, _operator
from soulsai.cli.options import AsJson, print_json
from soulsai.cli.tables import make_table
from soulsai.errors import TransportError
from soulsai.transport.redis.invitations import Terms, end_invitation, terms_of


def invitations(
    run: ServedRun = None,
    revoke: Annotated[
        str, typer.Option(metavar="PATTERN", help="Revoke all invitations that match: guest-*, or * for everyone.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List invitations to a run, or revoke many at once.

    Example: souls invitations --revoke "guest-*"
    """
    with _operator(*_find_served(run)) as operator:
        found = terms_of(operator.admin, operator.keys)
        ended = [name for name in found if revoke and fnmatchcase(name, revoke)]
        if revoke and not ended:
            raise TransportError(f"--revoke {revoke}: matches no invitation ({', '.join(found) or 'nobody'})")
        for name in ended:
            end_invitation(operator.admin, operator.keys, name, lambda text: None)
        kept = {name: word for name, word in operator.fleet.passwords.items() if name not in ended}
        operator.keep_passwords(kept)
    left = {name: terms for name, terms in found.items() if name not in ended}
    if as_json:
        print_json({"invited": {name: _as_dict(terms) for name, terms in left.items()}, "ended": ended})
        return
    for name in ended:
        typer.echo(f"{name}: access revoked, stored experience kept")
    rows = [
        (name, _day(terms.since_s), _day(terms.until_s), str(terms.machines or "any")) for name, terms in left.items()
    ]
    Console(highlight=False).print(make_table(("name", "invited", "until", "machines"), rows, left=("name",)))


def _as_dict(terms: Terms) -> dict[str, float | int | None]:
    return {"since_s": terms.since_s or None, "until_s": terms.until_s or None, "machines": terms.machines or None}


def _day(time_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s)) if time_s else "-"
