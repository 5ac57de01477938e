"""Soft actor-critic for discrete actions."""
