"""A certificate authority of the run's own, and the certificate of its server.

Friends get the authority's certificate; with it they know the server, whose own is made again with every start.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from soulsai.errors import TransportError
from soulsai.runs.files import make_private_folder, write_atomically

MARGIN = datetime.timedelta(days=30)
"""An authority that ends sooner is made again."""
ALWAYS = ("localhost", "127.0.0.1", "::1")

log = logging.getLogger(__name__)


class Certificates(NamedTuple):
    """The files a server with TLS needs; `ca` is the one that its clients need too, and no secret."""

    ca: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path, hosts: Sequence[str]) -> Certificates:
    """A certificate for these host names and addresses, and loopback, of the authority that is there if it still does.

    While the authority is kept, friends need no new file.
    """
    names = list(dict.fromkeys([*hosts, *ALWAYS]))
    make_private_folder(folder)
    files = Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    server = _issue(files.ca, folder / "ca.key", names)
    if server is None:
        if files.ca.exists():
            log.warning("%s: has ended or is damaged and is made again: send it to all who joined", files.ca)
        authority = trustme.CA(organization_name="souls", organization_unit_name="run authority")
        server = _certificate(authority, names)
        write_atomically(folder / "ca.key", authority.private_key_pem.bytes(), private=True)
        write_atomically(files.ca, authority.cert_pem.bytes(), private=True)
    write_atomically(files.key, server.private_key_pem.bytes(), private=True)
    write_atomically(files.certificate, server.cert_chain_pems[0].bytes(), private=True)
    return files


def _issue(ca: Path, key: Path, names: Sequence[str]) -> trustme.LeafCert | None:
    """A certificate of the authority in these files; None if they are missing or damaged, or it ends soon."""
    try:
        authority = x509.load_pem_x509_certificate(ca.read_bytes())
        server = _certificate(trustme.CA.from_pem(ca.read_bytes(), key.read_bytes()), names)
        x509.load_pem_x509_certificate(server.cert_chain_pems[0].bytes()).verify_directly_issued_by(authority)
    except (OSError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return None
    return server if authority.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + MARGIN else None


def _certificate(authority: trustme.CA, names: Sequence[str]) -> trustme.LeafCert:
    for name in names:
        try:
            if set(name) & set("*/@"):  # patterns, networks and people are none of ours
                raise UnicodeError
            authority.issue_cert(name)
        except UnicodeError:  # of the library that encodes names
            raise TransportError(
                f"{name[:100]!r} is neither a host name nor an address: --advertise takes one such as souls.example.org"
            ) from None
    return authority.issue_cert(*names, organization_name="souls", organization_unit_name="run server")
