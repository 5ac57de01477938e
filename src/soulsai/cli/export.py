"""`souls export`: a policy as a file for play elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soulsai.cli.measuring import Latest, warn


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder or name of a run.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file: .onnx (ONNX) or .pt (TorchScript).")],
    latest: Latest = False,
) -> None:
    """Write the policy of a run to a new file, with the names of its inputs and actions and its config inside.

    Inputs are `observation` (rows x numbers, float32) and `mask` (rows x actions, true where open); outputs are
    `action` and `scores`. Prefer ONNX: it plays without torch, and loading a TorchScript file runs the code inside it.

    Example: souls export runs/mine gundyr.onnx
    """
    from soulsai.acting.exported import export_policy, refuse_target
    from soulsai.learning.loading import load_networks, names_of, open_run
    from soulsai.learning.wiring import quiet

    refuse_target(file)
    config, networks = load_networks(open_run(run), latest=latest, warn=warn)
    quiet(networks)
    observations, actions = names_of(config)
    export_policy(networks, config, file, observation_names=observations, action_names=actions)
    typer.echo(f"{file}: {len(observations)} numbers in, {len(actions)} actions out; try `souls eval {file}`")
