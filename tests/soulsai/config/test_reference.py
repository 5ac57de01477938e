"""The config reference is complete and up to date."""

from pathlib import Path

from msgspec import Struct

from soulsai.config import Config, preset_names, reference

PAGE = Path(__file__).parents[3] / "docs" / "config.md"


def test_the_page_is_up_to_date():
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    up_to_date = written == reference() + "\n"
    assert up_to_date, f"{PAGE} differs from the schema; rewrite it with: souls config reference > docs/config.md"


def test_every_key_has_a_row_in_its_section():
    parts = reference().split("\n## ")
    for name in Config.__struct_fields__:
        value = getattr(Config(), name)
        keys, title = (
            (value.__struct_fields__, f"[{name}]") if isinstance(value, Struct) else ([name], "Top of the file")
        )
        part = next(part for part in parts if part.startswith(f"{title}\n"))
        assert all(f"\n| `{key}` | " in part for key in keys)


def test_a_row_says_default_limits_and_meaning():
    rows = reference().splitlines()
    assert "| `gamma` | `0.98` | a number from 0 to 1 | discount of an environment step |" in rows
    assert "| `phase` | `1` | a whole number from 1 to 9 | phase in which a standard fight begins |" in rows
    assert '| `world` | `"fight"` | one of fight, gym | what to train on |' in rows
    assert (
        "| `kwargs` | `{}` | a table of strings, numbers, true or false | keyword arguments of gymnasium.make |" in rows
    )


def test_rows_have_four_cells_and_presets_two():
    text = reference()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5, 3}
    assert all(f"| `{name}` | " in text for name in preset_names())
