"""Other processes: one way to start, watch and end them."""
