"""Cells and what is written for them, read back by a little terminal."""

import re

import numpy as np

from soulsai.cli.terminal import COARSE, Cells, encoded

SEQUENCE = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])")


class Screen:
    """Understands what `encoded` writes."""

    def __init__(self, columns, rows):
        self.letters = np.full((rows, columns), " ", "<U1")
        self.ink = np.zeros((rows, columns, 3), np.uint8)
        self.paper = np.zeros((rows, columns, 3), np.uint8)
        self.written = 0

    def take(self, data):
        row = column = 0
        ink = paper = (0, 0, 0)
        at = 0
        while at < len(data):
            found = SEQUENCE.match(data, at)
            if found is None:
                self.letters[row, column] = data[at]
                self.ink[row, column], self.paper[row, column] = ink, paper
                self.written += 1
                column, at = column + 1, at + 1
                continue
            numbers = [int(number) for number in found[1].split(";")] if found[1] else []
            if found[2] == "H":
                row, column = numbers[0] - 1, numbers[1] - 1
            elif found[2] == "m" and len(numbers) == 10:
                ink, paper = tuple(numbers[2:5]), tuple(numbers[7:10])
            at = found.end()


def test_what_is_written_is_what_is_shown():
    cells = Cells(12, 3)
    cells.write(1, 2, "boss\x1b", (250, 10, 20), (1, 2, 3))
    screen = Screen(12, 3)
    screen.take(encoded(cells, None, colour=True))
    assert screen.letters.tolist() == cells.letters.tolist()
    assert "boss?" in cells.text(), "what is not printable must not steer the terminal"
    assert np.array_equal(screen.ink, cells.ink & COARSE)
    assert np.array_equal(screen.paper, cells.paper & COARSE)


def test_only_changes_are_written():
    before, after = Cells(40, 10), Cells(40, 10)
    after.write(4, 7, "hi")
    after.ink[9, 39] = (1, 250, 1)
    screen = Screen(40, 10)
    screen.take(encoded(before, None, colour=True))
    screen.written = 0
    screen.take(encoded(after, before, colour=True))
    assert screen.written == 3
    assert screen.letters.tolist() == after.letters.tolist()
    assert np.array_equal(screen.ink, after.ink & COARSE)
    assert encoded(after, after, colour=True) == ""


def test_without_colour_there_are_only_letters_and_places():
    cells = Cells(8, 2)
    cells.write(0, 0, "x", (255, 0, 0))
    assert "m" not in encoded(cells, None, colour=False)
    other = Cells(8, 2)
    other.write(0, 0, "x", (0, 255, 0))
    assert encoded(other, cells, colour=False) == ""


def test_texts_that_do_not_fit():
    cells = Cells(6, 1)
    assert cells.write(0, 4, "abc") == 6
    assert cells.write(0, 9, "abc") == 9
    cells.write_right(0, 3, "toolong")
    assert cells.text() == "    ab"


def test_bars():
    cells = Cells(12, 2)
    cells.bar(0, 0, 10, 0.55, (255, 0, 0), plain=False)
    cells.bar(1, 0, 10, 0.5, (255, 0, 0), plain=True)
    assert cells.text().split("\n") == ["█████▌", "[#####.....]"]
    for share in (-1.0, 0.0, 1.0, 2.0):
        cells.bar(0, 0, 10, share, (255, 0, 0), plain=False)
    assert cells.text().split("\n")[0] == "█" * 10
