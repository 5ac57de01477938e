"""Exported policies play without torch, and a bad file is one sentence."""

import json
import sys

import numpy as np
import pytest

from soulsgym.errors import MissingPackage, MisuseError, PolicyError
from soulsgym.packages import VERSION
from soulsgym.players import load_policy
from soulsgym.players.onnx_policy import FORMAT, INPUTS, OUTPUTS, PREFIX, PolicyNotes, write_notes

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

WEIGHTS = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 0.5]], np.float32)
"""Scores of three actions by two numbers."""
NOTES = PolicyNotes(
    format=FORMAT,
    soulsgym=VERSION,
    observation_names=("near", "far"),
    action_names=("hit", "roll", "wait"),
    boss="iudex",
    encoder={"name": "player", "history": 1},
)


def write(path, entries=None, weights=WEIGHTS):
    """A linear policy, with what its file says about it."""
    from onnx import TensorProto, helper, numpy_helper

    number, flag, index = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
    nodes = [
        helper.make_node("MatMul", [INPUTS[0], "weights"], [OUTPUTS[1]]),
        helper.make_node("Where", [INPUTS[1], OUTPUTS[1], "closed"], ["open"]),
        helper.make_node("ArgMax", ["open"], [OUTPUTS[0]], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "policy",
        [
            helper.make_tensor_value_info(INPUTS[0], number, ["rows", len(weights)]),
            helper.make_tensor_value_info(INPUTS[1], flag, ["rows", weights.shape[1]]),
        ],
        [
            helper.make_tensor_value_info(OUTPUTS[0], index, ["rows"]),
            helper.make_tensor_value_info(OUTPUTS[1], number, ["rows", weights.shape[1]]),
        ],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.float32(-1e9), "closed")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    for key, text in (write_notes(NOTES) if entries is None else entries).items():
        model.metadata_props.add(key=PREFIX + key, value=text)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "policy.onnx")


def test_best_open_action_of_every_row(file):
    policy = load_policy(file)
    observations = np.array([[1, 0], [0, 1], [0, 1], [-1, 0]], np.float32)
    masks = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 1, 1]], np.bool_)
    chosen = policy.choose(observations, masks)
    assert (chosen.dtype, chosen.tolist()) == (np.int64, [0, 1, 2, 2])
    assert policy.choose(observations).tolist() == [0, 1, 1, 2]  # all open
    assert policy.choose(observations.astype(np.float64), masks.astype(np.int8)).tolist() == [0, 1, 2, 2]
    assert policy.choose(observations[:0], masks[:0]).shape == (0,)


def test_file_names_its_inputs_and_actions(file):
    assert load_policy(str(file)).notes == NOTES


@pytest.mark.parametrize(
    ("observations", "masks"), [((4, 3), (4, 3)), ((4, 2), (4, 2)), ((4, 2), (3, 3)), ((2,), (1, 3))]
)
def test_wrong_shapes_are_refused(file, observations, masks):
    with pytest.raises(MisuseError, match=r"give \[n, 2\] and \[n, 3\]$"):
        load_policy(file).choose(np.zeros(observations, np.float32), np.ones(masks, np.bool_))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": None}, "was not written by `souls export`: export the run again"),
        ({"format": "99"}, "has format 99, this soulsgym reads 1: update soulsgym or export again"),
        ({"action_names": None}, "is damaged (Object missing required field `action_names`"),
        ({"action_names": "not json"}, "is damaged ("),
        ({"action_names": '"hit"'}, "is damaged (Expected `array`, got `str`"),
        ({"action_names": '["hit"]'}, "is damaged ("),
        ({"observation_names": '["near", "far", "height"]'}, "is damaged ("),
        ({"encoder": '{"history": [1]}'}, "is damaged ("),
    ],
)
def test_damaged_notes_are_one_sentence(tmp_path, change, sentence):
    entries = {key: text for key, text in (write_notes(NOTES) | change).items() if text is not None}
    with pytest.raises(PolicyError) as caught:
        load_policy(write(tmp_path / "bad.onnx", entries))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\x08\x07"])
def test_damaged_file_is_one_sentence(tmp_path, content):
    file = tmp_path / "bad.onnx"
    file.write_bytes(content)
    with pytest.raises(
        PolicyError, match=r"bad\.onnx: (is not an exported policy, or is damaged|was not written)"
    ) as caught:
        load_policy(file)
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(PolicyError, match="there is no such file: write it with `souls export`"):
        load_policy(tmp_path / "none.onnx")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path)


def test_missing_onnxruntime_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPackage, match=r"onnxruntime is not installed; run: pip install '[\w-]+\[onnx\]'"):
        load_policy(file)


def test_notes_of_a_newer_version_may_say_more(tmp_path):
    entries = write_notes(NOTES) | {"weather": json.dumps("fine")}
    assert load_policy(write(tmp_path / "more.onnx", entries)).notes == NOTES
