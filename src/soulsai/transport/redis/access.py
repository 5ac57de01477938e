"""Who may join: each friend has a user of his own, with the rights that a worker needs and no others."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import redis
from redis.exceptions import NoPermissionError, ResponseError

from soulsai.errors import TransportError
from soulsai.transport.redis.keys import GROUP, Keys, check_name

COMMANDS = (
    "xadd",
    "hset",
    "get",
    "xlen",
    "xread",
    "multi",
    "exec",
    "ping",
    "time",
    "client|setname",
)
"""All that a worker needs. AUTH, HELLO, RESET and QUIT are open to everyone and touch no data."""
RESERVED = ("admin", "default")
FIRST_WITH_READ_ONLY_KEYS = 7
PASSWORD_BYTES = 24
BATCH = 500

Warn = Callable[[str], None]
log = logging.getLogger(__name__)


def invite(admin: redis.Redis, keys: Keys, name: str, warn: Warn = log.warning) -> str:
    """Let a friend in, and return his password. A new invitation of the same name ends the old one.

    A stream and its group are there before the first worker is: what it sends is never too early.
    """
    check_name(name)
    _refuse_foreign(admin, keys, name)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    _make_group(admin, keys, name)
    _in_one_step(
        admin,
        ("ACL DELUSER", name),  # Ends the connections that the old password opened.
        ("ACL SETUSER", name, "on", f">{password}", *_rights(admin, keys, name)),
        ("SADD", keys.names, name),
    )
    _keep_users(admin, warn)
    return password


def revoke(admin: redis.Redis, keys: Keys, name: str, warn: Warn = log.warning) -> None:
    """End an invitation and all its connections at once.

    Its accounts stay for the books, and what is on its way stays until the learner has counted it as dropped.
    """
    check_name(name)
    there = invited(admin, keys)
    if name not in there:
        raise TransportError(f"{name} is not invited to {keys.run} (invited: {', '.join(there) or 'nobody'})")
    user = [("ACL DELUSER", name)] if name in _users_of(admin, keys) else []
    _in_one_step(admin, *user, ("SREM", keys.names, name), ("DEL", keys.to(name)))
    _keep_users(admin, warn)
    _remove_leftovers(admin, keys, name)


def renew_rights(admin: redis.Redis, keys: Keys, warn: Warn = log.warning) -> None:
    """Give everyone invited the rights that workers have today, with the passwords of before.

    For a server or a package that was updated, and for users whose names Redis has lost with its data.
    """
    users = sorted(_users_of(admin, keys))
    for name in users:
        _make_group(admin, keys, name)
        rules = ("resetkeys", *_rights(admin, keys, name))
        _in_one_step(admin, ("ACL SETUSER", name, *rules), ("SADD", keys.names, name))
    if users:
        _keep_users(admin, warn)


def invited(admin: redis.Redis, keys: Keys) -> list[str]:
    """Everyone who may join, also where Redis has lost its data but not its users."""
    listed = {_text(name) for name in admin.smembers(keys.names)}
    return sorted(listed | _users_of(admin, keys))


def _rights(admin: redis.Redis, keys: Keys, name: str) -> list[str]:
    """Servers before 7 know no keys that are for reading only: there the types of the keys protect most of them."""
    read = "%R~" if _version(admin) >= FIRST_WITH_READ_ONLY_KEYS else "~"
    return [
        "resetchannels",
        "-@all",
        *(f"+{command}" for command in COMMANDS),
        f"~{keys.written_by(name)}",
        f"{read}{keys.public}",
        f"{read}{keys.to(name)}",
    ]


def _in_one_step(admin: redis.Redis, *commands: Sequence[str]) -> None:
    try:
        with admin.pipeline(transaction=True) as pipeline:
            steps: Any = pipeline
            for command in commands:
                steps.execute_command(*command)
            steps.execute()
    except NoPermissionError as error:
        raise _cannot_invite(error) from error


def _version(admin: redis.Redis) -> int:
    return int(str(admin.info("server")["redis_version"]).partition(".")[0])


def _refuse_foreign(admin: redis.Redis, keys: Keys, name: str) -> None:
    """A Redis may serve several runs, and other programs: their users are not ours to change."""
    if name.lower() in RESERVED or name in _all_users(admin) - _users_of(admin, keys):
        raise TransportError(f"{name} is a user of this Redis already, for something else: choose another name")


def _all_users(admin: redis.Redis) -> set[str]:
    return {line[1] for line in _user_lines(admin)}


def _users_of(admin: redis.Redis, keys: Keys) -> set[str]:
    """Users that may write what workers of this run write under their name."""
    return {line[1] for line in _user_lines(admin) if f"~{keys.written_by(line[1])}" in line}


def _user_lines(admin: redis.Redis) -> list[list[str]]:
    try:
        return [_text(line).split() for line in admin.acl_list()]
    except ResponseError as error:
        raise _cannot_invite(error) from error


def _make_group(admin: redis.Redis, keys: Keys, name: str) -> None:
    try:
        admin.xgroup_create(keys.experience(name), GROUP, id="0", mkstream=True)
    except ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):
            raise


def _keep_users(admin: redis.Redis, warn: Warn) -> None:
    """Users outlive a restart only where the server has a file for them."""
    try:
        admin.acl_save()
    except ResponseError as error:
        warn(
            f"this Redis does not keep its users ({error}): after its restart everyone has to be invited again, unless "
            "it is given an aclfile"
        )


def _remove_leftovers(admin: redis.Redis, keys: Keys, name: str) -> None:
    """Everything the name has written, but its accounts and its experience."""
    kept = (keys.experience(name), keys.accounts_of(name).rstrip("*"))
    found = list(admin.scan_iter(match=keys.written_by(name), count=BATCH))
    gone = [key for key in found if _text(key) != kept[0] and not _text(key).startswith(kept[1])]
    for start in range(0, len(gone), BATCH):
        admin.unlink(*gone[start : start + BATCH])


def _cannot_invite(error: Exception) -> TransportError:
    return TransportError(f"this Redis user may not manage users ({error}): serve with one that may use ACL commands")


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
