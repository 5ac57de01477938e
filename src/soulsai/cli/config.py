"""`souls config`: every setting, and what a preset makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

config = typer.Typer(no_args_is_help=True, help="Show the settings there are, and those of a preset.")


@config.command()
def reference() -> None:
    """Print all sections, keys, defaults and limits as Markdown.

    Example: souls config reference > docs/config.md
    """
    from soulsai.config import reference as text

    typer.echo(text())


@config.command()
def show(
    preset: Annotated[str, typer.Argument(help="Preset, or a config file (.toml).")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
) -> None:
    """Print every setting of a preset as TOML, as a run would have it.

    Example: souls config show iudex --set ppo.gamma=0.99
    """
    from soulsai.config import check_names, config_to_toml, load_preset, read_config, with_settings

    begun = read_config(Path(preset)) if preset.endswith(".toml") else load_preset(preset)
    typer.echo(config_to_toml(check_names(with_settings(begun, settings or []))), nl=False)
