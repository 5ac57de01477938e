"""Acting: worlds to act in, policies, and what they collect."""
