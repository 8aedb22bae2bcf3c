"""A responder in this process, and plain clients for it."""

import contextlib
import itertools
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pathbudget.agents.responder.certificate import server_context, subject_names
from pathbudget.agents.responder.delays import NO_DELAYS, Delays
from pathbudget.agents.responder.limits import DEFAULT_LIMITS, Limits
from pathbudget.agents.responder.server import Listening, Responder

Listen = Callable[..., AbstractAsyncContextManager[Responder]]
_counter = itertools.count(1)


@pytest.fixture
def own_address() -> str:
    """An address of 127/8 that no other test uses."""
    number = next(_counter)
    return f"127.{64 + os.getpid() % 64}.{os.getpid() // 64 % 256}.{number % 250 + 1}"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose certificate covers 127.0.0.1 and ::1."""
    folder = tmp_path_factory.mktemp("certificates")
    server_context(folder, ["127.0.0.1", "::1"])
    return folder


@pytest.fixture
def listen(certificates: Path) -> Listen:
    """``async with listen(limits=..., binds=...) as responder``: ports chosen by the kernel."""

    @contextlib.asynccontextmanager
    async def start(
        *,
        limits: Limits = DEFAULT_LIMITS,
        delays: Delays = NO_DELAYS,
        binds: tuple[str, ...] = ("127.0.0.1",),
    ) -> AsyncGenerator[Responder]:
        context = server_context(certificates, subject_names(binds, []))
        async with Responder(Listening(binds, 0, 0, 0), context, limits, delays) as responder:
            yield responder

    return start


@pytest.fixture
def client_context(certificates: Path) -> ssl.SSLContext:
    """A client that trusts the folder's authority, as strictly as OpenSSL can be."""
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@pytest.fixture
def shake() -> Callable[..., ssl.SSLSocket]:
    """``shake(context, address, session)``: one finished handshake; a missing goodbye raises."""

    def connect(
        context: ssl.SSLContext, address: tuple[str, int], session: ssl.SSLSession | None = None
    ) -> ssl.SSLSocket:
        plain = socket.create_connection(address, timeout=5)
        try:
            return context.wrap_socket(
                plain, server_hostname=address[0], session=session, suppress_ragged_eofs=False
            )
        except BaseException:
            plain.close()
            raise

    return connect
