"""Bosses and variants in files of the user's own."""

import os
import re
import shutil
from pathlib import Path

import gymnasium
import pytest

import soulsgym  # noqa: F401 (registers the environments)
from soulsgym.errors import DataError, MisuseError
from soulsgym.spec import STANDARD, is_path, load_fight, variants
from soulsgym.spec.fight import DATA
from soulsgym.spec.reader import LARGEST_BYTES

OURS = DATA / "darksouls3"
SHARED = ("characters/knight.toml", "arenas.toml", "animations.toml")
BOSS = (OURS / "bosses" / "iudex.toml").read_text(encoding="utf-8")
OVERLAY = "[body]\nhp = 900\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a user's own with a boss and an overlay; it is the current one."""
    (tmp_path / "mine.toml").write_text(BOSS.replace("hp = 1037", "hp = 500"), encoding="utf-8")
    (tmp_path / "weak.toml").write_text(OVERLAY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(boss, variant=STANDARD):
    """The error that loading ends in; its text must name the file, the key and the value."""
    with pytest.raises(DataError) as caught:
        load_fight(str(boss), str(variant))
    error = caught.value
    assert str(error).startswith(f"{error.file}: {error.key} = ")
    assert "\n" not in str(error)
    return error


@pytest.mark.parametrize("name", ["a.toml", "./a", "a/b", "/a", "~/a", "a/b.toml", ".toml"])
def test_these_are_paths(name):
    assert is_path(name)


@pytest.mark.parametrize("name", ["iudex", "hard", "iudex.hard", "a.toml2", "~", ""])
def test_these_are_names(name):
    assert not is_path(name)


def test_boss_by_path(folder, spec, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    for path in ("mine.toml", "./mine.toml", str(folder / "mine.toml"), "~/mine.toml"):
        loaded = load_fight(path)
        assert loaded.boss.hp == 500.0
        assert (loaded.player, loaded.arena) == (spec.player, spec.arena)
        assert (loaded.boss_name, loaded.variant) == (path, STANDARD)
    assert loaded.files == (folder / "mine.toml", *(OURS / name for name in SHARED), OURS / "title.toml")


def test_variant_by_path(folder):
    loaded = load_fight("iudex", "weak.toml")
    assert loaded.boss.hp == 900.0
    assert (loaded.boss_name, loaded.variant) == ("iudex", "weak.toml")
    assert loaded.files[-1] == Path("weak.toml")
    assert load_fight("mine.toml", str(folder / "weak.toml")).boss.hp == 900.0


def test_names_say_what_they_were_loaded_by():
    loaded = load_fight("iudex", "hard")
    assert (loaded.boss_name, loaded.variant) == ("iudex", "hard")
    assert [file.name for file in loaded.files] == [
        "iudex.toml", "knight.toml", "arenas.toml", "animations.toml", "title.toml", "iudex.hard.toml",
    ]  # fmt: skip


def test_variants_of_a_boss_by_path_lie_beside_it(folder):
    (folder / "mine.frail.toml").write_text("[body]\nhp = 50\n", encoding="utf-8")
    assert variants("mine.toml") == variants(str(folder / "mine.toml")) == (STANDARD, "frail")
    assert load_fight("mine.toml", "frail").boss.hp == 50.0
    with pytest.raises(MisuseError, match=r"variant 'hard' of mine\.toml is not known"):
        load_fight("mine.toml", "hard")


def test_a_name_with_brackets_is_no_pattern(folder):
    shutil.copy("mine.toml", "mine[1].toml")
    (folder / "mine1.other.toml").write_text(OVERLAY, encoding="utf-8")
    (folder / "mine[1].frail.toml").write_text(OVERLAY, encoding="utf-8")
    assert variants("mine[1].toml") == (STANDARD, "frail")


@pytest.mark.parametrize("place", SHARED)
def test_files_beside_a_boss_take_the_place_of_ours(folder, place, spec):
    name, text = Path(place).name, (OURS / place).read_text(encoding="utf-8")
    changes = {"knight.toml": ("hp = 454", "hp = 400"), "arenas.toml": ("deadly_drop_m = ", "deadly_drop_m = 1")}
    old, new = changes.get(name, ('"IdleBattle"', '"Idle Battle"'))
    assert old in text
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    if name == "animations.toml":
        assert refusal("mine.toml").value == "IdleBattle"
    else:
        loaded = load_fight("mine.toml")
        assert (loaded.player, loaded.arena) != (spec.player, spec.arena)
        assert Path(name) in loaded.files
    assert load_fight("iudex") == spec, "only for the boss beside them"


def test_a_changed_file_is_read_again(folder):
    """Also one of the same size and age."""
    before = os.stat("weak.toml")
    assert load_fight("iudex", "weak.toml").boss.hp == 900.0
    Path("weak.toml").write_text(OVERLAY.replace("900", "800"), encoding="utf-8")
    os.utime("weak.toml", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load_fight("iudex", "weak.toml").boss.hp == 800.0
    assert load_fight("mine.toml").boss.hp == 500.0
    Path("mine.toml").write_text(BOSS, encoding="utf-8")
    assert load_fight("mine.toml").boss.hp == 1037.0
    assert load_fight("mine.toml", "weak.toml").boss.hp == 800.0


def test_an_unchanged_file_is_checked_once(folder):
    assert load_fight("mine.toml", "weak.toml") is load_fight("mine.toml", "weak.toml")


@pytest.mark.parametrize("role", ["boss", "variant"])
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("gone.toml", None, "cannot be read: No such file or directory"),
        ("gone/away.toml", None, "cannot be read: No such file or directory"),
        ("broken.toml", b"hp = [1, 2\n", "is not TOML"),
        ("latin.toml", b"name = '\xe4'\n", "is not UTF-8 text"),
        ("null\0.toml", None, "cannot be read: embedded null byte"),
        ("~nobody-of-this-name/a.toml", None, "cannot be found: Could not determine home directory"),
    ],
)
def test_bad_files_of_either_kind(folder, role, name, content, reason):
    if content is not None:
        (folder / name).write_bytes(content)
    error = refusal(name) if role == "boss" else refusal("iudex", name)
    assert error.file == name
    assert error.key == "file"
    assert reason in error.reason


@pytest.mark.parametrize("role", ["boss", "variant"])
def test_a_folder_is_no_file(folder, role):
    (folder / "folder.toml").mkdir()
    error = refusal("folder.toml") if role == "boss" else refusal("iudex", "folder.toml")
    assert "cannot be read" in error.reason


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_no_file_and_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.toml")
    assert refusal("pipe.toml").reason == "is a device or a pipe; give a file"


def test_a_huge_file_is_not_read(folder):
    with (folder / "huge.toml").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    assert refusal("iudex", "huge.toml").reason == "has 10,000,001 bytes; give at most 10,000,000"


def test_a_file_may_begin_with_the_mark_of_windows(folder):
    (folder / "weak.toml").write_text(OVERLAY, encoding="utf-8-sig")
    assert load_fight("iudex", "weak.toml").boss.hp == 900.0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything is readable here")
def test_a_file_nobody_may_read(folder):
    (folder / "mine.toml").chmod(0)
    assert "cannot be read: Permission denied" in refusal("mine.toml").reason


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_an_empty_overlay_is_refused(folder, text):
    (folder / "weak.toml").write_text(text, encoding="utf-8")
    assert refusal("iudex", "weak.toml").reason == "is empty; give the numbers that differ from the boss's own"


def test_an_empty_boss_is_refused(folder):
    (folder / "mine.toml").write_text("", encoding="utf-8")
    error = refusal("mine.toml")
    assert (error.file, error.key, error.reason) == ("mine.toml", "title", "is missing; give a string")


@pytest.mark.parametrize(
    ("text", "key", "value", "reason"),
    [
        ("[body]\npois = 3\n", "body.pois", 3, "is not a known key, did you mean 'poise'?"),
        ("[body]\nhp = 0\n", "body.hp", 0, "must be at least 1"),
        ("[move.swing]\nanimation = 'Atack3001'\n", "move.swing.animation", "Atack3001", "is not known, did you mean"),
        ("[draws]\nreach = 1\n", "draws", {"reach": 1}, "is not a known key"),
        ("body = 3\n", "body", 3, "must be a table"),
        ("character = 'knight_15'\n", "character", "knight_15", "must be 'knight', as the boss's file says"),
        ("title = 'eldenring'\n", "title", "eldenring", "must be 'darksouls3', as the boss's file says"),
        ("arena = 'moon'\n", "arena", "moon", "is not known; known are cemetery_of_ash, vordts_hall"),
        ("animations = 'moon'\n", "animations", "moon", "is not known; known are iudex, vordt"),
    ],
)
def test_a_bad_number_names_the_overlay(folder, text, key, value, reason):
    (folder / "weak.toml").write_text(text, encoding="utf-8")
    error = refusal("iudex", "weak.toml")
    assert (error.file, error.key, error.value) == ("weak.toml", key, value)
    assert reason in error.reason


def test_a_bad_boss_is_named_before_its_overlay(folder):
    (folder / "mine.toml").write_text(BOSS.replace("hp = 1037", "hp = -1"), encoding="utf-8")
    (folder / "weak.toml").write_text("[body]\npois = 3\n", encoding="utf-8")
    assert refusal("mine.toml", "weak.toml").file == "mine.toml"


def test_a_number_of_drawn_files_is_no_variant():
    with pytest.raises(
        MisuseError, match=r"variant 'drawn:7' is a number of drawn files, not one; .*souls variant draw"
    ):
        load_fight("iudex", "drawn:7")


def test_environments_take_paths(folder):
    single = gymnasium.make("SoulsGymIudexSim-v0", boss="mine.toml")
    many = gymnasium.make_vec("SoulsGymIudexSim-v0", num_envs=2, boss="mine.toml", variant=str(folder / "weak.toml"))
    observation, _ = single.reset(seed=1)
    assert observation["boss_hp"].tolist() == [500.0]
    observations, _ = many.reset(seed=1)
    assert observations["boss_hp"].ravel().tolist() == [900.0, 900.0]
    single = gymnasium.make("SoulsGymIudexSim-v0", boss=Path("mine.toml"), variant=folder / "weak.toml")
    assert single.reset(seed=1)[0]["boss_hp"].tolist() == [900.0]
    with pytest.raises(DataError, match=r"gone\.toml: file = 'gone\.toml': cannot be read"):
        gymnasium.make("SoulsGymIudexSim-v0", variant="gone.toml")


@pytest.mark.parametrize("given", [7, None, ["hard"]])
def test_environments_refuse_what_is_no_name(given):
    with pytest.raises(MisuseError, match=rf"variant {re.escape(repr(given))} is no string; give a name or the path"):
        gymnasium.make("SoulsGymIudexSim-v0", variant=given)
    with pytest.raises(MisuseError, match=r"boss .*; give "):
        gymnasium.make("SoulsGymIudexSim-v0", boss=given)
