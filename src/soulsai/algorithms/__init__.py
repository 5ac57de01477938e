"""Algorithms: one Q-learner, one PPO learner."""
