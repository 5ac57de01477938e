"""Loading: the shipped files, their variants, and names that are not there."""

import shutil

import pytest

from soulsgym.errors import DataError, MisuseError, SoulsError
from soulsgym.spec import STANDARD, load_fight, variants
from soulsgym.spec.boss import NEEDED_MOVES
from soulsgym.spec.fight import DATA
from soulsgym.spec.reader import SOURCES

COVERED = ("absorption", "animations", "attributes", "chains", "corners", "links", "retreats", "run", "then", "weights")
"""Small tables that have the source of the table they stand in."""


def numbers_without_a_source(content, path="", covered=None):
    """Every number of parsed TOML that neither its own table nor one around it gives a source for."""
    source = content.get("source", covered)
    for key, value in content.items():
        if key == "source":
            continue
        mine = source.get(key, source.get("*")) if isinstance(source, dict) else source
        here = f"{path}.{key}" if path else key
        rows = value if isinstance(value, list) else [value]
        for row in rows:
            if isinstance(row, dict):
                # Other tables have their own source.
                inherited = mine if key in COVERED or path == "" else None
                yield from numbers_without_a_source(row, here, inherited)
            elif isinstance(row, (int, float)) and not isinstance(row, bool) and mine not in SOURCES:
                yield here


@pytest.mark.parametrize(
    "file", ["characters/knight.toml", "arenas.toml", "animations.toml", "bosses/iudex.toml", "bosses/iudex.hard.toml"]
)
def test_every_shipped_number_has_a_source(data, file):
    assert list(numbers_without_a_source(data.content(file))) == []


def test_a_number_without_a_source_is_noticed(data):
    data.remove("characters/knight.toml", "move.parry.source")
    found = list(numbers_without_a_source(data.content("characters/knight.toml")))
    assert "move.parry.end_s" in found
    assert all(key.startswith("move.parry.") for key in found)


def test_sources_of_boss_and_player_are_kept(spec):
    for sources in (spec.boss.sources, spec.player.sources):
        assert set(sources.values()) <= set(SOURCES)
    assert spec.boss.sources["body.hp"] == "public"
    assert spec.boss.sources["phase.1.act.thrust.chains"] == "public"
    assert spec.player.sources["clock.label_s_per_step"] == "measured"


def test_shipped_boss(spec):
    boss = spec.boss
    assert (boss.name, boss.arena, boss.hp, len(boss.phases)) == ("Iudex Gundyr", "cemetery_of_ash", 1037.0, 2)
    assert spec.player.hp == 454.0
    assert spec.player.label_s_per_step == pytest.approx(0.097)
    assert [boss.moves[boss.move_index(name)].kind for name in NEEDED_MOVES] == list(NEEDED_MOVES.values())
    assert (len(spec.player_animations), len(spec.boss_animations)) == (50, 32)


def test_variants_are_listed_with_the_standard_first():
    assert variants("iudex") == (STANDARD, "hard")


def test_variants_of_a_folder(data):
    data.write("bosses/iudex.agile.toml", "# like the standard one\n")
    data.write("bosses/other.hard.toml", "")
    assert variants("iudex", data=data.root) == (STANDARD, "agile", "hard")
    assert data.load("agile") == data.load()


@pytest.mark.parametrize("call", [load_fight, variants])
def test_unknown_boss(call):
    with pytest.raises(MisuseError, match=r"boss 'iudx' is not known, did you mean 'iudex'\?"):
        call("iudx")


def test_unknown_boss_in_an_empty_folder(tmp_path):
    with pytest.raises(MisuseError, match="boss 'iudex' is not known; none is known"):
        load_fight("iudex", data=tmp_path)


def test_unknown_variant():
    with pytest.raises(MisuseError, match=r"variant 'hrad' of iudex is not known, did you mean 'hard'\?"):
        load_fight("iudex", "hrad")


def test_variant_is_no_boss_of_its_own():
    with pytest.raises(MisuseError, match=r"boss 'iudex\.hard' is not known"):
        load_fight("iudex.hard")


@pytest.mark.parametrize("file", ["arenas.toml", "animations.toml"])
def test_file_that_is_not_there(data, file):
    (data.path / file).unlink()
    error = data.refusal()
    assert error.file.endswith(file)
    assert (error.key, error.value) == ("file", file)
    assert "cannot be read: No such file or directory" in error.reason


@pytest.mark.parametrize("file", ["characters/knight.toml", "arenas.toml", "animations.toml", "bosses/iudex.toml"])
def test_file_that_is_no_toml(data, file):
    data.write(file, "hp = [1, 2\n")
    error = data.refusal()
    assert error.file.endswith(file)
    assert "is not TOML" in error.reason


def test_errors_are_caught_as_one_kind_and_leave_with_a_code():
    assert issubclass(DataError, SoulsError)
    assert issubclass(MisuseError, SoulsError)
    assert DataError("a.toml", "b", 1, "c").exit_code == 2


def test_equal_files_make_equal_specs(data, spec, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(DATA, again)
    assert data.load() == spec == load_fight("iudex", data=again)
