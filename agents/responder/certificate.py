"""The private authority of a folder, and the certificate of the responder that uses it.

    ca.pem       for clients to trust        ca.key       signs; owner may read
    server.pem   what the responder shows    server.key   owner may read

Several responders may start in one folder at once: a lock lets one at a time look and write, each
file appears whole or not at all, and the certificate grows to cover the names of all of them. A
folder with ``server.pem`` and ``server.key`` but without ``ca.key`` holds somebody's own
certificate, which is used as it is.
"""

import contextlib
import fcntl
import ipaddress
import os
import ssl
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from pathbudget.probes.errors import ReflectorError


def server_context(folder: Path, names: Sequence[str]) -> ssl.SSLContext:
    """A TLS 1.3-only server context for `names`; makes what is missing in `folder`.

    Raises ReflectorError when the folder cannot be used, holds half a certificate, or one must
    be made and `cryptography` is not installed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    _with_files(folder, names, context.load_cert_chain)
    return context


def certificate_files(folder: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """The certificate for `names` and its key, as files; makes what is missing in `folder`.

    Raises as `server_context` does.
    """
    _with_files(folder, names, lambda _certificate, _key: None)
    return folder / "server.pem", folder / "server.key"


def _with_files(folder: Path, names: Sequence[str], use: Callable[[Path, Path], None]) -> None:
    """Have the files used while nobody else writes them."""
    try:
        if _is_somebodys_own(folder):
            use(folder / "server.pem", folder / "server.key")
            return
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            _ensure(folder, names)
            use(folder / "server.pem", folder / "server.key")
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or str(error)
        raise ReflectorError(f"{folder}: no usable certificate: {why}") from error


def subject_names(binds: Sequence[str], names: Sequence[str]) -> list[str]:
    """What the certificate must cover: the given names and every bind that is one address."""
    addresses = [bind.partition("%")[0] for bind in binds]
    single = [one for one in addresses if not ipaddress.ip_address(one).is_unspecified]
    return list(dict.fromkeys([*names, *single])) or ["localhost"]


def _is_somebodys_own(folder: Path) -> bool:
    """No authority of ours here. (Ours is written before the first certificate.)"""
    return (folder / "server.pem").exists() and not (folder / "ca.key").exists()


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ensure(folder: Path, names: Sequence[str]) -> None:
    """Make the authority and the certificate unless what is there covers `names` long enough."""
    try:
        from pathbudget.agents.responder import issuing
    except ImportError as error:
        hint = "pip install 'pathbudget[lab]', or put server.pem and server.key there yourself"
        raise ReflectorError(
            f"{folder}: making a certificate needs cryptography: {hint}"
        ) from error
    files = [folder / name for name in ("ca.pem", "ca.key", "server.pem", "server.key")]
    try:
        authority = issuing.load_pair(files[0], files[1])
        if authority is None:
            authority = issuing.new_authority()
            _write(files[0], authority.certificate_pem(), 0o644)
            _write(files[1], authority.key_pem(), 0o600)
        shown = issuing.load_pair(files[2], files[3])
        covered = issuing.names_of(shown, authority)
    except ValueError as error:
        raise ReflectorError(f"{folder}: not what a certificate looks like: {error}") from error
    if shown is None or not set(names) <= set(covered):
        shown = issuing.new_server(list(dict.fromkeys([*names, *covered])), authority)
        _write(files[3], shown.key_pem(), 0o600)
        _write(files[2], shown.certificate_pem(), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write the whole file or nothing, with its mode from the first byte on."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
