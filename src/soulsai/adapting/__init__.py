"""An agent of the simulator learns a fight that nobody wrote: play there, correct the simulator, train, play again."""
