"""Scenes: what the browser is given is what happened in the fight."""

import base64
import json
import re
import shutil
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.dashboard.drawing import ground_of, png
from soulsai.dashboard.scenes import (
    PARTS,
    VIEWER,
    fight_name,
    fights_in,
    fights_of,
    scene_from,
    scene_of,
    shared_page,
    video_of,
)
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import FightFile, about_boss, read_fight_file, spec_of, write_fight_file
from soulsai.learning.scoring import evaluate_policy
from soulsai.learning.showing import keep_fight
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.recordings.recording import Recording, write_recording
from soulsgym.render.names import action_names, action_sentences, player_label_names
from soulsgym.spec import load_fight
from soulsgym.state import FIGHT, Outcome


@pytest.fixture(scope="module")
def duel():
    """A full fight of the duellist: blows of all kinds, dodges, and an end."""
    recorder = FightRecorder(3)
    evaluate(ScriptedFighter("duellist"), 3, seed=4, recorder=recorder)
    return recorder.fight(0)


@pytest.fixture(scope="module")
def file(duel, tmp_path_factory):
    path = tmp_path_factory.mktemp("fights") / "duel.npz"
    write_fight_file(path, duel, {"step": 77, "engine": "sim", "run": "mine"})
    return path


@pytest.fixture(scope="module")
def thought_of(random_networks, tmp_path_factory):
    """A fight of random networks, with thoughts."""
    config = with_settings(load_preset("smoke"), ["network.hidden=[8]", "fight.step_limit=90"])
    policy, recorder = algorithm_of(config).policy(random_networks(config)), FightRecorder(1)
    evaluate_policy(config, policy, 1, seed=2, recorder=recorder)
    folder = tmp_path_factory.mktemp("run") / "recordings"
    return keep_fight(folder / "one.npz", config, policy, recorder, 0, 500)


def test_lists_the_fights_of_a_file(file, duel):
    (entry,) = fights_in(file)
    last = duel.fights[-1]
    assert entry["number"] == 1
    assert entry["step"] == 77
    assert entry["engine"] == "sim"
    assert entry["outcome"] == {Outcome.WON: "won", Outcome.DIED: "died"}[Outcome(int(last["outcome"]))]
    assert entry["time_s"] == pytest.approx(float(last["time_s"]), abs=0.06)
    assert entry["steps"] == len(duel)
    assert entry["thoughts"] is False
    assert 0.0 <= entry["boss_hp_share"] <= 1.0
    json.dumps(entry, allow_nan=False)


def test_the_newest_comes_first_though_files_were_copied(tmp_path, duel):
    made = {"old": "2026-11-15T23:15:00.000Z", "new": "2026-11-16T23:15:00.000Z", "middle": "2026-11-16T01:00:00.000Z"}
    for name in ("new", "old", "middle"):  # written in another order
        write_fight_file(tmp_path / f"{name}.npz", duel, {"made": made[name], "step": 1})
    assert list(fights_of(tmp_path.glob("*.npz"))) == ["new", "middle", "old"]


def test_fights_that_began_alike_are_known_by_their_draw(tmp_path, duel):
    about = {"engine": "sim", "boss": "iudex", "variant": "standard", "seed": 5, "fight": 0}
    told = {
        "one": {**about, "step": 1},
        "two": {**about, "step": 2},
        "other": {**about, "fight": 1},
        "game": {"engine": "game"},
    }
    for name, each in told.items():
        write_fight_file(tmp_path / f"{name}.npz", duel, each)
    draws = {name: fight["draw"] for name, (fight, _) in fights_of(tmp_path.glob("*.npz")).items()}
    assert draws["one"] == draws["two"] != ""
    assert draws["other"] not in (draws["one"], "")
    assert draws["game"] == ""


def test_a_fight_as_a_video(tmp_path, duel):
    short = Recording(duel.fights[:6], duel.actions[:6], duel.episodes[:6], duel.source)
    write_fight_file(tmp_path / "short.npz", short, {})
    assert video_of(tmp_path / "short.npz", 1, ".gif").startswith(b"GIF89a")
    assert video_of(tmp_path / "short.npz", 1, ".mp4")[4:8] == b"ftyp"


def test_notices_that_a_file_changed(tmp_path, duel):
    path = tmp_path / "a.npz"
    write_fight_file(path, duel, {"step": 1})
    assert fights_in(path)[0]["step"] == 1
    write_fight_file(path, duel, {"step": 222})
    assert fights_in(path)[0]["step"] == 222
    path.unlink()
    with pytest.raises(RecordingError, match="cannot be read"):
        fights_in(path)


def test_names(tmp_path):
    assert fight_name(tmp_path / "a.b.npz", 1) == "a.b"
    assert fight_name(tmp_path / "a.npz", 12) == "a~12"


def test_course_of_the_fight(file, duel):
    scene = scene_of(file, 1)
    fights = duel.fights
    assert scene["time_ms"] == np.rint(1000 * fights["time_s"]).astype(int).tolist()
    assert np.array(scene["player"]["x"]) / 100 == pytest.approx(fights["player_pose"][:, 0], abs=0.006)
    assert np.array(scene["boss_pose"]["heading"]) / 1000 == pytest.approx(fights["boss_pose"][:, 3], abs=0.001)
    assert scene["player_hp"] == pytest.approx(fights["player_hp"][:, 0].tolist(), abs=0.06)
    names = player_label_names(load_fight("iudex"))
    shown = [scene["player_labels"][place] for place in scene["player_animation"]]
    assert shown == [names[i] for i in fights["player_animation"]]
    assert {"Stands", "Roll", "Light attack"} <= set(shown)
    assert not any(re.search(r"Attack|Battle|\d|_|[a-z][A-Z]", name) for name in scene["boss_labels"])
    assert scene["action"][1:] == duel.actions[1:].tolist()
    assert scene["action"][0] == -1
    masks = [[(mask >> i) & 1 for i in range(20)] for mask in scene["mask"]]
    assert masks == fights["action_mask"].tolist()
    assert (scene["actions"], scene["wants"]) == (action_names(), action_sentences())
    text = json.dumps(scene, allow_nan=False)
    assert len(text) < 2e6 * len(duel) / 1000 + 1e5


def test_what_happened(file, duel):
    scene = scene_of(file, 1)
    fights = duel.fights
    dealt = [i for i, _, kind in scene["events"] if kind == "dealt"]
    assert set(np.flatnonzero(fights["damage_dealt"] > 0)) <= set(dealt)
    dodged = [i for i, _, kind in scene["events"] if kind == "dodged"]
    assert dodged == np.flatnonzero(fights["dodged"] >= 0).tolist()
    assert dodged, "a fight without a dodge proves little"
    hurt = {i: text for i, text, kind in scene["events"] if kind == "hurt"}
    for i in np.flatnonzero(fights["damage_taken"] > 0).tolist():
        assert hurt[i] == f"-{fights['damage_taken'][i]:.0f}"


def test_blows_are_where_windows_draw_them(file, duel):
    """An outline, moved along with the boss, is the area of the blow for that record."""
    from soulsgym.render.areas import Pose, area_of_hit

    scene = scene_of(file, 1)
    spec = load_fight("iudex")
    outlines = [np.array(outline).reshape(-1, 2).cumsum(axis=0) / 100 for outline in scene["outlines"]]
    checked = 0
    for i, operations in scene["blows"].items():
        fight = duel.fights[i]
        move = spec.boss.moves[int(fight["boss_move"])]
        landing = [hit for hit in move.hits if not hit.sweep and hit.from_s <= fight["boss_move_s"] <= hit.from_s + 0.1]
        if len(move.hits) != 1 or not landing:
            continue
        boss = Pose(*(float(fight["boss_pose"][k]) for k in (0, 1, 3)))
        wanted = np.array(area_of_hit(landing[0], boss))
        sine, cosine = np.sin(boss.heading_rad), np.cos(boss.heading_rad)
        local = outlines[next(op[1] for op in operations if op[0] == 0 and op[3] == 62)]
        world = local @ np.array([[cosine, -sine], [sine, cosine]]) + boss.at
        assert world == pytest.approx(wanted, abs=0.02)
        checked += 1
    assert checked > 0


def test_thoughts(thought_of):
    scene, told = scene_of(thought_of, 1), read_fight_file(thought_of)
    thoughts, kept = scene["thoughts"], told.thoughts
    assert thoughts["kind"] == "probability"
    assert thoughts["records"] == kept.records.tolist()
    assert np.array(thoughts["scores"]) == pytest.approx(kept.scores, abs=1e-4)
    assert [layer["name"] for layer in thoughts["layers"]] == ["observation", "layer 1"]
    for sent, layer in zip(thoughts["layers"], kept.layers, strict=True):
        shades = np.frombuffer(base64.b64decode(sent["shades"]), np.uint8).reshape(-1, sent["units"])
        assert np.array_equal(shades, layer.shades)
    assert scene["reason"] == ""
    assert scene["about"]["run"] == thought_of.parent.parent.name
    opened = [[bool((row >> i) & 1) for i in range(20)] for row in thoughts["open"]]
    assert opened == kept.open.tolist()


def test_one_of_several(tmp_path, duel):
    two = Recording(
        np.concatenate([duel.fights[:30], duel.fights]),
        np.concatenate([duel.actions[:30], duel.actions]),
        np.repeat([0, 1], [30, len(duel)]),
    )
    path = tmp_path / "two.npz"
    write_recording(path, two)
    assert [entry["steps"] for entry in fights_in(path)] == [30, len(duel)]
    assert fights_in(path)[0]["outcome"] == "time-out"
    assert scene_of(path, 2)["time_ms"] == scene_from(FightFile(duel), "x")["time_ms"]
    with pytest.raises(MisuseError, match=r"fight 3 is not in two~3, which holds 2; give 1 to 2"):
        scene_of(path, 3)


def test_a_recording_that_knows_no_moves(tmp_path, duel):
    """The collector of another project, or a game that does not tell: no areas, but all the rest."""
    fights = duel.fights[:50].copy()
    for name in ("boss_move", "player_move", "hit_by", "dodged", "landed", "killed_by"):
        fights[name] = -1
    fights["boss_animation"][3:9], fights["player_animation"][3:9] = -1, -1
    path = tmp_path / "game.npz"
    write_recording(path, Recording(fights, duel.actions[:50], duel.episodes[:50]))
    scene = scene_of(path, 1)
    assert (scene["blows"], scene["strikes"]) == ({}, {})
    assert scene["boss_labels"][scene["boss_animation"][4]] == "unknown"
    assert scene["moves"] == [None]
    assert scene["thoughts"] is None
    assert "only the fight was recorded" in scene["reason"]
    assert "No thoughts" in (VIEWER / "panels.js").read_text()


def test_json_of_another_collector(tmp_path, duel):
    keys = list(FIGHT.names[:15])
    rows = duel.fights[:12]
    content = {
        "observations": [{key: np.asarray(row[key]).tolist() for key in keys} for row in rows],
        "actions": duel.actions[:12].tolist(),
        "dones": [False] * 11 + [True],
        "infos": [{"allowed_actions": [0, 1]}] * 12,
        "episodes": [0] * 12,
        "steps": list(range(12)),
        "rewards": [0.0] * 12,
    }
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))
    scene = scene_of(path, 1)
    assert scene["time_ms"] == [100 * i for i in range(12)]
    assert scene["mask"][0] == 0b11 | 1 << 19


def test_numbers_out_of_range_do_no_harm(tmp_path, duel):
    fights = duel.fights[:20].copy()
    fights["boss_move"], fights["player_move"], fights["killed_by"] = 9999, 9999, 9999
    fights["boss_animation"], fights["player_animation"], fights["outcome"] = 9999, 9999, 77
    path = tmp_path / "odd.npz"
    write_fight_file(path, Recording(fights, duel.actions[:20], duel.episodes[:20]), {"boss": "nobody", "variant": 3})
    assert fights_in(path)[0]["outcome"] == "unknown"
    json.dumps(scene_of(path, 1), allow_nan=False)


def test_quick_enough(file):
    took_s = []
    for _ in range(4):  # the quickest counts: on a busy machine the others tell of the machine
        begun_s = time.process_time()
        scene = scene_of(file, 1)
        took_s.append((time.process_time() - begun_s) / len(scene["time_ms"]))
    assert min(took_s) < 2e-3, "a fight of 1,000 records would take seconds"


def test_ground():
    arena = load_fight("iudex").arena
    ground = ground_of(arena)
    data = base64.b64decode(ground["picture"].partition(",")[2])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert ground["low"][0] < min(x for x, _ in ground["ring"])
    assert len(ground["cliffs"]) == len(arena.corners)


def test_png_is_read_back():
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    data = png(picture)
    start = data.index(b"IDAT")
    size = int.from_bytes(data[start - 4 : start], "big")
    rows = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + size]), np.uint8).reshape(5, 22)
    assert rows[:, 0].tolist() == [1] * 5
    assert np.array_equal(np.cumsum(rows[:, 1:].reshape(5, 7, 3), axis=1, dtype=np.uint8), picture)


def test_shared_page(thought_of):
    scene = scene_of(thought_of, 1)
    scene["about"]["run"] = "</script><script>alert(1)</script>"
    page = shared_page(scene, "<b>& fight")
    assert "<title>&lt;b&gt;&amp; fight</title>" in page
    assert page.count("</script>") == 2, "data must not end its element"
    assert "alert(1)</script>" not in page
    assert not re.search(r"^\s*(import|export)\b", page, re.MULTILINE)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest)\b", page)
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    held = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page, re.DOTALL)
    assert json.loads(held[1]) == json.loads(json.dumps(scene))


def test_every_module_of_the_player_is_shared():
    names = {path.name for path in VIEWER.glob("*.js")}
    assert names - {"view.js"} == set(PARTS)
    declared = [
        name
        for part in PARTS
        for name in re.findall(
            r"^(?:export )?(?:const|class|function) (\w+)", (VIEWER / part).read_text(), re.MULTILINE
        )
    ]
    assert len(declared) == len(set(declared)), "in one file two modules must not declare the same name"


def test_needs_neither_torch_nor_pygame():
    code = "import sys; sys.modules['torch'] = sys.modules['pygame'] = None\nimport soulsai.dashboard.scenes\n"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_recording_of_a_boss_of_ones_own_needs_no_other_file(sentinel, tmp_path):
    file = tmp_path / "fight.npz"
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("idle"), 1, boss=str(sentinel), variant="hard", recorder=recorder)
    write_fight_file(file, recorder.fight(0), about_boss(str(sentinel), "hard"))
    shutil.rmtree(sentinel.parent)
    (entry,) = fights_in(file)
    assert entry["killed_by"] in ("Cut", "Thrust")
    scene = scene_of(file, 1)
    assert scene["boss"] == "Sentinel"
    assert "files" not in scene["about"]
    assert (scene["about"]["boss"], scene["about"]["variant"]) == ("sentinel.toml", "hard")


@pytest.mark.parametrize(
    "about",
    [
        {"boss": "/etc/passwd"},
        {"boss": "my.toml", "files": {"boss/my.toml": "not a boss"}},
        {"boss": "my.toml", "files": {"boss/../../my.toml": ""}},
        {"boss": "my.toml", "files": ["boss/my.toml"]},
        {"boss": "my.toml", "files": {"boss/my.toml": 3}},
        {"draw_seed": "seven"},
        {"draw_seed": -1},
        {"variant": "drawn:3"},
    ],
)
def test_what_a_recording_tells_of_its_boss_is_not_trusted(about, duel):
    assert spec_of(FightFile(duel, about)) == load_fight("iudex")
