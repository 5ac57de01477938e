"""Every view, opened in a browser: what it shows is what the run's files say."""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest

from soulsai.runs.lock import hold_lock
from soulsgym.render.names import move_name

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
VIEWS = {
    "runs": "#/runs",
    "learning": "#/learning/first",
    "compare": "#/compare?runs=first,second",
    "fleet": "#/fleet/first",
    "fight": "#/fight/first",
    "watch": "#/watch/first",
    "control": "#/control/first",
}
CUT = """() => [...document.querySelectorAll(".bars-label, .panel-head h3, .table-frame:has(.dodges)")]
    .filter((node) => node.checkVisibility() && node.scrollWidth > node.clientWidth + 1)
    .map((node) => `${node.className}: ${node.textContent.slice(0, 60)}`)"""
"""What is wider than its place."""
READY = {
    "runs": "tr[data-run=second]",
    "learning": ".plot[data-points]",
    "compare": ".table.config",
    "fleet": ".empty",
    "fight": "canvas.heat",
    "watch": "canvas",
    "control": "button[data-action=stop]",
}


def test_the_runs_are_listed_and_lead_to_their_curves(site, open_page):
    root, address = site
    page = open_page(f"{address}/#/runs")
    row = page.locator("tr[data-run=first]")
    status = json.loads((root / "first" / "status.json").read_text())
    assert row.locator(".pill").inner_text() == "finished"
    assert f"{100 * status['win_rate']:.1f}" in row.locator(".cell-rate").inner_text()
    assert "smoke" in row.locator(".cell-preset").inner_text()
    page.locator("input[type=search]").fill("second")
    page.wait_for_selector("tr[data-run=first]", state="detached")
    assert page.locator("tbody tr").count() == 1
    page.locator("input[type=search]").fill("nothing of the kind")
    page.get_by_text("No run matches the filter.").wait_for()
    page.locator("input[type=search]").fill("")
    page.locator("tr[data-run=first] a").click()
    page.wait_for_selector(".plot[data-points]")
    assert "#/learning/first" in page.url


def test_the_header_tells_how_the_run_stands(site, open_page):
    root, address = site
    page = open_page(f"{address}/#/learning/first")
    page.wait_for_selector(".plot[data-points]")
    page.wait_for_selector(".header .pill[data-state=finished]")
    status = json.loads((root / "first" / "status.json").read_text())
    assert page.locator(".run-select").input_value() == "first"
    assert page.locator(".header [role=progressbar]").get_attribute("aria-valuenow") == "100"
    rate = page.locator(".header-rate").inner_text()
    assert f"{100 * status['win_rate']:.1f}" in rate
    assert f"{100 * status['win_rate_low']:.1f}" in rate
    facts = page.locator(".header-facts")
    assert "last row" in facts.inner_text()
    assert facts.locator(".verdict").inner_text()
    assert page.title() == "first · souls"


def test_two_runs_are_compared(site, open_page, wait):
    _, address = site
    page = open_page(f"{address}/#/runs")
    for run in ("first", "second"):
        page.locator(f"tr[data-run={run}] input").check()
    page.get_by_role("button", name="Compare 2").click()
    page.wait_for_selector("section[data-chart='win_rate/evaluation'] .plot[data-traces='2']")
    page.wait_for_selector(".table.config")
    differing = page.locator(".table.config tbody th").all_inner_texts()
    assert "run.seed" in differing
    assert "run.steps" in differing
    assert "fight.number" not in differing  # the same in both
    steps = page.locator(".table.config tr", has_text="run.steps").locator("td").all_inner_texts()
    assert steps == ["40000", "3000"]
    taken = []
    page.on("download", lambda file: taken.append(file.suggested_filename))
    page.get_by_role("button", name="Return of an episode as CSV").first.click()
    wait(lambda: page.wait_for_timeout(50) or len(taken) == 2, what="a file per run")
    assert sorted(taken) == ["first.csv", "second.csv"]
    page.locator(".table", has_text="40,").first.wait_for()  # steps so far
    assert "first" in page.locator(".table").first.inner_text()


def test_why_it_dies_shows_the_counts_of_the_evaluation(site, open_page):
    root, address = site
    page = open_page(f"{address}/#/fight/first")
    page.wait_for_selector("canvas.heat")
    shown = page.evaluate("fetch('/api/runs/first/evaluations').then(answer => answer.json())")[0]["name"]
    name = page.locator(".toolbar select").input_value()
    assert name == shown
    assert name.endswith("-final"), "the newest, though there is one of the training too"
    title = page.locator(".toolbar select option").first.inner_text()
    assert re.match(r"final, 20\d\d-\d\d-\d\d \d\d:\d\d UTC: ", title)
    file = root / "first" / f"evaluations/{name}.json"
    content = json.loads(file.read_text())
    for place, kind in enumerate(("deaths", "hits")):
        for attack, number in list(content[kind]["attack"].items())[:3]:
            name = move_name("iudex", attack)
            row = page.locator(f"section[aria-label='By attack of the boss'] .bars-row:has([title='{name}'])")
            assert row.locator(".bars-value").nth(place).inner_text() == f"{number:,}"
    assert content["hits"]["attack"]
    for attack in content["attacks"]:
        name = move_name("iudex", attack["name"])
        cells = page.locator(".dodges tr", has=page.locator(f"th:text-is('{name}')")).locator("td")
        assert cells.nth(2).inner_text() == f"{attack['started']:,}"
        assert cells.nth(5).inner_text() == f"{attack['deaths']:,}"
    inked = page.evaluate(
        """() => [...document.querySelectorAll("canvas.heat")].map((canvas) => {
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            return data.filter((value, i) => i % 4 === 3 && value > 0).length;
        })"""
    )
    assert len(inked) == 2
    assert min(inked) > 500
    page.wait_for_selector("section .plot[data-traces='2']")  # damage taken and dealt

    # A death that was recorded can be seen, from three seconds before.
    see = page.locator(".see").first
    attack = see.get_attribute("aria-label").removeprefix("See a death by ")
    see.click()
    page.wait_for_selector(".fv-player-root[data-record]")
    at, last = (int(page.get_attribute(*where)) for where in ((".fv-player-root", "data-record"), (".fv-range", "max")))
    assert at >= last - 31
    page.keyboard.press("End")
    page.locator(".fv-below", has_text=attack).wait_for()


def test_a_run_without_a_fleet_says_so(site, open_page):
    _, address = site
    page = open_page(f"{address}/#/fleet/first")
    assert "souls serve" in page.locator(".empty").inner_text()


def test_a_fleet_is_shown_with_its_books_and_its_sick(site, open_page):
    from soulsai.runs.fleet_file import FleetFile, write_fleet

    root, address = site
    shutil.copytree(root / "first", root / "served", dirs_exist_ok=True)
    try:
        write_fleet(root / "served", FleetFile("run", "redis://127.0.0.1:1/0", "redis://127.0.0.1:1/0", own=True))
        (root / "served" / "fleet_last.json").write_text(json.dumps(FLEET))
        page = open_page(f"{address}/#/fleet/served")
        page.wait_for_selector(".table.workers")
        assert "sent 1,000 = stored 880" in page.locator(".books-line").inner_text()
        assert page.locator("tr.sick").count() == 2
        text = page.locator("main").inner_text()
        assert "eve: 7 unreadable messages" in text
        assert "eve: 2 forbidden commands" in text
        assert "No heartbeat" in text
        assert "Heartbeats come but no steps" in text
        dropped = page.locator("tr[data-worker='bob.0.aa'] td").last.inner_text()
        assert dropped == "stale 100"
        assert page.locator("tr[data-worker='alice.0.aa'] .pill").inner_text() == "playing"
        assert page.locator(".invite code").inner_text().startswith("souls serve --resume ")
        page.close()
    finally:
        shutil.rmtree(root / "served")


def test_control_is_closed_where_nobody_trains(site, open_page):
    _, address = site
    page = open_page(f"{address}/#/control/first")
    page.get_by_text("not being trained").wait_for()
    for button in page.locator("button[data-action]").all():
        assert button.is_disabled()
        assert "not being trained" in button.get_attribute("title")
    page.wait_for_function("() => document.querySelector('.log').textContent.length > 10")


@pytest.fixture
def copied(site):
    """A function that copies a run; the copies are removed afterwards."""
    root, _ = site
    made = []

    def copy(name, **status):
        shutil.copytree(root / "first", root / name)
        made.append(root / name)
        told = json.loads((root / name / "status.json").read_text())
        (root / name / "status.json").write_text(json.dumps(told | status))
        return root / name

    yield copy
    for folder in made:
        shutil.rmtree(folder)


def test_a_pause_is_no_alarm_and_can_be_ended_from_a_terminal(site, open_page, copied):
    _, address = site
    folder = copied("quiet", state="paused")
    with hold_lock(folder / "lock"):
        page = open_page(f"{address}/#/control/quiet")
        page.wait_for_selector(".header .pill[data-state=paused]")
        page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_600_000; }")
        page.locator(".header-facts", has_text="1\u202fh ago").wait_for()
        assert page.locator(".header-facts .old").count() == 0
        assert f"souls unpause {folder}" in page.locator(".commands").inner_text()
        page.close()


def test_a_hung_training_is_explained_and_an_old_row_is_an_alarm(site, open_page, copied):
    _, address = site
    folder = copied("hung", state="running")
    for name in ("lock", "log.txt", "metrics.jsonl", "status.json"):
        (folder / name).touch()
        os.utime(folder / name, (1_790_000_000, 1_790_000_000))
    with hold_lock(folder / "lock"):
        os.utime(folder / "lock", (1_790_000_000, 1_790_000_000))
        page = open_page(f"{address}/#/control/hung")
        page.wait_for_selector(".header .pill[data-state=stalled]")
        page.locator(".notice", has_text="no sign of life").wait_for()
        assert page.locator("button[data-action=stop]").is_enabled()
        page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_600_000; }")
        page.locator(".header-facts .old").wait_for()
        page.close()


def test_a_broken_run_has_no_commands_that_fail(site, open_page, copied):
    _, address = site
    (copied("torn") / "config.toml").unlink()
    page = open_page(f"{address}/#/control/torn")
    page.locator("#banner", has_text="config.toml").wait_for()
    page.wait_for_selector(".commands code")
    assert page.locator(".commands code").count() == 1
    assert "souls dashboard" in page.locator(".commands").inner_text()
    page.close()


def test_a_gymnasium_run_has_returns_instead_of_wins(site, open_page, copied):
    _, address = site
    folder = copied("poles")
    config = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(config.replace('world = "fight"', 'world = "gym"', 1))
    shutil.rmtree(folder / "recordings")
    page = open_page(f"{address}/#/runs")
    assert "return" in page.locator("tr[data-run=poles] .cell-rate").inner_text()
    page.goto(f"{address}/#/watch/poles")
    page.get_by_text("not a boss fight").wait_for()
    assert not page.locator(".fv-bar-top").is_visible()
    page.close()


def test_a_finished_run_is_served_longer(site, open_page):
    """The command on its page is one that `souls serve` takes."""
    root, address = site
    page = open_page(f"{address}/#/fleet/first")
    step = json.loads((root / "first" / "status.json").read_text())["step"]
    line = f"souls serve --resume {root / 'first'} --set run.steps={2 * step}"
    assert page.locator(".invite code").inner_text() == line


def test_more_windows_than_a_browser_has_connections(site, open_page):
    _, address = site
    pages = [open_page(f"{address}/#/runs")]
    pages += [pages[0].context.new_page() for _ in range(7)]
    for page in pages[1:]:
        page.goto(f"{address}/#/runs")
    for page in pages:
        page.wait_for_selector("tr[data-run=first]")


def test_a_visitor_without_the_token_types_it(site, serve_page, open_page, complaints):
    root, _ = site
    complaints.expected = ("401", "127.0.0.1")
    with serve_page(root, "--port", "0", "--token", "a-token-of-some-length") as (_, address):
        page = open_page(address.partition("?")[0])
        page.get_by_label("Token").fill("a-token-of-some-length")
        page.get_by_role("button", name="Open").click()
        page.wait_for_selector("tr[data-run=first]")
        assert "token" not in page.url


def test_a_run_that_goes_away_is_told(site, open_page, complaints, tmp_path):
    root, address = site
    complaints.expected = ("404", "/api/runs/leaving")
    shutil.copytree(root / "second", root / "leaving", dirs_exist_ok=True)
    page = open_page(f"{address}/#/learning/leaving")
    page.wait_for_selector(".plot[data-points]")
    (root / "leaving").rename(tmp_path / "left")
    page.locator("#banner", has_text="The run is gone").wait_for()


def test_a_run_that_never_was_and_a_view_that_is_none(site, open_page, complaints):
    _, address = site
    complaints.expected = ("404", "/api/runs/nobody")
    page = open_page(f"{address}/#/learning/nobody")
    page.get_by_text("there is no run 'nobody'").wait_for()
    page.goto(f"{address}/#/nonsense/%E0%A4%A")
    page.wait_for_selector("tr[data-run=first]")  # the list of runs


def test_a_folder_without_runs_says_so(tmp_path, chromium, serve_page, open_page):
    with serve_page(tmp_path, "--port", "0") as (_, address):
        page = open_page(address)
        page.get_by_text("There are no runs in").wait_for()


def test_keys_lead_everywhere(site, open_page):
    _, address = site
    page = open_page(f"{address}/#/learning/first")
    page.wait_for_selector(".plot[data-points]")
    for key, view in (("1", "runs"), ("3", "fleet"), ("4", "fight"), ("6", "control"), ("2", "learning")):
        page.keyboard.press(key)
        page.wait_for_selector(f"main[data-view={view}]")
        assert page.locator(".tab[aria-current=page]").get_attribute("data-view") == view
    page.keyboard.press("?")
    assert page.locator("dialog[open]").is_visible()
    page.keyboard.press("1")  # a question is open: keys belong to it
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert page.locator("main").get_attribute("data-view") == "learning"
    page.keyboard.press("1")
    page.wait_for_selector("main[data-view=runs]")
    page.keyboard.press("/")
    page.keyboard.type("12")  # goes into the filter
    assert page.locator("input[type=search]").input_value() == "12"
    assert page.locator("main").get_attribute("data-view") == "runs"


@pytest.mark.parametrize("view", VIEWS)
def test_views_look_right_in_light_and_dark_on_laptop_and_phone(view, site, open_page, pictures):
    _, address = site
    for size, options in (("laptop", {}), ("phone", PHONE)):
        page = open_page(f"{address}/{VIEWS[view]}", color_scheme="light", **options)
        page.wait_for_selector(READY[view])
        page.wait_for_timeout(250)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide on a {size}"
        width = page.viewport_size["width"]  # a phone zooms out until everything fits
        assert page.evaluate("innerWidth") == width, f"{view} is too wide on a {size}"
        cut = page.evaluate(CUT)
        assert cut == [], f"{view} on a {size}"
        colours = []
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.wait_for_function(f"() => document.documentElement.dataset.theme === '{theme}'")
            page.screenshot(path=pictures / f"{view}-{size}-{theme}.png")
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert colours[0] != colours[1]
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("button, a[href], input, select, canvas[tabindex]")].filter((node) =>
                node.checkVisibility() && !(node.textContent.trim() || node.getAttribute("aria-label") || node.title
                || node.labels?.length)).map((node) => node.outerHTML.slice(0, 120))"""
        )
        assert unnamed == []


def test_the_switch_of_the_theme_is_kept(site, open_page):
    _, address = site
    page = open_page(f"{address}/#/runs", color_scheme="light")
    page.wait_for_selector("tr[data-run=first]")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def _worker(worker, state, **more):
    return {
        "worker": worker,
        "name": worker.split(".")[0],
        "host": "pc",
        "state": state,
        "lag": 1,
        "steps": 500,
        "steps_per_s": 120.0,
        "episodes": 10,
        "wins": 2,
        "fights": 10,
        "win_rate": 0.2,
        "seen_s": 0.5,
        "restarts": 0,
        "sent": 500,
        "stored": 500,
        "dropped": {},
        "in_flight": 0,
        **more,
    }


FLEET = {
    "learner": {"steps": "900", "updates": "10", "target": "2000", "version": "7"},
    "workers": [
        _worker("alice.0.aa", "playing"),
        _worker("bob.0.aa", "silent", stored=380, dropped={"stale": 100}, in_flight=20, seen_s=31.0),
        _worker("bob.1.aa", "frozen", sent=0, stored=0),
    ],
    "names": {
        "alice": {"lives": 1, "steps": 500, "episodes": 10, "sent": 500, "stored": 500, "share": 0.57},
        "bob": {"lives": 2, "steps": 1000, "episodes": 20, "sent": 500, "stored": 380, "share": 0.43},
    },
    "total": {"sent": 1000, "stored": 880, "dropped": {"stale": 100}, "in_flight": 20},
    "unreadable": {"eve": 7},
    "refused": {"eve": {"forbidden": 2}},
    "open": {},
}
