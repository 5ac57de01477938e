"""Try the environments with exactly the oldest versions that pyproject.toml allows, in a new virtual environment."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "tests" / "packaging" / "smoke.py"


def lower_bounds() -> list[str]:
    """The dependencies of the base install, each with its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [text.replace(">=", "==") for text in project["dependencies"]]


def main() -> None:
    """Install, try, say so."""
    bounds = lower_bounds()
    print(f"lower-bounds: installing {', '.join(bounds)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder, with_pip=True)
        python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, *bounds, str(ROOT)], check=True)
        print("lower-bounds: one fight, many fights, encoded fights")
        subprocess.run([python, SMOKE, folder], check=True, cwd=folder)


if __name__ == "__main__":
    main()
