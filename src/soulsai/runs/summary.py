"""All runs under a folder, in a line each, and the run that a user means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from soulsai.errors import RunError
from soulsai.runs.run import CONFIG, Run
from soulsai.runs.stamps import change_stamp
from soulsai.runs.status import Status
from soulsgym.errors import SoulsError, suggestion

ZOO, ZOO_FOLDER = "zoo:", Path(__file__).parents[1] / "zoo"
"""Before the name of an agent that comes with the package, and where those are: as folders of runs, to read only."""
ROOT = Path("runs")
"""Where runs are when only their name is given."""
BROKEN = "broken"


@dataclass(frozen=True)
class RunSummary:
    """A run in a line; of a broken one only the name, the last change and the problem are known."""

    name: str
    folder: Path
    preset: str
    status: Status
    problem: str = ""

    @property
    def state(self) -> str:
        """running, stopped, finished, failed, killed or broken."""
        return self.status.state

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a policy to play, or to go on with."""
        return any((self.folder / "checkpoints").glob("[0-9]*"))


def run_folder(text: str) -> Path:
    """The folder of a run that is named by its folder, or by its name under runs/."""
    path = Path(text)
    return ROOT / path if not path.exists() and (ROOT / path).is_dir() else path


def zoo_names() -> list[str]:
    """The agents that come with the package."""
    return sorted(folder.parent.name for folder in ZOO_FOLDER.glob(f"*/{CONFIG}"))


def open_run(text: str) -> Run:
    """The run in a folder, or with this name under runs/: one that may be changed."""
    if text.startswith(ZOO):
        raise RunError(f"{text} comes with the package: train your own from it with --set run.start_from={text}")
    return Run.open(run_folder(text))


def open_trained(text: str) -> Run:
    """The same, or the agent of zoo:NAME, to read only."""
    if not text.startswith(ZOO):
        return open_run(text)
    name, names = text.removeprefix(ZOO), zoo_names()
    if name not in names:
        raise RunError(f"there is no agent {text}{suggestion(name, names)}")
    return Run.open(ZOO_FOLDER / name)


def list_runs(root: Path) -> list[RunSummary]:
    """Every folder under `root`, the one changed last first; where `root` is a run itself, that one alone."""
    if not root.is_dir():
        return []
    if (root / CONFIG).is_file():
        return [_summary(root)]
    folders = [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return sorted(map(_summary, folders), key=lambda run: (run.status.updated, run.name), reverse=True)


def _summary(folder: Path) -> RunSummary:
    try:
        run = Run.open(folder)
        status, preset = run.status(), run.preset
    except (SoulsError, OSError) as error:
        return RunSummary(folder.absolute().name, folder, "", Status(BROKEN, updated=change_stamp(folder)), str(error))
    if not status.updated:
        status = Status(status.state, updated=change_stamp(folder))
    return RunSummary(folder.absolute().name, folder, preset, status)
