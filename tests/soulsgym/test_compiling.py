"""What is compiled is kept on disk, and made again when anything it is compiled from has changed."""

import os
import pkgutil
import re
import subprocess
import sys
from importlib import import_module, reload

import pytest
from numba.core.dispatcher import Dispatcher

from soulsgym.compiling import sources_of

KERNEL = """
from soulsgym.compiling import njit
from {helper} import LIMIT, double

@njit(cache=True)
def kernel(x):
    return min(double(x), LIMIT)
"""
HELPER = """
from soulsgym.compiling import inner

LIMIT = {limit}

@inner
def double(x):
    return {what}
"""


def kept_functions():
    for place in ("soulsgym.sim", "soulsgym.parts", "soulsai.ops", "soulsai.networks", "soulsai.replay",
                  "soulsai.algorithms"):  # fmt: skip
        for found in pkgutil.walk_packages(import_module(place).__path__, f"{place}."):
            for given in vars(import_module(found.name)).values():
                if isinstance(given, Dispatcher) and "NullCache" not in type(given._cache).__name__:
                    yield given


def test_every_function_that_is_kept_is_known_by_all_its_sources():
    kept = set(kept_functions())
    assert len(kept) > 20
    assert not [one for one in kept if not re.search("-[0-9a-f]{16}$", one.py_func.__qualname__)]


def test_another_process_finds_what_was_kept():
    kept = f"set(runpy.run_path({__file__!r})['kept_functions']())"
    script = f"import runpy; print(*sorted(one.py_func.__qualname__ for one in {kept}))"
    names = [
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"PYTHONHASHSEED": seed}, text=True, check=True,
            stdout=subprocess.PIPE, timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert names[0] == names[1]


@pytest.mark.parametrize("change", [{"what": "x * 2 + 0"}, {"limit": 9}])
def test_a_change_in_another_file_is_noticed(tmp_path, monkeypatch, change):
    name = f"helper_{abs(hash(str(change)))}"
    monkeypatch.syspath_prepend(tmp_path)
    written = {"what": "x + x", "limit": 8}
    (tmp_path / f"{name}.py").write_text(HELPER.format(**written))
    (tmp_path / f"of_{name}.py").write_text(KERNEL.format(helper=name))
    first = import_module(f"of_{name}").kernel
    assert first(3) == 6
    again = reload(sys.modules[f"of_{name}"]).kernel
    assert again.py_func.__qualname__ == first.py_func.__qualname__
    (tmp_path / f"{name}.py").write_text(HELPER.format(**written | change) + "# longer\n")
    reload(sys.modules[name])
    other = reload(sys.modules[f"of_{name}"]).kernel
    assert other.py_func.__qualname__ != first.py_func.__qualname__
    assert other(3) == 6


def test_what_may_differ_from_one_start_to_the_next_has_no_digest():
    values = [1.0]
    assert sources_of(lambda: values) is None
