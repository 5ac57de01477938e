"""What can be read of Elden Ring, on a Windows program under Wine that has its memory: found, judged and recorded."""

import contextlib
import json
import subprocess
import sys
import time

import numpy as np
import pytest
import standin_kit
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.errors import GameError, MisuseError
from soulsgym.game.attach import attach, find_game
from soulsgym.game.engine import GameEngine
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import open_process
from soulsgym.game.titles import EldenRing
from soulsgym.recordings.recording import read_recording
from soulsgym.spec import load_fight

pytestmark = [
    pytest.mark.wine,
    pytest.mark.skipif(sys.platform == "win32", reason="it is started by Wine on Linux"),
]


@pytest.fixture(scope="module")
def ring(wine):
    """The pid of a program with a fight in it that somebody plays."""
    executable = standin_kit.build_ring()
    process = subprocess.Popen(
        ["wine", str(executable)], env=wine.environment(), cwd=executable.parent,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + standin_kit.START_LIMIT_S
    while not _fights(process.pid):
        assert process.poll() is None, f"it ended with code {process.returncode}"
        assert time.monotonic() < deadline, "it did not start"
        time.sleep(0.1)
    yield process.pid
    process.kill()
    process.wait(60)


def _fights(pid):
    try:
        return opened(pid).look("margit").time_ms > 3_600_000
    except GameError:
        return False


def opened(pid):
    return EldenRing(ProcessMemory(open_process(find_game("eldenring", pid).pid)))


def test_a_fight_is_seen_with_its_names_and_places(ring):
    title, seen = opened(ring), {}
    deadline = time.monotonic() + 60
    while len(seen) < 4:
        assert time.monotonic() < deadline, f"only {seen} were seen"
        sight = title.look("margit")
        seen[sight.boss_animation] = sight
        assert sight.player_animation in ("Move", "RollingMedium", "DamageMiddle")
        assert 0.0 <= sight.boss_animation_s < 4.0
        assert sight.player_pose[:3] == (-15.0, -10.0, -7.0)
        time.sleep(0.01)
    assert set(seen) == {"WalkFrontBattle", "Attack3000", "IdleBattle", "Attack3014"}
    assert all(one.boss_hp in (4174, 4074) and one.player_max_hp == 2100 for one in seen.values())
    assert title.last_bonfire == "Stormhill - Margit, the Fell Omen"
    assert title.player_stats == (30, 20, 10, 15, 16, 12, 9, 9, 7)


def test_the_doctor_looks_at_it(ring):
    result = CliRunner().invoke(app, ["doctor", "--title", "eldenring", "--pid", str(ring), "--only-look", "--json"])
    found = {one["name"]: one for one in json.loads(result.stdout)["findings"]}
    assert {
        name: found[name]["ok"] for name in ("permission", "patterns", "in game", "window", "values")
    } == dict.fromkeys(("permission", "patterns", "in game", "window", "values"), True)
    assert found["version"]["ok"] is None
    assert "Margit, the Fell Omen too" in found["values"]["text"]


def test_a_person_is_recorded(ring, tmp_path, monkeypatch):
    from soulsai.cli import watch

    title = opened(ring)
    begun = title.time  # a round of what is played takes four seconds, and a fight begins with a blow
    monkeypatch.setattr(watch, "stop_on_signals", lambda *_: contextlib.nullcontext(lambda: title.time > begun + 8_500))
    file = tmp_path / "person.npz"
    result = CliRunner().invoke(app, ["record", "--human", "--boss", "margit", "--pid", str(ring), "--out", str(file)])
    assert result.exit_code == 0, (result.output, result.exception)
    recording, plan = read_recording(file), load_fight("margit").watch
    names = {plan.boss_animations[number] for number in recording.fights["boss_animation"]}
    assert {"Attack3014", "WalkFrontBattle"} <= names
    assert (recording.fights["player_animation"] >= 0).all()
    assert np.isin(recording.fights["player_hp"][:, 0], (1933.0, 2100.0)).all()
    assert ((recording.actions >= 8) & (recording.actions < 16)).any()  # a roll
    with open(f"/proc/{ring}/maps") as maps:
        assert "souls_speed" not in maps.read()


def test_it_is_attached_to_and_refused_for_fights_in_one_sentence(ring, monkeypatch):
    monkeypatch.setattr("soulsgym.game.clock.LAPSE_S", 60.0)
    game = attach("eldenring", ring)
    try:
        game.clock.pause()
        before = game.title.time
        time.sleep(0.2)
        assert game.title.time == before
        game.clock.resume()
        with pytest.raises(MisuseError, match="EldenRing cannot be fought in yet: its data lack the way to the boss"):
            GameEngine(load_fight("iudex", moves=False).game, [game])
    finally:
        game.close()
