"""For the tests with other people's libraries."""

import os
from importlib.util import find_spec

import pytest


@pytest.fixture
def need():
    """Call it with the module that a test needs; in `make ecosystem` none may be missing."""

    def needed(module):
        if find_spec(module) is None and "SOULS_ECOSYSTEM" not in os.environ:
            pytest.skip(f"{module} is not installed here; make ecosystem runs this test")

    return needed
