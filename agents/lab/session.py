"""How a program finds the lab it runs in: ``PATHBUDGET_LAB`` names a JSON file of its nodes.

The file is in memory and belongs to the lab's process: when the lab is gone, so is the file.
"""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import msgspec

from pathbudget.probes.errors import LabError

VARIABLE = "PATHBUDGET_LAB"


class Node(msgspec.Struct, frozen=True):
    """One node of a running lab. `namespace` is a path for `namespaces.enter`."""

    namespace: str
    ipv4: str
    ipv6: str
    kind: str
    """``region``, ``router`` or ``site``."""
    asn: int | None = None
    mrt_file: str = ""
    """Where its BGP speaker writes all messages; empty where it does not."""


class Listener(msgspec.Struct, frozen=True):
    """A BGP session that a router of the lab keeps calling for (RFC 4271, passive side).

    Listen in the namespace of node `at` on `address` and `port` as AS `asn`; the router calls from
    `peer_address` as AS `peer_asn`.
    """

    at: str
    address: str
    port: int
    asn: int
    router: str
    peer_address: str
    peer_asn: int
    add_paths: bool = False


class LabSession(msgspec.Struct, frozen=True):
    """The lab around this process."""

    nodes: dict[str, Node]
    ca_file: str = ""
    """Authority of the certificates that the sites show; empty when no site has a responder
    or a reflector."""
    listeners: dict[str, Listener] = {}

    def encode(self) -> bytes:
        """The file's content."""
        return msgspec.json.encode(self)


def current() -> LabSession | None:
    """The lab that this process runs in, None outside of any.

    Raises LabError when the variable names something that is no (living) lab.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=LabSession)
    except (OSError, msgspec.DecodeError) as error:
        raise LabError(f"{VARIABLE} is {path}, which is no running lab: {error}") from None


@contextlib.contextmanager
def made_current(path: str) -> Generator[None]:
    """Within the block `current` gives the lab behind `path`, here and in new child processes."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = path
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before
