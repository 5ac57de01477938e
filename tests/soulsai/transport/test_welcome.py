"""The welcome: both sides are of the same make, or the user is told which one to update and how."""

import struct

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from soulsai.errors import TransportError
from soulsai.transport.frames import PROTOCOL, Kind, encode
from soulsai.transport.welcome import LARGEST_WELCOME, Welcome, pack_welcome, refuse_mismatch, unpack_welcome

DIGEST = "0a" * 32
WELCOME = Welcome("run-1", 'algorithm = "q"\n# ä\n', "0.3.0", "sha256:12ab")


def with_protocol(number):
    return b"SOUL" + struct.pack("<H", number) + b"in a layout that this side does not know"


def a_frame(changes=None, arrays=None, kind=Kind.WELCOME):
    told = {"run": "r", "config_toml": "a = 1", "package": "0.3.0", "environment": "abc"} | (changes or {})
    data = msgspec.msgpack.encode({name: value for name, value in told.items() if value is not None})
    return encode(kind, run="r", arrays={"welcome": np.frombuffer(data, np.uint8)} if arrays is None else arrays)


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
    with pytest.raises(TransportError, match=r"take 2,048 kB and workers accept 2,048 kB; make the files smaller"):
        pack_welcome(replace(WELCOME, files={"boss/my.toml": "#" * LARGEST_WELCOME}))


def test_names_and_digests_of_python_files_arrive():
    welcome = replace(WELCOME, parts=(("my_parts.py", "0a" * 32), ("my_parts.py", "1b" * 32)))
    assert unpack_welcome(pack_welcome(welcome)) == welcome


def test_a_name_that_no_worker_would_take_is_refused_at_once():
    with pytest.raises(TransportError, match=r"use letters, digits, _ and -: 'my;parts\.py'"):
        pack_welcome(replace(WELCOME, parts=(("my;parts.py", DIGEST),)))


@pytest.mark.parametrize(
    "pair",
    [["my.py"], ["my.py", "0a"], ["my.py", 3], ["../my.py", DIGEST], ["a/my.py", DIGEST], ["my.sh", DIGEST],
     ["\x1b[2J.py", DIGEST], ["a`rm`.py", DIGEST], [".py", DIGEST], ["x" * 300 + ".py", DIGEST], "my.py"],
)  # fmt: skip
def test_python_files_that_cannot_be_are_refused(pair):
    with pytest.raises(TransportError, match="cannot be read"):
        unpack_welcome(a_frame({"parts": [pair]}))


@pytest.mark.parametrize("parts", ["", {}, 3, [3], [[]], b"\xff"])
def test_python_files_that_are_no_pairs_are_refused(parts):
    with pytest.raises(TransportError, match="cannot be read"):
        unpack_welcome(a_frame({"parts": parts}))


@pytest.mark.parametrize("files", ["", [], 3, {"a": 3}, {"a": ["b"]}, {3: "a"}, b"\xff"])
def test_files_that_are_no_texts_are_refused(files):
    with pytest.raises(TransportError, match="cannot be read"):
        unpack_welcome(a_frame({"files": files}))


def test_another_protocol_names_the_side_to_update():
    sides = f"protocol {PROTOCOL + 1} and this machine protocol {PROTOCOL}"
    with pytest.raises(TransportError, match=f"{sides}: update soulsgym on this machine"):
        unpack_welcome(with_protocol(PROTOCOL + 1))
    with pytest.raises(TransportError, match="update soulsgym on the learner's machine: pip install --upgrade"):
        unpack_welcome(with_protocol(PROTOCOL - 1))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        pack_welcome(WELCOME)[:-1],
        a_frame(kind=Kind.POLICY),
        a_frame({"package": None}),
        a_frame({"environment": None}),
        a_frame({"config_toml": None}),
        a_frame({"more": 1}),
        a_frame({"run": "a b"}),
        a_frame({"package": 3}),
        a_frame({"package": ""}),
        a_frame({"package": "1; rm -rf /"}),
        a_frame({"package": "0.3.0\n"}),
        a_frame({"environment": "\x1b[2J"}),
        a_frame({"environment": "a" * 201}),
        a_frame({"config_toml": b"\xff"}),
        a_frame({"config_toml": "#" * (2 << 20)}),
        a_frame(arrays={}),
        a_frame(arrays={"welcome": np.zeros((2, 2), np.uint8)}),
        a_frame(arrays={"welcome": np.zeros(2)}),
        a_frame(arrays={"welcome": np.zeros(0, np.uint8)}),
        a_frame(arrays={"welcome": np.full(2, 0xFF, np.uint8)}),
        a_frame(arrays={"welcome": np.full(100_000, 0x91, np.uint8)}),
        a_frame(arrays={"config": np.zeros(2, np.uint8)}),
    ],
)
def test_what_is_no_welcome(data):
    with pytest.raises(TransportError, match=r"cannot be read \((malformed|invalid): .*\); start the learner again"):
        unpack_welcome(data)


def test_the_same_on_both_sides():
    refuse_mismatch(WELCOME, package="0.3.0", environment="sha256:12ab")


@pytest.mark.parametrize("other", ["0.2.9", "0.3.0rc1", "0.3.1", "1.0", "0.3.0+mine"])
def test_another_version(other):
    assert refusal(other) == (
        f"the learner has soulsgym 0.3.0 and this machine {other}, which do not mix; "
        "install the learner's on this machine: pip install souls-arena==0.3.0"
    )


def test_other_fight_data():
    text = refusal("0.3.0", environment="mine")
    assert "the files of the fight data differ: environment mine here, e at the learner" in text
    assert "pip install --force-reinstall souls-arena==0.3.0" in text


def test_the_package_is_judged_before_the_environment():
    assert "which do not mix" in refusal("0.2.0", environment="mine")
