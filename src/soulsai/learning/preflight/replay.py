"""Whether the replay fits into memory."""

from __future__ import annotations

from collections.abc import Iterator

from soulsai.config.schema import Config
from soulsai.learning.preflight.finding import Finding
from soulsai.learning.preflight.sample import Sample
from soulsai.replay import TransitionStore
from soulsai.replay.memory import BYTES_PER_GB, refuse_if_too_large
from soulsgym.errors import MisuseError


def replay_need(config: Config, sample: Sample) -> str:
    """The memory it takes, in a line."""
    needed_gb = _bytes(config, sample) / BYTES_PER_GB
    return f"replay needs {needed_gb:.{1 if needed_gb >= 0.1 else 3}f} GB when full"


def replay_findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """A replay that is larger than the memory that is free."""
    if config.algorithm != "q":
        return
    try:
        refuse_if_too_large(_bytes(config, sample), f"replay.capacity = {config.replay.capacity}")
    except MisuseError as error:
        yield Finding("replay-too-large", str(error))


def _bytes(config: Config, sample: Sample) -> int:
    return TransitionStore.bytes_needed(config.replay.capacity, len(sample.names), sample.num_actions)
