"""`souls bosses`: the table, the JSON object and the pages."""

import json

from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsgym.spec.fight import known_bosses


def souls_bosses(*arguments):
    return CliRunner().invoke(app, ["bosses", *arguments])


def test_all_bosses_are_listed_with_their_numbers_by_source():
    rows = {row["boss"]: row for row in json.loads(souls_bosses("--json").stdout)["bosses"]}
    assert set(rows) == set(known_bosses())
    assert (rows["iudex"]["name"], rows["iudex"]["title"], rows["iudex"]["phases"]) == ("Iudex Gundyr", "darksouls3", 2)
    assert rows["iudex"]["measured"] > 1000
    assert rows["vordt"]["measured"] == 0 < rows["vordt"]["public"] < rows["vordt"]["guess"]
    table = souls_bosses().stdout
    assert all(name in table for name in rows)


def test_pages_are_written_into_a_new_folder(tmp_path):
    result = souls_bosses("--pages", str(tmp_path / "new"))
    assert result.exit_code == 0
    assert "wrote" in result.stdout
    assert (tmp_path / "new" / "vordt.md").is_file()
    assert (tmp_path / "new" / "images" / "vordt-2.svg").is_file()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    result = souls_bosses("--pages", str(tmp_path / "file" / "pages"))
    assert isinstance(result.exception, RunError)
    assert "pages: cannot be written: " in str(result.exception)
