"""Measurements: ours beside limits and peers, in one run, as ratios."""
