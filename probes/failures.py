"""The one place where what the system says becomes a `Failure`."""

import errno
import os
import socket
import ssl

from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage

_BY_ERRNO: dict[int, FailureKind] = {
    errno.ECONNREFUSED: FailureKind.REFUSED,
    errno.ECONNRESET: FailureKind.RESET,
    errno.EPIPE: FailureKind.RESET,
    errno.ECONNABORTED: FailureKind.RESET,
    errno.ETIMEDOUT: FailureKind.TIMEOUT,
    errno.EHOSTUNREACH: FailureKind.UNREACHABLE,
    errno.EHOSTDOWN: FailureKind.UNREACHABLE,
    errno.ENETUNREACH: FailureKind.UNREACHABLE,
    errno.EPROTO: FailureKind.PROTOCOL,
    errno.EACCES: FailureKind.PERMISSION,
    errno.EPERM: FailureKind.PERMISSION,
    errno.EAFNOSUPPORT: FailureKind.NO_ROUTE,
    errno.ENETDOWN: FailureKind.NO_ROUTE,
    errno.EADDRNOTAVAIL: FailureKind.LOCAL,
    errno.EADDRINUSE: FailureKind.LOCAL,
    errno.ENOBUFS: FailureKind.LOCAL,
    errno.ENOMEM: FailureKind.LOCAL,
    errno.EMFILE: FailureKind.LOCAL,
    errno.ENFILE: FailureKind.LOCAL,
    errno.EAGAIN: FailureKind.LOCAL,
    errno.EINVAL: FailureKind.LOCAL,
    errno.EMSGSIZE: FailureKind.LOCAL,
}
_NO_ROUTE = {
    AddressFamily.IPV4: frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH}),
    # Where IPv6 is switched off, an IPv6 socket can be had, but no address for it.
    AddressFamily.IPV6: frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL}),
}
"""What a send or connect call itself says when the routing table has no way there."""

_UNREACHABLE_V4 = {
    0: "network unreachable",
    1: "host unreachable",
    2: "protocol unreachable",
    3: "port unreachable",
    4: "fragmentation needed",
    5: "source route failed",
    6: "network unknown",
    7: "host unknown",
    9: "network prohibited",
    10: "host prohibited",
    13: "administratively prohibited",
}
_UNREACHABLE_V6 = {
    0: "no route",
    1: "administratively prohibited",
    2: "beyond scope of source address",
    3: "address unreachable",
    4: "port unreachable",
    5: "source address failed policy",
    6: "route rejected",
}
_TIME_EXCEEDED = {0: "hop limit exceeded in transit", 1: "fragment reassembly timed out"}

_RESOLVER_SAYS = {
    socket.EAI_NONAME: FailureKind.NAME_NOT_FOUND,
    socket.EAI_NODATA: FailureKind.NO_ADDRESS,
    socket.EAI_ADDRFAMILY: FailureKind.NO_ADDRESS,
}


def from_os_error(error: OSError, stage: Stage) -> Failure:
    """What a socket reported while the probe was under way."""
    code = error.errno or 0
    kind = _BY_ERRNO.get(code, FailureKind.OTHER)
    return Failure(kind, stage, detail=os.strerror(code).lower() if code else str(error))


def from_refused_call(error: OSError, stage: Stage, family: AddressFamily) -> Failure:
    """What a send or connect call itself refused: nothing has left this host."""
    if error.errno == errno.EAFNOSUPPORT:
        return no_family(family, stage)
    failure = from_os_error(error, stage)
    if error.errno in _NO_ROUTE[family]:
        detail = f"this host has no route there ({failure.detail})"
        return Failure(FailureKind.NO_ROUTE, stage, detail=detail)
    return failure


def from_icmp(
    family: AddressFamily, icmp_type: int, icmp_code: int, stage: Stage
) -> Failure | None:
    """What an ICMP error means (RFC 792, RFC 4443); None for a message that is no error."""
    if family is AddressFamily.IPV4:
        meaning = _meaning_v4(icmp_type, icmp_code)
    else:
        meaning = _meaning_v6(icmp_type, icmp_code)
    if meaning is None:
        return None
    kind, detail = meaning
    return Failure(kind, stage, detail=detail, icmp_type=icmp_type, icmp_code=icmp_code)


def _meaning_v4(icmp_type: int, code: int) -> tuple[FailureKind, str] | None:
    if icmp_type == 3:
        return FailureKind.UNREACHABLE, _UNREACHABLE_V4.get(code, f"unreachable, code {code}")
    if icmp_type == 11:
        return FailureKind.TIME_EXCEEDED, _TIME_EXCEEDED.get(code, f"time exceeded, code {code}")
    if icmp_type == 12:
        return FailureKind.PROTOCOL, f"parameter problem, code {code}"
    return None


def _meaning_v6(icmp_type: int, code: int) -> tuple[FailureKind, str] | None:
    if icmp_type == 1:
        return FailureKind.UNREACHABLE, _UNREACHABLE_V6.get(code, f"unreachable, code {code}")
    if icmp_type == 2:
        return FailureKind.UNREACHABLE, "packet too big"
    if icmp_type == 3:
        return FailureKind.TIME_EXCEEDED, _TIME_EXCEEDED.get(code, f"time exceeded, code {code}")
    if icmp_type == 4:
        return FailureKind.PROTOCOL, f"parameter problem, code {code}"
    return None


def from_resolver(error: OSError, host: str) -> Failure:
    """What getaddrinfo(3) said. Anything but a clear "no such name" is the resolver's failure."""
    kind = FailureKind.RESOLVER
    if isinstance(error, socket.gaierror):
        kind = _RESOLVER_SAYS.get(error.errno or 0, FailureKind.RESOLVER)
    said = (error.strerror or str(error)).lower()
    return Failure(kind, Stage.RESOLVE, detail=f"{host}: {said}")


def no_address(host: str, family: AddressFamily) -> Failure:
    """The name exists, but not in this address family."""
    detail = f"{host} has no {_name(family)} address"
    return Failure(FailureKind.NO_ADDRESS, Stage.RESOLVE, detail=detail)


def no_family(family: AddressFamily, stage: Stage) -> Failure:
    """The kernel of this host does not speak that family."""
    return Failure(FailureKind.NO_ROUTE, stage, detail=f"this host has no {_name(family)}")


def no_name(host: str, why: str) -> Failure:
    """What stands for a name cannot be one."""
    return Failure(FailureKind.NAME_NOT_FOUND, Stage.RESOLVE, detail=f"{host!r}: {why}")


def from_tls(error: ssl.SSLError, stage: Stage = Stage.HANDSHAKE) -> Failure:
    """What OpenSSL said of a handshake, or of what came after it, in its own words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return certificate_refused(error.verify_message or "certificate refused")
    reason = (error.reason or str(error)).lower().replace("_", " ")
    return Failure(FailureKind.PROTOCOL, stage, detail=reason)


def certificate_refused(why: str) -> Failure:
    """We do not trust the server's certificate."""
    return Failure(FailureKind.CERTIFICATE, Stage.HANDSHAKE, detail=why)


def timed_out(stage: Stage, timeout_ns: int) -> Failure:
    """Nothing came in time."""
    return Failure(FailureKind.TIMEOUT, stage, detail=f"no answer within {timeout_ns / 1e6:g} ms")


def refused() -> Failure:
    """The other side answered a SYN with a RST."""
    return from_os_error(OSError(errno.ECONNREFUSED, ""), Stage.CONNECT)


def closed(stage: Stage) -> Failure:
    """The other side ended the connection in good order, too early."""
    return Failure(FailureKind.CLOSED, stage, detail="closed by the other side")


def _name(family: AddressFamily) -> str:
    return "IPv4" if family is AddressFamily.IPV4 else "IPv6"


def tls_refused_locally(why: str) -> Failure:
    """The handshake cannot even begin with what was asked for."""
    return Failure(FailureKind.LOCAL, Stage.HANDSHAKE, detail=why)


def not_resumed() -> Failure:
    """The server made a full handshake though a ticket was offered."""
    detail = "the server did not accept the session ticket"
    return Failure(FailureKind.NOT_RESUMED, Stage.HANDSHAKE, detail=detail)


def early_data_rejected(why: str) -> Failure:
    """The server read on after the ClientHello as if nothing had come with it."""
    return Failure(FailureKind.EARLY_DATA_REJECTED, Stage.HANDSHAKE, detail=why)


def unavailable(why: str, stage: Stage = Stage.HANDSHAKE) -> Failure:
    """What was asked for cannot be had here, or of this server."""
    return Failure(FailureKind.UNAVAILABLE, stage, detail=why)
