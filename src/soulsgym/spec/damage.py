"""What a blow costs: its attack value against defence and absorption.

The formula is the one players worked out and the recorded damages confirm: see docs/data-format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from soulsgym.spec.reader import LARGEST, NotNegative, Table

ATTACK_TYPES = ("standard", "strike", "slash", "thrust")


@dataclass(frozen=True)
class Power:
    """How hard a blow is: an attack value of some type, or, where only that is known, plain damage."""

    attack: Annotated[float, Meta(ge=1.0, le=LARGEST)] = 0.0
    attack_type: str = ""
    damage: NotNegative = 0.0


@dataclass(frozen=True)
class Defence:
    """What stands against a blow: physical defence, and the share of damage that each type of attack gets through."""

    physical: Annotated[float, Meta(ge=1.0, le=LARGEST)]
    absorption: Mapping[str, Annotated[float, Meta(ge=0.0, le=10.0)]]


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


def check_power(table: Table, value: str) -> None:
    """Refuse a blow that has neither damage nor an attack type and a `value` (its key), or both."""
    if value != "attack" and "attack" in table.content:
        raise table.unknown("attack", (value, "attack_type", "damage"))
    if "damage" in table.content:
        for key in (value, "attack_type"):
            if key in table.content:
                raise table.error(key, table.content[key], "stands beside damage; give one of them")
        return
    if value not in table.content:
        raise table.missing(value, f"{value} and attack_type, or damage")
    if "attack_type" not in table.content:
        raise table.missing("attack_type", "a string")
    table.check_known("attack_type", table.content["attack_type"], ATTACK_TYPES)


def check_defence(table: Table, defence: Defence) -> None:
    """Refuse a share of damage for what is no type of attack."""
    for name in defence.absorption:
        if name not in ATTACK_TYPES:
            raise table.error(
                f"absorption.{name}", name, f"is not a type of attack; known are {', '.join(ATTACK_TYPES)}"
            )
