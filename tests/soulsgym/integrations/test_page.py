"""The blocks of the page on other learners run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "use-your-own-learner.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_runs(number):
    if "sb3_contrib" in BLOCKS[number]:
        pytest.importorskip("sb3_contrib")
    exec(compile(BLOCKS[number], f"{PAGE.name}[{number}]", "exec"), {"__name__": "page"})


def test_there_are_blocks():
    assert len(BLOCKS) == 4
