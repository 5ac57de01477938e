"""The names of everything a run keeps in Redis.

What workers read begins with `public:`, what a worker writes with `from:NAME:`. Their rights are made of these two
beginnings, so no name may hold a colon, or a letter that means something in a pattern.
"""

from __future__ import annotations

import re

from soulsai.errors import TransportError

GROUP = "learner"
"""The consumer group of every stream of experience."""
CONSUMER = "learner"
"""Its one consumer: a learner that is started again finds what it had not settled."""
RUN = re.compile(r"[A-Za-z0-9._-]{1,80}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
WORKER = re.compile(rf"(?P<name>{NAME.pattern})\.[0-9]{{1,6}}\.[0-9a-f]{{6}}")
LONGEST_SHOWN = 100


def check_run(run: str) -> str:
    """The id of a run as it is; TransportError if it cannot be one."""
    if not RUN.fullmatch(run):
        raise TransportError(
            f"{run[:LONGEST_SHOWN]!r} cannot be the id of a run: use 1 to 80 letters, digits, dots, _ and -"
        )
    return run


def check_name(name: str) -> str:
    """The name of an invited friend as it is; TransportError if it cannot be one."""
    if not NAME.fullmatch(name):
        raise TransportError(
            f"{name[:LONGEST_SHOWN]!r} cannot be the name of a worker: use 1 to 40 letters, digits, _ and -"
        )
    return name


def worker_id(name: str, index: int, life: str) -> str:
    """The id of one life of a worker process; `life` is six random hexadecimal digits."""
    worker = f"{name}.{index}.{life}"
    if not is_worker(worker):
        raise TransportError(f"{worker[:LONGEST_SHOWN]!r} cannot be the id of a worker")
    return worker


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
        self.versions = f"{self.prefix}public:versions"
        self.gate = f"{self.prefix}public:gate"
        self.names = f"{self.prefix}names"
        self.accounts = f"{self.prefix}accounts"
        self.learner = f"{self.prefix}learner"
        self.scratch = f"{self.prefix}scratch"
        self.everything = f"{self.prefix}*"
        self.public = f"{self.prefix}public:*"
        self.all_accounts = f"{self.prefix}from:*:account:*"
        self.all_beats = f"{self.prefix}from:*:beat:*"
        self.all_experience = f"{self.prefix}from:*:experience"

    def experience(self, name: str) -> str:
        """The stream of chunks that all workers of this name send."""
        return f"{self.prefix}from:{name}:experience"

    def account(self, worker: str) -> str:
        """The hash in which a worker counts what it has sent and dropped."""
        return f"{self.prefix}from:{self.name_of(worker)}:account:{worker}"

    def beat(self, worker: str) -> str:
        """The stream of one entry that is a worker's last heartbeat."""
        return f"{self.prefix}from:{self.name_of(worker)}:beat:{worker}"

    def to(self, name: str) -> str:
        """Commands for the workers of this name."""
        return f"{self.prefix}to:{name}"

    def written_by(self, name: str) -> str:
        """The pattern of all keys that the workers of this name may write."""
        return f"{self.prefix}from:{name}:*"

    def accounts_of(self, name: str) -> str:
        """The pattern of the accounts of all workers of this name."""
        return f"{self.prefix}from:{name}:account:*"

    @staticmethod
    def name_of(worker: str) -> str:
        """The invited name that a worker belongs to."""
        return worker.partition(".")[0]

    @staticmethod
    def worker_of(key: str | bytes) -> str:
        """The worker whose account or heartbeat this key is."""
        text = key.decode(errors="replace") if isinstance(key, bytes) else key
        return text.rpartition(":")[2]
