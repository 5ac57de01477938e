"""Backups of save games: found, copied, checked, restored, and nothing ever lost."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from soulsgym.errors import GameError, MisuseError
from soulsgym.game import proxy, saves

SAVE = "DS30000.sl2"


def nobody():
    return []


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "DarkSoulsIII" / "0110000100000001"
    folder.mkdir(parents=True)
    (folder / SAVE).write_bytes(b"first" * 1000)
    (folder / "DS30000.sl2.bak").write_bytes(b"older")
    return folder


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def test_backup_is_a_true_copy(folder, store):
    made = saves.backup(folder, store=store)
    assert made.path.parent == store
    assert made.contents() == {SAVE: b"first" * 1000, "DS30000.sl2.bak": b"older"}
    assert made.files == {SAVE: 5000, "DS30000.sl2.bak": 5}
    assert (made.folder, made.title, made.reason) == (folder, "darksouls3", saves.BY_HAND)
    assert 0 <= made.age_s < 60
    assert saves.backups(store=store) == [made]


def test_backups_never_overwrite_each_other(folder, store):
    made = []
    for number in range(4):
        (folder / SAVE).write_bytes(b"%d" % number)
        made.append(saves.backup(folder, store=store))
    assert len({one.path for one in made}) == 4
    assert [one.contents()[SAVE] for one in made] == [b"0", b"1", b"2", b"3"]
    assert saves.backups(store=store) == made[::-1]


def test_folder_without_a_save_is_named(tmp_path, store):
    with pytest.raises(GameError, match=r"there is no DS30000\.sl2 in it"):
        saves.backup(tmp_path, store=store)
    assert not store.exists()


def test_store_that_cannot_be_written_is_named_with_what_to_look_at(folder, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(GameError, match=r"file.*cannot be written or read \(.+\); look at its rights"):
        saves.backup(folder, store=tmp_path / "file" / "store")
    assert (folder / "DS30000.sl2").is_file()


def test_title_without_known_saves_is_named():
    with pytest.raises(MisuseError, match="did you mean 'eldenring'"):
        saves.load_save_layout("elden_ring")


def test_unfinished_backup_is_not_listed_and_cleared_away(folder, store, monkeypatch):
    def broken(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(saves.ZipFile, "writestr", broken)
        with pytest.raises(GameError, match="No space left on device"):
            saves.backup(folder, store=store)
    assert list(store.iterdir()) == []
    whole = saves.backup(folder, store=store)
    content = whole.path.read_bytes()
    for name, piece in (("cut", content[:-30]), ("empty", b""), ("strange", b"not a zip" * 9)):
        (store / f"{name}.zip").write_bytes(piece)
    assert saves.backups(store=store) == [whole]


def test_folders_below_the_save_are_copied_too(folder, store):
    (folder / "more" / "deep").mkdir(parents=True)
    (folder / "more" / "deep" / "file").write_bytes(b"x")
    made = saves.backup(folder, store=store)
    (folder / "more" / "deep" / "file").unlink()
    saves.restore(made, running=nobody)
    assert (folder / "more" / "deep" / "file").read_bytes() == b"x"


def test_save_that_changes_while_it_is_copied_is_read_again(folder, store, monkeypatch):
    monkeypatch.setattr(saves, "PAUSE_S", 0.0)
    read, calls = saves._contents, []

    def and_saved_meanwhile(place):
        contents = read(place)
        calls.append(place)
        if len(calls) == 1:
            (folder / SAVE).write_bytes(b"second")
        return contents

    monkeypatch.setattr(saves, "_contents", and_saved_meanwhile)
    made = saves.backup(folder, store=store)
    assert made.contents()[SAVE] == b"second"
    assert len(calls) == 3


def test_save_that_never_rests_is_an_error(folder, store, monkeypatch):
    monkeypatch.setattr(saves, "PAUSE_S", 0.0)
    read, count = saves._contents, iter(range(100))

    def and_saved_meanwhile(place):
        contents = read(place)
        (folder / SAVE).write_bytes(b"%d" % next(count))
        return contents

    monkeypatch.setattr(saves, "_contents", and_saved_meanwhile)
    with pytest.raises(GameError, match="changed while it was copied, 3 times"):
        saves.backup(folder, store=store)
    assert not store.exists()


def test_restore_brings_back_every_file_and_keeps_what_it_replaced(folder, store):
    made = saves.backup(folder, store=store)
    (folder / SAVE).write_bytes(b"ruined")
    replaced = saves.restore(made, running=nobody)
    assert (folder / SAVE).read_bytes() == b"first" * 1000
    assert replaced.contents()[SAVE] == b"ruined"
    assert replaced.reason == saves.BEFORE_RESTORE
    assert sorted(file.name for file in folder.iterdir()) == [SAVE, "DS30000.sl2.bak"]
    saves.restore(replaced, running=nobody)
    assert (folder / SAVE).read_bytes() == b"ruined"


def test_restore_into_another_folder_or_a_lost_one(folder, store, tmp_path):
    made = saves.backup(folder, store=store)
    assert saves.restore(made, tmp_path / "new" / "place", running=nobody) is None
    assert (tmp_path / "new" / "place" / SAVE).read_bytes() == b"first" * 1000


def test_restore_refuses_while_the_game_runs(folder, store):
    made = saves.backup(folder, store=store)
    (folder / SAVE).write_bytes(b"newer")
    with pytest.raises(GameError, match=r"the game runs \(process 17, 18\).*close it"):
        saves.restore(made, running=lambda: [17, 18])
    assert (folder / SAVE).read_bytes() == b"newer"
    assert len(saves.backups(store=store)) == 1


@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "a file is gone"])
def test_damaged_backup_is_not_restored(folder, store, damage):
    made = saves.backup(folder, store=store)
    content = bytearray(made.path.read_bytes())
    if damage == "gone":
        made.path.unlink()
    elif damage == "cut":
        made.path.write_bytes(content[:40])
    elif damage == "changed":
        content[30 + len(SAVE) + 4] ^= 1  # behind the header of the first file
        made.path.write_bytes(content)
    else:
        with ZipFile(made.path, "w") as archive:
            archive.writestr(SAVE, b"first" * 1000)
    (folder / SAVE).write_bytes(b"newer")
    with pytest.raises(GameError, match="this backup is damaged"):
        saves.restore(made, running=nobody)
    assert (folder / SAVE).read_bytes() == b"newer"


def test_failed_restore_leaves_the_save_whole(folder, store, monkeypatch):
    made = saves.backup(folder, store=store)
    (folder / SAVE).write_bytes(b"newer")

    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(GameError, match="Input/output error"):
        saves.restore(made, running=nobody)
    assert (folder / SAVE).read_bytes() == b"newer"
    assert sorted(file.name for file in folder.iterdir()) == [SAVE, "DS30000.sl2.bak"]


@pytest.mark.parametrize("name", ["../../escape", "/etc/escape", "a/../../b", r"..\escape", "C:escape"])
def test_backup_that_points_outside_is_not_one(folder, store, name):
    made = saves.backup(folder, store=store)
    with ZipFile(made.path, "a") as archive:
        archive.writestr(ZipInfo(name), b"x")
    assert saves.backups(store=store) == []


@pytest.mark.parametrize("about", [b"not json", b"[]", b"{}", b'{"format": 1}', b'{"format": 2, "made": 3}'])
def test_a_zip_without_the_right_words_is_no_backup(store, about):
    store.mkdir()
    with ZipFile(store / "a.zip", "w") as archive:
        archive.writestr(saves.ABOUT, about)
    assert saves.backups(store=store) == []


def test_newest_by_hand_is_meant_without_a_name(folder, store):
    with pytest.raises(GameError, match="there is no backup of darksouls3"):
        saves.find_backup(store=store)
    first = saves.backup(folder, store=store)
    saves.restore(first, running=nobody)
    assert len(saves.backups(store=store)) == 2
    assert saves.find_backup(store=store) == first
    assert saves.find_backup(first.name, store=store) == first
    with pytest.raises(GameError, match="there is no backup 'nothing' of darksouls3"):
        saves.find_backup("nothing", store=store)


def test_store_is_in_the_users_data_directory():
    linux = saves.store_folder("darksouls3", {"XDG_DATA_HOME": "/data"}, "linux")
    assert linux == Path("/data/soulsgym/saves/darksouls3")
    assert saves.store_folder("darksouls3", {}, "linux") == Path.home() / ".local/share/soulsgym/saves/darksouls3"
    windows = saves.store_folder("eldenring", {"LOCALAPPDATA": "/local"}, "win32")
    assert windows == Path("/local/soulsgym/saves/eldenring")


def put_save(prefix, user="steamuser", account="01", file=SAVE, folder="DarkSoulsIII"):
    place = prefix / "drive_c" / "users" / user / "AppData" / "Roaming" / folder / account
    place.mkdir(parents=True)
    (place / file).write_bytes(b"x")
    return place


def test_saves_of_proton_are_found_in_every_library(tmp_path):
    steam = tmp_path / ".local/share/Steam"
    one = put_save(steam / "steamapps/compatdata/374320/pfx")
    other = tmp_path / "disk"
    (steam / "steamapps/libraryfolders.vdf").write_text(
        f'"libraryfolders"\n{{ "0" {{ "path"\t\t"{steam}" }} "1" {{ "path" "{other}" }} }}'
    )
    two = put_save(other / "steamapps/compatdata/374320/pfx")
    os.utime(two / SAVE, (1, 1))
    put_save(other / "steamapps/compatdata/999/pfx")
    assert saves.find_saves("darksouls3", home=tmp_path, system={}, platform="linux") == [one, two]
    elden = put_save(other / "steamapps/compatdata/1245620/pfx", file="ER0000.sl2", folder="EldenRing")
    assert saves.find_saves("eldenring", home=tmp_path, system={}, platform="linux") == [elden]


def test_prefix_of_the_running_game_comes_first(tmp_path):
    put_save(tmp_path / ".local/share/Steam/steamapps/compatdata/374320/pfx")
    running = put_save(tmp_path / "own", user="somebody")
    environment = {"WINEPREFIX": str(tmp_path / "own")}
    assert saves.find_saves("darksouls3", environment, home=tmp_path, system={}, platform="linux") == [running]


def test_saves_in_windows_are_found(tmp_path):
    place = tmp_path / "Roaming" / "DarkSoulsIII" / "01"
    place.mkdir(parents=True)
    (place / SAVE).write_bytes(b"x")
    system = {"APPDATA": str(tmp_path / "Roaming")}
    assert saves.find_saves("darksouls3", home=tmp_path, system=system, platform="win32") == [place]


def test_no_saves_are_no_error(tmp_path):
    assert saves.find_saves("darksouls3", home=tmp_path, system={}, platform="linux") == []


# The speed library in the game's folder


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "souls_speed.dll").write_bytes(b"MZ...souls_control...new")
    return folder


@pytest.fixture
def installed(tmp_path):
    folder = tmp_path / "DARK SOULS III"
    (folder / "Game").mkdir(parents=True)
    (folder / "Game" / "DarkSoulsIII.exe").write_bytes(b"MZ")
    return folder


def test_library_is_put_beside_the_program_and_taken_away(installed, library):
    place = proxy.install_proxy(installed, source=library)
    assert place == installed / "Game" / "dinput8.dll"
    assert place.read_bytes() == (library / "souls_speed.dll").read_bytes()
    assert proxy.install_proxy(installed / "Game", source=library) == place
    assert sorted(file.name for file in place.parent.iterdir()) == ["DarkSoulsIII.exe", "dinput8.dll"]
    assert proxy.remove_proxy(installed) == place
    assert not place.exists()
    with pytest.raises(GameError, match="nothing to remove"):
        proxy.remove_proxy(installed)


def test_older_library_of_ours_is_replaced(installed, library):
    (installed / "Game" / "dinput8.dll").write_bytes(b"MZ souls_control old")
    assert b"new" in proxy.install_proxy(installed, source=library).read_bytes()


def test_library_of_somebody_else_stays(installed, library):
    foreign = installed / "Game" / "dinput8.dll"
    foreign.write_bytes(b"a mod loader")
    with pytest.raises(GameError, match="move it away first"):
        proxy.install_proxy(installed, source=library)
    with pytest.raises(GameError, match="so it stays"):
        proxy.remove_proxy(installed)
    assert foreign.read_bytes() == b"a mod loader"


def test_folder_without_the_game_is_named(tmp_path, library):
    with pytest.raises(GameError, match=r"there is no DarkSoulsIII\.exe in it"):
        proxy.install_proxy(tmp_path, source=library)


def test_library_that_is_not_built_is_named(installed, tmp_path):
    with pytest.raises(GameError, match="run: make speed"):
        proxy.install_proxy(installed, source=tmp_path / "nowhere")


def test_launch_options_name_the_library():
    assert proxy.LAUNCH_OPTIONS == 'WINEDLLOVERRIDES="dinput8=n,b" %command%'
