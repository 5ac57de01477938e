"""`souls train` as a user runs it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from soulsai.checkpoints.store import Checkpoint, CheckpointStore
from soulsai.cli import train as command
from soulsai.cli.main import app
from soulsai.cli.train import stop_on_signals
from soulsai.config import config_from_toml
from soulsai.dashboard.scenes import scene_of
from soulsai.errors import ConfigError, RunError, RunFinished
from soulsai.evaluation.evaluation import Evaluation
from soulsai.learning.loading import load_policy
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsgym.errors import SoulsError

LIMIT_S = 240.0
TINY = ["run.steps=600", "run.evaluate_every_steps=0", "run.final_fights=2", "fight.number=4", "ppo.minibatch=32",
        "network.hidden=[8]", "run.threads=1"]  # fmt: skip


def train(*arguments):
    """Run it in this process; the result, with the error that would become a sentence."""
    return CliRunner().invoke(app, ["train", *arguments])


def sets(*settings):
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folder of a run that was trained to its end, and what was printed; not to be changed."""
    folder = tmp_path_factory.mktemp("trained") / "mine"
    result = train("smoke", "--accept-all", "--run", str(folder), *sets(*TINY))
    assert result.exit_code == 0, result.output
    return folder, result.output


@pytest.fixture
def finished(first, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(first[0], tmp_path / "mine")


def test_a_run_from_start_to_report(first):
    folder, output = first
    run = Run.open(folder)
    status = run.status()
    assert status.state == "finished"
    (final,) = (Evaluation.from_json(text) for name, text in run.evaluations() if name.endswith("-final"))
    assert (status.win_rate, status.win_rate_low, status.win_rate_high) == (final.win_rate, *final.interval)
    assert run.preset == "smoke"
    assert f"report: {run.report_file}" in output.replace("\n", "")
    assert run.report_file.exists()
    assert "of 2 fights" in output
    commands = ", ".join(f"souls {verb} {folder}" for verb in ("watch", "eval", "open"))
    assert f"next: {commands}" in output.replace("\n", "")
    assert config_from_toml(run.config_toml, "").run.steps == 600


def test_an_existing_folder_is_refused(finished):
    folder = finished
    before = (folder / "metrics.jsonl").read_bytes()
    result = train("smoke", "--run", str(folder))
    assert isinstance(result.exception, RunError)
    assert str(result.exception) == f"{folder} exists; continue it with --resume {folder}, or choose another folder"
    assert (folder / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("setting", ["ppo.gamma=0.5", "fight.number=8", "run.seed=7"])
def test_resuming_with_other_settings_is_refused(finished, setting):
    folder = finished
    before = (folder / "config.toml").read_text()
    result = train("--resume", "--run", str(folder), "--set", setting)
    assert isinstance(result.exception, ConfigError)
    assert "a resumed run keeps its settings" in str(result.exception)
    assert setting.split("=")[0] in str(result.exception)
    assert (folder / "config.toml").read_text() == before


def test_resuming_with_more_steps_goes_on(finished):
    folder = finished
    *_, before = CheckpointStore(folder / "checkpoints").numbers()
    result = train("--resume", "--run", str(folder), "--set", "run.steps=900")
    assert result.exit_code == 0, result.output
    assert f"resuming from step {before:,} of 900" in result.output
    assert CheckpointStore(folder / "checkpoints").numbers()[-1] >= 900
    assert config_from_toml(Run.open(folder).config_toml, "").run.steps == 900
    assert len(Run.open(folder).evaluations()) == 2


def test_a_run_to_resume_is_named_once(tmp_path):
    result = train("mine", "--resume", "--run", str(tmp_path))
    assert result.exit_code == 2
    assert "name the run once" in result.output
    assert "there is no such run" in str(train("smoke", "--resume").exception)


def test_a_finished_run_says_so_and_how_to_train_it_longer(finished):
    before = (finished / "status.json").read_text()
    result = train("--resume", str(finished))
    step = json.loads(before)["step"]
    assert isinstance(result.exception, RunFinished)
    assert result.exception.exit_code == 0  # a service that starts it again and again has not failed
    assert str(result.exception) == (
        f"{finished} is finished at step {step:,}; train it longer with --set run.steps={2 * step}"
    )
    assert (finished / "status.json").read_text() == before


def test_a_run_that_failed_at_once_is_not_the_one_to_resume(tmp_path, monkeypatch, finished):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    finished.rename(tmp_path / "runs" / "old")
    old, refused = Run(tmp_path / "runs" / "old"), tmp_path / "runs" / "refused"
    old.write_status(replace(old.status(), state="stopped"))
    Run.create(refused, old.config_toml, preset="smoke", command=[]).write_status(Status("failed", 0, 600))
    result = train("--resume", "--set", "run.steps=601")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("resuming runs/old")


def test_more_steps_keep_the_schedule_of_the_run(finished):
    result = train("--resume", str(finished), "--set", "run.steps=900")
    assert result.exit_code == 0, result.output
    assert "keep their schedule of 600 steps and then their final values" in result.output
    run = config_from_toml(Run.open(finished).config_toml, "").run
    assert (run.steps, run.schedule_steps) == (900, 600)
    assert [run.schedule_progress(step) for step in (0, 300, 600, 900)] == [0.0, 0.5, 1.0, 1.0]
    rates = [row["learning_rate"] for row in Run.open(finished).metrics() if "learning_rate" in row]
    assert rates == sorted(rates, reverse=True)


def test_nothing_to_resume(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = train("--resume")
    assert str(result.exception) == "runs: there is no unfinished run here; name one, or start one: souls train"


def test_the_newest_unfinished_run_is_resumed(tmp_path, monkeypatch, finished):
    folder = finished
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    folder.rename(tmp_path / "runs" / "old")
    status = tmp_path / "runs" / "old" / "status.json"
    status.write_text(status.read_text().replace('"finished"', '"stopped"'))
    result = train("--resume", "--set", "run.steps=601")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("resuming runs/old")


def test_a_config_file(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('extends = "smoke"\n[run]\nsteps = 200\nevaluate_every_steps = 0\nfinal_fights = 0\n')
    result = train(str(file), "--accept-all", "--run", str(tmp_path / "run"), *sets("run.threads=1"))
    assert result.exit_code == 0, result.output
    assert Run.open(tmp_path / "run").preset == "own"
    assert Run.open(tmp_path / "run").evaluations() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["iudx"], "iudex"),
        (["smoke", "--set", "ppo.gama=0.9"], "gamma"),
        (["nothere.toml"], "nothere.toml"),
    ],
)
def test_mistakes_leave_no_folder(tmp_path, arguments, message):
    result = train(*arguments, "--run", str(tmp_path / "run"))
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("fight.boss=vord", "fight.boss: boss 'vord' is not known, did you mean 'vordt'?"),
        ("fight.boss=nowhere/my.toml", "my.toml: file = 'my.toml': cannot be read: No such file"),
        ('fight.variants=["hrad"]', 'unknown variant "hrad"; did you mean "hard"?'),
        (
            'fight.variants=["standard", "."]',
            'unknown variant "."; there are standard, hard, drawn:32 and paths of files',
        ),
        ('fight.variants=["./"]', "Is a directory"),
        ('fight.variants=["bad.toml"]', "body.hpp = 3: is not a known key"),
        ("fight.phase=3", "phase 3"),
        ("reward.weights.dogde=1", "dogde"),
        ("run.device=cuda", "torch sees no CUDA device"),
    ],
)
def test_a_run_that_is_refused_is_no_run_to_resume(tmp_path, monkeypatch, setting, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (tmp_path / "bad.toml").write_text("[body]\nhpp = 3\n")
    result = train("smoke", "--accept-all", *sets(*TINY, setting))
    assert isinstance(result.exception, SoulsError), result.output
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert list(tmp_path.glob("runs/*")) == []
    assert "no unfinished run" in str(train("--resume").exception)


def test_an_own_boss_goes_on_when_its_files_are_gone(tmp_path, sentinel, monkeypatch):
    monkeypatch.chdir(sentinel.parent)
    tough = sentinel.parent / "tough.toml"
    tough.write_text('[body]\npoise = 200\nsource = "guess"\n')
    folder = tmp_path / "mine"
    own = ["fight.boss=sentinel.toml", 'fight.variants=["tough.toml", "hard"]', "run.evaluate_every_steps=300",
           "run.evaluation_fights=2", "fight.step_limit=60"]  # fmt: skip
    result = train("smoke", "--accept-all", "--run", str(folder), *sets(*TINY, *own))
    assert result.exit_code == 0, result.exception
    fight = config_from_toml(Run.open(folder).config_toml, "").fight
    assert (fight.boss, fight.variants) == (str(sentinel), (str(tough), "hard"))
    tough.write_text("not TOML")
    sentinel.unlink()
    result = train("--resume", "--run", str(folder), "--set", "run.steps=900")
    assert result.exit_code == 0, result.exception
    for file in (sentinel, tough):
        assert f"{file} is gone or has changed since the run began; the run keeps to its copy in {folder / 'data'}" in (
            result.output.replace("\n", "")
        )
    assert "sentinel.toml" in (folder / "report.html").read_text()
    recordings = sorted((folder / "recordings").iterdir())
    scene = scene_of(recordings[0], 1)
    assert scene["boss"] == "Sentinel"
    assert str(tmp_path) not in json.dumps(scene)
    assert load_policy(Run.open(folder))[0].fight.boss == str(folder / "data" / "boss" / "sentinel.toml")


def test_a_checkpoint_of_another_version_is_a_sentence(finished, monkeypatch):
    original = Checkpoint.arrays

    def arrays(saved, part):
        found = original(saved, part)
        return {f"0.{key}": value for key, value in found.items()} if part == "world.0" else found

    monkeypatch.setattr(Checkpoint, "arrays", arrays)
    result = train("--resume", "--run", str(finished), "--set", "run.steps=900")
    assert str(result.exception).startswith("the checkpoint holds fights of another version of soulsgym; continue with")


def test_the_first_interrupt_asks_and_the_second_ends(monkeypatch):
    news = []
    with stop_on_signals(news.append) as stop:
        assert not stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        assert "stopping after this step" in news[0]
        monkeypatch.setattr(command, "TOGETHER_S", 600.0)
        os.kill(os.getpid(), signal.SIGTERM)  # sent with the first: the same wish
        assert len(news) == 1
        monkeypatch.setattr(command, "TOGETHER_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_before_anything_is_learned_leaves_no_folder(tmp_path, finished, monkeypatch):
    """Otherwise --resume without a name would continue it instead of the run before."""

    def interrupt(self, *arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr("soulsai.runtime.Fleet.train", interrupt)
    train("smoke", "--run", str(tmp_path / "new"), *sets(*TINY))
    assert not (tmp_path / "new").exists()
    train("--resume", str(finished), "--set", "run.steps=900")
    assert finished.exists()


@pytest.mark.slow
@pytest.mark.faults
def test_interrupt_saves_and_says_how_to_go_on(tmp_path, request):
    folder = tmp_path / "mine"
    endless = ["run.steps=100000000", "run.checkpoint_every_s=1000", *TINY[1:]]
    process = subprocess.Popen(
        [sys.executable, "-c", "from soulsai.cli.main import main; main()", "train", "smoke", "--accept-all", "--plain",
         "--run", str(folder), *sets(*endless)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    request.addfinalizer(process.kill)
    deadline_s = time.monotonic() + LIMIT_S
    metrics = folder / "metrics.jsonl"
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, f"no row of metrics within {LIMIT_S:.0f} s"
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, errors
    assert "Traceback" not in output + errors
    assert f"stopped and saved; continue with: souls train --resume {folder}" in output
    assert Run.open(folder).status().state == "stopped"

    (number,) = CheckpointStore(folder / "checkpoints").numbers()
    result = train("--resume", "--run", str(folder), *sets(f"run.steps={number + 300}"))
    assert result.exit_code == 0, result.output
    assert re.search(rf"resuming from step {number:,} of", result.output)
    assert Run.open(folder).status().state == "finished"
