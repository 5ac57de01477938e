"""The user's own files of a fight: a boss file with what lies beside it, and overlays.

They travel with a run, so that it can be measured, resumed and watched when the originals were changed or are gone: as
copies in its folder, as texts in an exported policy, in a recording and in what a learner sends to its workers.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from soulsai.config import config_from_toml
from soulsai.config.refusal import refusal
from soulsai.config.schema import DRAWN, STANDARD, Config
from soulsai.runs.files import write_files
from soulsgym.spec import is_path, load_fight
from soulsgym.spec import variants as variants_of
from soulsgym.spec.reader import read_text

if TYPE_CHECKING:
    from soulsai.runs.run import Run

Files = Mapping[str, str]
"""Text by place in a folder, such as boss/sentinel.toml."""
PLACE = re.compile(r"(boss|variant-\d{1,6})/(?!\.{1,2}$)[^/\\:\0]{1,200}")
"""Places come from other machines, too, and must not lead out of the folder."""


def with_absolute_paths(config: Config) -> Config:
    """The config with paths that mean the same from every folder."""
    return _with_names(config, _absolute(config.fight.boss), [_absolute(variant) for variant in config.fight.variants])


def files_of(config: Config) -> dict[str, str]:
    """The texts of the user's files that the config names, by place; a SoulsError if they are no fight."""
    return {} if config.world == "gym" else own_files(config.fight.boss, config.fight.variants)


def with_files_in(config: Config, folder: Path) -> Config:
    """The config that reads the user's files from their places in a folder."""
    return _with_names(config, *_names_in(config.fight.boss, config.fight.variants, folder))


def with_short_names(config: Config) -> Config:
    """The config with names of files instead of their paths, which are nobody else's business; for `unpack`."""
    return _with_names(config, file_name(config.fight.boss), [file_name(each) for each in config.fight.variants])


def config_of(run: Run) -> Config:
    """The config of a run, which reads the user's files from the run's own copies."""
    return with_own_copies(run, config_from_toml(run.config_toml, str(run.folder / "config.toml")))


def with_own_copies(run: Run, config: Config) -> Config:
    """The config of a run, reading its own copies of the user's files."""
    return with_files_in(config, run.data) if run.data.is_dir() else config


def changed_files(run: Run, config: Config) -> list[str]:
    """The files that a config names and that are other ones, or gone, since the run has copied them."""
    copies = _places(config.fight.boss, config.fight.variants) if run.data.is_dir() else {}
    return [name for name, place in copies.items() if _text(Path(name)) != _text(run.data / place)]


def unpack(config: Config, files: Files, source: str) -> Config:
    """The config that reads these files, until the process ends; ConfigError if one that it names is not among them."""
    return _with_names(config, *unpack_names(config.fight.boss, config.fight.variants, files, source))


def own_files(boss: str, variants: Sequence[str]) -> dict[str, str]:
    """The texts of the user's files that a boss and its variants are read from, by place."""
    found: dict[str, Path] = {}
    for number, variant in enumerate(variants, 1):
        spec = load_fight(boss, STANDARD if variant.startswith(DRAWN) else variant)
        files = list(spec.files)
        if is_path(variant):
            overlay = files.pop()
            found[f"variant-{number}/{overlay.name}"] = overlay
        if is_path(boss):
            folder = files[0].parent
            # All variants beside the boss, so that the agent can be measured on those it was not trained on.
            files += [folder / f"{files[0].stem}.{name}.toml" for name in variants_of(boss)[1:]]
            found |= {f"boss/{file.name}": file for file in files if file.parent == folder}
    return {place: read_text(file) for place, file in found.items()}


def unpack_names(boss: str, variants: Sequence[str], files: Files, source: str) -> tuple[str, list[str]]:
    """Boss and variants as names and as paths of these files, which stay until the process ends."""
    for place in files:
        if not PLACE.fullmatch(place):
            raise refusal(source, f"a file cannot lie at {place[:80]!r}")
    for name, place in _places(boss, variants).items():
        if place not in files:
            raise refusal(source, f"the file {name} that it names is not included; serve or export the run again")
    if not files:
        return boss, list(variants)
    digest = hashlib.sha256("\0".join(f"{place}\0{text}" for place, text in sorted(files.items())).encode())
    folder = _scratch() / digest.hexdigest()
    write_files(files, folder)
    return _names_in(boss, variants, folder)


def short_name(name: str) -> str:
    """A name as it is; of a path the name of the file."""
    return re.split(r"[/\\]", name)[-1]  # a path may be of another machine


def file_name(name: str) -> str:
    """The same, but a path stays one."""
    short = short_name(name)
    return short if is_path(short) == is_path(name) else f"./{short}"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _places(boss: str, variants: Sequence[str]) -> dict[str, str]:
    """Where the files lie that are named by a path."""
    places = {boss: f"boss/{short_name(boss)}"} if is_path(boss) else {}
    named = {variant: f"variant-{i}/{short_name(variant)}" for i, variant in enumerate(variants, 1) if is_path(variant)}
    return places | named


def _names_in(boss: str, variants: Sequence[str], folder: Path) -> tuple[str, list[str]]:
    places = _places(boss, variants)
    found = {name: str(folder.absolute() / place) for name, place in places.items()}
    return found.get(boss, boss), [found.get(variant, variant) for variant in variants]


def _with_names(config: Config, boss: str, variants: Sequence[str]) -> Config:
    return replace(config, fight=replace(config.fight, boss=boss, variants=tuple(variants)))


def _absolute(name: str) -> str:
    if not is_path(name):
        return name
    try:
        return str(Path(name).expanduser().absolute())
    except RuntimeError:  # nobody of that name has a home; whoever reads the file says so
        return name


@cache
def _scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="souls-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
