"""SoulsGym's `core` by its own module names, for its users' scripts: each is a few lines over what is here anyway."""

FOLDERS = {"DarkSoulsIII": "darksouls3", "EldenRing": "eldenring"}
"""SoulsGym's id of a game, and the folder of its data."""
