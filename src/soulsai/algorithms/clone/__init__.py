"""Behaviour cloning: do what the recordings show."""
