"""The stages of setting up a fight: each acts on the game and waits until what it is for holds."""
