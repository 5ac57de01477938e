"""Counts of measured, derived, public and guessed numbers."""

import tomllib
from pathlib import Path

import pytest

from soulsgym.errors import DataError, MisuseError
from soulsgym.spec.fight import DATA
from soulsgym.spec.provenance import boss_provenance, data_provenance, file_provenance

VARIANT = """
[body]
hp = 900
source = { hp = "measured" }

[defence]
absorption = { thrust = 0.8, slash = 0.9 }
source = "derived"

[phase.1.after]
near_s = [1.0, 2.0]
far_s = [2.0, 3.0]
retreats = [{ gap_m = [0.0, 2.0], chance = 0.5, lasts_s = [2.0, 3.0] }]
source = "derived"

[[phase.1.interrupt]]
moves = ["sweep"]
at_s = 0.5
gap_m = [1.0, 2.0]
act = "thrust"
source = "public"

[move.run]
animation = "WalkFrontBattle"
kind = "walk"
label_end_s = 9.0
end_s = 9.0
source = "guess"

[move.hop]
animation = "FallingDefault"
kind = "hop"
label_end_s = 0.6
end_s = 0.6
source = "measured"
motion = { first_s = 0.1, step_s = 0.1, forward_m = [-1.0, -1.0], source = "derived" }

[phase.1.act.hop]
cooldown_s = 5.0
after_odds = 0.0
then = { thrust = 1.0, chop = 2.0 }
source = "guess"

[[phase.1.rule]]
gap_m = [0.0, 99.0]
weights = { thrust = 3, chop = 1.5, turn = 1 }
source = { "*" = "public", gap_m = "guess" }

[phase.1.act.thrust]
source = "measured"
run = { from_m = 8.0, chance = 0.5, approach_m = 7.0 }
chains = [
  { weight = 30.0, links = [{ move = "slam", within_m = 8.5, bearing_deg = [-60.0, 60.0] }] },
  { weight = 20.0, links = [] },
]

[adjust]
arc_scale = 2.0
source = "guess"
"""
COUNTED = {
    "measured": 1 + 2 + 3 + 5,  # health, times of the hop, the run, two chains with a link
    "derived": 2 + 4 + 5 + 4,  # absorptions, two spans, a row of retreats, the hop's motion
    "public": 3 + 3,  # weights, time and gap of the interrupt
    "guess": 2 + 1 + 2 + 4,  # a gap, the scale, times of the run, the act of the hop
}

ARENA = """
[hall]
low_m = [-9.0, -9.0, -1.0]
high_m = [9.0, 9.0, 1.0]
centre_m = [0.0, 0.0]
player_start = [0.0, 1.0, 0.0, 0.0]
boss_start = [0.0, -1.0, 0.0, 0.0]
player_starts = [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
source = { "*" = "public", centre_m = "guess" }
ground = { origin_m = [0.0, 0.0], coefficients = [0, 0, 0, 0, 0, 0], source = "measured" }

[hall.edge]
corners = [
  { at_m = [-5.0, -5.0], to_next = "wall" },
  { at_m = [5.0, -5.0], to_next = "wall" },
  { at_m = [0.0, 5.0], to_next = "cliff" },
]
fall_m_per_s2 = 10.0
deadly_drop_m = 3.0
source = { "*" = "guess", corners = "derived" }
"""


def numbers_in(value):
    if isinstance(value, dict):
        return sum(numbers_in(inner) for inner in value.values())
    if isinstance(value, list):
        return sum(map(numbers_in, value))
    return int(type(value) in (int, float))


def test_a_variant_counts_what_it_states(tmp_path):
    file = tmp_path / "iudex.mine.toml"
    file.write_text(VARIANT, encoding="utf-8")
    found = file_provenance(file)
    assert found.counts == COUNTED
    assert found.total == 11 + 15 + 6 + 9
    assert found.file == file


def test_every_arena_of_a_file_counts(data):
    data.write(
        "arenas.toml", ARENA + ARENA.replace("hall", "yard") + (DATA / "darksouls3" / "arenas.toml").read_text("utf-8")
    )
    two = {"public": 22 * 2, "guess": 4 * 2, "measured": 8 * 2, "derived": 6 * 2}
    shipped = {one.file: one for one in data_provenance()}[DATA / "darksouls3" / "arenas.toml"]
    found = {one.file: one for one in data_provenance(data.root)}[data.root / "darksouls3" / "arenas.toml"]
    assert found.counts == {source: shipped.counts[source] + count for source, count in two.items()}


def test_another_word_moves_the_numbers_of_its_table(data):
    before = boss_provenance("iudex")[0]
    randomize = data.get("bosses/iudex.toml", "randomize")
    data.set("bosses/iudex.toml", "randomize.source", "measured")
    after = boss_provenance("iudex", data.root)[0]
    moved = numbers_in(randomize)
    assert moved == 10
    assert after.counts == before.counts | {
        "measured": before.counts["measured"] + moved, "guess": before.counts["guess"] - moved,
    }  # fmt: skip


def test_no_number_is_left_out():
    found = data_provenance()
    names = {one.file.relative_to(DATA).as_posix() for one in found}
    own = {"characters/knight.toml", "characters/knight_15.toml", "arenas.toml", "animations.toml"}
    own |= {"bosses/iudex.toml", "bosses/iudex.hard.toml", "bosses/vordt.toml"}
    assert names >= {f"darksouls3/{name}" for name in own}
    assert names >= {"eldenring/characters/tarnished.toml", "eldenring/arenas.toml", "eldenring/bosses/margit.toml"}
    for one in found:
        assert one.total == numbers_in(tomllib.loads(one.file.read_text("utf-8"))), one.file


def test_a_file_in_a_data_folder_goes_with_the_rest_of_that_folder(data):
    data.set("characters/knight.toml", "body.hp", -1)
    with pytest.raises(DataError, match=r"knight\.toml: body\.hp = -1"):
        file_provenance(data.path / "bosses" / "iudex.toml")


# ---------------------------------------------------------------- sick files


def test_an_unknown_boss_is_refused():
    with pytest.raises(MisuseError, match=r"boss 'iudx' is not known, did you mean 'iudex'\?"):
        boss_provenance("iudx")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.toml: file = 'none\.toml': cannot be read"):
        file_provenance(tmp_path / "none.toml")


def test_a_variant_of_nobody_is_refused(tmp_path):
    file = tmp_path / "nobody.mine.toml"
    file.write_text(VARIANT, encoding="utf-8")
    with pytest.raises(MisuseError, match="boss 'nobody' is not known; known are iudex"):
        file_provenance(file)


@pytest.mark.parametrize("name", ["characters/knight.toml", "arenas.toml", "animations.toml", "bosses/iudex.toml"])
def test_broken_toml_is_named(data, name):
    data.write(name, "[body\nhp = 3")
    with pytest.raises(DataError, match=rf"{Path(name).name}: file = .*: is not TOML"):
        data_provenance(data.root)


@pytest.mark.parametrize("content", ["", "boss = 3", "[boss]"])
def test_labels_without_a_boss_are_refused(data, content):
    data.write("animations.toml", content)
    with pytest.raises(DataError, match=r"animations\.toml: "):
        data_provenance(data.root)


def test_a_number_without_a_source_is_refused(tmp_path):
    file = tmp_path / "iudex.mine.toml"
    file.write_text("[adjust]\narc_scale = 2.0\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"adjust\.arc_scale = None: has no source"):
        file_provenance(file)
