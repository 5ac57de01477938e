"""A rehearsal: what comes out, that nobody else reads its file, and what happens when its process fails."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.errors import GameGone, GameHung, MisuseError, StartError
from soulsgym.rehearsal import engine as rehearsal
from soulsgym.rehearsal.engine import RehearsalEngine, RehearsalOptions
from soulsgym.spec import load_fight
from soulsgym.spec.draw import write_overlay
from soulsgym.spec.fight import boss_file
from soulsgym.state import Outcome

EVERYONE = np.ones(1, np.bool_)


@pytest.fixture(scope="module")
def spec():
    return load_fight("iudex")


@pytest.fixture(scope="module")
def target(spec, tmp_path_factory):
    """One process for all tests that leave it well; its file is gone before the first fight."""
    file = write_overlay(tmp_path_factory.mktemp("hidden") / "hidden.toml", "iudex", 7)
    engine = RehearsalEngine(spec, RehearsalOptions(str(file)), changes=True)
    file.unlink()
    yield engine
    engine.close()


@pytest.fixture
def own_target(spec, tmp_path):
    file = write_overlay(tmp_path / "hidden.toml", "iudex", 8)
    engine = RehearsalEngine(spec, RehearsalOptions(str(file)))
    engine.reset(EVERYONE, standard_starts(1))
    yield engine
    engine.close()


def play(engine, steps, seed=0):
    """Records of random actions over one fight after the other."""
    generator, records = np.random.default_rng(seed), []
    engine.reset(EVERYONE, standard_starts(1))
    for _ in range(steps):
        engine.step(ACTION_CONTROLS[[generator.integers(20)]])
        records.append(engine.fights.copy())
        if engine.fights["outcome"][0] != Outcome.RUNNING:
            engine.reset(EVERYONE, standard_starts(1))
    return np.concatenate(records)


def test_it_shows_what_a_game_shows_and_no_more(target, spec):
    records = play(target, 1500)
    for key, value in (
        ("boss_move", -1),
        ("dodged", -1),
        ("invulnerable", 0),
        ("boss_move_s", 0),
        ("player_move_s", 0),
    ):
        assert (records[key] == value).all()
        assert key in target.missing_fields
    assert len(np.unique(records["boss_animation"])) > 4
    assert (records["boss_animation"] < len(spec.boss_animations)).all()
    hurt = records[records["damage_taken"] > 0]
    assert len(hurt) > 5
    attacks = {move.animation: index for index, move in reversed(list(enumerate(spec.boss.moves)))}
    for record in hurt:  # Named by the label that is shown, or was until a moment ago.
        name = spec.boss.moves[record["hit_by"]].animation
        assert name in attacks
    assert set(records["killed_by"][records["outcome"] == Outcome.DIED]) - {-1}
    assert target.steps >= 1500


def test_seeds_decide_nothing(target):
    endings = set()
    for _ in range(4):
        target.reset(EVERYONE, standard_starts(1), np.array([5], np.uint64))
        for _ in range(60):
            target.step(ACTION_CONTROLS[[NOTHING]])
        endings.add(target.fights["boss_pose"].tobytes())
    assert len(endings) > 1


def test_a_snapshot_brings_back_health_and_nothing_else(target):
    target.reset(EVERYONE, standard_starts(1))
    snapshot = target.snapshot()
    snapshot.fights["boss_hp"] = 500.0
    target.restore(snapshot)
    assert target.fights["boss_hp"][0, 0] == 500.0
    with pytest.raises(StartError, match="rehearsal-1"):
        target.restore(type(snapshot)("sim-2", snapshot.fights, snapshot.hidden))


def test_a_start_that_cannot_be_is_refused_and_the_fight_goes_on(target):
    starts = standard_starts(1)
    starts["player_hp"] = 1e9
    with pytest.raises(StartError, match="player_hp = 1e"):
        target.reset(EVERYONE, starts)
    target.reset(EVERYONE, standard_starts(1))
    with pytest.raises(MisuseError, match="controls are 2"):
        target.step(ACTION_CONTROLS[[0, 0]])


def test_its_pace(own_target):
    own_target._pace = 50.0
    began_s = time.monotonic()
    for _ in range(20):
        own_target.step(ACTION_CONTROLS[[NOTHING]])
    assert time.monotonic() - began_s >= 20 / 50.0


def test_a_process_that_ends(own_target):
    own_target._process.kill()
    with pytest.raises(GameGone, match=r"hidden\.toml has ended with -?\d+"):
        own_target.step(ACTION_CONTROLS[[NOTHING]])
    own_target.close()
    with pytest.raises(MisuseError, match="closed"):
        own_target.step(ACTION_CONTROLS[[NOTHING]])


def test_when_whoever_asked_was_killed_it_ends_without_a_word(own_target, capfd):
    process = own_target._process
    process.stdout.close()
    process.stdin.write(rehearsal.RESET + standard_starts(1).tobytes())
    process.stdin.close()
    assert process.wait(60) == 1
    assert capfd.readouterr().err == ""


def test_when_whoever_opened_it_was_killed_before_it_was_ready_it_ends_without_a_word():
    command = [sys.executable, "-m", "soulsgym.rehearsal.target", "iudex", "standard", "--phase", "1", "--changes", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.close()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no signal stops a process here")
def test_a_process_that_does_not_answer(own_target, monkeypatch):
    monkeypatch.setattr(rehearsal, "ANSWER_S", 0.5)
    os.kill(own_target._process.pid, signal.SIGSTOP)
    with pytest.raises(GameHung, match=r"hidden\.toml does not answer"):
        own_target.step(ACTION_CONTROLS[[NOTHING]])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("a = ", "not TOML"),
        ("[body]\nwings = 2\n", "wings"),
        ("[body]\nhp = -1\n", "hp"),
    ],
)
def test_a_bad_file_is_one_sentence(spec, tmp_path, content, words):
    file = tmp_path / "bad.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(MisuseError, match=rf"bad\.toml.*{words}") as caught:
        RehearsalEngine(spec, RehearsalOptions(str(file)))
    assert "\n" not in str(caught.value)


def test_the_file_of_another_boss_is_refused(spec):
    with pytest.raises(MisuseError, match=r"vordt\.toml is of another boss than Iudex Gundyr: .* of the same boss"):
        RehearsalEngine(spec, RehearsalOptions(str(boss_file("vordt"))))


def test_a_boss_with_another_attack_in_place_of_one_is_the_same(spec, tmp_path):
    *others, last = spec.boss_animations
    ours = dataclasses.replace(spec, boss_animations=(*others, f"{last}9"))
    file = write_overlay(tmp_path / "hidden.toml", "iudex", 7)
    RehearsalEngine(ours, RehearsalOptions(str(file))).close()


def test_a_pace_that_cannot_be():
    for pace in (-1.0, float("inf"), float("nan")):
        with pytest.raises(MisuseError, match="pace"):
            RehearsalOptions("a.toml", pace)


def test_the_environments_of_the_game_take_it(tmp_path):
    file = write_overlay(tmp_path / "hidden.toml", "iudex", 9)
    env = gymnasium.make("SoulsGymIudexDemo-v0", rehearse=str(file), random_player_pose=True).unwrapped
    file.unlink()
    try:
        observation, info = env.reset(seed=3)
        assert env.observation_space.contains(observation)
        for _ in range(30):
            observation, _, terminated, _, info = env.step(
                int(np.random.default_rng(1).choice(info["allowed_actions"]))
            )
            if terminated:
                break
        assert env.observation_space.contains(observation)
        with pytest.raises(MisuseError, match="no game to inspect"):
            env.game  # noqa: B018 (a property)
    finally:
        env.close()
