"""Several things in one step, also where no memory is left."""

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from soulsai.transport.redis.writing import MOST_WORDS, in_pieces, write_at_once


def test_all_commands_are_run_in_order(admin, keys):
    write_at_once(
        admin,
        keys.scratch,
        [("SET", keys.policy, b"\x00\xff binary"), ("HSET", keys.accounts, "a", 1, "b", 2), ("DEL", keys.policy)],
    )
    assert admin.get(keys.policy) is None
    assert admin.hgetall(keys.accounts) == {b"a": b"1", b"b": b"2"}


def test_a_full_redis_still_takes_it(admin, keys):
    admin.set(keys.welcome, b"0" * 100_000)
    before = admin.config_get("maxmemory")["maxmemory"]
    admin.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            admin.hset(keys.accounts, "a", 1)
        write_at_once(admin, keys.scratch, [("HSET", keys.accounts, "a", 1), ("SET", keys.gate, b"open")])
    finally:
        admin.config_set("maxmemory", before)
    assert admin.hget(keys.accounts, "a") == b"1"


def test_a_wrong_command_is_an_error(admin, keys):
    admin.set(keys.policy, b"text")
    with pytest.raises(ResponseError):
        write_at_once(admin, keys.scratch, [("HSET", keys.policy, "a", 1)])


def test_many_ids_go_in_pieces():
    ids = [b"%d" % number for number in range(2 * MOST_WORDS + 1)]
    pieces = list(in_pieces(ids))
    assert [len(piece) for piece in pieces] == [MOST_WORDS, MOST_WORDS, 1]
    assert [entry for piece in pieces for entry in piece] == ids


def test_thousands_of_ids_in_one_step(admin, keys):
    stream = keys.experience("alice")
    ids = [admin.xadd(stream, {"f": b"x"}) for _ in range(2 * MOST_WORDS + 5)]
    write_at_once(admin, keys.scratch, [("XDEL", stream, *piece) for piece in in_pieces(ids)])
    assert admin.xlen(stream) == 0
