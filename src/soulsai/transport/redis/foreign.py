"""What a Redis that the run did not start itself may do to it."""

from __future__ import annotations

from typing import Any

import redis
from redis.exceptions import ResponseError

from soulsai.errors import TransportError

OLDEST = (6, 2)
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
    found = [_eviction(settings), _persistence(settings), _users(settings), _transactions(admin, settings)]
    return [sentence for sentence in found if sentence]


def _eviction(settings: dict[Any, Any]) -> str:
    policy = settings.get("maxmemory-policy", "noeviction")
    if not str(policy).startswith("allkeys"):
        return ""
    return f"this Redis throws keys away when its memory is full (maxmemory-policy {policy}): set it to noeviction"


def _persistence(settings: dict[Any, Any]) -> str:
    if settings.get("appendonly", "yes") == "yes":
        return ""
    return "this Redis loses what is on its way when it restarts (appendonly no): set it to yes"


def _users(settings: dict[Any, Any]) -> str:
    if settings.get("aclfile", "?"):
        return ""
    return "this Redis forgets who is invited when it restarts: give it an aclfile"


def _transactions(admin: redis.Redis, settings: dict[Any, Any]) -> str:
    """Reading its file, a server is the default user: from 7 on it leaves out transactions this one has no right to."""
    if settings.get("appendonly") != "yes":
        return ""
    try:
        lines = [line.split() for line in map(_text, admin.acl_list())]
    except ResponseError:
        return ""
    rights = next((line for line in lines if line[1] == "default"), [])
    if {"~*", "+@all"} <= set(rights):
        return ""
    return (
        "the default user of this Redis has not all rights, and with that a server loses transactions when it "
        f"restarts: write {DEFAULT_USER!r} into its aclfile, with which nobody can log in either"
    )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
