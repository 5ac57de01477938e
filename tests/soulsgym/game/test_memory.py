"""Reads and writes, modules and patterns over the lowest seam."""

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


def found(memory, pattern, name="GameMan"):
    return memory.find_all({name: Pattern(pattern)}, memory.module("game.exe"))[name]


def test_a_pattern_is_found_in_code(memory, process):
    process.add_module("game.exe", BASE, code=b"\xcc" * 9 + bytes.fromhex("488B0511223344 C3") + b"\xcc" * 9)
    assert found(memory, "48 8B 05 ?? ?? ?? ?? C3") == BASE + TEXT + 9


def test_a_pattern_that_occurs_twice_is_another_version_with_name_and_count(memory, process):
    process.add_module("game.exe", BASE, code=bytes.fromhex("488B05 CC 488B05 CC"))
    with pytest.raises(GameVersionError, match=r"WorldChrMan occurs 2 times in game\.exe"):
        found(memory, "48 8B 05", "WorldChrMan")


def test_a_pattern_that_does_not_occur_is_another_version(memory, process):
    process.add_module("game.exe", BASE, code=b"\xcc" * 50)
    with pytest.raises(GameVersionError, match="GameMan occurs 0 times"):
        found(memory, "48 8B 05", "GameMan")


def test_data_that_looks_like_code_does_not_count(memory, process):
    code = bytes.fromhex("488B05AABBCCDD")
    process.add_module("game.exe", BASE, code=code, version=None)
    process.map(BASE + 0x4400000, 0x1000)
    process.put(BASE + 0x4400000, code)
    assert found(memory, "48 8B 05 AA") == BASE + TEXT


def test_two_memories_never_mix():
    processes = [FakeProcess(1), FakeProcess(2)]
    memories = [ProcessMemory(process) for process in processes]
    for number, process in enumerate(processes):
        process.add_module("game.exe", BASE, version=(number, 0, 0, 0))
    assert [memory.module("game.exe").file_version for memory in memories] == ["0.0.0.0", "1.0.0.0"]
