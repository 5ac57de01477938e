"""What tests of all kinds of parts share."""

import pytest

from soulsgym.parts.registry import use_names, used_names


@pytest.fixture(autouse=True)
def _own_names_are_forgotten():
    """Names that a test registers are gone after it."""
    with use_names(dict(used_names())):
        yield
