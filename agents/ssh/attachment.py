"""This end of an `Attachment`: messages to whoever follows the run, its journal to the disk."""

import asyncio
from collections.abc import AsyncIterator

import asyncssh
import msgspec

from pathbudget.agents.campaign.messages import FromWorker, Message, Stop, WorkOrder, encode
from pathbudget.agents.ssh import host_scripts
from pathbudget.agents.ssh.connecting import AwayError
from pathbudget.agents.ssh.mirror import Mirror
from pathbudget.agents.ssh.remote.speech import (
    Acknowledge,
    Attach,
    Begin,
    Ended,
    FromHost,
    Gone,
    Piece,
    Trouble,
    from_host,
)
from pathbudget.agents.ssh.remote_host import RemoteHost
from pathbudget.probes.errors import HostError, SpoolError

LARGEST_PIECE = 1 << 20


class Attached:
    """Made by `to`; ends with the run, or with the connection (AwayError)."""

    def __init__(
        self, remote: RemoteHost, process: "asyncssh.SSHClientProcess[bytes]", mirror: Mirror
    ) -> None:
        self.last_words = ""
        """Why the worker ended, where it did not say `Done`."""
        self.was_gone = False
        """Nothing was left of the run when we came."""
        self._remote = remote
        self._process = process
        self._mirror = mirror

    @classmethod
    async def to(
        cls, remote: RemoteHost, run: str, mirror: Mirror, order: WorkOrder | None
    ) -> "Attached":
        """Begin to tell of `run` from where the mirror is; with an order it is begun if need be."""
        command = remote.bundle_command("attach", remote.path(remote.host.runs))
        try:
            process = await remote.connection.create_process(command, encoding=None)
            wish = Attach(run, mirror.size, order)
            process.stdin.write(host_scripts.first_line(host_scripts.RUN) + encode(wish))
        except (asyncssh.Error, OSError) as error:
            raise AwayError(f"{remote.host.vantage}: lost: {error}") from None
        return cls(remote, process, mirror)

    def begin(self, head_start_ns: int) -> None:
        """Have the worker send in so long."""
        self._send(Begin(head_start_ns))

    def stop(self) -> None:
        """Have it end."""
        self._send(Stop())

    async def messages(self) -> AsyncIterator[FromWorker]:
        """What the worker says, to its end; by then its journal is whole and here.

        Raises AwayError when the connection breaks, SpoolError when nothing can be kept here.
        """
        told_end = False
        while True:
            message = await self._next()
            match message:
                case Piece(offset=offset, length=length):
                    self._mirror.append(offset, await self._exactly(length))
                case Ended(size=size, last_words=last_words):
                    if size != self._mirror.size:
                        raise SpoolError(f"{self._mirror.path}: not all of it came")
                    self.last_words, told_end = last_words, True
                    if size:
                        self._mirror.finish()
                    else:
                        self._mirror.discard()
                    self._send(Acknowledge(size))
                case Gone():
                    self.was_gone = not told_end
                    return
                case Trouble(text=text):
                    raise HostError(f"{self._remote.host.vantage}: {text}")
                case _:
                    yield message

    async def _next(self) -> FromHost:
        try:
            line = await self._process.stdout.readline()
        except (asyncssh.Error, OSError, asyncio.IncompleteReadError) as error:
            raise self._broken(str(error)) from None
        if not line.endswith(b"\n"):
            raise await self._why_ended()
        try:
            return from_host.decode(line)
        except msgspec.DecodeError:
            said = line[:80].decode(errors="replace").strip()
            raise HostError(f"{self._remote.host.vantage}: says {said!r}, no message") from None

    async def _exactly(self, length: int) -> bytes:
        if length > LARGEST_PIECE:
            raise HostError(f"{self._remote.host.vantage}: sends {length} bytes at once")
        try:
            return await self._process.stdout.readexactly(length)
        except (asyncssh.Error, OSError, asyncio.IncompleteReadError) as error:
            raise self._broken(str(error)) from None

    async def _why_ended(self) -> HostError:
        """The program ended: of itself, or with the connection."""
        try:
            await self._process.wait_closed()
            errors = await self._process.stderr.read()
        except (asyncssh.Error, OSError):
            return self._broken("")
        code = self._process.exit_status
        lines = errors.decode(errors="replace").strip().splitlines()
        if code is None or code < 0 or not lines:
            return self._broken("")
        return HostError(f"{self._remote.host.vantage}: {lines[-1]}")

    def _broken(self, why: str) -> AwayError:
        return AwayError(f"{self._remote.host.vantage}: the connection broke: {why or 'closed'}")

    def _send(self, message: Message) -> None:
        if not self._process.stdin.is_closing():
            self._process.stdin.write(encode(message))
