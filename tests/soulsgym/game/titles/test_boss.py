"""Which fields are a boss's: the data, and what is wrong with a damaged file."""

import pytest

from soulsgym.errors import DataError, MisuseError
from soulsgym.game.titles.boss import DATA, find_boss_fields, load_boss_fields
from soulsgym.spec import load_fight

OURS = (DATA / "darksouls3" / "boss_fields.toml").read_text(encoding="utf-8")


def read(folder, text):
    (folder / "darksouls3").mkdir()
    (folder / "darksouls3" / "boss_fields.toml").write_text(text, encoding="utf-8")
    return load_boss_fields("darksouls3", folder)


def test_every_boss_that_can_be_fought_has_fields():
    for boss in ("iudex", "vordt"):
        assert find_boss_fields(load_fight(boss, moves=False).game.title, boss)


def test_fields_are_those_of_the_file():
    fields = load_boss_fields("darksouls3")["iudex"]
    assert fields.hp == "IudexHP"
    assert fields.attack_switch == ("IudexAttacks", "off")
    assert fields.clear == (("IudexFlags", "defeated"), ("FirelinkShrineGates", "open"))
    assert load_boss_fields("darksouls3")["vordt"].values == ()


def test_a_title_without_the_file_has_no_boss(tmp_path):
    assert load_boss_fields("eldenring", tmp_path) == {}
    with pytest.raises(MisuseError, match=r"no boss of Elden Ring is called 'morgott'.*margit"):
        find_boss_fields("eldenring", "morgott")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'hp = "IudexHP"',
            'hp = "IudexHp"',
            r"iudex\.hp = 'IudexHp': is not in addresses.toml, did you mean 'IudexHP'",
        ),
        ('hp = "IudexHP"', "hp = 3", r"iudex\.hp = 3: must be a name"),
        ('hp = "IudexHP"\n', "", r"iudex\.hp = None: is missing"),
        ('hp = "IudexHP"', 'health = "IudexHP"', r"iudex\.health = 'IudexHP': is not a known key"),
        ('"IudexAttacks.off"', '"IudexAttacks"', r"iudex\.attack_switch = 'IudexAttacks': is not in addresses.toml"),
        ('"IudexFlags.defeated"', '"IudexFlags.beaten"', r"did you mean 'IudexFlags.defeated'"),
        ('["UntendedGravesFlag.ash"]', '"UntendedGravesFlag.ash"', r"iudex\.values = .*: must be a list of names"),
        ('["UntendedGravesFlag.ash"]', '["UntendedGravesFlag.dust"]', r"iudex\.values = 'UntendedGravesFlag.dust'"),
        ('["IudexAttackID", "IudexAttackID2"]', '["IudexAttackID", 2]', r"iudex\.attack_ids = .*: must be a list"),
        ("[iudex]", "iudex = 3\n[other]", "iudex = 3: must be a table"),
        ("[iudex]", "[iudex", "is not TOML"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, old, new, message):
    assert OURS.count(old) >= 1
    with pytest.raises(DataError, match=message):
        read(tmp_path, OURS.replace(old, new, 1))


def test_flags_that_are_already_right_are_not_written(game, souls):
    game.boss("iudex").flags = True
    souls.process.writes.clear()
    game.boss("iudex").flags = True
    assert [address for address, _ in souls.process.writes] == [souls.addresses["UntendedGravesFlag"]]


def test_a_value_that_stands_for_nothing_does_not_keep_a_boss_from_being_fought(game, souls):
    souls.set(UntendedGravesFlag=0x77)
    assert game.boss("iudex").flags


def test_a_boss_is_made_once(game):
    assert game.boss("iudex") is game.boss("iudex")
