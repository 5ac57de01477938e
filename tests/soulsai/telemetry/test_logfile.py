"""The text log of a run."""

import logging
import re

import pytest

from soulsai.errors import RunError
from soulsai.telemetry.logfile import attach, detach


def test_lines_have_time_stamps_and_are_appended(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("before\n")
    handler = attach(file)
    logging.getLogger("soulsai.checkpoints.store").warning("checkpoint %d is damaged", 3)
    logging.getLogger("soulsai").info("started")
    logging.getLogger("soulsai").debug("not this")
    logging.getLogger("elsewhere").error("nor this")
    detach(handler)
    logging.getLogger("soulsai").info("nor that")
    lines = file.read_text().splitlines()
    assert lines[0] == "before"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING checkpoint 3 is damaged", lines[1])
    assert lines[2].endswith("Z INFO started")
    assert len(lines) == 3


@pytest.mark.faults
def test_a_full_disk_is_silent(tmp_path, capsys):
    full = tmp_path / "full"
    try:
        full.symlink_to("/dev/full")
        full.open("ab").close()
    except OSError:
        pytest.skip("there is no /dev/full")
    handler = attach(full)
    logging.getLogger("soulsai").info("lost")
    detach(handler)
    assert capsys.readouterr().err == ""


def test_file_that_cannot_be_made(tmp_path):
    with pytest.raises(RunError, match="cannot be written"):
        attach(tmp_path / "none" / "log.txt")
