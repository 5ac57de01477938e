"""`souls config` and `souls presets`: every setting, and what a preset makes of them."""

from __future__ import annotations

from typing import Annotated

import typer

from soulsai.cli.options import Settings
from soulsai.config import (
    check_names,
    config_to_toml,
    load_preset,
    preset_description,
    preset_names,
    with_settings,
)
from soulsai.config import reference as config_reference

config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show all settings, or those of a preset.")


@config.command()
def reference() -> None:
    """Print all sections, keys, defaults and limits as Markdown.

    Example: souls config reference > docs/config.md
    """
    typer.echo(config_reference())


@config.command()
def show(
    preset: Annotated[str, typer.Argument(help="Preset, or a config file (.toml).")],
    settings: Settings = None,
) -> None:
    """Print every setting of a preset as TOML.

    Example: souls config show iudex --set fight.number=64
    """
    typer.echo(config_to_toml(check_names(with_settings(load_preset(preset), settings or []))), nl=False)


def presets() -> None:
    """List the presets of `souls train`.

    Example: souls presets
    """
    names = preset_names()
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name:{width}}  {preset_description(name)}")
