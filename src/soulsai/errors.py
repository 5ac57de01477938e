"""Errors of training, on top of those of the simulator.

SoulsError            soulsgym.errors
├── ConfigError       a setting is unknown, out of its limits, or does not fit another
├── RunError          a run's files are damaged, missing, or cannot be written
│   └── RunFinished   a run that is to be continued has nothing left to do; no failure
├── DivergedError     training has broken its networks: weights or losses are no longer numbers
├── TransportError    another machine or process cannot be reached, or does not fit
│   └── OtherVersion  the learner has another version, which can be installed here
├── WorkerError       a worker cannot play
└── PreflightError    a run would most likely lead nowhere, and nobody said that this is intended
"""

from __future__ import annotations

from soulsgym.errors import SoulsError


class ConfigError(SoulsError):
    """A setting that training cannot use."""


class RunError(SoulsError):
    """Files of a run that cannot be read or written."""


class RunFinished(RunError):
    """A run that has nothing left to do."""

    exit_code = 0


class DivergedError(SoulsError):
    """Weights or losses that are no longer numbers."""


class PreflightError(SoulsError):
    """Findings of the preflight that were not accepted."""


class TransportError(SoulsError):
    """Another machine or process that cannot be reached, is refused, or does not fit this one."""


class OtherVersion(TransportError):
    """A learner of another version; `install` is what to give pip to have the same."""

    install: tuple[str, ...] = ()


class WorkerError(SoulsError):
    """A worker that cannot play, most likely because its environment or game cannot be opened."""
