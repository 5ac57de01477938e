"""Movesets: data files, checked, and packed for the simulator."""

from soulsgym.movesets.moveset import STANDARD, Moveset, is_path, load_moveset, variants

__all__ = ["STANDARD", "Moveset", "is_path", "load_moveset", "variants"]
