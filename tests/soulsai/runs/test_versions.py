"""What a run was made with."""

import platform

import numpy as np

import soulsgym
from soulsai.runs.versions import git_commit, machine, package_versions


def test_installed_packages_only():
    assert package_versions(["numpy", "no-such-package"]) == {
        "python": platform.python_version(),
        "soulsgym": soulsgym.__version__,
        "numpy": np.__version__,
    }


def test_machine():
    assert machine()["cpu_count"] >= 1


def test_commit_is_forty_digits_or_unknown():
    commit = git_commit()
    assert commit is None or (len(commit) == 40 and int(commit, 16) > 0)
