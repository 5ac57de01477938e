"""Training, evaluating and joining on the game, as far as it goes without one: the simulator plays its part."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import ConfigError
from soulsai.evaluation import Evaluation
from soulsai.runs.run import Run
from soulsgym.errors import GameError, GameHung, GameNotFound, MisuseError
from soulsgym.game import attach, engine
from soulsgym.game.engine import GameOptions
from soulsgym.game.process import ProcessInfo
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

SMALL = ["--set", "run.steps=600", "--set", "q.warmup_steps=100", "--set", "network.hidden=[8]", "--set", "q.batch=8",
         "--set", "replay.capacity=1000", "--set", "run.threads=1", "--accept-all", "--plain"]  # fmt: skip


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class SimAsGame(SimEngine):
    """The simulator in the place of a game; `breaks` are the steps at which it breaks the fight off."""

    breaks = ()
    fails_at = None
    steps = 0

    def __init__(self, plan, options, *, phase=1, changes=False):
        super().__init__(load_fight(plan.boss), 1, phase=phase, changes=changes)
        self.options = options
        opened.append(self)

    def step(self, controls, *, skip=False):
        cls = type(self)
        cls.steps += 1
        if cls.steps == cls.fails_at:
            raise GameHung("the game does not answer")
        super().step(controls, skip=skip)
        if cls.steps in cls.breaks:
            self.fights["outcome"] = Outcome.BROKEN


opened: list[SimAsGame] = []


@pytest.fixture
def game(monkeypatch):
    class Fresh(SimAsGame):
        pass

    opened.clear()
    monkeypatch.setattr(engine, "open_engine", Fresh)
    monkeypatch.setattr(attach, "find_game", lambda name="darksouls3", pid=None: ProcessInfo(4321, "DarkSoulsIII.exe"))
    return Fresh


def test_training_on_the_game_and_going_on(game, tmp_path):
    folder = tmp_path / "run"
    result = souls("train", "--game", "--game-speed", "inf", "--run", folder, *SMALL)
    assert "compiling" not in result.output
    assert result.exit_code == 0, (result.output, result.exception)
    assert "playing in the running game: process 4321" in result.output
    assert opened[0].options == GameOptions(float("inf"))
    run = Run.open(folder)
    assert 'engine = "game"' in run.config_toml
    assert run.metrics()[-1]["step"] >= 600
    result = souls("train", "--resume", "--game", "--run", folder, "--set", "run.steps=900", "--plain")
    assert result.exit_code == 0, (result.output, result.exception)
    assert len(opened) == 2
    assert Run.open(folder).metrics()[-1]["step"] >= 900


def test_what_was_learned_is_saved_when_the_game_fails(game, tmp_path):
    game.fails_at = 60
    folder = tmp_path / "run"
    result = souls("train", "--game", "--run", folder, "--set", "run.checkpoint_every_s=1000", *SMALL)
    assert isinstance(result.exception, GameHung)
    assert "the game failed; saving what was learned" in result.output
    result = souls("train", "--resume", "--game", "--run", folder, "--plain")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "resuming from step" in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--game", "--workers", "2"], "a game plays one fight at a time; use souls serve"),
        (["--game", "--set", "fight.number=4"], "fight.number = 4 but the game plays one fight at a time"),
        (["--game", "--set", "run.final_fights=5"], "run.final_fights = 5 but the game plays one fight at a time"),
        (["--game", "--set", "fight.randomize=0.5"], "the game cannot be randomised"),
    ],
)
def test_what_the_game_cannot_do(game, tmp_path, arguments, text):
    with pytest.raises(ConfigError, match=text):
        raise souls("train", "--run", tmp_path / "run", *arguments).exception


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["smoke"], r"^smoke: fight.variants = .* but the game has its own numbers; name one: "),
        (["--set", "fight.number=4"], r"^--set fight.number=4: fight.number = 4 but"),
    ],
)
def test_a_refusal_quotes_no_setting_that_the_user_did_not_give(game, tmp_path, arguments, text):
    with pytest.raises(ConfigError, match=text):
        raise souls("train", *arguments, "--game", "--run", tmp_path / "run").exception
    assert not (tmp_path / "run").exists()


def test_a_reward_that_the_game_cannot_give_is_refused_before_it_is_opened(game, tmp_path):
    file = tmp_path / "dodges.py"
    file.write_text(
        "from soulsgym.parts.rewards import term\nterm('dodge', needs=['dodged'])(lambda fights: fights['dodged'])\n"
    )
    words = ["--parts", file, "--run", tmp_path / "run", *SMALL, "--set", "reward.weights.dodge=1"]
    with pytest.raises(MisuseError, match="reward term 'dodge' needs 'dodged', which this engine cannot tell; give it"):
        raise souls("train", "--game", *words).exception
    assert opened == []
    assert not (tmp_path / "run").exists()


def test_the_game_is_played_only_if_asked_for(game, tmp_path):
    with pytest.raises(ConfigError, match=r'plays in the running game \(fight.engine = "game"\); say so with --game'):
        raise souls("train", "iudex-game", "--run", tmp_path / "run", *SMALL).exception
    assert opened == []
    assert not (tmp_path / "run").exists()


def test_a_run_of_the_simulator_does_not_go_on_in_the_game(game, make_run):
    with pytest.raises(ConfigError, match="this run trains in the simulator"):
        raise souls("train", "--resume", "--game", "--run", make_run("smoke").folder).exception


def test_options_of_the_game_need_the_game():
    with pytest.raises(MisuseError, match="--pid, --launch needs the running game; add --game"):
        raise souls("eval", "player:idle", "--pid", 3, "--launch", "x").exception


def test_without_a_game_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(attach, "find_processes", lambda executable: [])
    with pytest.raises(GameNotFound, match=r"DarkSoulsIII\.exe is not running; start the game"):
        raise souls("train", "--game", "--run", tmp_path / "run").exception
    assert not (tmp_path / "run").exists()


def test_a_win_rate_in_the_game(game, run):
    result = souls("eval", run.folder, "--game", "--fights", 2, "--json")
    assert result.exit_code == 0, result.exception
    found = Evaluation.from_json(result.stdout)
    assert (found.settings.engine, found.fights) == ("game", 2)
    assert len(opened) == 1
    kept = {name.split("-", 2)[2]: text for name, text in run.evaluations()}
    assert json.loads(kept["eval-game"]) == json.loads(result.stdout)


def test_the_table_says_that_it_was_the_game(game):
    text = souls("eval", "player:idle", "--game", "--fights", 1).stdout
    assert "iudex (standard), full fight, in the game, at most 300 s each" in text


def test_fights_that_the_game_breaks_off_are_fought_again(game):
    game.breaks = (5, 9)
    result = souls("eval", "player:idle", "--game", "--fights", 2, "--json")
    assert result.exit_code == 0, result.exception
    found = Evaluation.from_json(result.stdout)
    assert found.outcome.tolist() == [Outcome.DIED] * 2
    assert found.steps.min() > 9


def test_a_game_that_only_breaks_is_given_up(game):
    game.breaks = range(10_000)
    with pytest.raises(GameError, match="broke off a fight 4 times in a row; run souls doctor"):
        raise souls("eval", "player:idle", "--game", "--fights", 2).exception


def test_variants_are_of_the_simulator(game):
    with pytest.raises(MisuseError, match="the game has no variants"):
        raise souls("eval", "player:idle", "--game", "--fights", 1, "--variant", "hard").exception


def test_an_unknown_killer_is_called_so(game, monkeypatch):
    def step(self, controls, *, skip=False):
        SimEngine.step(self, controls, skip=skip)
        self.fights["killed_by"] = np.where(self.fights["outcome"] == Outcome.DIED, -1, self.fights["killed_by"])

    monkeypatch.setattr(game, "step", step)
    result = souls("eval", "player:idle", "--game", "--fights", 1, "--json")
    assert result.exit_code == 0, result.exception
    found = Evaluation.from_json(result.stdout)
    assert found.killed_by == ("unknown",)
    assert found.deaths.attack == {"unknown": 1}
