"""Thoughts beside a recording: what is written is read, and what is damaged never breaks the recording."""

import json
import zipfile

import numpy as np
import pytest

from soulsai.errors import RunError
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import Layer, Thoughts, fight_of, read_fight_file, to_shades, write_fight_file
from soulsgym.errors import RecordingError
from soulsgym.recordings.recording import Recording, read_recording, write_recording

ABOUT = {"run": "mine", "step": 700, "engine": "sim"}


@pytest.fixture(scope="module")
def recording():
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("duellist"), 1, seed=1, step_limit=60, recorder=recorder)
    return recorder.fight(0)


@pytest.fixture
def thoughts():
    values = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    return Thoughts(
        kind="q",
        actions=(0, 4, 19),
        records=np.array([0, 7, 20], np.int32),
        scores=values[:, :3],
        open=np.array([[1, 0, 1]] * 3, bool),
        chosen=np.array([0, 2, 0], np.int32),
        value=values[:, 4],
        layers=(Layer("observation", *to_shades(values, each=True)), Layer("layer 1", *to_shades(values, each=False))),
        sights=("a", "b", "c", "d", "e"),
    )


@pytest.fixture
def file(tmp_path, recording, thoughts):
    path = tmp_path / "fight.npz"
    write_fight_file(path, recording, ABOUT, thoughts)
    return path


def rewritten(file, changes):
    """The same archive with other arrays in it; None leaves one out, bytes are written as they are."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, value in changes.items():
        content.pop(f"{name}.npy", None)
        if isinstance(value, bytes):
            content[f"{name}.npy"] = value
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
        for name, value in changes.items():
            if isinstance(value, np.ndarray):
                with archive.open(f"{name}.npy", "w") as entry:
                    np.lib.format.write_array(entry, value, allow_pickle=True)


def test_round_trip(file, recording, thoughts):
    told = read_fight_file(file)
    assert told.reason == ""
    assert told.about == ABOUT
    assert np.array_equal(told.recording.fights, recording.fights)
    assert np.array_equal(told.recording.actions, recording.actions)
    for name in ("records", "scores", "open", "chosen", "value"):
        assert np.array_equal(getattr(told.thoughts, name), getattr(thoughts, name))
    assert (told.thoughts.kind, told.thoughts.actions, told.thoughts.sights) == ("q", (0, 4, 19), tuple("abcde"))
    for got, put in zip(told.thoughts.layers, thoughts.layers, strict=True):
        assert got.name == put.name
        assert np.array_equal(got.shades, put.shades)
    again = read_recording(file)
    assert np.array_equal(again.fights, recording.fights)


def test_shades():
    values = np.array([[0.0, -2.0, 5.0], [0.0, 1.0, 0.0]], np.float32)
    for each in (True, False):
        layer = Layer("x", *to_shades(values, each=each))
        assert layer.values() == pytest.approx(values, abs=float((layer.scale / 127).max()))
        assert layer.shades[1, 0] == 128
    odd, _ = to_shades(np.array([[np.nan, np.inf, 3.0]]), each=False)
    assert odd.tolist() == [[128, 128, 255]]
    assert to_shades(np.zeros((0, 4)), each=True)[0].shape == (0, 4)


def test_one_fight_of_several(tmp_path, recording, thoughts):
    two = Recording(
        np.concatenate([recording.fights, recording.fights]),
        np.concatenate([recording.actions, recording.actions]),
        np.repeat([0, 1], len(recording)),
    )
    file = tmp_path / "two.npz"
    moved = Thoughts(**{**vars(thoughts), "records": thoughts.records + np.int32(len(recording))})
    write_fight_file(file, two, {}, moved)
    told = read_fight_file(file)
    assert len(fight_of(told, 1).thoughts) == 0
    second = fight_of(told, 2)
    assert second.thoughts.records.tolist() == [0, 7, 20]
    assert len(second.recording) == len(recording)
    assert second.thoughts.layers[0].shades.shape == (3, 5)


def test_a_plain_recording(tmp_path, recording):
    file = tmp_path / "plain.npz"
    write_recording(file, recording)
    told = read_fight_file(file)
    assert told.thoughts is None
    assert told.reason == "only the fight was recorded, not what the agent thought"


def notes(**changes):
    content = {"format": 1, "kind": "q", "actions": [0, 4, 19], "layers": ["observation", "layer 1"], "sights": []}
    return np.frombuffer(json.dumps(content | changes).encode(), np.uint8)


DAMAGES = {
    "no JSON": {"thoughts": np.frombuffer(b"{", np.uint8)},
    "a list": {"thoughts": np.frombuffer(b"[1]", np.uint8)},
    "of another version": {"thoughts": notes(format=2)},
    "another kind": {"thoughts": notes(kind="dream")},
    "actions there are not": {"thoughts": notes(actions=[0, 4, 99])},
    "actions twice": {"thoughts": notes(actions=[4, 4, 19])},
    "no actions": {"thoughts": notes(actions=[])},
    "too many layers": {"thoughts": notes(layers=["x"] * 65)},
    "a layer is missing": {"thought_layer_1": None},
    "scores of another shape": {"thought_scores": np.zeros((3, 4), np.float32)},
    "scores of another type": {"thought_scores": np.zeros((3, 3))},
    "scores that are not finite": {"thought_scores": np.full((3, 3), np.nan, np.float32)},
    "records beyond the end": {"thought_records": np.array([0, 7, 10_000], np.int32)},
    "records out of order": {"thought_records": np.array([0, 7, 7], np.int32)},
    "chosen there is not": {"thought_chosen": np.array([0, 2, 3], np.int32)},
    "no array": {"thought_value": b"nonsense"},
    "cut short": {"thought_layer_0": b"\x93NUMPY\x01\x00"},
    "pickled": {"thought_value": np.array([{"a": 1}], object)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_thoughts(file, recording, damage):
    rewritten(file, DAMAGES[damage])
    told = read_fight_file(file)
    assert told.thoughts is None
    assert "fight.npz are damaged or of another version" in told.reason
    assert told.about == ABOUT
    assert len(told.recording) == len(recording)


def test_damaged_about(file, recording):
    rewritten(file, {"about": b"nonsense"})
    told = read_fight_file(file)
    assert (told.about, told.thoughts) == ({}, None)
    assert "is damaged" in told.reason
    assert len(told.recording) == len(recording)


def test_extras_that_are_far_too_large(file, monkeypatch):
    monkeypatch.setattr("soulsai.evaluation.thoughts.MOST_BYTES", 1000)
    told = read_fight_file(file)
    assert told.thoughts is None
    assert "damaged" in told.reason


def test_flipped_bytes_never_crash(file, tmp_path):
    data = file.read_bytes()
    generator = np.random.default_rng(1)
    other = tmp_path / "other.npz"
    for place in generator.integers(0, len(data), 300):
        broken = bytearray(data)
        broken[place] ^= 1 << int(generator.integers(8))
        other.write_bytes(broken)
        try:
            read_fight_file(other)
        except RecordingError:
            continue  # the recording itself is damaged, which it says


def test_written_in_one_moment(tmp_path, recording, thoughts):
    file = tmp_path / "sub" / "fight.npz"
    with pytest.raises(RunError, match="cannot be written"):
        write_fight_file(file, recording, ABOUT, thoughts)
    file.parent.mkdir()
    write_fight_file(file, recording, ABOUT, thoughts)
    assert [path.name for path in file.parent.iterdir()] == ["fight.npz"]
