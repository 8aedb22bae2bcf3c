"""One host over one connection: what it is like, and programs run there."""

import asyncio
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import asyncssh
import msgspec

from pathbudget.agents.ssh import host_scripts
from pathbudget.agents.ssh.bundle import Bundle
from pathbudget.agents.ssh.connecting import AwayError
from pathbudget.agents.ssh.hosts_file import Host
from pathbudget.agents.ssh.remote.speech import About
from pathbudget.probes.errors import HostError

PYTHONS = ("python3.11", "python3", "python3.12", "python3.13", "python3.14")
"""Tried in this order where the hosts file names none."""
NOT_FOUND = 127
PIECE = 128 << 10
ANSWER_WITHIN_S = 60.0
OnBytes = Callable[[int, int], None]
"""How many bytes of how many are there."""


class Found(msgspec.Struct, frozen=True):
    """What the check said; see `host_scripts.CHECK`."""

    python: tuple[int, int, int]
    machine: str
    suffixes: tuple[str, ...]
    home: str
    installed: tuple[str, ...]
    has_bundle: bool
    root: bool
    executable: str


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A host that can run a bundle. `python` is the program that does."""

    host: Host
    connection: asyncssh.SSHClientConnection
    python: str
    found: Found
    bundle: Bundle

    async def bring(self, on_bytes: OnBytes) -> None:
        """Have the bundle there. Raises HostError."""
        if self.found.has_bundle:
            return
        bundle, host = self.bundle, self.host
        size = len(bundle.content)
        words = (host.bundles, bundle.name, bundle.sha256, str(size))
        command = host_scripts.command(self.python, *words, sudo=host.sudo)
        try:
            async with self.connection.create_process(command, encoding=None) as process:
                process.stdin.write(host_scripts.first_line(host_scripts.BRING))
                for at in range(0, size, PIECE):
                    process.stdin.write(bundle.content[at : at + PIECE])
                    await process.stdin.drain()
                    on_bytes(min(at + PIECE, size), size)
                process.stdin.write_eof()
                output, errors = await process.communicate()
        except (asyncssh.Error, OSError) as error:
            raise AwayError(f"{host.vantage}: lost while the bundle was brought: {error}") from None
        answer = _answer(host, output, errors)
        if trouble := answer.get("trouble"):
            where = PurePosixPath(self.found.home) / host.bundles
            raise HostError(f"{host.vantage}: the bundle cannot be kept in {where}: {trouble}")

    async def about(self, prefix: str) -> About:
        """What the host is like, out of the bundle. Raises HostError."""
        runs = self.path(self.host.runs)
        output = await self.run_bundle("about", runs, prefix)
        try:
            return msgspec.json.decode(output, type=About)
        except msgspec.DecodeError as error:
            raise HostError(f"{self.host.vantage}: no answer of the bundle: {error}") from None

    def path(self, relative: str) -> str:
        """A path of the host."""
        return str(PurePosixPath(self.found.home) / relative)

    def bundle_command(self, *words: str) -> str:
        """The command line that has `RUN` check the SHA-256 of the bundle and run it."""
        path = f"{self.host.bundles}/{self.bundle.name}"
        return host_scripts.command(self.python, path, self.bundle.sha256, *words)

    async def run_bundle(self, *words: str) -> bytes:
        """Run it to its end; what it printed. Raises HostError."""
        command = self.bundle_command(*words)
        return await run(self.connection, self.host, command, host_scripts.RUN)


async def looked_at(
    connection: asyncssh.SSHClientConnection, host: Host, bundle: Bundle
) -> RemoteHost:
    """The host, if a Python there can run the bundle. Raises HostError that says what it lacks."""
    tried: list[str] = []
    seen: list[RemoteHost] = []
    for python in (host.python,) if host.python else PYTHONS:
        found = await _check(connection, host, python, bundle)
        if found is None:
            continue
        if found.python < (3, 11, 0):
            tried.append(f"{python} is {'.'.join(map(str, found.python))}")
            continue
        remote = RemoteHost(host, connection, python, found, bundle)
        if _fits(found, bundle) or not _missing(found, bundle):
            return remote
        seen.append(remote)
    if seen:
        raise HostError(f"{host.vantage}: {_lacks(seen[0], bundle)}")
    what = "; ".join(tried) or f"no {host.python or 'python3'} there"
    raise HostError(
        f"{host.vantage}: Python 3.11 or later is needed, and {what}. Install it on "
        f"{host.way.address}, or name it in the hosts file: python = "
        '"/path/to/python3.11"'
    )


def _fits(found: Found, bundle: Bundle) -> bool:
    """Whether what is compiled can be loaded there."""
    ends = tuple(end for end in found.suffixes if end != ".so")
    return found.machine == bundle.machine and all(one.endswith(ends) for one in bundle.compiled)


def _missing(found: Found, bundle: Bundle) -> list[str]:
    return [one for one in bundle.modules if one not in found.installed]


def _lacks(remote: RemoteHost, bundle: Bundle) -> str:
    found = remote.found
    version = ".".join(map(str, found.python))
    wanted = shlex.join(bundle.requirements)
    return (
        f"{remote.python} is {version} on {found.machine} and cannot load the compiled parts of "
        f"the bundle ({', '.join(bundle.compiled)}). On {remote.host.way.address} run: "
        f"{remote.python} -m pip install {wanted}\nor have a Python there that is like the one here"
    )


async def _check(
    connection: asyncssh.SSHClientConnection, host: Host, python: str, bundle: Bundle
) -> Found | None:
    words = (host.bundles, bundle.sha256, " ".join(bundle.modules))
    command = host_scripts.command(python, *words, sudo=host.sudo)
    code, output, errors = await _ran(connection, host, command, host_scripts.CHECK)
    if code == NOT_FOUND or (code and b"not found" in errors):
        return None
    if code:
        raise HostError(f"{host.vantage}: {python} does not run: {_last_line(errors)}")
    try:
        return msgspec.json.decode(output, type=Found)
    except msgspec.DecodeError:
        said = _last_line(output)
        raise HostError(
            f"{host.vantage}: the shell there prints more than it is asked for ({said!r}); "
            "let its start-up files be silent where there is no terminal"
        ) from None


async def run(
    connection: asyncssh.SSHClientConnection,
    host: Host,
    command: str,
    program: str,
    data: bytes = b"",
) -> bytes:
    """Run a program of `host_scripts` to its end; what it printed. Raises HostError."""
    code, output, errors = await _ran(connection, host, command, program, data)
    if code:
        raise HostError(f"{host.vantage}: {_last_line(errors) or f'ended with code {code}'}")
    return output


async def _ran(
    connection: asyncssh.SSHClientConnection,
    host: Host,
    command: str,
    program: str,
    data: bytes = b"",
) -> tuple[int, bytes, bytes]:
    text = host_scripts.first_line(program) + data
    try:
        done = await asyncio.wait_for(
            connection.run(command, input=text, encoding=None), ANSWER_WITHIN_S
        )
    except (asyncssh.Error, OSError) as error:
        why = str(error) or "no answer"
        raise AwayError(f"{host.vantage}: the connection broke: {why}") from None
    code = done.exit_status
    return (-1 if code is None else code), _bytes(done.stdout), _bytes(done.stderr)


def _answer(host: Host, output: object, errors: object) -> dict[str, str]:
    try:
        answer = json.loads(_bytes(output))
    except ValueError:
        raise HostError(f"{host.vantage}: {_last_line(_bytes(errors)) or 'no answer'}") from None
    return dict(answer)


def _bytes(said: object) -> bytes:
    return said if isinstance(said, bytes) else b""


def _last_line(text: bytes) -> str:
    lines: Sequence[str] = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
