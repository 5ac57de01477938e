"""The fight viewer in a real browser: played, paused, scrubbed, stepped, shared, and live."""

import re
import shutil

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def watch(site, open_page):
    """Opens the viewer of a run and waits for its first picture."""
    _, address = site

    def show(run, fight="", **options):
        page = open_page(f"{address}/#/watch/{run}" + (f"?fight={fight}" if fight else ""), **options)
        page.wait_for_selector(".fv-player-root[data-record]")
        return page

    return show


def record(page):
    return int(page.get_attribute(".fv-player-root", "data-record"))


def playing(page):
    return page.get_attribute(".fv-player-root", "data-playing") == "true"


def paused(page):
    """Paused at the beginning, with nothing that has the focus, whether it still plays by itself or has ended."""
    root = "document.querySelector('.fv-player-root').dataset"
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => {root}.playing === 'false'")
    page.keyboard.press("Home")
    page.wait_for_function(f"() => {root}.record === '0'")


def last_record(page):
    return int(page.get_attribute(".fv-range", "max"))


def colours(page, selector):
    """How many different colours a canvas shows."""
    return page.evaluate(
        """(selector) => {
          const canvas = document.querySelector(selector);
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }""",
        selector,
    )


def content(page, selector):
    return page.evaluate("(selector) => document.querySelector(selector).toDataURL()", selector)


def fights(page, run):
    return page.evaluate("(run) => fetch(`/api/runs/${run}/fights`).then((answer) => answer.json())", run)


def test_plays_and_pauses(watch, wait):
    page = watch("first")
    wait(lambda: record(page) > 3, what="the fight that plays by itself")
    assert colours(page, ".fv-stage") > 500
    page.keyboard.press("Space")
    wait(lambda: not playing(page), what="the pause")
    at = record(page)
    page.wait_for_timeout(400)
    assert record(page) == at
    page.click("[data-do=play]")
    wait(lambda: record(page) > at, what="going on")
    page.click(".fv-stage")
    wait(lambda: not playing(page), what="the pause by a click on the picture")


def test_steps_and_scrubs(watch, wait):
    page = watch("first")
    paused(page)
    for keys, wanted in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Shift+ArrowRight", 11)):
        page.keyboard.press(keys)
        assert record(page) == wanted
    page.click("[data-do=forward]")
    page.click("[data-do=back]")
    page.click("[data-do=back]")
    assert record(page) == 10
    before = content(page, ".fv-stage")
    box = page.locator(".fv-range").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert record(page) == pytest.approx(last_record(page) / 2, abs=2)
    assert content(page, ".fv-stage") != before
    page.keyboard.press("End")
    assert record(page) == last_record(page)
    page.wait_for_selector(".fv-end.shown")
    endings = ("VICTORY ACHIEVED", "YOU DIED", "TIME OUT")
    wait(lambda: page.inner_text(".fv-title") in endings, what="how the fight ended")
    page.locator(".fv-stage").focus()
    page.keyboard.press("Space")
    wait(lambda: playing(page) and record(page) < last_record(page), what="playing it again")


FRAMES = """(seconds) => new Promise((resolve) => {
  const record = () => Number(document.querySelector(".fv-player-root").dataset.record);
  document.querySelector("[data-do=play]").click();
  let [last, passed, longest] = [performance.now(), 0, 0];
  const look = (now) => {
    const frame = Math.min(Math.max(now - last, 0), 250);
    [last, passed, longest] = [now, passed + frame, Math.max(longest, frame)];
    if (passed < 1000 * seconds) requestAnimationFrame(look);
    else resolve([record(), passed / 1000, longest / 1000]);
  };
  requestAnimationFrame(look);
})"""
"""Play from the beginning while frames are drawn for so long: the record at the end, how long that was, and the longest
frame. As in the player, a frame counts for a quarter of a second at most."""


def test_speed(watch):
    page = watch("first")
    paused(page)
    for key, value in (("]", "2"), ("]", "4"), ("]", "8"), ("]", "8"), ("[", "4")):
        page.keyboard.press(key)
        assert page.input_value(".fv-speed") == value
    for speed, seconds in ((0.25, 1.2), (4.0, 0.6)):
        page.select_option(".fv-speed", str(speed).removesuffix(".0"))
        page.locator(".fv-stage").focus()
        page.keyboard.press("Home")
        at, passed_s, longest_s = page.evaluate(FRAMES, seconds)
        page.keyboard.press("ArrowRight")
        wanted = min(10 * speed * passed_s, last_record(page))
        assert at == pytest.approx(wanted, abs=2 + 10 * speed * longest_s), f"at {speed} times the speed"


def test_shows_what_the_agent_thinks(watch, wait):
    page = watch("first")
    paused(page)
    assert "How likely it takes each action" in page.inner_text(".fv-panels")
    assert page.locator(".fv-actions li").count() >= 15
    assert page.locator(".fv-actions .chosen").count() == 1
    says = re.fullmatch(
        r"(walks|rolls|attacks|parries|waits)[a-z ]*: [\d.]+ %, expects -?[\d.]+", page.inner_text(".fv-says")
    )
    assert says, page.inner_text(".fv-says")
    while page.inner_text(".fv-says") != "no choice until its move ends":
        page.keyboard.press("ArrowRight")
        assert record(page) < last_record(page)
    assert page.locator(".fv-actions .chosen").count() == 0, "what it chose before is no choice of now"
    page.keyboard.press("Home")
    shares = [text for text in page.locator(".fv-figure").all_inner_texts() if text]
    assert shares, "there are figures"
    grids = page.locator(".fv-grid")
    captions = page.locator(".fv-network figcaption").all_inner_texts()
    titles = [" ".join(text.split()[:-1]) for text in captions]
    assert titles == [
        "Health, places and speeds",
        "Phase",
        "What the player does",
        "What the boss does",
        "What the boss did before",
        "How long the boss's move goes on",
        "Last action",
        "layer 1",
    ]
    first = content(page, ".fv-grid")
    assert colours(page, ".fv-grid") > 3
    page.keyboard.press("Shift+ArrowRight")
    wait(lambda: content(page, ".fv-grid") != first, what="cells that change with the observation")
    grids.first.hover(position={"x": 4, "y": 4})
    assert page.inner_text(".fv-told").startswith("Health, places and speeds: player hp")
    value = page.locator(".fv-value").bounding_box()
    page.mouse.click(value["x"] + value["width"] * 0.9, value["y"] + 10)
    assert record(page) == pytest.approx(0.9 * last_record(page), abs=3)


def test_closed_actions_are_grey(watch):
    page = watch("first")
    paused(page)
    closed = set()
    for _ in range(40):
        closed.add(page.locator(".fv-actions .closed").count())
        page.keyboard.press("ArrowRight")
    assert max(closed) > 0
    assert len(closed) > 1, "what is open changes in a fight"


def test_q_values(watch):
    page = watch("second")
    paused(page)
    assert "The return that it expects of each action; the line is zero" in page.inner_text(".fv-panels")
    assert re.search(r": expects -?\d", page.inner_text(".fv-says"))
    zero = page.locator(".fv-zero").first.evaluate("node => parseFloat(node.style.left)")
    for row in page.locator(".fv-actions li").all():  # bars begin at zero and go to either side
        figure = row.locator(".fv-figure").inner_text()
        if figure and abs(float(figure)) > 0.05:
            left = row.locator(".fv-track i").evaluate("node => parseFloat(node.style.left)")
            assert (left < zero - 0.1) == (float(figure) < 0), figure
    assert page.locator(".fv-grid").count() >= 2


def test_next_loss_and_the_list(watch, wait):
    page = watch("first")
    listed = fights(page, "first")
    lost = [fight["name"] for fight in listed if fight["outcome"] != "won"]
    assert len(lost) > 1, "an agent of a few seconds loses"
    shown = lambda: page.get_attribute(".fv-item[aria-current=true]", "data-name")  # noqa: E731
    assert shown() == listed[0]["name"]
    page.keyboard.press("n")
    wait(lambda: shown() == next(name for name in lost if name != listed[0]["name"]), what="the next lost fight")
    page.click("[data-filter=lost]")
    assert page.locator(".fv-item").count() == len(lost)
    page.click("[data-filter=all]")
    assert page.locator(".fv-item").count() == len(listed)
    page.locator(".fv-item").last.click()
    wait(lambda: shown() == listed[-1]["name"], what="the fight that was clicked")
    assert f"step {listed[-1]['step']:,}" in page.inner_text(".fv-which")

    # Three seconds before the end.
    paused(page)
    page.keyboard.press("d")
    wait(lambda: record(page) >= last_record(page) - 31, what="the last three seconds")

    # The same fight by two policies, side by side.
    beside = page.get_by_label("Side by side with")
    wait(lambda: beside.locator("option").count() > 1, what="fights that began alike")
    beside.select_option(index=1)
    page.wait_for_selector(".fv-pair .fv-player-root[data-record]")
    paused(page)
    page.keyboard.press("Shift+ArrowRight")
    assert [root.get_attribute("data-record") for root in page.locator(".fv-player-root").all()] == ["10", "10"]
    beside.select_option(index=0)
    page.wait_for_selector(".fv-pair .fv-player-root", state="detached")


def test_shared_in_one_file(watch, open_page, wait, tmp_path):
    page = watch("first")
    with page.expect_download() as found:
        page.keyboard.press("s")
    file = tmp_path / "shared.html"
    found.value.save_as(file)
    assert found.value.suggested_filename.endswith(".html")
    asked = []
    other = open_page("about:blank", offline=True)
    other.on("request", lambda request: asked.append(request.url))
    other.goto(file.as_uri())
    other.wait_for_selector(".fv-player-root[data-record]")
    wait(lambda: record(other) > 2, what="the shared fight that plays")
    assert colours(other, ".fv-stage") > 500
    paused(other)
    other.keyboard.press("ArrowRight")
    assert record(other) == 1
    assert other.locator(".fv-grid").count() == 8
    assert other.locator("[data-do=share]").count() == 0
    assert all(url.startswith(("file:", "data:")) for url in asked)


def test_fights_are_listed_under_the_picture_and_lead_back_to_it(site, open_page, wait):
    _, address = site
    page = open_page(f"{address}/#/watch/first", viewport={"width": 1440, "height": 900})
    page.wait_for_selector(".fv-player-root[data-record]")
    box = {part: page.locator(f".fv-{part}").first.bounding_box() for part in ("picture", "panels", "list")}
    assert box["list"]["y"] < box["panels"]["y"] + box["panels"]["height"]
    assert box["list"]["x"] + box["list"]["width"] <= box["panels"]["x"]
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".fv-item").last.click()
    picture = lambda: page.locator(".fv-picture").bounding_box() or {"y": 0}  # noqa: E731 (none while it is drawn anew)
    wait(lambda: 0 < picture()["y"] < 300, what="the picture in view")


def test_newest_fight_plays_by_itself(site, live, open_page, wait):
    _, address = site
    page = open_page(f"{address}/#/watch/live")
    page.wait_for_selector(".fv-player-root[data-record]")
    shown = lambda: page.get_attribute(".fv-item[aria-current=true]", "data-name")  # noqa: E731
    first = shown()
    assert page.get_attribute(".fv-live", "aria-pressed") == "true"
    wait(lambda: shown() not in (first, None), what="a newer fight")
    wait(lambda: playing(page), what="the newer fight that plays")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute(".fv-live", "aria-pressed") == "false", "whoever touches it looks at this fight"
    kept = shown()
    listed = page.locator(".fv-item").count()
    wait(lambda: page.locator(".fv-item").count() > listed, what="a newer fight in the list")
    assert shown() == kept
    page.click(".fv-live")
    wait(lambda: shown() != kept, what="the newest fight again")


def test_on_a_phone(watch, wait, pictures):
    page = watch("first", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Home")
    before = playing(page)
    page.tap(".fv-stage")
    wait(lambda: playing(page) is not before, what="the answer to a tap")
    for button in page.locator(".fv-buttons .fv-button").all():
        assert button.bounding_box()["height"] >= 40, "large enough for a finger"
    page.screenshot(path=pictures / "viewer-phone-dark.png", full_page=True)


def test_names_from_outside_are_text(site, watch, tmp_path):
    """A recording whose names are markup shows them as text."""
    from soulsai.evaluation.thoughts import read_fight_file, write_fight_file

    root, _ = site
    folder = root / "first" / "recordings"
    source = sorted(folder.glob("eval-*.npz"))[0]
    told = read_fight_file(source)
    odd = "<img src=x onerror=document.title='caught'>"
    target = folder / "odd.npz"
    write_fight_file(target, told.recording, {"engine": odd, "run": odd})
    try:
        page = watch("first", "odd")
        page.wait_for_timeout(300)
        assert page.title() != "caught"
        assert "No thoughts to show" in page.inner_text(".fv-panels")
        page.click("[data-do=share]")
        with page.expect_download() as found:
            page.get_by_role("link", name="Page (HTML)").click()
        found.value.save_as(tmp_path / "odd.html")
        page.goto((tmp_path / "odd.html").as_uri())
        page.wait_for_selector(".fv-player-root[data-record]")
        assert page.locator("img").count() == 0
        assert odd in page.inner_text(".fv-head")
    finally:
        target.unlink()


def test_a_run_without_fights(site, open_page):
    root, address = site
    bare = root / "bare"
    shutil.copytree(root / "second", bare)
    shutil.rmtree(bare / "recordings")
    try:
        page = open_page(f"{address}/#/watch/bare")
        page.wait_for_selector(".empty")
        assert "No fight of this run is recorded" in page.inner_text(".empty")
    finally:
        shutil.rmtree(bare)
