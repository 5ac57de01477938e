"""Adapters for other people's learners; each needs its library, and soulsgym needs none of them."""
