"""Sweeps: many short training runs that look for better settings, and an honest report of what was found."""
