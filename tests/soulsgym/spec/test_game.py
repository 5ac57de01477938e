"""How fights are set up in the running game: what the files say, and what they may not say."""

import pytest

from soulsgym.errors import DataError, MisuseError
from soulsgym.spec import load_fight
from soulsgym.spec.boss import SIMULATED_TABLES
from soulsgym.spec.game import FALL_MOVE, NO_MOVE, ROLL_MOVE
from soulsgym.spec.population import Population, evaluation_specs

IUDEX, VORDT, KNIGHT, LATER = (
    "bosses/iudex.toml", "bosses/vordt.toml", "characters/knight.toml", "characters/knight_15.toml",
)  # fmt: skip


@pytest.fixture(scope="module")
def iudex():
    return load_fight("iudex").game


@pytest.fixture(scope="module")
def vordt():
    return load_fight("vordt", moves=False).game


@pytest.fixture
def bare(data, tmp_path):
    """The file of a boss of whom only that is known which the running game needs."""
    content = {key: value for key, value in data.content(VORDT).items() if key not in SIMULATED_TABLES}
    content["body"] = {"hp": 1328, "source": "public"}
    file = tmp_path / "bare.toml"
    data.write(file, content)
    return str(file)


def refusal(data, boss="iudex"):
    with pytest.raises(DataError) as caught:
        load_fight(boss, data=data.root, moves=False)
    return caught.value


def test_iudex_is_set_up_with_the_numbers_of_the_simulator(iudex, spec):
    assert (iudex.boss, iudex.name, iudex.title) == ("iudex", "Iudex Gundyr", "darksouls3")
    assert (iudex.player_hp, iudex.player_sp, iudex.boss_hp) == (454, 95, 1037)
    assert (iudex.low_m, iudex.high_m, iudex.centre_m) == (spec.arena.low_m, spec.arena.high_m, spec.arena.centre_m)
    assert iudex.player_start == (132.176, 575.064, -68.066, -2.768)
    assert iudex.boss_start == (141.3, 591.9, -68.8, 0.6)
    assert tuple((x, y, heading) for x, y, _, heading in iudex.player_starts) == spec.arena.player_starts
    assert iudex.player_starts[1] == (128.620, 588.938, -68.699, -1.954)
    assert (iudex.bonfire, iudex.lock_on.bonus_range_m, iudex.near.boss_m) == ("Cemetery of Ash", 45.0, 2.0)
    assert iudex.statuses == ()


def test_the_animation_of_a_change_is_that_of_the_boss_s_own_move(iudex, vordt):
    [change] = iudex.changes
    assert (iudex.phases, change.boss_hp, change.animation) == (2, 100, "Attack1500")
    [change] = vordt.changes
    assert (vordt.phases, change.boss_hp, change.animation) == (2, 500, "Attack1500")


def test_attributes_come_in_the_order_of_the_title(iudex, vordt):
    assert iudex.attributes == (9, 12, 10, 11, 15, 13, 12, 9, 9, 7)
    assert vordt.attributes == (15, 13, 10, 13, 15, 16, 12, 9, 9, 7)


def test_the_same_name_is_another_move_in_another_phase(iudex):
    assert iudex.move_names[iudex.boss_move("Attack3000", 1)] == "dash"
    assert iudex.move_names[iudex.boss_move("Attack3000", 2)] == "beast_thrust"
    assert iudex.move_names[iudex.boss_move("ThrowAtk", 1)] == "throw"
    assert iudex.move_names[iudex.boss_move("SABreak", 2)] == "stagger"
    assert iudex.boss_move("Attack3015", 1) == NO_MOVE


def test_moves_of_the_player_by_name(iudex, spec):
    assert spec.player.moves[iudex.player_move("AttackRightLight1")].name == "light_1"
    assert iudex.player_move("RollingMediumSelftra") == ROLL_MOVE
    assert iudex.player_move("FallLoop") == FALL_MOVE
    assert iudex.player_move("Idle") == NO_MOVE


def test_vordt_is_fought_by_a_knight_of_a_later_level(iudex, vordt):
    assert vordt.player_moves == iudex.player_moves
    assert (vordt.player_hp, vordt.player_sp, vordt.boss_hp) == (483, 99, 1328)
    assert vordt.statuses == ("frost",)
    assert vordt.move_names[vordt.boss_move("Attack3019", 2)] == "sweep"


def test_labels_of_vordt_that_soulsgym_knows_keep_their_ids(vordt):
    assert vordt.boss_animations.index("RunBattle") == 22
    assert vordt.boss_animations[26:28] == ("SABreak", "Attack3002")


def test_a_boss_whose_moves_nobody_has_described(bare):
    game = load_fight(bare, moves=False).game
    assert (game.move_names, game.boss_moves) == ((), ())
    assert game.boss_move("Attack3000", 1) == NO_MOVE
    assert [change.animation for change in game.changes] == ["Attack1500"]


@pytest.mark.parametrize(
    ("boss", "animation", "rests"),
    [
        ("iudex", "WalkLeftBattle", True), ("iudex", "IdleBattle", True), ("iudex", "", True),
        ("iudex", "Attack3000", False), ("vordt", "Attack9910", True), ("vordt", "WalkFrontBattle", False),
    ],
)  # fmt: skip
def test_when_a_boss_rests(boss, animation, rests):
    assert load_fight(boss, moves=False).game.is_resting(animation) is rests


@pytest.mark.parametrize(
    "call",
    [load_fight, lambda boss: Population(boss, ["standard"], 2), lambda boss: evaluation_specs(boss, "drawn:2")],
)
def test_a_boss_without_moves_is_refused_for_the_simulator(bare, call):
    with pytest.raises(MisuseError, match=r"boss .*bare\.toml' has no moves yet, .* game alone; .*bare\.toml$"):
        call(bare)


def test_a_boss_without_a_set_up_is_refused_for_the_game(data):
    data.remove(IUDEX, "game")
    with pytest.raises(MisuseError, match=r"boss 'iudex' is not known for the running game; .*iudex\.toml a \[game\]"):
        data.load().game  # noqa: B018 (it raises)


def test_a_boss_who_is_only_half_described_is_no_boss_of_the_game_alone(data):
    data.remove(IUDEX, "move")
    assert data.refusal().key == "move.idle"
    data.remove(IUDEX, "phase")
    assert data.refusal().key == "move.idle"


@pytest.mark.parametrize(
    ("key", "value", "at", "reason"),
    [
        ("fog_view", [1.0, 1.0, 0.0], "fog_view", "must be a unit vector; its length is 1.414"),
        ("fog_wall", [1.0, 1.0, 0.0, 4.0], "fog_wall", "must have a heading from -pi to pi"),
        ("fog_wall", [1.0, 1.0, 0.0], "fog_wall", "must be a list of 4 numbers"),
        ("bonfire_m", "there", "bonfire_m", "must be a list of 3 numbers"),
        ("bonfire", 3, "bonfire", "must be a string"),
        ("resting", [], "resting", "must be a list of one or more strings"),
        ("statuses", "frost", "statuses", "must be a list of one or more strings"),
        ("frost", True, "frost", "is not a known key"),
        ("near", {}, "near.bonfire_m", "is missing; give a number"),
        ("near.player_m", 0.0, "near.player_m", "must be at least 0.01"),
        ("near.playr_m", 1.0, "near.playr_m", "is not a known key, did you mean 'player_m'?"),
        ("change", [], "change", "must be 1 in number, one for each phase but the first"),
        ("change", {}, "change", "must be a list of tables"),
        ("change.0.boss_hp", 0, "change[0].boss_hp", "must be at least 1"),
        ("change.0.boss_hp", 1.5, "change[0].boss_hp", "must be a whole number"),
        ("change.0.begins_within_s", 301.0, "change[0].begins_within_s", "must be at most 300"),
        ("change.0.source", "rumour", "change[0].source", "is not one of measured, derived, public, guess"),
    ],
)
def test_bad_value(data, key, value, at, reason):
    data.set(IUDEX, f"game.{key}", value)
    error = data.refusal()
    assert error.file.endswith("iudex.toml")
    assert error.key == f"game.{at}"
    assert reason in error.reason


@pytest.mark.parametrize("key", ["game", "game.near", "game.change.0"])
def test_table_without_a_source(data, key):
    data.remove(IUDEX, f"{key}.source")
    assert "has no source" in data.refusal().reason


def test_a_boss_without_moves_has_nothing_but_health(data, bare):
    content = data.content(bare)
    content["body"]["poise"] = 100.0
    data.write(bare, content)
    error = refusal(data, bare)
    assert (error.key, error.value, error.reason[:18]) == ("body.poise", 100.0, "is not a known key")


def test_an_arena_without_ground_and_edge_is_for_the_game_alone(data):
    data.set(IUDEX, "arena", "vordts_hall")
    data.remove("arenas.toml", "vordts_hall.ground")
    error = data.refusal()
    assert error.file.endswith("arenas.toml")
    assert (error.key, error.reason) == ("vordts_hall.ground", "is missing; give a table")


def test_a_start_outside_the_bounds(data):
    data.set("arenas.toml", "vordts_hall.boss_start", [27.0, 2.0, 5.0, 3.1])
    error = refusal(data, "vordt")
    assert (error.key, error.value) == ("vordts_hall.boss_start", [27.0, 2.0, 5.0, 3.1])
    assert "must lie between [13.0, -7.0, -27.0] and" in error.reason


# ---------------------------------------------------------------- characters and titles


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("luck", None, "is missing; give a number"),
        ("luk", 7, "is not a known key, did you mean 'luck'?"),
        ("luck", 0, "must be at least 1"),
        ("luck", 100, "must be from 1 to 99"),
        ("luck", 7.5, "must be a whole number"),
        ("luck", "much", "must be a finite number"),
    ],
)
def test_attributes_are_those_of_the_title(data, key, value, reason):
    if value is None:
        data.remove(KNIGHT, f"body.attributes.{key}")
    else:
        data.set(KNIGHT, f"body.attributes.{key}", value)
    error = data.refusal()
    assert error.file.endswith("knight.toml")
    assert (error.key, error.value) == (f"body.attributes.{key}", value)
    assert reason in error.reason


def test_a_character_of_the_simulator_alone_needs_no_attributes(data):
    data.remove(KNIGHT, "body.attributes")
    assert data.refusal().key == "body.attributes.soul_level"
    data.remove(IUDEX, "game")
    assert data.load().player.attributes == {}


def test_a_character_may_be_like_another(data):
    later = load_fight("vordt", data=data.root, moves=False).player
    knight = data.load().player
    assert (later.name, later.hp, later.sp) == ("knight, level 15", 483.0, 99.0)
    assert (later.roll, later.walk, later.sp_floor) == (knight.roll, knight.walk, knight.sp_floor)
    assert [move.name for move in later.moves] == [move.name for move in knight.moves]
    assert later.defence.absorption == knight.defence.absorption
    assert (later.sources["body.sp"], later.sources["body.sp_per_s"]) == ("guess", "measured")


def test_a_boss_may_be_fought_by_another_character(data):
    data.set(IUDEX, "character", "knight_15")
    assert data.load().player.hp == 483.0
    assert [file.name for file in data.load().files[:3]] == ["iudex.toml", "knight_15.toml", "knight.toml"]


def test_what_is_wrong_in_either_file_of_a_character_names_that_file(data):
    data.set(LATER, "body.hp", -1)
    error = refusal(data, "vordt")
    assert (error.file.rpartition("/")[2], error.key, error.value) == ("knight_15.toml", "body.hp", -1)
    data.set(KNIGHT, "body.hp", -2)
    error = refusal(data, "vordt")
    assert (error.file.rpartition("/")[2], error.key, error.value) == ("knight.toml", "body.hp", -2)


@pytest.mark.parametrize(
    ("file", "key", "value", "reason"),
    [
        (VORDT, "character", "knigt", "is not a character, did you mean 'knight'?"),
        (VORDT, "character", 3, "must be a string"),
        (LATER, "like", "knigth", "is not a character, did you mean 'knight'?"),
        (LATER, "like", "knight_15", "is like another itself; name that one"),
        (VORDT, "title", "darksouls", "is not known, did you mean 'darksouls3'?"),
        (VORDT, "title", "eldenring", "is not known"),
    ],
)
def test_characters_and_titles_that_are_not_there(data, file, key, value, reason):
    data.set(file, key, value)
    error = refusal(data, "vordt")
    assert (error.key, error.value) == (key, value)
    assert error.file.endswith(file)
    assert reason in error.reason


def test_a_boss_is_found_in_the_folder_of_any_title(data):
    data.path.rename(data.root / "another")
    (data.root / "another" / VORDT).unlink()
    data.path = data.root / "another"
    data.set(IUDEX, "title", "another")
    assert load_fight("iudex", data=data.root).title.id == "another"
    with pytest.raises(MisuseError, match="boss 'vordt' is not known"):
        load_fight("vordt", data=data.root, moves=False)


@pytest.mark.parametrize(
    ("key", "value", "at", "reason"),
    [
        ("lock_on.unseen_s", -1.0, "lock_on.unseen_s", "must be at least 0"),
        ("lock_on.unseen", 1.0, "lock_on.unseen", "is not a known key, did you mean 'unseen_s'?"),
        ("attribute", {}, "attribute", "must be a list of tables"),
        ("attribute.0.offset", 0.5, "attribute[0].offset", "must be a whole number"),
        ("attribute.0.name", 3, "attribute[0].name", "must be a string"),
        ("lock", {}, "lock", "is not a known key, did you mean 'lock_on'?"),
    ],
)
def test_bad_title(data, key, value, at, reason):
    data.set("title.toml", key, value)
    error = data.refusal()
    assert error.file.endswith("title.toml")
    assert error.key == at
    assert reason in error.reason


def test_a_title_without_a_lock_on_has_no_fights_in_the_game(data):
    data.remove("title.toml", "lock_on")
    error = data.refusal()
    assert (error.key, error.reason) == ("lock_on", "is missing; a fight in the running game needs it")


# ---------------------------------------------------------------- what Vordt needs beside the rest


@pytest.mark.parametrize(
    ("file", "key", "value", "at", "reason"),
    [
        (
            VORDT,
            "move.slam.hit.mace.status",
            {"frst": 90.0},
            "move.slam.hit.mace.status.frst",
            "is not a status of the",
        ),
        (VORDT, "move.slam.hit.mace.status", {"frost": -1.0}, "move.slam.hit.mace.status.frost", "must be at least 0"),
        (VORDT, "move.slam.hit.mace.status", 90.0, "move.slam.hit.mace.status", "must be a table"),
        (VORDT, "phase.2.aura.status", "poison", "phase.2.aura.status", "is not a status of the character"),
        (VORDT, "phase.2.aura.within_m", -1.0, "phase.2.aura.within_m", "must be at least 0"),
        (VORDT, "phase.2.rule.0.timer", "others", "phase.2.rule[0].timer", None),
        (VORDT, "phase.2.rule.0.every_s", 9.0, "phase.2.rule[1].timer", "needs every_s, and the same for all"),
        (VORDT, "phase.2.rule.3.timer", "charges", "phase.2.rule[3].timer", "needs every_s, and the same for all"),
        (
            VORDT,
            "phase.1.act.sweep_after_hop.move",
            "swep",
            "phase.1.act.sweep_after_hop.move",
            "did you mean 'sweep'?",
        ),
        (
            VORDT,
            "phase.1.act.sweep_after_hop.move",
            "idle",
            "phase.1.act.sweep_after_hop.move",
            "is not a move of kind",
        ),
        (VORDT, "body.bulk_m", 11.0, "body.bulk_m", "must be at most 10"),
        (VORDT, "body.contact_push", 1.5, "body.contact_push", "must be at most 1"),
        (LATER, "status.frost.resistance", 0.0, "status.frost.resistance", "must be at least 1"),
        (LATER, "status.frost.damage_taken_factor", 0.5, "status.frost.damage_taken_factor", "must be at least 1"),
        (LATER, "status.frost.resistence", 1.0, "status.frost.resistence", "did you mean 'resistance'?"),
    ],
)
def test_bad_value_of_what_vordt_needs(data, file, key, value, at, reason):
    data.set(file, key, value)
    if reason is None:
        load_fight("vordt", data=data.root)
        return
    with pytest.raises(DataError) as caught:
        load_fight("vordt", data=data.root)
    assert caught.value.file.endswith(file)
    assert caught.value.key == at
    assert reason in caught.value.reason
