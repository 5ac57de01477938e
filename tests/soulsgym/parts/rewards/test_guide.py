"""The guide to a new reward works when followed to the letter, and its tables are those of the code."""

import re
import sys
from pathlib import Path

from soulsgym.parts.files import parts_in
from soulsgym.parts.registry import known_names
from soulsgym.parts.rewards import PRESETS, TERMS

GUIDE = (Path(__file__).parents[4] / "docs" / "how-to" / "add-a-reward.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
FILE = next(program for program in PROGRAMS if program.startswith("# dodges.py"))


def test_the_guide_runs_from_top_to_bottom(tmp_path, monkeypatch):
    (tmp_path / "dodges.py").write_text(FILE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {}
    for program in PROGRAMS:
        if program != FILE:
            exec(program, names)
    monkeypatch.delitem(sys.modules, "dodges")
    assert set(known_names("reward term")) - set(TERMS) == {"dodge", "effort", "low"}
    assert names["modest"]["duellist"] > 0.0
    reward = names["make_reward"]({"weights": {"low": 1.0}}, 1, names["spec"])
    fights = names["np"].zeros(1, names["SimEngine"](names["spec"], 1).fights.dtype)
    fights["player_hp"], fights["player_max_hp"] = 19.0, 100
    assert reward.of(fights)[0].tolist() == [-1.0]


def test_the_file_of_the_guide_can_be_given_to_souls(tmp_path):
    (tmp_path / "dodges.py").write_text(FILE, encoding="utf-8")
    with parts_in([tmp_path / "dodges.py"]):
        assert set(known_names("reward term")) - set(TERMS) == {"dodge"}


def rows_of(first_column):
    """The table whose first column has this title, as the texts by the name in it."""
    table = re.search(rf"^\| {first_column} \|.*\n\|---\|---\|\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", table[1], re.MULTILINE))


def test_every_term_is_explained_as_the_code_does():
    assert rows_of("term") == dict(TERMS)


def test_every_preset_is_listed_with_its_weights():
    found = {
        name: {term: float(weight) for term, weight in re.findall(r"`(\w+)` ([\d.]+\d|\d+)", text)}
        for name, text in rows_of("preset").items()
    }
    assert found == {name: dict(weights) for name, weights in PRESETS.items()}
