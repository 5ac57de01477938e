"""Names as players read them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from soulsgym.actions import ACTION_NAMES, DIRECTIONS, Button
from soulsgym.errors import MisuseError
from soulsgym.labels import boss_moves_by_label
from soulsgym.spec import FightSpec, is_path
from soulsgym.spec.fight import DATA

NAMES = DATA / "names.toml"
UNKNOWN = "unknown"
BUTTON_NAMES = {Button.LIGHT: "light attack", Button.HEAVY: "heavy attack", Button.PARRY: "parry"}
DIRECTION_NAMES = dict(
    zip(
        DIRECTIONS,
        ("forward", "forward right", "right", "back right", "back", "back left", "left", "forward left"),
        strict=True,
    )
)


def plain_name(name: str) -> str:
    """A name of the data files in words: beast_tail as beast tail, RunStopLeft as run stop left."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])|_", " ", name).lower()


@lru_cache(maxsize=64)
def names_table(boss: str = "") -> Mapping[str, Mapping[str, str]]:
    """The tables of names.toml; those of a file beside a boss file of the user's own come first."""
    beside = Path(boss).with_name(NAMES.name) if is_path(boss) else NAMES
    tables: dict[str, Mapping[str, str]] = {}
    for file in dict.fromkeys((NAMES, beside)):
        for key, table in _tables_of(file).items():
            tables[key] = {**tables.get(key, {}), **table}
    return tables


def _tables_of(file: Path) -> dict[str, dict[str, str]]:
    if not file.is_file():
        return {}
    try:
        return msgspec.toml.decode(file.read_bytes(), type=dict[str, dict[str, str]])
    except (OSError, ValueError) as error:
        raise MisuseError(f"{file}: is not a table of names ({error}); write them as in {NAMES}") from error


def move_name(boss: str, move: str) -> str:
    """A boss's move as players call it; `boss` is a name or the path of a boss file."""
    tables, own = names_table(boss), Path(boss).stem
    return tables.get(own, {}).get(move) or tables["every_boss"].get(move) or _capitalised(plain_name(move))


def player_name(move: str, boss: str = "") -> str:
    """What the player does, by animation of the game or move of his file."""
    return names_table(boss)["player"].get(move) or _capitalised(plain_name(move))


def killer_name(spec: FightSpec, move: int) -> str:
    """The move with this number; nothing if there is none."""
    return move_name(spec.boss_name, spec.boss.moves[move].name) if 0 <= move < len(spec.boss.moves) else ""


def action_names() -> list[str]:
    """By number: an action of the environments, with an arrow for its direction."""
    return [names_table()["action"][name] for name in ACTION_NAMES]


def action_sentences() -> list[str]:
    """By number: what somebody does who takes an action, as "rolls right"."""
    return [names_table()["wants"][name] for name in ACTION_NAMES]


def sight_groups(sights: Sequence[str], spec: FightSpec) -> list[tuple[str, list[str]]]:
    """The numbers of an observation that stand together, in order: what they are about, and a name for each."""
    titles = names_table()["sight"]
    boss = dict(zip(spec.boss_animations, boss_label_names(spec, 1), strict=False))
    of_block: dict[str, Callable[[str], str]] = {
        "player_is": lambda name: player_name(name, spec.boss_name),
        "boss_is": lambda name: boss.get(name, _capitalised(plain_name(name))),
        "boss_was": lambda name: boss.get(name, _capitalised(plain_name(name))),
        "pressed": lambda name: names_table()["action"].get(name.replace("_", " "), name),
    }

    def block_of(name: str) -> str:
        return next((block for block in titles if name.startswith(f"{block}_")), "")

    groups = []
    for block, members in itertools.groupby(sights, block_of):
        shown = of_block.get(block, _with_spaces)
        names = [shown(name[len(block) + 1 :] if block else name) for name in members]
        groups.append((titles.get(block, "Health, places and speeds"), names))
    return groups


def _with_spaces(name: str) -> str:
    return name.replace("_", " ")


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]


def control_name(control: np.void) -> str:
    """What was pressed, in words."""
    direction, button = int(control["direction"]), Button(int(control["button"]))
    way = DIRECTION_NAMES[DIRECTIONS[direction]] if 0 <= direction < len(DIRECTIONS) else ""
    if button == Button.NONE:
        return f"walk {way}" if way else "nothing"
    if button == Button.ROLL:
        return f"roll {way}" if way else "backstep"
    return f"{way} {BUTTON_NAMES[button]}".strip()


def player_label_names(spec: FightSpec) -> list[str]:
    """By label: what the player does; the last one stands for the unknown label, -1."""
    player = spec.player
    known = dict.fromkeys((*player.flinch_animations, player.flinch_after_animation), "flinch")
    known |= dict.fromkeys(player.fall_animations, "fall") | dict.fromkeys(player.roll.animations, "roll")
    for move in reversed(player.moves):
        known[move.animation] = move.name
    names = (known.get(label.name, label.name) for label in spec.player_animations)
    return [*(player_name(name, spec.boss_name) for name in names), UNKNOWN]


def boss_label_names(spec: FightSpec, phase: int) -> list[str]:
    """By label: what the boss does in a phase; the last one stands for the unknown label, -1."""
    moves, known = boss_moves_by_label(spec, phase), {move.animation: move.name for move in reversed(spec.boss.moves)}
    names = (
        spec.boss.moves[moves[i]].name if i in moves else known.get(name, name)
        for i, name in enumerate(spec.boss_animations)
    )
    return [*(move_name(spec.boss_name, name) for name in names), UNKNOWN]
