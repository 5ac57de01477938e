"""The terms of invitations: when they end, and on how many machines at once they hold.

Whoever serves the run ends those whose time is over; a gateway counts machines.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soulsai.errors import TransportError
from soulsai.transport.redis.access import Warn, invited, log, revoke
from soulsai.transport.redis.keys import Keys

UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}


class Terms(msgspec.Struct, frozen=True):
    """Of one invitation, by the clock of Redis."""

    since_s: float
    until_s: float = 0.0  # 0: it does not end by itself
    machines: int = 0  # 0: any number


_terms = msgspec.msgpack.Decoder(Terms)


def seconds_of(text: str) -> float:
    """Of a time such as 30m, 12h or 7d; 0 if it is empty."""
    if not text:
        return 0.0
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit() or not 0 < int(number) <= 100_000:
        raise TransportError(f"{text[:40]!r} is not a time: give a number and m, h or d, such as 12h or 7d")
    return int(number) * UNITS[unit]


def set_terms(admin: Any, keys: Keys, name: str, *, lasts_s: float = 0.0, machines: int = 0) -> None:
    """Set the terms of an invitation that has just been made."""
    now_s = _now_s(admin)
    terms = Terms(now_s, now_s + lasts_s if lasts_s else 0.0, machines)
    admin.hset(_key(keys), name, msgspec.msgpack.encode(terms))
    admin.set(machines_key(keys, name), str(machines)) if machines else admin.delete(machines_key(keys, name))


def terms_of(admin: Any, keys: Keys) -> dict[str, Terms]:
    """Of everyone invited; those of before have begun at 0."""
    found = {key.decode(): _read(data) for key, data in admin.hgetall(_key(keys)).items()}
    return {name: found.get(name, Terms(0.0)) for name in invited(admin, keys)}


def end_invitation(admin: Any, keys: Keys, name: str, warn: Warn = log.warning) -> None:
    """Revoke it, and forget its terms."""
    revoke(admin, keys, name, warn)
    admin.hdel(_key(keys), name)
    admin.delete(machines_key(keys, name))


def end_those_over(admin: Any, keys: Keys, warn: Warn = log.warning) -> list[str]:
    """End the invitations whose time is over; whose that were."""
    now_s = _now_s(admin)
    over = [name for name, terms in terms_of(admin, keys).items() if 0.0 < terms.until_s <= now_s]
    for name in over:
        end_invitation(admin, keys, name, warn)
    return over


def machines_key(keys: Keys, name: str) -> str:
    """Where a gateway, which has the rights of the name alone, finds how many machines it may use at once."""
    return f"{keys.prefix}public:machines:{name}"


def _key(keys: Keys) -> str:
    return f"{keys.prefix}invitations"


def _read(data: bytes) -> Terms:
    try:
        return _terms.decode(data)
    except msgspec.MsgspecError:
        return Terms(0.0)


def _now_s(admin: Any) -> float:
    seconds, micros = admin.time()
    return float(seconds) + float(micros) / 1e6
