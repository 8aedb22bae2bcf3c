"""Through which device a packet to an address would leave: rtnetlink(7), asked by hand."""

import contextlib
import ipaddress
import socket
import struct

RTM_NEWROUTE, RTM_GETROUTE = 24, 26
NLM_F_REQUEST = 1
RTA_DST, RTA_OIF = 1, 4
_HEADER = struct.Struct("=IHHII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_WAIT_SECONDS = 0.1
_LONGEST_ANSWER = 8_192


def egress_device(address: str) -> str:
    """Name of the device that the routing table chooses for `address`; empty where there is none.

    The kernel answers from its table, with its policy rules; nothing is sent to anybody.
    """
    try:
        packed = ipaddress.ip_address(address).packed
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.settimeout(_WAIT_SECONDS)
            sock.send(route_question(packed))
            index = read_route_answer(sock.recv(_LONGEST_ANSWER))
        return socket.if_indextoname(index) if index else ""
    except (OSError, ValueError):
        return ""


def route_question(destination: bytes) -> bytes:
    """RTM_GETROUTE for one IPv4 (4 octets) or IPv6 (16 octets) address."""
    family = socket.AF_INET if len(destination) == 4 else socket.AF_INET6
    route = _ROUTE.pack(family, len(destination) * 8, 0, 0, 0, 0, 0, 0, 0)
    attribute = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(destination), RTA_DST) + destination
    length = _HEADER.size + len(route) + len(attribute)
    return _HEADER.pack(length, RTM_GETROUTE, NLM_F_REQUEST, 1, 0) + route + attribute


def read_route_answer(answer: bytes) -> int | None:
    """The index of the device in the kernel's answer; None where it names none."""
    with contextlib.suppress(struct.error):
        length, kind, *_ = _HEADER.unpack_from(answer)
        if kind != RTM_NEWROUTE:
            return None
        place = _HEADER.size + _ROUTE.size
        while place + _ATTRIBUTE.size <= min(length, len(answer)):
            size, number = _ATTRIBUTE.unpack_from(answer, place)
            if number == RTA_OIF:
                return int(struct.unpack_from("=I", answer, place + _ATTRIBUTE.size)[0])
            place += max(_ATTRIBUTE.size, (size + 3) & ~3)
    return None
