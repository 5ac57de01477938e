"""The user's own boss and overlays: found, copied, unpacked elsewhere, and refused in one sentence when wrong."""

import os

import pytest
from msgspec.structs import replace

from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.config.toml import toml_value
from soulsai.errors import ConfigError, RunError
from soulsai.runs.fight_files import (
    changed_files,
    config_of,
    files_of,
    own_files,
    parts_of,
    short_name,
    unpack,
    with_absolute_paths,
    with_own_copies,
    with_short_names,
)
from soulsai.runs.run import Run
from soulsgym.errors import DataError, MisuseError, SoulsError
from soulsgym.spec import load_fight

OVERLAY = '[body]\nhp = 700\nsource = "guess"\n'


def config_with(boss="iudex", variants=("standard",)):
    names = ", ".join(f'"{name}"' for name in variants)
    return with_settings(load_preset("smoke"), [f'fight.boss="{boss}"', f"fight.variants=[{names}]"])


@pytest.fixture
def overlay(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(OVERLAY)
    return file


def run_of(folder, config):
    return Run.create(folder, config_to_toml(config), preset="smoke", command=[], files=files_of(config))


def test_packaged_files_need_no_copy():
    assert files_of(config_with(variants=("standard", "hard", "drawn:4"))) == {}
    assert files_of(load_preset("cartpole-ppo")) == {}


def test_a_boss_comes_with_what_lies_beside_it(sentinel, overlay):
    files = files_of(config_with(sentinel, ("standard", overlay, "drawn:3")))
    assert set(files) == {
        "boss/sentinel.toml", "boss/sentinel.hard.toml", "boss/animations.toml", "boss/arenas.toml",
        "variant-2/my.toml",
    }  # fmt: skip
    assert files["variant-2/my.toml"] == OVERLAY
    assert files["boss/sentinel.toml"] == sentinel.read_text()


def test_paths_mean_the_same_from_every_folder(overlay, monkeypatch):
    monkeypatch.chdir(overlay.parent)
    fight = with_absolute_paths(config_with(variants=("hard", "my.toml", "drawn:2"))).fight
    assert fight.variants == ("hard", str(overlay), "drawn:2")
    assert fight.boss == "iudex"


def test_a_run_plays_its_copies_when_the_originals_are_gone_or_changed(sentinel, overlay, tmp_path):
    config = config_with(sentinel, ("hard", overlay))
    run = run_of(tmp_path / "run", config)
    assert str(sentinel) in run.config_toml
    assert changed_files(run, config) == []
    before = [load_fight(config.fight.boss, variant).boss for variant in config.fight.variants]
    overlay.write_text(OVERLAY.replace("700", "900"))
    for file in sentinel.parent.iterdir():
        file.unlink()
    assert changed_files(run, config) == [str(sentinel), str(overlay)]
    fight = config_of(run).fight
    assert [load_fight(fight.boss, variant).boss for variant in fight.variants] == before
    assert before[1].hp == 700.0


def test_one_overlay_twice(overlay, tmp_path):
    run = run_of(tmp_path / "run", config_with(variants=(overlay, "standard", overlay)))
    fight = config_of(run).fight
    assert [load_fight("iudex", variant).boss.hp for variant in fight.variants] == [700.0, 1037.0, 700.0]


def test_line_endings_of_windows_are_no_change(overlay, tmp_path):
    overlay.write_bytes(OVERLAY.replace("\n", "\r\n").encode())
    config = config_with(variants=(overlay,))
    assert changed_files(run_of(tmp_path / "run", config), config) == []


def test_a_run_without_copies_plays_what_its_config_names(overlay, tmp_path):
    config = config_with(variants=(overlay,))
    run = Run.create(tmp_path / "run", config_to_toml(config), preset="smoke", command=[])
    assert with_own_copies(run, config) == config


def test_files_travel_as_texts(sentinel, overlay):
    config = config_with(sentinel, ("standard", overlay))
    told = with_short_names(config)
    assert (told.fight.boss, told.fight.variants) == ("sentinel.toml", ("standard", "my.toml"))
    fight = unpack(told, files_of(config), "letter").fight
    assert load_fight(fight.boss, fight.variants[1]) == load_fight(str(sentinel), str(overlay))
    assert files_of(unpack(told, files_of(config), "letter")) == files_of(config)


def test_a_file_that_did_not_come_is_named(overlay):
    with pytest.raises(ConfigError, match=r"letter: the file .*my.toml that it names is not included"):
        unpack(config_with(variants=(overlay,)), {}, "letter")


@pytest.mark.parametrize(
    "place",
    ["../my.toml", "boss/../../my.toml", "/my.toml", "boss/a/b.toml", "boss/..", "boss\\my.toml", "variant-1/c:x"],
)
def test_places_do_not_lead_out_of_the_folder(place):
    with pytest.raises(ConfigError, match="a file cannot lie at"):
        unpack(config_with(), {place: OVERLAY}, "letter")


def test_names_of_other_systems():
    assert short_name("C:\\bosses\\my.toml") == short_name("/bosses/my.toml") == short_name("my.toml") == "my.toml"
    assert short_name("hard") == "hard"


def config_with_parts(*files):
    return with_settings(load_preset("smoke"), [f"fight.parts={toml_value(tuple(map(str, files)))}"])


def test_python_files_are_copied_and_never_travel(own_parts, tmp_path):
    config = config_with_parts(own_parts, own_parts)
    assert files_of(config) == {}
    assert parts_of(config) == dict.fromkeys(["parts-1/my_parts.py", "parts-2/my_parts.py"], own_parts.read_text())
    assert parts_of(replace(config, world="gym")) == {}
    assert with_short_names(config).fight.parts == ("my_parts.py", "my_parts.py")
    with pytest.raises(ConfigError, match="a file cannot lie at 'parts-1/my_parts"):
        unpack(config, parts_of(config), "letter")
    run = Run.create(tmp_path / "run", config_to_toml(config), preset="", command=[], files=parts_of(config))
    assert config_of(run).fight.parts == tuple(str(run.data / f"parts-{i}" / "my_parts.py") for i in (1, 2))
    assert changed_files(run, config) == []
    own_parts.write_bytes(b"\xef\xbb\xbf" + own_parts.read_bytes().replace(b"\n", b"\r\n"))
    assert changed_files(run, config) == []
    own_parts.unlink()
    assert changed_files(run, config) == [str(own_parts)]


def test_python_files_mean_the_same_from_every_folder(own_parts, monkeypatch):
    monkeypatch.chdir(own_parts.parent)
    assert with_absolute_paths(config_with_parts("my_parts.py")).fight.parts == (str(own_parts),)
    assert with_absolute_paths(config_with_parts("~/x.py")).fight.parts[0].endswith("/x.py")
    assert "~" not in with_absolute_paths(config_with_parts("~/x.py")).fight.parts[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        ("", "is empty"),
        ("a = ", "is not TOML"),
        (b"hp = \xff", "is not UTF-8"),
        ("[body]\nhpp = 3\n", "body.hpp = 3: is not a known key, did you mean 'hp'?"),
        ('[body]\nhp = -3\nsource = "guess"\n', "body.hp = -3: must be at least"),
        ('[move.idle]\nanimation = "IdleBatle"\n', "move.idle.animation = 'IdleBatle': is not known, did you mean"),
    ],
)
def test_bad_overlays_are_named_with_file_and_key(tmp_path, content, message):
    file = tmp_path / "my.toml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        own_files("iudex", [str(file)])
    assert str(file) in str(caught.value)
    assert message in str(caught.value)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(SoulsError, match="Is a directory"):
        own_files("iudex", [f"{tmp_path}/"])


def test_unknown_names():
    with pytest.raises(MisuseError, match="boss 'iudx' is not known, did you mean 'iudex'"):
        own_files("iudx", ["standard"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(overlay, tmp_path):
    place = tmp_path / "closed"
    place.mkdir(mode=0o500)
    with pytest.raises(RunError, match="permission is missing"):
        run_of(place / "run", config_with(variants=(overlay,)))
