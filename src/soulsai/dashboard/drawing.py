"""What the browser draws: shapes as plain numbers, and the arena of a fight as a picture with a rim of shapes."""

from __future__ import annotations

import base64
import functools
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.render.arena import SURROUNDINGS_M, box_of, grid_lines, rim, shades
from soulsgym.render.palette import Colour
from soulsgym.render.shapes import Shape
from soulsgym.spec.arena import Arena

PX_PER_M = 3.0
"""The ground has no edges within: scaled up it looks as smooth as with more."""

Outline = tuple[int, ...]
"""x and y of one point after the other, in whole centimetres; of a disc or ring centre and radius."""


class Drawing:
    """Shapes as a list of operations; outlines and colours that come again are written once.

    An operation is (kind of shape, outline, colour, alpha in percent, width in tenths of a pixel); outline and colour
    are places in the lists.
    """

    def __init__(self) -> None:
        self._outlines: dict[Outline, int] = {}
        self._colours: dict[Colour, int] = {}

    @property
    def outlines(self) -> list[Outline]:
        """All outlines, by place."""
        return list(self._outlines)

    @property
    def colours(self) -> list[str]:
        """All colours, by place, as CSS writes them."""
        return [f"{red},{green},{blue}" for red, green, blue in self._colours]

    def operations(self, shapes: Iterable[Shape]) -> list[list[int]]:
        """The shapes as operations."""
        return [
            [
                shape.kind,
                self._outlines.setdefault(_outline(shape), len(self._outlines)),
                self._colours.setdefault(shape.colour, len(self._colours)),
                round(100.0 * shape.alpha),
                round(10.0 * shape.width_px),
            ]
            for shape in shapes
        ]


def _outline(shape: Shape) -> Outline:
    numbers = [value for point in shape.points for value in point] + ([shape.radius_m] if shape.radius_m else [])
    return tuple(round(100.0 * value) for value in numbers)


@functools.lru_cache(maxsize=16)
def ground_of(arena: Arena) -> dict[str, Any]:
    """Picture and outline of an arena; lengths in cm."""
    low, high = box_of(arena, SURROUNDINGS_M)
    drawing = Drawing()
    operations = drawing.operations(rim(arena))
    picture = shades(arena, PX_PER_M).transpose(1, 0, 2)
    return {
        "name": arena.name,
        "ring": [[_cm(corner.x_m), _cm(corner.y_m)] for corner in arena.corners],
        "cliffs": [int(corner.to_next == "cliff") for corner in arena.corners],
        "low": [_cm(low[0]), _cm(low[1])],
        "high": [_cm(high[0]), _cm(high[1])],
        "picture": f"data:image/png;base64,{base64.b64encode(png(picture)).decode()}",
        "grid": [[_cm(a[0]), _cm(a[1]), _cm(b[0]), _cm(b[1])] for a, b in grid_lines(arena)],
        "rim": operations,
        "outlines": [list(outline) for outline in drawing.outlines],
        "colours": drawing.colours,
    }


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """Encode colours [height, width, RGB] as PNG, without an imaging library."""
    height, width, _ = picture.shape
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    # Every pixel as its difference to the left neighbour (filter 1): on a slope those are small and compress well.
    rows[:, 0] = 1
    flat = picture.reshape(height, -1)
    rows[:, 1:4] = flat[:, :3]
    rows[:, 4:] = flat[:, 3:] - flat[:, :-3]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, data) for kind, data in parts)


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _cm(metres: float) -> int:
    return round(100.0 * metres)
