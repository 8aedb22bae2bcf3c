"""Which certificate is shown: our own, the site's, and the next one when its files change."""

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.reflector.options import Options
from pathbudget.agents.reflector.runner import Reflector
from pathbudget.agents.reflector.serving import certificates
from pathbudget.agents.reflector.serving.options import (
    CertificateChoice,
    HttpsOptions,
    read_tokens,
)
from pathbudget.agents.responder.issuing import Pair, new_authority, new_server
from pathbudget.probes.errors import ConfigError, ReflectorError
from pathbudget.probes.network import SystemNetwork

Start = Callable[..., AbstractAsyncContextManager[Any]]


def write(folder: Path, authority: Pair) -> CertificateChoice:
    """A chain and a key as an ACME client leaves them."""
    shown = new_server(["localhost"], authority)
    (folder / "fullchain.pem").write_bytes(shown.certificate_pem() + authority.certificate_pem())
    (folder / "privkey.pem").write_bytes(shown.key_pem())
    (folder / "root.pem").write_bytes(authority.certificate_pem())
    return CertificateChoice(folder / "fullchain.pem", folder / "privkey.pem")


async def serial(one: Any, authority: Path) -> str:
    import asyncio

    context = ssl.create_default_context(cafile=str(authority))
    reader, writer = await asyncio.open_connection(
        one.address, one.port, ssl=context, server_hostname="localhost"
    )
    try:
        return str(writer.get_extra_info("peercert")["serialNumber"])
    finally:
        writer.transport.abort()
        del reader


async def test_files_that_change_are_shown_without_a_restart(
    serving: Start, tmp_path: Path
) -> None:
    authority = new_authority()
    choice = write(tmp_path, authority)
    async with serving(choice=choice) as one:
        first = await serial(one, tmp_path / "root.pem")
        before = one.https.shown.state()
        write(tmp_path, authority)
        assert one.https.shown.state() != before
        one.https.reload()
        assert await serial(one, tmp_path / "root.pem") != first
        assert one.https.counts["certificate_reloads"] == 1


@pytest.mark.parametrize("broken", ["key of another", "half written", "gone"])
async def test_a_fault_in_the_files_changes_nothing(
    serving: Start, tmp_path: Path, broken: str
) -> None:
    choice = write(tmp_path, new_authority())
    async with serving(choice=choice) as one:
        first = await serial(one, tmp_path / "root.pem")
        key = tmp_path / "privkey.pem"
        if broken == "gone":
            key.unlink()
        elif broken == "half written":
            key.write_bytes(key.read_bytes()[:60])
        else:
            key.write_bytes(new_authority().key_pem())
        one.https.reload()
        assert one.https.counts["certificate_faults"] == 1
        assert await serial(one, tmp_path / "root.pem") == first


def test_our_own_is_kept_and_covers_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    first = certificates.own_certificate(None, ["0.0.0.0", "127.9.9.9"], ["reflector.example"])
    assert first.certificate == tmp_path / "state" / "server.pem"
    before = first.certificate.read_bytes()
    again = certificates.own_certificate(None, ["127.9.9.9"], [])
    assert again.certificate.read_bytes() == before
    assert again.authority == tmp_path / "state" / "ca.pem"


def test_without_a_place_to_keep_it_our_own_lasts_as_long_as_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "file" / "below"))
    shown = certificates.own_certificate(None, ["127.9.9.9"], [])
    assert shown.folder is not None
    assert shown.certificate.exists()
    shown.folder.cleanup()
    with pytest.raises(ReflectorError, match="no usable certificate"):
        certificates.own_certificate(tmp_path / "file" / "below", ["127.9.9.9"], [])


async def test_without_the_extra_stamp_is_answered_and_a_line_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pathbudget.agents.reflector.runner.HTTPS_NEEDS", ("h11", "not_installed"))
    said: list[str] = []
    network = SystemNetwork()
    options = Options(("127.99.1.1",), https=HttpsOptions(port=0))
    reflector = Reflector(network, options, None, lambda: None, said.append)
    reflector.open()
    try:
        assert reflector.status().https is None
        assert said == [
            "HTTPS is off: this needs not_installed; run: pip install 'pathbudget[request]'"
        ]
    finally:
        reflector.close()
        network.close()


@pytest.mark.parametrize(
    ("content", "mode", "word"),
    [
        ("0123456789abcdef\n", 0o644, "chmod 600"),
        ("short\n", 0o600, "line 1: no token"),
        ("two words that are long\n", 0o600, "line 1: no token"),
        ("# nothing\n\n", 0o600, "no token in it"),
    ],
)
def test_files_of_tokens_that_are_none(tmp_path: Path, content: str, mode: int, word: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=word):
        read_tokens(file)


def test_a_file_of_something_else_is_one_fault(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("no token here\n" * 100)
    file.chmod(0o600)
    with pytest.raises(ConfigError) as told:
        read_tokens(file)
    (fault,) = told.value.faults
    assert fault.problem == "no token in it"


def test_a_file_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# of site 1\n0123456789abcdef\n\nfedcba9876543210\n")
    file.chmod(0o600)
    assert read_tokens(file) == (b"0123456789abcdef", b"fedcba9876543210")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--certificate", "/nowhere/a.pem"], 2, "--key: not given"),
        (["--key", "/nowhere/a.pem"], 2, "--certificate: not given"),
        (["--certificate", "/nowhere/a", "--key", "/nowhere/b"], 5, "/nowhere/a: No such file"),
        (["--token-file", "/nowhere/tokens"], 2, "/nowhere/tokens"),
        (["--https-port", "70000"], 2, "--https-port"),
    ],
)
def test_words_that_make_no_sense(words: list[str], code: int, said: str) -> None:
    ran = CliRunner().invoke(
        application, ["reflector", "--listen", "127.99.1.2", "--duration", "0.1", *words]
    )
    assert ran.exit_code == code
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
