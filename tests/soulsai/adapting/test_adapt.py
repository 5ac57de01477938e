"""Adaptation, end to end on a rehearsal: what it keeps, that it goes on, and whom it leaves alone."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from soulsai.adapting import adapt, fine_tune
from soulsai.adapting.adapt import Adaptation, State, WinRate
from soulsai.adapting.fine_tune import IN_TARGET, LEARNER, HalfSampler, target_loop
from soulsai.adapting.play import MOST_STEPS, play, steps_of, wins
from soulsai.config import config_from_toml, config_to_toml, with_settings
from soulsai.errors import ConfigError, RunError
from soulsai.evaluation.fighter import ScriptedFighter
from soulsai.evaluation.thoughts import read_fight_file
from soulsai.replay import Batch
from soulsai.runs.lock import hold_lock
from soulsai.runs.run import Run
from soulsai.runtime import Fleet
from soulsgym.errors import GameError, GameGone, MisuseError, SoulsError
from soulsgym.recordings.recording import read_recording
from soulsgym.rehearsal.engine import RehearsalEngine, RehearsalOptions
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.spec.draw import draw_spec, write_overlay
from soulsgym.spec.fight import read_files
from soulsgym.state import Outcome

STEPS = 2048
IN_GAME = ("fight.engine=game", "fight.number=1", 'fight.variants=["standard"]', "fight.randomize=0",
           "run.evaluate_every_steps=0", "run.final_fights=0", "ppo.minibatch=16")  # fmt: skip
SMALL = ("run.threads=1", "fight.number=32", "run.final_fights=8", "run.evaluation_fights=8")


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A run that has learned next to nothing, of the full fight."""
    folder = tmp_path_factory.mktemp("agent") / "run"
    settings = [*SMALL, f"run.steps={STEPS}", "fight.full=true", "fight.phase=1"]
    Fleet.begin("smoke", folder, settings, check=False).train()
    return folder


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return RehearsalOptions(str(write_overlay(tmp_path_factory.mktemp("hidden") / "hidden.toml", "iudex", 40)))


def digest(folder):
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "lock")
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def adaptation(agent, target, folder, **given):
    return Adaptation(
        agent, target, folder, **{"minutes": 5.0, "train_steps": STEPS, "fights": 2, "settings": SMALL} | given
    )


@pytest.mark.slow
def test_it_plays_calibrates_trains_and_leaves_the_agent_alone(agent, target, tmp_path):
    before, said = digest(agent), []
    result = adaptation(agent, target, tmp_path / "adapted", say=said.append).run()
    assert digest(agent) == before
    assert result.minutes == pytest.approx(5.0)
    assert result.before.fights == result.after.fights == 2
    folder = tmp_path / "adapted"
    state = json.loads((folder / "adapt.json").read_text())
    assert len(state["rounds"]) == 2
    assert state["rounds"][0]["corrected"] > 10
    recordings = sorted((folder / "recordings").glob("*.npz"))
    assert {file.stem.split("-")[1] for file in recordings} == {"agent", "prober"}
    assert sum(len(read_recording(file)) for file in recordings) >= 3000
    boss = load_fight(str(folder / "boss-2.toml"))
    assert boss.boss.known
    assert load_fight("iudex", str(folder / "calibrated.toml")).boss.moves == boss.boss.moves
    assert (folder / "runs" / "2" / "config.toml").exists()
    assert any("minutes played" in line for line in said)


class Near(SimEngine):
    """A target in this process; it fails in the step `fails_at` and breaks the fight off in those of `breaks`."""

    fails_at, breaks, played = 0, (), 0

    def step(self, controls, *, skip=False):
        Near.played += 1
        if Near.played == self.fails_at:
            raise GameGone("the game has ended")
        super().step(controls, skip=skip)
        if Near.played in self.breaks:
            self.fights["outcome"] = Outcome.BROKEN


@pytest.fixture
def near(monkeypatch):
    """Lets targets be fights of this process, which open at once."""
    spec = draw_spec(read_files("iudex"), 40)
    for name, value in (("fails_at", 0), ("breaks", ()), ("played", 0)):
        monkeypatch.setattr(Near, name, value)

    def open_near(known, options, *, phase=1, changes=False):
        return Near(spec, 1, phase=phase, changes=changes)

    monkeypatch.setattr(adapt, "open_target", open_near)
    monkeypatch.setattr(fine_tune, "open_target", open_near)
    return Near


class Stop:
    """Says so after it was asked so often since a line that begins like this one."""

    def __init__(self, line, asked):
        self.line, self.asked, self.heard = line, asked, False

    def hear(self, text):
        self.heard |= text.startswith(self.line)

    def __call__(self):
        self.asked -= self.heard
        return self.asked <= 0


def recordings(folder, pattern="recordings/*.npz"):
    return [read_recording(file) for file in sorted(folder.glob(pattern))]


@pytest.mark.slow
def test_stopped_anywhere_it_goes_on_and_nothing_is_played_twice(agent, target, near, tmp_path):
    folder = tmp_path / "adapted"
    for line, asked in [
        ("round 1, the prober in phase 1", 1),
        ("round 1, the prober in phase 1", 100),
        ("round 1, the prober in phase 2", 1),
        ("round 1, the agent", 200),
        ("round 1: ", 2),
        ("held-out fights, before", 50),
        ("held-out fights, after-1", 1),
    ]:
        stop = Stop(line, asked)
        assert adaptation(agent, target, folder, minutes=2.5, say=stop.hear, stop=stop).run() is None, line
        assert stop.heard
    assert Run.open(folder / "runs" / "1").status().state == "finished"
    kept = digest(folder / "recordings")
    result = adaptation(agent, target, folder, minutes=2.5).run()
    assert digest(folder / "recordings") == kept
    assert steps_of(recordings(folder)) == 1500
    assert result.minutes == pytest.approx(2.5)
    assert (
        wins(recordings(folder, "held-out/before*.npz"))[1] == wins(recordings(folder, "held-out/after*.npz"))[1] == 2
    )
    assert near.played >= 1500
    played = near.played
    again = adaptation(agent, target, folder, minutes=2.5).run()
    assert (again.before, again.after, near.played) == (result.before, result.after, played)


@pytest.mark.slow
def test_killed_between_two_files_it_goes_on(agent, target, near, tmp_path):
    """After training but before that was noted; then while the folder of the training was made."""
    folder = tmp_path / "adapted"
    result = adaptation(agent, target, folder, minutes=2.5).run()
    state = json.loads((folder / "adapt.json").read_text())
    (folder / "adapt.json").write_text(json.dumps(state | {"rounds": []}))
    before, played = digest(folder), near.played
    assert adaptation(agent, target, folder, minutes=2.5).run() == result
    assert (digest(folder), near.played) == (before | {"adapt.json": digest(folder)["adapt.json"]}, played)
    assert json.loads((folder / "adapt.json").read_text()) == state
    (folder / "adapt.json").write_text(json.dumps(state | {"rounds": []}))
    (folder / "runs" / "1" / "config.toml").unlink()
    assert adaptation(agent, target, folder, minutes=2.5).run() is not None
    assert Run.open(folder / "runs" / "1").status().state == "finished"


@pytest.mark.slow
def test_fine_tuning_goes_on_where_it_was_stopped_and_the_better_one_is_kept(agent, target, near, tmp_path):
    folder = tmp_path / "adapted"
    small = [*SMALL, "run.steps=1024", "q.batch=32", "q.update_every=8", "q.warmup_steps=100"]
    given = {"minutes": 3.75, "fine_tune": 1.0 / 3.0, "settings": small}
    for line, asked in (("fine-tuning: values", 2), ("fine-tuning: 1.2 minutes", 2), ("held-out fights, choose-1", 9)):
        stop = Stop(line, asked)
        assert adaptation(agent, target, folder, say=stop.hear, stop=stop, **given).run() is None
        assert stop.heard
    said = []
    result = adaptation(agent, target, folder, say=said.append, **given).run()
    assert steps_of(recordings(folder)) == 1500
    for name in ("values", "fine-tuned"):
        run = Run.open(folder / "runs" / name)
        assert (run.status().state, 'algorithm = "q"' in run.config_toml) == ("finished", True)
    assert 1.25 <= result.fine_tuned["minutes"] <= 1.25 + 300 / 600
    assert result.minutes == pytest.approx(2.5 + result.fine_tuned["minutes"])
    assert result.fine_tuned["calibrated"]["fights"] == result.fine_tuned["fine_tuned"]["fights"] == 1
    assert result.run in (folder / "runs" / "1", folder / "runs" / "fine-tuned")
    assert any("kept: " in line for line in said)
    assert result.after.fights == 2


def test_half_of_what_fine_tuning_learns_from_is_of_the_target_whose_steps_alone_count(agent, target, near):
    settings = [*LEARNER, *IN_TARGET, "fight.number=8", "run.threads=1"]
    config = with_settings(config_from_toml((agent / "config.toml").read_text(), "agent"), settings)
    loop = target_loop(config, "iudex", target)
    loop.begin()
    learner, steps = loop.learner, 0
    for _ in range(20):
        first, second = loop.source.next(learner)
        steps += first.steps
        assert (first.rows, second.rows, first.steps > 0, second.steps) == (1, 8, True, 0)
        for chunk in (first, second):
            learner.take(chunk)
    loop.source.close()
    assert (learner.counters.steps, len(learner.store)) == (steps, 180)
    again = HalfSampler(learner.store)
    again.restore(learner.sampler.state())
    for sampler in (learner.sampler, again):
        batch = Batch(64, learner.schema)
        sampler.sample(batch, np.random.default_rng(0))
        assert (batch.slots[:32] % 9 == 0).all()
        assert (batch.slots[32:] % 9 != 0).all()
        assert (batch.weights == 1.0).all()
        assert len(set(batch.slots[:32])) > 10


@pytest.mark.parametrize(("wins", "kept"), [((8, 7), "4"), ((8, 8), "4"), ((7, 8), "fine-tuned")])
def test_the_one_that_wins_more_is_kept(target, tmp_path, monkeypatch, wins, kept):
    told = dict(zip(("choose-4", "choose-fine-tuned"), wins, strict=True))
    monkeypatch.setattr(Adaptation, "_win_rate", lambda self, name, *rest: WinRate(told[name], 10))
    state, runs = State("agent", "iudex", 30.0), tmp_path / "runs"
    assert Adaptation(tmp_path, target, tmp_path)._choose(runs / "4", runs / "fine-tuned", state).name == kept
    assert state.fine_tuned["kept"].endswith(kept)


def test_what_was_played_before_the_game_failed_is_kept(agent, target, near, tmp_path):
    folder = tmp_path / "adapted"
    near.fails_at = 100
    with pytest.raises(GameGone, match="has ended"):
        adaptation(agent, target, folder).run()
    assert steps_of(recordings(folder)) == 99
    assert read_fight_file(folder / "recordings" / "1-prober-1.npz").boss == "iudex"
    near.breaks = range(151, 10_000)
    with pytest.raises(GameError, match="broke off a fight 4 times in a row; run souls doctor"):
        adaptation(agent, target, folder).run()
    assert 99 + 50 <= steps_of(recordings(folder)) <= 99 + 54
    near.breaks, near.fails_at, played = (), near.played + 20, near.played
    assert adaptation(agent, target, folder, stop=lambda: near.played >= played + 20).run() is None
    assert {file.name for file in (folder / "recordings").iterdir()} == {
        f"1-prober-1{part}.npz" for part in ("", ".2", ".3")
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Linux")
def test_ctrl_c_of_a_terminal_reaches_the_target_too_and_stops_in_order(agent, target, tmp_path):
    command = [
        sys.executable,
        "-c",
        "from soulsai.cli.main import main; main()",
        "adapt",
        agent,
        "--out",
        tmp_path / "out",
    ]
    process = subprocess.Popen(
        [*map(str, command), "--rehearse", target.file, "--pace", "100"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said = process.stdout.readline()
        assert "the prober in phase 1" in said
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130, said + rest
    assert "stopped and saved" in rest
    assert "Traceback" not in rest


def test_two_at_once(agent, target, near, tmp_path):
    folder = tmp_path / "adapted"
    folder.mkdir()
    with hold_lock(folder / "lock"), pytest.raises(RunError, match=r"process .* is training in this folder"):
        adaptation(agent, target, folder).run()
    assert [file.name for file in folder.iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"target": RehearsalOptions("nowhere.toml")}, SoulsError, "nowhere.toml"),
        ({"settings": ["ppo.ardour=3"]}, ConfigError, "there is no key ppo.ardour"),
        ({"agent": "nobody"}, RunError, "there is no such run"),
    ],
)
def test_what_cannot_begin_leaves_no_folder(agent, target, tmp_path, changed, error, text):
    given = {"agent": agent, "target": target} | changed
    with pytest.raises(error, match=text):
        adaptation(folder=tmp_path / "adapted", **given).run()
    assert not (tmp_path / "adapted").exists()


def test_an_agent_of_the_game_is_refused(agent, target, tmp_path):
    other = shutil.copytree(agent, tmp_path / "other")
    file = other / "config.toml"
    config = with_settings(config_from_toml(file.read_text(), str(file)), IN_GAME)
    file.write_text(config_to_toml(config))
    with pytest.raises(MisuseError, match="was not trained on fights in the simulator"):
        adaptation(other, target, tmp_path / "adapted").run()


def test_a_full_disk_and_a_place_that_cannot_be_written(agent, target, near, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be"):
        adaptation(agent, target, tmp_path / "file" / "adapted").run()
    folder = tmp_path / "adapted"

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    for stop, name in ((lambda: True, "adapt.json"), (Stop("round 1, the prober", 50), "1-prober-1.npz")):
        with monkeypatch.context() as patched:
            if name != "adapt.json":
                stopped = adaptation(agent, target, folder, stop=lambda: True)
                assert stopped.run() is None
            patched.setattr("soulsai.runs.files.write_durably", full)
            hear = getattr(stop, "hear", lambda text: None)
            with pytest.raises(RunError, match=rf"{name}: cannot be written, the disk is full: free some space"):
                adaptation(agent, target, folder, stop=stop, say=hear).run()
    assert not list((folder / "recordings").iterdir())


def test_another_target_or_boss_than_before_is_refused(agent, target, near, tmp_path):
    folder = tmp_path / "adapted"
    assert adaptation(agent, target, folder, stop=lambda: True).run() is None
    state = json.loads((folder / "adapt.json").read_text())
    for key, text in (("target", "adapts to another target"), ("boss_digest", "began with other numbers of iudex")):
        (folder / "adapt.json").write_text(json.dumps(state | {key: "another"}))
        with pytest.raises(MisuseError, match=text):
            adaptation(agent, target, folder).run()


@pytest.mark.slow
def test_rehearsals_are_told_apart_by_their_numbers(target, tmp_path):
    copied = shutil.copy(target.file, tmp_path / "copied.toml")
    other = write_overlay(tmp_path / "other.toml", "iudex", 41)
    told = [
        Adaptation(tmp_path, RehearsalOptions(str(file)), tmp_path)._look_at_target("iudex")
        for file in (target.file, copied, other)
    ]
    assert told[0] == told[1] != told[2]


def test_recordings_that_tell_too_little_say_the_way_out(agent, target, near, tmp_path):
    with pytest.raises(RunError, match=r"too few to tell anything.*play longer with --minutes, or begin again"):
        adaptation(agent, target, tmp_path / "adapted", minutes=0.1).run()


def test_without_what_a_finished_round_has_left_the_way_out_is_said_and_works(agent, target, near, tmp_path):
    folder = tmp_path / "adapted"
    assert adaptation(agent, target, folder, stop=lambda: True).run() is None
    state = json.loads((folder / "adapt.json").read_text())
    state["rounds"] = [{"number": 1, "minutes": 2.5}]
    (folder / "adapt.json").write_text(json.dumps(state))
    with pytest.raises(RunError, match=r"runs/1, the agent of round 1, is gone; put it back, or begin again"):
        adaptation(agent, target, folder).run()
    shutil.copytree(agent, folder / "runs" / "1")
    kept, way_out = digest(folder), r"recordings has no recordings; put .* back, end .* with --minutes 2\.5, or"
    with pytest.raises(RunError, match=way_out):
        adaptation(agent, target, folder).run()
    assert digest(folder) == kept
    result = adaptation(agent, target, folder, minutes=2.5).run()
    assert (result.run, result.minutes, result.after.fights) == (folder / "runs" / "1", 2.5, 2)


def test_a_folder_with_something_else_in_it_is_refused(agent, target, near, tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(MisuseError, match="holds no adaptation"):
        adaptation(agent, target, tmp_path).run()


def test_a_folder_of_another_agent_or_a_damaged_one(agent, target, near, tmp_path):
    (tmp_path / "adapt.json").write_text(json.dumps({"run": "/else", "boss": "iudex", "minutes": 3, "rounds": []}))
    with pytest.raises(MisuseError, match="adapts /else"):
        adaptation(agent, target, tmp_path).run()
    (tmp_path / "adapt.json").write_text("{")
    with pytest.raises(RunError, match=r"adapt\.json cannot be read"):
        adaptation(agent, target, tmp_path).run()


@pytest.mark.slow
def test_a_target_that_fails_is_told(agent, target, tmp_path, monkeypatch):
    begun = RehearsalEngine.reset

    def reset(self, *given):
        begun(self, *given)
        self._process.kill()
        self._process.wait(60)

    monkeypatch.setattr(RehearsalEngine, "reset", reset)
    with pytest.raises(GameGone, match="has ended"):
        adaptation(agent, target, tmp_path / "adapted").run()
    assert not (tmp_path / "adapted" / "recordings").exists()


def played(engine, fighter, **given):
    kept = []
    try:
        play(engine, fighter, keep=kept.append, **given)
    finally:
        engine.close()
    return kept[-1]


@pytest.mark.slow
def test_play_records_every_step_and_counts_wins(target):
    recording = played(RehearsalEngine(load_fight("iudex"), target, changes=True), ScriptedFighter("random"), steps=900)
    for low, high in recording.bounds():
        assert (np.diff(recording.fights["step"][low:high]) == 1).all()
    assert steps_of([recording]) == 900
    assert wins([recording])[0] == 0
    assert 1 <= wins([recording])[1] <= len(recording.bounds())


def test_play_of_whole_fights(near, monkeypatch):
    recording = played(near(load_fight("iudex"), 1), ScriptedFighter("random"), fights=3)
    assert len(recording.bounds()) == wins([recording])[1] == 3
    monkeypatch.setattr("soulsai.adapting.play.MOST_STEPS", 20)  # fights that take too long are lost
    recording = played(near(load_fight("iudex"), 1), ScriptedFighter("idle"), fights=2)
    assert wins([recording]) == (0, 2)
    assert steps_of([recording]) <= 40 < MOST_STEPS


def test_play_keeps_now_and_then(near, monkeypatch):
    monkeypatch.setattr("soulsai.adapting.play.KEEP_EVERY_S", 0.0)
    kept = []
    play(near(load_fight("iudex"), 1), ScriptedFighter("random"), keep=kept.append, fights=3)
    assert [len(each.bounds()) for each in kept] == [1, 2, 3]


def test_a_win_rate_in_words():
    assert str(WinRate(97, 100)) == "97.0% (91.5% to 99.0%)"
