"""Reads and writes, modules and patterns over the lowest seam."""

import pytest
from fake_process import BASE, TEXT, FakeProcess

from soulsgym.errors import GameGone, GameNotFound, ReadFailed
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.patterns import Pattern

AT = 0x20000


@pytest.fixture
def memory(process):
    process.map(AT, 0x1000)
    return ProcessMemory(process)


def test_memory_that_is_not_there_names_its_address(memory):
    with pytest.raises(ReadFailed, match="0x9000000"):
        memory.read(0x9000000, 4)
    with pytest.raises(ReadFailed, match="0x9000000"):
        memory.write(0x9000000, b"1")


def test_a_process_that_ended_is_gone(memory, process):
    process.gone = True
    with pytest.raises(GameGone):
        memory.read(AT, 1)


def test_calls_are_those_of_the_process(memory, process):
    memory.read(AT, 1)
    memory.write(AT, b"1")
    assert process.calls == 2


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


def found(memory, pattern):
    return memory.occurrences({"it": Pattern(pattern)}, memory.module("game.exe"))["it"]


def test_a_pattern_is_found_in_code_as_often_as_it_occurs(memory, process):
    code = bytes.fromhex("488B0511223344 C3")
    process.add_module("game.exe", BASE, code=b"\xcc" * 9 + code + b"\xcc" * 9 + code)
    assert found(memory, "48 8B 05 ?? ?? ?? ?? C3") == [BASE + TEXT + 9, BASE + TEXT + 26]
    assert found(memory, "48 8B 05 99") == []


def test_pages_of_code_that_cannot_be_read_are_skipped(memory, process):
    code = bytearray(b"\xcc" * 0x9000)
    for at in (0x10, 0x2FFC, 0x4FFC, 0x8100):  # the second and third reach into a page that cannot be read
        code[at : at + 8] = bytes.fromhex("488B0511223344C3")
    process.add_module("game.exe", BASE, code=bytes(code), exports=None, version=None)
    process.unmap(BASE + TEXT + 0x3000, 0x2000)
    assert found(memory, "48 8B 05 ?? ?? ?? ?? C3") == [BASE + TEXT + 0x10, BASE + TEXT + 0x8100]


def test_data_that_looks_like_code_does_not_count(memory, process):
    code = bytes.fromhex("488B05AABBCCDD")
    process.add_module("game.exe", BASE, code=code, version=None)
    process.map(BASE + 0x4400000, 0x1000)
    process.put(BASE + 0x4400000, code)
    assert found(memory, "48 8B 05 AA") == [BASE + TEXT]


def test_two_memories_never_mix():
    processes = [FakeProcess(1), FakeProcess(2)]
    memories = [ProcessMemory(process) for process in processes]
    for number, process in enumerate(processes):
        process.add_module("game.exe", BASE, version=(number, 0, 0, 0))
    assert [memory.module("game.exe").file_version for memory in memories] == ["0.0.0.0", "1.0.0.0"]
