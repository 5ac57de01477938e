"""The certificate of a gateway: made once and kept, for workers know the gateway by its fingerprint."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography import x509

from soulsai.errors import TransportError
from soulsai.runs.files import make_private_folder, write_atomically
from soulsai.transport.gateway.client import fingerprint_of
from soulsai.transport.redis.certificates import MARGIN


class GatewayCertificate(NamedTuple):
    """The files that TLS needs, and what join lines hold of them; empty where the system trusts the certificate."""

    certificate: Path
    key: Path
    fingerprint: str


def load_or_make_certificate(folder: Path, hosts: Sequence[str]) -> GatewayCertificate:
    """The one in `folder`; a new one where there is none, or where it ends within a month."""
    make_private_folder(folder)
    certificate, key = folder / "gateway.crt", folder / "gateway.key"
    if not _holds(certificate, key):
        made = trustme.CA(organization_name="souls", organization_unit_name="gateway").issue_cert(*hosts)
        write_atomically(key, made.private_key_pem.bytes(), private=True)
        write_atomically(certificate, made.cert_chain_pems[0].bytes(), private=True)
    return load_certificate(certificate, key)


def load_certificate(certificate: Path, key: Path, *, trusted: bool = False) -> GatewayCertificate:
    """One that is there already; `trusted`: by the systems of those who join, so that it is not named in their line."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        text = certificate.read_text()
    except OSError as error:  # an SSLError is one too
        why = error.strerror or getattr(error, "reason", "") or "unreadable"
        raise TransportError(
            f"{certificate} and {key}: are not a certificate and its key ({why}): check both"
        ) from error
    first = text[: text.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----"
    return GatewayCertificate(certificate, key, "" if trusted else fingerprint_of(ssl.PEM_cert_to_DER_cert(first)))


def _holds(certificate: Path, key: Path) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError):
        return False
    return found.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + MARGIN
