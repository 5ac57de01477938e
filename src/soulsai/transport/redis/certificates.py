"""A certificate authority of the run's own, and the certificate of its server.

Friends get the authority's certificate; with it they know the server, however often the server's own is made again.
"""

from __future__ import annotations

import datetime
import ipaddress
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from soulsai.errors import TransportError
from soulsai.runs.private_files import make_private_folder, write_private

LIFETIME = datetime.timedelta(days=3650)
MARGIN = datetime.timedelta(days=30)
"""A certificate that ends sooner is made again."""
SKEW = datetime.timedelta(days=1)
"""Certificates begin so long ago: clocks of other machines may be late."""
ALWAYS = ("localhost", "127.0.0.1", "::1")

log = logging.getLogger(__name__)


class Certificates(NamedTuple):
    """The files a server with TLS needs; `ca` is the one that its clients need too, and no secret."""

    ca: Path
    certificate: Path
    key: Path


class _Pair(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_certificates(folder: Path, hosts: Sequence[str]) -> Certificates:
    """Certificates for these host names and addresses, and loopback; those that are there are kept if they still do.

    While the authority is kept, friends need no new file.
    """
    names = _names([*hosts, *ALWAYS])
    make_private_folder(folder)
    files = Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    authority = _read(files.ca, folder / "ca.key")
    if authority is None or not _lasts(authority.certificate):
        if files.ca.exists():
            log.warning("%s: has ended or is damaged and is made again: send it to all who joined", files.ca)
        authority = _new_authority()
        _write(authority, files.ca, folder / "ca.key")
    if not _serves(_read(files.certificate, files.key), authority, names):
        _write(_new_certificate(authority, names), files.certificate, files.key)
    return files


def _names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    return [_name(host) for host in dict.fromkeys(hosts)]


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        ascii_name = host.encode("idna").decode()
        if not ascii_name or not set(ascii_name) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
        ):
            raise ValueError
        return x509.DNSName(ascii_name.lower())
    except ValueError:
        raise TransportError(
            f"{host[:100]!r} is neither a host name nor an address: --advertise takes one such as souls.example.org"
        ) from None


def _new_authority() -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "souls run authority")])
    usage = _usage(signs_certificates=True)
    builder = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _new_certificate(authority: _Pair, names: Sequence[x509.GeneralName]) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "souls run server")])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _builder(name, authority.certificate.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(issuer, critical=False)
    )
    return _Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = _now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _lasts(certificate: x509.Certificate) -> bool:
    return certificate.not_valid_after_utc > _now() + MARGIN


def _serves(pair: _Pair | None, authority: _Pair, names: Sequence[x509.GeneralName]) -> bool:
    """Whether this certificate is of this authority, lasts, and holds for all names."""
    if pair is None or not _lasts(pair.certificate):
        return False
    try:
        pair.certificate.verify_directly_issued_by(authority.certificate)
        there = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return all(name in list(there) for name in names)


def _read(certificate_file: Path, key_file: Path) -> _Pair | None:
    """A certificate and its key; None if one of them is missing, damaged or not the other's."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        return None
    return _Pair(certificate, key)


def _write(pair: _Pair, certificate_file: Path, key_file: Path) -> None:
    key = pair.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(key_file, key)
    write_private(certificate_file, pair.certificate.public_bytes(serialization.Encoding.PEM))
