"""`souls calibrate`: the command around the calibration, with good and bad files."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.recordings.recording import read_recording, recording_arrays, write_recording
from soulsgym.spec import load_fight
from soulsgym.spec.draw import drawn_spec
from tests.soulsgym.calibration.conftest import recorded


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Four fights of a drawn boss, recorded."""
    file = tmp_path_factory.mktemp("recorded") / "fights.npz"
    write_recording(file, recorded(drawn_spec("iudex", 31), ("duellist",), n=4, steps=300))
    return file


def run(*words):
    return CliRunner().invoke(app, ["calibrate", *(str(word) for word in words)])


def test_it_writes_a_variant_and_says_what_to_record(recording, tmp_path):
    out = tmp_path / "mine.toml"
    result = run(recording, "--out", out)
    assert result.exit_code == 0, result.output
    assert "measured in 4 fights" in result.output
    assert "what to record next" in result.output
    assert "reach unknown between" in result.output
    assert re.search(r"let him finish Running thrust \(dash\) in phase 1: \d+ seen", result.output)
    assert re.search(r"corrected \((time|motion|tracking) \d+, ", result.output)
    assert load_fight("iudex", str(out)).boss.known


def test_the_report_shows_attacks_and_numbers(recording, tmp_path):
    page = tmp_path / "mine.html"
    result = run(recording, "--out", tmp_path / "mine.toml", "--report", page)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "as he was seen" in text
    assert text.count("<div class=attack>") > 5
    assert "too few fights to keep some out" in text
    assert "move.thrust.link_s" in text
    assert "<h3>Thrust <small>thrust: " in text
    assert ">0.5 s</text>" in text  # the axis of a timeline
    assert re.search(r"<td>phase 1, 0 to 1\.5 m: Punch</td><td>\d+</td><td>20</td>", text)
    assert re.search(r"<td>phase 1: Thrust, then [A-Z]", text)
    corrections = [int(count) for count in re.findall(r"seen, (\d+) of its numbers corrected", text)]
    assert corrections == sorted(corrections, reverse=True)
    bold = re.findall(r"<tr( class=moved)?>", text[text.index("All numbers") :])[1:]
    assert bold == sorted(bold, reverse=True)
    assert "<script" not in text
    again = run(recording, "--out", tmp_path / "other.toml", "--report", page)
    assert "mine.html" in str(again.exception)
    assert not (tmp_path / "other.toml").exists()


def test_as_json(recording, tmp_path):
    result = run(recording, "--out", tmp_path / "mine.toml", "--json")
    told = json.loads(result.output)
    assert told["fights"] == 4
    assert told["numbers"] >= len(told["moved"]) > 10
    assert told["next"]
    assert told["new_moves"] == []
    assert told["character"]["body.sp_per_s"]["file"] == 45.0


def test_a_file_that_is_there_is_left_alone(recording, tmp_path):
    out = tmp_path / "mine.toml"
    out.write_text("precious")
    result = run(recording, "--out", out)
    assert "exists; give another name" in str(result.exception)
    assert out.read_text() == "precious"


def test_a_missing_folder_is_told_before_anything_is_read(tmp_path):
    result = run("no.npz", "--out", tmp_path / "no" / "mine.toml")
    assert "no of the variant is not there; make it" in str(result.exception)


def refused(out, *files):
    """What is said about recordings that are refused; nothing is written."""
    result = run(*files, "--out", out)
    assert result.exit_code != 0
    assert not out.exists()
    assert str(result.exception).count("\n") == 0
    return str(result.exception)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"", "is empty"), (b"PK\x03\x04 cut", "is damaged"), (b"[]", "is a")],
)
def test_a_bad_recording_is_one_sentence_and_nothing_is_written(tmp_path, content, words):
    file, out = tmp_path / "fights.npz", tmp_path / "mine.toml"
    if content is not None:
        file.write_bytes(content)
    said = refused(out, file)
    assert words in said
    assert "fights.npz" in said


def test_a_bad_recording_beside_a_good_one_is_refused_too(recording, tmp_path):
    cut = tmp_path / "cut.npz"
    cut.write_bytes(recording.read_bytes()[:-2000])
    assert "cut.npz: is damaged" in refused(tmp_path / "mine.toml", recording, cut)


def test_a_folder_is_no_recording(recording, tmp_path):
    assert f"{recording.parent}: cannot be read: Is a directory" in refused(tmp_path / "mine.toml", recording.parent)


def test_a_recording_of_another_version(recording, tmp_path):
    arrays = recording_arrays(read_recording(recording), "old.npz")
    arrays["header"] = np.frombuffer(json.dumps({"format": 99, "soulsgym": "9.0"}).encode(), np.uint8)
    np.savez_compressed(tmp_path / "new.npz", **arrays)
    assert "header.format = 99 is not known" in refused(tmp_path / "mine.toml", tmp_path / "new.npz")
    arrays = recording_arrays(read_recording(recording), "old.npz")
    fields = [name for name in arrays["fights"].dtype.names if name != "boss_pose"]
    np.savez_compressed(tmp_path / "old.npz", **arrays | {"fights": arrays["fights"][fields]})
    assert "fights has no field 'boss_pose'" in refused(tmp_path / "mine.toml", tmp_path / "old.npz")


def test_a_recording_of_another_boss(recording, tmp_path):
    read = read_recording(recording)
    read.fights["boss_animation"][:] = load_fight("iudex").boss_animations.index("LandDefault")
    write_recording(tmp_path / "other.npz", read)
    assert "are none of iudex's" in refused(tmp_path / "mine.toml", tmp_path / "other.npz")


def test_labels_of_another_version_are_unknown(recording, tmp_path):
    read = read_recording(recording)
    read.fights["player_animation"][::2] = 9999
    write_recording(tmp_path / "strange.npz", read)
    result = run(tmp_path / "strange.npz", "--out", tmp_path / "mine.toml")
    assert result.exit_code == 0, result.exception


def test_a_boss_without_health(recording, tmp_path):
    read = read_recording(recording)
    read.fights["boss_max_hp"][:] = 0
    write_recording(tmp_path / "dead.npz", read)
    assert "dead.npz: the boss has 0 hit points" in refused(tmp_path / "mine.toml", tmp_path / "dead.npz")


@pytest.mark.parametrize("where", [(), ("--rehearse", "standard")], ids=["simulator", "game"])
def test_a_recording_tells_its_boss(where, tmp_path):
    """Bosses share names of animations, so what is seen would not do."""
    env = "SoulsGymVordt-v0" if where else "SoulsGymVordtSim-v0"
    made = tmp_path / "vordt.npz"
    result = CliRunner().invoke(app, ["record", "--env", env, *where, "--fights", "2", "--out", str(made)])
    assert result.exit_code == 0, result.exception
    assert f"{made}: is of vordt and not of iudex; give --boss vordt" in refused(tmp_path / "mine.toml", made)
    assert run(made, "--out", tmp_path / "mine.toml", "--boss", "vordt").exit_code == 0


def test_a_recording_without_a_fight(recording, tmp_path):
    """The boss stands, as before the fog wall; and a single record, which is no step at all."""
    read = read_recording(recording)
    read.fights["boss_animation"][:] = load_fight("iudex").boss_animations.index("IdleBattle")
    write_recording(tmp_path / "still.npz", read)
    assert "still.npz: shows 0 attacks of the boss" in refused(tmp_path / "mine.toml", tmp_path / "still.npz")
    read = read_recording(recording)
    read.episodes[:] = np.arange(len(read))
    write_recording(tmp_path / "single.npz", read)
    assert "no fight has a record of every step" in refused(tmp_path / "mine.toml", tmp_path / "single.npz")


def test_the_same_fights_count_once(recording, tmp_path):
    copy = tmp_path / "copy.npz"
    copy.write_bytes(recording.read_bytes())
    run(recording, "--out", tmp_path / "once.toml")
    result = run(recording, copy, recording, "--out", tmp_path / "thrice.toml")
    assert "measured in 4 fights" in result.output
    assert (tmp_path / "once.toml").read_text() == (tmp_path / "thrice.toml").read_text()


def test_other_hit_points_are_his_but_two_bosses_are_not_mixed(recording, tmp_path):
    read = read_recording(recording)
    read.fights["boss_max_hp"] = read.fights["boss_hp"][:] = 2000
    write_recording(tmp_path / "tough.npz", read)
    out = tmp_path / "tough.toml"
    assert run(tmp_path / "tough.npz", "--out", out).exit_code == 0
    assert load_fight("iudex", str(out)).boss.hp == 2000
    said = refused(tmp_path / "mine.toml", recording, tmp_path / "tough.npz")
    assert "1037 and 2000 hit points" in said


def test_a_name_that_is_no_variant(recording, tmp_path):
    assert "does not end in .toml" in str(run(recording, "--out", tmp_path / "mine.txt").exception)


def test_fidelity_compares_with_a_variant(recording, tmp_path):
    out = tmp_path / "mine.toml"
    run(recording, "--out", out)
    before, after = (
        json.loads(CliRunner().invoke(app, ["fidelity", str(recording), "--json", *words]).output)["metrics"]
        for words in ([], ["--variant", str(out)])
    )
    assert after["M9"]["value"] < before["M9"]["value"]
