"""Host keys that are not accepted: what is known of the host, what it showed, what to do."""

import asyncssh

from pathbudget.agents.ssh.hosts_file import Way


class KeyWatch(asyncssh.SSHClient):
    """Remembers the key that a host showed where it is not known. Never accepts one."""

    def __init__(self) -> None:
        self.shown: asyncssh.SSHKey | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Called by asyncssh for a key that is in no file."""
        del host, addr, port
        self.shown = key
        return False


def refused_key(way: Way, name: str, shown: asyncssh.SSHKey | None, why: str) -> str:
    """A sentence that says which file, and how a person adds the key after a look at it."""
    file = next((path for path in way.known_hosts if path.is_file()), way.known_hosts[0])
    if shown is None:
        return f"{name}: the host key is refused: {why} (of {file})"
    kind = shown.get_algorithm()
    print_of = shown.get_fingerprint()
    pattern = way.host if way.port == 22 else f"[{way.host}]:{way.port}"
    line = f"{pattern} {shown.export_public_key('openssh').decode().split(' ')[0]} "
    line += shown.export_public_key("openssh").decode().split()[1]
    known = known_keys(way)
    compare = (
        "on the host, `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` shows what it should be.\n"
        f"When it is right, add this line to {file}:\n  {line}"
    )
    if not known:
        return f"{name}: unknown host key ({kind} {print_of}), in none of {_files(way)};\n{compare}"
    before = ", ".join(f"{one.get_algorithm()} {one.get_fingerprint()}" for one in known)
    return (
        f"{name}: THE HOST KEY HAS CHANGED: it shows {kind} {print_of}, and {_files(way)} "
        f"has {before}.\nSomebody may be in between, or the host was set up anew. "
        f"If it was: ssh-keygen -R '{pattern}' -f {file}; then\n{compare}"
    )


def known_keys(way: Way) -> list[asyncssh.SSHKey]:
    """What the files say of a machine."""
    files = [str(path) for path in way.known_hosts if path.is_file()]
    if not files:
        return []
    port = way.port if way.port != 22 else None
    found = asyncssh.match_known_hosts(asyncssh.read_known_hosts(files), way.host, "", port)
    return list(found[0])


def _files(way: Way) -> str:
    return " and ".join(str(path) for path in way.known_hosts)
