"""The certificate folder: made whole, shared by several, never overwritten when it is yours."""

import ssl
import stat
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from pathbudget.agents.responder import issuing
from pathbudget.agents.responder.certificate import server_context, subject_names
from pathbudget.probes.errors import ReflectorError


def shown_for(folder: Path, names: Sequence[str]) -> list[str]:
    server_context(folder, names)
    authority = issuing.load_pair(folder / "ca.pem", folder / "ca.key")
    assert authority is not None
    shown = issuing.load_pair(folder / "server.pem", folder / "server.key")
    return issuing.names_of(shown, authority)


def handshake(server: ssl.SSLContext, authority: Path, name: str) -> str | None:
    """TLS between two ends in memory, so that only the certificates can fail."""
    client = ssl.create_default_context(cafile=authority)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(down, up, server_hostname=name),
        server.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0].version()


def test_keys_are_for_the_owner_alone(tmp_path: Path) -> None:
    server_context(tmp_path / "new" / "folder", ["site.example"])
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) & 0o077
        for path in (tmp_path / "new" / "folder").glob("*.*")
    }
    assert modes["server.key"] == modes["ca.key"] == 0
    assert {"ca.pem", "server.pem"} <= modes.keys()


@pytest.mark.parametrize("name", ["site.example", "192.0.2.7", "2001:db8::7"])
def test_a_strict_client_accepts_each_name(tmp_path: Path, name: str) -> None:
    context = server_context(tmp_path, ["site.example", "192.0.2.7", "2001:db8::7"])
    assert handshake(context, tmp_path / "ca.pem", name) == "TLSv1.3"


def test_a_client_refuses_a_name_that_is_not_covered(tmp_path: Path) -> None:
    context = server_context(tmp_path, ["site.example"])
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(context, tmp_path / "ca.pem", "other.example")


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    server_context(tmp_path, ["site.example", "192.0.2.7"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    server_context(tmp_path, ["192.0.2.7"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_certificate_grows_under_the_same_authority(tmp_path: Path) -> None:
    first = server_context(tmp_path, ["a.example"])
    authority = (tmp_path / "ca.pem").read_bytes()
    assert set(shown_for(tmp_path, ["b.example"])) == {"a.example", "b.example"}
    assert (tmp_path / "ca.pem").read_bytes() == authority
    assert handshake(first, tmp_path / "ca.pem", "a.example")


def test_ten_responders_that_start_at_once_share_one_folder(tmp_path: Path) -> None:
    contexts: dict[str, ssl.SSLContext] = {}

    def start(name: str) -> None:
        contexts[name] = server_context(tmp_path, [name])

    names = [f"site{number}.example" for number in range(10)]
    threads = [threading.Thread(target=start, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert handshake(contexts[name], tmp_path / "ca.pem", name) == "TLSv1.3"
    assert set(shown_for(tmp_path, [])) == set(names)
    leftovers = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert leftovers == [".lock"]


def test_your_own_certificate_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    server_context(made, ["yours.example"])
    own = tmp_path / "own"
    own.mkdir()
    for name in ("server.pem", "server.key"):
        (own / name).write_bytes((made / name).read_bytes())
    monkeypatch.setitem(sys.modules, "cryptography", None)  # not even needed
    context = server_context(own, ["mine.example"])
    assert handshake(context, made / "ca.pem", "yours.example")
    assert {path.name for path in own.iterdir()} == {"server.pem", "server.key"}  # not even a lock


def test_half_a_certificate_of_your_own_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(ReflectorError, match="no usable certificate"):
        server_context(tmp_path, ["a.example"])
    assert (tmp_path / "server.pem").read_text() == "-----BEGIN CERTIFICATE-----\n"


def test_a_damaged_authority_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    server_context(tmp_path, ["a.example"])
    (tmp_path / "ca.pem").write_text("garbage")
    with pytest.raises(ReflectorError, match=f"{tmp_path.name}: not what a certificate looks like"):
        server_context(tmp_path, ["a.example"])


def test_what_ends_soon_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuing, "VALIDITY", timedelta(days=10))
    server_context(tmp_path, ["a.example"])
    old = (tmp_path / "server.pem").read_bytes()
    monkeypatch.undo()
    context = server_context(tmp_path, ["a.example"])
    assert (tmp_path / "server.pem").read_bytes() != old
    assert handshake(context, tmp_path / "ca.pem", "a.example")


def test_without_cryptography_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pathbudget.agents.responder.issuing")
    monkeypatch.delattr("pathbudget.agents.responder.issuing")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ReflectorError, match=r"pip install 'pathbudget\[lab\]'"):
        server_context(tmp_path, ["a.example"])


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReflectorError, match="file: no usable certificate: File exists"):
        server_context(tmp_path / "file", ["a.example"])


def test_subject_names_leave_out_addresses_that_mean_every_address() -> None:
    assert subject_names(["0.0.0.0", "::"], ["a.example"]) == ["a.example"]
    assert subject_names(["fe80::1%lo", "127.0.0.1"], []) == ["fe80::1", "127.0.0.1"]
    assert subject_names(["::"], []) == ["localhost"]
