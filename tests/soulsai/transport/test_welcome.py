"""The welcome: both sides are of the same make, or the user is told which one to update and how."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from soulsai.errors import TransportError
from soulsai.transport.frames import Kind, encode
from soulsai.transport.welcome import LARGEST_TEXT, Welcome, pack_welcome, refuse_mismatch, unpack_welcome

DIGEST = "0a" * 32
WELCOME = Welcome("run-1", 'algorithm = "q"\n# ä\n', "0.3.0", "sha256:12ab")


def with_protocol(number):
    return b"SOUL" + struct.pack("<H", number) + b"in a layout that this side does not know"


def a_frame(notes=None, arrays=None, kind=Kind.WELCOME):
    notes = {"package": "0.3.0", "environment": "abc"} if notes is None else notes
    arrays = {"config": np.frombuffer(b"a = 1", np.uint8)} if arrays is None else arrays
    return encode(kind, run="r", notes=notes, arrays=arrays)


def refusal(package, environment="e", theirs="0.3.0"):
    with pytest.raises(TransportError) as caught:
        refuse_mismatch(Welcome("r", "", theirs, "e"), package=package, environment=environment)
    return str(caught.value)


@pytest.mark.parametrize("config", ["", "a = 1\n", "# ä\n" * 5000])
def test_what_the_learner_says_arrives(config):
    welcome = replace(WELCOME, config_toml=config)
    assert unpack_welcome(pack_welcome(welcome)) == welcome


def test_files_of_a_boss_arrive():
    welcome = replace(WELCOME, files={"boss/my.toml": "hp = 3\n# ä\n", "variant-1/b.toml": ""})
    assert unpack_welcome(pack_welcome(welcome)) == welcome


def test_files_that_no_worker_would_take_are_refused_at_once():
    with pytest.raises(TransportError, match=r"take 1,024 kB and workers accept 1,024 kB; make them smaller"):
        pack_welcome(replace(WELCOME, files={"boss/my.toml": "#" * LARGEST_TEXT}))


def test_names_and_digests_of_python_files_arrive():
    welcome = replace(WELCOME, parts=(("my_parts.py", "0a" * 32), ("my_parts.py", "1b" * 32)))
    assert unpack_welcome(pack_welcome(welcome)) == welcome


def test_a_name_that_no_worker_would_take_is_refused_at_once():
    with pytest.raises(TransportError, match=r"'my;parts\.py' has a name that workers refuse; use letters"):
        pack_welcome(replace(WELCOME, parts=(("my;parts.py", DIGEST),)))


def files_frame(data, kind="files"):
    arrays = {name: np.frombuffer(text, np.uint8) for name, text in (("config", b"a = 1"), (kind, data))}
    return a_frame(arrays=arrays)


@pytest.mark.parametrize(
    "pair",
    [["my.py"], ["my.py", "0a"], ["my.py", 3], ["../my.py", DIGEST], ["a/my.py", DIGEST], ["my.sh", DIGEST],
     ["\x1b[2J.py", DIGEST], ["a`rm`.py", DIGEST], [".py", DIGEST], ["x" * 300 + ".py", DIGEST], "my.py"],
)  # fmt: skip
def test_python_files_that_cannot_be_are_refused(pair):
    with pytest.raises(TransportError, match="cannot be read"):
        unpack_welcome(files_frame(json.dumps([pair]).encode(), "parts"))


@pytest.mark.parametrize("data", [b"", b"{}", b"3", b"[3]", b"[[]]", b"\xff", b"[" * 100_000])
def test_python_files_that_are_no_pairs_are_refused(data):
    with pytest.raises(TransportError, match="cannot be read"):
        unpack_welcome(files_frame(data, "parts"))


@pytest.mark.parametrize("data", [b"", b"[]", b"3", b'{"a": 3}', b'{"a": ["b"]}', b"\xff", b"[" * 100_000, b"{"])
def test_files_that_are_no_texts_are_refused(data):
    with pytest.raises(TransportError, match="cannot be read"):
        unpack_welcome(files_frame(data))


def test_another_protocol_names_the_side_to_update():
    with pytest.raises(TransportError, match="protocol 2 and this machine protocol 1: update soulsgym on this machine"):
        unpack_welcome(with_protocol(2))
    with pytest.raises(TransportError, match="update soulsgym on the learner's machine: pip install --upgrade"):
        unpack_welcome(with_protocol(0))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        pack_welcome(WELCOME)[:-1],
        a_frame(kind=Kind.POLICY),
        a_frame(notes={}),
        a_frame(notes={"package": "0.3.0"}),
        a_frame(notes={"package": "0.3.0", "environment": "a", "more": 1}),
        a_frame(notes={"package": 3, "environment": "a"}),
        a_frame(notes={"package": "", "environment": "a"}),
        a_frame(notes={"package": "1; rm -rf /", "environment": "a"}),
        a_frame(notes={"package": "0.3.0\n", "environment": "a"}),
        a_frame(notes={"package": "0.3.0", "environment": "\x1b[2J"}),
        a_frame(notes={"package": "0.3.0", "environment": "a" * 201}),
        a_frame(arrays={}),
        a_frame(arrays={"config": np.zeros((2, 2), np.uint8)}),
        a_frame(arrays={"config": np.zeros(2)}),
        a_frame(arrays={"config": np.zeros(2, np.uint8), "more": np.zeros(2, np.uint8)}),
        a_frame(arrays={"config": np.full(2, 0xFF, np.uint8)}),
        a_frame(arrays={"config": np.zeros((1 << 20) + 1, np.uint8)}),
    ],
)
def test_what_is_no_welcome(data):
    with pytest.raises(TransportError, match=r"cannot be read \((malformed|invalid): .*\); start the learner again"):
        unpack_welcome(data)


def test_the_same_on_both_sides():
    refuse_mismatch(WELCOME, package="0.3.0", environment="sha256:12ab")


@pytest.mark.parametrize("older", ["0.2.9", "0.2", "0.3.0rc1", "0.3.0.dev5", "0.0.99"])
def test_this_machine_is_older(older):
    text = refusal(older)
    assert text == (
        f"the learner has soulsgym 0.3.0 and this machine {older}, which do not mix; "
        "update this machine: pip install souls-arena==0.3.0"
    )


@pytest.mark.parametrize("newer", ["0.3.1", "0.10.0", "1.0rc1", "1.0", "0.3.0.1"])
def test_the_learner_is_older(newer):
    assert refusal(newer).endswith(f"update the learner's machine: pip install souls-arena=={newer}")


@pytest.mark.parametrize("other", ["0.3", "0.3.0+mine"])
def test_neither_is_older(other):
    assert refusal(other).endswith("install the learner's on this machine: pip install souls-arena==0.3.0")


def test_versions_before_a_release_have_an_order():
    assert "update this machine" in refusal("0.3.0a1", theirs="0.3.0rc1")
    assert "update the learner's machine" in refusal("0.3.0rc2", theirs="0.3.0rc1")


def test_other_fight_data():
    text = refusal("0.3.0", environment="mine")
    assert "the files of the fight data differ: environment mine here, e at the learner" in text
    assert "pip install --force-reinstall souls-arena==0.3.0" in text


def test_the_package_is_judged_before_the_environment():
    assert "update this machine" in refusal("0.2.0", environment="mine")
