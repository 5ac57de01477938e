"""Tables of a data file: what is taken, what is refused, and where each number comes from."""

import math
from pathlib import Path

import pytest

from soulsgym.errors import LONGEST_VALUE, DataError, suggestion
from soulsgym.spec.reader import LARGEST, Table, read_toml

FILE = Path("some.toml")


def table(**content) -> Table:
    return Table(FILE, "part", content)


def refused(call) -> DataError:
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


def test_error_names_file_key_and_value():
    error = refused(lambda: table(reach_m=-1).number("reach_m", low=0.0))
    assert str(error) == "some.toml: part.reach_m = -1: must be at least 0"
    assert (error.file, error.key, error.value) == ("some.toml", "part.reach_m", -1)


def test_error_of_the_outermost_table_has_no_leading_dot():
    assert refused(lambda: Table(FILE, "", {}).number("hp")).key == "hp"


def test_error_shows_no_more_than_the_beginning_of_a_long_value():
    error = refused(lambda: table(hp=list(range(1000))).number("hp"))
    assert "..." in str(error)
    assert len(str(error)) < LONGEST_VALUE + 80
    assert error.value == list(range(1000))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "3", [3], {}, None])
def test_number_refuses_what_is_none(value):
    error = refused(lambda: table(hp=value).number("hp"))
    assert error.reason == "must be a finite number"


@pytest.mark.parametrize(("value", "reason"), [(4.5, "at most 4"), (10**400, "at most 4"), (-(10**400), "at least 2")])
def test_number_refuses_what_is_out_of_range(value, reason):
    assert reason in refused(lambda: table(hp=value).number("hp", low=2.0, high=4.0)).reason


def test_number_has_bounds_even_if_none_are_asked_for():
    assert table(hp=LARGEST).number("hp") == LARGEST
    assert "at most 1e+06" in refused(lambda: table(hp=2.0 * LARGEST).number("hp")).reason


def test_missing_number_says_what_to_give():
    assert refused(lambda: table().number("hp")).reason == "is missing; give a number"


def test_default_stands_for_a_missing_number_but_not_for_a_bad_one():
    assert table().number("hp", default=3.0) == 3.0
    refused(lambda: table(hp="3").number("hp", default=3.0))


@pytest.mark.parametrize("value", [[], [1.0], [1.0, 2.0, 3.0], 1.0, "12", {"a": 1.0}])
def test_numbers_refuses_another_count_or_kind(value):
    assert refused(lambda: table(at=value).numbers("at", count=2)).reason == "must be a list of 2 numbers"


def test_numbers_names_the_bad_one():
    assert refused(lambda: table(at=[1.0, "b"]).numbers("at")).value == "b"


def test_span_may_not_begin_above_its_end():
    assert table(at=[1.0, 1.0]).span("at") == (1.0, 1.0)
    assert refused(lambda: table(at=[2.0, 1.0]).span("at")).reason == "must not begin above its end"


@pytest.mark.parametrize("value", [[], 1.0, [1.0], [[1.0], 2.0]])
def test_lists_refuses_what_is_no_list_of_lists(value):
    assert "list of lists" in refused(lambda: table(at=value).lists("at")).reason


def test_text_suggests_the_nearest_word():
    error = refused(lambda: table(shape="sectr").text("shape", among=("sector", "disc")))
    assert error.reason == "is not known, did you mean 'sector'?"


def test_text_lists_the_words_when_none_is_near():
    error = refused(lambda: table(shape="zzz").text("shape", among=("sector", "disc")))
    assert error.reason == "is not known; known are disc, sector"


@pytest.mark.parametrize("value", [1, True, ["a"], {}])
def test_text_refuses_another_kind(value):
    assert refused(lambda: table(name=value).text("name")).reason == "must be a string"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "must be a list of 2 strings"),
        ("ab", "must be a list of 2 strings"),
        (["a"], "must be a list of 2 strings"),
        (["a", 1], "must be a string"),
        (["a", "c"], "is not known; known are a, b"),
    ],
)
def test_texts_refuses(value, reason):
    assert refused(lambda: table(at=value).texts("at", among=("a", "b"), count=2)).reason == reason


def test_flag_is_false_when_absent_and_nothing_but_true_or_false():
    assert table().flag("sweep") is False
    assert table(sweep=True).flag("sweep") is True
    assert refused(lambda: table(sweep=1).flag("sweep")).reason == "must be true or false"


@pytest.mark.parametrize("content", [3, "text", [], None])
def test_table_must_be_a_table(content):
    assert refused(lambda: table(strike=content).table("strike")).key == "part.strike"


def test_tables_and_rows_name_their_place():
    assert [inner.path for _, inner in table(hit={"first": {}, "second": {}}).tables("hit")] == [
        "part.hit.first",
        "part.hit.second",
    ]
    assert [inner.path for inner in table(rule=[{}, {}]).rows("rule")] == ["part.rule[0]", "part.rule[1]"]
    assert refused(lambda: list(table(hit=3).tables("hit"))).reason == "must be a table of tables"
    assert refused(lambda: list(table(rule={}).rows("rule"))).reason == "must be a list of tables"
    assert refused(lambda: list(table(rule=[3]).rows("rule"))).key == "part.rule[0]"


def test_weights_need_one_above_zero():
    assert table(weights={"a": 0, "b": 2}).weights("weights") == {"a": 0.0, "b": 2.0}
    for weights in ({}, {"a": 0.0}):
        assert "above 0" in refused(lambda weights=weights: table(weights=weights).weights("weights")).reason
    assert refused(lambda: table(weights={"a": -1.0}).weights("weights")).key == "part.weights.a"


def test_close_refuses_what_nobody_took():
    opened = table(hp=1.0, reech_m=2.0, source="guess")
    opened.number("hp")
    opened.has("reach_m")
    assert refused(opened.close).reason == "is not a known key, did you mean 'reach_m'?"


def test_close_gives_the_source_of_every_number():
    opened = table(hp=1.0, poise=2.0, at=[1.0, 2.0], name="x", source={"*": "guess", "hp": "public"})
    opened.number("hp"), opened.number("poise"), opened.numbers("at"), opened.text("name")
    assert opened.close() == {"hp": "public", "poise": "guess", "at": "guess"}


@pytest.mark.parametrize(
    ("source", "key", "reason"),
    [
        (None, "part.hp", "has no source; give one of measured, derived, public, guess"),
        ({"poise": "guess"}, "part.hp", "has no source; give one of measured, derived, public, guess"),
        ("heard", "part.source", "is not one of measured, derived, public, guess"),
        (["guess"], "part.source", "is not one of measured, derived, public, guess"),
        ({"*": "guess", "hp": "heard"}, "part.source.hp", "is not one of measured, derived, public, guess"),
        ({"*": "guess", "pois": "public"}, "part.source.pois", "names no key here, did you mean 'poise'?"),
    ],
)
def test_close_refuses_a_bad_source(source, key, reason):
    content = {"hp": 1.0, "poise": 2.0} | ({} if source is None else {"source": source})
    opened = table(**content)
    opened.number("hp"), opened.number("poise")
    error = refused(opened.close)
    assert (error.key, error.reason) == (key, reason)


def test_row_without_a_source_leaves_it_to_the_table_around_it():
    row = table(weight=1.0)
    row.number("weight")
    assert row.close(inherited_source=True) == {}
    around = table(chains=[])
    around.cover("chains")
    assert refused(around.close).key == "part.chains"


def test_suggestion_without_anything_known():
    assert suggestion("iudex", ()) == "; none is known"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hp = \n", "is not TOML: Invalid value (at line 1, column 6)"),
        (b"hp = 1\nhp = 2\n", "is not TOML: Cannot overwrite a value (at line 2, column 7)"),
        (b"name = '\xff'\n", "is not UTF-8 text: invalid start byte at byte 8"),
        (b"hp = 1" + b"0" * 5000, "is not TOML"),
        (b"hp = " + b"[" * 100_000, "is not TOML"),
    ],
)
def test_broken_file(tmp_path, content, reason):
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    error = refused(lambda: read_toml(file))
    assert error.file == str(file)
    assert reason in error.reason


def test_unreadable_file(tmp_path):
    assert "cannot be read" in refused(lambda: read_toml(tmp_path / "not-there.toml")).reason
    assert "cannot be read" in refused(lambda: read_toml(tmp_path)).reason
