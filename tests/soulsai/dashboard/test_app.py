"""What every address answers."""

import csv
import io
import json
import os
import re
import shutil

import pytest

from soulsai.runs.lock import hold_lock

MARK = {"x-souls": "page"}


def test_the_page(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "text/html" in answer.headers["content-type"]
    assert answer.headers["cache-control"] == "no-cache"
    script = client.get("/static/main.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["cache-control"] == "no-cache"
    again = client.get("/static/main.js", headers={"if-none-match": script.headers["etag"]})
    assert again.status_code == 304


def test_it_lives(client):
    assert client.get("/healthz").text == "ok"


def test_runs(client, root):
    found = client.get("/api/runs").json()
    assert found["root"] == str(root)
    assert [run["id"] for run in found["runs"]] == ["two", "one"]


def test_a_folder_without_runs(client_of, tmp_path):
    assert client_of(tmp_path).get("/api/runs").json()["runs"] == []


def test_names_that_are_no_text(client_of, root, kit):
    os.mkdir(os.fsencode(root) + b"/bad\xff")
    (root / "bad\udcff" / "config.toml").write_text("[run]")
    (root / "two" / "recordings" / "bad\udcff.npz").write_bytes(b"x")
    kit.folder(root / "Drei Fünfe (ü)")
    found = client_of(root).get("/api/runs").json()["runs"]
    assert {run["id"] for run in found} == {"one", "two", "Drei Fünfe (ü)"}
    assert client_of(root).get("/api/runs/Drei Fünfe (ü)").status_code == 200
    assert client_of(root).get("/api/runs/two/fights").json() == []
    (root / "one" / "versions.json").write_text('{"preset": "\\ud800"}')
    assert client_of(root).get("/api/runs/one").json()["versions"] == {"preset": "?"}
    assert client_of(root / "bad\udcff").get("/api/runs").json()["runs"][0]["id"] == "bad?"


def test_one_run(client):
    found = client.get("/api/runs/one").json()
    assert found["config"].startswith('world = "fight"')
    assert found["versions"]["preset"] == "iudex"
    assert found["log"] == [f"line {number}" for number in range(30, 80)]
    assert (found["asked"], found["rows"]) == ([], 100)
    (metric,) = found["metrics"]
    assert metric["name"] == "loss/policy"
    assert metric["text"]


def test_a_run_in_ruins_is_still_told_of(client, root):
    (root / "one" / "versions.json").write_text("[")
    (root / "one" / "config.toml").write_bytes(b"\xff")
    (root / "one" / "status.json").unlink()
    (root / "one" / "log.txt").unlink()
    (root / "one" / "metrics.jsonl").unlink()
    (root / "one" / "metrics.sqlite").write_bytes(b"ruins" * 999)
    found = client.get("/api/runs/one").json()
    assert (found["state"], found["config"], found["versions"], found["log"]) == ("broken", "", {}, [])
    answer = client.get("/api/runs/one/series?names=a")
    assert (answer.status_code, "metrics.sqlite: is damaged" in answer.json()["error"]) == (422, True)
    for part in ("fleet", "evaluations", "fights"):
        assert client.get(f"/api/runs/one/{part}").status_code == 200


@pytest.mark.parametrize(
    "part",
    ["", "/series?names=a", "/series.csv", "/fleet", "/evaluations", "/evaluations/a", "/fights", "/fights/a",
     "/fights/a/share"],
)  # fmt: skip
def test_runs_that_are_not_there(client, part):
    answer = client.get(f"/api/runs/nobody{part}")
    assert answer.status_code == 404
    assert "there is no run 'nobody'" in answer.json()["error"]


def test_series(client):
    found = client.get("/api/runs/one/series?names=loss/policy,nobody&points=25").json()
    assert (found["rows"], found["x"]) == (100, "step")
    curve = found["series"]["loss/policy"]
    assert curve["y"] == [(4 * number + 1.5) / 8 for number in range(25)]
    assert curve["low"] == [4 * number / 8 for number in range(25)]
    assert curve["high"] == [(4 * number + 3) / 8 for number in range(25)]
    assert found["series"]["nobody"] == {"x": [], "y": []}


def test_series_in_part(client):
    found = client.get("/api/runs/one/series?names=loss/policy&x=elapsed_s&from=3&to=5").json()
    assert found["series"]["loss/policy"] == {"x": [3, 4, 5], "y": [0.375, 0.5, 0.625]}


def test_what_is_not_finite_is_null(client, root, kit):
    kit.metrics(root / "one", kit.lines([kit.row(0, q=None), kit.row(1, q=1.5)]))
    found = client.get("/api/runs/one/series?names=q").json()
    assert found["series"]["q"] == {"x": [0, 10], "y": [None, 1.5]}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("x=wins", "none of step, game_hours, elapsed_s, time"),
        ("points=1", "not within 2 and 5,000"),
        ("points=5001", "not within 2 and 5,000"),
        ("points=-3", "not within 2 and 5,000"),
        ("points=1e3", "not within 2 and 5,000"),
        ("points=99999999999999999999", "not within 2 and 5,000"),
        ("from=abc", "'abc' is not a number"),
        ("to=nan", "'nan' is not a number"),
        ("names=" + ",".join(f"a{number}" for number in range(65)), "65 metrics are too many at once"),
    ],
)
def test_wrong_questions(client, query, words):
    answer = client.get(f"/api/runs/one/series?{query}")
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def table_of(answer):
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(answer.text)))


def test_every_row_as_a_download(client, root, kit):
    rows = [kit.row(0), kit.row(1, wins=2.0), kit.row(2, **{"loss/policy": 1 / 3}), kit.row(3, **{"loss/policy": None})]
    kit.metrics(root / "one", kit.lines(rows) + b"damaged\n" + kit.lines([kit.row(4)]) + b'{"st')
    answer = client.get("/api/runs/one/series.csv?names=loss/policy,wins,nobody")
    assert answer.headers["content-disposition"] == 'attachment; filename="one.csv"'
    assert answer.headers["content-type"].startswith("text/csv")
    assert table_of(answer) == [
        ["step", "loss/policy", "wins"],
        ["0", "0", ""],
        ["10", "0.125", "2"],
        ["20", repr(1 / 3), ""],
        ["40", "0.5", ""],
    ]
    assert table_of(client.get("/api/runs/one/series.csv?x=time&names=wins"))[1] == [rows[1]["time"], "2"]
    assert table_of(client.get("/api/runs/one/series.csv?from=10&to=20"))[0] == ["step", "loss/policy", "wins"]
    assert len(table_of(client.get("/api/runs/one/series.csv?from=10&to=20"))) == 3


def test_a_long_download(client, root, kit):
    kit.metrics(root / "one", kit.lines(kit.row(number) for number in range(5_000)))
    table = table_of(client.get("/api/runs/one/series.csv?names=loss/policy"))
    assert table[1:] == [[str(10 * number), str(number / 8).removesuffix(".0")] for number in range(5_000)]


def test_prometheus(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'souls_run_state{run="one",state="finished"} 1.0' in lines
    assert 'souls_run_steps_total{run="two"} 100.0' in lines
    assert 'souls_win_rate_evaluation_ratio{run="one"} 0.5' in lines
    assert any(line.startswith('souls_loss_policy{run="one"} 12.375') for line in lines)


def test_nothing_else(client):
    answer = client.get("/api/secrets")
    assert answer.status_code == 404
    assert answer.json() == {"error": "there is nothing at this address"}
    assert client.get("/api/runs/one/control").status_code == 405
    assert client.post("/api/runs", headers=MARK).status_code == 405
    assert client.put("/api/runs").status_code == 405
    assert client.get("/static/nothing.js").status_code == 404


# ---------------------------------------------------------------- control


def test_asking_a_run_that_is_trained(client, root):
    with hold_lock(root / "one" / "lock"):
        answer = client.post("/api/runs/one/control", json={"action": "pause"}, headers=MARK)
        assert (answer.status_code, answer.json()) == (202, {"asked": ["pause"]})
        assert client.post("/api/runs/one/control", json={"action": "save"}, headers=MARK).json() == {
            "asked": ["save", "pause"]
        }
        assert client.get("/api/runs/one").json()["asked"] == ["save", "pause"]
        assert client.post("/api/runs/one/control", json={"action": "unpause"}, headers=MARK).json() == {
            "asked": ["save"]
        }
    assert (root / "one" / "control" / "save").exists()


def test_asking_where_nobody_trains(client):
    answer = client.post("/api/runs/one/control", json={"action": "stop"}, headers=MARK)
    assert answer.status_code == 409
    assert "is not being trained" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"action": 3}', b'{"action": ["save"]}', b'{"action": "../../save"}', b"\xff" * 9],
)
def test_asking_for_nonsense(client, root, body):
    with hold_lock(root / "one" / "lock"):
        answer = client.post("/api/runs/one/control", content=body, headers=MARK)
    assert answer.status_code == 400
    assert re.search("action|is none of save, pause, unpause, stop", answer.json()["error"])
    assert not (root / "one" / "control").exists()


def test_a_control_folder_that_leads_elsewhere_is_not_written_to(client, root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (root / "one" / "control").symlink_to(tmp_path / "elsewhere")
    with hold_lock(root / "one" / "lock"):
        answer = client.post("/api/runs/one/control", json={"action": "save"}, headers=MARK)
    assert answer.status_code == 409
    assert list((tmp_path / "elsewhere").iterdir()) == []


# ---------------------------------------------------------------- evaluations and fights of a run that was trained


@pytest.fixture
def trained_root(trained, tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    shutil.copytree(trained, place / "tiny")
    return place


def test_evaluations(client_of, trained_root):
    client = client_of(trained_root)
    found = client.get("/api/runs/tiny/evaluations").json()
    assert found
    folder = trained_root / "tiny"
    newest = sorted((folder / "evaluations").glob("*.json"))[-1]
    shutil.copy(newest, folder / "judged.json")
    found = client.get("/api/runs/tiny/evaluations").json()
    live = next(each for each in found if each["live"])
    assert (live["name"], live["fights"]) == ("judged", 6)
    assert live["headline"].startswith("wins ")
    assert live["low"] <= live["win_rate"] <= live["high"]
    detail = client.get("/api/runs/tiny/evaluations/judged").json()
    written = json.loads(newest.read_text())
    assert detail["settings"] == written["settings"]
    assert (detail["fights"], detail["wins"], detail["grid_m"]) == (6, written["summary"]["wins"], 10)
    for key in ("phases", "deaths", "hits", "places", "hit_places", "damage_over_time", "time_outs"):
        assert key in detail
    assert {"name", "started", "hits", "damage", "dodged", "dodge_rate", "deaths"} <= set(detail["attacks"][0])


def test_damaged_evaluations(client_of, trained_root):
    folder = trained_root / "tiny" / "evaluations"
    (folder / "bad.json").write_text("{")
    client = client_of(trained_root)
    assert "bad" not in [each["name"] for each in client.get("/api/runs/tiny/evaluations").json()]
    answer = client.get("/api/runs/tiny/evaluations/bad")
    assert answer.status_code == 422
    assert "bad.json" in answer.json()["error"]
    assert client.get("/api/runs/tiny/evaluations/none").status_code == 404
    assert client.get("/api/runs/tiny/evaluations/..%2fjudged").status_code == 404


def test_fights(client_of, trained_root, tmp_path):
    client = client_of(trained_root)
    found = client.get("/api/runs/tiny/fights").json()
    assert found, "the training recorded no fight"
    keys = {"name", "file", "number", "step", "outcome", "killed_by", "time_s", "steps", "player_hp_share"}
    assert keys | {"boss_hp_share", "thoughts", "engine"} <= set(found[0])
    name = found[0]["name"]
    scene = client.get(f"/api/runs/tiny/fights/{name}")
    assert scene.status_code == 200
    assert scene.json()
    page = client.get(f"/api/runs/tiny/fights/{name}/share")
    assert page.status_code == 200
    assert page.headers["content-disposition"].startswith('attachment; filename="tiny-')
    assert page.text.lower().startswith("<!doctype html")
    assert client.get("/api/runs/tiny").json()["fights"] == len({fight["file"] for fight in found})


def test_damaged_recordings_are_left_out(client_of, trained_root):
    (trained_root / "tiny" / "recordings" / "bad.npz").write_bytes(b"PK not really")
    client = client_of(trained_root)
    assert "bad" not in [fight["name"] for fight in client.get("/api/runs/tiny/fights").json()]
    answer = client.get("/api/runs/tiny/fights/bad")
    assert answer.status_code == 404
    assert "has no recorded fight 'bad'" in answer.json()["error"]


def test_recordings_elsewhere_are_not_found(client_of, trained_root, tmp_path):
    folder = trained_root / "tiny" / "recordings"
    some = next(folder.glob("*.npz"))
    shutil.move(some, tmp_path / "secret.npz")
    (folder / "secret.npz").symlink_to(tmp_path / "secret.npz")
    client = client_of(trained_root)
    assert "secret" not in [fight["name"] for fight in client.get("/api/runs/tiny/fights").json()]
    for name in ("secret", "..%2f..%2f..%2fsecret", "%2fetc%2fpasswd", str(tmp_path / "secret").replace("/", "%2f")):
        assert client.get(f"/api/runs/tiny/fights/{name}").status_code == 404


def test_a_video_of_an_unknown_kind(client, root):
    answer = client.get("/api/runs/one/fights/nothing/video?as=exe")
    assert (answer.status_code, answer.json()["error"]) == (400, "as = 'exe' is none of mp4, gif")
    assert client.get("/api/runs/one/fights/nothing/video").status_code == 404
