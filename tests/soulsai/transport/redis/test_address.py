"""Join lines."""

from dataclasses import replace

import pytest

from soulsai.errors import TransportError
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.certificates import make_certificates

JOIN = Address("192.168.1.5", 7777, "alice", "s3cret", "iudex-1")


def test_a_join_line_is_read():
    assert Address.parse("redis://alice:s3cret@192.168.1.5:7777/iudex-1") == JOIN
    assert Address.parse("  redis://alice:s3cret@192.168.1.5:7777/iudex-1/\n") == JOIN
    assert Address.parse("rediss://alice:s3cret@192.168.1.5:7777/iudex-1") == replace(JOIN, tls=True)
    assert Address.parse("valkey://alice:s3cret@192.168.1.5:7777/iudex-1") == JOIN
    assert Address.parse("redis://alice:s3cret@host/iudex-1").port == 6379


@pytest.mark.parametrize("password", ["s3cret", "a/b", "a@b", "a:b", "a?b", "a#b", "a%41", "ä ö", "[x]"])
@pytest.mark.parametrize("host", ["127.0.0.1", "souls.example.org", "::1", "fe80::1"])
@pytest.mark.parametrize("tls", [False, True])
def test_what_is_written_is_read(password, host, tls):
    address = Address(host, 1234, "alice", password, "r", tls)
    assert Address.parse(address.url()) == address


def test_an_operator_needs_to_name_neither_run_nor_user():
    assert Address.parse("redis://localhost", run="r") == Address("localhost", 6379, "", "", "r")
    assert Address.parse("redis://localhost/0", run="r").run == "r"
    assert Address.parse("redis://localhost/r", run="r").run == "r"
    assert Address.parse("redis://:pw@localhost", run="r").password == "pw"
    assert Address.parse("redis://localhost", run="r").url() == "redis://localhost:6379/r"
    with pytest.raises(TransportError, match="'other'"):
        Address.parse("redis://localhost/other", run="r")


def test_no_text_of_an_address_shows_the_password():
    for text in (str(JOIN), repr(JOIN), f"{JOIN}", f"{[JOIN]}"):
        assert "s3cret" not in text
        assert "alice" in text
    assert "s3cret" in JOIN.url()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "alice:s3cret@host/r",
        "http://alice:s3cret@host/r",
        "redis://alice:s3cret@/r",
        "redis://alice:s3cret@host:port/r",
        "redis://alice:s3cret@host:99999/r",
        "redis://alice:s3cret@host:0/r",
        "redis://alice:s3cret@[::1/r",
        "redis://alice:s3cret@host:1",
        "redis://alice:s3cret@host:1/",
        "redis://alice:s3cret@host:1/a b",
        "redis://alice:s3cret@host:1/a/b",
        "redis://alice:s3cret@host:1/r?db=3",
        "redis://alice:s3cret@host:1/r#x",
        "redis://alice@host:1/r",
        "redis://:s3cret@host:1/r",
        "redis://host:1/r",
        "redis://alice:s3cret@ho\x00st:1/a b",
    ],
)
def test_a_wrong_line_is_refused_without_repeating_its_password(url):
    with pytest.raises(TransportError) as caught:
        Address.parse(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None or "s3cret" not in str(caught.value.__cause__)


def test_the_certificate_must_be_one(tmp_path):
    url = JOIN.url().replace("redis:", "rediss:")
    ca = make_certificates(tmp_path, []).ca
    assert Address.parse(url, ca).ca == ca
    with pytest.raises(TransportError, match="no such certificate"):
        Address.parse(url, tmp_path / "nothing.crt")
    with pytest.raises(TransportError, match="of use with TLS only"):
        Address.parse(JOIN.url(), ca)
    ca.write_text("not a certificate")
    with pytest.raises(TransportError, match=r"ca\.crt again"):
        Address.parse(url, ca)
