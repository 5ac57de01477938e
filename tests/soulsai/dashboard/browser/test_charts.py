"""Charts in a browser: drawn from the run's rows, zoomed, switched, smoothed, taken away as PNG and CSV."""

from __future__ import annotations

import csv
import json
import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

INK = """(canvas) => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(data.slice(i, i + 3).join());
    return seen.size;
}"""

RETURN = "document.querySelector('section[data-chart=return] .plot')"


@pytest.fixture
def rows(site):
    """The rows of metrics of the first run."""
    root, _ = site
    return [json.loads(line) for line in (root / "first" / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def page(site, open_page):
    """The curves of the first run."""
    _, address = site
    shown = open_page(f"{address}/#/learning/first")
    shown.wait_for_selector("section[data-chart=win_rate] .plot[data-points]")
    shown.wait_for_selector(".header .pill[data-state=finished]")
    return shown


def chart(page, name):
    return page.locator(f"section[data-chart='{name}']")


def drawing(page, name):
    """The chart, as soon as it is drawn."""
    return chart(page, name).locator(".plot[data-points]")


def points(page, name):
    return int(drawing(page, name).get_attribute("data-points"))


def read(page, name, text):
    """Wait until the values that are shown at the pointer have a text."""
    chart(page, name).locator(".tip", has_text=text).wait_for()


def drawn(page, name, change):
    """Do something that has the chart drawn again, and wait for it."""
    before = int(drawing(page, name).get_attribute("data-drawn"))
    change()
    page.wait_for_function(
        "([path, before]) => Number(document.querySelector(path).dataset.drawn) > before",
        arg=[f"section[data-chart='{name}'] .plot", before],
    )


def test_charts_are_drawn_from_the_rows(page, rows):
    assert len(rows) > 20
    assert points(page, "return") == sum("return/training" in row for row in rows)
    assert drawing(page, "win_rate").get_attribute("data-traces") == "2"
    terms = {name for row in rows for name in row if name.startswith("reward/")}
    assert drawing(page, "reward").get_attribute("data-traces") == str(len(terms))
    assert chart(page, "return").locator("canvas").evaluate(INK) >= 2
    last = next(row["return/training"] for row in reversed(rows) if "return/training" in row)
    assert chart(page, "return").locator(".legend-value").first.inner_text() == f"{last:.4g}"


def test_only_metrics_that_occur_have_charts_and_every_one_has(page, rows):
    names = {name for row in rows for name in row} - {"step", "time", "elapsed_s"}
    page.locator(".others summary").click()
    asked = page.evaluate(
        """() => [...document.querySelectorAll("section.chart a[download]")].flatMap((link) =>
            new URL(link.href).searchParams.get("names").split(","))"""
    )
    assert set(asked) == names
    assert page.locator("section[data-chart=replay]").count() == 0  # PPO has none


def test_charts_are_drawn_when_they_come_into_view_and_given_up_when_they_leave(page):
    assert chart(page, "win_rate").locator("canvas").count() == 1
    assert page.locator(".others canvas").count() == 0  # folded
    page.set_viewport_size({"width": 1280, "height": 400})
    page.wait_for_selector("section[data-chart=time] canvas", state="detached")
    chart(page, "time").scroll_into_view_if_needed()
    page.wait_for_selector("section[data-chart=time] .plot canvas")
    page.wait_for_selector("section[data-chart=win_rate] canvas", state="detached")


def test_the_pointer_reads_values_in_all_charts(page, rows):
    box = chart(page, "return").locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 60)
    tip = chart(page, "return").locator(".tip")
    read(page, "return", f"step {rows[-1]['step']:,}")
    page.mouse.move(5, 5)
    tip.wait_for(state="hidden")
    chart(page, "return").locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    read(page, "return", f"step {rows[0]['step']:,}")
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")


def test_zoom_asks_for_the_stretch_and_a_double_click_goes_back(page, rows):
    whole = points(page, "return")
    box = chart(page, "return").locator(".u-over").bounding_box()
    with page.expect_request(lambda request: "/series?" in request.url and "from=" in request.url) as asked:
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60, steps=5)
        page.mouse.up()
    query = dict(part.split("=") for part in asked.value.url.split("?")[1].split("&"))
    low, high = float(query["from"]), float(query["to"])
    page.wait_for_function(f"() => Number({RETURN}.dataset.points) < {whole}")
    inside = sum(low <= row["step"] <= high for row in rows if "return/training" in row)
    assert 0 < inside < whole
    assert points(page, "return") == inside
    assert page.get_by_role("button", name="Whole run").is_visible()
    page.reload()  # the zoom is kept
    page.wait_for_function(f"() => Number({RETURN}?.dataset.points) === {inside}")
    box = chart(page, "return").locator(".u-over").bounding_box()
    drawn(page, "return", lambda: page.mouse.dblclick(box["x"] + 100, box["y"] + 60))
    page.wait_for_function(f"() => Number({RETURN}.dataset.points) === {whole}")
    assert page.get_by_role("button", name="Whole run").is_hidden()


@pytest.mark.parametrize(
    ("label", "axis", "told"),
    [
        ("Game hours", "game_hours", re.compile(r"\d game hours")),
        ("Wall-clock", "elapsed_s", re.compile(r"after \d")),
        ("Date", "time", re.compile(r"20\d\d-\d\d-\d\d")),
    ],
)
def test_the_x_axis_is_switched(page, label, axis, told):
    with page.expect_response(lambda answer: f"x={axis}" in answer.url) as answer:
        page.get_by_text(label, exact=True).click()
    assert answer.value.json()["x"] == axis
    box = chart(page, "return").locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 60)
    read(page, "return", told)
    page.reload()
    page.wait_for_selector("section[data-chart=return] .plot[data-points]")
    assert page.locator(f"input[value={axis}]").is_checked()  # it is remembered


def test_smoothing_draws_a_calmer_line(page):
    canvas = chart(page, "loss/policy").locator("canvas")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    drawn(page, "loss/policy", lambda: page.get_by_label("Smoothing").fill("60"))
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before
    box = chart(page, "loss/policy").locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 60)
    read(page, "loss/policy", "raw")


def test_lines_are_hidden_from_the_legend(page):
    row = chart(page, "win_rate").get_by_role("button", name="training")
    drawn(page, "win_rate", row.click)
    assert drawing(page, "win_rate").get_attribute("data-traces") == "1"
    drawn(page, "win_rate", row.click)
    assert drawing(page, "win_rate").get_attribute("data-traces") == "2"


def test_the_meaning_of_a_metric_is_told(page):
    chart(page, "return").get_by_role("button", name="What Return of an episode means").focus()
    meaning = chart(page, "return").locator(".popover")
    assert meaning.is_visible()
    assert "undiscounted sum of rewards" in meaning.inner_text()


def test_a_chart_is_taken_away_as_a_picture(page, tmp_path):
    import pygame

    with page.expect_download() as got:
        chart(page, "win_rate").get_by_role("button", name="Win rate as PNG").click()
    assert got.value.suggested_filename == "first-win_rate.png"
    got.value.save_as(tmp_path / "chart.png")
    picture = pygame.image.load(tmp_path / "chart.png")
    assert picture.get_width() >= 1280
    colours = {
        tuple(picture.get_at((x, y)))
        for x in range(0, picture.get_width(), 3)
        for y in range(0, picture.get_height(), 3)
    }
    assert len(colours) > 10  # lines, bands, letters


def test_a_chart_is_taken_away_as_rows(page, rows, tmp_path):
    with page.expect_download() as got:
        chart(page, "return").get_by_role("link", name="Return of an episode as CSV").click()
    got.value.save_as(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        taken = list(csv.DictReader(file))
    wanted = [row for row in rows if "return/training" in row]
    assert [int(float(row["step"])) for row in taken] == [row["step"] for row in wanted]
    assert float(taken[-1]["return/training"]) == pytest.approx(wanted[-1]["return/training"])


def test_charts_are_filtered_by_name_or_pattern(page):
    page.get_by_label("Filter the charts").fill("^loss/|entropy")
    chart(page, "return").wait_for(state="hidden")
    assert chart(page, "loss/policy").is_visible()
    assert chart(page, "entropy").is_visible()
    page.get_by_label("Filter the charts").fill("(")  # no pattern: taken as it is
    chart(page, "entropy").wait_for(state="hidden")


def test_a_chart_grows(page):
    before = chart(page, "return").bounding_box()
    chart(page, "return").get_by_role("button", name="Return of an episode larger").click()
    after = chart(page, "return").bounding_box()
    assert after["width"] > 2 * before["width"]


def test_lines_have_the_colours_of_the_theme(page, complaints):
    complaints.expected = ("getImageData",)  # this test reads pixels back, twice
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"() => document.documentElement.dataset.theme === '{theme}'")
        missing = page.evaluate(
            """() => {
                const canvas = document.querySelector("section[data-chart='loss/value'] canvas");
                const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                const wanted = getComputedStyle(document.documentElement).getPropertyValue("--s1").trim().slice(1);
                const parts = [0, 2, 4].map((i) => parseInt(wanted.slice(i, i + 2), 16));
                for (let i = 0; i < data.length; i += 4)
                    if (data[i + 3] > 250 && parts.every((part, k) => Math.abs(part - data[i + k]) < 3)) return null;
                return wanted;
            }"""
        )
        assert missing is None, f"the line is not drawn in #{missing} in {theme}"
