"""One scripted server as a process: its files, signals, the ready line."""

import asyncio
import os
import signal
import ssl
import sys
from pathlib import Path

from pathbudget.agents.completions.performance import Served
from pathbudget.agents.completions.server import CompletionsServer, Serving
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.stream.dialing import bearer


def serve(serving: Serving, ready_fd: int | None = None) -> tuple[Served, ...]:
    """Answer until SIGTERM or SIGINT; what was served. Blocks the calling thread."""
    return asyncio.run(_serve(serving, ready_fd))


async def _serve(serving: Serving, ready_fd: int | None) -> tuple[Served, ...]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with CompletionsServer(serving) as server:
        _say_ready(serving, ready_fd)
        await stop.wait()
        return tuple(server.stage.served)


def _say_ready(serving: Serving, ready_fd: int | None) -> None:
    if ready_fd is not None:
        os.write(ready_fd, b"ready\n")
        os.close(ready_fd)
        return
    scheme = "http" if serving.tls is None else "https"
    host = f"[{serving.address}]" if ":" in serving.address else serving.address
    where = f"{scheme}://{host}:{serving.port}/v1"
    sys.stderr.write(f"Answering at {where}, model {serving.script.model!r}. Ctrl-C ends it.\n")


def server_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """A context that shows this certificate. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        problem = (error.strerror or str(error)).lower()
        fault = Fault(str(certificate), "", problem, "a certificate and its key in PEM form")
        raise ConfigError([fault]) from error
    return context


def read_key(file: Path) -> str:
    """The API key that a file holds. Raises ConfigError."""
    option = "--api-key-file"
    ((_, value),) = bearer({option: str(file)}, option, "command line")
    return value.removeprefix("Bearer ")
