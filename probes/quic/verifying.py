"""Whom a client trusts over QUIC, and who it is itself.

aioquic would read its authorities anew for every connection, which takes longer than a handshake.
So it is told to check none, and asked for the certificates as soon as they are there, before
anything more is sent: the names and dates by its own rules, the chain by OpenSSL.
"""

import ipaddress
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import service_identity
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from OpenSSL import crypto
from service_identity.cryptography import (
    verify_certificate_hostname,
    verify_certificate_ip_address,
)

from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.tls.client import no_authorities, no_certificate

BAD_CERTIFICATE = 0x100 + 42
"""What we tell a server that we do not trust (RFC 9001, 4.8 and RFC 8446, 6)."""


class Authorities:
    """The certificates that we trust. Raises ConfigError where a file cannot be used."""

    def __init__(self, ca_file: str) -> None:
        self._store = crypto.X509Store()
        try:
            if ca_file:
                self._store.load_locations(str(Path(ca_file)))
            else:
                paths = ssl.get_default_verify_paths()
                if paths.cafile or paths.capath:
                    self._store.load_locations(paths.cafile, paths.capath)
        except crypto.Error as error:
            if ca_file:
                raise no_authorities(ca_file, _problem(ca_file)) from error

    def why_not(self, leaf: x509.Certificate, chain: list[Any], server_name: str) -> str:
        """Why this server cannot be trusted; empty where it can."""
        now = datetime.now(UTC)
        if now < leaf.not_valid_before_utc:
            return "certificate is not yet valid"
        if now > leaf.not_valid_after_utc:
            return "certificate has expired"
        return _wrong_name(leaf, server_name) or self._wrong_chain(leaf, chain)

    def _wrong_chain(self, leaf: x509.Certificate, chain: list[Any]) -> str:
        others = [crypto.X509.from_cryptography(one) for one in chain]
        context = crypto.X509StoreContext(self._store, crypto.X509.from_cryptography(leaf), others)
        try:
            context.verify_certificate()
        except crypto.X509StoreContextError as error:
            return str(error.args[0]) if error.args else "certificate refused"
        return ""


def _wrong_name(leaf: x509.Certificate, server_name: str) -> str:
    try:
        if _is_address(server_name):
            verify_certificate_ip_address(leaf, server_name)
        else:
            verify_certificate_hostname(leaf, server_name)
    except (service_identity.CertificateError, service_identity.VerificationError):
        return f"hostname mismatch, certificate is not valid for {server_name!r}"
    except ValueError:
        return "certificate cannot be read"
    return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _problem(file: str) -> str:
    try:
        return "no certificates in it" if Path(file).read_bytes() else "empty"
    except OSError as error:
        return (error.strerror or str(error)).lower()


def load_own_certificate(settings: QuicSettings) -> QuicConfiguration | None:
    """Our own certificate and key; None where there is none.

    Raises:
        ConfigError: they cannot be used.
    """
    if not settings.client_certificate:
        return None
    own = QuicConfiguration()
    certificate, key = settings.client_certificate, settings.client_key
    try:
        own.load_cert_chain(certificate, key or None)
    except (OSError, ValueError, TypeError, IndexError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise no_certificate(certificate, key, said.lower()) from error
    if own.private_key is None:
        raise no_certificate(certificate, key, "no private key in it")
    return own
