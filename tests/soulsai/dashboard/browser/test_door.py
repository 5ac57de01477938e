"""The token of a page, as a browser meets it."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOKEN = "a-long-enough-token"


@pytest.fixture(scope="module")
def locked(site):
    """The address of the same runs behind a token."""
    from contextlib import closing
    from socket import socket

    root, _ = site
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return root, port


@pytest.fixture
def address(locked, serve_page):
    """As above, served."""
    root, port = locked
    with serve_page(root, "--port", str(port), "--token", TOKEN) as (_, url):
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
