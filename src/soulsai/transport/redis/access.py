"""Who may join: each friend has a user of his own, with the rights that a worker needs and no others."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import redis
from redis.exceptions import NoPermissionError, ResponseError

from soulsai.errors import TransportError
from soulsai.transport.redis.keys import Keys, check_name

COMMANDS = ("rpush", "hset", "get", "llen", "ping", "time")
"""All that a worker needs. AUTH, RESET and QUIT are open to everyone and touch no data; so is HELLO, with which a
connection can take a name as large as a message, so the run's own Redis has none."""
_COMMAND_RIGHTS = tuple(f"+{command}" for command in COMMANDS)
RESERVED = ("admin", "default")
FIRST_WITH_READ_ONLY_KEYS = 7
PASSWORD_BYTES = 24
MOST_DENIALS = 8
"""Denied commands that are looked at, and that the run's own Redis remembers: each may be as large as a message."""
_USER = re.compile(rb" user=(\S+)")

Warn = Callable[[str], None]
log = logging.getLogger(__name__)


def invite(admin: redis.Redis, keys: Keys, name: str, warn: Warn = log.warning) -> str:
    """Let a friend in, and return his password. A new invitation of the same name ends the old one."""
    check_name(name)
    _refuse_foreign(admin, keys, name)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    _manage(admin, "DELUSER", name)  # Ends the connections that the old password opened.
    _manage(admin, "SETUSER", name, "on", f">{password}", *_rights(admin, keys, name))
    _list_as_invited(admin, keys, name)
    _keep_users(admin, warn)
    return password


def revoke(admin: redis.Redis, keys: Keys, name: str, warn: Warn = log.warning) -> None:
    """End an invitation and all its connections at once, and remove all that is in Redis under the name.

    The learner may be dead, paused or busy, and Redis full: nothing here needs either.
    """
    check_name(name)
    there = invited(admin, keys)
    if name not in there:
        raise TransportError(f"{name} is not invited to {keys.run} (invited: {', '.join(there) or 'nobody'})")
    if name in _users_of(admin, keys):
        # First, and each alone: a Redis that is full refuses transactions, but none of these.
        _manage(admin, "DELUSER", name)
    admin.unlink(keys.to(name), keys.experience(name), keys.beats(name))
    if not admin.smove(keys.names, keys.revoked, name):
        admin.sadd(keys.revoked, name)
    _keep_users(admin, warn)


def set_locked(admin: redis.Redis, name: str, *, is_locked: bool) -> bool:
    """Lock an invited name out, with all its connections, or let it in again; False if this user may not do that.

    One that is locked out may log in and do nothing, so that it can tell this from an invitation that has ended.
    """
    client: Any = admin
    try:
        if name not in {line[1] for line in user_lines(admin)}:
            return True  # revoked meanwhile
        _manage(admin, "SETUSER", name, "-@all", *(() if is_locked else _COMMAND_RIGHTS))
        if is_locked:
            client.execute_command("CLIENT", "KILL", "USER", name)
    except (TransportError, NoPermissionError):
        return False
    return True


class Denial(NamedTuple):
    """A command that Redis has denied to a user, as often as it came; logins with a wrong password, too."""

    name: str
    times: int
    last_s: float
    """When the last one came, by the clock of Redis."""
    bytes: int
    """What Redis keeps of it: a key may be as large as a message."""
    key: int
    """By which it is known again."""


def denials(admin: redis.Redis, most: int = MOST_DENIALS) -> list[Denial]:
    """The newest commands that Redis has denied, newest first; none if this user may not see them."""
    client: Any = admin
    with client.pipeline(transaction=False) as pipe:  # in one step: ages are counted from this time
        pipe.time()
        pipe.execute_command("ACL", "LOG", most)
        now, entries = pipe.execute(raise_on_error=False)
    if isinstance(now, Exception):
        raise now
    found = []
    for entry in [] if isinstance(entries, Exception) else entries:
        told = dict(zip(entry[::2], entry[1::2], strict=False))
        # Of a login, the name in Redis's log is the one that was tried: whoever is connected may try any.
        name = _USER.search(told.get(b"client-info", b""))
        words = [told.get(key, b"") for key in (b"reason", b"context", b"object", b"username")]
        last_s = now[0] + now[1] / 1e6 - float(told.get(b"age-seconds", 0.0))
        if name:
            size, key = sum(map(len, words)), hash((name[1], *words))
            found.append(Denial(_text(name[1]), int(told.get(b"count", 1)), last_s, size, key))
    return found


def forget_denials(admin: redis.Redis) -> None:
    """Let Redis forget the commands that it has denied."""
    _manage(admin, "LOG", "RESET")


def renew_rights(admin: redis.Redis, keys: Keys, warn: Warn = log.warning) -> None:
    """Give everyone invited the rights that workers have today, with the passwords of before.

    For a server or a package that was updated, for users whose names Redis has lost with its data, and for those who
    were locked out when the learner ended.
    """
    users = sorted(_users_of(admin, keys))
    for name in users:
        _manage(admin, "SETUSER", name, "on", "resetkeys", *_rights(admin, keys, name))
        _list_as_invited(admin, keys, name)
    if users:
        _keep_users(admin, warn)


def invited(admin: redis.Redis, keys: Keys) -> list[str]:
    """Everyone who may join, also where Redis has lost its data but not its users."""
    listed = {_text(name) for name in admin.smembers(keys.names)}
    return sorted(listed | _users_of(admin, keys))


def _rights(admin: redis.Redis, keys: Keys, name: str) -> list[str]:
    """Servers before 7 know no keys that are for reading only: there the types of the keys protect most of them."""
    major = int(str(admin.info("server")["redis_version"]).partition(".")[0])
    read = "%R~" if major >= FIRST_WITH_READ_ONLY_KEYS else "~"
    return [
        "resetchannels",
        "-@all",
        *_COMMAND_RIGHTS,
        f"~{keys.experience(name)}",
        f"~{keys.beats(name)}",
        f"{read}{keys.public}",
        f"{read}{keys.to(name)}",
    ]


def _manage(admin: redis.Redis, *words: str) -> Any:
    client: Any = admin
    try:
        return client.execute_command("ACL", *words)
    except NoPermissionError as error:
        raise TransportError(
            f"this Redis user has no right to manage users ({error}): serve with one that may use ACL commands"
        ) from error


def _list_as_invited(admin: redis.Redis, keys: Keys, name: str) -> None:
    with admin.pipeline(transaction=True) as pipe:
        pipe.srem(keys.revoked, name)
        pipe.sadd(keys.names, name)
        pipe.execute()


def _refuse_foreign(admin: redis.Redis, keys: Keys, name: str) -> None:
    """A Redis may serve several runs, and other programs: their users are not ours to change."""
    if name.lower() in RESERVED or name in {line[1] for line in user_lines(admin)} - _users_of(admin, keys):
        raise TransportError(f"{name} is a user of this Redis already, for something else: choose another name")


def _users_of(admin: redis.Redis, keys: Keys) -> set[str]:
    """Users that may write what workers of this run write under their name."""
    return {line[1] for line in user_lines(admin) if {f"~{key}" for key in keys.written_by(line[1])} & set(line)}


def user_lines(admin: redis.Redis) -> list[list[str]]:
    """All users of this Redis and their rights, each in words."""
    return [_text(line).split() for line in _manage(admin, "LIST")]


def _keep_users(admin: redis.Redis, warn: Warn) -> None:
    """Users outlive a restart only where the server has a file for them."""
    try:
        admin.acl_save()
    except ResponseError as error:
        warn(
            f"this Redis does not keep its users ({error}): after its restart everyone has to be invited again, unless "
            "it is given an aclfile"
        )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
