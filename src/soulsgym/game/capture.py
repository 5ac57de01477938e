"""Frames of a game in the size that an agent wants."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.game.window import Window

SIZE = (90, 160)
"""Height and width of a frame, unless told otherwise."""


class Camera:
    """Looks at a window; every frame has the same size, whatever the window's."""

    def __init__(self, window: Window, size: tuple[int, int] = SIZE) -> None:
        self._window = window
        self.size = size

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a frame."""
        return self._size

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        height, width = size
        if height < 1 or width < 1:
            raise MisuseError(f"a frame of {height} x {width} pixels has no pixels; give a height and a width")
        self._size = (int(height), int(width))

    def picture(self) -> npt.NDArray[np.uint8]:
        """The frame now: (height, width, 3), RGB."""
        return resized(self._window.grab(), self._size)


def resized(image: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """An image of (height, width, channels) in another size: area average, or linear where it grows."""
    (rows, columns), (height, width) = image.shape[:2], size
    if (rows, columns) == (height, width):
        return image
    if rows % height == 0 and columns % width == 0:
        return _block_means(image, rows // height, columns // width)
    tall, wide = _taps(rows, height), _taps(columns, width)
    # Blended along rows and then, turned over, along columns; what shrinks goes first, as it leaves less to do.
    if height <= rows:
        blended = _turned(_blended(_turned(_blended(image, tall)), wide))
    else:
        blended = _blended(_turned(_blended(_turned(image), wide)), tall)
    blended += np.float32(0.5)
    return blended.astype(np.uint8)


def _block_means(image: npt.NDArray[np.uint8], tall: int, wide: int) -> npt.NDArray[np.uint8]:
    # Sums of slices: whole rows first, which are contiguous. NumPy's own mean over two axes takes ten times as long.
    count = tall * wide
    kind: type[np.unsignedinteger[Any]] = np.uint16 if count * 256 <= np.iinfo(np.uint16).max else np.uint32
    rows = image[::tall].astype(kind)
    for offset in range(1, tall):
        rows += image[offset::tall]
    means = np.empty((rows.shape[0], rows.shape[1] // wide, rows.shape[2]), np.uint8)
    for channel in range(rows.shape[2]):
        total = rows[:, ::wide, channel].copy()
        for offset in range(1, wide):
            total += rows[:, offset::wide, channel]
        total += kind(count // 2)
        total //= kind(count)
        means[:, :, channel] = total
    return means


Taps = tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]], ...]
"""For the n-th source of every target: where it is, and its weight."""


@lru_cache(maxsize=32)
def _taps(source: int, target: int) -> Taps:
    """Which sources make up each target along one axis."""
    if source == target:
        return ((np.arange(target, dtype=np.intp), np.ones(target, np.float32)),)
    if target > source:
        centre = np.clip((np.arange(target) + 0.5) * source / target - 0.5, 0, source - 1)
        first = np.minimum(centre.astype(np.intp), max(source - 2, 0))
        share = (centre - first).astype(np.float32)
        return ((first, 1 - share), (np.minimum(first + 1, source - 1), share))
    # Edges in whole units of 1 / target, so that a border between two sources is exact.
    low, high = np.arange(target) * source, (np.arange(target) + 1) * source
    first, last = low // target, (high - 1) // target
    taps = []
    for offset in range(int((last - first).max()) + 1):
        at = first + offset
        covered = np.minimum(high, (at + 1) * target) - np.maximum(low, at * target)
        taps.append((np.minimum(at, source - 1), (np.maximum(covered, 0) / source).astype(np.float32)))
    return tuple(taps)


def _blended(image: npt.NDArray[Any], taps: Taps) -> npt.NDArray[np.float32]:
    """The weighted sum of rows that makes each target row."""
    flat = image.reshape(image.shape[0], -1)
    total = np.zeros((taps[0][0].size, flat.shape[1]), np.float32)
    for at, weight in taps:
        total += np.multiply(flat[at], weight[:, None], dtype=np.float32)
    return total.reshape(-1, *image.shape[1:])


def _turned(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows and columns exchanged, in memory too."""
    turned = np.empty((image.shape[1], image.shape[0], image.shape[2]), image.dtype)
    for channel in range(image.shape[2]):
        turned[:, :, channel] = image[:, :, channel].T
    return turned
