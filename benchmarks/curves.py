"""Draw learning curves of runs: python benchmarks/curves.py OUT.svg [--minutes] LABEL=RUN[,RUN...] ...

One line for each label: the mean over its runs of the evaluated win rate (or return), each run as a faint line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

from soulsai.runs.run import Run

matplotlib.use("svg")
from matplotlib import pyplot as plt

GRID = 60


def curve(folder: str, minutes: bool) -> tuple[list[float], list[float]]:
    """Steps (or minutes) and score of every evaluation of a run."""
    across, score = [], []
    for row in Run.open(Path(folder)).metrics():
        value = row.get("win_rate/evaluation", row.get("return/evaluation"))
        if value is not None:
            across.append(row["elapsed_s"] / 60.0 if minutes else row["step"])
            score.append(value)
    return across, score


def main() -> None:
    """Read the runs, write the picture."""
    out, *rest = sys.argv[1:]
    minutes = "--minutes" in rest
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for index, given in enumerate(text for text in rest if text != "--minutes"):
        label, _, folders = given.partition("=")
        curves = [curve(folder, minutes) for folder in folders.split(",")]
        until = min(across[-1] for across, _ in curves)
        grid = np.linspace(0.0, until, GRID)
        mean = np.mean([np.interp(grid, [0.0, *across], [0.0, *score]) for across, score in curves], axis=0)
        for across, score in curves:
            axes.plot(across, score, color=f"C{index}", alpha=0.3, linewidth=0.9)
        axes.plot(grid, mean, color=f"C{index}", label=label)
    axes.set(xlabel="minutes" if minutes else "environment steps", ylabel="evaluated win rate")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(out, metadata={"Date": None})
    print(out)


if __name__ == "__main__":
    main()
