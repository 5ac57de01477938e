"""Preflight: what can be known to spoil a run, looked for before its first step."""

from soulsai.algorithms.findings import MEANINGS, Finding
from soulsai.learning.preflight.verdict import findings, preflight

__all__ = ["MEANINGS", "Finding", "findings", "preflight"]
