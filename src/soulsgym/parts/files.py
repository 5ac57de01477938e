"""Python files of the user's own with parts in them, which `souls` imports.

What a file registers is known by its name only while the files of a run are in use: two runs may each have their own
version of a file.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from soulsgym.errors import MisuseError, SoulsError
from soulsgym.parts.registry import EVERYWHERE, Names, use_names, used_names

ALONE = "; a file of parts stands alone: put what it needs into it, or install that as a package"
LONGEST = 300
"""Characters of an exception's own text that an error shows."""

_registered: dict[str, Names] = {}
"""What files have registered, by the digest of their text: a file and its copy are imported once."""


@contextmanager
def parts_in(files: Sequence[str | Path]) -> Iterator[None]:
    """Within the block, the parts that these files register are known by their names."""
    names, holders = dict(used_names()), dict[tuple[str, str], Path]()
    for file in map(Path, files):
        for key, entry in _names_in(file).items():
            if key in names and names[key] is not entry:
                kind, name = key
                where = f"{holders[key]} too" if key in holders else f"{names[key].origin} already"
                raise MisuseError(f"{file}: {kind} {name!r} is in {where}; choose another name")
            names[key], holders[key] = entry, file
    with use_names(names):
        yield


def read_parts(file: Path) -> str:
    """The text of a file of parts, or a MisuseError that says why it cannot be read."""
    if os.path.isdir(file):  # Path.is_dir raises where the name is too long
        raise MisuseError(f"{file}: is a folder; give a Python file in it")
    if file.suffix != ".py":
        raise MisuseError(f"{file}: is no Python file; give one that ends in .py")
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise MisuseError(f"{file}: there is no such file; give the path of a Python file with parts") from error
    except UnicodeDecodeError as error:
        raise MisuseError(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise MisuseError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def parts_digest(text: str) -> str:
    """What tells the text of a file from that of another."""
    return hashlib.sha256(text.encode()).hexdigest()


def _names_in(file: Path) -> Names:
    text = read_parts(file)
    digest = parts_digest(text)
    if digest not in _registered:
        _registered[digest] = _import(file, text, f"{file.stem}@{digest[:8]}")
    return _registered[digest]


def _import(file: Path, text: str, name: str) -> Names:
    """What the file registers when it is run."""
    module = ModuleType(name)
    module.__file__ = str(file)
    names = dict(EVERYWHERE)
    sys.modules[name] = module  # dataclasses and Numba look there for what they are given
    try:
        with use_names(names):
            exec(compile(text, str(file), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _cannot_import(file, error) from error
    found = {key: entry for key, entry in names.items() if EVERYWHERE.get(key) is not entry}
    if not found:
        del sys.modules[name]
        raise MisuseError(f"{file}: registers no part; put @term(...) or @register(...) above what it defines")
    return found


def _cannot_import(file: Path, error: BaseException) -> MisuseError:
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())[:LONGEST]
    said = text if isinstance(error, SoulsError) else f"{type(error).__name__}: {text}"
    return MisuseError(f"{file}{_line(file, error)}: {said}{ALONE if isinstance(error, ImportError) else ''}")


def _line(file: Path, error: BaseException) -> str:
    """The last line of the file that was run, in words; nothing if none was."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(file) else (lines or [None])[-1]
    return "" if line is None else f", line {line}"
