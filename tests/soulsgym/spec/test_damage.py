"""Damaged files: whatever is in them, loading ends in a moveset that can be played or in an error that says why not."""

import re
import shutil
import tomllib
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.engine import standard_starts
from soulsgym.errors import DataError
from soulsgym.sim.engine import SimEngine
from soulsgym.spec.arena import parse_arena
from soulsgym.spec.boss import parse_boss
from soulsgym.spec.fight import DATA, FightSpec, check_attack_types
from soulsgym.spec.player import parse_animations, parse_player
from soulsgym.spec.title import Title

GONE = object()
DAMAGES = (GONE, "word", -1.0, 0, 1e300, 10**400, float("nan"), True, [], [0.5, 0.5], [[1.0]], {}, {"a": 1.0})
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "add-a-boss.md"
TITLE, KNIGHT = "darksouls3", "characters/knight.toml"
FILES = ("animations.toml", KNIGHT, "arenas.toml", "boss")
STEPS = 4


@pytest.fixture(scope="module")
def contents():
    """The files of the guide's small boss, parsed, by name."""
    blocks = dict(re.findall(r"^```toml\n# (\S+)\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    texts = {name: (DATA / TITLE / name).read_text("utf-8") + blocks.get(name, "") for name in FILES[:3]}
    return {name: tomllib.loads(text) for name, text in (texts | {"boss": blocks["sentinel.toml"]}).items()}


def assemble(contents):
    """What load_fight does with the content of its files."""
    files = {name: Path(name) for name in FILES}
    labels, boss_labels = parse_animations(files["animations.toml"], contents["animations.toml"], "sentinel")
    player = parse_player(files[KNIGHT], contents[KNIGHT], tuple(label.name for label in labels))
    reactions = tuple(move.name for move in player.moves if move.kind in ("reaction", "grabbed"))
    boss = parse_boss(files["boss"], contents["boss"], boss_labels, reactions)
    check_attack_types(boss, files["boss"], player, files[KNIGHT])
    arena = parse_arena(files["arenas.toml"], contents["arenas.toml"], boss.arena)
    return FightSpec(boss, player, arena, labels, boss_labels, Title(TITLE, ()))


def places(content, path=""):
    """Every value of parsed TOML, tables included: what holds it, its key, its path. Of lists the first two rows."""
    items = content.items() if isinstance(content, dict) else enumerate(content[:2])
    for key, value in list(items):
        yield content, key, f"{path}.{key}"
        if isinstance(value, (dict, list)):
            yield from places(value, f"{path}.{key}")


def damaged(holder, key, damage):
    """Do the damage; the way to undo it."""
    before = list(holder) if isinstance(holder, list) else dict(holder)
    if damage is GONE:
        del holder[key]
    else:
        holder[key] = damage

    def undo():
        holder.clear()
        holder.extend(before) if isinstance(holder, list) else holder.update(before)

    return undo


def play(spec):
    """A few steps with randomisation; everything the record shows must stay finite."""
    try:
        engine = SimEngine(spec, n=2, randomize=1.0)
    except DataError:
        return
    engine.reset(np.ones(2, np.bool_), standard_starts(2), np.arange(2, dtype=np.uint64))
    for action in range(STEPS):
        engine.step(ACTION_CONTROLS[[5 * action, 19]])
    for key in ("player_pose", "boss_pose", "camera_pose", "player_hp", "player_sp", "boss_hp"):
        assert np.isfinite(engine.fights[key]).all(), key


def check(contents, holder, key, path, damage):
    undo = damaged(holder, key, damage)
    try:
        spec = assemble(contents)
    except DataError:
        return
    except Exception as error:
        raise AssertionError(f"{path} = {damage!r}: {error!r}") from error
    finally:
        undo()
    play(spec)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "times"), [("animations.toml", 2), (KNIGHT, 2), ("arenas.toml", 4), ("boss", 5)])
def test_every_value_damaged(contents, name, times):
    """Every value in so many ways; the ways take turns."""
    damages = cycle(DAMAGES)
    for holder, key, path in list(places(contents[name])):
        for damage in islice(damages, times):
            check(contents, holder, key, path, damage)
    assemble(contents)


@pytest.mark.slow
def test_shipped_boss_damaged(data, contents):
    boss = data.content("bosses/iudex.toml")
    animations = contents["animations.toml"]
    labels = tuple(animations["boss"]["iudex"]["animations"])
    names = tuple(row["name"] for row in animations["player"]["animations"])
    player = parse_player(Path(KNIGHT), contents[KNIGHT], names)
    reactions = tuple(move.name for move in player.moves if move.kind in ("reaction", "grabbed"))
    refused = 0
    for (holder, key, path), damage in zip(list(places(boss))[::2], cycle(DAMAGES), strict=False):
        undo = damaged(holder, key, damage)
        try:
            parse_boss(Path("boss"), boss, labels, reactions)
        except DataError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{path} = {damage!r}: {error!r}") from error
        finally:
            undo()
    assert refused > 250


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("file", [KNIGHT, "arenas.toml", "animations.toml", "bosses/iudex.toml"])
def test_file_cut_off(data, tmp_path, file, share):
    whole = (data.path / file).read_bytes()
    (data.path / file).write_bytes(whole[: int(share * len(whole))])
    assert data.refusal().file.endswith(file)
    shutil.rmtree(tmp_path)
