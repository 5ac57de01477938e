"""`souls data`: the table, the JSON object and the errors."""

import json
import subprocess
import sys

from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.errors import DataError, MisuseError
from soulsgym.spec.fight import DATA
from soulsgym.spec.provenance import data_provenance

VARIANT = '[adjust]\narc_scale = 2.0\ninner_scale = 0.5\nsource = "measured"\n'


def souls_data(*arguments):
    return CliRunner().invoke(app, ["data", *arguments])


def test_the_table_has_every_file_and_a_total():
    lines = souls_data().stdout.splitlines()
    for one in data_provenance():
        (row,) = [line for line in lines if f" {one.file.relative_to(DATA).with_suffix('').as_posix()} " in line]
        assert [int(cell) for cell in row.replace(",", "").split()[1:]] == [*one.counts.values(), one.total]
    assert any("total" in line and f"{sum(one.total for one in data_provenance()):,}" in line for line in lines)


def test_the_json_object_adds_up():
    counted = json.loads(souls_data("--json").stdout)
    assert counted["files"][0]["file"] == "darksouls3/characters/knight.toml"
    sources = ("measured", "derived", "public", "guess")
    for row in counted["files"]:
        assert row["total"] == sum(row[source] for source in sources) > 0
    for key in (*sources, "total"):
        assert counted["total"][key] == sum(row[key] for row in counted["files"])


def test_a_boss_has_its_own_file_and_its_variants():
    files = [row["file"] for row in json.loads(souls_data("iudex", "--json").stdout)["files"]]
    assert files[0] == "darksouls3/bosses/iudex.toml"
    assert "darksouls3/bosses/iudex.hard.toml" in files


def test_a_file_of_the_user(tmp_path):
    file = tmp_path / "iudex.mine.toml"
    file.write_text(VARIANT, encoding="utf-8")
    (row,) = json.loads(souls_data(str(file), "--json").stdout)["files"]
    assert row == {"file": file.as_posix(), "measured": 2, "derived": 0, "public": 0, "guess": 0, "total": 2}


def test_errors_are_one_sentence(tmp_path):
    assert isinstance(souls_data("iudx").exception, MisuseError)
    missing = souls_data(str(tmp_path / "none.toml")).exception
    assert isinstance(missing, DataError)
    assert "'none.toml': cannot be read" in str(missing)
    broken = tmp_path / "broken.toml"
    broken.write_text("[body", encoding="utf-8")
    assert "is not TOML" in str(souls_data(str(broken)).exception)


def test_it_does_without_torch():
    code = (
        "import sys\n"
        "from soulsai.cli.main import app\n"
        "app(['data', 'iudex'], standalone_mode=False)\n"
        "assert 'torch' not in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr


def test_help_has_an_example():
    assert "souls data iudex" in souls_data("--help").stdout
