"""Fights in a simulator that stands in for the game: its numbers are known to its own process alone."""
