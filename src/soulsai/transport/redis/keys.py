"""The names of everything a run keeps in Redis.

What workers read begins with `public:`, what a worker writes with `from:NAME:`. Their rights are made of these names,
so none may hold a colon, or a letter that means something in a pattern.
"""

from __future__ import annotations

import re

from soulsai.errors import TransportError
from soulsai.transport.links import name_of

RUN = re.compile(r"[A-Za-z0-9._-]{1,80}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
WORKER = re.compile(rf"(?P<name>{NAME.pattern})\.[0-9]{{1,6}}\.[0-9a-f]{{6}}")
LONGEST_SHOWN = 100


def check_run(run: str) -> str:
    """The id of a run as it is; TransportError if it cannot be one."""
    return _check(run, RUN, "the id of a run: use 1 to 80 letters, digits, dots, _ and -")


def check_name(name: str) -> str:
    """The name of an invited friend as it is; TransportError if it cannot be one."""
    return _check(name, NAME, "the name of a worker: use 1 to 40 letters, digits, _ and -")


def worker_id(name: str, index: int, life: str) -> str:
    """The id of one life of a worker process; `life` is six random hexadecimal digits."""
    return _check(f"{name}.{index}.{life}", WORKER, "the id of a worker")


def _check(text: str, pattern: re.Pattern[str], what: str) -> str:
    if not pattern.fullmatch(text):
        raise TransportError(f"{text[:LONGEST_SHOWN]!r} cannot be {what}")
    return text


def is_worker(worker: str, name: str | None = None) -> bool:
    """Whether this is the id of a worker, and of this name where one is given."""
    found = WORKER.fullmatch(worker)
    return found is not None and (name is None or found["name"] == name)


class Keys:
    """The keys of one run."""

    def __init__(self, run: str) -> None:
        self.run = check_run(run)
        self.prefix = f"souls:{run}:"
        self.welcome = f"{self.prefix}public:welcome"
        self.policy = f"{self.prefix}public:policy"
        self.version = f"{self.prefix}public:version"
        self.gate = f"{self.prefix}public:gate"
        self.public = f"{self.prefix}public:*"
        self.names = f"{self.prefix}names"
        """The set of everyone invited."""
        self.revoked = f"{self.prefix}revoked"
        """The set of those of whom the learner has yet to drop what is left."""
        self.accounts = f"{self.prefix}counts"
        """The learner's side of all accounts."""
        self.removed = f"{self.prefix}removed"
        """How many entries the learner has removed from the front of each list, and how often it did."""
        self.learner = f"{self.prefix}learner"
        self.owner = f"{self.prefix}owner"
        """The generation of the learner that may write."""
        self.scratch = f"{self.prefix}scratch"

    def experience(self, name: str) -> str:
        """The list of messages that all workers of this name send."""
        return f"{self.prefix}from:{name}:inbox"

    def beats(self, name: str) -> str:
        """The hash with the last heartbeat of each worker of this name."""
        return f"{self.prefix}from:{name}:workers"

    def to(self, name: str) -> str:
        """Commands for the workers of this name."""
        return f"{self.prefix}to:{name}"

    def written_by(self, name: str) -> tuple[str, ...]:
        """The keys that the workers of this name may write; before protocol 3 that was a pattern."""
        return self.experience(name), self.beats(name), f"{self.prefix}from:{name}:*"

    name_of = staticmethod(name_of)
