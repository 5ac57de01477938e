"""The guide to a new encoder works when followed to the letter, and its table is that of the code."""

import re
from pathlib import Path

from soulsgym.parts.encoders import make_encoder
from soulsgym.parts.registry import known_names

GUIDE = (Path(__file__).parents[4] / "docs" / "how-to" / "add-an-encoder.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_guide_runs_from_top_to_bottom(spec):
    ours = known_names("encoder")
    names: dict[str, object] = {}
    for program in PROGRAMS:
        exec(program, names)
    assert set(known_names("encoder")) - set(ours) == {"shares", "speed"}
    encoder = make_encoder({"name": "speed", "history": 2}, 32, spec)
    encoder.restore(encoder.state())


def test_every_encoder_is_listed_with_its_size(spec):
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", GUIDE, re.MULTILINE)
    assert {name: int(size) for name, size in rows} == {
        name: make_encoder(name, 1, spec).size for name in known_names("encoder")
    }
