"""Frames in the wanted size: exact for whole ratios, true to area for all others."""

from __future__ import annotations

import time

import numpy as np
import pytest
from fake_window import FakeWindow

from soulsgym.errors import MisuseError
from soulsgym.game.capture import Camera, resized


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def plain_mean(image, height, width):
    tall, wide = image.shape[0] // height, image.shape[1] // width
    blocks = image.reshape(height, tall, width, wide, 3).astype(np.float64)
    return np.floor(blocks.mean(axis=(1, 3)) + 0.5).astype(np.uint8)


def area_mean(image, height, width):
    """Straight from the meaning: the integral of the picture over each target pixel."""

    def shares(source, target):
        table = np.zeros((target, source))
        for pixel in range(target):
            low, high = pixel * source / target, (pixel + 1) * source / target
            for at in range(source):
                table[pixel, at] = max(0.0, min(high, at + 1) - max(low, at)) * target / source
        return table

    tall, wide = shares(image.shape[0], height), shares(image.shape[1], width)
    return np.einsum("ij,jkc,lk->ilc", tall, image.astype(np.float64), wide)


@pytest.mark.parametrize("size", [(90, 160), (45, 80), (225, 400), (450, 400), (150, 800), (1, 1), (9, 16)])
def test_whole_ratios_are_the_plain_mean(size):
    image = noise(450, 800)
    assert np.array_equal(resized(image, size), plain_mean(image, *size))


def test_mean_of_white_stays_white_however_many_pixels_it_is_of():
    assert (resized(np.full((720, 1280, 3), 255, np.uint8), (2, 2)) == 255).all()


@pytest.mark.parametrize("size", [(7, 30), (40, 33), (20, 59), (39, 60), (13, 17)])
def test_other_ratios_are_the_mean_over_the_area(size):
    image = noise(40, 60)
    assert np.abs(resized(image, size) - area_mean(image, *size)).max() <= 0.51


def test_known_fractional_case():
    image = np.array([[[0], [90], [30]]], np.uint8)
    assert resized(image, (1, 2)).ravel().tolist() == [30, 50]


def test_growing_is_linear_and_keeps_the_corners():
    image = np.array([[[0], [100]]], np.uint8)
    assert resized(image, (1, 4)).ravel().tolist() == [0, 25, 75, 100]
    grown = resized(noise(45, 80), (90, 160))
    assert grown.shape == (90, 160, 3)
    assert np.array_equal(grown[0, 0], noise(45, 80)[0, 0])
    assert np.array_equal(grown[-1, -1], noise(45, 80)[-1, -1])


def test_one_axis_grows_while_the_other_shrinks():
    image = noise(40, 60)
    both = resized(image, (80, 30))
    assert both.shape == (80, 30, 3)
    flat = np.full((40, 60, 3), 77, np.uint8)
    assert (resized(flat, (80, 31)) == 77).all()
    assert (resized(flat, (23, 130)) == 77).all()


def test_single_row_grows():
    assert resized(np.full((1, 1, 3), 9, np.uint8), (5, 7)).tolist() == np.full((5, 7, 3), 9).tolist()


@pytest.mark.parametrize("size", [(90, 160), (84, 84), (900, 100), (450, 800)])
def test_result_is_contiguous_bytes(size):
    result = resized(noise(450, 800), size)
    assert (result.shape, result.dtype, result.flags.c_contiguous) == ((*size, 3), np.uint8, True)


def test_usual_size_takes_much_less_than_the_plain_way():
    image, times = noise(450, 800), {resized: [], plain_mean: []}
    for _ in range(20):
        for way, size in ((resized, ((90, 160),)), (plain_mean, (90, 160))):
            before = time.perf_counter()
            way(image, *size)
            times[way].append(time.perf_counter() - before)
    assert min(times[resized]) < min(times[plain_mean]) / 2


def test_camera_looks_at_its_window_in_its_size():
    window = FakeWindow()
    window.picture = lambda: noise(450, 800, 3)
    camera = Camera(window)
    assert camera.size == (90, 160)
    assert np.array_equal(camera.picture(), plain_mean(noise(450, 800, 3), 90, 160))
    camera.size = (45, 80)
    assert camera.picture().shape == (45, 80, 3)


def test_camera_follows_a_window_that_changes_its_size():
    window = FakeWindow()
    camera = Camera(window, (45, 80))
    window.picture = lambda: noise(450, 800)
    assert camera.picture().shape == (45, 80, 3)
    window.picture = lambda: noise(481, 803)
    assert camera.picture().shape == (45, 80, 3)


@pytest.mark.parametrize("size", [(0, 160), (90, -1)])
def test_frame_without_pixels_is_refused(size):
    with pytest.raises(MisuseError, match=rf"{size[0]} x {size[1]}"):
        Camera(FakeWindow(), size)
