"""Equations on tensors: pure functions, time in their names, a file per chapter."""
