"""What is known of each game without running it: SoulsGym's tables by the id of the game, made of our data files.

They are for reading. An environment takes its numbers from the files themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from soulsgym.actions import ACTION_CONTROLS, DIRECTIONS, NO_DIRECTION, Button
from soulsgym.core import FOLDERS
from soulsgym.game.addresses import load_addresses, load_bonfires
from soulsgym.game.keyboard import load_bindings
from soulsgym.game.titles import TITLES
from soulsgym.game.titles.title import FightTitle
from soulsgym.game.windows.keys import virtual_key
from soulsgym.spec import FightSpec, load_fight
from soulsgym.spec.fight import DATA

Tables = dict[str, dict[str, Any]]
"""By the id of the game, then by name."""

HELD = {"F": "forward", "R": "right", "B": "backward", "L": "left"}
PRESSED = {Button.ROLL: "roll", Button.LIGHT: "lightattack", Button.HEAVY: "heavyattack", Button.PARRY: "parry"}
HURT = ("SABreak", "Damage")
"""How the names of a boss's animations begin that are neither an attack nor movement."""
DEATH = "Idle"
"""How the name of the animation goes on in which a dead player lies."""


def _fights(folder: str) -> dict[str, FightSpec]:
    """The fights of a title that are known for the running game, by the name of their boss."""
    files = sorted(file for file in (DATA / folder / "bosses").glob("*.toml") if "." not in file.stem)
    specs = {file.stem: load_fight(file.stem, moves=False) for file in files}
    return {name: spec for name, spec in specs.items() if spec.boss.game is not None}


def _keys_of(action: Any) -> list[str]:
    direction = "" if action["direction"] == NO_DIRECTION else DIRECTIONS[action["direction"]]
    return [HELD[letter] for letter in direction] + [PRESSED[key] for key in PRESSED if key == action["button"]]


def _coordinates(spec: FightSpec) -> dict[str, Any]:
    game = spec.game
    places = {
        "bonfire": game.bonfire_m,
        "fog_wall": game.fog_wall,
        "post_fog_wall": game.behind_fog_m,
        "center": (*game.centre_m, game.boss_start[2], 0.0),
        "player_init_pose": game.player_start,
        "player_init_poses_random": game.player_starts,
        "boss_init_pose": game.boss_start,
    }
    return {name: np.array(place) for name, place in places.items()}


def _boss_animations(spec: FightSpec, attacks: tuple[str, ...]) -> dict[str, Any]:
    kinds: dict[str, list[str]] = {"attacks": [], "movement": [], "misc": []}
    named: dict[str, Any] = {}
    for number, name in enumerate(spec.boss_animations):
        kind = "attacks" if name.startswith(attacks) else "misc" if name.startswith(HURT) else "movement"
        kinds[kind].append(name)
        named[name] = {"ID": number, "type": kind}
    return {**kinds, "all": named}


def _player_animations(spec: FightSpec) -> dict[str, Any]:
    return {
        label.name: {"timings": [label.attack_s, label.roll_s, label.move_s], "ID": number}
        for number, label in enumerate(spec.player_animations)
    }


keybindings: Tables = {}
"""The key of each action, as the game's settings must say."""
keymap: Tables = {}
"""Windows' number of each key."""
actions: dict[str, dict[int, list[str]]] = {}
"""What is pressed for each action of the environments."""
coordinates: Tables = {}
"""By boss, the places that a fight is set up by."""
player_animations: Tables = {}
"""The number of each animation, and the seconds after which it accepts attacks, rolls and movement."""
critical_player_animations: Tables = {}
"""Animations in which the player is dead."""
boss_animations: Tables = {}
"""By boss, the number and kind of each of his animations."""
player_stats: Tables = {}
"""By boss, the attributes of the character who fights him."""
bonfires: Tables = {}
"""The number of each bonfire."""
address_bases: Tables = {}
"""Where the executable has a pointer from which values are reached."""
address_base_patterns: Tables = {}
"""The code that uses such a pointer."""
addresses: Tables = {}
"""The base, the offsets and the type of each value."""


def _fill(game_id: str, folder: str) -> None:
    fights, table, title = _fights(folder), load_addresses(folder), TITLES[folder]
    first = next(iter(fights.values()), None)
    fighting = title if issubclass(title, FightTitle) else None
    keybindings[game_id] = load_bindings(folder)
    keymap[game_id] = {key: virtual_key(key) for key in keybindings[game_id].values()}
    actions[game_id] = dict(enumerate(map(_keys_of, ACTION_CONTROLS))) if fights else {}
    coordinates[game_id] = {boss: _coordinates(spec) for boss, spec in fights.items()}
    player_animations[game_id] = _player_animations(first) if first else {}
    dead = fighting.death_animations if fighting else ()
    critical_player_animations[game_id] = {f"{name}{DEATH}": [0.0, 0.0, 0.0] for name in dead}
    attacks = fighting.attack_animations if fighting else ()
    boss_animations[game_id] = {boss: _boss_animations(spec, attacks) for boss, spec in fights.items()}
    player_stats[game_id] = {boss: list(spec.game.attributes) for boss, spec in fights.items()}
    bonfires[game_id] = dict(load_bonfires(folder).ids)
    address_bases[game_id] = {base.name: base.rva for base in table.bases.values() if base.rva is not None}
    address_base_patterns[game_id] = {
        base.name: {"pattern": base.pattern.text} for base in table.bases.values() if base.pattern
    }
    addresses[game_id] = {
        one.name: {"base": one.base, "offsets": list(one.offsets), "type": one.type.name}
        for one in table.fields.values()
    }


for _game_id, _folder in FOLDERS.items():
    _fill(_game_id, _folder)
