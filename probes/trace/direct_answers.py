"""Answers of the destination itself: echo replies and TCP segments. Nothing here raises.

`Answer.quoted` is made to look like a quote of the probe, so that one piece of code tells whether
an answer belongs to it, whoever sent it.
"""

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace import icmp_probe
from pathbudget.probes.trace.contract import Answer, AnswerKind, PathArrival
from pathbudget.probes.trace.ip_headers import words_sum
from pathbudget.probes.trace.payload import payload_token
from pathbudget.probes.trace.quotes import MOST_KEPT
from pathbudget.probes.trace.tcp_probe import ACK, FIN, HEADER_BYTES, RST, SEQUENCES, SYN

_END, _PADDING, _SACK, _TIMESTAMPS = 0, 1, 5, 8


def read_reply(arrival: PathArrival, family: AddressFamily) -> Answer | None:
    """An echo reply; None for everything else and for damaged ones."""
    message = arrival.data
    v4 = family is AddressFamily.IPV4
    wanted = icmp_probe.REPLY_V4 if v4 else icmp_probe.REPLY_V6
    if len(message) < icmp_probe.HEADER_BYTES or message[0] != wanted or message[1]:
        return None
    if v4 and words_sum(message):
        return None
    request = icmp_probe.as_request(family, message)
    checksum = int.from_bytes(request[2:4], "big")
    inside = payload_token(request[icmp_probe.HEADER_BYTES :])
    token = inside or int.from_bytes(request[6:8], "big")
    if not token:
        return None
    answer = _arrived(arrival, token, checksum, f"{message[0]}/0", request[:MOST_KEPT])
    return answer._replace(icmp_type=message[0], icmp_code=0, checksum=checksum)


def read_segment(arrival: PathArrival) -> Answer | None:
    """SYN-ACK or RST that answers a SYN of ours, or the acknowledgement of an old octet.

    A RST without acknowledgement proves nothing (RFC 9293, 3.10.7.3). An acknowledgement that does
    not say which octet came twice has token 0: the session knows whether one probe alone waits.
    """
    segment = arrival.data
    start = (segment[12] >> 4) * 4 if len(segment) >= HEADER_BYTES else 0
    if not HEADER_BYTES <= start <= len(segment):
        return None
    kind = segment[13] & (FIN | SYN | RST | ACK)
    options = segment[HEADER_BYTES:start]
    if kind in (SYN | ACK, RST | ACK):
        return _opening(arrival, options, "rst" if kind & RST else "syn-ack")
    if kind == ACK and start == len(segment):
        return _acknowledgement(arrival, options)
    return None


def _opening(arrival: PathArrival, options: bytes, word: str) -> Answer | None:
    """The echoed timestamp knows what the sequence was, even if a firewall changed it."""
    acknowledged = int.from_bytes(arrival.data[8:12], "big")
    echoed = _option(options, _TIMESTAMPS)
    number = int.from_bytes(echoed[4:8], "big") if echoed is not None and len(echoed) == 8 else 0
    number = number or (acknowledged - 1) % SEQUENCES
    return _of_number(arrival, number, word)


def _acknowledgement(arrival: PathArrival, options: bytes) -> Answer | None:
    blocks = _option(options, _SACK)
    if blocks is None or len(blocks) < 8:
        return _of_number(arrival, None, "ack")
    left, right = (int.from_bytes(blocks[at : at + 4], "big") for at in (0, 4))
    acknowledged = int.from_bytes(arrival.data[8:12], "big")
    old = 0 < (acknowledged - left) % SEQUENCES <= 1 << 16
    return _of_number(arrival, left, "ack") if old and right - left == 1 else None


def _of_number(arrival: PathArrival, number: int | None, word: str) -> Answer | None:
    """`number`: the sequence of the probe that is answered, None where that is not said."""
    token = 0 if number is None else number & 0xFFFF
    if number is not None and not token:
        return None
    ports = arrival.data[2:4] + arrival.data[:2]
    quoted = ports if number is None else ports + number.to_bytes(4, "big")
    return _arrived(arrival, token, int.from_bytes(ports[:2], "big"), word, quoted)


def _arrived(arrival: PathArrival, token: int, key: int, word: str, quoted: bytes) -> Answer:
    return Answer(
        kind=AnswerKind.ARRIVED,
        token=token,
        flow_key=key,
        responder=arrival.sender,
        icmp_type=None,
        icmp_code=None,
        ttl=arrival.ttl,
        quoted_ttl=None,
        checksum=None,
        kernel_unix_ns=arrival.kernel_unix_ns,
        word=word,
        quoted=quoted,
    )


def _option(options: bytes, wanted: int) -> bytes | None:
    """Content of the first option of that kind (RFC 9293, 3.1)."""
    at = 0
    while at < len(options) and options[at] != _END:
        if options[at] == _PADDING:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            return None
        if options[at] == wanted:
            return options[at + 2 : at + length]
        at += length
    return None
