"""The guide to a new boss works when followed to the letter, and the guide to the files leaves no key out."""

import re
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.engine import standard_starts
from soulsgym.errors import SoulsError
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight, variants
from soulsgym.spec.arena import ArenaTable
from soulsgym.spec.boss import BossFile, BossMove, DrawBounds, Phase
from soulsgym.spec.damage import damage_of
from soulsgym.spec.draw import KINDS, MAX_STRENGTH, drawn_spec
from soulsgym.spec.fight import DATA
from soulsgym.spec.overlay import Adjust
from soulsgym.spec.player import BossLabels, CharacterFile, LabelFile
from soulsgym.spec.reader import Mark, parts_of
from soulsgym.spec.title import Title
from soulsgym.state import Outcome

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "how-to" / "add-a-boss.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for found, text in BLOCK.findall(GUIDE) if found == language]


@pytest.fixture
def followed(tmp_path, monkeypatch):
    """A folder in which steps 1 to 4 and 7 of the guide were done."""
    folder = tmp_path / "my-boss"
    folder.mkdir()
    for name in ("animations.toml", "arenas.toml"):
        shutil.copy(DATA / "darksouls3" / name, folder)
    for text in blocks("toml"):
        file = folder / text.split("\n", 1)[0].removeprefix("# ")
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(f"{before}\n{text}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder / "sentinel.toml"


def test_program_of_the_guide_runs(followed):
    [program] = [text for text in blocks("python") if "SimEngine" in text]
    names: dict[str, object] = {}
    exec(program, names)
    outcomes = names["outcomes"]
    assert outcomes.sum() == 64
    assert outcomes[Outcome.DIED] > 0


@pytest.mark.parametrize("variant", ["standard", "hard"])
def test_example_is_fought_on_finite_ground(followed, variant):
    spec = load_fight(str(followed), variant)
    engine = SimEngine(spec, n=16, randomize=1.0)
    engine.reset(np.ones(16, np.bool_), standard_starts(16), np.arange(16, dtype=np.uint64))
    generator = np.random.default_rng(1)
    moves = set()
    for _ in range(200):
        engine.step(ACTION_CONTROLS[generator.integers(20, size=16)])
        moves |= {spec.boss.moves[move].name for move in engine.fights["boss_move"]}
    for key in ("player_pose", "boss_pose", "camera_pose"):
        assert np.isfinite(engine.fights[key]).all()
    assert {"walk", "cut", "thrust"} <= moves


def test_example_can_be_drawn(followed):
    plain = load_fight(str(followed))
    for seed in range(30):
        drawn = drawn_spec(str(followed), seed, MAX_STRENGTH)
        assert drawn != plain
        assert [move.name for move in drawn.boss.moves] == [move.name for move in plain.boss.moves]


def test_variant_of_the_guide(followed):
    assert variants(str(followed)) == ("standard", "hard")
    plain, hard = (load_fight(str(followed), variant).boss for variant in ("standard", "hard"))
    assert (plain.hp, hard.hp) == (600.0, 800.0)
    [cut] = hard.moves[hard.move_index("cut")].hits
    assert cut.arc_deg == (120.0, -120.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"Attack3000"\nlink',
            '"Atack3000"\nlink',
            "move.cut.animation = 'Atack3000': is not known, did you mean 'Attack3000'?",
        ),
        ("[move.stagger]", "[move.staggered]", "move.stagger = None: is missing; every boss needs it"),
        ('kind = "idle"\n', "", "move.idle.kind = 'attack': must be 'idle' for this move"),
        (
            "link_s = 1.3\n",
            "",
            "phase.1.act.cut.chains[1].links[0].move = 'thrust': cannot follow 'cut', which has no link_s",
        ),
        (
            "to_s = 1.1\nshape",
            "to_s = 3.0\nshape",
            "move.cut.hit.blade.to_s = 3.0: lies past the end of the move at 2.6",
        ),
        ("cut = 60.0", "slash = 60.0", "phase.1.rule[1].weights.slash = 'slash': is not an act of this phase"),
        (
            "attack = 220\n",
            "",
            "move.cut.hit.blade.attack = None: is missing; give attack and attack_type, or damage",
        ),
        (
            'attack_type = "thrust"\n',
            'attack_type = "slash"\n',
            "knight.toml: defence.absorption.slash = None: is missing; a blow of the fight is of this type",
        ),
    ],
)
def test_common_errors_read_as_the_guide_says(followed, old, new, message):
    text = followed.read_text(encoding="utf-8")
    assert text.count(old) == 1
    followed.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SoulsError) as caught:
        load_fight(str(followed))
    assert message in str(caught.value)
    told = re.sub(r"\[\d\]", "[N]", message)
    assert told in re.sub(r"\[\d\]", "[N]", GUIDE)


def test_the_example_hits_as_hard_as_the_guide_says(followed):
    spec = load_fight(str(followed))
    damages = [round(damage_of(hit.power, spec.player.defence)) for move in spec.boss.moves for hit in move.hits]
    assert damages == [111, 129]
    for attack, damage in ((220, 111), (245, 129)):
        assert re.search(rf"\b{attack}\s+takes\s+{damage}\b", GUIDE)


TABLES = (BossFile, BossMove, Phase, CharacterFile, ArenaTable, LabelFile, BossLabels, Title, Adjust)
"""Whatever a file of a fight may hold."""
HEADINGS = {"known", "body", "opened", "defence", "randomize", "draw", "game", "phase", "rule", "act", "change", "move",
            "clock", "weapon", "walk", "camera", "roll", "flinch", "fall"}  # fmt: skip
"""Tables that a heading explains."""


def keys_in(kind):
    """The keys of a dataclass's table and of all tables in it."""
    for part in parts_of(kind):
        if Mark.SAME_TABLE not in part.marks:
            yield part.key
        if part.item is not None:
            yield from keys_in(part.item)


def test_every_key_is_explained():
    explained = set(re.findall(r"`([^`\n]+)`", (DOCS / "data-format.md").read_text(encoding="utf-8")))
    words = {word for text in explained for word in re.split(r"[.\s]", text)}
    keys = {key for kind in TABLES for key in keys_in(kind)} - {"id"}
    assert len(keys) > 130
    assert {"always_from_m", "room_m", "then_within_deg", "at_s", "every_s", "motion_value", "chance"} <= keys
    assert keys - words - HEADINGS == set()


def test_every_bound_tells_what_it_draws():
    """The rows of the [draw] table name the bounds of a file, and what is drawn within each."""
    section = (DOCS / "data-format.md").read_text(encoding="utf-8").split("### `[draw]`")[1].split("###")[0]
    told = {key: set(re.findall(r"`(\w+)`", row)) for key, row in re.findall(r"^\| `(\w+)` \|(.*)$", section, re.M)}
    times = {"hit_shift_s": {"from_s", "to_s"}, "recovery": {"link_s", "hop_s", "label_end_s", "end_s"}}
    assert told.keys() == {field.name for field in fields(DrawBounds)}
    assert told == {key: set(KINDS.get(key, ())) | times.get(key, set()) for key in told}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("move.swing.hit.sweep.reach_m", -1.0, "move.swing.hit.sweep.reach_m = -1.0: must be at least 0"),
        ("body.pois", 3, "body.pois = 3: is not a known key, did you mean 'poise'?"),
        ("body.hp", None, "body.hp = None: is missing; give a number"),
        (
            "move.swing.hit.sweep.attack_type",
            "slash",
            "knight.toml: defence.absorption.slash = None: is missing; a blow of the fight is of this type",
        ),
        ("move.swing.hit.sweep.to_s", 5.0, "move.swing.hit.sweep.to_s = 5.0: lies past the end of the move at "),
        (
            "phase.1.act.thrust.chains.0.links.0.move",
            "swng",
            "links[0].move = 'swng': is a follow-up but not an attack, did you mean 'swing'?",
        ),
    ],
)
def test_errors_read_as_the_description_says(data, key, value, message):
    if value is None:
        data.remove("bosses/iudex.toml", key)
    else:
        data.set("bosses/iudex.toml", key, value)
    assert message in str(data.refusal())
    assert message in (DOCS / "data-format.md").read_text(encoding="utf-8")
