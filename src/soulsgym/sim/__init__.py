"""The simulator: all the Numba kernels, and the engine around them."""
