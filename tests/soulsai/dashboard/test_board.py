"""The public board: what everybody sees, and what nobody sees without the token."""

import json
import os

import pytest
from starlette.testclient import TestClient

from soulsai.dashboard.app import build
from soulsai.dashboard.board import FRESH_S, PATHS, Board
from soulsai.dashboard.fleet import Fleets
from soulsai.dashboard.library import Library
from soulsai.dashboard.security import AccessCheck
from soulsai.dashboard.server import ServeOptions, ServerError, serve
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import write_fight_file

TOKEN = "a-token-of-some-length"
NAMES = {
    "alice": {"lives": 2, "steps": 10**9, "episodes": 10**9, "sent": 900, "stored": 250, "share": 0.25},
    "<b>bob": {"lives": 1, "steps": 5, "episodes": 1, "sent": 800, "stored": 750, "share": 0.75},
}


class Fixed(Fleets):
    """A fleet as it is told."""

    def look(self, details):
        return {"names": NAMES, "since": {"alice": 1_790_000_000.0}, "workers": [{"host": "secret-host"}]}


@pytest.fixture
def public(root):
    """Somebody without a token, where the board of one run is open."""
    app = build(Library(root), AccessCheck(False, TOKEN, PATHS), board="one")
    return TestClient(app, base_url="http://souls.example.org")


def test_everybody_sees_the_board_and_nothing_else(public):
    answer = public.get("/board")
    assert answer.status_code == 200
    assert "<h1>one</h1>" in answer.text
    assert "finished, 100 of 1,000 steps" in answer.text
    assert TOKEN not in answer.text
    assert "script" not in answer.text
    for path in (
        "/",
        "/api/runs",
        "/api/runs/one",
        "/api/runs/one/fleet",
        "/metrics",
        "/board/",
        "/board/../",
        "/board/x",
    ):
        assert public.get(path).status_code == 401, path
    assert public.post("/board", headers={"x-souls": "page"}).status_code == 401


def test_without_the_option_there_is_no_board(root):
    client = TestClient(build(Library(root), AccessCheck(False, TOKEN)), base_url="http://souls.example.org")
    for path in PATHS:
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 404


def test_it_tells_what_was_stored_and_since_when_and_no_machines(root):
    text = Board(Library(root), Fixed(), "one").page(None).body.decode()
    assert text.index("&lt;b&gt;bob") < text.index("alice")
    assert "<td>250</td><td>25.0%</td>" in text
    assert "2026-09-21" in text
    assert "1,000,000,000" not in text  # what workers claim
    assert "secret-host" not in text


def test_the_win_rate_is_drawn(kit, tmp_path):
    rows = [kit.row(number, **{"win_rate/evaluation": number / 10}) for number in range(6)]
    kit.folder(tmp_path / "runs" / "one", rows)
    text = Board(Library(tmp_path / "runs"), Fleets(), "one").page(None).body.decode()
    assert "50.0% after 50 steps" in text
    assert text.count("<polyline") == 1
    assert [label in text for label in (">0%<", ">100%<", ">50 steps<")] == [True] * 3
    assert "nobody yet" in text


def test_the_newest_fight_is_played_in_a_box_of_its_own(public, root):
    assert "none yet" in public.get("/board").text
    assert public.get("/board/fight").status_code == 404
    recorder, folder = FightRecorder(1), root / "one" / "recordings"
    evaluate(ScriptedFighter("idle"), 1, seed=4, recorder=recorder)
    for number, name in enumerate(("old", "newest", "damaged")):
        write_fight_file(folder / f"{name}.npz", recorder.fight(0), {"step": number, "engine": "sim"})
        os.utime(folder / f"{name}.npz", (1_790_000_000 + number, 1_790_000_000 + number))
    (folder / "damaged.npz").write_bytes(b"PK not really")
    answer = public.get("/board/fight")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert "</html>" in answer.text


def test_a_run_that_is_gone(root):
    app = build(Library(root), AccessCheck(False, TOKEN, PATHS), board="three")
    answer = TestClient(app, base_url="http://souls.example.org").get("/board")
    assert (answer.status_code, json.loads(answer.text)["error"]) == (404, "there is no such run any more")
    with pytest.raises(ServerError, match="--board three: there is no such run"):
        serve(ServeOptions(root, "127.0.0.1", 0, board="three"), print)


def test_many_viewers_cost_one_look(root, monkeypatch):
    now_s, looks = [0.0], []
    board = Board(Library(root), Fleets(), "one", lambda: now_s[0])
    monkeypatch.setattr(board, "_text", lambda details: looks.append(0) or "page")
    for _ in range(5):
        board.page(None)
    now_s[0] += FRESH_S
    board.page(None)
    assert len(looks) == 2
