"""What a blow costs: its attack value against defence and absorption.

The formula is the one players worked out and the recorded damages confirm: see docs/data-format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soulsgym.spec.reader import Table

ATTACK_TYPES = ("standard", "strike", "slash", "thrust")


@dataclass(frozen=True)
class Power:
    """How hard a blow is: an attack value of some type, or, where only that is known, plain damage."""

    attack: float = 0.0
    attack_type: str = ""
    damage: float = 0.0


@dataclass(frozen=True)
class Defence:
    """What stands against a blow: physical defence, and the share of damage that each type of attack gets through."""

    physical: float
    absorption: Mapping[str, float]


def share_through(ratio: float) -> float:
    """The share of an attack value that is left at a ratio of attack to defence."""
    if ratio < 0.125:
        return 0.1
    if ratio < 1.0:
        return 19.2 / 49.0 * (ratio - 0.125) ** 2 + 0.1
    if ratio < 2.5:
        return 0.7 - 0.4 / 3.0 * (ratio - 2.5) ** 2
    if ratio < 8.0:
        return 0.9 - 0.8 / 121.0 * (ratio - 8.0) ** 2
    return 0.9


def damage_of(power: Power, defence: Defence) -> float:
    """The damage of a blow, not yet rounded."""
    if not power.attack_type:
        return power.damage
    return power.attack * share_through(power.attack / defence.physical) * defence.absorption[power.attack_type]


def parse_power(table: Table) -> Power:
    """`attack` with its `attack_type`, or `damage`."""
    if table.has("damage"):
        if table.has("attack"):
            raise table.error("attack", table.number("attack"), "stands beside damage; give one of them")
        return Power(damage=table.number("damage", low=0.0))
    if not table.has("attack"):
        raise table.error("attack", None, "is missing; give attack and attack_type, or damage")
    return Power(table.number("attack", low=1.0), table.text("attack_type", among=ATTACK_TYPES))


def parse_defence(table: Table) -> Defence:
    """A table with `physical` and `absorption` by type of attack."""
    physical = table.number("physical", low=1.0)
    absorption = table.named("absorption", low=0.0, high=10.0)
    for name in absorption:
        if name not in ATTACK_TYPES:
            raise table.error(f"absorption.{name}", name, f"is no type of attack; known are {', '.join(ATTACK_TYPES)}")
    return Defence(physical, absorption)
