"""Which tests one worker runs together."""

from pathlib import Path
from types import SimpleNamespace

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")


@pytest.fixture
def suite(request):
    """The module that tells pytest how to run the tests."""
    return next(
        each for each in request.config.pluginmanager.get_plugins() if getattr(each, "__file__", "") == str(CONFTEST)
    )


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/standin/test_standin.py::test_a", "wine"),
        ("standin/test_standin.py::test_a", "wine"),
        ("tests/windows/test_windows_backend.py::test_a[speed]", "wine"),
        ("tests/soulsgym/game/speed/test_speed.py::test_a", "wine"),
        ("tests/soulsai/cli/test_on_standin.py::test_a", "wine"),
        ("tests/soulsgym/envs/test_game_on_standin.py::test_a[b::c]", "fights"),
        ("tests/soulsgym/game/titles/test_on_standin.py::test_a", "fights"),
        ("tests/soulsai/dashboard/browser/test_views.py::test_a", "browser"),
        ("tests/soulsai/transport/redis/test_server.py::test_a", "redis"),
        ("tests/soulsai/transport/test_frames.py::test_a[/browser/]", "tests/soulsai/transport/test_frames.py"),
        ("tests/soulsgym/game/test_process.py::TestIt::test_a", "tests/soulsgym/game/test_process.py"),
    ],
)
def test_the_file_decides(suite, nodeid, group):
    assert suite.group_of(nodeid) == group


def test_every_shared_fixture_and_long_group_has_its_files(suite):
    files = [file.as_posix() for file in CONFTEST.parent.rglob("test_*.py")]
    alone = set(suite.LONGEST) - set(suite.GROUPS)
    assert {name for name in alone if any(file.endswith(name) for file in files)} == alone
    assert {name for names in suite.SHARED.values() for name in names} <= set(suite.GROUPS)
    assert {name for name, pattern in suite.GROUPS.items() if any(map(pattern.search, files))} == set(suite.GROUPS)


@pytest.mark.parametrize(("cores", "auto", "logical"), [(1, 3, 1), (2, 4, 2), (3, 5, 3), (64, 6, 6), (None, 3, 1)])
def test_workers(suite, monkeypatch, cores, auto, logical):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    for word, number in (("auto", auto), ("logical", logical)):
        config = SimpleNamespace(option=SimpleNamespace(numprocesses=word))
        assert suite.pytest_xdist_auto_num_workers(config) == number
