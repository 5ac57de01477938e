"""Fights as Gymnasium environments."""
