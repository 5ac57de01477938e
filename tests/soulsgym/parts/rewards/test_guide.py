"""The guide to a new reward works when followed to the letter, and its tables are those of the code."""

import re
import sys
from pathlib import Path

import pytest

import soulsgym.parts.rewards as package
from soulsgym.parts.rewards import PRESETS, TERMS
from soulsgym.parts.rewards.own import OWN_TERMS

GUIDE = (Path(__file__).parents[4] / "docs" / "how-to" / "add-a-reward.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def rewards_folder(tmp_path, monkeypatch):
    """A folder whose files count as files beside the rewards; what they register is gone afterwards."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    before = dict(OWN_TERMS)
    yield tmp_path
    OWN_TERMS.clear()
    OWN_TERMS.update(before)
    sys.modules.pop("soulsgym.parts.rewards.dodges", None)
    vars(package).pop("dodges", None)


def test_the_guide_runs_from_top_to_bottom(rewards_folder):
    names: dict[str, object] = {}
    for program in PROGRAMS:
        if program.startswith("# dodges.py"):
            (rewards_folder / "dodges.py").write_text(program, encoding="utf-8")
        else:
            exec(program, names)
    assert set(OWN_TERMS) >= {"dodge", "effort"}
    assert names["modest"]["duellist"] > 0.0
    state = names["Effort"](3, None).state()
    assert state["sp"].tolist() == [0.0] * 3


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
