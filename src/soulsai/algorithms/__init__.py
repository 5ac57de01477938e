"""Algorithms, a folder each."""
