"""FightSpecs: data files, checked, and packed for the simulator."""

from soulsgym.spec.fight import STANDARD, FightSpec, is_path, load_fight, variants

__all__ = ["STANDARD", "FightSpec", "is_path", "load_fight", "variants"]
