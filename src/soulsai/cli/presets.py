"""`souls presets`: what can be trained by name."""

from __future__ import annotations

import typer


def presets() -> None:
    """List the presets of `souls train`.

    Example: souls presets
    """
    from soulsai.config import preset_description, preset_names

    names = preset_names()
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name:{width}}  {preset_description(name)}")
