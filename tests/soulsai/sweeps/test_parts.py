"""The parts of a sweep: following a run, locks, honest figures, storages, the report."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from soulsai.config import load_preset, with_settings
from soulsai.errors import ConfigError, RunError
from soulsai.evaluation.statistics import wilson
from soulsai.runs.fight_files import needed_parts
from soulsai.runs.metrics import MetricsWriter
from soulsai.sweeps.report import against_preset, verdict, write_report
from soulsai.sweeps.results import better_by, rate_and_interval, results_of, to_confirm
from soulsai.sweeps.space import check_fit, space_of, value_of
from soulsai.sweeps.storage import JournalLock, open_storage, storage_in_reach, wait_for_lock
from soulsai.sweeps.study import FAILED, RUNNING, WAITING, About, SweepStudy, make_pruner, open_about
from soulsai.sweeps.trial import Training, can_go_on, final_score
from soulsgym.errors import MisuseError

SPACE = """
[sweep]
trials = 20
startup = 2
[sweep.fixed]
run.steps = 1000
run.evaluate_every_steps = 100
[ppo]
learning_rate = {low = 1e-4, high = 1e-2, log = true}
epochs = {low = 1, high = 8}
[network]
activation = {choices = ["relu", "<b>tanh"]}
""".replace("<b>", "")


@pytest.fixture(autouse=True, scope="module")
def quick_disk():
    """No test here pulls the plug, so that none waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture
def about():
    return about_space()


def about_space():
    space = space_of(SPACE, "space")
    config = with_settings(load_preset("smoke"), space.fixed)
    return About("mine", "smoke", config, space, "win_rate/evaluation", ())


@pytest.fixture
def study(tmp_path, about):
    found = SweepStudy(tmp_path / "mine", about)
    yield found
    found.close()


def test_each_evaluation_is_read_once(tmp_path):
    training = Training(tmp_path, tmp_path / "log", "win_rate/evaluation", 1)
    assert training.new_scores() == []
    writer = MetricsWriter(tmp_path)
    writer.write(5, 0.0, {"loss/q": 1.0})
    writer.write(7, 0.0, {"win_rate/evaluation": 0.5})
    position = writer.position()
    writer.write(9, 0.0, {"win_rate/evaluation": float("nan")})
    writer.write(10, 0.0, {"win_rate/evaluation": 1.0})
    assert training.new_scores() == [(7, 0.5), (10, 1.0)]
    assert training.new_scores() == []
    writer.cut(position)
    writer.write(8, 0.0, {"win_rate/evaluation": 0.25})
    assert training.new_scores() == [(8, 0.25)]
    writer.close()


def test_evaluations_at_slightly_different_steps_are_compared_as_one(tmp_path):
    training = Training(tmp_path, tmp_path / "log", "win_rate/evaluation", 100)
    rows = [{"step": step, "win_rate/evaluation": step / 1000} for step in (7, 107, 112, 299, 305)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert training.new_scores() == [(100, 0.107), (200, 0.299), (300, 0.305)]
    assert training.score("last") == 0.305
    assert training.score("mean") == pytest.approx((0.107 + 0.299 + 0.305) / 3)


def test_the_evaluation_after_training_is_the_score(tmp_path):
    training = Training(tmp_path, tmp_path / "log", "return/evaluation", 100)
    (tmp_path / "metrics.jsonl").write_text('{"step":100,"return/evaluation":3}\n')
    folder = tmp_path / "evaluations"
    folder.mkdir()
    (folder / "20260101-000000-final.json").write_text('{"returns": [1, 3]}')
    (folder / "20260101-000001-eval.json").write_text('{"returns": [100]}')
    assert training.score("last") == final_score(tmp_path) == 2.0
    assert training.score("mean") == 3.0


def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path):
    journal = tmp_path / "study.journal"
    journal.write_bytes(b'{"a":1}\n{"b"')
    lock = JournalLock(journal)
    assert lock.acquire()
    assert journal.read_bytes() == b'{"a":1}\n'
    with (
        pytest.raises(RunError, match="another process has held this lock"),
        wait_for_lock(tmp_path / "study.journal.lock", 0.1),
    ):
        pass
    lock.release()
    with wait_for_lock(tmp_path / "study.journal.lock", 0.1):
        pass


def test_a_journal_with_half_a_line_goes_on(study, about, tmp_path):
    trial = study.next_trial(5)
    study.finish(trial, 0.5)
    with (tmp_path / "mine" / "study.journal").open("ab") as stream:
        stream.write(b'{"op_code": 5, "stu')
    other = SweepStudy(tmp_path / "mine", about)
    second = other.next_trial(5)
    assert second.number == 1
    other.finish(second, 0.6)
    other.close()
    assert [each.value for each in study.study.trials] == [0.5, 0.6]


def test_no_more_trials_than_asked_for(study):
    first = study.next_trial(2)
    second = study.next_trial(2)
    assert study.next_trial(2) is None
    study.finish(first, 0.1)
    assert study.next_trial(2) is None
    study.prune(second, refused="they do not go together")
    assert study.next_trial(2).number == 2


def test_the_preset_is_the_first_trial(study):
    settings = study.settings(study.next_trial(5))
    assert settings == {"ppo.learning_rate": 2e-3, "ppo.epochs": 4, "network.activation": "relu"}


def test_processes_draw_different_settings(study, about, tmp_path):
    study.next_trial(9)  # the preset
    other = SweepStudy(tmp_path / "mine", about)
    assert study.settings(study.next_trial(9)) != other.settings(other.next_trial(9))
    other.close()


def test_a_trial_given_back_goes_on_with_its_settings_and_folder(study):
    study.next_trial(9)
    trial = study.next_trial(9)
    trial.set_user_attr("folder", "trial-0001")
    study.give_back(trial)
    again = study.next_trial(9)
    assert again.number == 2
    assert study.settings(again) == study.settings(trial)
    assert (again.user_attrs["folder"], again.user_attrs["first"]) == ("trial-0001", 1)
    assert study.count() == {"replaced": 1, RUNNING: 2}


@pytest.mark.faults
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_the_trials_of_a_dead_process_are_taken_but_not_for_ever(study, about, tmp_path):
    alive = study.next_trial(9)
    for number in (1, 2, 3):
        if (child := os.fork()) == 0:
            try:
                SweepStudy(tmp_path / "mine", about).next_trial(9)
            finally:
                os._exit(9)
        assert os.waitpid(child, 0)[1]
        assert study.take_from_dead() == [number]
    assert study.study.trials[alive.number].state.name == "RUNNING"
    assert study.study.trials[3].user_attrs["problem"] == "its process died 3 times"
    assert len({study.study.trials[i].params["ppo.learning_rate"] for i in (1, 2, 3)}) == 1
    assert (study.count()[WAITING], study.count()[FAILED]) == (0, 1)


def test_a_silent_machine_is_given_up_only_after_a_while(tmp_path, about, monkeypatch):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    here, there = SweepStudy(tmp_path / "here", about, url), SweepStudy(tmp_path / "there", about, url)
    trial = there.next_trial(9)
    there.beat(trial)
    assert here.take_from_dead() == []
    monkeypatch.setattr("soulsai.sweeps.study.SILENT_S", -1.0)
    there.beat(trial)
    assert here.take_from_dead() == []  # it has beaten since
    assert here.take_from_dead() == [0]
    with pytest.raises((RuntimeError, ValueError)):
        trial.report(0.5, 100)  # whoever was thought dead learns of it
    for one in (here, there):
        one.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "--storage nonsense: is not the address of a database"),
        ("sqlite:////no/such/folder/x.db", "--storage sqlite:////no/such/folder/x.db: cannot be used"),
        ("postgresql://me:secret@localhost:1/x", "--storage postgresql://***@localhost:1/x"),
    ],
)
def test_a_database_that_cannot_be_used_is_a_sentence(tmp_path, url, sentence):
    with pytest.raises((ConfigError, RunError), match=re.escape(sentence)) as caught:
        open_storage(tmp_path, url)
    assert "secret" not in str(caught.value)


def test_optuna_that_is_not_installed_is_a_sentence():
    program = "import sys; sys.modules['optuna'] = None; from soulsai.cli.main import main; main()"
    command = [sys.executable, "-c", program, "sweep", "smoke", "--space", "x.toml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert done.stderr.strip() == "souls: optuna is not installed; run: pip install 'souls-arena[sweep]'"


def test_pruners(about):
    kinds = {name: type(make_pruner(structs.replace(about.space.plan, pruner=name), about.config)).__name__
             for name in ("median", "halving", "none")}  # fmt: skip
    assert kinds == {"median": "MedianPruner", "halving": "SuccessiveHalvingPruner", "none": "NopPruner"}


def test_intervals_widen_with_the_number_that_hold_together():
    kept = {"fights": 1000, "won": "1" * 900 + "0" * 100}
    one, three = rate_and_interval(kept, 1), rate_and_interval(kept, 3)
    assert one == (0.9, *wilson(900, 1000))
    assert three == (0.9, *wilson(900, 1000, 1 - 0.05 / 3))
    assert three[2] - three[1] > one[2] - one[1]
    mean, low, high = rate_and_interval({"fights": 4, "returns": [1.0, 2.0, 3.0, 4.0]}, 1)
    assert mean == 2.5
    assert high - mean == pytest.approx(1.96 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-3)
    assert low < mean


def test_all_intervals_together_hold_as_often_as_they_say():
    """The best of three equal policies is within its interval in 95 % of sweeps or more; unwidened ones are not."""
    random = np.random.default_rng(0)
    wins = random.binomial(300, 0.8, size=(2000, 3)).max(axis=1)
    within = {}
    for together in (1, 3):
        bounds = {w: wilson(int(w), 300, 1 - 0.05 / together) for w in np.unique(wins)}
        within[together] = np.mean([bounds[w][0] <= 0.8 <= bounds[w][1] for w in wins])
    assert within[3] >= 0.945
    assert within[1] < within[3]


def test_better_by_pairs():
    best, other = {"won": "1111110111" * 50}, {"won": "1111000111" * 50}
    middle, low, high = better_by(best, other, 1)
    assert middle == pytest.approx(0.2)
    assert 0.1 < low < middle < high < 0.3
    middle, low, high = better_by({"returns": [5.0, 6.0]}, {"returns": [1.0, 2.0]}, 2)
    assert middle == 4.0
    assert low < middle < high


def test_only_a_folder_with_a_checkpoint_goes_on(tmp_path):
    assert not can_go_on(tmp_path / "none")
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.toml").write_text("[run]")
    (folder / "versions.json").write_text("{}")
    assert not can_go_on(folder)
    (folder / "checkpoints" / "000001").mkdir()
    assert can_go_on(folder)


@pytest.fixture(scope="module")
def filled_folder(tmp_path_factory):
    """The folder of a study with trials of all kinds."""
    study = SweepStudy(tmp_path_factory.mktemp("filled") / "mine", about_space())
    for number in range(12):
        trial = study.next_trial(99)
        for step in range(100, 1001, 100):
            trial.report(min(1.0, step / 1000 * (0.5 + number / 40)), step)
            if number % 4 == 3 and step == 400:
                break
        if number % 4 == 3:
            study.prune(trial)
        elif number == 5:
            study.fail(trial, "it <b>broke</b>")
        else:
            study.finish(trial, 0.5 + number / 40)
    study.close()
    return study.folder


@pytest.fixture
def filled(filled_folder, tmp_path, about):
    shutil.copytree(filled_folder, tmp_path / "mine")
    found = SweepStudy(tmp_path / "mine", about)
    yield found
    found.close()


def test_a_report_before_anything_was_found(study, about, tmp_path):
    results = results_of(study.study, about, tmp_path / "mine")
    write_report(results)
    page = (tmp_path / "mine" / "report.html").read_text()
    assert "No trial was trained to its end yet." in page
    assert "no data yet" in page


def test_a_report_speaks_of_fresh_fights_or_says_that_there_were_none(filled, about, tmp_path):
    study = filled
    results = results_of(study.study, about, tmp_path / "mine")
    assert verdict(results).startswith(
        "Trial 10 is the best so far with 75.0 % in the search; it was not measured again"
    )
    assert [each.number for each in to_confirm(results)] == [10, 9, 8, 0]
    study.study.set_user_attr("confirmed/10", {"fights": 100, "won": "1" * 60 + "0" * 40})
    study.study.set_user_attr("confirmed/9", {"fights": 100, "won": "1" * 70 + "0" * 30})
    study.study.set_user_attr("confirmed/0", {"fights": 100, "won": "1" * 30 + "0" * 70})
    results = results_of(study.study, about, tmp_path / "mine")
    assert results.best.number == 9  # not that of the search
    low, high = wilson(70, 100, 1 - 0.05 / 3)
    assert f"Trial 9 wins 70.0 % (interval {100 * low:.1f} to {100 * high:.1f} %) of 100 fresh fights." == verdict(
        results
    )
    assert "Better than the settings of smoke itself by +40.0 points" in against_preset(results)
    assert set(results.importances) == {"ppo.learning_rate", "ppo.epochs", "network.activation"}
    write_report(results)
    page = (tmp_path / "mine" / "report.html").read_text()
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "it &lt;b&gt;broke&lt;/b&gt;" in body
    assert "<b>broke" not in page
    for title in ("Honest figures", "Best settings", "how much it matters", "History", "Learning curves",
                  "Setting by setting", "All trials"):  # fmt: skip
        assert title in body, title
    command = results.command(results.best)
    words = __import__("shlex").split(command)
    assert words[:3] == ["souls", "train", "smoke"]
    config = with_settings(load_preset("smoke"), words[4::2])
    assert config.ppo.learning_rate == results.best.settings["ppo.learning_rate"]
    assert config.run.steps == 1000


def test_a_sweep_in_a_renamed_folder_goes_on(filled, about, tmp_path):
    trials = len(filled.study.trials)
    shutil.copytree(tmp_path / "mine", tmp_path / "copy")
    assert len(results_of(*open_about(tmp_path / "copy", "copy"), tmp_path / "copy").trials) == trials
    copied = SweepStudy(tmp_path / "copy", replace(about, name="copy"))
    assert len(copied.study.trials) == trials
    copied.close()


def test_the_folder_of_a_run_is_none_for_a_sweep(about, tmp_path):
    """Its report would be overwritten."""
    (tmp_path / "config.toml").touch()
    with pytest.raises(RunError, match="is the folder of a run; choose another one"):
        SweepStudy(tmp_path, about)


def test_a_report_alone(filled, tmp_path):
    from typer.testing import CliRunner

    from soulsai.cli.main import app

    result = CliRunner().invoke(app, ["sweep", "--report", str(tmp_path / "mine")])
    assert result.exit_code == 0, result.output
    assert "Trial 10 is the best so far" in result.output.replace("\n", " ")
    assert (tmp_path / "mine" / "report.html").exists()
    result = CliRunner().invoke(app, ["sweep", "--report", str(tmp_path / "other")])
    assert "there is no such sweep" in str(result.exception)
    result = CliRunner().invoke(app, ["sweep", "--report", str(tmp_path)])
    assert "is not the folder of a sweep" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "a preset is missing, as in: souls sweep iudex --space space.toml"),
        (["smoke"], "--space FILE is missing"),
        (["smoke", "--space", "x", "--name", ".."], "'..' is not a valid name"),
        (["smoke", "--space", "x", "--name", "a/b"], "'a/b' is not a valid name"),
        (["smoke", "--space", "x", "--name", "a", "--dir", "b"], "--name and --dir both say where the sweep is"),
        (["smoke", "--space", "no.toml"], "no.toml: this space file cannot be read: No such file or directory"),
    ],
)
def test_misuse_is_a_sentence(arguments, sentence):
    from typer.testing import CliRunner

    from soulsai.cli.main import app

    result = CliRunner().invoke(app, ["sweep", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code != 0
    said = re.sub(r"[\s│]+", " ", result.output + str(result.exception))
    assert sentence in said


def test_a_lost_database_is_a_sentence(tmp_path):
    from optuna.exceptions import StorageInternalError

    url = "postgresql://me:secret@host/x"
    with (
        pytest.raises(RunError, match=r"is lost .* run the same command again") as caught,
        storage_in_reach(tmp_path, url),
    ):
        raise StorageInternalError("gone")
    assert "secret" not in str(caught.value)
    with pytest.raises(RunError, match="the disk is full"), storage_in_reach(tmp_path, ""):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"preset": "iudex"}, "was started of the preset smoke, not iudex; give another --name"),
        ({"config": with_settings(load_preset("smoke"), ["ppo.gamma=0.9"])}, "with other settings (run.steps"),
        ({"space": space_of(SPACE.replace("1e-4", "1e-5"), "space")}, "was started with another space"),
        ({"metric": "return/evaluation"}, "for another goal (win_rate/evaluation, last)"),
    ],
)
def test_what_differs_from_the_sweep_there_is_refused(study, about, tmp_path, change, sentence):
    from dataclasses import replace

    with pytest.raises(ConfigError, match=re.escape(sentence)):
        SweepStudy(tmp_path / "mine", replace(about, **change))
    more = space_of(SPACE.replace("trials = 20", "trials = 30"), "space")
    SweepStudy(tmp_path / "mine", replace(about, space=more)).close()  # more trials are no other sweep


def test_no_difference_is_said_to_be_chance(filled, about, tmp_path):
    study = filled
    study.study.set_user_attr("confirmed/10", {"fights": 100, "won": "1" * 60 + "0" * 40})
    study.study.set_user_attr("confirmed/0", {"fights": 100, "won": "1" * 59 + "0" * 41})
    assert "which may be chance" in against_preset(results_of(study.study, about, tmp_path))


def test_the_documentation_names_every_key_of_the_sweep_table():
    from soulsai.sweeps.space import Plan

    page = (Path(__file__).parents[3] / "docs" / "how-to" / "sweep.md").read_text()
    known = [name for name in Plan.__struct_fields__ if f"`{name}`" in page or f"`[sweep.{name}]`" in page]
    assert known == list(Plan.__struct_fields__)


@pytest.mark.slow
def test_a_real_sweep_of_two_trials(tmp_path):
    (tmp_path / "space.toml").write_text(
        "[sweep]\ntrials = 2\nbest = 1\nfights = 10\n[sweep.fixed]\nrun.steps = 600\nrun.evaluate_every_steps = 300\n"
        "run.evaluation_fights = 2\nrun.final_fights = 2\nrun.threads = 1\nfight.number = 4\nfight.step_limit = 200\n"
        "network.hidden = [8]\nppo.minibatch = 32\n[ppo]\nlearning_rate = {low = 1e-4, high = 1e-2, log = true}\n"
    )
    command = [sys.executable, "-c", "from soulsai.cli.main import main; main()", "sweep", "smoke"]
    result = subprocess.run(
        [*command, "--space", "space.toml", "--name", "real", "--processes", "2"], cwd=tmp_path, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "fresh fights" in result.stdout
    for number in range(2):
        status = json.loads((tmp_path / f"sweeps/real/trial-000{number}/status.json").read_text())
        assert (status["state"], status["step"] >= 600) == ("finished", True)
    assert (tmp_path / "sweeps" / "real" / "report.html").exists()


def test_trials_have_the_python_files_that_the_sweep_began_with(tmp_path, own_parts):
    space = space_of(SPACE + "[reward]\nweights.brave = {low = 0, high = 1}\n", "space")
    config = with_settings(load_preset("smoke"), [*space.fixed, f"fight.parts=['{own_parts}']", "reward.preset=bold"])
    check_fit(space, config, [], "space")
    assert value_of(config, "reward.weights.brave") == 0.5
    about = About("mine", "smoke", config, space, "win_rate/evaluation", (), needed_parts(config))
    study = SweepStudy(tmp_path / "mine", about)
    study.close()
    copy = tmp_path / "mine" / ".parts" / "parts-1" / "my_parts.py"
    assert study.parts == (str(copy),)
    assert copy.read_text() == own_parts.read_text()
    SweepStudy(tmp_path / "mine", about).close()
    own_parts.write_text(own_parts.read_text() + "# more\n")
    with pytest.raises(ConfigError, match=r"this sweep was started with another my_parts\.py; give another --name"):
        SweepStudy(tmp_path / "mine", replace(about, parts=needed_parts(config)))
    own_parts.unlink()
    found = results_of(*open_about(tmp_path / "mine", "mine"), tmp_path / "mine")
    assert value_of(found.about.config, "reward.weights.brave") == 0.5
    with pytest.raises(MisuseError, match="there is no such file"):
        check_fit(space, config, [], "space")


def test_a_term_of_no_file_is_refused(own_parts):
    space = space_of(SPACE + "[reward]\nweights.brav = {low = 0, high = 1}\n", "space")
    config = with_settings(load_preset("smoke"), [*space.fixed, f"fight.parts=['{own_parts}']"])
    with pytest.raises(ConfigError, match=r'weights\.brav is the weight of no term .*; did you mean "brave"'):
        check_fit(space, config, [], "space")
