"""Starts: how a fight may begin."""

from soulsgym.parts.starts.given import given_starts

__all__ = ["given_starts"]
