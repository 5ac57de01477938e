"""Time stamps, by hand."""

import os
from datetime import UTC, datetime, timedelta, timezone

from soulsai.runs.stamps import change_stamp, file_stamp, utc_stamp


def test_both_are_utc():
    moment = datetime(2026, 11, 16, 1, 15, 0, 123_999, tzinfo=timezone(timedelta(hours=2)))
    assert utc_stamp(moment) == "2026-11-15T23:15:00.123Z"
    assert file_stamp(moment) == "20261115-231500"


def test_now():
    now = datetime.now(UTC)
    assert utc_stamp() >= utc_stamp(now)
    assert file_stamp() >= file_stamp(now)


def test_when_a_file_was_changed(tmp_path):
    os.utime(tmp_path, (0, 1.5))
    assert change_stamp(tmp_path) == "1970-01-01T00:00:01.500Z"
    assert change_stamp(tmp_path / "gone") == ""
