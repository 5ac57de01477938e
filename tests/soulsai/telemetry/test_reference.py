"""The page of metrics is up to date."""

from pathlib import Path

from soulsai.telemetry.metrics import reference

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_is_up_to_date():
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    assert written == reference(), (
        f"{PAGE} differs from the declarations; write there what reference() of soulsai.telemetry.metrics gives"
    )
