"""Responders and reflectors of all sites: one process that gets ready, then one child for each.

``python -m pathbudget.agents.lab.answering`` with an order on standard input. Loading TLS and
making the certificate takes most of a second of processor time, so it is done once; each child
moves into the namespace of its site and serves there. When a child dies, all end.
"""

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from pathbudget.agents.lab.namespaces import die_with_parent, enter_descriptor
from pathbudget.agents.lab.topology import TRUE_CLOCK
from pathbudget.agents.reflector import process as reflecting
from pathbudget.agents.reflector.clock_error import ErrorBound, host_error_ns
from pathbudget.agents.reflector.clocks import Skew, SkewedClock
from pathbudget.agents.reflector.options import Options
from pathbudget.agents.reflector.serving.options import CertificateChoice, HttpsOptions
from pathbudget.probes.clock import SystemClock


class Answerer(msgspec.Struct, frozen=True):
    """One site: descriptor of its namespace, addresses to listen on, what runs there."""

    site: str
    namespace: int
    addresses: tuple[str, ...]
    responder: bool
    reflector: bool
    clock: Skew
    """Of the reflector."""


class Order(msgspec.Struct, frozen=True):
    """Everything the process is told. Every child writes a ready line to `ready`."""

    folder: str
    ready: int
    tls_port: int
    tcp_port: int
    stamp_port: int
    https_port: int
    sites: tuple[Answerer, ...]


def main() -> None:
    """Start the children, wait for the first that ends; it should not."""
    die_with_parent()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    certificate = _certificate(order)
    children = {
        **{_child(site, serve): f"responder of {site.site}" for site, serve in _responders(order)},
        **{
            _child(site, serve): f"reflector of {site.site}"
            for site, serve in _reflectors(order, certificate)
        },
    }
    os.close(order.ready)
    ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(f"the {children[ended]} ended with {code}")


def _child(site: Answerer, serve: Callable[[], object]) -> int:
    """Process id of a child that serves in the namespace of `site` and nothing else."""
    child = os.fork()
    if child == 0:
        die_with_parent()
        enter_descriptor(site.namespace)
        serve()
        sys.exit("it was told to stop")
    return child


def _responders(order: Order) -> Iterator[tuple[Answerer, Callable[[], object]]]:
    sites = [site for site in order.sites if site.responder]
    if not sites:
        return
    from pathbudget.agents.responder.certificate import server_context
    from pathbudget.agents.responder.process import Service, serve
    from pathbudget.agents.responder.server import Listening

    names = [address for site in sites for address in site.addresses]
    context = server_context(Path(order.folder), names)
    for site in sites:
        listening = Listening(site.addresses, order.tls_port, order.tcp_port)
        yield site, partial(serve, Service(listening, context, ready_fd=order.ready))


def _complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _error_of(clock: Skew) -> ErrorBound:
    """What a site says of its clock: what its world file says, else what this host does."""
    return host_error_ns if clock == TRUE_CLOCK else lambda: clock.stated_error_ns


def _certificate(order: Order) -> CertificateChoice:
    """Files that all sites show; made here, once. What it takes to serve is loaded once, too."""
    from pathbudget.agents.responder.certificate import certificate_files

    with contextlib.suppress(ImportError):  # STAMP alone then: every reflector says so
        importlib.import_module("pathbudget.agents.reflector.serving.service")
    names = [f"{site.site}.lab" for site in order.sites if site.site.isascii()]
    addresses = [address for site in order.sites for address in site.addresses]
    return CertificateChoice(*certificate_files(Path(order.folder), [*addresses, *names]))


def _reflectors(
    order: Order, certificate: CertificateChoice
) -> Iterator[tuple[Answerer, Callable[[], object]]]:
    began = time.time_ns()
    https = HttpsOptions(port=order.https_port, certificate=certificate)
    for site in order.sites:
        if site.reflector:
            service = reflecting.Service(
                options=Options(site.addresses, order.stamp_port, https=https),
                clock=SkewedClock(SystemClock(), site.clock, began),
                error_estimate=_error_of(site.clock),
                ready_fd=order.ready,
                complain=_complain,
            )
            yield site, partial(reflecting.serve, service)


if __name__ == "__main__":
    main()
