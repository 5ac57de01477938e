"""The token of a page, as a browser meets it."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOKEN = "a-long-enough-token"


@pytest.fixture(scope="module")
def address(site, serve_page):
    """The address of the same runs behind a token."""
    root, _ = site
    with serve_page(root, "--port", "0", "--token", TOKEN) as (_, url):
        yield url.split("/?")[0]


def test_the_token_lets_in_and_leaves_the_address(address, open_page):
    page = open_page(f"{address}/?token={TOKEN}#/runs")
    page.wait_for_selector("tr[data-run=first]")
    assert TOKEN not in page.url
    assert TOKEN not in page.evaluate("document.cookie")  # for the server only
    page.reload()
    page.wait_for_selector("tr[data-run=first]")


@pytest.mark.parametrize("query", ["", "?token=a-wrong-long-token", "?token="])
def test_a_wrong_token_is_refused(address, open_page, complaints, query):
    complaints.expected = ("401", "403", address)
    page = open_page(f"{address}/{query}")
    assert page.locator("tr[data-run]").count() == 0
    assert "token" in page.locator("body").inner_text()
    answer = page.request.get(f"{address}/api/runs")
    assert answer.status in (401, 403)
    assert "first" not in answer.text()
