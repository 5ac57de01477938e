"""What tests of all kinds of parts share."""

import pytest

from soulsgym.parts import registry


@pytest.fixture(autouse=True)
def _own_names_are_forgotten(monkeypatch):
    """Names that a test registers are gone after it."""
    monkeypatch.setattr(registry, "_parts", {kind: dict(parts) for kind, parts in registry._parts.items()})
    monkeypatch.setattr(registry, "_origins", dict(registry._origins))
