"""The user's own files of a fight: a boss file with what lies beside it, overlays, and Python files with parts.

They travel with a run, so that it can be measured, resumed and watched when the originals were changed or are gone: as
copies in its folder, as texts in an exported policy, in a recording and in what a learner sends to its workers. Python
files are only copied: they are never sent anywhere, and never taken from anywhere.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from soulsai.config import config_from_toml
from soulsai.config.refusal import refusal
from soulsai.config.schema import DRAWN, STANDARD, Config
from soulsai.runs.files import reason, write_files
from soulsai.runs.summary import ZOO, run_folder
from soulsgym.errors import MisuseError, RecordingError
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
    fight = config.fight
    paths = [_absolute(file, always=True) for file in fight.parts]
    config = with_demos(config, [_absolute(file, always=True) for file in config.demos.files])
    if start := config.run.start_from:
        start = start if start.startswith(ZOO) else _absolute(str(run_folder(start)), always=True)
        config = replace(config, run=replace(config.run, start_from=start))
    return with_parts(_with_names(config, _absolute(fight.boss), [_absolute(each) for each in fight.variants]), paths)


def files_of(config: Config) -> dict[str, str]:
    """The texts of the user's boss and overlays that the config names, by place; a SoulsError if they are no fight."""
    return {} if config.world == "gym" else own_files(config.fight.main_boss, config.fight.variants)


def parts_of(config: Config) -> dict[str, str]:
    """The texts of the user's Python files that the config names, by place; a MisuseError if one cannot be read."""
    if config.world == "gym" or not config.fight.parts:
        return {}
    from soulsgym.parts.files import (
        read_parts,  # parts load Numba, which whoever only supervises workers has no use for
    )

    return {
        place: read_parts(Path(file)) for file, place in zip(config.fight.parts, _parts_places(config), strict=True)
    }


def with_files_in(config: Config, folder: Path) -> Config:
    """The config that reads the user's files from their places in a folder."""
    parts = [str(folder.absolute() / place) for place in _parts_places(config)]
    return with_parts(_with_names(config, *_names_in(config.fight.boss, config.fight.variants, folder)), parts)


def with_short_names(config: Config) -> Config:
    """The config with names of files instead of their paths, which are nobody else's business; for `unpack`."""
    fight = config.fight
    parts = [short_name(file) for file in fight.parts]
    config = with_demos(config, [short_name(file) for file in config.demos.files])
    return with_parts(_with_names(config, file_name(fight.boss), [file_name(each) for each in fight.variants]), parts)


def with_demos(config: Config, files: Sequence[str]) -> Config:
    """The config with other recordings to learn from."""
    return replace(config, demos=replace(config.demos, files=tuple(files)))


def with_parts(config: Config, files: Sequence[str]) -> Config:
    """The config with other Python files."""
    return replace(config, fight=replace(config.fight, parts=tuple(files)))


def remove_parts(config: Config, source: str) -> Config:
    """The config of a policy that is played without the user's Python files; ConfigError if it cannot be."""
    if not config.fight.parts:
        return config
    from soulsgym.parts.registry import known_names

    for key, kind, name in (
        ("encoder.name", "encoder", config.encoder.name),
        ("actions.preset", "action set", config.actions.preset),
    ):
        if name not in known_names(kind):
            files = ", ".join(short_name(file) for file in config.fight.parts)
            problem = f"{key} = {name!r} is a part of {files}, which an exported policy does not hold; play the run"
            raise refusal(source, problem)
    return with_parts(config, ())


def config_of(run: Run) -> Config:
    """The config of a run, which reads the user's files from the run's own copies."""
    return with_own_copies(run, config_from_toml(run.config_toml, str(run.folder / "config.toml")))


def with_own_copies(run: Run, config: Config) -> Config:
    """The config of a run, reading its own copies of the user's files."""
    if run.demos.is_dir():
        config = with_demos(config, [str(run.demos.absolute() / place) for place in _demo_places(config)])
    return with_files_in(config, run.data) if run.data.is_dir() else config


def demos_of(config: Config) -> dict[str, bytes]:
    """The recordings that a config names, by place; RecordingError if one cannot be read."""
    found = {}
    for file, place in zip(config.demos.files, _demo_places(config), strict=True):
        try:
            found[place] = Path(file).read_bytes()
        except OSError as error:
            raise RecordingError(
                f"{file}: cannot be read: {reason(error)}; give a recording in .npz or .json"
            ) from error
    return found


def changed_files(run: Run, config: Config) -> list[str]:
    """The files that a config names and that are other ones, or gone, since the run has copied them."""
    if not run.data.is_dir():
        return []
    parts = dict(zip(config.fight.parts, _parts_places(config), strict=True))
    copies = _places(config.fight.boss, config.fight.variants) | parts
    return [name for name, place in copies.items() if _text(Path(name)) != _text(run.data / place)]


def unpack(config: Config, files: Files, source: str) -> Config:
    """The config that reads these files, until the process ends; ConfigError if one that it names is not among them."""
    return _with_names(config, *unpack_names(config.fight.boss, config.fight.variants, files, source))


def needed_parts(config: Config) -> tuple[tuple[str, str], ...]:
    """Name and digest of each of the user's Python files: what a worker must have, too."""
    texts = parts_of(config)
    if not texts:
        return ()
    from soulsgym.parts.files import parts_digest

    return tuple((short_name(place), parts_digest(text)) for place, text in texts.items())


def parts_here(needed: Sequence[tuple[str, str]], given: Sequence[Path]) -> list[str]:
    """Copies, until the process ends, of those given files that a learner needs its workers to have.

    MisuseError if one is missing, is another one than the learner's, or is not needed.
    """
    if not (needed or given):
        return []
    from soulsgym.parts.files import parts_digest, read_parts

    texts = {file: read_parts(file) for file in given}
    here = {parts_digest(text): file for file, text in texts.items()}
    for name, digest in needed:
        if digest not in here:
            raise _other_parts(name, digest, [file for file in given if file.name == name])
    for digest, file in here.items():
        if digest not in [each for _, each in needed]:
            raise MisuseError(f"--parts {file}: the learner's run does not use this file; leave it out")
    files = {f"parts-{number}/{here[digest].name}": texts[here[digest]] for number, (_, digest) in enumerate(needed, 1)}
    return [str(_write_scratch(files) / place) for place in files]


def _other_parts(name: str, digest: str, same_name: Sequence[Path]) -> MisuseError:
    if same_name:
        return MisuseError(
            f"{same_name[0]} differs from the learner's {name} (sha256 {digest[:12]}...): copy the learner's file here"
        )
    return MisuseError(
        f"the learner's run needs its file {name} (sha256 {digest[:12]}...) on every machine, and code is never sent: "
        f"get a copy from the person who started the run, read it, and join with --parts {name}"
    )


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
    return _names_in(boss, variants, _write_scratch(files))


def short_name(name: str) -> str:
    """A name as it is; of a path the name of the file."""
    return re.split(r"[/\\]", name)[-1]  # a path may be of another machine


def file_name(name: str) -> str:
    """The same, but a path stays one."""
    short = short_name(name)
    return short if is_path(short) == is_path(name) else f"./{short}"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig", errors="replace")
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


def _parts_places(config: Config) -> list[str]:
    return [f"parts-{number}/{short_name(file)}" for number, file in enumerate(config.fight.parts, 1)]


def _demo_places(config: Config) -> list[str]:
    return [f"{number}-{short_name(file)}" for number, file in enumerate(config.demos.files, 1)]


def _absolute(name: str, *, always: bool = False) -> str:
    if not (always or is_path(name)):
        return name
    try:
        return str(Path(name).expanduser().absolute())
    except RuntimeError:  # nobody of that name has a home; whoever reads the file says so
        return name


def _write_scratch(files: Files) -> Path:
    """A folder with these files, until the process ends."""
    digest = hashlib.sha256("\0".join(f"{place}\0{text}" for place, text in sorted(files.items())).encode())
    folder = _scratch() / digest.hexdigest()
    write_files(files, folder)
    return folder


@cache
def _scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="souls-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
