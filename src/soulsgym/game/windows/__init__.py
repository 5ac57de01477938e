"""How the game layer does it on Windows."""
