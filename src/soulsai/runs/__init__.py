"""Runs: one folder each, with everything that is known of it."""

from soulsai.runs.run import Run, default_folder
from soulsai.runs.status import Status
from soulsai.runs.summary import RunSummary, list_runs

__all__ = ["Run", "RunSummary", "Status", "default_folder", "list_runs"]
