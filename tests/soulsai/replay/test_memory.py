from types import SimpleNamespace

import psutil
import pytest

from soulsai.replay import refuse_if_too_large
from soulsgym.errors import MisuseError


@pytest.fixture
def five_gb_free(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=5_000_000_000))


@pytest.mark.usefixtures("five_gb_free")
def test_what_fits_is_let_through():
    refuse_if_too_large(5_000_000_000, "the replay")


@pytest.mark.usefixtures("five_gb_free")
def test_what_does_not_fit_is_refused_with_both_numbers():
    with pytest.raises(MisuseError, match=r"the replay needs 7\.3 GB of memory, but only 5\.0 GB are free"):
        refuse_if_too_large(7_300_000_000, "the replay")
