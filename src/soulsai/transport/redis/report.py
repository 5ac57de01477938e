"""A fleet as one object that can be kept and shown: who plays, what became of every row, who gave how much."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import redis

    from soulsai.transport.links import Account
    from soulsai.transport.redis.keys import Keys
    from soulsai.transport.redis.ledger import Book, FleetView, WorkerRow

LAST = "fleet_last.json"
"""What the fleet of a run looked like when it was last stopped."""
BUSY = ("playing", "waiting")
STILL_S = 3.0
"""After so long without a step the last known speed is no longer true."""
PARTS = ("learner", "workers", "names", "total", "unreadable")

Report = dict[str, Any]
"""With these parts, and `open` where the books were checked."""


def look_at(admin: redis.Redis, keys: Keys, *, check: bool = False) -> Report:
    """The fleet of a run as it is now."""
    from soulsai.transport.redis.ledger import check_books, look

    view = look(admin, keys)
    return report_of(view, check_books(admin, keys) if check else None)


def keep_last(folder: Path, report: Report) -> None:
    """Remember how the fleet was, for when its Redis no longer runs."""
    from soulsai.runs.files import write_atomically

    write_atomically(folder / LAST, json.dumps(report, indent=1))


def last(folder: Path) -> Report | None:
    """How the fleet was when its run was last stopped; None if that is not known."""
    try:
        kept = json.loads((folder / LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and set(PARTS) <= set(kept) else None


def report_of(view: FleetView, books: Sequence[Book] | None = None) -> Report:
    """Everything `souls fleet` tells; with books also whether they close."""
    workers = [_worker(row, view.learner) for row in view.workers]
    report: Report = {
        "learner": dict(view.learner),
        "workers": workers,
        "names": _names(workers),
        "total": _account(view.total),
        "unreadable": dict(view.malformed),
    }
    if books is not None:
        report["total"] = _account(_sum(book.account for book in books))
        report["open"] = {
            book.account.worker: {"expected": book.account.in_flight, "found": book.measured}
            for book in books
            if not book.closes
        }
    return report


def books_line(total: Mapping[str, Any]) -> str:
    """The accounting in a line."""
    dropped = total["dropped"]
    why = f" ({reasons(dropped)})" if dropped else ""
    lost = f"dropped {sum(dropped.values()):,}{why}"
    return f"sent {total['sent']:,} = stored {total['stored']:,} + {lost} + in flight {total['in_flight']:,}"


def open_lines(report: Report) -> list[str]:
    """What does not close, if anything."""
    return [
        f"{worker}: the books do not close: {rows['expected']:,} rows should be on their way, {rows['found']:,} are"
        for worker, rows in report.get("open", {}).items()
    ]


def reasons(dropped: Mapping[str, int]) -> str:
    """Dropped rows by reason, in a line."""
    return ", ".join(f"{reason} {rows:,}" for reason, rows in sorted(dropped.items()))


def _worker(row: WorkerRow, learner: Mapping[str, str]) -> Report:
    from soulsai.transport.versions import lag_of

    newest, beat = int(learner.get("version", 0) or 0), row.beat
    return {
        "worker": row.id,
        "name": row.name,
        "host": row.host,
        "state": row.state,
        "lag": lag_of(newest, beat.policy) if newest and beat.policy else None,
        "steps": beat.steps,
        "steps_per_s": beat.steps_per_s if row.state in BUSY and beat.still_s < STILL_S else 0.0,
        "episodes": beat.episodes,
        "wins": beat.wins,
        "fights": beat.fights,
        "win_rate": beat.wins / beat.fights if beat.fights else None,
        "seen_s": row.age_s if math.isfinite(row.age_s) else None,
        "restarts": beat.restarts,
        **_account(row.account),
    }


def _account(account: Account) -> Report:
    return {
        "sent": account.sent,
        "stored": account.stored,
        "dropped": dict(account.dropped),
        "in_flight": account.in_flight,
    }


def _sum(accounts: Iterable[Account]) -> Account:
    from soulsai.transport.links import Account

    sent, stored, dropped = 0, 0, dict[str, int]()
    for account in accounts:
        sent, stored = sent + account.sent, stored + account.stored
        for reason, rows in account.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + rows
    return Account("*", sent, stored, dropped)


def _names(workers: Sequence[Report]) -> Report:
    """Who gave how much."""
    names: Report = {}
    for worker in workers:
        total = names.setdefault(worker["name"], {"lives": 0, "steps": 0, "episodes": 0, "sent": 0, "stored": 0})
        total["lives"] += 1
        for key in ("steps", "episodes", "sent", "stored"):
            total[key] += worker[key]
    stored = sum(name["stored"] for name in names.values())
    for name in names.values():
        name["share"] = name["stored"] / stored if stored else 0.0
    return names
