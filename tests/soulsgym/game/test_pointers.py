"""Ways to values: followed, checked at every use, found again after a load, and never of two moments."""

import struct

import pytest
from fake_process import BASE, KNIGHT, FakeProcess, LaidOut, lay_out

from soulsgym.errors import GameGone, GameVersionError, MisuseError, ReadFailed
from soulsgym.game import pointers as pointers_module
from soulsgym.game.addresses import decoded, load_addresses
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.pointers import ATTEMPTS, Pointers


@pytest.fixture
def pointers(souls):
    return Pointers(ProcessMemory(souls.process), souls.table)


def calls_of(souls, action):
    before = souls.process.calls
    action()
    return souls.process.calls - before


# ---- finding


def test_every_field_of_both_tables_is_found_where_it_was_laid():
    for title in ("darksouls3", "eldenring"):
        laid = lay_out(load_addresses(title))
        pointers = Pointers(ProcessMemory(laid.process), laid.table)
        assert {name: pointers.address(name) for name in laid.table.fields} == laid.addresses


def test_a_chain_is_followed_by_hand_the_same_way(souls, pointers):
    def pointer(address):
        return struct.unpack("<Q", souls.process.get(address, 8))[0]

    world = pointer(souls.bases["WorldChrMan"])
    assert pointers.address("PlayerHP") == pointer(pointer(pointer(world + 0x80) + 0x1F90) + 0x18) + 0xD8
    boss = pointer(pointer(pointer(BASE + 0x475A7A8) + 0x0) + 0x320)
    assert pointers.address("IudexHP") == pointer(pointer(pointer(boss + 0x0) + 0x1F90) + 0x18) + 0xD8


def test_a_direct_base_is_no_pointer(souls, pointers):
    assert pointers.address("AllNoMove") == souls.bases["WorldChrManDbg_Flags"] + 0xC


def test_another_version_is_refused_before_anything_is_read(souls):
    souls.process.add_module("DarkSoulsIII.exe", BASE, version=(1, 15, 1, 0))
    with pytest.raises(GameVersionError, match=r"1\.15\.1\.0.*1\.15\.2\.0"):
        Pointers(ProcessMemory(souls.process), souls.table)


def test_an_executable_without_a_version_is_refused(souls):
    souls.process.add_module("DarkSoulsIII.exe", BASE, version=None)
    with pytest.raises(GameVersionError, match="unknown"):
        Pointers(ProcessMemory(souls.process), souls.table)


def test_a_table_without_a_version_takes_any(rings):
    Pointers(ProcessMemory(rings.process), rings.table)


def test_code_that_points_out_of_the_executable_is_another_version(souls):
    code = bytearray(souls._code(BASE + 0x1000))
    at = code.find(bytes.fromhex("488B0D"))
    struct.pack_into("<i", code, at + 3, -0x7000000)
    souls.process.put(BASE + 0x1000, bytes(code))
    with pytest.raises(GameVersionError, match=r"outside of DarkSoulsIII\.exe"):
        Pointers(ProcessMemory(souls.process), souls.table)


def test_code_that_does_not_occur_is_another_version(souls):
    souls.process.put(BASE + 0x1000, bytes(len(souls._code(BASE + 0x1000))))
    with pytest.raises(GameVersionError, match=r"the code for GameDataMan does not occur in DarkSoulsIII\.exe"):
        Pointers(ProcessMemory(souls.process), souls.table)


def test_code_that_occurs_several_times_with_one_target_is_no_question(souls, caplog):
    souls.add_code("GameDataMan", souls.bases["GameDataMan"])
    pointers = Pointers(ProcessMemory(souls.process), souls.table)
    assert pointers.bases["GameDataMan"] == souls.bases["GameDataMan"]
    assert not caplog.records


def test_of_several_targets_the_known_one_of_this_version_is_taken(souls, caplog):
    known = BASE + souls.table.bases["GameDataMan"].expected_rva
    souls.add_code("GameDataMan", known)
    assert Pointers(ProcessMemory(souls.process), souls.table).bases["GameDataMan"] == known
    assert not caplog.records


def test_of_several_targets_nobody_knows_the_first_is_taken_with_a_note(souls, caplog):
    souls.add_code("GameDataMan", souls.bases["GameDataMan"] + 0x40)
    pointers = Pointers(ProcessMemory(souls.process), souls.table)
    assert pointers.bases["GameDataMan"] == souls.bases["GameDataMan"]
    assert "the code for GameDataMan occurs 2 times" in caplog.text
    assert "the first, 0x4400000, is taken" in caplog.text


def test_two_games_of_one_title_never_mix():
    table = load_addresses("darksouls3")
    games = [LaidOut(table, FakeProcess(number), heap=0x200000000 * number) for number in (1, 2)]
    for number, game in enumerate(games):
        game.set(PlayerHP=100 + number)
    both = [Pointers(ProcessMemory(game.process), table) for game in games]
    assert [pointers.integer("PlayerHP") for pointers in both] == [100, 101]
    both[0].write("PlayerHP", 7)
    assert [game.get("PlayerHP") for game in games] == [7, 101]
    assert both[0].address("PlayerHP") != both[1].address("PlayerHP")


# ---- values


def test_values_have_the_type_of_their_field(pointers):
    assert pointers.integer("PlayerHP") == 454
    assert pointers.number("PlayerA") == 1.5
    assert pointers.numbers("PlayerX") == (132.0, -68.0, 575.0)
    assert pointers.text("IudexAnimation") == "Attack3001"
    assert pointers.read("PlayerStats")[:8] == bytes((12, 0, 0, 0, 10, 0, 0, 0))


def test_one_value_costs_one_call_once_the_way_is_known(souls, pointers):
    pointers.integer("PlayerHP")
    assert calls_of(souls, lambda: pointers.integer("PlayerHP")) == 1
    assert calls_of(souls, lambda: pointers.write("PlayerHP", 9)) == 2


def test_a_play_time_beyond_two_to_the_31_milliseconds_is_positive(souls, pointers):
    souls.set(Time=(1 << 31) + 5)
    assert pointers.integer("Time") == 2147483653


def test_bits_are_written_as_bits(souls, pointers):
    souls.set(IudexFlags=0b1001_0101)
    pointers.set_bit("IudexFlags", "encountered", True)
    pointers.set_bit("IudexFlags", "defeated", False)
    assert souls.get("IudexFlags") == 0b0101_0101
    assert not pointers.bit("IudexFlags", "sword_pulled")
    assert pointers.bit("IudexFlags", "encountered")


def test_a_write_touches_nothing_but_its_field(souls, pointers):
    at = souls.addresses["noGravity"]
    souls.process.put(at - 1, b"\xee\x81\xee")
    pointers.set_bit("noGravity", "off", True)
    assert souls.process.get(at - 1, 3) == b"\xee\xc1\xee"


def test_names_that_are_not_there_are_named(pointers):
    with pytest.raises(MisuseError, match="did you mean 'PlayerHP'"):
        pointers.read("PlayerHp")
    with pytest.raises(MisuseError, match="IudexFlags has no bit 'beaten'"):
        pointers.bit("IudexFlags", "beaten")
    with pytest.raises(MisuseError, match="ScreenMode has no value 'borderless'"):
        pointers.meaning("ScreenMode", "borderless")
    with pytest.raises(MisuseError, match="cannot be written as i32"):
        pointers.write("PlayerHP", 1 << 40)


# ---- pointers that change


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_null_pointer_on_the_way_means_not_in_game(souls, pointers, depth):
    mend = souls.cut("PlayerHP", depth)
    with pytest.raises(ReadFailed, match=r"PlayerHP.*not in game"):
        pointers.integer("PlayerHP")
    mend()
    assert pointers.integer("PlayerHP") == 454


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_pointer_that_becomes_null_later_is_seen_too(souls, pointers, depth):
    pointers.integer("PlayerHP")
    souls.cut("PlayerHP", depth)
    with pytest.raises(ReadFailed, match="not in game"):
        pointers.integer("PlayerHP")


@pytest.mark.parametrize("garbage", [1, 0xFFFF, 0x8000_0000_0000, (1 << 64) - 1])
def test_a_pointer_to_where_no_program_has_memory_means_not_in_game(souls, pointers, garbage):
    souls.process.pointer(souls.link("PlayerHP", 2), garbage)
    with pytest.raises(ReadFailed, match=f"ends in {garbage:#x}: not in game"):
        pointers.integer("PlayerHP")


def test_a_pointer_to_memory_that_is_not_there_means_not_in_game(souls, pointers):
    souls.process.pointer(souls.link("PlayerHP", 1), 0x500000000)
    with pytest.raises(ReadFailed, match="the way to PlayerHP is broken: not in game"):
        pointers.integer("PlayerHP")


def test_a_field_in_memory_that_is_not_there_is_named(souls, pointers):
    souls.process.pointer(souls.link("PlayerHP", 3), 0x500000000)
    with pytest.raises(ReadFailed, match="PlayerHP cannot be read: not in game"):
        pointers.integer("PlayerHP")


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_after_a_load_the_way_is_found_again_and_old_memory_never_read(souls, pointers, depth):
    assert pointers.integer("PlayerHP") == 454
    souls.move("PlayerHP", depth)
    souls.set(PlayerHP=321)
    assert pointers.integer("PlayerHP") == 321


def test_after_a_load_writes_go_to_the_new_place(souls, pointers):
    pointers.write("PlayerHP", 400)
    old = souls.addresses["PlayerHP"]
    souls.move("PlayerHP", 3)
    pointers.write("PlayerHP", 300)
    assert souls.get("PlayerHP") == 300
    assert souls.process.get(old, 4) == b"\xff" * 4


def test_old_memory_that_was_given_back_is_no_error(souls, pointers):
    pointers.integer("PlayerHP")
    old = souls.addresses["PlayerHP"]
    souls.move("PlayerHP", 3)
    souls.process.unmap(old)
    assert pointers.integer("PlayerHP") == 454


def test_pointers_that_never_stand_still_are_a_failed_read(souls, pointers):
    look = pointers.look("PlayerHP", timed=False)
    look.read()
    place, turn = souls.link("PlayerHP", 3), [0]
    target = souls.addresses["PlayerHP"] - 0xD8

    def change(number, span):
        # The last pointer is read twice in turn: when the way is found, and with the value.
        if span == (place, 8):
            turn[0] += 1
            souls.process.pointer(place, target + 0x10 * (turn[0] % 2))

    souls.process.before_span = change
    with pytest.raises(ReadFailed, match="keep changing"):
        look.read()


def test_a_game_that_ended_is_gone(souls, pointers):
    pointers.integer("PlayerHP")
    souls.process.gone = True
    with pytest.raises(GameGone):
        pointers.integer("PlayerHP")


def test_forgetting_finds_the_way_again(souls, pointers):
    pointers.integer("PlayerHP")
    pointers.forget()
    assert calls_of(souls, lambda: pointers.integer("PlayerHP")) == 5  # four pointers, then the value with all of them


# ---- looks


FIELDS = ("PlayerHP", "PlayerX", "PlayerAnimation", "IudexHP", "AllNoHit", "LockOn")


def test_a_look_gives_all_fields_and_the_time(pointers):
    assert pointers.look(*FIELDS).read() == {
        "time": 1_000_000,
        "PlayerHP": 454,
        "PlayerX": (132.0, -68.0, 575.0),
        "PlayerAnimation": "Idle",
        "IudexHP": 1037,
        "AllNoHit": 0,
        "LockOn": 1,
    }


def test_a_look_is_one_call_and_six_for_the_first_time(souls, pointers):
    look = pointers.look(*FIELDS)
    assert calls_of(souls, look.read) == 7  # pointers six deep, then everything
    assert calls_of(souls, look.read) == 1


def test_a_look_reads_the_time_first_and_last(souls, pointers):
    look, spans = pointers.look(*FIELDS), []
    look.read()
    souls.process.before_span = lambda number, span: spans.append(span)
    look.read()
    assert spans[0] == spans[-1] == (souls.addresses["Time"], 4)
    assert spans.count(spans[0]) == 2
    assert len(spans) == len(set(spans)) + 1, "a pointer is read twice"


def test_links_are_shared(souls, pointers):
    look, spans = pointers.look("PlayerHP", "PlayerMaxHP", "PlayerSP", timed=False), []
    look.read()
    souls.process.before_span = lambda number, span: spans.append(span)
    look.read()
    assert len([size for _, size in spans if size == 8]) == 4


def test_bases_at_one_address_and_pointers_to_one_object_are_no_trouble(souls, pointers):
    assert souls.bases["Iudex"] == souls.bases["Vordt"]
    assert pointers.values("IudexHP", "VordtHP") == {"IudexHP": 1037, "VordtHP": 1328}
    iudex = souls.process.get(souls.link("IudexHP", 2), 8)
    souls.process.put(souls.link("VordtHP", 2), iudex)
    assert pointers.values("IudexHP", "VordtHP") == {"IudexHP": 1037, "VordtHP": 1037}


def tick_at(souls, number, times):
    """Let the game tick before the given span of the next batches: HP falls, and time goes on."""
    left = [times]

    def tick(at, span):
        if at == number and left[0]:
            left[0] -= 1
            souls.set(Time=souls.get("Time") + 16, PlayerHP=souls.get("PlayerHP") - 1, IudexHP=souls.get("IudexHP") - 1)

    souls.process.before_span = tick


def test_a_tick_in_the_middle_of_a_look_makes_it_look_again(souls, pointers):
    look = pointers.look("PlayerHP", "IudexHP")
    look.read()
    spans = []
    souls.process.before_span = lambda number, span: spans.append(span)
    look.read()
    between = spans.index((souls.addresses["IudexHP"], 4))
    tick_at(souls, between, 1)
    calls = souls.process.calls
    assert look.read() == {"time": 1_000_016, "PlayerHP": 453, "IudexHP": 1036}
    assert souls.process.calls - calls == 2


def test_without_the_check_it_would_have_been_torn(souls, pointers):
    """The same tick, seen by a look that does not compare times: player and boss are of two moments."""
    look, spans = pointers.look("PlayerHP", "IudexHP", timed=False), []
    look.read()
    souls.process.before_span = lambda number, span: spans.append(span)
    look.read()
    tick_at(souls, spans.index((souls.addresses["IudexHP"], 4)), 1)
    assert look.read() == {"PlayerHP": 454, "IudexHP": 1036}


def test_a_tick_before_everything_needs_no_second_look(souls, pointers):
    look = pointers.look("PlayerHP", "IudexHP")
    look.read()
    tick_at(souls, 0, 1)
    assert calls_of(souls, look.read) == 1


def test_a_tick_before_the_last_time_is_still_seen(souls, pointers):
    look, spans = pointers.look("PlayerHP", "IudexHP"), []
    look.read()
    souls.process.before_span = lambda number, span: spans.append(span)
    look.read()
    tick_at(souls, len(spans) - 1, 1)
    assert calls_of(souls, look.read) == 2


def test_a_game_that_ticks_in_every_look_is_an_error_that_says_what_to_do(souls, pointers, monkeypatch):
    monkeypatch.setattr(pointers_module, "ATTEMPTS_S", 0.0)
    look = pointers.look("PlayerHP")
    look.read()
    tick_at(souls, 2, 1000)
    calls = souls.process.calls
    with pytest.raises(ReadFailed, match="pause it or slow it down"):
        look.read()
    assert souls.process.calls - calls == ATTEMPTS


def test_looks_that_are_slow_for_a_while_are_repeated_for_longer(souls, pointers, monkeypatch):
    monkeypatch.setattr(pointers_module, "ATTEMPTS_S", 60.0)
    look = pointers.look("PlayerHP")
    look.read()
    tick_at(souls, 2, 3 * ATTEMPTS)
    assert calls_of(souls, look.read) == 3 * ATTEMPTS + 1


def test_a_load_between_two_looks_costs_only_finding_the_way(souls, pointers):
    look = pointers.look(*FIELDS)
    look.read()
    souls.move("PlayerHP", 1)
    souls.set(PlayerHP=5)
    assert look.read()["PlayerHP"] == 5
    assert look.addresses()["PlayerHP"] == souls.addresses["PlayerHP"]
    assert calls_of(souls, look.read) == 1


def test_text_that_is_none_means_not_in_game(souls, pointers):
    look = pointers.look("PlayerAnimation")
    look.read()
    souls.process.put(souls.addresses["PlayerAnimation"], b"\x00\xd8" * 20)
    with pytest.raises(ReadFailed, match="PlayerAnimation holds no text: not in game"):
        look.read()


def test_a_look_is_made_once(pointers):
    assert pointers.look("PlayerHP") is pointers.look("PlayerHP")
    assert pointers.look("PlayerHP") is not pointers.look("PlayerHP", timed=False)


def test_the_knight_is_written_as_he_reads(souls, pointers):
    assert {name: pointers.read(name) for name in KNIGHT} == KNIGHT


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Idle\0garbage".encode("utf-16-le"), "Idle"),
        ("AĀB\0".encode("utf-16-le"), "AĀB"),  # 41 00 00 01: two zero bytes that belong to two characters are no end
        (bytes(40), ""),
        (b"\xff\xfeA\0\0\0", "\ufeffA"),
        ("Idle\0".encode("utf-16-le") + b"\x00\xd8" * 15, "Idle"),
    ],
)
def test_a_text_ends_at_its_first_zero_unit(data, text):
    assert decoded(data) == text


def test_bytes_that_are_no_text_are_no_text():
    with pytest.raises(UnicodeDecodeError):
        decoded(b"\x00\xd8" * 20)  # halves of pairs without their other half
