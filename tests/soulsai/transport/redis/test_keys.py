"""Names in Redis."""

from fnmatch import fnmatch

import pytest

from soulsai.errors import TransportError
from soulsai.transport.redis.keys import Keys, check_name, check_run, is_worker, worker_id


def test_keys_of_a_run_are_where_others_look_for_them():
    keys = Keys("iudex-1.2")
    assert keys.welcome == "souls:iudex-1.2:public:welcome"
    assert keys.policy == "souls:iudex-1.2:public:policy"
    assert keys.version == "souls:iudex-1.2:public:version"
    assert keys.gate == "souls:iudex-1.2:public:gate"
    assert keys.names == "souls:iudex-1.2:names"
    assert keys.accounts == "souls:iudex-1.2:counts"
    assert keys.learner == "souls:iudex-1.2:learner"
    assert keys.experience("alice") == "souls:iudex-1.2:from:alice:inbox"
    assert keys.beats("alice") == "souls:iudex-1.2:from:alice:workers"
    assert keys.to("alice") == "souls:iudex-1.2:to:alice"


def test_a_worker_belongs_to_a_name():
    assert Keys.name_of("alice.1.5f3a9c") == "alice"


def test_what_one_name_writes_is_not_what_a_longer_one_writes():
    keys = Keys("r")
    assert {keys.experience("al"), keys.beats("al")} < set(keys.written_by("al"))
    assert not set(keys.written_by("al")) & set(keys.written_by("alice"))
    assert not any(fnmatch(keys.experience("alice"), pattern) for pattern in keys.written_by("al"))


@pytest.mark.parametrize("name", ["a", "Alice_2", "x-y", "n" * 40])
def test_good_names(name):
    assert check_name(name) == name
    assert check_run(name) == name


@pytest.mark.parametrize("name", ["", "a:b", "a*", "a?", "[a]", "a b", "a\n", "a.b", "ä", "a\\", "n" * 41, "a/b", "a%"])
def test_names_that_would_mean_something_else_in_a_pattern(name):
    with pytest.raises(TransportError, match="name of a worker"):
        check_name(name)


@pytest.mark.parametrize("run", ["", "a:b", "a*", "a\n", "a b", "n" * 81, "a/b"])
def test_runs_that_would_mean_something_else(run):
    with pytest.raises(TransportError, match="id of a run"):
        Keys(run)


def test_an_endless_name_is_not_repeated_whole():
    with pytest.raises(TransportError) as caught:
        check_name("x" * 100_000)
    assert len(str(caught.value)) < 300


def test_worker_ids():
    assert worker_id("alice", 12, "5f3a9c") == "alice.12.5f3a9c"
    assert is_worker("alice.12.5f3a9c")
    assert is_worker("alice.12.5f3a9c", "alice")
    assert not is_worker("alice.12.5f3a9c", "bob")
    for wrong in (
        "alice",
        "alice.1",
        "alice.1.5F3A9C",
        "alice.1.5f3a9",
        "alice.x.5f3a9c",
        "a:b.1.5f3a9c",
        "alice.1.5f3a9c\n",
    ):
        assert not is_worker(wrong)
    with pytest.raises(TransportError, match="id of a worker"):
        worker_id("alice", -1, "5f3a9c")
