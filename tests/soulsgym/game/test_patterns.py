"""Byte patterns: wildcards, overlaps, chunk borders, and where an instruction points."""

import random
import struct

import pytest

from soulsgym.game.patterns import Pattern, rip_target, scan


def found(text, data, **settings):
    pattern = Pattern(text)
    return scan([pattern], lambda at, size: data[at : at + size], [(0, len(data))], **settings)[pattern]


def test_a_pattern_is_found_where_its_bytes_are():
    assert found("48 8B 05", b"\x00\x48\x8b\x05\x00\x48\x8b\x06") == [1]


def test_any_byte_means_any_byte_even_a_newline_and_zero():
    assert found("48 ?? ?? 05", b"\x48\x0a\x00\x05") == [0]
    assert found("48 ? 05", b"\x48\xff\x05") == [0]


@pytest.mark.parametrize("text", ["2E 5C 28 24", "5B 5D 2A 2B", "7C 5E 3F 0A"])
def test_bytes_that_mean_something_to_regular_expressions_mean_only_themselves(text):
    data = bytes(int(word, 16) for word in text.split())
    assert found(text, b"\0" + data + b"\0") == [1]
    assert found(text, bytes(byte ^ 1 for byte in data)) == []


def test_wildcards_at_both_ends_keep_the_match_inside_the_data():
    assert found("?? 11 ??", b"\x11\x00\x11\x00") == [1]
    assert found("?? 11 ??", b"\x11\x00\x00\x11") == []


def test_matches_that_overlap_all_count():
    assert found("AA ?? AA", b"\xaa\x00\xaa\x00\xaa") == [0, 2]
    assert found("AA AA", b"\xaa" * 4) == [0, 1, 2]


def test_case_and_blanks_do_not_matter():
    assert Pattern(" 4c  8d ??\n05 ") == Pattern("4C 8D ?? 05")


@pytest.mark.parametrize("text", ["", "??", "?? ??", "4", "4C8D", "GG", "-1", "0x4C", "4C 8", "??? 48"])
def test_what_is_no_pattern_is_refused(text):
    with pytest.raises(ValueError, match=r"\?\?"):
        Pattern(text)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 7, 8, 9, 100])
def test_a_match_across_the_border_of_two_chunks_is_found_once(chunk):
    data = b"\x00" * 6 + b"\x48\x8b\x05\x01" + b"\x00" * 5 + b"\x48\x8b\x05\x02"
    assert found("48 8B 05 ??", data, chunk_bytes=chunk) == [6, 15]


def test_chunks_find_what_one_pass_over_everything_finds():
    rng = random.Random(7)
    for _ in range(200):
        data = bytes(rng.choices(b"\x01\x02", k=rng.randint(1, 40)))
        patterns = [Pattern("01 ?? 02"), Pattern("02"), Pattern("01 02 01 02 ?? 01")]
        by_hand = {
            pattern: [
                at
                for at in range(len(data) - len(pattern) + 1)
                if all(part in (None, byte) for part, byte in zip(pattern.parts, data[at:], strict=False))
            ]
            for pattern in patterns
        }
        chunk = rng.randint(1, 12)
        assert (
            scan(patterns, lambda at, size, of=data: of[at : at + size], [(0, len(data))], chunk_bytes=chunk) == by_hand
        )


def test_ranges_are_apart_even_if_one_begins_where_another_ends():
    data = b"\x00\x48\x8b\x05"
    pattern = Pattern("48 8B 05")
    assert scan([pattern], lambda at, size: data[at : at + size], [(0, 2), (2, 2)])[pattern] == []


def test_every_byte_is_read_once():
    data, reads = b"\xcc" * 100, []

    def read(at, size):
        reads.append((at, size))
        return data[at : at + size]

    scan([Pattern("48 8B 05 ??"), Pattern("CC 00")], read, [(0, 100)], chunk_bytes=30)
    assert reads == [(0, 30), (30, 30), (60, 30), (90, 10)]


def test_a_displacement_counts_from_the_next_instruction():
    # 0x1000: 48 8B 1D 10 00 00 00, the next instruction is at 0x1007, and 0x10 further on is what is meant.
    assert rip_target(0x1000, bytes.fromhex("488B1D10000000")) == 0x1017


def test_a_displacement_may_be_negative():
    assert rip_target(0x1000, bytes.fromhex("488B1DF0FFFFFF")) == 0xFF7
    assert rip_target(0x140001000, b"\x4c\x8d\x05" + struct.pack("<i", -0x1007)) == 0x140000000
