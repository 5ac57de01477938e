"""A copy of the shipped data files that a test may damage."""

from __future__ import annotations

import pickle
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from soulsgym.errors import DataError
from soulsgym.spec import STANDARD, FightSpec, load_fight
from soulsgym.spec.fight import DATA

PARSE = tomllib.loads
PARSED: dict[str, bytes] = {}


class DataFolder:
    """Data files of one title in a folder of their own; keys are dotted paths, numbers in them count rows of a list."""

    def __init__(self, root: Path) -> None:
        self.root, self.path = root, root / "darksouls3"

    def content(self, file: str) -> dict[str, Any]:
        return parsed((self.path / file).read_text(encoding="utf-8"))

    def get(self, file: str, key: str) -> Any:
        holder, last = self._holder(self.content(file), key)
        return holder[last]

    def set(self, file: str, key: str, value: object) -> None:
        content = self.content(file)
        holder, last = self._holder(content, key)
        holder[last] = value
        self.write(file, content)

    def remove(self, file: str, key: str) -> None:
        content = self.content(file)
        holder, last = self._holder(content, key)
        del holder[last]
        self.write(file, content)

    def write(self, file: str, content: str | dict[str, Any]) -> None:
        text = content if isinstance(content, str) else tomli_w.dumps(content)
        if not isinstance(content, str):
            PARSED[text] = pickle.dumps(content)
        (self.path / file).write_text(text, encoding="utf-8")

    def load(self, variant: str = STANDARD) -> FightSpec:
        return load_fight("iudex", variant, data=self.root)

    def refusal(self, variant: str = STANDARD) -> DataError:
        """The error that loading ends in; its text must name the file, the key and the value."""
        with pytest.raises(DataError) as caught:
            self.load(variant)
        error = caught.value
        assert str(error).startswith(f"{error.file}: {error.key} = ")
        assert error.reason in str(error)
        return error

    def refuses(self, key: str, value: object, reason: str) -> None:
        """Loading ends in an error about this key and value, for this reason."""
        error = self.refusal()
        assert (error.key, error.value) == (key, value)
        assert reason in error.reason

    @staticmethod
    def _holder(content: Any, key: str) -> tuple[Any, Any]:
        *parents, last = [int(part) if part.isdigit() else part for part in key.split(".")]
        for part in parents:
            content = content[part if isinstance(content, list) else str(part)]
        return content, last if isinstance(content, list) else str(last)


def parsed(text: str) -> dict[str, Any]:
    """The content of a TOML file. Most tests change one of five files: the others need to be parsed only once."""
    if text not in PARSED:
        PARSED[text] = pickle.dumps(PARSE(text))
    return pickle.loads(PARSED[text])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setattr("soulsgym.spec.reader.tomllib.loads", parsed)
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    return DataFolder(folder)
