"""Errors of training, on top of those of the simulator.

SoulsError            soulsgym.errors
├── ConfigError       a setting is unknown, out of its limits, or does not fit another
├── RunError          a run's files are damaged, missing, or cannot be written
├── TransportError    another machine or process cannot be reached, or does not fit
└── PreflightError    a run would most likely lead nowhere, and nobody said that this is intended
"""

from __future__ import annotations

from soulsgym.errors import SoulsError


class ConfigError(SoulsError):
    """A setting that training cannot use."""


class RunError(SoulsError):
    """Files of a run that cannot be read or written."""


class PreflightError(SoulsError):
    """Findings of the preflight that were not accepted."""


class TransportError(SoulsError):
    """Another machine or process that cannot be reached, is refused, or does not fit this one."""
