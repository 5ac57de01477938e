"""A run that trains while the page is open: curves grow, and the page saves, pauses, resumes and stops it."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import replace

import pytest

from soulsai.runs.run import Run

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def state(folder):
    return json.loads((folder / "status.json").read_text())


def last_step(folder):
    """Of the whole rows of metrics: the status is written with checkpoints only."""
    return json.loads((folder / "metrics.jsonl").read_text().rpartition("\n")[0].splitlines()[-1])["step"]


def ask(page, action, label):
    """Press a button and say yes."""
    page.locator(f"button[data-action={action}]").click()
    dialog = page.locator("dialog[open]")
    dialog.wait_for()
    text = dialog.inner_text()
    dialog.get_by_role("button", name=label, exact=True).click()
    page.wait_for_selector("dialog", state="detached")
    return text


def test_a_hidden_page_asks_for_nothing(site, live, open_page):
    _, address = site
    page = open_page(f"{address}/#/learning/live")
    page.wait_for_selector("section[data-chart=return] .plot[data-points]")
    page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { value: true, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    page.wait_for_timeout(500)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert asked == []
    with page.expect_request(lambda request: "/series?" in request.url):
        page.evaluate(
            """() => {
                Object.defineProperty(document, "hidden", { value: false, configurable: true });
                document.dispatchEvent(new Event("visibilitychange"));
            }"""
        )


def test_a_lost_connection_is_told_and_found_again(site, tmp_path, serve_page, open_page, complaints):
    root, _ = site
    shutil.copytree(root / "second", tmp_path / "second")
    complaints.expected = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "127.0.0.1")
    run = Run(tmp_path / "second")
    run.write_status(replace(run.status(), state="running"))
    with run.lock(), serve_page(tmp_path, "--port", "0") as (process, address):
        page = open_page(f"{address}/#/control/second")
        page.wait_for_selector(".header .pill[data-state=running]")
        page.wait_for_selector("button[data-action=stop]:enabled")
        process.terminate()
        page.locator("#banner", has_text=f"souls dashboard {run.folder}").wait_for()
        # Of a run whose page does not answer nothing is known, and nothing can be asked for.
        page.wait_for_selector(".header .pill[data-state='no connection']")
        page.wait_for_selector("button[data-action=stop]:disabled")
        page.goto(f"{address}/#/learning/second")
    with serve_page(tmp_path, "--port", address.rsplit(":", 1)[1]):
        page.locator("#banner").wait_for(state="hidden")
        page.wait_for_selector(".header .pill[data-state=killed]")
        page.wait_for_selector(".plot[data-points]")


def test_a_live_run_is_seen_and_controlled(site, live, open_page, wait):
    folder, process = live
    _, address = site
    page = open_page(f"{address}/#/learning/live")

    # Curves grow by themselves, about once a second.
    page.wait_for_selector("section[data-chart=return] .plot[data-points]")
    plot = page.locator("section[data-chart=return] .plot")
    begun_s = time.monotonic()
    first, drawn = (int(plot.get_attribute(name)) for name in ("data-points", "data-drawn"))
    wait(lambda: int(plot.get_attribute("data-points")) > first, what="a curve that grows")
    wait(lambda: int(plot.get_attribute("data-drawn")) >= drawn + 3, what="a curve that is drawn again")
    assert int(plot.get_attribute("data-drawn")) - drawn <= 2 + (time.monotonic() - begun_s) / 0.9
    page.wait_for_selector(".header .pill[data-state=running]")
    facts = page.locator(".header-facts")
    facts.get_by_text(re.compile(r"steps/s")).wait_for()
    facts.get_by_text(re.compile(r" left$|nearly done")).wait_for()

    # Live ones are on top of the list.
    page.keyboard.press("1")
    page.wait_for_selector("tr[data-run=live].live")
    assert page.locator("tbody tr").first.get_attribute("data-run") == "live"

    # Cancel asks for nothing; save writes a checkpoint.
    page.goto(f"{address}/#/control/live")
    page.wait_for_selector("button[data-action=save]:enabled")
    page.locator("button[data-action=save]").click()
    page.locator("dialog[open]").get_by_role("button", name="Cancel").click()
    page.wait_for_selector("dialog", state="detached")
    assert page.locator(".requests li").count() == 0
    before = sorted(folder.glob("checkpoints/[0-9]*"))
    assert "Training continues" in ask(page, "save", "Save now")
    page.wait_for_selector(".requests li.done[data-action=save]")
    wait(lambda: sorted(folder.glob("checkpoints/[0-9]*")) != before, what="a checkpoint")

    # Pause: it stands still, says so, and stays until it is unpaused.
    assert "Nothing is lost" in ask(page, "pause", "Pause")
    page.wait_for_selector(".requests li.done[data-action=pause]")
    assert state(folder)["state"] == "paused"
    page.wait_for_selector(".header .pill[data-state=paused]")
    page.wait_for_selector("button[data-action=pause]:disabled")
    step = last_step(folder)
    page.wait_for_timeout(1500)
    assert last_step(folder) == step

    ask(page, "unpause", "Unpause")
    page.wait_for_selector(".requests li.done[data-action=unpause]")
    page.wait_for_selector(".header .pill[data-state=running]")
    wait(lambda: last_step(folder) > step, what="a step after the pause")

    # Stop: it saves and ends.
    assert f"souls train --resume {folder}" in ask(page, "stop", "Stop")
    wait(lambda: process.poll() is not None, what="the end of the process")
    assert state(folder)["state"] == "stopped"
    page.wait_for_selector(".requests li.done[data-action=stop]")
    page.wait_for_selector(".header .pill[data-state=stopped]")
    page.get_by_text("not being trained").wait_for()
    page.wait_for_selector("button[data-action=save]:disabled")
