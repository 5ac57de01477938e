"""Certificates of a run's own."""

import datetime
import ipaddress
import stat

import pytest
from cryptography import x509

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


def test_they_last_ten_years_and_began_yesterday(tmp_path):
    certificate = x509.load_pem_x509_certificate(make_certificates(tmp_path, []).certificate.read_bytes())
    now = datetime.datetime.now(datetime.UTC)
    assert certificate.not_valid_before_utc < now - datetime.timedelta(hours=12)
    assert certificate.not_valid_after_utc > now + datetime.timedelta(days=3600)


def test_they_are_kept_while_they_do(tmp_path):
    make_certificates(tmp_path, ["a.example", "b.example"])
    before = contents(tmp_path)
    make_certificates(tmp_path, ["b.example"])
    assert contents(tmp_path) == before


def test_a_new_host_name_needs_no_new_file_at_the_friends(tmp_path):
    make_certificates(tmp_path, ["a.example"])
    before = contents(tmp_path)
    files = make_certificates(tmp_path, ["b.example"])
    after = contents(tmp_path)
    assert "b.example" in names_in(files.certificate).get_values_for_type(x509.DNSName)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["server.crt"] != before["server.crt"]


def test_one_that_ends_soon_is_made_anew(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(certificates, "LIFETIME", datetime.timedelta(days=20))
    make_certificates(tmp_path, [])
    before = contents(tmp_path)
    monkeypatch.undo()
    make_certificates(tmp_path, [])
    after = contents(tmp_path)
    assert all(after[name] != before[name] for name in before)
    assert "send it to all who joined" in caplog.text


@pytest.mark.parametrize("name", ["server.crt", "server.key"])
@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_one_is_made_anew_by_the_same_authority(tmp_path, name, damage):
    make_certificates(tmp_path, [])
    before = contents(tmp_path)
    (tmp_path / name).unlink() if damage is None else (tmp_path / name).write_bytes(damage)
    make_certificates(tmp_path, [])
    assert contents(tmp_path)["ca.crt"] == before["ca.crt"]
    assert contents(tmp_path)["server.crt"] != before["server.crt"]
    assert certificates._read(tmp_path / "server.crt", tmp_path / "server.key")


def test_a_key_of_another_certificate_is_noticed(tmp_path):
    one, other = make_certificates(tmp_path / "one", []), make_certificates(tmp_path / "other", [])
    one.key.write_bytes(other.key.read_bytes())
    make_certificates(tmp_path / "one", [])
    assert one.key.read_bytes() != other.key.read_bytes()


@pytest.mark.parametrize("host", ["", "a b", "a/b", "*.example", "x" * 300, "a..b", "redis://a"])
def test_what_is_no_host_is_refused(tmp_path, host):
    with pytest.raises(TransportError, match="neither a host name nor an address"):
        make_certificates(tmp_path, [host])
