"""Makes and reads P-256 certificates (RFC 5280). The one module here that needs `cryptography`."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)
BACKDATED = timedelta(days=2)
"""So that a client whose clock is behind still accepts what was made a moment ago."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def certificate_pem(self) -> bytes:
        """The certificate as it stands in a file."""
        return self.certificate.public_bytes(Encoding.PEM)

    def key_pem(self) -> bytes:
        """The key as it stands in a file, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load_pair(certificate: Path, key: Path) -> Pair | None:
    """The pair in two files; None when one is missing or it ends within 30 days.

    Raises ValueError when a file holds something else, OSError when it cannot be read.
    """
    if not (certificate.exists() and key.exists()):
        return None
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    private = load_pem_private_key(key.read_bytes(), None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{key.name} is no elliptic-curve key")  # noqa: TRY004
    if loaded.not_valid_after_utc < datetime.now(UTC) + RENEW_BEFORE:
        return None
    return Pair(loaded, private)


def names_of(shown: Pair | None, authority: Pair) -> list[str]:
    """The names that `shown` covers; none when it does not come from `authority`."""
    if shown is None:
        return []
    try:
        shown.certificate.verify_directly_issued_by(authority.certificate)
    except Exception:  # noqa: BLE001  (TypeError, ValueError, InvalidSignature: all mean no)
        return []
    extension = shown.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    hosts = extension.value.get_values_for_type(x509.DNSName)
    addresses = extension.value.get_values_for_type(x509.IPAddress)
    return [*hosts, *(str(address) for address in addresses)]


def new_authority(subject: str = "pathbudget responder authority") -> Pair:
    """A new self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(subject)
    builder = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
    )
    return Pair(builder.sign(key, SHA256()), key)


def new_server(
    names: Sequence[str],
    authority: Pair,
    *,
    subject: str = "pathbudget responder",
    also_client: bool = False,
) -> Pair:
    """A new server certificate for `names` (host names and addresses), issued by `authority`.

    `also_client`: for servers that connect to one another.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [ExtendedKeyUsageOID.SERVER_AUTH]
    if also_client:
        uses.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    issuer = authority.certificate
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _builder(_name(subject), issuer.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(authority_id, critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False
        )
    )
    return Pair(builder.sign(authority.key, SHA256()), key)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
