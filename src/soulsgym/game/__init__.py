"""A running game: its memory, window, keys and clock, and fights in it."""
