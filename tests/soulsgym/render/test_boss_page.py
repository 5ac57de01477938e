"""The pages about bosses: they are current, and made of the data alone."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from soulsgym.errors import DataError
from soulsgym.render.boss_page import REACHED, attack_picture, boss_page, boss_pages
from soulsgym.spec import load_fight
from soulsgym.spec.fight import known_bosses

PAGES = Path(__file__).parents[3] / "docs" / "bosses"


def test_the_pages_are_current():
    """If not: souls bosses --pages docs/bosses."""
    made = boss_pages(PAGES)
    assert {file for file in PAGES.rglob("*") if file.is_file() and file.name != REACHED} == set(made)
    stale = [file.name for file, text in made.items() if file.read_text(encoding="utf-8") != text]
    assert not stale, f"{stale}: run souls bosses --pages docs/bosses"


def test_every_boss_has_a_page_that_the_index_links_to():
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    for name in known_bosses():
        assert f"({name}.md)" in index


@pytest.mark.parametrize("boss", ["iudex", "vordt"])
def test_a_picture_has_every_attack_with_all_its_blows(boss):
    spec = load_fight(boss)
    for phase in spec.boss.phases:
        root = ElementTree.fromstring(attack_picture(spec, phase))
        names = {act.first_move for act in phase.acts}
        names |= {link.move for act in phase.acts for chain in act.chains for link in chain.links}
        attacks = [move for move in spec.boss.moves if move.name in names and move.hits]
        assert len(root.findall("{*}polygon")) == sum(len(move.hits) for move in attacks)
        texts = {text.text for text in root.findall("{*}text")}
        assert {move.name.replace("_", " ") for move in attacks} <= texts


def test_a_page_tells_what_was_reached():
    page = boss_page(load_fight("vordt"), {"somebody": "wins"})
    assert "| somebody | wins |" in page
    assert "| breath: frost | Attack3018 | 1.30 to 1.87 | 335, frost 480 | ex large |" in page
    assert "What an agent reaches" not in boss_page(load_fight("vordt"), {})


def test_a_result_against_nobody_is_refused(tmp_path):
    (tmp_path / REACHED).write_text('[vord]\nsomebody = "wins"\n')
    with pytest.raises(DataError, match=r"reached\.toml: vord = None: is not a boss; known are"):
        boss_pages(tmp_path)
