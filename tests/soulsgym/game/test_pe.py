"""Modules in memory: sections, exports and version from real headers, and headers that lie."""

import random
import struct

import pytest
from fake_process import BASE, DATA, EDATA, IMAGE_SIZE, RSRC, TEXT, FakeProcess, put_image

from soulsgym.errors import GameVersionError, ReadFailed
from soulsgym.game.pe import MOST_EXPORTS, Module

OPTIONAL = 0x80 + 24


def loaded(process, **image):
    put_image(process, BASE, **image)
    return opened(process)


def opened(process, name="game.exe"):
    return Module(name, BASE, lambda address, size: process.read_many([(address, size)]))


def test_sections_are_those_of_the_header_with_their_place_in_memory(process):
    module = loaded(process, code=b"\x90" * 100)
    assert [(it.name, it.address, it.size, it.executable) for it in module.sections] == [
        (".text", BASE + TEXT, 100, True),
        (".rsrc", BASE + RSRC, 0x1000, False),
        (".data", BASE + DATA, IMAGE_SIZE - DATA, False),
    ]
    assert (module.base, module.size) == (BASE, IMAGE_SIZE)


def test_exports_are_addresses_by_name(process):
    module = loaded(process, exports={"souls_control": 0x4400010, "another": 0x1004, "z": 0x2000})
    assert module.exports == {"souls_control": BASE + 0x4400010, "another": BASE + 0x1004, "z": BASE + 0x2000}


def test_an_export_that_stands_for_another_modules_is_left_out(process):
    module = loaded(process, exports={"own": 0x1004, "forwarded": EDATA + 45})
    assert module.exports == {"own": BASE + 0x1004}


def test_a_module_may_have_neither_exports_nor_a_version(process):
    module = loaded(process, version=None)
    assert module.exports == {}
    assert module.file_version is None


@pytest.mark.parametrize("version", [(1, 15, 2, 0), (0, 0, 0, 1), (65535, 1, 65535, 2)])
def test_the_file_version_comes_from_the_fixed_part_of_its_resource(process, version):
    assert loaded(process, version=version).file_version == ".".join(map(str, version))


def test_reading_a_module_twice_costs_memory_calls_once(process):
    module = loaded(process, exports={"a": 0x1000})
    first = module.exports, module.file_version
    calls = process.calls
    assert (module.exports, module.file_version) == first
    assert process.calls == calls


DAMAGE = {
    "no MZ": (0, b"ZM"),
    "header far away": (0x3C, struct.pack("<I", 0xFFFFFFFF)),
    "header behind the first page": (0x3C, struct.pack("<I", 0xFF8)),
    "no PE": (0x80, b"NE\0\0"),
    "another machine": (0x84, struct.pack("<H", 0x14C)),
    "32-bit format": (OPTIONAL, struct.pack("<H", 0x10B)),
    "no section": (0x86, struct.pack("<H", 0)),
    "endless sections": (0x86, struct.pack("<H", 0xFFFF)),
    "short optional header": (0x94, struct.pack("<H", 4)),
    "no size": (OPTIONAL + 56, struct.pack("<I", 0)),
    "endless size": (OPTIONAL + 56, struct.pack("<I", 0xFFFFFFFF)),
    "a section beyond the end": (OPTIONAL + 240 + 12, struct.pack("<I", IMAGE_SIZE)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_header_is_a_named_error(process, damage):
    put_image(process, BASE)
    offset, data = DAMAGE[damage]
    process.put(BASE + offset, data)
    with pytest.raises(GameVersionError, match=r"game\.exe at 0x140000000"):
        opened(process)


LIES = {
    "endless exports": (EDATA + 20, struct.pack("<I", MOST_EXPORTS + 1)),
    "endless names": (EDATA + 24, struct.pack("<I", 0xFFFFFFFF)),
    "functions outside": (EDATA + 28, struct.pack("<I", IMAGE_SIZE)),
    "names where nothing can be read": (EDATA + 32, struct.pack("<I", 0x2000000)),
    "a number of no function": (EDATA + 40 + 8, struct.pack("<H", 7)),
    "a name outside": (EDATA + 44, struct.pack("<I", 0xFFFFFFF0)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_damaged_table_of_exports_is_a_named_error(process, lie):
    put_image(process, BASE, exports={"only": 0x1004})
    offset, data = LIES[lie]
    process.put(BASE + offset, data)
    with pytest.raises(GameVersionError, match=r"game\.exe"):
        _ = opened(process).exports


@pytest.mark.parametrize(
    ("offset", "data"),
    [
        (12, struct.pack("<HH", 0xFFFF, 0xFFFF)),
        (16 + 8 + 4, struct.pack("<I", 0x8000FFFF)),
        (0x30 + 16 + 4, struct.pack("<I", 0x80FFFFFF)),
        (0x70, struct.pack("<I", 0xFFFFFFF0)),
    ],
)
def test_a_damaged_table_of_resources_is_a_named_error(process, offset, data):
    put_image(process, BASE)
    process.put(BASE + RSRC + offset, data)
    with pytest.raises(GameVersionError, match=r"game\.exe"):
        _ = opened(process).file_version


def test_a_directory_that_leads_to_itself_ends(process):
    put_image(process, BASE)
    process.put(BASE + RSRC + 16 + 8 + 4, struct.pack("<I", 0x80000000))
    with pytest.raises(GameVersionError, match="resources"):
        _ = opened(process).file_version


def test_random_damage_never_hangs_or_raises_anything_else():
    rng = random.Random(3)
    outcomes = set()
    for _ in range(400):
        process = FakeProcess()
        put_image(process, BASE, exports={"first": 0x1004, "second": 0x2000})
        for _ in range(rng.randint(1, 6)):
            area, size = rng.choice([(0, 0x220), (EDATA, 80), (RSRC, 0x160)])
            process.put(BASE + area + rng.randrange(size), bytes([rng.randrange(256)]))
        try:
            module = opened(process)
            _ = module.exports, module.file_version
            outcomes.add("read")
        except (GameVersionError, ReadFailed) as error:
            outcomes.add(type(error).__name__)
    assert "read" in outcomes
    assert "GameVersionError" in outcomes
