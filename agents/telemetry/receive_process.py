"""One receiver as a process: signals, the ready line."""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from pathbudget.agents.telemetry.receive_files import TraceFiles
from pathbudget.agents.telemetry.receive_server import Receiver, ReceiverOptions

FILE_BYTES = 64 << 20


def serve(
    options: ReceiverOptions, folder: Path, most_bytes: int, ready_fd: int | None
) -> Counter[str]:
    """Receive until SIGTERM or SIGINT; what was counted.

    Raises StoreError for the folder, ReflectorError where it cannot listen.
    """
    files = TraceFiles(folder, most_bytes, FILE_BYTES)
    return asyncio.run(_serve(options, files, folder, ready_fd))


async def _serve(
    options: ReceiverOptions, files: TraceFiles, folder: Path, ready_fd: int | None
) -> Counter[str]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    receiver = Receiver(options, files)
    async with receiver:
        if ready_fd is None:
            host = f"[{options.host}]" if ":" in options.host else options.host
            sys.stderr.write(
                f"Traces to http://{host}:{receiver.port}/v1/traces are kept in {folder}. "
                "Ctrl-C ends it.\n"
            )
        else:
            os.write(ready_fd, b"ready\n")
            os.close(ready_fd)
        await stop.wait()
    return receiver.counts
