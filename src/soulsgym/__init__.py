"""Souls boss fights as Gymnasium environments."""
