"""What the pages tell users is true: commands parse, presets and settings exist, links lead somewhere."""

import re
import shlex
from functools import cache
from pathlib import Path

import msgspec
import pytest
import typer

from soulsai.algorithms.findings import MEANINGS
from soulsai.cli.main import COMMANDS, app, load_command
from soulsai.config import Config, config_from_toml, load_preset, preset_names, with_settings
from soulsai.telemetry.metrics import METRICS, metric
from soulsgym.parts.rewards.terms import TERMS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CONFIG_FILE = re.compile(r"# (\S+\.toml)\nextends = ")
SECTIONS = [name for name in Config.__struct_fields__ if isinstance(getattr(Config(), name), msgspec.Struct)]
KEY = re.compile(rf"(?:{'|'.join(SECTIONS)})\.(?!py$|md$)[a-z_]+(?:\.[a-z_]+)?")
METRIC = re.compile(rf"(?:{'|'.join({name.split('/')[0] for name in METRICS if '/' in name})})/[a-z_]+")
PRESET_LIKE = re.compile(r"(?:recipe|cartpole|lunarlander|smoke)(?:-[a-z-]+)?")
FUNCTION = re.compile(r"`(\w+)` in\s+`([\w/]+\.py)`")
GUIDE_TERM = "dodge"
"""The reward term that a reader of the guide to rewards adds."""


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(page, *languages):
    return [text for language, text in BLOCK.findall(text_of(page)) if language in languages]


def prose(page):
    return BLOCK.sub("", text_of(page))


def code_in_prose(page):
    return INLINE.findall(prose(page))


def commands(program):
    """Every call of a program in the shell blocks, and every one that the text names."""
    for page in PAGES:
        lines = [line for block in blocks(page, "sh", "bash") for line in block.splitlines()]
        for text in (*lines, *code_in_prose(page)):
            if text.split(" ")[0] == program:
                yield page.relative_to(ROOT).as_posix(), text


def words_of(text):
    """The arguments; an optional one in brackets counts as given, and nothing is written to files."""
    plain = re.sub(r"\[([A-Z]+)\]", r"\1", text.partition(" > ")[0])
    return shlex.split(plain, comments=True)[1:]


@cache
def souls():
    command = typer.main.get_command(app)
    command.commands = {name: load_command(name) for name in COMMANDS}
    return command


def leaf_of(words):
    """The verb that the words lead to, and the arguments left for it."""
    command, name, rest = souls(), "souls", list(words)
    while hasattr(command, "commands") and rest:
        name = "list" if "list" in command.commands and rest[0] not in command.commands else rest.pop(0)
        assert name in command.commands, f"souls has no {name}"
        command = command.commands[name]
    return name, command, rest


def parameters_of(words):
    """What the parser that users meet makes of the words; nothing is run."""
    name, command, rest = leaf_of(words)
    return command.make_context(name, rest, resilient_parsing=not rest).params


@cache
def config_files():
    """The configs that pages tell the reader to write, by file name."""
    found = {}
    for page in PAGES:
        for block in blocks(page, "toml"):
            if named := CONFIG_FILE.match(block):
                found[named[1]] = config_from_toml(block, named[1])
    return found


def begun_with(name):
    """The config of a preset, of a file on a page, or of the default; a name in capitals stands for any."""
    if name in config_files():
        return config_files()[name]
    return load_preset("iudex" if not name or name.isupper() else name)


def verbs(command=None, path=()):
    command = command or souls()
    if not hasattr(command, "commands"):
        return [path]
    return [leaf for name, one in command.commands.items() for leaf in verbs(one, (*path, name))]


def is_checked(code):
    return any(kind.fullmatch(code.partition("=")[0]) for kind in (KEY, METRIC, PRESET_LIKE))


def rows_about_presets():
    """Rows of tables that say what a setting is in a preset: preset, keys, cell."""
    for page in PAGES:
        preset, at = "", (0, 0)
        for line in prose(page).splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            heads = [re.fullmatch(r"in `([a-z-]+)`", cell) for cell in cells]
            if "setting" in cells and any(heads):
                preset, at = (
                    next(head[1] for head in heads if head),
                    (cells.index("setting"), [*map(bool, heads)].index(True)),
                )
            elif not cells:
                preset = ""
            elif preset and INLINE.search(cells[at[0]]):
                yield preset, tuple(INLINE.findall(cells[at[0]])), cells[at[1]]


def shown(value):
    """A value as the words and numbers that a table shows."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, tuple):
        return [float(one) for one in value]
    return [value if isinstance(value, str) else float(value)]


SOULS = sorted(set(commands("souls")))
NAMED = sorted(
    {(page.relative_to(ROOT).as_posix(), code) for page in PAGES for code in filter(is_checked, code_in_prose(page))}
)


def test_there_is_something_to_check():
    assert len(SOULS) > 60
    assert {"mine.toml", "acrobot.toml"} <= config_files().keys()


@pytest.mark.parametrize(("page", "text"), SOULS)
def test_command_exists_with_its_options(page, text):
    parameters = parameters_of(words_of(text))
    if {"settings", "preset"} <= parameters.keys():
        settings = [setting for setting in parameters["settings"] or [] if not setting.isupper()]
        config = with_settings(begun_with("" if parameters.get("resume") else parameters["preset"]), settings)
        assert set(config.reward.weights) <= {*TERMS, GUIDE_TERM}
        assert set(config.run.accept) <= set(MEANINGS)


def test_every_command_is_in_the_reference():
    told = {tuple(words_of(text)) for page, text in SOULS if page == "docs/commands.md"}
    missing = [verb for verb in verbs() if not any(words[: len(verb)] == verb for words in told)]
    assert missing == []


def test_make_targets_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    called = {words_of(text)[0] for _, text in commands("make") if words_of(text)}
    assert called >= {"train", "test"}
    assert called <= set(targets)


@pytest.mark.parametrize(("page", "text"), NAMED)
def test_named_settings_metrics_and_presets_exist(page, text):
    if KEY.fullmatch(text):
        section, key, *entry = text.split(".")
        assert hasattr(getattr(Config(), section), key)
        assert not entry or entry[0] in TERMS
    elif "=" in text:
        with_settings(Config(), [text])
    elif METRIC.fullmatch(text):
        metric(text)
    else:
        assert text in preset_names()


@pytest.mark.parametrize(("preset", "keys", "cell"), list(rows_about_presets()))
def test_tables_say_what_is_in_the_preset(preset, keys, cell):
    config = load_preset(preset)
    values = [getattr(getattr(config, section), key) for section, key in (key.split(".") for key in keys)]
    told = re.findall(r"-?\d[\d,]*(?:\.\d+)?(?!\w)|[a-z]\w+", cell)
    numbers = [float(word.replace(",", "")) if word[0] in "-0123456789" else word for word in told]
    assert numbers == [word for value in values for word in shown(value)]


def test_every_preset_is_in_the_reference():
    reference = text_of(ROOT / "docs" / "commands.md").partition("| preset | trains |")[2]
    rows = re.findall(r"^\| (`.*?) \|.*\|$", reference, re.MULTILINE)
    table = [name for row in rows for name in INLINE.findall(row)][: len(preset_names())]
    assert sorted(table) == sorted(preset_names())


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "algorithms").glob("*.md")), ids=lambda page: page.stem)
def test_named_functions_are_where_the_page_says(page):
    named = FUNCTION.findall(prose(page))
    assert named
    for function, file in named:
        places = [folder / file for folder in (ROOT / "src" / "soulsai", ROOT / "src" / "soulsai" / "ops")]
        source = next(place for place in places if place.exists()).read_text(encoding="utf-8")
        assert f"def {function}(" in source, f"{file} has no {function}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    targets = [target.partition("#")[0] for target in LINK.findall(prose(page)) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def anchors_of(page):
    """The anchors of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_headings_lead_somewhere(page):
    links = [target.partition("#") for target in LINK.findall(prose(page)) if "://" not in target and "#" in target]
    places = [((page.parent / file if file else page).resolve(), anchor) for file, _, anchor in links]
    assert [(file.name, anchor) for file, anchor in places if anchor not in anchors_of(file)] == []
