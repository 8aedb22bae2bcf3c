"""Certificates of a fleet: made once, renewed in time, never replaced behind somebody's back."""

import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.fleet.conftest import Served, entered, until

from pathbudget.agents.bus.subjects import OPERATOR
from pathbudget.agents.fleet.authority import Authority
from pathbudget.agents.fleet.folder import Folder, Node, Settings
from pathbudget.agents.responder import issuing
from pathbudget.probes.errors import ConfigError


@contextmanager
def short_lives(days: int = 20) -> Generator[None]:
    """What is made now ends so soon that it is to be renewed."""
    with patch.object(issuing, "VALIDITY", timedelta(days=days)):
        yield


def shown(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((path / "server.pem").read_bytes())


def presented(port: int) -> bytes | None:
    """The certificate that a server shows: TLS begins after one line in the clear."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        while not plain.recv(4096).endswith(b"\r\n"):
            pass
        with context.wrap_socket(plain) as sealed:
            return sealed.getpeercert(binary_form=True)


def days_left(path: Path) -> int:
    return (shown(path).not_valid_after_utc - datetime.now(UTC)).days


def test_a_certificate_is_made_once_and_again_when_it_ends_soon(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    before = authority.certificate_text()
    with short_lives():
        assert authority.server_pair(["bus.example.org"])
    assert days_left(tmp_path) < 30
    assert authority.server_pair(["bus.example.org"])
    assert days_left(tmp_path) > 3000
    assert not authority.server_pair(["bus.example.org"])
    assert authority.server_pair(["bus.example.org", "192.0.2.1", "2001:db8::1"])
    assert not authority.server_pair(["2001:db8::1"])
    assert authority.certificate_text() == before
    assert (tmp_path / "server.key").stat().st_mode & 0o777 == 0o600


def test_servers_of_a_cluster_may_be_clients_of_one_another(tmp_path: Path) -> None:
    Authority(tmp_path).server_pair(["a"])
    uses = shown(tmp_path).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    names = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert set(uses) == names


def test_an_authority_that_ends_or_is_torn_is_for_a_person(tmp_path: Path) -> None:
    with short_lives():
        Authority(tmp_path).certificate_text()
    with pytest.raises(ConfigError, match="ends within 30 days"):
        Authority(tmp_path).server_pair(["a"])
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(ConfigError, match="no authority"):
        Authority(tmp_path).certificate_text()
    (tmp_path / "ca.key").unlink()
    with pytest.raises(ConfigError, match="has no key"):
        Authority(tmp_path).certificate_text()


def test_each_node_of_a_cluster_gets_its_own_and_they_are_renewed_where_they_lie(
    tmp_path: Path,
) -> None:
    nodes = (Node("a"), Node("b"), Node("192.0.2.3"))
    folder = Folder(tmp_path / "fleet")
    with short_lives():
        Authority(tmp_path / "other")
        folder.authority.folder.parent.mkdir()
    folder.authority.certificate_text()
    with short_lives():
        folder.prepare(Settings(nodes=nodes))
    places = [folder.path / "nodes" / one.name for one in nodes]
    assert all(days_left(one) < 30 for one in places)
    assert folder.renew()
    assert all(days_left(one) > 3000 for one in places)
    assert not folder.renew()


@pytest.mark.needs("nats-server")
async def test_a_running_server_shows_the_new_one_and_nobody_is_cut_off(fleet: Served) -> None:
    place = fleet.folder.path / "tls"
    async with entered(fleet.login(OPERATOR)) as operator:
        with short_lives():
            (place / "server.pem").unlink()
            fleet.folder.authority.server_pair(["127.0.0.1"])
        until(lambda: "the certificate of the server was renewed" in fleet.log)
        assert days_left(place) > 3000
        newest = (place / "server.pem").read_text()
        until(lambda: "Reloaded: tls" in fleet.server_log)
        assert presented(fleet.folder.settings().port) == ssl.PEM_cert_to_DER_cert(newest)
        await operator.client.flush()
        assert operator.said == []
