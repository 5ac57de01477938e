"""Files that are replaced whole."""

import errno
import os

import pytest

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write, check_new_file, write_atomically
from soulsgym.errors import SoulsError


@pytest.mark.parametrize("durably", [True, False])
def test_replaces(tmp_path, durably):
    file = tmp_path / "a.txt"
    write_atomically(file, "one", durably=durably)
    write_atomically(file, "zwei ä", durably=durably)
    assert file.read_text(encoding="utf-8") == "zwei ä"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_the_old_text_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    write_atomically(file, "one")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"a\.txt: cannot be written, the disk is full: free some space"):
        write_atomically(file, "two")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "one")]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "disk is full: free some space"),
        (errno.EACCES, "permission is missing: allow it"),
        (errno.EROFS, "permission is missing: allow it"),
        (errno.EIO, "input/output error"),
    ],
)
def test_sentences(tmp_path, code, words):
    assert words in str(cannot_write(tmp_path, OSError(code, os.strerror(code))))


def test_a_new_file_is_refused_before_work_is_done_for_it(tmp_path, monkeypatch):
    (tmp_path / "a.npz").touch()
    for file, words in (("a.txt", "ends in '.txt'; give a name that ends in .npz or .json"), ("a.npz", "exists"),
                        ("no/a.npz", "is not there; make it")):  # fmt: skip
        with pytest.raises(SoulsError, match=words):
            check_new_file(tmp_path / file, "recording", ".npz", ".json")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(
        RunError, match=r"b\.npz: cannot be written, permission is missing: allow it, or choose another"
    ):
        check_new_file(tmp_path / "b.npz", "recording", ".npz")
