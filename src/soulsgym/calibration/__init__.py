"""From recordings to a boss's numbers: what is seen of each, how sure it is, and what is not known yet."""
