"""Address tables, attributes and bonfires: what our files hold, and what is refused."""

import pytest

from soulsgym.errors import DataError, MisuseError
from soulsgym.game.addresses import (
    TITLES,
    ValueType,
    decoded,
    load_addresses,
    load_attributes,
    load_bonfires,
    read_addresses,
    read_bonfires,
)

GOOD = """
title = "A Game"
executable = "game.exe"
window_title = "GAME"
file_version = "1.2.3.4"
time = "Time"
source = "public"
[base.World]
pattern = "48 8B 05 ?? ?? ?? ?? C3"
[base.Flags]
rva = 0x4796298
direct = true
[field.Time]
base = "World"
offsets = [0x10, 0xA4]
type = "u32"
[field.NoDeath]
base = "Flags"
offsets = [0x8]
type = "u8"
bits = { forbidden = 0x01 }
values = { none = -1 }
source = "guess"
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        file = tmp_path / "addresses.toml"
        file.write_text(text, encoding="utf-8")
        return read_addresses(file, "game")

    return read


def test_a_table_holds_what_its_file_says(read):
    table = read(GOOD)
    assert (table.title, table.executable, table.window_title) == ("A Game", "game.exe", "GAME")
    assert (table.file_version, table.time) == ("1.2.3.4", "Time")
    assert table.bases["World"].pattern.parts == (0x48, 0x8B, 0x05, None, None, None, None, 0xC3)
    assert (table.bases["Flags"].rva, table.bases["Flags"].direct) == (0x4796298, True)
    field = table.field("NoDeath")
    assert (field.base, field.offsets, field.size, field.bits, field.values) == (
        "Flags", (8,), 1, {"forbidden": 1}, {"none": -1},
    )  # fmt: skip
    assert (field.source, table.field("Time").source) == ("guess", "public")


def test_a_version_may_be_unknown(read):
    assert read(GOOD.replace('file_version = "1.2.3.4"\n', "")).file_version is None


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('source = "public"', "", "source"),
        ('source = "public"', 'source = "rumour"', "rumour"),
        ('base = "World"', 'base = "Wrold"', "did you mean 'World'"),
        ("[0x10, 0xA4]", "[]", "field.Time.offsets"),
        ("[0x10, 0xA4]", "[0x10, -4]", "at least 0"),
        ("[0x10, 0xA4]", "[0x10, 0.5]", "whole number"),
        ("[0x10, 0xA4]", "[0x10, 0x100000000]", "at most"),
        ("[0x8]", "[0x8, 0x10]", "Flags is not a pointer"),
        ('"u32"', '"i32"', "must be a field of type u32"),
        ('"u32"', '"int"', "u8, i32, u32, f32"),
        ('type = "u8"', 'type = "i32"', "masks of one byte"),
        ("forbidden = 0x01", "forbidden = 0x100", "at most 255"),
        ("rva = 0x4796298", "rva = -1", "at least 0"),
        ("rva = 0x4796298", "rva = 1.5", "whole number"),
        ("rva = 0x4796298", "", "base.Flags.pattern"),
        ("48 8B 05", "48 8B 5", "'5' is neither"),
        ('time = "Time"', 'time = "Tim"', "did you mean 'Time'"),
        ("direct = true", 'direct = "yes"', "true or false"),
        ("bits = {", "bitts = {", "did you mean 'bits'"),
    ],
)
def test_a_mistake_in_the_file_is_named(read, old, new, complaint):
    assert old in GOOD
    with pytest.raises(DataError, match=complaint.replace("(", r"\(")):
        read(GOOD.replace(old, new, 1))


def test_a_field_that_is_not_known_suggests_one(read):
    with pytest.raises(MisuseError, match="did you mean 'NoDeath'"):
        read(GOOD).field("NoDeaht")


# ---- types


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("u8", b"\xff", 255),
        ("i32", b"\xff\xff\xff\xff", -1),
        ("u32", b"\xff\xff\xff\xff", 4294967295),
        ("f32", b"\x00\x00\xc0\x3f", 1.5),
        ("f32x3", b"\x00\x00\xc0\x3f\x00\x00\x00\x00\x00\x00\x80\xbf", (1.5, 0.0, -1.0)),
        ("bytes3", b"abc", b"abc"),
        ("text8", b"I\0d\0\0\0\0\0", "Id"),
    ],
)
def test_values_are_packed_and_unpacked(name, data, value):
    kind = ValueType.parse(name)
    assert kind.size == len(data)
    assert kind.unpack(data) == value
    assert kind.unpack(b"\xee\xee" + data, 2) == value
    assert kind.pack(value) == data


@pytest.mark.parametrize("name", ["", "int", "text", "text7", "text0", "f32x", "f32x0", "bytes5000", "u8x2", "f32x03"])
def test_what_is_no_type_is_refused(name):
    with pytest.raises(ValueError, match=r"type|even number"):
        ValueType.parse(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("u8", 256), ("u8", -1), ("i32", 1 << 31), ("u32", -1), ("i32", "1"), ("i32", 1.5), ("f32x3", (1.0, 2.0)),
        ("f32", "x"), ("bytes3", b"ab"), ("text4", "abc"), ("text4", 3), ("f32", 1e39),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named(name, value):
    with pytest.raises(MisuseError, match=f"cannot be written as {name}"):
        ValueType.parse(name).pack(value)


def test_text_is_cut_at_twenty_units():
    assert decoded("AttackRightHeavy1Start".encode("utf-16-le")[:40]) == "AttackRightHeavy1Sta"


# ---- our own files


@pytest.mark.parametrize("title", TITLES)
def test_our_tables_are_whole(title):
    table = load_addresses(title)
    assert {field.base for field in table.fields.values()} == set(table.bases), "a base that no field uses"
    assert table.executable.endswith(".exe")
    assert load_addresses(title) is table


SOULSGYM_FIELDS = """PlayerHP PlayerMaxHP PlayerSP PlayerMaxSP PlayerA PlayerX PlayerAnimation PlayerAnimationTime
    PlayerAnimationMaxTime PlayerStats PlayerFrostResistance PlayerFrostResistanceMax PlayerFrostEffect CamQx
    LoSLockOnTime LockOnBonusRange noGravity LockOn LastBonfire Time WindowScreenWidth WindowScreenHeight ScreenMode
    UntendedGravesFlag IudexHP IudexMaxHP IudexAnimation IudexAnimationTime IudexAnimationMaxTime IudexAttackID
    IudexPoseX IudexPoseA IudexAttacks IudexFlags FirelinkShrineGates VordtHP VordtMaxHP VordtPoseA VordtPoseX
    VordtAnimation VordtAttackID VordtFlags VordtAttacks"""


def test_dark_souls_has_every_field_that_soulsgym_has_and_the_derived_ones():
    fields = load_addresses("darksouls3").fields
    soulsgym = SOULSGYM_FIELDS.split()
    assert len(soulsgym) == 43
    assert set(soulsgym) <= set(fields)
    assert fields["VordtAnimationTime"].offsets == (0x0, 0x4C8, 0x0, 0x1F90, 0x10, 0x24)
    assert fields["VordtAnimationTime"].source == "derived"
    assert fields["IudexAttackID2"].offsets[-1] - fields["IudexAttackID"].offsets[-1] == 0x10


def test_what_is_doubtful_says_so():
    fields = load_addresses("darksouls3").fields
    assert {name for name, it in fields.items() if it.source == "guess"} == {
        "IudexMaxHP",
        "IudexAttacks",
        "VordtAttacks",
    }
    assert load_addresses("eldenring").fields["PlayerGravity"].source == "guess"


def test_the_play_time_has_no_sign():
    assert all(load_addresses(title).field("Time").type.name == "u32" for title in TITLES)


def test_attributes_are_in_the_order_of_soulsgym():
    assert [(it.name, it.offset) for it in load_attributes("darksouls3")] == [
        ("Soul Level", 0x2C), ("Vigor", 0), ("Attunement", 4), ("Endurance", 8), ("Vitality", 0x28), ("Strength", 0xC),
        ("Dexterity", 0x10), ("Intelligence", 0x14), ("Faith", 0x18), ("Luck", 0x1C),
    ]  # fmt: skip
    assert [it.name for it in load_attributes("eldenring")] == [
        "Level", "Vigor", "Mind", "Endurance", "Strength", "Dexterity", "Intelligence", "Faith", "Arcane",
    ]  # fmt: skip


@pytest.mark.parametrize("title", TITLES)
def test_attributes_lie_within_their_block(title):
    size = load_addresses(title).field("PlayerStats").size
    offsets = [it.offset for it in load_attributes(title)]
    assert max(offsets) + 4 <= size
    assert len(set(offsets)) == len(offsets)


def test_bonfires_are_all_there():
    souls, rings = load_bonfires("darksouls3"), load_bonfires("eldenring")
    assert (len(souls.ids), len(souls.names)) == (87, 87)
    assert (len(rings.ids), len(rings.names)) == (311, 314)
    assert souls.id_of("Iudex Gundyr") == 4002952
    assert souls.names[-1] == "Unknown"
    assert souls.untended == {"Untended Graves", "Champion Gundyr"}


def test_two_graces_with_one_name_are_both_known_and_the_first_is_written():
    rings, name = load_bonfires("eldenring"), "Capital Outskirts - Divine Tower of West Altus"
    assert rings.names[34122950] == rings.names[34122952] == name
    assert rings.id_of(name) == 34122950


def test_a_bonfire_that_is_not_known_suggests_one():
    with pytest.raises(MisuseError, match="did you mean 'Firelink Shrine'"):
        load_bonfires("darksouls3").id_of("Firelink Shrien")


def test_two_bonfires_with_one_id_are_refused(tmp_path):
    file = tmp_path / "bonfires.toml"
    file.write_text('source = "public"\n[bonfires]\n"One" = 1\n"Two" = 1\n')
    with pytest.raises(DataError, match="is the id of 'One' already"):
        read_bonfires(file)


def test_a_title_that_is_not_known_suggests_one():
    with pytest.raises(MisuseError, match="did you mean 'darksouls3'"):
        load_addresses("darksouls")
