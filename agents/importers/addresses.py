"""IP addresses as texts, each in its one usual form."""

import functools
import ipaddress


@functools.lru_cache(maxsize=65_536)
def canonical(text: str) -> str:
    """The address in its usual form (RFC 5952); empty where `text` is none.

    An IPv4 address inside IPv6 (``::ffff:192.0.2.1``) is what it stands for.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
