"""Learning: the loops of one process, and everything around a run."""
