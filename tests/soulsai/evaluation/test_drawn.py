"""Evaluations on drawn files: each file has its fights, and the figures are those of the fights."""

import json

import numpy as np
import pytest

from soulsai.evaluation import Evaluation, ScriptedFighter, compare, evaluate
from soulsai.evaluation.evaluation import DrawnFile
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.tables import tables_of
from soulsai.evaluation.thoughts import FightFile, about_boss, spec_of
from soulsgym.errors import MisuseError
from soulsgym.spec.draw import drawn_spec
from soulsgym.spec.population import evaluation_seed
from soulsgym.state import Outcome

WON, DIED, FELL = int(Outcome.WON), int(Outcome.DIED), int(Outcome.FELL)


@pytest.fixture(scope="module")
def drawn():
    """Two fights on each of three files, of a player who does nothing."""
    return evaluate(ScriptedFighter("idle"), 2, seed=7, variant="drawn:3")


def test_every_file_has_its_fights(drawn):
    assert (drawn.fights, drawn.settings.variant) == (6, "drawn:3")
    assert [file.seed for file in drawn.drawn_files] == [evaluation_seed(i) for i in range(3)]
    assert [file.fights for file in drawn.drawn_files] == [2, 2, 2]
    assert [drawn.settings.draw_seed(i) for i in range(6)] == [evaluation_seed(i // 2) for i in range(6)]


def test_batches_of_any_size_give_the_same_fights(drawn):
    for batch in (1, 2, 3, 4):
        again = evaluate(ScriptedFighter("idle"), 2, seed=7, variant="drawn:3", batch=batch)
        assert again.time_s.tolist() == drawn.time_s.tolist(), batch
        assert again.killed_by == drawn.killed_by


def test_a_fight_is_played_on_its_file(drawn):
    recorder = FightRecorder(6)
    evaluate(ScriptedFighter("idle"), 2, seed=7, variant="drawn:3", recorder=recorder)
    hp = [float(recorder.fight(i).fights["boss_max_hp"][0]) for i in range(6)]
    damage = [recorder.fight(i).fights["damage_taken"].max() for i in range(6)]
    assert len(set(np.round(damage, 3))) > 1 or len(set(hp)) > 1
    about = about_boss("iudex", "drawn:3", drawn.settings.draw_seed(5))
    assert json.loads(json.dumps(about)) == about
    assert spec_of(FightFile(recorder.fight(5), about)) == drawn_spec("iudex", evaluation_seed(2))


def test_figures_by_hand(with_outcomes):
    found = with_outcomes([WON, WON, WON, DIED, DIED, DIED, DIED, FELL], variant="drawn:2")
    good, bad = found.drawn_files
    assert (good.wins, good.win_rate, good.killed_by, good.deaths) == (3, 0.75, "slam", 1)
    assert bad == DrawnFile(evaluation_seed(1), 4, 0, None, "slam", 3)
    assert found.worst_file == bad
    assert good.time_to_kill_s == pytest.approx(float(np.median(found.time_s[:3])))
    # Mean 0.375, deviation of the files 0.530: 1.96 * 0.530 / sqrt(2) reaches beyond 0 and 1.
    assert found.interval == (0.0, 1.0)
    assert found.headline == ("wins 37.5 % of 8 fights on 2 drawn files (95 % interval 0.0-100.0; worst file 0.0)")


def test_the_interval_is_at_least_that_of_the_fights(with_outcomes):
    outcomes = [WON, DIED] * 10
    assert with_outcomes(outcomes, variant="drawn:2").interval == with_outcomes(outcomes).interval


def test_json_keeps_all_of_it(drawn):
    content = json.loads(drawn.to_json())
    assert [file["seed"] for file in content["summary"]["drawn_files"]] == [evaluation_seed(i) for i in range(3)]
    assert Evaluation.from_json(drawn.to_json()).drawn_files == drawn.drawn_files
    assert "drawn_files" not in evaluate(ScriptedFighter("idle"), 1, step_limit=5).summary()


@pytest.mark.parametrize("variant", ["drawn:4", "drawn:0", "drawn:x"])
def test_damaged_files_are_refused(drawn, variant):
    content = json.loads(drawn.to_json())
    content["settings"]["variant"] = variant
    with pytest.raises(MisuseError):
        Evaluation.from_json(json.dumps(content)).summary()


def test_two_fighters_on_the_same_files(with_outcomes):
    a, b = with_outcomes([WON] * 4, variant="drawn:2"), with_outcomes([DIED] * 4, variant="drawn:2")
    assert compare(a, b).is_paired
    assert not compare(a, with_outcomes([DIED] * 8, variant="drawn:2")).is_paired  # fight 2 is of another file
    with pytest.raises(MisuseError, match="differ in variant"):
        compare(a, with_outcomes([DIED] * 4, variant="drawn:4"))


def test_table_of_the_report(with_outcomes):
    html = tables_of(with_outcomes([WON, WON, DIED, DIED], variant="drawn:2"))[0].html()
    assert html.index(str(evaluation_seed(1))) < html.index(str(evaluation_seed(0)))  # the worst first
    assert "slam" in html


def test_the_game_has_no_drawn_files():
    from soulsgym.game.engine import GameOptions

    with pytest.raises(MisuseError, match="the game has no variants"):
        evaluate(ScriptedFighter("idle"), 1, variant="drawn:3", game=GameOptions())
