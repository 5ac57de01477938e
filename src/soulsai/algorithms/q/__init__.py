"""Q-learning, from DQN to Rainbow."""
