"""Train agents that win the boss fights of soulsgym."""
