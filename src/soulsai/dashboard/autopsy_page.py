"""A page that shows deaths beside the same fights with the change that would have saved the player."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from soulsai.dashboard.scenes import VIEWER, scene_from, shared_page
from soulsai.evaluation.autopsy import Death, causes_table, summary_of
from soulsai.evaluation.thoughts import FightFile

MARKER = '{"marker":"the scene of the chosen fight"}'
PICTURE_ALONE = "<style>.fv-head,.fv-panels{display:none!important}.fv-player-root{grid-template-columns:1fr}</style>"


def autopsy_page(deaths: Sequence[Death], fights: int, about: Mapping[str, Any], title: str, shown: int) -> str:
    """One HTML file: the causes of all deaths, and the first `shown` with a change beside the changed fight."""
    saved = [death for death in deaths if death.change is not None and death.after is not None]
    page = shared_page(json.loads(MARKER), "fight").replace("</head>", f"{PICTURE_ALONE}</head>")
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in causes_table(deaths))
    return Template((VIEWER / "autopsy.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        summary=html.escape(summary_of(deaths, fights)),
        causes="".join(f"<tr>{row}</tr>" for row in cells),
        deaths=_script([_pair(death, about) for death in saved[:shown]]),
        page=_script({"text": page, "marker": MARKER}),
    )


def _pair(death: Death, about: Mapping[str, Any]) -> dict[str, Any]:
    assert death.change is not None
    assert death.after is not None
    return {
        "line": f"fight {death.fight}, {death.time_s:.1f} s: {death.cause}",
        "cause": f"Died: {death.cause}",
        "change": f"Lives: {death.change.text}",
        "before": scene_from(FightFile(death.before, about), f"fight {death.fight}"),
        "after": scene_from(FightFile(death.after, about), f"fight {death.fight}, changed"),
    }


def _script(content: object) -> str:
    """JSON that cannot end its element, whatever names somebody has put into a recording."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
