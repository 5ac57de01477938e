"""Puts the player of fights and one fight into a single HTML file."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

VIEWER = Path(__file__).parent / "static" / "viewer"
PARTS = (
    "elements.js", "scene.js", "camera.js", "stones.js", "stage.js", "hud.js", "panels.js", "controls.js", "player.js",
    "shared.js",
)  # fmt: skip
"""In the order in which they need each other: in one file there are no imports."""
IMPORT = re.compile(r"^import\s[^;]*;\s*$", re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const)\b)", re.MULTILINE)


def page_of(scene: dict[str, Any], title: str) -> str:
    """The page; opened from a disk it needs nothing else."""
    script = "\n".join(EXPORT.sub("", IMPORT.sub("", _text(name))) for name in PARTS)
    return _PAGE.format(
        title=html.escape(title),
        style=_text("viewer.css").replace("</", "<\\/"),
        # Neither data nor script may end their element, whatever names somebody has put into a recording.
        scene=json.dumps(scene, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        script=script.replace("</script", "<\\/script"),
    )


def _text(name: str) -> str:
    return (VIEWER / name).read_text(encoding="utf-8")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="shared">
<main id="fight"></main>
<script type="application/json" id="scene">{scene}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""
