"""Typed reads and writes, bits, modules and patterns over the lowest seam."""

import pytest
from fake_process import BASE, TEXT, FakeProcess

from soulsgym.errors import GameGone, GameNotFound, GameVersionError, ReadFailed
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.patterns import Pattern

AT = 0x20000


@pytest.fixture
def memory(process):
    process.map(AT, 0x1000)
    return ProcessMemory(process)


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("u8", b"\xfe", 254),
        ("i32", b"\xfe\xff\xff\xff", -2),
        ("u32", b"\xfe\xff\xff\xff", 4294967294),
        ("i64", b"\xfe" + b"\xff" * 7, -2),
        ("u64", b"\xfe" + b"\xff" * 7, 2**64 - 2),
        ("f32", b"\x00\x00\x20\xc1", -10.0),
        ("f64", b"\x00\x00\x00\x00\x00\x00\x24\xc0", -10.0),
    ],
)
def test_numbers_are_little_endian_and_have_their_sign(memory, process, kind, data, value):
    process.put(AT, data)
    assert getattr(memory, kind)(AT) == value
    process.put(AT, bytes(8))
    getattr(memory, f"write_{kind}")(AT, value)
    assert process.writes == [(AT, data)]


def test_text_ends_at_its_first_zero_unit(memory, process):
    process.put(AT, "Idle\0garbage".encode("utf-16-le"))
    assert memory.text(AT, 40) == "Idle"


def test_text_without_an_end_is_cut_at_its_size(memory, process):
    process.put(AT, "AttackRightHeavy1Start".encode("utf-16-le"))
    assert memory.text(AT, 40) == "AttackRightHeavy1Sta"


def test_two_zero_bytes_that_belong_to_two_characters_are_no_end(memory, process):
    # U+0100 is 00 01, U+0041 is 41 00: "AĀ" is 41 00 00 01.
    process.put(AT, "AĀB\0".encode("utf-16-le"))
    assert memory.text(AT, 40) == "AĀB"


def test_empty_text_is_empty_and_a_byte_order_mark_is_a_character(memory, process):
    assert memory.text(AT, 40) == ""
    process.put(AT, b"\xff\xfeA\0\0\0")
    assert memory.text(AT, 40) == "\ufeffA"


def test_bytes_that_are_no_text_are_a_failed_read(memory, process):
    process.put(AT, b"\x00\xd8" * 20)  # halves of pairs without their other half
    with pytest.raises(ReadFailed, match="0x20000: holds no text"):
        memory.text(AT, 40)


def test_garbage_behind_the_end_of_a_text_does_no_harm(memory, process):
    process.put(AT, "Idle\0".encode("utf-16-le") + b"\x00\xd8" * 15)
    assert memory.text(AT, 40) == "Idle"


def test_setting_bits_leaves_their_neighbours(memory, process):
    process.put(AT + 1, b"\xa5\x5a\xff")
    memory.set_bits(AT + 2, 0x21, True)
    assert process.get(AT + 1, 3) == b"\xa5\x7b\xff"
    memory.set_bits(AT + 2, 0x0A, False)
    assert process.get(AT + 1, 3) == b"\xa5\x71\xff"
    assert all(len(data) == 1 for _, data in process.writes)


def test_bits_that_are_right_already_are_not_written(memory, process):
    process.put(AT, b"\x40")
    memory.set_bits(AT, 0x40, True)
    memory.set_bits(AT, 0x02, False)
    assert process.writes == []


def test_memory_that_is_not_there_names_its_address(memory):
    with pytest.raises(ReadFailed, match="0x9000000"):
        memory.i32(0x9000000)
    with pytest.raises(ReadFailed, match="0x9000000"):
        memory.write_i32(0x9000000, 1)


def test_a_process_that_ended_is_gone(memory, process):
    process.gone = True
    with pytest.raises(GameGone):
        memory.u8(AT)


def test_calls_are_those_of_the_process(memory, process):
    memory.u8(AT)
    memory.write_u8(AT, 1)
    assert memory.calls == process.calls == 2


def test_a_module_is_found_by_its_name_in_any_case(memory, process):
    process.add_module("DarkSoulsIII.exe", BASE)
    assert memory.module("darksoulsIII.EXE").base == BASE
    assert memory.module("DarkSoulsIII.exe") is memory.module("darksoulsiii.exe")


def test_a_module_that_was_loaded_again_elsewhere_is_read_again(memory, process):
    process.add_module("a.dll", BASE, version=(1, 0, 0, 0))
    assert memory.module("a.dll").file_version == "1.0.0.0"
    process.add_module("a.dll", BASE + 0x10000000, version=(2, 0, 0, 0))
    assert memory.module("a.dll").file_version == "2.0.0.0"


def test_a_module_that_is_not_loaded_is_not_found(memory):
    with pytest.raises(GameNotFound, match=r"dinput8\.dll"):
        memory.module("dinput8.dll")


def test_a_pattern_is_found_in_code(memory, process):
    process.add_module("game.exe", BASE, code=b"\xcc" * 9 + bytes.fromhex("488B0511223344 C3") + b"\xcc" * 9)
    assert memory.find("48 8B 05 ?? ?? ?? ?? C3", "game.exe") == BASE + TEXT + 9


def test_a_pattern_that_occurs_twice_is_another_version_with_name_and_count(memory, process):
    process.add_module("game.exe", BASE, code=bytes.fromhex("488B05 CC 488B05 CC"))
    with pytest.raises(GameVersionError, match=r"WorldChrMan occurs 2 times in game\.exe"):
        memory.find_all({"WorldChrMan": Pattern("48 8B 05")}, "game.exe")


def test_a_pattern_that_does_not_occur_is_another_version(memory, process):
    process.add_module("game.exe", BASE, code=b"\xcc" * 50)
    with pytest.raises(GameVersionError, match="GameMan occurs 0 times"):
        memory.find_all({"GameMan": Pattern("48 8B 05")}, "game.exe")


def test_data_that_looks_like_code_does_not_count(memory, process):
    code = bytes.fromhex("488B05AABBCCDD")
    process.add_module("game.exe", BASE, code=code, version=None)
    process.map(BASE + 0x4400000, 0x1000)
    process.put(BASE + 0x4400000, code)
    assert memory.find("48 8B 05 AA", "game.exe") == BASE + TEXT


def test_two_memories_never_mix():
    processes = [FakeProcess(1), FakeProcess(2)]
    memories = [ProcessMemory(process) for process in processes]
    for number, process in enumerate(processes):
        process.add_module("game.exe", BASE, version=(number, 0, 0, 0))
    assert [memory.module("game.exe").file_version for memory in memories] == ["0.0.0.0", "1.0.0.0"]
