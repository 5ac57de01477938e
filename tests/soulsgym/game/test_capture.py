"""Pictures in the wanted size, and of the tick at which the clock stands, of a game that draws late, hangs or ends."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from fake_game import fake_game

from soulsgym.errors import GameError, GameGone, GameHung, MisuseError
from soulsgym.game.capture import DRAWN_LIMIT_S, Frames, check_size, resize


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def plain_mean(image, height, width):
    tall, wide = image.shape[0] // height, image.shape[1] // width
    blocks = image.reshape(height, tall, width, wide, 3).astype(np.float64)
    return np.floor(blocks.mean(axis=(1, 3)) + 0.5).astype(np.uint8)


@pytest.mark.parametrize("size", [(90, 160), (45, 80), (225, 400), (450, 400), (150, 800), (1, 1), (9, 16)])
def test_whole_ratios_are_the_plain_mean(size):
    image = noise(450, 800)
    # Pillow multiplies by a rounded reciprocal, so a tie may go the other way.
    assert np.abs(resize(image, size).astype(int) - plain_mean(image, *size)).max() <= 1


def test_mean_of_white_stays_white_however_many_pixels_it_is_of():
    assert (resize(np.full((720, 1280, 3), 255, np.uint8), (2, 2)) == 255).all()


@pytest.mark.parametrize("size", [(7, 30), (40, 33), (20, 59), (39, 60), (13, 17)])
def test_other_ratios_keep_the_mean_of_the_picture(size):
    image = noise(40, 60)
    assert resize(image, size).mean() == pytest.approx(image.mean(), abs=3.0)


def test_a_gradient_stays_a_gradient():
    image = np.repeat(np.linspace(0, 250, 100).astype(np.uint8)[None, :, None], 60, 0).repeat(3, 2)
    small = resize(image, (17, 33))[:, :, 0].astype(int)
    assert (np.diff(small, axis=1) > 0).all()
    assert (np.diff(small, axis=0) == 0).all()


def test_growing_is_linear_and_keeps_the_corners():
    image = np.array([[[0] * 3, [100] * 3]], np.uint8)
    assert resize(image, (1, 4))[0, :, 1].tolist() == [0, 25, 75, 100]
    grown = resize(noise(45, 80), (90, 160))
    assert grown.shape == (90, 160, 3)
    assert np.array_equal(grown[0, 0], noise(45, 80)[0, 0])
    assert np.array_equal(grown[-1, -1], noise(45, 80)[-1, -1])


def test_one_axis_grows_while_the_other_shrinks():
    image = noise(40, 60)
    both = resize(image, (80, 30))
    assert both.shape == (80, 30, 3)
    flat = np.full((40, 60, 3), 77, np.uint8)
    assert (resize(flat, (80, 31)) == 77).all()
    assert (resize(flat, (23, 130)) == 77).all()


def test_single_row_grows():
    assert resize(np.full((1, 1, 3), 9, np.uint8), (5, 7)).tolist() == np.full((5, 7, 3), 9).tolist()


@pytest.mark.parametrize("size", [(90, 160), (84, 84), (900, 100), (450, 800)])
def test_result_is_contiguous_bytes(size):
    result = resize(noise(450, 800), size)
    assert (result.shape, result.dtype, result.flags.c_contiguous) == ((*size, 3), np.uint8, True)


@pytest.mark.parametrize("size", [(0, 160), (90, -1)])
def test_a_picture_without_pixels_is_refused(size):
    with pytest.raises(MisuseError, match=rf"{size[0]} x {size[1]}"):
        check_size(size)


def test_without_pillow_the_way_to_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert resize(noise(4, 4), (4, 4)).shape == (4, 4, 3)
    with pytest.raises(GameError, match=r"pip install 'souls-arena\[game\]'"):
        resize(noise(4, 4), (2, 2))


# ---- the picture of a tick


SIZE = (2, 3)


@pytest.fixture
def game():
    game = fake_game(screen="arena")
    game.clock.pause()
    game.window.grab = lambda: np.full((*SIZE, 3), game.world.turns % 256, np.uint8)
    return game


def test_a_window_that_changes_its_size_gives_pictures_of_the_same_size(game, frames):
    for size in ((450, 800), (481, 803)):
        game.window.grab = lambda size=size: noise(*size)
        assert frames.frame().shape == (*SIZE, 3)


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
