"""`souls eval`: runs, two runs, exported files, scripted players and Gymnasium environments."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soulsai.cli import main as cli
from soulsai.errors import RunError
from soulsai.evaluation import Evaluation
from soulsai.evaluation.thoughts import read_fight_file, spec_of
from soulsai.runs.fight_files import config_of, files_of
from soulsai.runs.files import write_files
from soulsai.runs.run import Run
from soulsgym.errors import MisuseError, SoulsError
from soulsgym.spec.population import evaluation_seed


def souls(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def shown(*arguments):
    result = souls(*arguments)
    assert result.exit_code == 0, result.exception or result.output
    return result.stdout


def names_of(run):
    return [name.split("-", 2)[2] for name, _ in run.evaluations()]


def test_tables_and_what_is_kept(run):
    before = run.report_file.read_text()
    text = shown("eval", run.folder, "--fights", 5)
    assert "tiny wins" in text
    assert "of 5 fights (95 % interval" in text
    assert "full fight, seed 0, at most 30 s each" in text  # its own step limit
    assert "How the fights ended" in text
    assert max(map(len, text.splitlines()[:-1])) <= 80
    assert names_of(run) == ["final", "eval"]
    assert run.report_file.read_text() != before


def test_json_is_the_evaluation_that_is_kept(run):
    text = shown(
        "eval", run.folder, "--fights", 4, "--seed", 3, "--variant", "hard", "--randomize", 0.5, "--no-hit", "--json"
    )
    settings = Evaluation.from_json(text).settings
    assert (settings.fights, settings.seed, settings.variant, settings.randomize) == (4, 3, "hard", 0.5)
    assert (settings.phase, settings.full, settings.no_hit, settings.step_limit) == (1, True, True, 300)
    assert names_of(run)[-1] == "eval-hard-randomize-0.5-no-hit"
    assert json.loads(run.evaluations()[-1][1]) == json.loads(text)


def test_fights_are_kept_for_the_viewer(run):
    before = set(run.recordings.iterdir())
    text = shown("eval", run.folder, "--fights", 5, "--record", 2)
    kept = sorted(set(run.recordings.iterdir()) - before)
    evaluation, _ = run.evaluations()[-1]
    assert [file.name for file in kept] == [f"{evaluation}-0001.npz", f"{evaluation}-0002.npz"]
    assert f"kept 2 fights in {run.recordings}; see them: souls dashboard {run.folder}" in text
    told = [read_fight_file(file) for file in kept]
    assert [one.about["fight"] for one in told] == [0, 1]
    assert all(one.thoughts is not None for one in told)
    found = Evaluation.from_json(run.evaluations()[-1][1])
    assert [one.recording.fights["step"][-1] for one in told] == found.steps[:2].tolist()


def test_fights_of_two_that_take_turns_are_kept_without_their_thoughts(run):
    shown("eval", run.folder, run.folder, "--fights", 2, "--record", 1)
    assert read_fight_file(max(run.recordings.iterdir(), key=lambda file: file.stat().st_mtime_ns)).thoughts is None


def test_only_a_run_keeps_fights():
    result = souls("eval", "player:duellist", "--record", 1)
    assert result.exit_code == 2
    assert "no folder to keep fights in" in " ".join(result.output.replace("│", " ").split())


def test_same_seed_same_fights(run):
    first, again, other = (shown("eval", run.folder, "--fights", 4, "--seed", s, "--json") for s in (1, 1, 2))
    assert first == again != other


def test_one_phase(run):
    settings = Evaluation.from_json(shown("eval", run.folder, "--fights", 2, "--phase", 2, "--json")).settings
    assert (settings.phase, settings.full, settings.random_pose) == (2, False, False)
    assert names_of(run)[-1] == "eval-phase-2"


PHASE_2 = ("fight.full=false", "fight.phase=2", "starts.random_pose=true", "fight.step_limit=50")


def test_run_trained_on_a_phase_is_measured_in_it(make_run):
    run = make_run("smoke-q", *PHASE_2)
    settings = Evaluation.from_json(shown("eval", run.folder, "--fights", 2, "--json")).settings
    assert (settings.phase, settings.full, settings.random_pose, settings.step_limit) == (2, False, True, 50)
    settings = Evaluation.from_json(shown("eval", run.folder, "--fights", 2, "--full", "--json")).settings
    assert (settings.phase, settings.full, settings.random_pose) == (1, True, False)


def test_two_runs_play_a_phase_each(run, make_run, monkeypatch):
    second = make_run("smoke-q", *PHASE_2)
    fighters = []
    monkeypatch.setattr("soulsai.cli.eval.PhaseFighters", lambda *given: fighters.extend(given) or given[0])
    settings = Evaluation.from_json(shown("eval", run.folder, second.folder, "--fights", 2, "--json")).settings
    assert (settings.phase, settings.full, settings.random_pose, settings.step_limit) == (1, True, False, 300)
    assert len(fighters) == 2
    assert names_of(run)[-1] == "eval-with-made"
    assert names_of(second) == []
    with pytest.raises(MisuseError, match="two runs are for the full fight, not for phase 2"):
        raise souls("eval", run.folder, second.folder, "--phase", 2).exception


def test_who_took_over_is_kept_with_the_result(run):
    text = shown("eval", run.folder, "player:duellist", "--fights", 2, "--json")
    assert json.loads(text)["players"] == ["tiny", "player:duellist"]
    assert Evaluation.from_json(text).players == ("tiny", "player:duellist")
    assert "player:duellist from phase 2 on" in run.report_file.read_text()
    alone = json.loads(shown("eval", run.folder, "--fights", 2, "--json"))
    assert alone["players"] == ["tiny"]
    del alone["players"]  # as in files of earlier versions
    assert Evaluation.from_json(json.dumps(alone)).players == ()


def test_the_newest_run_is_taken_and_named(run, monkeypatch):
    monkeypatch.chdir(run.folder.parent)
    run.folder.parent.joinpath("runs").mkdir()
    run.folder.rename("runs/mine")
    Run.create(Path("runs/empty"), "[run]\nseed = 1\n", preset="smoke", command=["souls"])
    result = souls("eval", "--fights", 2)
    assert (result.exit_code, result.stderr) == (0, "the newest run: runs/mine\n"), result.exception
    assert "mine wins" in result.stdout


def test_scripted_player():
    text = shown("eval", "player:idle", "--fights", 3)
    assert "player:idle wins 0.0 % of 3 fights" in text
    assert "Causes of death" in text
    assert "Stands" in text


def test_exported_file(run, tmp_path):
    file = tmp_path / "policy.pt"
    shown("export", run.folder, file)
    original, exported = (json.loads(shown("eval", who, "--fights", 4, "--json")) for who in (run.folder, file))
    assert (original.pop("players"), exported.pop("players")) == (["tiny"], ["policy.pt"])
    assert exported == original


def test_drawn_files(run):
    content = json.loads(shown("eval", run.folder, "--variant", "drawn:3", "--fights", 2, "--record", 5, "--json"))
    assert content["settings"]["fights"] == 6
    assert [file["fights"] for file in content["summary"]["drawn_files"]] == [2, 2, 2]
    assert names_of(run)[-1] == "eval-drawn_3"
    assert "File by file" in run.report_file.read_text()
    told = [read_fight_file(file) for file in sorted(run.recordings.glob("*-000?.npz"))]
    assert [one.about["draw_seed"] for one in told] == [evaluation_seed(i // 2) for i in range(5)]
    text = shown("eval", run.folder, "--variant", "drawn:3", "--fights", 2)
    assert "of 6 fights on 3 drawn files (95 % interval" in text
    assert "; worst file" in text
    assert str(evaluation_seed(2)) in text
    assert max(map(len, text.splitlines()[2:-1])) <= 80


def test_fewer_fights_on_each_of_many_files(monkeypatch):
    asked = []
    monkeypatch.setattr("soulsai.cli.eval.evaluate", lambda *given, **_: asked.append(given[1]) or 1 / 0)
    for variant in ("hard", "drawn:20"):
        souls("eval", "player:idle", "--variant", variant)
    assert asked == [1000, 50]


@pytest.mark.parametrize("variant", ["drawn:0", "drawn:x", "drawn:100000", "hrad", "nowhere.toml"])
def test_variants_that_cannot_be(run, variant):
    before = len(run.evaluations())
    error = souls("eval", run.folder, "--variant", variant, "--fights", 1).exception
    assert isinstance(error, SoulsError)
    assert variant in str(error)
    assert len(run.evaluations()) == before


def test_an_overlay_file(run, tmp_path):
    file = tmp_path / "my boss.toml"
    file.write_text('[body]\nhp = 1\nsource = "guess"\n')
    text = shown("eval", run.folder, "--variant", file, "--fights", 2, "--record", 1)
    assert "iudex (my boss.toml), full fight" in text
    assert names_of(run)[-1] == "eval-my_boss.toml"
    told = read_fight_file(run.recordings / f"{run.evaluations()[-1][0]}-0001.npz")
    assert told.about["variant"] == "my boss.toml"
    file.unlink()
    assert spec_of(told).boss.hp == 1.0


def test_a_scripted_player_fights_a_boss_of_ones_own(sentinel, run):
    text = shown("eval", "player:duellist", "--boss", sentinel, "--variant", "hard", "--fights", 2)
    assert "sentinel.toml (hard), full fight" in text
    assert "Thrust" in text
    hard = sentinel.with_name("sentinel.hard.toml")
    assert "sentinel.hard.toml" in shown("eval", "player:idle", "--boss", sentinel, "--variant", hard, "--fights", 1)
    with pytest.raises(MisuseError, match="the run was trained on iudex; leave it out, or give one of them"):
        raise souls("eval", run.folder, "--boss", sentinel).exception
    shown("eval", "player:idle", "--boss", sentinel, "--fights", 1)  # who knows no boss


def test_a_run_of_several_bosses_fights_each_or_the_one_asked_for(make_run):
    small = ["fight.bosses=['iudex', 'vordt', 'margit']", "fight.step_limit=40"]
    run = make_run("smoke", *small)
    lines = shown("eval", run.folder, "--fights", 2, "--json").splitlines()
    assert [Evaluation.from_json(line).settings.boss for line in lines] == ["iudex", "vordt", "margit"]
    assert names_of(run) == ["eval-iudex", "eval-vordt", "eval-margit"]
    report = run.report_file.read_text()
    assert all(f"against {boss}" in report for boss in ("iudex", "vordt", "margit"))
    text = shown("eval", run.folder, "--fights", 2, "--boss", "margit", "--record", 1)
    assert "margit (standard), full fight" in text
    assert "vordt" not in text
    told = read_fight_file(run.recordings / f"{run.evaluations()[-1][0]}-0001.npz")
    assert spec_of(told).boss_name == "margit"
    assert told.thoughts.sights[:3] == ("against_iudex", "against_vordt", "against_margit")
    with pytest.raises(MisuseError, match="the run was trained on iudex, vordt, margit; leave it out"):
        raise souls("eval", run.folder, "--boss", "gundyr").exception
    other = make_run("smoke", "fight.boss=vordt", "fight.step_limit=40", name="vordt")
    compared = json.loads(shown("compare", run.folder, other.folder, "--boss", "vordt", "--fights", 2, "--json"))
    assert compared["settings"]["boss"] == "vordt"


OWN = ("fight.step_limit=40", "fight.variants=['hard']")


def test_runs_of_one_boss_are_compared_whoever_copied_it(sentinel, make_run):
    one, other = (make_run("smoke", f"fight.boss={sentinel}", *OWN, name=name) for name in "ab")
    for run in (one, other):
        write_files(files_of(config_of(run)), run.data)
    assert "McNemar" in shown("compare", one.folder, other.folder, "--fights", 2)
    copy = other.data / "boss" / "sentinel.hard.toml"
    copy.write_text(copy.read_text().replace("hp = 800", "hp = 801"))
    with pytest.raises(MisuseError, match="trained for different fights"):
        raise souls("compare", one.folder, other.folder, "--fights", 2).exception


def test_an_exported_policy_holds_its_boss(sentinel, make_run, tmp_path):
    run, file = make_run("smoke", f"fight.boss={sentinel}", *OWN), tmp_path / "policy.pt"
    shown("export", run.folder, file)
    before = shown("eval", run.folder, "--fights", 3, "--json")
    assert str(tmp_path).encode() not in file.read_bytes()
    shutil.rmtree(sentinel.parent)
    after = json.loads(shown("eval", file, "--fights", 3, "--json"))
    assert after["per_fight"] == json.loads(before)["per_fight"]


def test_latest_policy(run, monkeypatch):
    asked = []
    from soulsai.learning import loading

    original = loading.load_policy
    monkeypatch.setattr(loading, "load_policy", lambda run, **given: asked.append(given) or original(run, **given))
    shown("eval", run.folder, "--fights", 1, "--latest")
    assert asked[0]["latest"] is True


def test_gym_run_has_a_mean_return_with_interval(make_run):
    run = make_run("cartpole-ppo")
    content = json.loads(shown("eval", run.folder, "--fights", 5, "--json"))
    assert content["id"] == "CartPole-v1"
    assert len(content["returns"]) == 5
    assert content["mean"] == pytest.approx(sum(content["returns"]) / 5)
    assert content["low"] <= content["mean"] <= content["high"]
    text = shown("eval", run.folder, "--fights", 5)
    assert f"made: mean return {content['mean']:.1f} over 5 episodes of CartPole-v1 (95 % interval" in text
    assert "interval" not in shown("eval", run.folder, "--fights", 1)
    with pytest.raises(MisuseError, match="plays CartPole-v1, which is not a fight; leave out --variant, --phase"):
        raise souls("eval", run.folder, "--variant", "hard", "--phase", 1).exception


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fights", "0"], "number of fights 0 is not possible"),
        (["--seed", "-1"], "seed -1 is negative"),
        (["--randomize", "1.5"], "randomize 1.5 is out of range"),
        (["--phase", "3"], "phase 3 is not there; Iudex Gundyr has phases 1 to 2"),
        (["--variant", "hardd"], "did you mean 'hard'"),
        (["--phase", "1", "--full"], "use --full or --phase 1, not both"),
    ],
)
def test_wrong_options_keep_nothing(run, arguments, sentence):
    result = souls("eval", run.folder, *arguments)
    assert isinstance(result.exception, SoulsError)
    assert sentence in str(result.exception)
    assert result.stdout == ""
    assert names_of(run) == ["final"]


def test_missing_run_through_the_front_door(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["souls", "eval", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "none: there is no such run" in err


def test_damaged_run(run):
    for folder in run.checkpoints.iterdir():
        (folder / "manifest.json").write_text("{")
    with pytest.raises(RunError, match="no checkpoint is intact"):
        raise souls("eval", run.folder).exception
    (run.folder / "config.toml").write_text("[run\n")
    with pytest.raises(RunError, match=r"config\.toml: is damaged"):
        raise souls("eval", run.folder).exception
