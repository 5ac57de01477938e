"""Learning from recordings: what a decision of a recording looks like, and who learns from it."""

import json
import shutil

import gymnasium
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import soulsgym  # noqa: F401 (registers the ids)
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.checkpoints.store import CheckpointStore
from soulsai.cli import main as cli
from soulsai.cli.watch import record_fights
from soulsai.config import config_from_toml, load_preset, with_settings
from soulsai.errors import ConfigError, RunError
from soulsai.evaluation import ScriptedFighter
from soulsai.evaluation.thoughts import about_boss, write_fight_file
from soulsai.experience import Schema, Sizes
from soulsai.learning.demos import load_demos
from soulsai.learning.loading import sizes_of
from soulsai.learning.training import Training
from soulsai.learning.wiring import build_world
from soulsai.replay.n_step import TRANSITION
from soulsai.runs.fight_files import config_of
from soulsai.runs.run import Run
from soulsai.runtime import Fleet
from soulsai.runtime.runs import begin_run
from soulsgym.actions import ACTION_NAMES, NOTHING
from soulsgym.errors import RecordingError

FIGHTS = 3
SMALL = ["network.hidden=[16]", "run.threads=1", "fight.number=2", "run.final_fights=0", "run.evaluate_every_steps=0"]


class Silent:
    def say(self, text):
        pass

    def show(self, progress):
        pass


def made_recording(env_id, **keywords):
    env = gymnasium.make(env_id, disable_env_checker=True, **keywords).unwrapped
    recording = record_fights(env, ScriptedFighter("duellist", boss=env.settings.boss), FIGHTS, seed=5)
    env.close()
    return recording


@pytest.fixture(scope="module")
def recording():
    return made_recording("SoulsGymIudexSimDemo-v0")


@pytest.fixture(scope="module")
def file(recording, tmp_path_factory):
    file = tmp_path_factory.mktemp("recordings") / "duellist.npz"
    write_fight_file(file, recording, {"engine": "sim", **about_boss("iudex", "standard")})
    return file


def config_with(file, *settings, preset="clipped-dqn"):
    return with_settings(load_preset(preset), [*SMALL, f"demos.files={json.dumps([str(file)])}", *settings])


@pytest.mark.parametrize("decisions", [True, False])
def test_decisions_are_those_that_an_agent_would_have_made(file, recording, decisions):
    """Playing the same actions in the same fights by the learner's own world gives the same rows."""
    config = config_with(file, f"fight.decisions={str(decisions).lower()}", "fight.number=1",
                         "starts.random_pose=false", "starts.mid_fight=0")  # fmt: skip
    demos = load_demos(config)
    world = build_world(config)
    rows = 0
    for number, ((low, high), seed) in enumerate(zip(recording.bounds(), recording.simulation.seeds, strict=True)):
        world.batch.begin(seeds=np.array([seed], np.uint64))
        for row in np.flatnonzero(demos.fights == number):
            assert np.array_equal(world.observations[0], demos.observations[row])
            assert np.array_equal(world.masks[0], demos.masks[row])
            step = world.step(demos.actions[row : row + 1])
            assert step.rewards[0] == demos.rewards[row]
            assert step.steps[0] == demos.steps[row]
            assert step.terminated[0] == demos.terminated[row]
            after = step.final_observations[0] if step.ended[0] else world.observations[0]
            assert np.array_equal(after, demos.next_observations[row])
            rows += 1
        assert demos.terminated[row]
        assert demos.steps[demos.fights == number].sum() == high - low - 1
    world.close()
    assert rows == len(demos)
    assert demos.actions.max() < len(ACTION_NAMES)


@pytest.mark.parametrize("n_step", [1, 3])
def test_rows_for_a_replay_know_what_was_open(file, n_step):
    demos = load_demos(config_with(file))
    schema = Schema.of(TRANSITION, Sizes(demos.observations.shape[1], demos.masks.shape[1], 1, 1))
    rows = demos.transitions(n_step, 0.9, schema)
    assert len(rows["actions"]) == len(demos)
    assert np.array_equal(rows["actions"], demos.actions)  # in their order
    assert np.array_equal(rows["observations"], demos.observations)
    assert np.array_equal(rows["open"], demos.masks)
    ends = np.flatnonzero(demos.terminated)
    assert (rows["discounts"][ends] == 0.0).all()
    if n_step == 3:
        first = demos.rewards[0] + 0.9 ** demos.steps[0] * (demos.rewards[1] + 0.9 ** demos.steps[1] * demos.rewards[2])
        assert rows["rewards"][0] == pytest.approx(first, rel=1e-5)


def test_a_press_without_effect_is_nothing(recording, file, tmp_path):
    config = config_with(file, "fight.decisions=false")
    demos, fights = load_demos(config), recording.fights[:-1]
    pressed = recording.actions[1:]
    low, high = recording.bounds()[0]
    closed = np.flatnonzero(fights["action_mask"][np.arange(low, high - 1), pressed[low : high - 1]] == 0)
    assert (demos.actions[closed] == NOTHING).all()


def test_a_recording_that_breaks_off_is_cut_not_lost(recording, tmp_path):
    cut = type(recording)(recording.fights[:40], recording.actions[:40], recording.episodes[:40])
    write_fight_file(tmp_path / "cut.npz", cut, {})
    demos = load_demos(config_with(tmp_path / "cut.npz"))
    assert demos.truncated[-1]
    assert not demos.terminated.any()


def test_what_does_not_suit_is_one_sentence(file, recording, tmp_path):
    write_fight_file(tmp_path / "vordt.npz", made_recording("SoulsGymVordtSimDemo-v0"), about_boss("vordt", "standard"))
    write_fight_file(tmp_path / "phase.npz", made_recording("SoulsGymIudexSim-v0"), about_boss("iudex", "standard"))
    told = type(recording)(recording.fights.copy(), recording.actions, recording.episodes)
    told.fights["boss_max_hp"] += 7
    write_fight_file(tmp_path / "game.npz", told, {"engine": "game"})
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "damaged.npz").write_bytes(file.read_bytes()[:-300])
    for name, sentence in {
        "vordt.npz": "is of vordt, and this run trains against iudex",
        "phase.npz": "is of phase 1 alone, and this run trains on the full fight",
        "game.npz": "is of another boss: his health is",
        "empty.npz": "is empty",
        "damaged.npz": "is damaged or cut short",
        "none.npz": "cannot be read",
    }.items():
        with pytest.raises(RecordingError, match=sentence) as caught:
            load_demos(config_with(tmp_path / name))
        assert "\n" not in str(caught.value)
        with pytest.raises((RecordingError, RunError, ConfigError), match=name):  # as given, before a run is there
            begin_run("clipped-dqn", [f"demos.files={json.dumps([str(tmp_path / name)])}"], tmp_path / "run")
        assert not (tmp_path / "run").exists()
    with pytest.raises(RecordingError, match=r"plays 'roll \w+', which is not among the run's actions"):
        load_demos(config_with(file, 'actions.names=["light attack", "walk F", "nothing"]'))
    with pytest.raises(ConfigError, match="are of fights"):
        load_demos(with_settings(load_preset("cartpole-dqn"), [f"demos.files={json.dumps([str(file)])}"]))


def learner_of(config):
    return algorithm_of(config).learner(config, Sizes(*sizes_of(config), 1, 1), torch.device("cpu"))


def test_half_of_a_batch_at_first_and_none_at_last(file):
    config = config_with(file, "q.batch=64", "demos.share_steps=1000")
    learner = learner_of(config)
    learner.teach(load_demos(config))
    for steps, shown in ((0, 32), (500, 16), (1000, 0), (5000, 0)):
        learner.counters.steps = steps
        assert learner._mix_in_demos() == shown
        assert learner.metrics()["demo_share"] == shown / 64


def test_the_margin_makes_shown_actions_the_best(file):
    """Only demonstrations, and no time for values: what was shown is soon what would be played."""
    config = config_with(file, "demos.share=1.0", "demos.final_share=1.0", "demos.margin=0.5", "q.warmup_steps=0")
    demos = load_demos(config)
    shares = []
    for weight in (0.0, 1.0):
        config = config_with(file, "demos.share=1.0", "demos.final_share=1.0", "demos.margin=0.5",
                             f"demos.margin_weight={weight}", "q.learning_rate=3e-3")  # fmt: skip
        learner = learner_of(config)
        learner.teach(demos)
        learner.sampler.add(learner.store.add({name: learner._demos[name][:256] for name in TRANSITION}))
        for _ in range(80):
            learner.learn_once()
        chosen = algorithm_of(config).policy(learner.networks).choose(demos.observations, demos.masks)
        shares.append(float((chosen == demos.actions).mean()))
    assert shares[1] > 0.6
    assert shares[1] > shares[0] + 0.2


@pytest.mark.parametrize("preset", ["clipped-dqn", "rainbow", "dqn", "recipe-soulsai"])
def test_every_q_learner_learns_from_them(preset, file, tmp_path):
    few = ["run.steps=600", "q.warmup_steps=200", "q.batch=32", "replay.capacity=2000"]
    fleet = Fleet.begin(preset, tmp_path / "run", [*SMALL, *few, f"demos.files={json.dumps([str(file)])}"], check=False)
    assert fleet.train().finished
    assert fleet.run.metrics()[-1]["demo_share"] > 0.49


def test_a_run_keeps_its_recordings_and_goes_on_exactly(file, tmp_path):
    own = tmp_path / "mine.npz"
    shutil.copy(file, own)
    few = [*SMALL, "run.steps=900", "q.warmup_steps=200", "q.batch=32", f"demos.files={json.dumps([str(own)])}"]
    weights = []
    for name, stop_at in (("whole", None), ("stopped", 450)):
        run, config = begin_run("clipped-dqn", few, tmp_path / name)
        own.unlink() if stop_at else None
        training = Training(run, config, view=Silent(), stop=lambda: False)
        training.begin()
        if stop_at:
            training._stop = lambda training=training, most=stop_at: training.loop.counters.steps >= most
            training.go()
            training.close("stopped")
            again = Run.open(run.folder)
            training = Training(again, config_of(again), view=Silent(), stop=lambda: False)
            training.resume()
        training.go()
        training.close("finished")
        weights.append(CheckpointStore(run.checkpoints).load().parts["network"])
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


@pytest.mark.parametrize("preset", ["iudex", "sac", "impala"])
def test_others_say_that_they_cannot(preset, file):
    with pytest.raises(ConfigError, match="learns from no demonstrations; use 'clone' or 'q', or leave out --demos"):
        learner_of(load_preset(preset)).teach(load_demos(config_with(file)))


def souls(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_the_command_takes_what_a_shell_makes_of_a_star(file, tmp_path):
    files = [tmp_path / f"{name}.npz" for name in "abc"]
    for each in files:
        shutil.copy(file, each)
    few = ["run.steps=512", "clone.batch=64", *SMALL]
    settings = [word for each in few for word in ("--set", each)]
    result = souls("train", "clone", "--demos", *files, *settings, "--plain", "--run", tmp_path / "run")
    assert result.exit_code == 0, result.exception or result.output
    run = Run.open(tmp_path / "run")
    assert [path.name for path in sorted(run.demos.iterdir())] == ["1-a.npz", "2-b.npz", "3-c.npz"]
    assert config_from_toml(run.config_toml, "").demos.files == tuple(map(str, files))
    assert souls("train", "smoke", "extra").exit_code == 2


def test_a_clone_does_what_was_shown(file, tmp_path):
    few = ["run.steps=30000", "clone.batch=128", "clone.held_out=0.34", "run.final_fights=2", "fight.step_limit=100"]
    settings = [*SMALL, *few, f"demos.files={json.dumps([str(file)])}"]
    fleet = Fleet.begin("clone", tmp_path / "clone", settings, check=False)
    outcome = fleet.train()
    assert outcome.worst.fights == 2  # honest: played, on unseen seeds
    last = fleet.run.metrics()[-1]
    assert last["clone/agreement"] > 0.7
    assert 0.5 < last["clone/held_out"] <= 1.0


def test_a_clone_needs_recordings_and_no_workers(file, tmp_path):
    with pytest.raises(ConfigError, match="learns from recordings alone; give some: --demos"):
        Fleet.begin("clone", tmp_path / "a", SMALL, check=False).train()
    assert not (tmp_path / "a" / "metrics.sqlite").exists()  # refused before anything began
    fleet = Fleet.begin("clone", tmp_path / "b", [*SMALL, f"demos.files={json.dumps([str(file)])}"], check=False)
    with pytest.raises(ConfigError, match="plays no fights to share out"):
        fleet.train(workers=1)
    with pytest.raises(RecordingError, match="cannot be read"):
        Fleet.begin("clone", tmp_path / "c", [*SMALL, 'demos.files=["nowhere.npz"]'])
    assert not (tmp_path / "c").exists()
