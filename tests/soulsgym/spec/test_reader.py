"""Tables of a data file: what is read, what is refused, and where each number comes from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from soulsgym.errors import LONGEST_VALUE, DataError, suggestion
from soulsgym.spec.reader import (
    LARGEST,
    Key,
    Mark,
    NotNegative,
    Number,
    Numbers,
    Share,
    Span,
    Table,
    Words,
    read_toml,
)

FILE = Path("some.toml")


@dataclass(frozen=True)
class Inner:
    hp: Number
    poise: Number = 0.0


@dataclass(frozen=True)
class Blow:
    name: str
    reach_m: NotNegative
    power: Annotated[Inner | None, Mark.COVERED] = None


@dataclass(frozen=True)
class Row:
    weight: Number


@dataclass(frozen=True)
class Whole:
    hp: Annotated[float, Meta(ge=2.0, le=4.0)] = 3.0
    anything: Number = 0.0
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    chase: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.0
    pair: tuple[Number, Number] = (0.0, 0.0)
    many: Numbers = ()
    span: Span = (0.0, 0.0)
    places: Annotated[tuple[tuple[Number, Number], ...], Meta(min_length=1)] = ()
    due_s: Annotated[Numbers, Mark.ONE_OR_MORE] = ()
    name: str = ""
    shape: Literal["sector", "disc"] = "disc"
    words: Words = ()
    two_words: tuple[str, str] = ("", "")
    sweep: bool = False
    weights: Mapping[str, NotNegative] = field(default_factory=dict)
    inner: Inner | None = None
    same: Annotated[Row | None, Mark.SAME_TABLE] = None
    rows: Annotated[tuple[Row, ...], Key("row"), Mark.COVERED] = ()
    blows: Annotated[tuple[Blow, ...], Key("blow"), Mark.NAMED] = ()


@dataclass(frozen=True)
class Needed:
    hp: Number
    name: str
    shape: Literal["sector", "disc"]
    many: Numbers
    words: Words
    places: tuple[tuple[Number, Number], ...]
    weights: Mapping[str, Share]
    inner: Inner
    rows: tuple[Row, ...]


def table(**content) -> Table:
    return Table(FILE, "part", {"weight": 1.0, "source": "guess"} | content)


def refused(call) -> DataError:
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


def refusal(**content) -> DataError:
    return refused(lambda: table(**content).read(Whole))


def test_error_names_file_key_and_value():
    error = refusal(hp=-1)
    assert str(error) == "some.toml: part.hp = -1: must be at least 2"
    assert (error.file, error.key, error.value) == ("some.toml", "part.hp", -1)


def test_error_of_the_outermost_table_has_no_leading_dot():
    assert refused(lambda: Table(FILE, "", {}).read(Inner)).key == "hp"


def test_error_shows_no_more_than_the_beginning_of_a_long_value():
    error = refusal(hp=list(range(1000)))
    assert "..." in str(error)
    assert len(str(error)) < LONGEST_VALUE + 80
    assert error.value == list(range(1000))


@pytest.mark.parametrize("key", ["hp", "anything", "count", "chase"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "3", [3], {}, None])
def test_number_refuses_what_is_none(key, value):
    error = refusal(**{key: value})
    assert (error.key, error.reason) == (f"part.{key}", "must be a finite number")


@pytest.mark.parametrize(("value", "reason"), [(4.5, "at most 4"), (10**400, "at most 4"), (-(10**400), "at least 2")])
def test_number_refuses_what_is_out_of_range(value, reason):
    assert reason in refusal(hp=value).reason


def test_number_has_bounds_even_if_none_are_asked_for():
    assert table(anything=LARGEST).read(Whole).anything == LARGEST
    assert "at most 1e+06" in refusal(anything=2.0 * LARGEST).reason


@pytest.mark.parametrize("value", [-0.1, 1.0, 5])
def test_number_that_may_not_reach_its_bound(value):
    assert table(chase=0.999).read(Whole).chase == 0.999
    assert refusal(chase=value).reason == "must be at least 0 and below 1"


@pytest.mark.parametrize(
    ("value", "reason"),
    [(1.5, "must be a whole number"), (0, "must be at least 1"), (10, "must be at most 9"), (2.0, "a whole number")],
)
def test_whole_number(value, reason):
    assert table(count=9).read(Whole).count == 9
    assert reason in refusal(count=value).reason


def test_a_whole_number_is_a_number():
    read = table(hp=3, pair=[1, 2]).read(Whole)
    assert (type(read.hp), read.pair, type(read.pair[0])) == (float, (1.0, 2.0), float)


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("hp", "a number"),
        ("name", "a string"),
        ("shape", "a string"),
        ("many", "a list of numbers"),
        ("words", "a list of strings"),
        ("places", "a list of lists of numbers"),
        ("weights", "a table"),
        ("inner", "a table"),
        ("rows", "a list of tables"),
    ],
)
def test_what_is_missing_says_what_to_give(key, what):
    whole = {
        "hp": 1.0, "name": "", "shape": "disc", "many": [1.0], "words": ["a"], "places": [[1.0, 2.0]],
        "weights": {"a": 1.0}, "inner": {"hp": 1.0, "source": "guess"}, "rows": [{"weight": 1.0, "source": "guess"}],
        "source": "guess",
    }  # fmt: skip
    assert Table(FILE, "part", whole).read(Needed).inner.hp == 1.0
    del whole[key]
    error = refused(lambda: Table(FILE, "part", whole).read(Needed))
    assert (error.key, error.value, error.reason) == (f"part.{key}", None, f"is missing; give {what}")


def test_default_stands_for_a_missing_number_but_not_for_a_bad_one():
    assert table().read(Whole).hp == 3.0
    assert refusal(hp="3").value == "3"


@pytest.mark.parametrize("value", [[], [1.0], [1.0, 2.0, 3.0], 1.0, "12", {"a": 1.0}, None])
def test_numbers_refuses_another_count_or_kind(value):
    assert refusal(pair=value).reason == "must be a list of 2 numbers"


@pytest.mark.parametrize("value", [[], 1.0, "12", {"a": 1.0}])
def test_a_list_has_at_least_one_number(value):
    assert refusal(many=value).reason == "must be a list of one or more numbers"


def test_numbers_names_the_bad_one():
    error = refusal(many=[1.0, "b"])
    assert (error.key, error.value, error.reason) == ("part.many", "b", "must be a finite number")


def test_a_single_number_may_stand_for_a_list():
    assert table(due_s=2).read(Whole).due_s == (2.0,)
    assert table(due_s=[2, 3]).read(Whole).due_s == (2.0, 3.0)
    for value in (True, [], "2"):
        assert refusal(due_s=value).reason == "must be a list of one or more numbers"


def test_span_may_not_begin_above_its_end():
    assert table(span=[1.0, 1.0]).read(Whole).span == (1.0, 1.0)
    error = refusal(span=[2.0, 1.0])
    assert (error.value, error.reason) == ([2.0, 1.0], "must not begin above its end")


@pytest.mark.parametrize("value", [[], 1.0, "ab", {}])
def test_lists_refuses_what_is_no_list_of_lists(value):
    assert refusal(places=value).reason == "must be a list of lists of numbers"


@pytest.mark.parametrize("row", [1.0, [1.0], [1.0, 2.0, 3.0], {}])
def test_lists_names_the_bad_row(row):
    error = refusal(places=[[1.0, 2.0], row])
    assert (error.key, error.value, error.reason) == ("part.places", row, "must be a list of 2 numbers")


def test_text_suggests_the_nearest_word():
    assert refusal(shape="sectr").reason == "is not known, did you mean 'sector'?"


def test_text_lists_the_words_when_none_is_near():
    assert refusal(shape="zzz").reason == "is not known; known are disc, sector"


@pytest.mark.parametrize("key", ["name", "shape"])
@pytest.mark.parametrize("value", [1, True, ["a"], {}])
def test_text_refuses_another_kind(key, value):
    assert refusal(**{key: value}).reason == "must be a string"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("two_words", [], "must be a list of 2 strings"),
        ("two_words", "ab", "must be a list of 2 strings"),
        ("two_words", ["a"], "must be a list of 2 strings"),
        ("two_words", ["a", 1], "must be a string"),
        ("words", [], "must be a list of one or more strings"),
        ("words", [1], "must be a string"),
    ],
)
def test_texts_refuses(key, value, reason):
    assert refusal(**{key: value}).reason == reason


def test_flag_is_false_when_absent_and_nothing_but_true_or_false():
    assert table().read(Whole).sweep is False
    assert table(sweep=True).read(Whole).sweep is True
    assert refusal(sweep=1).reason == "must be true or false"


@pytest.mark.parametrize("content", [3, "text", [], None])
def test_table_must_be_a_table(content):
    for key in ("inner", "weights"):
        error = refusal(**{key: content})
        assert (error.key, error.reason) == (f"part.{key}", "must be a table")


def test_tables_and_rows_name_their_place():
    blow = {"reach_m": -1.0, "source": "guess"}
    assert refusal(blow={"first": blow}).key == "part.blow.first.reach_m"
    assert refusal(row=[{"weight": 1.0}, {"weight": "b"}]).key == "part.row[1].weight"
    assert refusal(inner={"hp": "b"}).key == "part.inner.hp"
    assert refusal(blow=3).reason == "must be a table of tables"
    assert refusal(row={}).reason == "must be a list of tables"
    assert (refusal(row=[3]).key, refusal(row=[3]).reason) == ("part.row[0]", "must be a table")


def test_named_tables_get_their_name_and_take_no_other():
    blow = {"reach_m": 1.0, "source": "guess"}
    assert table(blow={"first": blow}).read(Whole).blows == (Blow("first", 1.0),)
    assert refusal(blow={"first": blow | {"name": "x"}}).key == "part.blow.first.name"


def test_numbers_by_name():
    assert table(weights={"a": 0, "b": 2, "source": "guess"}).read(Whole).weights == {"a": 0.0, "b": 2.0}
    error = refusal(weights={"a": -1.0})
    assert (error.key, error.value, error.reason) == ("part.weights.a", -1.0, "must be at least 0")
    assert refusal(weights={"a": 1.0, "source": "heard"}).key == "part.weights.source"


def test_a_part_may_stand_in_the_same_table():
    assert table(weight=2.0).read(Whole).same == Row(2.0)
    assert refusal(weight="b").key == "part.weight"


def test_what_is_given_is_no_key():
    assert Table(FILE, "", {}).read(Inner, hp=7.0) == Inner(7.0)
    assert refused(lambda: Table(FILE, "", {"hp": 1.0}).read(Inner, hp=7.0)).reason[:18] == "is not a known key"


# ---------------------------------------------------------------- keys and sources


def test_unknown_keys_are_refused_before_missing_ones():
    error = refused(lambda: Table(FILE, "part", {"hpp": 1.0, "source": "guess"}).read(Inner))
    assert (error.key, error.value, error.reason) == ("part.hpp", 1.0, "is not a known key, did you mean 'hp'?")


def test_an_unknown_key_far_from_any_lists_those_that_are_known():
    error = refusal(blow={"first": {"reach_m": 1.0, "power": {"hp": 1.0, "zzz": 1.0}, "source": "guess"}})
    assert (error.key, error.value) == ("part.blow.first.power.zzz", 1.0)
    assert error.reason == "is not a known key; known are hp, poise, source"


def test_the_source_of_every_number_is_noted():
    sources = {}
    content = {"hp": 3.0, "pair": [1.0, 2.0], "name": "x", "weights": {"a": 1.0}, "row": [{"weight": 1.0}]}
    blow = {"reach_m": 1.0, "power": {"hp": 1.0}, "source": "measured"}
    table(**content, blow={"cut": blow}, source={"*": "guess", "hp": "public"}).read(Whole, sources)
    assert sources == {
        "part.hp": "public",
        "part.pair": "guess",
        "part.weights": "guess",
        "part.weight": "guess",
        "part.row": "guess",
        "part.blow.cut.reach_m": "measured",
        "part.blow.cut.power": "measured",
    }


@pytest.mark.parametrize(
    ("source", "key", "reason"),
    [
        (None, "part.hp", "has no source; give one of measured, derived, public, guess"),
        ({"poise": "guess"}, "part.hp", "has no source; give one of measured, derived, public, guess"),
        ("heard", "part.source", "is not one of measured, derived, public, guess"),
        (["guess"], "part.source", "is not one of measured, derived, public, guess"),
        (3, "part.source", "is not one of measured, derived, public, guess"),
        ({"*": "guess", "hp": "heard"}, "part.source.hp", "is not one of measured, derived, public, guess"),
        ({"*": "guess", "pois": "public"}, "part.source.pois", "names no key here, did you mean 'poise'?"),
    ],
)
def test_a_bad_source_is_refused(source, key, reason):
    content = {"hp": 1.0, "poise": 2.0} | ({} if source is None else {"source": source})
    error = refused(lambda: Table(FILE, "part", content).read(Inner))
    assert (error.key, error.reason) == (key, reason)


def test_a_table_in_a_table_has_a_source_of_its_own_unless_it_is_covered():
    assert refusal(inner={"hp": 1.0}).key == "part.inner.hp"
    assert table(row=[{"weight": 1.0}]).read(Whole).rows == (Row(1.0),)
    assert refusal(row=[{"weight": 1.0, "source": "heard"}]).key == "part.row[0].source"
    assert refusal(row=[{"weight": 1.0}], source={"weight": "guess"}).key == "part.row"


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
