"""What our HTTP probes and our reflector agree on: paths, and what the answers say. No socket.

    GET  /ping                        204, `residence-ns`: what the request can be timed with
    POST /upload                      200 and JSON `UploadReceipt` as soon as the body has been read
    GET  /stream?chunks=&interval_us=&bytes=   a paced stream of chunks, each a JSON `Chunk`
         form=sse      server-sent events, one `data:` line each (the default)
         form=chunked  lines of JSON in a chunked (HTTP/1.1) or framed (HTTP/2, 3) body
         WebSocket     the same path with an upgrade (RFC 6455): one text message each

The port is the same for TCP (HTTP/1.1, HTTP/2) and UDP (HTTP/3). All times are of the reflector's
own clock: differences mean something, levels only as far as its clock is vouched for.
"""

import msgspec

HTTPS_PORT = 8621
"""TCP and UDP; STAMP has 8620."""

PING_PATH = "/ping"
UPLOAD_PATH = "/upload"
STREAM_PATH = "/stream"

RESIDENCE_HEADER = "residence-ns"
"""Of every answer: first byte of it written minus last byte of the request read, monotonic, ns."""


class UploadReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What the sink says of one upload."""

    bytes: int
    """Length of the body."""
    first_unix_ns: int
    """When the first byte of the body was read; the kernel's stamp where `kernel` is true."""
    last_unix_ns: int
    """When its last byte was."""
    residence_ns: int
    """From the last byte (by the same clock) to the write of this answer."""
    kernel: bool = False
    """Whether the two times are kernel receive stamps."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One chunk of a paced stream."""

    n: int
    """Number of the chunk, from 0."""
    due_ns: int
    """When it was due, from the first one."""
    sent_unix_ns: int
    """The reflector's clock just before the write call."""
    left: tuple[tuple[int, int], ...] = ()
    """(number, kernel's send stamp, unix ns) of chunks that have left before this one was made."""
    last: bool = False
    """The last one repeats nothing and carries the stamps that were still missing; no payload."""
    pad: str = ""
    """Makes the chunk as long as was asked for."""
