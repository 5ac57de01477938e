"""Time stamps, by hand."""

from datetime import UTC, datetime, timedelta, timezone

from soulsai.runs.stamps import file_stamp, utc_stamp


def test_both_are_utc():
    moment = datetime(2026, 11, 16, 1, 15, 0, 123_999, tzinfo=timezone(timedelta(hours=2)))
    assert utc_stamp(moment) == "2026-11-15T23:15:00.123Z"
    assert file_stamp(moment) == "20261115-231500"


def test_now():
    now = datetime.now(UTC)
    assert utc_stamp() >= utc_stamp(now)
    assert file_stamp() >= file_stamp(now)
