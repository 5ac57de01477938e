"""Small modules of the page that are plain mathematics, asked in the browser itself."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

THIN = "\u202f"


@pytest.fixture(scope="module")
def ask(site, browser):
    """A function that calls one of a module's functions."""
    _, address = site
    context = browser.new_context(timezone_id="UTC")
    page = context.new_page()
    page.goto(f"{address}/#/runs")

    def call(module, name, *arguments):
        code = "async ([module, name, given]) => (await import(`/static/${module}.js`))[name](...given)"
        return page.evaluate(code, [module, name, list(arguments)])

    call.page = page
    yield call
    context.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.1234567, "0.123"),
        (-3.62, "-3.62"),
        (9999, "9,999"),
        (12_345, f"12.3{THIN}k"),
        (13_354_785, f"13.4{THIN}M"),
        (2_000_000_000, f"2{THIN}G"),
        (0.00012, "1.2e-4"),
        (None, "\u2013"),
    ],
)
def test_numbers_are_short(ask, value, text):
    assert ask("format", "number", value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.26, f"4.3{THIN}s"),
        (59.4, f"59{THIN}s"),
        (125, f"2{THIN}min 5{THIN}s"),
        (3_725, f"1{THIN}h 2{THIN}min"),
        (200_000, f"2{THIN}d 7{THIN}h"),
    ],
)
def test_durations_are_told_in_two_units(ask, seconds, text):
    assert ask("format", "duration", seconds) == text


def test_ticks_are_written_alike(ask):
    assert ask("scales", "axisLabels", [0, 5_000_000, 10_000_000], 5_000_000) == ["0", "5 M", "10 M"]
    assert ask("scales", "shareLabels", [0, 0.025, 0.05], 0.025) == ["0.0 %", "2.5 %", "5.0 %"]
    assert [ask("scales", "durationLabel", at, 1800) for at in (1800, 5400)] == ["30 min", "1:30 h"]
    assert ask("scales", "durationLabel", 0.25, 0.05) == "0.25 s"
    assert ask("scales", "dateLabel", 1_700_092_800, 86_400, None) == "11-16"


def test_an_axis_has_room_for_its_labels_and_shares_end_at_the_whole(ask):
    drawn = """async (values, y) => {
        const { LineChart } = await import("/static/charts.js");
        const host = document.createElement("div");
        Object.assign(host.style, { position: "fixed", width: "400px", height: "200px" });
        document.body.append(host);
        const chart = new LineChart(host, { values });
        chart.set({ axis: "step", series: [{ label: "a", x: [698], y: [y], shade: 0 }] });
        await new Promise(requestAnimationFrame);
        const { min, max } = chart.chart.scales.y;
        const [, axis] = chart.chart.axes;
        const context = document.createElement("canvas").getContext("2d");
        context.font = axis.font[0] ?? axis.font;
        const widest = Math.max(...axis._values.map((text) => context.measureText(text).width / devicePixelRatio));
        chart.destroy();
        host.remove();
        return { min, max, room: axis._size - widest };
    }"""
    small = ask.page.evaluate(f"({drawn})('number', -0.004794)")
    assert small["room"] >= 5.0  # "-0.00475", with its sign
    nothing = ask.page.evaluate(f"({drawn})('share', 0)")
    assert (nothing["min"], nothing["max"]) == (0.0, 1.0)


def test_smoothing_has_no_bias_at_its_beginning_and_keeps_holes(ask):
    assert ask("scales", "smoothed", [5, 5, None, 5], 0.9) == [
        pytest.approx(5),
        pytest.approx(5),
        None,
        pytest.approx(5),
    ]
    calm = ask("scales", "smoothed", [0, 1] * 50, 0.95)
    assert 0.4 < calm[-1] < 0.6
    assert ask("scales", "smoothed", [1, 2], 0) == [1, 2]


@pytest.mark.parametrize(("place", "found"), [(0, 1), (1, 1), (3, 2), (4, 5)])
def test_the_nearest_place_with_a_value_is_found(ask, place, found):
    assert ask("scales", "nearestFilled", [None, 1, 2, None, None, 3], place) == found


def test_configs_are_compared_setting_by_setting(ask):
    one = '[run]\nseed = 1\nsteps = 5\n\n[network]\nhidden = [\n  16,\n  16,\n]\nname = "a = [b"\n'
    two = '[run]\nseed = 2\nsteps = 5\n\n[network]\nhidden = [\n  16,\n  32,\n]\nname = "a = [b"\nextra = true\n'
    assert ask("toml_lines", "differences", [one, two]) == [
        {"key": "network.extra", "values": [None, "true"]},
        {"key": "network.hidden", "values": ["[16, 16]", "[16, 32]"]},
        {"key": "run.seed", "values": ["1", "2"]},
    ]
    assert ask("toml_lines", "differences", [one, one]) == []
    assert ask("toml_lines", "differences", [one, one.replace("[\n  16,\n  16,\n]", "[16, 16]")]) == []
