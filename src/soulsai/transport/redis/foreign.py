"""What a Redis that the run did not start itself may do to it."""

from __future__ import annotations

from typing import Any

import redis
from redis.exceptions import ResponseError

from soulsai.errors import TransportError
from soulsai.transport.frames import LARGEST_BODY
from soulsai.transport.redis.access import MOST_DENIALS, user_lines

OLDEST = (6, 2)
"""Before it there are no users with rights of their own for subcommands and channels."""
DEFAULT_USER = "user default off resetpass ~* &* +@all"


def shortcomings(admin: redis.Redis) -> list[str]:
    """A sentence for each setting of the server with which a run loses something; TransportError if it is too old."""
    version = str(admin.info("server")["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise TransportError(f"this Redis is version {version}, and 6.2 or newer is needed: update it")
    try:
        settings: dict[Any, Any] = admin.config_get("*")
    except ResponseError:
        return []  # Whoever runs it does not let us look.
    found = []
    if str(policy := settings.get("maxmemory-policy", "noeviction")).startswith("allkeys"):
        found.append(f"throws keys away when its memory is full (maxmemory-policy {policy}): set it to noeviction")
    if settings.get("appendonly", "yes") != "yes":
        found.append("loses what is on its way when it restarts (appendonly no): set it to yes")
    elif not _keeps_transactions(admin):
        found.append(
            "has a default user without all rights, with which a server loses transactions when it restarts: write "
            f"{DEFAULT_USER!r} into its aclfile, with which nobody can log in either"
        )
    if not settings.get("aclfile", "?"):
        found.append("forgets who is invited when it restarts: give it an aclfile")
    if int(largest := settings.get("proto-max-bulk-len", LARGEST_BODY)) < LARGEST_BODY:
        found.append(f"hangs up on large messages (proto-max-bulk-len {largest}): set it to 64mb or more")
    if str(settings.get("maxmemory-clients", "?")) == "0":
        found.append("keeps messages that never end (maxmemory-clients 0): set it to a quarter of its memory")
    if int(most := settings.get("acllog-max-len", MOST_DENIALS)) > MOST_DENIALS:
        found.append(f"keeps forbidden commands of any size (acllog-max-len {most}): set it to {MOST_DENIALS}")
    return [f"this Redis {sentence}" for sentence in found]


def _keeps_transactions(admin: redis.Redis) -> bool:
    """Reading its file, a server is the default user: from 7 on it leaves out transactions this one has no right to."""
    try:
        lines = user_lines(admin)
    except TransportError:
        return True  # nobody knows
    return {"~*", "+@all"} <= {word for line in lines if line[1] == "default" for word in line}
