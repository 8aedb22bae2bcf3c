"""Servers that others wrote, set up at a site of a lab: nginx for TLS and HTTP, ngtcp2 for QUIC."""

import datetime
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.programs import program

NAME = "gpu.example"
TLS_PORT, LONG_CHAIN_PORT, OTHER_GROUP_PORT = 443, 444, 446
QUIC_PORT, QUIC_RETRY_PORT = 4433, 4434
PADDING_BYTES = 20_000

NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx-{site}.pid;
error_log {folder}/nginx-{site}.error;
events {{ worker_connections 256; }}
http {{
  log_format told '$server_port $ssl_protocol reused=$ssl_session_reused early=$ssl_early_data '
                  '$server_protocol $request_method $request_uri $status';
  access_log {folder}/nginx-{site}.log told;
  client_body_temp_path {folder}/b-{site}; proxy_temp_path {folder}/p-{site};
  fastcgi_temp_path {folder}/f-{site}; uwsgi_temp_path {folder}/u-{site};
  scgi_temp_path {folder}/s-{site};
  tcp_nodelay on; ssl_protocols TLSv1.3; ssl_early_data on; ssl_session_tickets on;
  ssl_certificate_key {folder}/server.key;
  server {{ listen {tls} ssl http2; ssl_certificate {folder}/server.pem;
            location / {{ return 200 "hello\\n"; }} }}
  server {{ listen {long} ssl; ssl_certificate {folder}/long.pem;
            location / {{ return 200 "hello\\n"; }} }}
  server {{ listen {group} ssl; ssl_certificate {folder}/server.pem; ssl_ecdh_curve prime256v1;
            location / {{ return 200 "hello\\n"; }} }}
}}
"""


def make_certificates(folder: Path) -> None:
    """`server.pem`, the same with a chain of over 20 kB as `long.pem`, and `ca.pem` to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    plain = _self_signed(key, padding=0)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "server.key").write_bytes(secret)
    (folder / "server.pem").write_bytes(plain)
    (folder / "ca.pem").write_bytes(plain)
    (folder / "long.pem").write_bytes(plain + _self_signed(key, padding=PADDING_BYTES))


def _self_signed(key: ec.EllipticCurvePrivateKey, *, padding: int) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if padding:
        oid = x509.ObjectIdentifier("1.3.6.1.4.1.32473.1")
        filler = x509.UnrecognizedExtension(oid, bytes(padding))
        builder = builder.add_extension(filler, critical=False)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def start(lab: Any, site: str, folder: Path) -> list["subprocess.Popen[bytes]"]:
    """The servers at one site; certificates are made already. They end with the lab."""
    text = NGINX.format(
        folder=folder, site=site, tls=TLS_PORT, long=LONG_CHAIN_PORT, group=OTHER_GROUP_PORT
    )
    config = folder / f"nginx-{site}.conf"
    config.write_text(text)
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    (pages / "index.html").write_text("hello\n")
    quic = [program("gtlsserver"), "-q", "--no-quic-dump", "--no-http-dump", "-d", str(pages)]
    ends = [str(folder / "server.key"), str(folder / "server.pem")]
    commands: Sequence[Sequence[str]] = (
        [program("nginx"), "-c", str(config)],
        [*quic, "0.0.0.0", str(QUIC_PORT), *ends],
        [*quic, "-V", "0.0.0.0", str(QUIC_RETRY_PORT), *ends],
    )
    with (folder / f"servers-{site}.log").open("wb") as log:
        started = [lab.spawn(site, command, stdout=log, stderr=log) for command in commands]
    time.sleep(0.3)
    return started


def requests_seen(folder: Path, site: str) -> list[str]:
    """Lines of the access log of nginx at a site."""
    log = folder / f"nginx-{site}.log"
    return log.read_text().splitlines() if log.exists() else []
