"""Variants: what a file laid over a boss changes, and what it leaves."""

from dataclasses import replace

import pytest

from soulsgym.errors import DataError
from soulsgym.sim.pack import pack
from soulsgym.spec import load_fight
from soulsgym.spec.damage import Power
from soulsgym.spec.draw import write_overlay
from soulsgym.spec.overlay import overlay

HARD = "bosses/iudex.hard.toml"


@pytest.fixture(scope="module")
def hard():
    return load_fight("iudex", "hard").boss


@pytest.fixture
def adjust(data):
    """What the shipped variant says it changes."""
    return data.get(HARD, "adjust")


def blows(boss):
    return [(move, hit) for move in boss.moves for hit in move.hits]


def test_tables_are_merged_and_everything_else_replaced():
    below = {"a": {"b": 1, "c": [1, 2]}, "d": [{"e": 1}], "f": 2}
    above = {"a": {"c": [3]}, "d": [{"e": 5}, {}], "g": {"h": 1}}
    assert overlay(below, above) == {"a": {"b": 1, "c": [3]}, "d": [{"e": 5}, {}], "f": 2, "g": {"h": 1}}
    assert below == {"a": {"b": 1, "c": [1, 2]}, "d": [{"e": 1}], "f": 2}


def test_a_variant_of_another_boss_is_refused(tmp_path):
    file = write_overlay(tmp_path / "other.toml", "vordt", 1)
    with pytest.raises(DataError, match=r"other\.toml: move = .* is no move of iudex"):
        load_fight("iudex", str(file))


def test_hard_has_the_same_moves_at_the_same_times(spec, hard):
    assert [move.name for move in hard.moves] == [move.name for move in spec.boss.moves]
    for (_, mine), (_, its) in zip(blows(spec.boss), blows(hard), strict=True):
        for key in ("name", "from_s", "to_s", "shape", "reach_m", "power", "push_m", "reaction", "parriable", "sweep"):
            assert getattr(mine, key) == getattr(its, key)
    assert hard.phases == spec.boss.phases


def test_hard_has_wider_arcs_and_lanes(spec, hard, adjust):
    assert adjust["arc_scale"] > 1.0
    assert adjust["half_width_scale"] > 1.0
    for (_, mine), (_, its) in zip(blows(spec.boss), blows(hard), strict=True):
        assert its.half_width_m == pytest.approx(adjust["half_width_scale"] * mine.half_width_m)
        for narrow, wide in zip(mine.arc_deg, its.arc_deg, strict=True):
            assert wide == pytest.approx(max(-180.0, min(180.0, adjust["arc_scale"] * narrow)))


def test_hard_has_no_gap_at_his_feet(spec, hard):
    assert any(hit.inner_m > 0.0 for _, hit in blows(spec.boss))
    assert all(hit.inner_m == 0.0 for _, hit in blows(hard))


def test_hard_turns_with_the_player_until_the_hit(spec, hard, adjust):
    for mine, its in zip(spec.boss.moves, hard.moves, strict=True):
        if its.hits and its.kind == "attack":
            track = its.tracks[-1]
            assert its.tracks[:-1] == mine.tracks
            assert (track.from_s, track.deg_per_s) == (0.0, adjust["track_until_hit_deg_per_s"])
            assert track.to_s == min(hit.from_s for hit in its.hits)
        else:
            assert its.tracks == mine.tracks


def test_hard_says_where_its_numbers_come_from(hard):
    assert hard.sources["adjust.arc_scale"] == "guess"
    assert hard.sources["adjust.track_until_hit_deg_per_s"] == "guess"


def test_hard_fits_the_tables(hard):
    assert pack(load_fight("iudex", "hard")).shape == (1,)
    assert hard.name == "Iudex Gundyr"


def test_variant_without_adjustments_changes_only_what_it_lists(data):
    data.write(HARD, "[body]\nhp = 2000\n[move.swing.hit.sweep]\nattack = 300\n")
    plain, heavy = data.load().boss, data.load("hard").boss
    assert (heavy.hp, heavy.poise) == (2000.0, plain.poise)
    [sweep] = heavy.moves[heavy.move_index("swing")].hits
    [before] = plain.moves[plain.move_index("swing")].hits
    assert sweep == replace(before, power=Power(300.0, "standard"))


def test_variant_cannot_put_damage_in_the_place_of_an_attack(data):
    data.write(HARD, "[move.swing.hit.sweep]\ndamage = 200\n")
    error = data.refusal("hard")
    assert error.file.endswith("iudex.hard.toml")
    assert (error.key, error.reason) == ("move.swing.hit.sweep.attack", "stands beside damage; give one of them")


def test_variant_changes_how_hard_the_player_hits(data):
    data.write(HARD, "[defence.absorption]\nstandard = 0.425\n")
    plain, hard = pack(data.load())[0], pack(data.load("hard"))[0]
    light = next(i for i, move in enumerate(data.load().player.moves) if move.name == "light_1")
    row = plain["player_moves"][light]["first_strike"]
    assert hard["strikes"][row]["damage"] == pytest.approx(0.5 * plain["strikes"][row]["damage"])


def test_variant_may_add_a_move_and_use_it(data):
    punch = data.get("bosses/iudex.toml", "move.punch")
    data.set(HARD, "move", {"second_punch": punch})
    chain = {"weight": 1.0, "links": [{"move": "second_punch", "within_m": 4.0}]}
    data.set(HARD, "phase", {"1": {"act": {"punch": {"chains": [chain]}}}})
    acts = {act.name: act for act in data.load("hard").boss.phases[0].acts}
    assert [link.move for link in acts["punch"].chains[0].links] == ["second_punch"]


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("adjust = 3\n", "adjust", "must be a table"),
        ("[adjust]\narc_scale = -1.0\nsource = 'guess'\n", "adjust.arc_scale", "must be at least 0"),
        ("[adjust]\ninner_scale = 2.0\nsource = 'guess'\n", "adjust.inner_scale", "must be at most 1"),
        ("[adjust]\narc_scal = 1.0\n", "adjust.arc_scal", "is not a known key, did you mean 'arc_scale'?"),
        ("[adjust]\narc_scale = 1.0\n", "adjust.arc_scale", "has no source"),
        ("[body]\nhpp = 3\n", "body.hpp", "is not a known key, did you mean 'hp'?"),
        ("[body]\nhp = 'much'\n", "body.hp", "must be a finite number"),
        ("body = 3\n", "body", "must be a table"),
        ("move = 3\n[adjust]\narc_scale = 1.0\nsource = 'guess'\n", "move", "must be a table of tables"),
        (
            "[move.swing.hit.sweep]\narc_deg = 'wide'\n[adjust]\narc_scale = 1.0\nsource = 'guess'",
            "move.swing.hit.sweep.arc_deg",
            "must be a list of 2 numbers",
        ),
        ("[move.swing.hit.sweep]\nto_s = 9.0\n", "move.swing.hit.sweep.to_s", "lies past the end of the move"),
        ("animations = 3\n", "animations", "must be a string"),
        ("hp = \n", "file", "is not TOML"),
    ],
)
def test_error_names_the_variant_s_file(data, text, key, reason):
    data.write(HARD, text)
    error = data.refusal("hard")
    assert error.file.endswith("iudex.hard.toml")
    assert error.key == key
    assert reason in error.reason
    assert data.load().boss.name == "Iudex Gundyr"


def test_error_below_names_the_boss_s_file(data):
    data.set("bosses/iudex.toml", "body.hp", "much")
    assert data.refusal("hard").file.endswith("bosses/iudex.toml")
