"""The responders of all sites: one process that gets ready, then one child per site.

``python -m pathbudget.agents.lab.answering`` with an order on standard input. Loading TLS and
making the certificate takes most of a second of processor time, so it is done once; each child
moves into the namespace of its site and serves there. When a child dies, all end.
"""

import os
import sys
from pathlib import Path

import msgspec

from pathbudget.agents.lab.namespaces import die_with_parent, enter_descriptor
from pathbudget.agents.responder.certificate import server_context
from pathbudget.agents.responder.process import Service, serve
from pathbudget.agents.responder.server import Listening


class Answerer(msgspec.Struct, frozen=True):
    """One site: descriptor of its namespace, addresses to listen on."""

    site: str
    namespace: int
    addresses: tuple[str, ...]


class Order(msgspec.Struct, frozen=True):
    """Everything the process is told. Every child writes a ready line to `ready`."""

    folder: str
    ready: int
    tls_port: int
    tcp_port: int
    sites: tuple[Answerer, ...]


def main() -> None:
    """Start the children, wait for the first that ends; it should not."""
    die_with_parent()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    names = [address for site in order.sites for address in site.addresses]
    context = server_context(Path(order.folder), names)
    children: dict[int, str] = {}
    for site in order.sites:
        child = os.fork()
        if child == 0:
            die_with_parent()
            enter_descriptor(site.namespace)
            listening = Listening(site.addresses, order.tls_port, order.tcp_port)
            serve(Service(listening, context, ready_fd=order.ready))
            sys.exit("it was told to stop")
        children[child] = site.site
    os.close(order.ready)
    ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(f"the responder of {children[ended]} ended with {code}")


if __name__ == "__main__":
    main()
