"""Pictures of the tick at which the clock stands, of a game that draws late, hangs or ends."""

import numpy as np
import pytest
from fake_game import fake_game

from soulsgym.errors import GameGone, GameHung
from soulsgym.game.frames import DRAWN_LIMIT_S, Frames

SIZE = (2, 3)


@pytest.fixture
def game():
    game = fake_game(screen="arena")
    game.clock.pause()
    game.window.grab = lambda: np.full((*SIZE, 3), game.world.turns % 256, np.uint8)
    return game


@pytest.fixture
def frames(game):
    return Frames(game, SIZE, source=game.source)


@pytest.mark.parametrize("turn_s", [0.001, 0.1, 1.0])
def test_a_picture_is_taken_when_the_game_has_turned_three_times_however_slowly(game, frames, turn_s):
    game.world.turns = 10
    due = [game.source.at + turn_s]

    def turns_slowly(seconds):
        while game.source.at >= due[0]:
            game.world.turns += 1
            due[0] += turn_s

    game.world.pass_real = turns_slowly
    assert (frames.frame() == 13).all()


def test_a_game_that_hangs_is_named_and_not_waited_for_for_ever(game, frames):
    game.world.habits.hung = True
    begin = game.source.now()
    with pytest.raises(GameHung, match="has not asked for the time"):
        frames.frame()
    assert game.source.now() - begin < DRAWN_LIMIT_S + 1.0


@pytest.mark.parametrize("habit", ["hung", "gone"])
def test_after_its_end_a_game_has_its_last_picture_and_the_log_says_so(game, frames, habit, caplog):
    picture = frames.frame()
    last = picture.copy()
    picture[:] = 0
    setattr(game.world.habits, habit, True)
    assert (frames.frame() == last).all()
    assert "the last one that the game has drawn" in caplog.text


def test_a_game_that_ended_before_its_first_picture_is_named(game, frames):
    game.world.habits.gone = True
    with pytest.raises(GameGone):
        frames.frame()
