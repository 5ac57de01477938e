"""Can it be true what is read from a running game? Nothing is written there before all of it can."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from soulsgym.errors import ReadFailed
from soulsgym.game.addresses import Field, Value, load_attributes, load_bonfires
from soulsgym.game.titles.boss import BossFields, load_boss_fields

if TYPE_CHECKING:
    from soulsgym.game.pointers import Pointers
    from soulsgym.spec.game import GameSetup

CAMERA_M = 30.0
"""A camera is not farther from the player."""
UNIT = 0.1
"""How far the length of the camera's direction may be from 1."""
BOSS_MARGIN_M = 25.0
DOUBTFUL = "guess"


def read_fields(pointers: Pointers, names: Iterable[str]) -> tuple[dict[str, Value], list[str]]:
    """The values of fields, and one sentence for each that cannot be read."""
    values, faults = dict[str, Value](), list[str]()
    for name in names:
        try:
            values[name] = pointers.read(name)
        except ReadFailed as error:
            faults.append(f"{name} cannot be read ({error})")
    return values, faults


def bosses_of(title: str) -> Mapping[str, BossFields]:
    """The fields of each boss of a title."""
    return load_boss_fields(title)


def _names_of(fields: BossFields) -> set[str]:
    switches = {fields.attack_switch[0], *(name for name, _ in (*fields.set, *fields.clear))}
    return {*fields.seen, *fields.other_max_hp, fields.animation_max_time, *switches}


def own_fields(pointers: Pointers, title: str) -> list[str]:
    """The fields that can be read whenever a character is loaded: all but those of bosses, and doubtful ones."""
    bosses = bosses_of(title).values()
    flags = {name for fields in bosses for name, _ in (*fields.set, *fields.clear)}
    theirs = {name for fields in bosses for name in _names_of(fields)} - flags
    return [name for name, field in pointers.table.fields.items() if name not in theirs and field.source != DOUBTFUL]


def value_faults(pointers: Pointers, title: str, bonfire_field: str, size: tuple[int, int] | None = None) -> list[str]:
    """What of the character and the game cannot be true; `size` is that of the window's client area, if it is known."""
    values, faults = read_fields(pointers, own_fields(pointers, title))
    for name, value in values.items():
        faults += range_faults(pointers.table.field(name), value)
    faults += _relations(values)
    if isinstance(stats := values.get("PlayerStats"), bytes):
        faults += attribute_faults(title, stats)
    if isinstance(bonfire := values.get(bonfire_field), int) and bonfire not in load_bonfires(title).names:
        faults.append(f"{bonfire_field} is {bonfire}, which is the id of no bonfire")
    width, height = values.get("WindowScreenWidth"), values.get("WindowScreenHeight")
    if size is not None and None not in (width, height) and (width, height) != size and not values.get("ScreenMode"):
        faults.append(f"the window should be {width!r} x {height!r} by the game's memory and is {size[0]} x {size[1]}")
    return faults


def range_faults(field: Field, value: Value) -> list[str]:
    """What the type and the range of one field say against its value."""
    if isinstance(value, str):
        bad = not value.isascii() or not value.isprintable()
        return [f"{field.name} is no name: {value[:20]!r}"] if bad else []
    if isinstance(value, bytes) or (field.low is None and field.high is None):
        return []
    numbers: Sequence[float] = value if isinstance(value, tuple) else (value,)
    low = -math.inf if field.low is None else field.low
    high = math.inf if field.high is None else field.high
    if all(math.isfinite(number) and low <= number <= high for number in numbers):
        return []
    shown = ", ".join(f"{number:g}" for number in numbers)
    return [f"{field.name} is {shown} and must be from {low:g} to {high:g}"]


def _relations(values: Mapping[str, Any]) -> list[str]:
    faults = []
    for part, whole in (("PlayerHP", "PlayerMaxHP"), ("PlayerSP", "PlayerMaxSP")):
        if part in values and whole in values and values[part] > values[whole]:
            faults.append(f"{part} is {values[part]}, more than {whole}, {values[whole]}")
    if "CamQx" in values:
        *view, _, x, z, y = values["CamQx"]
        length = math.hypot(*view)
        if not abs(length - 1.0) <= UNIT:
            faults.append(f"the camera's direction has length {length:.2f} and not 1")
        if "PlayerX" in values and not (away := math.dist((x, z, y), values["PlayerX"])) <= CAMERA_M:
            faults.append(f"the camera is {away:.0f} m from the player")
    return faults


def attribute_faults(title: str, block: bytes) -> list[str]:
    """What cannot be true of the block of attributes."""
    attributes = load_attributes(title)
    read = {one.name: struct.unpack_from("<i", block, one.offset)[0] for one in attributes}
    faults = [
        f"{one.name} is {read[one.name]} and must be from {one.low} to {one.high}"
        for one in attributes
        if not one.low <= read[one.name] <= one.high
    ]
    for one in attributes:
        total = sum(read.values()) - read[one.name]
        if one.sum_less is not None and not faults and read[one.name] != total - one.sum_less:
            faults.append(
                f"{one.name} is {read[one.name]} and the others' sum of {total} makes it {total - one.sum_less}"
            )
    return faults


def boss_faults(pointers: Pointers, plan: GameSetup) -> list[str] | None:
    """What of a boss cannot be true; None if nothing can be said, since he is not there or the player is elsewhere."""
    fields = bosses_of(plan.title)[plan.boss]
    player = pointers.numbers("PlayerX")
    place = player[0], player[2], player[1]
    if math.dist(place, plan.bonfire_m) > plan.near.bonfire_m and not _is_in_arena(place, plan):
        return None
    # Where he was never met, or is dead by the story's flags, somebody else may have his place.
    met = all(pointers.bit(field, bit) for field, bit in fields.set)
    if not met or any(pointers.bit(field, bit) for field, bit in fields.clear):
        return None
    try:
        seen: dict[str, Any] = pointers.values(*fields.seen, *fields.other_max_hp, fields.animation_max_time)
    except ReadFailed:
        return None  # his map is not loaded
    doubtful = (fields.max_hp, *fields.other_max_hp)
    faults = [
        fault for name, value in seen.items() if name not in doubtful
        for fault in range_faults(pointers.table.field(name), value)
    ]  # fmt: skip
    most, hp = fields.max_in(seen), seen[fields.hp]
    if most != plan.boss_hp:
        tried = ", ".join(f"{name} {seen[name]}" for name in doubtful)
        faults.append(f"the most health of {plan.name} is {plan.boss_hp}, and memory says {tried}")
    elif not 0 <= hp <= most:
        faults.append(f"{plan.name} has {hp} of {most} HP")
    x, z, y = seen[fields.position]
    if not _is_in_arena((x, y, z), plan):
        faults.append(f"{plan.name} is at {x:.0f}, {y:.0f}, {z:.0f}, outside of his arena")
    return faults


def _is_in_arena(place: Sequence[float], plan: GameSetup) -> bool:
    sides = zip(place, plan.low_m, plan.high_m, strict=True)
    return all(low - BOSS_MARGIN_M <= at <= high + BOSS_MARGIN_M for at, low, high in sides)
