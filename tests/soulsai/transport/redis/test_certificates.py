"""Certificates of a run's own."""

import datetime
import ipaddress
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from soulsai.errors import TransportError
from soulsai.transport.redis import certificates
from soulsai.transport.redis.certificates import make_certificates


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def names_in(file):
    found = x509.load_pem_x509_certificate(file.read_bytes())
    return found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def test_names_and_addresses_are_in_the_certificate(tmp_path):
    ca, certificate, key = make_certificates(tmp_path / "tls", ["souls.example.org", "192.168.1.5", "Bücher.example"])
    names = names_in(certificate)
    assert set(names.get_values_for_type(x509.DNSName)) == {"localhost", "souls.example.org", "xn--bcher-kva.example"}
    assert set(names.get_values_for_type(x509.IPAddress)) == {
        ipaddress.ip_address(text) for text in ("192.168.1.5", "127.0.0.1", "::1")
    }
    x509.load_pem_x509_certificate(certificate.read_bytes()).verify_directly_issued_by(
        x509.load_pem_x509_certificate(ca.read_bytes())
    )
    assert key.exists()


def test_only_the_owner_may_read_the_keys(tmp_path):
    make_certificates(tmp_path / "tls", [])
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700
    for name in ("ca.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600


def test_they_last_for_years_and_began_long_ago(tmp_path):
    files = make_certificates(tmp_path, [])
    now = datetime.datetime.now(datetime.UTC)
    for file in (files.ca, files.certificate):
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        assert certificate.not_valid_before_utc < now - datetime.timedelta(hours=12)
        assert certificate.not_valid_after_utc > now + datetime.timedelta(days=3 * 365)


def test_a_new_host_name_needs_no_new_file_at_the_friends(tmp_path):
    make_certificates(tmp_path, ["a.example"])
    before = contents(tmp_path)
    files = make_certificates(tmp_path, ["b.example"])
    after = contents(tmp_path)
    assert "b.example" in names_in(files.certificate).get_values_for_type(x509.DNSName)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["server.crt"] != before["server.crt"]


def test_an_authority_that_ends_soon_is_made_anew(tmp_path, monkeypatch, caplog):
    make_certificates(tmp_path, [])
    before = contents(tmp_path)
    monkeypatch.setattr(certificates, "MARGIN", datetime.timedelta(days=365 * 2000))
    make_certificates(tmp_path, [])
    after = contents(tmp_path)
    assert all(after[name] != before[name] for name in before)
    assert "send it to all who joined" in caplog.text


def verify(files):
    ca, server = (x509.load_pem_x509_certificate(file.read_bytes()) for file in (files.ca, files.certificate))
    server.verify_directly_issued_by(ca)
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    assert key.public_key() == server.public_key()


@pytest.mark.parametrize("name", ["server.crt", "server.key", "ca.crt", "ca.key"])
@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_file_is_made_anew_and_the_authority_only_if_it_must(tmp_path, name, damage):
    make_certificates(tmp_path, [])
    before = contents(tmp_path)
    (tmp_path / name).unlink() if damage is None else (tmp_path / name).write_bytes(damage)
    verify(make_certificates(tmp_path, []))
    assert (contents(tmp_path)["ca.crt"] == before["ca.crt"]) is name.startswith("server")


def test_a_key_of_another_authority_is_noticed(tmp_path):
    one, other = make_certificates(tmp_path / "one", []), make_certificates(tmp_path / "other", [])
    (tmp_path / "one" / "ca.key").write_bytes((tmp_path / "other" / "ca.key").read_bytes())
    assert make_certificates(tmp_path / "one", []) == one
    verify(one)
    assert one.ca.read_bytes() != other.ca.read_bytes()


@pytest.mark.parametrize("host", ["", "a b", "a/b", "*.example", "x" * 300, "a..b", "redis://a", "10.0.0.0/8", "a@b"])
def test_what_is_no_host_is_refused(tmp_path, host):
    with pytest.raises(TransportError, match="neither a host name nor an address"):
        make_certificates(tmp_path, [host])
