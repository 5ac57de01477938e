"""Train the agents that come with the package again, measure them, and put them into src/soulsai/zoo.

Needed when a boss file has changed: the win rates that `souls zoo` lists are then of another boss.

python tools/renew_zoo.py              # all, about 5 minutes each on one core
python tools/renew_zoo.py iudex        # one of them
python tools/renew_zoo.py iudex --from runs/mine   # a run that was trained already, with the command of the table
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from soulsai.runs.run import Run
from soulsai.runs.summary import ZOO_FOLDER
from soulsai.sharing.agent import pack_agent

COMMANDS = {
    "iudex": "souls train --set run.seed=1 --set run.threads=1",
    "vordt": "souls train --set fight.boss=vordt --set run.steps=20000000 --set run.seed=1 --set run.threads=1",
    "margit": "souls train --set fight.boss=margit --set run.steps=20000000 --set run.seed=1 --set run.threads=1",
}
MOST_BYTES = 1_000_000


def renew(name: str, trained: Path | None) -> None:
    """Train one agent, unless it was, and replace the one in the package."""
    with tempfile.TemporaryDirectory() as folder:
        run = trained or Path(folder) / name
        if trained is None:
            words = shlex.split(COMMANDS[name])[1:]
            subprocess.run([sys.executable, "-m", "soulsai", *words, "--run", str(run), "--plain"], check=True)
        agent = pack_agent(Run.open(run), Path(folder) / "agent", command=COMMANDS[name], only_policy=True)
        size = sum(file.stat().st_size for file in agent.folder.rglob("*") if file.is_file())
        if size > MOST_BYTES:
            sys.exit(f"{name} has {size:,} bytes; an agent of the package may have {MOST_BYTES:,}")
        shutil.rmtree(ZOO_FOLDER / name, ignore_errors=True)
        shutil.copytree(agent.folder, ZOO_FOLDER / name)
    print(f"{ZOO_FOLDER / name}: {size:,} bytes")


def main() -> None:
    """Renew those that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*COMMANDS, []], help="agents; all if not given")
    parser.add_argument("--from", dest="trained", type=Path, help="a run that was trained by the command already")
    asked = parser.parse_args()
    if asked.trained and len(asked.names) != 1:
        parser.error("--from is of one agent; name it")
    for name in asked.names or COMMANDS:
        renew(name, asked.trained)


if __name__ == "__main__":
    main()
